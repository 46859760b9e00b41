"""What keeps an agent's files from steering a verifier's own programs: ``inside/guard`` on the path of every Python.

A test script may run pytest among what an agent delivered, or where it worked. Then a planted ``conftest.py``, a
``pytest.ini`` or a module named like one of the library would be part of the verifier. The guard keeps them out; tests
that are run on purpose, and programs that are executed on purpose, run as ever.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from journeyman.digest import sha256_file
from journeyman.sandbox.protocol import AGENT_ROOT
from journeyman.tasks.grader import GRADER_ROOT
from journeyman.tasks.inside.guard.sitecustomize import CONFIGS
from journeyman.tasks.task import Task

GUARD_SOURCE = Path(__file__).parent / "inside" / "guard"
GUARD = f"{GRADER_ROOT}/guard"
"""Where it lies inside."""

_LOADED = frozenset({"conftest.py", *CONFIGS})


def guarding(task: Task, tests: Path, untrusted: Sequence[str], *, has_environment: bool) -> dict[str, str]:
    """The variables of a verifier's sandbox.

    Args:
        tests: what is shown at ``/tests``.
        untrusted: places inside that an agent could write to.
        has_environment: the agent environment is there, whose libraries stay on the path.
    """
    own = next((f"/tests/{name}" for name in CONFIGS if (tests / name).is_file()), f"{GUARD}/pytest.ini")
    return {
        "PYTHONSAFEPATH": "1",
        "PYTHONNOUSERSITE": "1",
        "PYTHONPATH": f"{GUARD}:{AGENT_ROOT}/lib" if has_environment else GUARD,
        "VERIFIER_UNTRUSTED": ":".join(untrusted),
        "VERIFIER_KNOWN": " ".join(_known(task.path / "environment")),
        "VERIFIER_CONFIG": own,
    }


def _known(environment: Path) -> Iterator[str]:
    """Digests of what the author of a task put into its environment and pytest would load."""
    for path in sorted(environment.rglob("*")) if environment.is_dir() else ():
        if path.name in _LOADED and path.is_file() and not path.is_symlink():
            yield sha256_file(path)
