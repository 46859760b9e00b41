"""Harbor's way of grading: one fresh sandbox for one trial, ``sh /tests/test.sh``, and the reward file it leaves.

The verifier sees ``/tests`` and ``/logs/artifacts`` read-only; ``/logs/verifier`` is an empty directory that the agent
never had. The reward is read after the sandbox is gone, so nothing that still runs can rewrite it.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from journeyman.sandbox.errors import ExecTimeout, SandboxFault, SandboxLost, SandboxStartFailed
from journeyman.sandbox.protocol import AgentEnvironment, ExecResult, Mount, Provider, SandboxSpec
from journeyman.sandbox.scratch import scratch
from journeyman.tasks.artifacts import Artifacts, BadDeliverable, declared_artifacts, write_artifacts
from journeyman.tasks.errors import (
    JudgeMissing,
    VerifierCrashed,
    VerifierFault,
    VerifierKilled,
    VerifierMissing,
    VerifierSandboxLost,
    VerifierTimeout,
)
from journeyman.tasks.grader import GRADER_ROOT, GRADER_SOURCE, SANDBOX_MEMORY_MB
from journeyman.tasks.guarding import GUARD, GUARD_SOURCE, guarding
from journeyman.tasks.reward_file import read_details, read_reward
from journeyman.tasks.task import Task
from journeyman.tasks.verdict import Verdict, malformed, scored, verifier_error

FRESH_TRIES = 2
"""How often what a lost sandbox did not finish is graded again, each time in a fresh one."""

_UNREADABLE = 3  # exit status of grade.py: a deliverable cannot be read as what its name says
_TAIL_BYTES = 1_000

T = TypeVar("T")


def verify_in_sandbox(
    task: Task,
    artifacts: Artifacts | None,
    provider: Provider,
    environment: AgentEnvironment | None,
    *,
    label: str = "verifier",
    waive: frozenset[str] = frozenset(),
    state: tuple[Mount, ...] = (),
    cwd: str | None = None,
) -> Verdict:
    """Grade one trial with the task's own test script.

    A non-zero exit status is a verifier error for tasks that say so (our own do); an imported task counts when its
    reward file is valid, whatever the status (Harbor's rule). ``[verifier] env`` is passed on where it holds no
    ``${...}`` template: nothing of the host's environment enters.

    Args:
        artifacts: what was collected below ``/logs/artifacts``; None when nothing was.
        environment: put on PATH, or None for the bare sandbox.
        label: owner, for ``Provider.list`` and ``reap``.
        waive: limits that may stay unenforced.
        state: further directories, for a verifier that looks at where the agent worked; no process comes with them.
        cwd: where the script runs; None: the sandbox's own directory.

    Raises:
        SandboxLeak: something of the sandbox could not be removed.
    """
    if task.is_judged:
        return verifier_error(JudgeMissing(f"{task.id} is graded by a rubric, not by a script"))
    try:
        shown = declared_artifacts(artifacts, task.deliverables)
    except BadDeliverable as error:
        return malformed(str(error))
    try:
        return in_fresh_sandboxes(lambda: _verify_once(task, shown, provider, environment, label, waive, state, cwd))
    except VerifierFault as fault:
        return verifier_error(fault)


def in_fresh_sandboxes(attempt: Callable[[], T]) -> T:
    """Call ``attempt``, which makes its own sandbox, again up to ``FRESH_TRIES`` times while its sandbox gets lost.

    Raises:
        VerifierSandboxLost: each of the sandboxes was lost; names the last reason.
    """
    for tries_left in range(FRESH_TRIES, -1, -1):
        try:
            return attempt()
        except (SandboxLost, SandboxStartFailed) as error:
            if not tries_left:
                raise VerifierSandboxLost(f"in {FRESH_TRIES + 1} sandboxes, the last time: {error}") from error
    raise AssertionError("the loop returns or raises")


def _verify_once(
    task: Task,
    shown: Artifacts,
    provider: Provider,
    environment: AgentEnvironment | None,
    label: str,
    waive: frozenset[str],
    state: tuple[Mount, ...],
    cwd: str | None,
) -> Verdict:
    if not any((directory / "test.sh").is_file() for directory in (task.tests, task.path / "tests")):
        raise VerifierMissing(f"{task.tests / 'test.sh'} is gone")
    with scratch(label) as room:
        write_artifacts(shown, room / "artifacts")
        (room / "verifier").mkdir()
        tests = tests_of(task, room).absolute()
        untrusted = ("/logs/artifacts", *(mount.target for mount in state))
        spec = SandboxSpec(
            label=label,
            mounts=(
                *state,
                Mount(tests, "/tests"),
                Mount(room / "artifacts", "/logs/artifacts"),
                Mount(room / "verifier", "/logs/verifier", writable=True),
                Mount(GRADER_SOURCE, f"{GRADER_ROOT}/grade.py"),
                Mount(GUARD_SOURCE, GUARD),
            ),
            environment=environment,
            cwd=cwd or "/ws",
            env={
                "LOGS_DIR": "/logs",  # said, since a provider that isolates nothing has other paths
                "TESTS_DIR": "/tests",
                **guarding(task, tests, untrusted, has_environment=environment is not None),
                **{k: v for k, v in task.config.verifier.env.items() if "${" not in v},
            },
            memory_mb=SANDBOX_MEMORY_MB,
            waive=waive,
        )
        reason, result = _run(task, provider, spec)
        if result is None:
            return malformed(reason)
        return _verdict(task, result, room / "verifier")


def tests_of(task: Task, room: Path) -> Path:
    """What is shown at ``/tests``: the task's directory, or for a step both, its own laid over the task's."""
    if task.shared_tests is None:
        return task.tests
    merged = room / "tests"
    shutil.copytree(task.shared_tests, merged)
    shutil.copytree(task.tests, merged, dirs_exist_ok=True)
    return merged


def _run(task: Task, provider: Provider, spec: SandboxSpec) -> tuple[str, ExecResult | None]:
    """Run the test script and destroy the sandbox; no result but a reason when a deliverable cannot be read."""
    sandbox = provider.create(spec)
    try:
        limit_s = task.verifier_timeout_s
        if task.deliverables:
            command = ["python3", "-I", "-S", f"{GRADER_ROOT}/grade.py", "/logs/artifacts"]
            gate = sandbox.exec(command, deadline_s=limit_s)
            if gate.return_code == _UNREADABLE:
                return gate.stdout.decode(errors="replace").strip(), None
            if gate.return_code != 0:
                raise VerifierCrashed(f"the deliverables could not be looked at: {_tail(gate)}")
        return "", sandbox.exec(["sh", "/tests/test.sh"], deadline_s=limit_s)
    except ExecTimeout as error:
        raise VerifierTimeout(f"test.sh did not end within {error.limit_s:g} s") from error
    except SandboxLost:
        raise
    except SandboxFault as error:
        raise VerifierCrashed(str(error)) from error
    finally:
        sandbox.destroy()


def _verdict(task: Task, result: ExecResult, directory: Path) -> Verdict:
    if result.oom_kills:
        raise VerifierKilled("the memory limit of the verifier's sandbox was reached")
    if result.return_code != 0 and task.needs_exit_zero:
        raise VerifierCrashed(f"test.sh: {_tail(result)}")
    reward = read_reward(directory, task.reward_range)
    if task.config.metadata.journeyman is None:
        return scored(reward, None)
    details = read_details(directory)
    if details.get("kind") == "malformed_deliverable":
        return malformed(str(details.get("explain", "")))
    return scored(reward, details.get("passed"), details.get("checks", []))


def _tail(result: ExecResult) -> str:
    """Exit status and last words of a command."""
    text = (result.stdout + result.stderr)[-_TAIL_BYTES:].decode(errors="replace").strip()
    return f"status {result.return_code}" + (f": {text}" if text else "")
