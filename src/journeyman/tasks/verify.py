"""Grading many trials: one fresh sandbox for a batch, one forked child for each trial.

The sandbox holds a program of ours and the check sources of the batch, which are no secret; no agent ever ran in it.
A trial's truth and artifacts travel in one frame that only its child reads, and the next frame is sent after that child
is gone. Tasks without ``tests/check.py`` are graded by their test script (``harbor.py``) or a judge.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from journeyman.sandbox.errors import (
    CallKilled,
    CallRaised,
    CallTimedOut,
    SandboxFault,
    SandboxLeak,
    SandboxLost,
    SandboxStartFailed,
)
from journeyman.sandbox.protocol import AgentEnvironment, Provider, Sandbox
from journeyman.sandbox.scratch import make_scratch, remove_scratch
from journeyman.tasks.artifacts import BadDeliverable, declared_artifacts
from journeyman.tasks.errors import (
    VerifierCrashed,
    VerifierFault,
    VerifierKilled,
    VerifierMissing,
    VerifierSandboxLost,
    VerifierTimeout,
)
from journeyman.tasks.frames import decode_answer, encode_frame
from journeyman.tasks.grader import CALL_SLACK_S, add_archives, add_check, grader_spec, prepare_room
from journeyman.tasks.grading import GradeItem
from journeyman.tasks.harbor import FRESH_TRIES, verify_in_sandbox
from journeyman.tasks.judge import Judge, verify_by_rubric
from journeyman.tasks.opinion import with_opinion
from journeyman.tasks.verdict import Verdict, malformed, verifier_error

__all__ = ["BatchVerifier", "GradeItem", "verify_in_sandbox"]


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
        judge: answers the criteria of rubrics; None: tasks graded by a rubric alone are verifier errors, and what a
            rubric adds to programs is left out.
        one_batch: all calls of ``grade`` until ``close`` are one batch and share its sandbox; else each has its own.
        env: variables of the sandbox, e.g. its time zone; a check must not care.
    """

    def __init__(
        self,
        provider: Provider,
        environment: AgentEnvironment,
        label: str,
        *,
        waive: frozenset[str] = frozenset(),
        one_batch: bool = False,
        judge: Judge | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self.judge = judge
        self._env = dict(env or {})
        self.provider, self.environment, self.label, self.waive = provider, environment, label, waive
        self._one_batch = one_batch
        self._needed: set[str] = set()  # names of sources that items so far need
        self._loaded: set[str] = set()
        self._archived: set[Path] = set()
        self._longest_s = 0.0
        self._sandbox: Sandbox | None = None
        self._leaks: list[SandboxLeak] = []
        self._room = make_scratch(label)
        prepare_room(self._room)

    def __enter__(self) -> BatchVerifier:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the sandbox, if one is left, and remove the directory of check sources.

        Raises:
            SandboxLeak: something of a sandbox of any batch could not be removed; the verdicts stand.
        """
        self._end_sandbox()
        remove_scratch(self._room)
        if self._leaks:
            raise self._leaks.pop()

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
        longest_s = max((frame.timeout_s for frame in frames.values()), default=0.0)
        if longest_s > self._longest_s or not self._needed <= self._loaded:  # both are the server's from its start
            self._longest_s = max(longest_s, self._longest_s)
            self._end_sandbox()
        try:
            self._grade_frames(frames, verdicts)
        finally:
            if not self._one_batch:
                self._end_sandbox()
        for index in frames:
            verdicts[index] = self._with_opinion(items[index], verdicts[index])
        return [verdicts[index] for index in range(len(items))]

    def _with_opinion(self, item: GradeItem, verdict: Verdict) -> Verdict:
        try:
            return with_opinion(
                *(verdict, item.task, item.artifacts, self.judge, self.provider, self.environment),
                label=self.label,
                waive=self.waive,
            )
        except SandboxLeak as error:
            self._leaks.append(error)
            return verifier_error(VerifierCrashed(str(error)))

    def _prepared(self, item: GradeItem) -> _Frame | Verdict:
        """The frame of an item, or its verdict where no check has to run for one."""
        task = item.task
        try:
            artifacts = declared_artifacts(item.artifacts, task.deliverables)
        except BadDeliverable as error:
            return malformed(str(error))
        tests = task.tests
        check = tests / "check.py"
        if not check.is_file():
            return self._by_script(item)
        try:
            source, truth = check.read_bytes(), (tests / "truth.json").read_bytes()
            if tests not in self._archived:
                add_archives(self._room, tests)
                self._archived.add(tests)
                self._needed = self._sources()
        except OSError as error:
            return verifier_error(VerifierMissing(f"{error.filename}: {error.strerror}"))
        digest = add_check(self._room, source)
        self._needed.add(f"{digest}.py")
        return _Frame(encode_frame(digest, truth, artifacts, task.verifier_timeout_s), task.verifier_timeout_s)

    def _by_script(self, item: GradeItem) -> Verdict:
        try:
            if item.task.is_judged:
                return verify_by_rubric(
                    *(item.task, item.artifacts, self.judge, self.provider, self.environment),
                    label=self.label,
                    waive=self.waive,
                )
            return verify_in_sandbox(
                item.task, item.artifacts, self.provider, self.environment, label=self.label, waive=self.waive
            )
        except SandboxLeak as error:
            self._leaks.append(error)
            return verifier_error(VerifierCrashed(str(error)))

    def _sources(self) -> set[str]:
        """Names of the check sources that the batch has needed so far."""
        return {path.name for path in (self._room / "checks").iterdir()}

    def _grade_frames(self, frames: dict[int, _Frame], verdicts: dict[int, Verdict]) -> None:
        waiting = deque(frames)
        spec = grader_spec(self._room, self.label, self.environment, self._longest_s, self.waive, self._env)
        losses = 0
        while waiting:
            index = waiting[0]
            try:
                if self._sandbox is None:
                    self._loaded = set(self._needed)
                    self._sandbox = self.provider.create(spec)
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
            return decode_answer(sandbox.call(frame.payload, deadline_s=frame.timeout_s + CALL_SLACK_S))
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

    def _end_sandbox(self) -> None:
        sandbox, self._sandbox = self._sandbox, None
        if sandbox is not None:
            try:
                sandbox.destroy()
            except SandboxLeak as error:  # reported when the verifier is closed: a leak is no reason to lose verdicts
                self._leaks.append(error)
