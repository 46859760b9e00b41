"""One stored trial as the report replays it: every token with its source, mask, logprob and weight version."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from journeyman.ladder.bench import Bench
from journeyman.ladder.report.replay import CheckLine, ReplayVerdict, Token, Trajectory, Turn
from journeyman.ladder.steps.transfer import TRAINED_UNDER, evaluation
from journeyman.redact import process_redactor
from journeyman.tokens.context import Columns, Source
from journeyman.tokens.tokenizer import Tokenizer
from journeyman.trials.store import read_summaries, read_tokens

SHOWN_FAMILY = "cross"
_SOURCES = {
    Source.PROMPT: "prompt",
    Source.SAMPLED: "sampled",
    Source.OBSERVATION: "observation",
    Source.FORCED: "forced",
}


def replayed(bench: Bench) -> Trajectory | None:
    """The first held-out trial of the trained model on a two-file task, or None before step 7."""
    place = bench.run.path("evaluations", evaluation(bench, "trained", TRAINED_UNDER).name)
    if not place.is_dir():
        return None
    summaries = read_summaries(place)
    index = next((i for i, s in enumerate(summaries) if s["family"] == SHOWN_FAMILY), 0)
    columns = list(read_tokens(place))[index]
    summary = summaries[index]
    task = next(t for t in bench.workshop.tasks("test") if t.id == summary["task_id"])
    verdict = summary["verdict"] or {}
    return Trajectory(
        trial_id=summary["trial_id"],
        task_id=summary["task_id"],
        family=summary["family"],
        split="test",
        model="trained",
        harness=TRAINED_UNDER,
        why=f"the first {summary['family']} trial of the trained model on the test split, whatever its verdict",
        instruction=task.instruction,
        stop_reason=summary["stop_reason"],
        turns=tuple(_turns(columns, bench.workshop.tokenizer)),
        deliverable=next(iter(summary["deliverables"].values()), None),
        verdict=ReplayVerdict(
            kind=verdict["kind"],
            reward=verdict["reward"],
            passed=verdict["passed"],
            explain=verdict.get("explain", ""),
            checks=tuple(CheckLine.model_validate(check) for check in verdict.get("checks", ())),
        ),
    )


def _turns(columns: Columns, tokenizer: Tokenizer) -> Iterator[Turn]:
    start = 0
    for end in range(1, len(columns.ids) + 1):
        if end < len(columns.ids) and _speaker(columns, end) == _speaker(columns, start):
            continue
        index, role = _speaker(columns, start)
        positions = range(start, end)
        texts = process_redactor().pieces([tokenizer.decode([int(columns.ids[position])]) for position in positions])
        tokens = tuple(_token(columns, position, text) for position, text in zip(positions, texts, strict=True))
        yield Turn.model_validate({"index": index, "role": role, "tokens": tokens})
        start = end


def _speaker(columns: Columns, position: int) -> tuple[int, str]:
    source = columns.source[position]
    role = {Source.PROMPT: "prompt", Source.OBSERVATION: "tool"}.get(Source(source), "policy")
    return int(columns.turn[position]), role


def _token(columns: Columns, position: int, text: str) -> Token:
    source = Source(columns.source[position])
    is_sampled = source == Source.SAMPLED
    values: dict[str, Any] = {
        "text": text,
        "id": int(columns.ids[position]),
        "source": _SOURCES[source],
        "mask": int(columns.mask[position]),
        "logprob": float(columns.logprob[position]) if is_sampled else None,
        "version": int(columns.version[position]) if is_sampled else None,
    }
    return Token.model_validate(values)
