"""Grading by a rubric: each criterion is a question to a judge, and a judge that fails never makes a 0.

This room only asks; who answers (a remote model, mostly) is given by the caller. Files are turned into text in a fresh
sandbox, as everything an agent made.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Protocol

from journeyman.sandbox.environment import forkserver_entry
from journeyman.sandbox.errors import (
    CallKilled,
    CallRaised,
    CallTimedOut,
    SandboxFault,
    SandboxLost,
    SandboxStartFailed,
)
from journeyman.sandbox.protocol import AgentEnvironment, Provider, SandboxSpec
from journeyman.tasks.artifacts import Artifacts, BadDeliverable, declared_artifacts
from journeyman.tasks.errors import EvaluationUnknown, JudgeFailed, JudgeMissing, VerifierFault, VerifierSandboxLost
from journeyman.tasks.grader import SANDBOX_MEMORY_MB
from journeyman.tasks.rubric import JUDGED, SCORINGS, Criterion, Rubric, read_rubric
from journeyman.tasks.task import Task
from journeyman.tasks.verdict import Verdict, malformed, scored, verifier_error

MAX_VIEW_CHARS = 40_000
"""Of one file, as a judge reads it; more is cut in its middle, with a note."""
READ_DEADLINE_S = 60.0
ANSWERS = ("answer.json", "answer.txt", "answer.md")
"""Deliverables that hold the final answer itself."""
_PARSED = frozenset({".xlsx", ".docx", ".pptx", ".pdf", ".xls", ".doc", ".ppt", ".msg", ".eml", ".odt", ".ods"})


@dataclass(frozen=True)
class JudgeQuestion:
    """What a judge is asked.

    Attributes:
        task_id: whose question it is, for logs.
        instruction: what the agent was asked.
        criterion: what must be true.
        answer: the agent's final answer, "" for none.
        files: what it made, as text, by name.
        hints: what the source says about this criterion (expected file type, explanation) and about its judge.
    """

    task_id: str
    instruction: str
    criterion: str
    answer: str
    files: Mapping[str, str]
    hints: Mapping[str, object]


@dataclass(frozen=True)
class JudgeAnswer:
    """Whether the criterion is met, and why."""

    is_met: bool
    rationale: str


class Judge(Protocol):
    """Answers one question. Bounded in time; retries are its own business."""

    def judge(self, question: JudgeQuestion) -> JudgeAnswer:
        """Raises JudgeFailed, or any other error, when there is no answer: the trial then has no reward."""
        ...


def verify_by_rubric(
    task: Task,
    artifacts: Artifacts | None,
    judge: Judge | None,
    provider: Provider,
    environment: AgentEnvironment,
    *,
    label: str = "verifier",
    waive: frozenset[str] = frozenset(),
) -> Verdict:
    """Grade one trial of a task with ``grading = "rubric"``. ``passed`` means that every criterion is met.

    Args:
        judge: None: not configured; the verdict is a verifier error that says so.
    """
    try:
        shown = declared_artifacts(artifacts, task.deliverables)
    except BadDeliverable as error:
        return malformed(str(error))
    try:
        rubric = read_rubric(task.tests)
        if judge is None:
            raise JudgeMissing(f"{task.id} is graded by a rubric of {len(rubric.criteria)}; no judge is configured")
        if rubric.scoring not in SCORINGS:
            how, known = rubric.scoring, ", ".join(SCORINGS)
            raise EvaluationUnknown(f"criteria are scored by {how!r}, of which nothing is known; known: {known}")
        return _verdict(rubric, answers_of(task, rubric, judge, shown, provider, environment, label=label, waive=waive))
    except VerifierFault as fault:
        return verifier_error(fault)


def answers_of(
    task: Task,
    rubric: Rubric,
    judge: Judge,
    shown: Artifacts,
    provider: Provider,
    environment: AgentEnvironment,
    *,
    label: str,
    waive: frozenset[str],
) -> list[tuple[Criterion, JudgeAnswer]]:
    """What the judge says to each criterion, in order.

    Args:
        shown: declared deliverables; those in ``ANSWERS`` are the final answer, the others are read as text.

    Raises:
        VerifierFault: a criterion is of no known kind, the readers' sandbox broke, or the judge failed.
    """
    others = sorted({c.evaluation for c in rubric.criteria} - set(JUDGED))
    if others:
        raise EvaluationUnknown(f"criteria are evaluated by {', '.join(others)}; known: {', '.join(JUDGED)}")
    files = {name: data for name, data in shown.items() if name not in ANSWERS}
    views = text_views(files, provider, environment, label=label, waive=waive)
    answer = _answer(shown)
    return [(c, _ask(judge, _question(task, rubric, c, answer, views))) for c in rubric.criteria]


def _verdict(rubric: Rubric, found: Sequence[tuple[Criterion, JudgeAnswer]]) -> Verdict:
    met = {criterion.id: answer.is_met for criterion, answer in found}
    checks = [
        {"id": c.id, "kind": "scored", "score": float(a.is_met), "explain": f"{c.criterion}: {a.rationale}"}
        for c, a in found
    ]
    return scored(SCORINGS[rubric.scoring](rubric.criteria, met), all(met.values()), checks)


def _question(task: Task, rubric: Rubric, criterion: Criterion, answer: str, views: Mapping[str, str]) -> JudgeQuestion:
    hints = {**criterion.values, **({"judge": rubric.judge} if rubric.judge else {})}
    return JudgeQuestion(task.id, task.instruction, criterion.criterion, answer, views, hints)


def _ask(judge: Judge, question: JudgeQuestion) -> JudgeAnswer:
    try:
        found = judge.judge(question)
    except VerifierFault:
        raise
    except Exception as error:  # whatever a client raises: the judge failed, and that is no reward
        raise JudgeFailed(f"{type(error).__name__}: {error}") from error
    if not isinstance(found.is_met, bool):
        raise JudgeFailed(f"answered {found.is_met!r}, neither yes nor no")
    return found


def _answer(shown: Artifacts) -> str:
    for name in ANSWERS:
        if name in shown:
            text = shown[name].decode("utf-8", "replace")
            try:
                value = json.loads(text) if name.endswith(".json") else text
            except (ValueError, RecursionError):
                return text
            inner = value.get("answer", value) if isinstance(value, dict) else value
            return inner if isinstance(inner, str) else json.dumps(inner, ensure_ascii=False)
    return ""


def text_views(
    files: Artifacts, provider: Provider, environment: AgentEnvironment, *, label: str, waive: frozenset[str]
) -> dict[str, str]:
    """Files as text for a judge: plain text as it is, office documents and PDFs as their readers see them.

    Raises:
        VerifierSandboxLost: the sandbox of the readers did not come up or was lost.
    """
    parsed = {name: data for name, data in files.items() if PurePosixPath(name).suffix.lower() in _PARSED}
    views = {name: _text(data) for name, data in files.items() if name not in parsed}
    if parsed:
        entry = forkserver_entry("officedocs.serve_text:handle_many", deadline_s=READ_DEADLINE_S, file_mb=0)
        spec = SandboxSpec(
            label=label, environment=environment, entry=entry, memory_mb=4 * SANDBOX_MEMORY_MB, waive=waive
        )
        try:
            sandbox = provider.create(spec)
            try:
                for name, data in parsed.items():
                    views[name] = _read(sandbox.call, name, data)
            finally:
                sandbox.destroy()
        except (SandboxStartFailed, SandboxLost, SandboxFault) as error:
            raise VerifierSandboxLost(f"while documents were read for the judge: {error}") from error
    return {name: _cut(views[name]) for name in sorted(views)}


class _Call(Protocol):
    def __call__(self, payload: bytes, *, deadline_s: float) -> bytes: ...


def _read(call: _Call, name: str, data: bytes) -> str:
    header = json.dumps([[PurePosixPath(name).name, len(data)]]).encode()
    try:
        (text,) = json.loads(call(header + b"\n" + data, deadline_s=READ_DEADLINE_S + 5))
    except (CallRaised, CallTimedOut, CallKilled) as error:
        return f"[cannot be read: {error}]"
    return str(text)


def _text(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return f"[{len(data)} bytes that are no text]"


def _cut(text: str) -> str:
    if len(text) <= MAX_VIEW_CHARS:
        return text
    half = MAX_VIEW_CHARS // 2
    return f"{text[:half]}\n[{len(text) - MAX_VIEW_CHARS} characters left out]\n{text[-half:]}"
