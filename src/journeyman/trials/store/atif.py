"""ATIF-v1.8: one JSON document per trial, for programs that read that format.

ATIF repeats the whole prompt's ids in every step, so a document grows with the square of the number of turns; the store
keeps each token once and makes this on demand. What ATIF has no field for (mask, weight version, reward, outcome) is in
its ``extra`` fields. Text is a view: without a decoder messages are empty and the ids speak.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from journeyman import __version__
from journeyman.tokens.context import Columns, Segment, Source
from journeyman.tokens.segments import as_json, prompt_ranges
from journeyman.trials.store.columns import cut
from journeyman.trials.store.schema import Record

SCHEMA = "ATIF-v1.8"
Decode = Callable[[Sequence[int]], str]
OPENING = (Segment("opening", 0),)
"""Of a context that only grew."""


def atif_document(
    key: str,
    run: str,
    record: Record,
    columns: Columns,
    segments: Sequence[Segment] = OPENING,
    decode: Decode | None = None,
) -> dict[str, Any]:
    """A trial as an ATIF-v1.8 document.

    Args:
        key: the trial's key, unique in the document's run.
        run: name of the run (ATIF's session).
        record: the trial's record; its ``turns`` give calls and observations.
        columns: its tokens.
        segments: of its context: a step's prompt is what the model saw then, not all that is stored before it.
        decode: ids to text, for the messages.
    """
    turns = record.get("turns") or []
    policy = np.isin(columns.source, [int(Source.SAMPLED), int(Source.DEMONSTRATION)])
    numbers, firsts = np.unique(columns.turn[policy], return_index=True)
    opening = columns.ids[(columns.turn == 0) & (columns.source == Source.PROMPT)]
    steps = [_opening(opening.tolist(), record, decode)]
    for number, first in zip(numbers.tolist(), np.flatnonzero(policy)[firsts].tolist(), strict=True):
        taken = np.flatnonzero(policy & (columns.turn == number))
        ranges = prompt_ranges(segments, first)
        prompt = [token for begin, end in ranges for token in columns.ids[begin:end].tolist()]
        turn = turns[len(steps) - 1] if len(steps) <= len(turns) else {}
        call = cut(columns, int(taken[0]), int(taken[-1]) + 1)
        steps.append(_step(len(steps) + 1, prompt, call, policy[taken[0] : taken[-1] + 1], turn, decode))
    return {
        "schema_version": SCHEMA,
        "session_id": run,
        "trajectory_id": key,
        "agent": {"name": str(record.get("harness") or "journeyman"), "version": __version__},
        "steps": steps,
        "final_metrics": {
            "total_prompt_tokens": sum(step["metrics"]["prompt_tokens"] for step in steps if "metrics" in step),
            "total_completion_tokens": int((columns.source == Source.SAMPLED).sum()),
            "total_steps": len(steps),
        },
        "extra": {
            **{name: record.get(name) for name in _FACTS if record.get(name) is not None},
            **({"segments": as_json(segments)} if len(segments) > 1 else {}),
        },
    }


_FACTS = (
    *("trial_id", "attempt", "task_id", "world_id", "family", "split", "sample", "temperature"),
    *("stop_reason", "outcome", "cause", "reward", "passed", "verdict", "deliverables"),
)


def _opening(ids: list[int], record: Record, decode: Decode | None) -> dict[str, Any]:
    message = decode(ids) if decode else str(record.get("instruction") or "")
    return {"step_id": 1, "source": "user", "message": message, "extra": {"n_tokens": len(ids)}}


def _step(
    step_id: int, prompt: list[int], call: Columns, policy: Any, turn: dict[str, Any], decode: Decode | None
) -> dict[str, Any]:
    sampled = call.ids[policy].tolist()
    versions = np.unique(call.version[policy]).tolist()
    step: dict[str, Any] = {
        "step_id": step_id,
        "source": "agent",
        "message": decode(sampled) if decode else "",
        "metrics": {
            "prompt_tokens": len(prompt),
            "completion_tokens": len(sampled),
            "prompt_token_ids": prompt,
            "completion_token_ids": sampled,
            "logprobs": [float(value) for value in call.logprob[policy]],
            "extra": {"loss_mask": call.mask[policy].tolist(), "policy_versions": versions},
        },
        "llm_call_count": 1,
    }
    attempted = [c for c in turn.get("calls") or () if c.get("tool") and isinstance(c.get("arguments"), dict)]
    if attempted:
        step["tool_calls"] = [
            {"tool_call_id": f"call-{step_id}-{n}", "function_name": c["tool"], "arguments": c["arguments"]}
            for n, c in enumerate(attempted)
        ]
    if turn.get("observation"):
        result: dict[str, Any] = {"content": turn["observation"]}
        if attempted:
            result["source_call_id"] = step["tool_calls"][-1]["tool_call_id"]
        step["observation"] = {"results": [result]}
    if len(versions) > 1:
        step["metrics"]["extra"]["token_versions"] = call.version[policy].tolist()
    if turn.get("malformed"):
        step["extra"] = {"malformed": list(turn["malformed"])}
    return step
