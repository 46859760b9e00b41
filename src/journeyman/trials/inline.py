"""The inline executor: many trials of trusted tasks in this process, decoded together by one engine.

A trial's tools run through the content-addressed read cache; a sandbox of its own starts only when a tool must run or
write something. An error inside one trial ends that trial alone; retries are new trials with fresh tools, and the
failed attempt is kept. Grading happens for the whole batch in one fresh verifier sandbox that no agent ever ran in.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType

from journeyman.engines.protocol import Engine, Sampling, TurnRequest, TurnResult
from journeyman.harness import Conversation
from journeyman.seeds import key64
from journeyman.tasks.grading import PORTION, GradeItem, Grader
from journeyman.tasks.task import Task
from journeyman.tokens.tokenizer import Tokenizer
from journeyman.tools import ToolContext
from journeyman.trials.answer import DELIVERABLE, answer_file
from journeyman.trials.outcome import outcome_of
from journeyman.trials.record import Trial, TrialRequest
from journeyman.trials.retrying import Retry, next_retry

ToolsOf = Callable[[Task], ToolContext]


class InlineExecutor:
    """Runs batches of trials on one engine.

    Args:
        engine: decodes all running trials together.
        tokenizer: the policy's.
        tools_of: makes a trial's tool context from its task.
        max_context: tokens a trial may hold.
        seed: root of the sampling noise.
        max_attempts: attempts per trial when the error table says retry.
        retry_s: as ``Limits.retry_s``.
        pause: waits some seconds, before the trials that broke are attempted again.
    """

    def __init__(
        self,
        engine: Engine,
        tokenizer: Tokenizer,
        tools_of: ToolsOf,
        *,
        max_context: int,
        seed: int,
        max_attempts: int = 2,
        retry_s: float = 1800.0,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self.engine, self.tokenizer, self.tools_of = engine, tokenizer, tools_of
        self.max_context, self.seed, self.max_attempts = max_context, seed, max_attempts
        self.retry_s, self._pause = retry_s, pause

    def run(self, requests: Sequence[TrialRequest], grader: Grader) -> list[Trial]:
        """Run, retry and grade; returns every attempt, those of one request in order of attempt.

        The last attempt of a request is the one that counts (``final_attempts``).
        """
        attempts: list[list[Trial]] = [[] for _ in requests]
        open_indices = list(range(len(requests)))
        retries: dict[int, Retry] = {}
        since = time.monotonic()
        with Grading(grader) as grading:
            for attempt in range(1, self.max_attempts + 1):
                trials = self._converse([requests[i] for i in open_indices], attempt, grading)
                for index, trial in zip(open_indices, trials, strict=True):
                    trial.retry = retries[index].record() if index in retries else None
                    attempts[index].append(trial)
                since = since if attempt > 1 else time.monotonic()
                retries = self._retries([(i, attempts[i][-1]) for i in open_indices], time.monotonic() - since)
                open_indices = list(retries)
                if not open_indices or attempt == self.max_attempts:
                    break
                self._pause(max(retry.wait_s for retry in retries.values()))  # one batch starts together
            grading.finish()
        return [trial for group in attempts for trial in group]

    def _retries(self, ended: Sequence[tuple[int, Trial]], elapsed_s: float) -> dict[int, Retry]:
        found = ((index, next_retry(trial, self.seed, elapsed_s, self.retry_s)) for index, trial in ended)
        return {index: retry for index, retry in found if retry is not None}

    def _converse(self, requests: Sequence[TrialRequest], attempt: int, grading: Grading) -> list[Trial]:
        running: dict[str, tuple[TrialRequest, Conversation]] = {}
        ended: dict[str, Trial] = {}
        firsts = []
        for request in requests:
            conversation = Conversation(request.harness, self.tokenizer, self.tools_of(request.task), self.max_context)
            running[request.trial_id] = (request, conversation)
            ids = conversation.open(request.task.instruction, request.task.inputs)
            firsts.append(self._turn(request, conversation, ids, attempt))

        def respond(result: TurnResult) -> TurnRequest | None:
            request, conversation = running[result.trial]
            error: Exception | None = None
            ids = None
            try:
                ids = conversation.respond(result)
            except Exception as escaped:  # the boundary of one trial: whatever escapes is attributed to it alone
                error = escaped
            if ids is not None:
                return self._turn(request, conversation, ids, attempt)
            ended[result.trial] = _ended(request, conversation, error, attempt)
            grading.add(ended[result.trial])
            return None

        self.engine.converse(firsts, respond)
        return [ended[request.trial_id] for request in requests]

    def _turn(self, request: TrialRequest, conversation: Conversation, ids: list[int], attempt: int) -> TurnRequest:
        key = key64(self.seed, *request.stream, attempt, len(conversation.turns))
        stop = frozenset({self.tokenizer.special("<|im_end|>")})
        sampling = Sampling(request.harness.max_new_tokens, request.temperature, stop)
        return TurnRequest(request.trial_id, ids, key, sampling)


class Grading:
    """Grades trials as they end, in a thread beside the decoding: the verifier works in another process anyway.

    Verdicts depend on the trials alone, so neither the order nor the size of the portions matters. A context manager:
    leaving it waits for the portion at work and drops the others.
    """

    def __init__(self, grader: Grader) -> None:
        self._grader = grader
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="grading")
        self._waiting: list[Trial] = []
        self._all: list[Trial] = []
        self._portions: list[Future[None]] = []

    def __enter__(self) -> Grading:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)

    def add(self, trial: Trial) -> None:
        """Take a trial that ended; one with an error already has its outcome."""
        if trial.outcome is None:
            self._waiting.append(trial)
            self._all.append(trial)
        if len(self._waiting) >= PORTION:
            self._submit()

    def finish(self) -> None:
        """Wait for every verdict. A broken verifier is asked once more, then the trial stays a verifier error."""
        self._submit()
        for portion in self._portions:
            portion.result()
        _judge([t for t in self._all if t.verdict is not None and t.verdict.kind == "verifier_error"], self._grader)

    def _submit(self) -> None:
        portion, self._waiting = self._waiting, []
        self._portions.append(self._pool.submit(_judge, portion, self._grader))


def final_attempts(trials: Sequence[Trial]) -> list[Trial]:
    """The attempt of each request that counts, in the order of the requests."""
    last: dict[str, Trial] = {}
    for trial in trials:
        last[trial.request.trial_id] = trial
    return list(last.values())


def _ended(request: TrialRequest, conversation: Conversation, error: BaseException | None, attempt: int) -> Trial:
    answer = conversation.answer
    artifacts = None if answer is None else {DELIVERABLE: answer_file(answer)}
    trial = Trial(
        request,
        conversation.turns,
        conversation.context.arrays(),
        conversation.stop_reason or "error",
        artifacts if error is None else None,
        attempt,
        (type(error).__name__, str(error)) if error else None,
    )
    if error is not None:
        trial.outcome = outcome_of(None, "error", error)
    return trial


def _judge(trials: Sequence[Trial], grader: Grader) -> None:
    """Give each trial its verdict and outcome."""
    if not trials:
        return
    items = [GradeItem(t.request.trial_id, t.request.task, t.artifacts) for t in trials]
    for trial, verdict in zip(trials, grader.grade(items), strict=True):
        trial.verdict = verdict
        trial.outcome = outcome_of(verdict, trial.stop_reason, None)
