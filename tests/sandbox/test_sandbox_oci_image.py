"""Containers from an image with a Python of its own, as in a virtual machine: what macOS would use, forced here.

The image is made of this host's interpreter and the programs that a sandbox needs; the wheels are made of installed
distributions. So nothing is downloaded.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib import metadata
from pathlib import Path

import pytest

from journeyman.deadline import Deadline
from journeyman.errors import EnvironmentMissing
from journeyman.sandbox.environment import forkserver_entry
from journeyman.sandbox.errors import ExecTimeout
from journeyman.sandbox.oci import Oci, guest
from journeyman.sandbox.oci.engine import Engine, find_engine
from journeyman.sandbox.protocol import AgentEnvironment, Mount, Sandbox, SandboxSpec

pytestmark = [pytest.mark.podman, pytest.mark.slow]
Opener = Callable[..., Sandbox]
PROGRAMS = ("sh", "head", "cat", "mkdir", "cp", "ls", "id", "sleep", "setsid", "wc", "touch", "rm", "ln")
IMAGE = "localhost/journeyman-test-guest:1"


def shared_libraries(files: list[Path]) -> set[str]:
    """Absolute paths of what the loader maps for them."""
    said = subprocess.run(["ldd", *map(str, files)], capture_output=True, text=True, check=False).stdout
    return set(re.findall(r"(/\S+\.so\S*) \(0x", said))


@pytest.fixture(scope="module")
def engine() -> Engine:
    try:
        return find_engine()
    except EnvironmentMissing as missing:
        pytest.skip(f"provider oci: {missing}")


@pytest.fixture(scope="module")
def image(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """This interpreter at /usr/local, as the images of python.org have it, with pip, a shell and some programs."""
    base = Path(sys.base_prefix).resolve()
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    library = base / "lib" / version
    binary = base / "bin" / version
    programs = [Path(found).resolve() for name in PROGRAMS if (found := shutil.which(name))]
    needed = shared_libraries([binary, *programs, *(library / "lib-dynload").glob("*.so")])
    path = tmp_path_factory.mktemp("image") / "root.tar"

    def keep(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
        parts = Path(member.name).parts
        if "site-packages" in parts:
            below = parts[parts.index("site-packages") + 1 :]
            return member if not below or below[0].startswith("pip") else None
        return (
            None if {"test", "tests", "__pycache__", "idlelib", "config-3.11-x86_64-linux-gnu"} & set(parts) else member
        )

    with tarfile.open(path, "w", dereference=True) as archive:
        archive.add(library, f"usr/local/lib/{version}", filter=keep)
        archive.add(binary, "usr/local/bin/python3")
        for library_path in needed:
            archive.add(library_path, library_path.lstrip("/"))
        for name in PROGRAMS:
            if found := shutil.which(name):
                archive.add(found, f"bin/{name}")
        for name in ("etc", "proc", "dev", "sys", "opt", "run", "tmp"):
            folder = tarfile.TarInfo(name)
            folder.type, folder.mode = tarfile.DIRTYPE, 0o1777 if name == "tmp" else 0o755
            archive.addfile(folder)
    engine.run("import", str(path), IMAGE, deadline=Deadline.after(120, "import"))
    yield IMAGE
    engine.run("rmi", "-f", IMAGE, deadline=Deadline.after(60, "removal of an image"))


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a wheel of et_xmlfile, made of its installed files."""
    place = tmp_path_factory.mktemp("wheels")
    distribution = metadata.distribution("et_xmlfile")
    files = {
        str(file): Path(str(distribution.locate_file(file))).read_bytes()
        for file in distribution.files or ()
        if file.suffix != ".pyc" and file.name not in ("RECORD", "INSTALLER", "REQUESTED")
    }
    rows = io.StringIO()
    writer = csv.writer(rows)
    for name, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        writer.writerow([name, f"sha256={digest}", len(data)])
    info = next(name.split("/")[0] for name in files if ".dist-info/" in name)
    writer.writerow([f"{info}/RECORD", "", ""])
    with zipfile.ZipFile(place / f"{info.removesuffix('.dist-info')}-py3-none-any.whl", "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
        archive.writestr(f"{info}/RECORD", rows.getvalue())
    return place


@pytest.fixture(scope="module")
def provider(engine: Engine, image: str) -> Oci:
    """As for a podman machine: no root directory, no control group, no process of ours to kill."""
    return Oci(replace(engine, is_local=False), image)


@pytest.fixture
def open_guest(provider: Oci, label: str, wheels: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Opener]:
    monkeypatch.setenv("JOURNEYMAN_OCI_WHEELS", str(wheels))
    made: list[Sandbox] = []

    def make(**fields: object) -> Sandbox:
        made.append(provider.create(SandboxSpec(label, **fields)))  # type: ignore[arg-type]
        return made[-1]

    yield make
    for sandbox in made:
        sandbox.destroy()
    assert provider.list(label) == []


def test_the_images_own_pip_installs_the_same_versions_and_our_packages_are_copied(
    open_guest: Opener, environment: AgentEnvironment
) -> None:
    sandbox = open_guest(environment=environment)
    assert sandbox.exec("greet you", deadline_s=30).stdout == b"hello you\n"
    asked = "import et_xmlfile, handler, sys; print(et_xmlfile.__version__, handler.handle(b'ab'), sys.base_prefix)"
    version = metadata.version("et_xmlfile")
    result = sandbox.exec(["python3", "-c", asked], deadline_s=30)
    assert result.stdout.decode() == f"{version} b'ba' /usr/local\n", result.stderr
    assert sandbox.exec(["python3", "-c", "import journeyman"], deadline_s=30).return_code == 1


def test_the_environment_of_an_image_is_built_once(
    provider: Oci,
    engine: Engine,
    image: str,
    environment: AgentEnvironment,
    wheels: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("JOURNEYMAN_OCI_WHEELS", str(wheels))
    first = guest.guest_environment(environment, engine, image)
    marker = first.path / "marker"
    marker.touch()
    assert guest.guest_environment(environment, engine, image) == first
    assert marker.exists()
    assert first.digest != environment.digest
    assert [path.name for path in guest.own_packages(environment)] == ["handler.py"]
    assert guest.requirements_of(environment) == [f"et_xmlfile=={metadata.version('et_xmlfile')}"]
    marker.unlink()


def test_a_distribution_that_pip_cannot_find_is_named_and_leaves_nothing(
    engine: Engine, image: str, environment: AgentEnvironment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = tmp_path / "environments" / "abc"
    shutil.copytree(environment.path, copy, symlinks=True)
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv("JOURNEYMAN_OCI_WHEELS", str(tmp_path / "empty"))
    with pytest.raises(EnvironmentMissing, match=r"et_xmlfile[\s\S]*JOURNEYMAN_OCI_WHEELS"):
        guest.guest_environment(AgentEnvironment(copy, "abc"), engine, image)
    assert [path.name for path in copy.parent.iterdir()] == ["abc"]


def test_the_fork_server_serves_calls_from_an_image(open_guest: Opener, environment: AgentEnvironment) -> None:
    sandbox = open_guest(environment=environment, entry=forkserver_entry("handler:handle", deadline_s=5))
    assert sandbox.call(b"abc", deadline_s=10) == b"cba"
    sandbox.call(b"daemon", deadline_s=10)
    assert sandbox.call(b"x" * 1_000_000, deadline_s=10) == b"x" * 1_000_000


def test_commands_transfers_and_mounts_work_without_this_kernels_help(open_guest: Opener, tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    (tmp_path / "file").write_text("old")
    (tmp_path / "out").mkdir()
    sandbox = open_guest(
        mounts=(Mount(tmp_path, "/ws", overlay=True), Mount(tmp_path / "out", "/logs", writable=True)), disk_mb=8
    )
    assert sandbox.exec("cat file; echo new >file; cat file", deadline_s=10).stdout == b"oldnew\n"
    assert (tmp_path / "file").read_text() == "old"
    sandbox.upload(b"text", "/logs/said", deadline_s=10)
    assert (tmp_path / "out" / "said").read_bytes() == b"text"
    assert (tmp_path / "out" / "said").stat().st_uid == os.getuid()
    assert sandbox.download("/logs/said", deadline_s=10) == b"text"
    assert sandbox.exec("touch /usr/x", deadline_s=10).return_code != 0


def test_a_deadline_sweeps_what_has_a_session_of_its_own_also_in_an_image(open_guest: Opener) -> None:
    sandbox = open_guest()
    with pytest.raises(ExecTimeout) as caught:
        sandbox.exec("setsid sleep 565656 & sleep 565656", deadline_s=0.5)
    assert caught.value.elapsed_s < 6
    lines = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if path.exists()]
    assert not any(b"565656" in line for line in lines)
    assert sandbox.exec("echo alive", deadline_s=5).stdout == b"alive\n"


def test_the_interpreter_of_this_host_is_not_shown_to_an_image(
    open_guest: Opener, environment: AgentEnvironment
) -> None:
    assert open_guest(environment=environment).exec("ls /opt", deadline_s=10).stdout == b"agent\n"
