"""One Trial, replayed token by token: what the policy saw, what it sampled, and what the verifier said."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, FiniteFloat

from journeyman.evals.score import Word

Source = Literal["prompt", "sampled", "observation", "forced"]


class Token(Word):
    """One token of the context, exactly as the engine saw it.

    Attributes:
        text: its piece of text (a view; broken UTF-8 shows the replacement character).
        id: token id.
        source: who put it there.
        mask: 1 where the loss may use it.
        logprob: natural log of the probability it was sampled with; None when it was not sampled.
        version: weight version that sampled it; None when it was not sampled.
    """

    text: str
    id: int = Field(ge=0)
    source: Source
    mask: Literal[0, 1]
    logprob: FiniteFloat | None = None
    version: int | None = None


class Turn(Word):
    """A run of tokens between two changes of speaker.

    Attributes:
        index: model call it belongs to, from 0; the prompt is turn 0 too.
        role: ``prompt``, ``policy`` (sampled or forced) or ``tool`` (observation).
        tokens: in order.
    """

    index: int = Field(ge=0)
    role: Literal["prompt", "policy", "tool"]
    tokens: tuple[Token, ...]


class CheckLine(Word):
    """One check of the verifier: ``score`` in [0, 1] and why."""

    id: str
    kind: str = ""
    score: FiniteFloat | None = None
    explain: str = ""


class ReplayVerdict(Word):
    """The Verdict of the replayed Trial; ``verifier_error`` has neither reward nor passed."""

    kind: Literal["scored", "malformed_deliverable", "verifier_error"]
    reward: FiniteFloat | None
    passed: bool | None
    explain: str = ""
    checks: tuple[CheckLine, ...] = ()


class Trajectory(Word):
    """The replayed Trial.

    Attributes:
        why: why this Trial is shown, so that nobody takes it for a typical one by accident.
        stop_reason: how the loop ended.
        deliverable: the answer as handed in, None when there was none.
    """

    trial_id: str
    task_id: str
    family: str
    split: str
    model: str
    harness: str
    why: str
    instruction: str
    stop_reason: str
    turns: tuple[Turn, ...]
    deliverable: str | None
    verdict: ReplayVerdict
