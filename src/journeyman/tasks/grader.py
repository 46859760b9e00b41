"""The sandbox that grades a batch: ``inside/grade.py`` under the fork server, check sources, and nowhere to write.

A *room* is the host directory behind it: ``checks/<sha256>.py`` and an empty directory.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from journeyman.digest import sha256, sha256_file
from journeyman.sandbox.protocol import AGENT_ROOT, AgentEnvironment, Mount, SandboxSpec

GRADER_SOURCE = Path(__file__).parent / "inside" / "grade.py"
GRADER_ROOT = "/opt/grader"
"""Where the program and the check sources lie inside."""

SANDBOX_MEMORY_MB = 512
"""Memory of a verifier's sandbox as a whole."""

CHECK_MEMORY_MB = 256
"""Memory of one check; more ends its child alone, below the limit of the sandbox."""

_WRITABLE = ("/ws", "/tmp", "/dev/shm")
"""What a sandbox may write by default: here an empty read-only directory, so no trial leaves a file for the next."""

_CHILD_SLACK_S = 1.0
CALL_SLACK_S = 5.0
"""A check ends itself at its deadline; one that does not is killed by the server after the first slack, and with its
sandbox after the second."""


def prepare_room(room: Path) -> None:
    """Make the directories below an empty ``room``."""
    for name in ("checks", "empty"):
        (room / name).mkdir()


def add_check(room: Path, source: bytes) -> str:
    """Put the source of a check where the next sandbox finds it; returns its sha256, which frames name it by."""
    digest = sha256(source)
    path = room / "checks" / f"{digest}.py"
    if not path.exists():
        path.write_bytes(source)
    return digest


def add_archives(room: Path, tests: Path) -> None:
    """Put the programs that checks import (``tests/*.zip``) beside them, each under its digest: ``<sha256>.zip``."""
    for source in sorted(tests.glob("*.zip")):
        path = room / "checks" / f"{sha256_file(source)}.zip"
        if not path.exists():
            path.write_bytes(source.read_bytes())


def grader_spec(
    room: Path,
    label: str,
    environment: AgentEnvironment,
    longest_s: float,
    waive: frozenset[str],
    env: Mapping[str, str] | None = None,
) -> SandboxSpec:
    """The sandbox of one batch.

    Args:
        longest_s: the longest time any check of the batch may take, in seconds.
        waive: limits that may stay unenforced.
        env: variables of the sandbox, e.g. its time zone.
    """
    return SandboxSpec(
        label=label,
        mounts=(
            Mount(GRADER_SOURCE, f"{GRADER_ROOT}/grade.py"),
            Mount(room / "checks", f"{GRADER_ROOT}/checks"),
            *(Mount(room / "empty", target) for target in _WRITABLE),
        ),
        environment=environment,
        entry=(
            *("python3", "-I", "-S", f"{AGENT_ROOT}/forkserver.py", "--path", GRADER_ROOT, "grade:handle"),
            *("--memory-mb", str(CHECK_MEMORY_MB), "--deadline-s", f"{longest_s + _CHILD_SLACK_S:g}"),
            *("--file-mb", "0"),
        ),
        env=dict(env or {}),
        memory_mb=SANDBOX_MEMORY_MB,
        waive=waive,
    )
