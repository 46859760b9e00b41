"""Grading many trials: one fresh sandbox for a batch, one forked child for each trial.

The sandbox holds a program of ours and the check sources of the batch, which are no secret; no agent ever ran in it.
A trial's truth and artifacts travel in one frame that only its child reads, and the next frame is sent after that child
is gone. Tasks without ``tests/check.py`` are graded by their test script (``harbor.py``) instead.
"""

from __future__ import annotations

import shutil
import tempfile
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from journeyman.digest import sha256
from journeyman.sandbox.errors import (
    CallKilled,
    CallRaised,
    CallTimedOut,
    SandboxFault,
    SandboxLost,
    SandboxStartFailed,
)
from journeyman.sandbox.protocol import AGENT_ROOT, AgentEnvironment, Mount, Provider, Sandbox, SandboxSpec
from journeyman.tasks.artifacts import Artifacts, BadDeliverable, declared_artifacts
from journeyman.tasks.errors import (
    VerifierCrashed,
    VerifierFault,
    VerifierKilled,
    VerifierMissing,
    VerifierSandboxLost,
    VerifierTimeout,
)
from journeyman.tasks.frames import decode_answer, encode_frame
from journeyman.tasks.harbor import DEFAULT_MEMORY_MB, FRESH_TRIES, GRADER_ROOT, GRADER_SOURCE, verify_in_sandbox
from journeyman.tasks.task import Task
from journeyman.tasks.verdict import Verdict, malformed, verifier_error

CHECK_MEMORY_MB = 256
"""Memory of one check; more ends its child alone, below the limit of the sandbox."""

_SLACK_S = 5.0  # the child ends itself at its deadline, the server kills it soon after; this is for both to have failed


@dataclass(frozen=True)
class GradeItem:
    """One trial to grade.

    Attributes:
        trial_id: whose it is.
        task: what it was asked.
        artifacts: what it delivered, by name, or None for nothing.
    """

    trial_id: str
    task: Task
    artifacts: Artifacts | None


@dataclass(frozen=True)
class _Frame:
    payload: bytes
    timeout_s: float


class BatchVerifier:
    """Grades batches of trials; a context manager, so that no sandbox stays behind.

    Args:
        provider: makes the sandboxes.
        environment: gives them the interpreter and the fork server.
        label: owner, for ``Provider.list`` and ``reap``.
        waive: limits that may stay unenforced.
    """

    def __init__(
        self,
        provider: Provider,
        environment: AgentEnvironment,
        label: str,
        *,
        waive: frozenset[str] = frozenset(),
    ) -> None:
        self.provider, self.environment, self.label, self.waive = provider, environment, label, waive
        self._sandbox: Sandbox | None = None
        self._checks = Path(tempfile.mkdtemp(prefix="grader-"))

    def __enter__(self) -> BatchVerifier:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the sandbox, if one is left, and remove the directory of check sources."""
        self._end_sandbox()
        shutil.rmtree(self._checks, ignore_errors=True)

    def grade(self, items: Sequence[GradeItem]) -> list[Verdict]:
        """One verdict per item, in order.

        Never raises for what a deliverable or a check does. When the sandbox is lost, the rest of the batch goes on in
        a fresh one; an item during which that happens ``1 + FRESH_TRIES`` times is a ``verifier_error``.
        """
        verdicts: dict[int, Verdict] = {}
        frames: dict[int, _Frame] = {}
        for index, item in enumerate(items):
            prepared = self._prepared(item)
            if isinstance(prepared, Verdict):
                verdicts[index] = prepared
            else:
                frames[index] = prepared
        try:
            self._grade_frames(frames, verdicts)
        finally:
            self._end_sandbox()
        return [verdicts[index] for index in range(len(items))]

    def _prepared(self, item: GradeItem) -> _Frame | Verdict:
        """The frame of an item, or its verdict where no check has to run for one."""
        task = item.task
        try:
            artifacts = declared_artifacts(item.artifacts, task.deliverables)
        except BadDeliverable as error:
            return malformed(str(error))
        check = task.tests / "check.py"
        if not check.is_file():
            return verify_in_sandbox(
                task, item.artifacts, self.provider, self.environment, label=self.label, waive=self.waive
            )
        try:
            source, truth = check.read_bytes(), (task.tests / "truth.json").read_bytes()
        except OSError as error:
            return verifier_error(VerifierMissing(f"{error.filename}: {error.strerror}"))
        digest = sha256(source)
        path = self._checks / f"{digest}.py"
        if not path.exists():
            path.write_bytes(source)
        return _Frame(encode_frame(digest, truth, artifacts, task.verifier_timeout_s), task.verifier_timeout_s)

    def _grade_frames(self, frames: dict[int, _Frame], verdicts: dict[int, Verdict]) -> None:
        waiting = deque(frames)
        longest_s = max((frame.timeout_s for frame in frames.values()), default=0.0)
        losses = 0
        while waiting:
            index = waiting[0]
            try:
                if self._sandbox is None:
                    self._sandbox = self.provider.create(self._spec(longest_s))
                verdicts[index] = self._grade_frame(self._sandbox, frames[index])
            except (SandboxLost, SandboxStartFailed) as error:
                self._end_sandbox()
                losses += 1
                if losses <= FRESH_TRIES:
                    continue
                fault = VerifierSandboxLost(f"in {losses} sandboxes, the last time: {error}")
                verdicts[index] = verifier_error(fault)
                if isinstance(error, SandboxStartFailed):  # no sandbox comes up here: do not try for each of the rest
                    verdicts.update(dict.fromkeys(waiting, verifier_error(fault)))
                    return
            waiting.popleft()
            losses = 0

    def _grade_frame(self, sandbox: Sandbox, frame: _Frame) -> Verdict:
        """Send one frame. Raises SandboxLost; everything else that breaks is this item's verdict."""
        try:
            return decode_answer(sandbox.call(frame.payload, deadline_s=frame.timeout_s + _SLACK_S))
        except CallTimedOut:
            fault: VerifierFault = VerifierTimeout(f"check.py did not end within {frame.timeout_s:g} s")
        except CallKilled as error:
            fault = VerifierKilled(f"check.py ended without an answer: {error.detail}")
        except CallRaised as error:
            fault = VerifierCrashed(str(error))
        except SandboxLost:
            raise
        except SandboxFault as error:
            fault = VerifierCrashed(str(error))
        return verifier_error(fault)

    def _spec(self, longest_s: float) -> SandboxSpec:
        return SandboxSpec(
            label=self.label,
            mounts=(Mount(GRADER_SOURCE, f"{GRADER_ROOT}/grade.py"), Mount(self._checks, f"{GRADER_ROOT}/checks")),
            environment=self.environment,
            entry=(
                "python3",
                "-I",
                f"{AGENT_ROOT}/lib/forkserver.py",
                "grade:handle",
                f"--memory-mb={CHECK_MEMORY_MB}",
                f"--deadline-s={longest_s:g}",
            ),
            cwd="/tmp",
            memory_mb=DEFAULT_MEMORY_MB,
            waive=self.waive,
        )

    def _end_sandbox(self) -> None:
        sandbox, self._sandbox = self._sandbox, None
        if sandbox is not None:
            sandbox.destroy()
