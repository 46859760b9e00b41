"""The agent environment for an image: packages of the host's cannot run there, so the image's own pip fetches the same.

The same distributions in the same versions, our own packages and programs copied; built once beside the environment it
stands for, published by one rename, and found again by the image's id.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import replace
from email.parser import BytesHeaderParser
from pathlib import Path

from journeyman.deadline import Deadline
from journeyman.digest import sha256_json
from journeyman.errors import EnvironmentMissing
from journeyman.sandbox.oci.engine import Engine, EngineFailed
from journeyman.sandbox.protocol import AGENT_ROOT, AgentEnvironment, SandboxSpec

#: Seconds that the installation of all distributions inside may take.
BUILD_S = 900.0
_FILES = ("forkserver.py",)
_BUILD = f"""
set -e
python=$(command -v python3)
if [ -s {AGENT_ROOT}/requirements.txt ]; then
  "$python" -m pip install --quiet --no-deps --no-compile --disable-pip-version-check --root-user-action ignore \\
    --only-binary :all: "$@" --target {AGENT_ROOT}/lib -r {AGENT_ROOT}/requirements.txt
fi
"$python" -m compileall -q {AGENT_ROOT}/lib >/dev/null || :
ln -s "$python" {AGENT_ROOT}/bin/python3
ln -s "$python" {AGENT_ROOT}/bin/python
"""


def requirements_of(environment: AgentEnvironment) -> list[str]:
    """``name==version`` of every distribution in an environment, sorted."""
    found = []
    for metadata in (environment.path / "lib").glob("*.dist-info/METADATA"):
        with metadata.open("rb") as file:
            headers = BytesHeaderParser().parse(file)
        found.append(f"{headers['Name']}=={headers['Version']}")
    return sorted(found)


def own_packages(environment: AgentEnvironment) -> list[Path]:
    """What lies in ``lib`` and belongs to no distribution: packages and modules that were copied in."""
    library = environment.path / "lib"
    owned = {"__pycache__"}
    for record in library.glob("*.dist-info/RECORD"):
        owned.add(record.parent.name)
        owned.update(line.split("/", 1)[0].split(",", 1)[0].strip('"') for line in record.read_text().splitlines())
    return sorted(path for path in library.iterdir() if path.name not in owned)


def with_guest_environment(spec: SandboxSpec, engine: Engine, image: str) -> SandboxSpec:
    """The spec with an agent environment that runs in the image."""
    assert spec.environment is not None
    return replace(spec, environment=guest_environment(spec.environment, engine, image))


def guest_environment(environment: AgentEnvironment, engine: Engine, image: str) -> AgentEnvironment:
    """Find or build it, with a network for the installation unless JOURNEYMAN_OCI_WHEELS names a directory of wheels.

    Raises:
        EnvironmentMissing: it cannot be built, with what pip said.
    """
    digest = sha256_json([environment.digest, image])
    final = environment.path.with_name(f"{environment.path.name}-{digest[:8]}")
    if not (final / "bin" / "python3").is_symlink():
        staging = Path(tempfile.mkdtemp(prefix=".building-", dir=environment.path.parent))
        try:
            _fill(staging, environment)
            _install(staging, engine, image)
            staging.chmod(0o755)
            try:
                staging.rename(final)
            except OSError:
                if not final.is_dir():  # else another process published the same one meanwhile
                    raise
        finally:
            shutil.rmtree(staging, ignore_errors=True)
    return AgentEnvironment(final, digest)


def _fill(staging: Path, environment: AgentEnvironment) -> None:
    for name in ("bin", "lib"):
        (staging / name).mkdir()
    for package in own_packages(environment):
        if package.is_dir():
            shutil.copytree(package, staging / "lib" / package.name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy2(package, staging / "lib" / package.name)
    for program in (environment.path / "bin").iterdir():
        if not program.is_symlink():
            shutil.copy2(program, staging / "bin" / program.name)
    for name in _FILES:
        shutil.copy2(environment.path / name, staging / name)
    (staging / "requirements.txt").write_text("".join(f"{line}\n" for line in requirements_of(environment)))


def _install(staging: Path, engine: Engine, image: str) -> None:
    words = ["run", "--rm", "--mount", f"type=bind,source={staging.resolve()},destination={AGENT_ROOT}"]
    pip_options: list[str] = []
    wheels = os.environ.get("JOURNEYMAN_OCI_WHEELS")
    if wheels:
        words += [
            "--network",
            "none",
            "--mount",
            f"type=bind,source={Path(wheels).resolve()},destination=/wheels,readonly",
        ]
        pip_options = ["--no-index", "--find-links", "/wheels"]
    words += ["--ulimit", "nofile=4096:4096", "--ulimit", "nproc=4096:4096", "--security-opt", "label=disable"]
    words += [image, "/bin/sh", "-c", _BUILD, "build", *pip_options]
    try:
        engine.run(*words, deadline=Deadline.after(BUILD_S, "installation of the agent environment in a container"))
    except EngineFailed as error:
        raise EnvironmentMissing(
            f"the agent environment cannot be installed in the image {image}: {error}\n"
            "  without a network, name a directory with its wheels: JOURNEYMAN_OCI_WHEELS=/path"
        ) from error
