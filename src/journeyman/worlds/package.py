"""From a bound task to a Harbor directory, and from an office to a layer that many tasks share.

``OUT/layers/<digest>/`` holds a world once: ``world/`` (its files), ``apps_data/`` (state of mail, chat, calendar).
A task links to them, so a thousand tasks take the room of their worlds. The agent may see ``instruction.md`` and
``environment/``; truth, provenance and the gates' report lie under ``tests/``, the answer under ``solution/``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from journeyman.digest import canonical_json, sha256, tree_sha256
from journeyman.tasks import counterparts
from journeyman.tasks.task_toml import SCHEMA_VERSION
from journeyman.tasks.toml_text import to_toml
from journeyman.worlds.office import Office
from journeyman.worlds.template import FOLDER, Bound, Template
from journeyman.worlds.verify import check_source, program_archive, rubric_of, truth_of
from journeyman.worlds.verify.program import ARCHIVE, DISTRIBUTIONS, TEST_SCRIPT

VERIFIER_TIMEOUT_S, AGENT_TIMEOUT_S, BUILD_TIMEOUT_S = 60.0, 3600.0, 900.0
DIGEST_CHARS = 24

SOLUTION = f"""\
#!/bin/sh
# Leaves the right deliverables where the task asks for them.
set -eu
here="$(dirname "$0")"
for place in {FOLDER} "${{LOGS_DIR:-/logs}}/artifacts"; do
  mkdir -p "$place" 2>/dev/null && cp -R "$here/deliverables/." "$place/" || true
done
"""

DOCKERFILE = """\
FROM python:3.11-slim
RUN pip install --no-cache-dir --target /opt/agent/lib {distributions}
RUN mkdir -p /logs/artifacts /ws/artifacts
WORKDIR /ws
COPY world/ /ws/
COPY apps_data/ /apps_data/
"""


def layer_name(office: Office) -> str:
    """Name of a world's layer: the beginning of its digest."""
    return office.digest[:DIGEST_CHARS]


def write_layer(office: Office, root: Path) -> Path:
    """Write a world below ``root`` under its digest; returns that directory. Raises OSError."""
    directory = root / layer_name(office)
    for name, data in office.files.items():
        _write(directory / "world" / name, data)
    for name, data in office.apps.items():
        _write(directory / "apps_data" / name, data)
    (directory / "apps_data").mkdir(exist_ok=True)
    return directory


def write_program(root: Path) -> Path:
    """Write the verifier's archive under its digest; tasks link to it. Raises OSError."""
    data = program_archive()
    path = root / f"verifier-{sha256(data)[:DIGEST_CHARS]}.zip"
    if not path.exists():
        _write(path, data)
    return path


def write_task(
    office: Office,
    template: Template,
    bound: Bound,
    directory: Path,
    layer: Path,
    program: Path,
    origin: Mapping[str, Any],
) -> Path:
    """Write one task directory. Same arguments, same bytes.

    Args:
        layer: where the world lies, see ``write_layer``.
        program: the verifier's archive, see ``write_program``.
        origin: seed, index and number, so that the task can be made again.

    Raises:
        OSError: the place cannot be written; what was written stays, so write into a staging directory.
    """
    originals = {path: office.files[path] for path in bound.originals}
    right = template.write(bound, bound.answer, office.files)
    own = {
        "task.toml": task_toml(office, bound).encode(),
        "instruction.md": bound.instruction.encode(),
        "environment/Dockerfile": DOCKERFILE.format(distributions=" ".join(DISTRIBUTIONS)).encode(),
        "solution/solve.sh": SOLUTION.encode(),
        **{f"solution/deliverables/{name}": data for name, data in right.items()},
        "tests/test.sh": TEST_SCRIPT.encode(),
        "tests/check.py": check_source(),
        "tests/truth.json": truth_of(bound.checks, originals, office.canary),
        "tests/provenance.json": canonical_json(provenance(office, bound, origin)),
    }
    rubric = rubric_of(bound.checks)
    if rubric is not None:
        own["tests/rubric.json"] = rubric
    if bound.counterparts:
        own[f"tests/{counterparts.FILE}"] = canonical_json(dict(bound.counterparts))
    for name, data in own.items():
        _write(directory / name, data)
    _link_tree(layer / "world", directory / "environment" / "world")
    _link_tree(layer / "apps_data", directory / "environment" / "apps_data")
    _link(program, directory / "tests" / ARCHIVE)
    return directory


def provenance(office: Office, bound: Bound, origin: Mapping[str, Any]) -> dict[str, Any]:
    """Where a task comes from and what it is made of; statistics and ``worlds show`` read it."""
    return {
        **origin,
        "template": bound.template,
        "domain": bound.domain,
        "industry": office.industry,
        "style": office.style,
        "today": office.today,
        "layer": layer_name(office),
        "traps": sorted(bound.traps),
        "knobs": bound.knobs.as_json(),
        "checks": [check.labels() for check in bound.checks],
        "controls": [{"name": wrong.name, "fails": wrong.fails, "trap": wrong.trap} for wrong in bound.wrong],
        "facts": list(bound.facts),
        "reads": list(bound.reads),
        "notes": dict(bound.notes),
    }


def task_toml(office: Office, bound: Bound) -> str:
    """``task.toml`` of an office task."""
    return to_toml(
        {
            "schema_version": SCHEMA_VERSION,
            "artifacts": [{"source": f"/ws/{FOLDER}", "destination": f"ws-{FOLDER}"}],
            "metadata": {
                "journeyman": {
                    "family": bound.template,
                    "world_id": office.id,
                    "split": office.split,
                    "world_digest": tree_sha256(office.files),
                    "deliverables": list(bound.deliverables),
                    **({"counterparts": f"tests/{counterparts.FILE}"} if bound.counterparts else {}),
                }
            },
            "agent": {"timeout_sec": AGENT_TIMEOUT_S},
            "environment": {"build_timeout_sec": BUILD_TIMEOUT_S, "network_mode": "no-network", "workdir": "/ws"},
            "verifier": {"timeout_sec": VERIFIER_TIMEOUT_S},
        }
    )


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    if path.suffix == ".sh":
        path.chmod(0o755)


def _link(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(source, target)
    except OSError:  # another file system, or too many links to one file
        target.write_bytes(source.read_bytes())


def _link_tree(source: Path, target: Path) -> None:
    """Link every file below a directory. A world has hundreds and many tasks, so no path object is made for each."""
    for folder, folders, names in os.walk(source):
        folders.sort()
        place = target / Path(folder).relative_to(source)
        place.mkdir(parents=True, exist_ok=True)
        for name in names:
            try:
                os.link(f"{folder}/{name}", f"{place}/{name}")
            except OSError:
                _link(Path(folder, name), place / name)
