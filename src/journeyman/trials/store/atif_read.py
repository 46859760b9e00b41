"""ATIF documents of any program as trials of a run: to be looked at, packed, and used as demonstrations.

What was sampled here (a weight version and logprobs beside the ids) becomes sampled tokens again. Completions of other
programs become demonstrations: their ids can be learned from, their logprobs belong to weights nobody knows here. Steps
marked ``is_copied_context`` are context and never learned from; nor is what a ``loss_mask`` leaves out.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from journeyman.errors import InputError, nearest
from journeyman.tasks.atif import MAX_ATIF_BYTES, AtifStep, AtifTrajectory, Metrics, parse_atif, text_of
from journeyman.tasks.reward_file import read_plain_file
from journeyman.tokens.context import Columns, Context, Segment
from journeyman.tokens.renderers import FAMILIES, Demonstration, Renderer, ToolResult, ToolUse
from journeyman.tokens.segments import as_json, of_json
from journeyman.tokens.tokenizer import Tokenizer
from journeyman.trials.store.columns import calls_of
from journeyman.trials.store.hot import HotTrial
from journeyman.trials.store.schema import Record

LOG = logging.getLogger(__name__)


def read_atif(path: Path) -> AtifTrajectory:
    """A document on disk. Raises InputError when there is none, or it is none; names every wrong field."""
    data = read_plain_file(path, MAX_ATIF_BYTES)
    if data is None:
        raise InputError(str(path), "is no file")
    return parse_atif(data, str(path))


def renderer_of(model: Path, family: str) -> Renderer:
    """The renderer of a model directory. Raises InputError for an unknown family or a directory without tokenizer."""
    if family not in FAMILIES:
        near = nearest(family, FAMILIES)
        hint = f"Did you mean {near}?" if near else None
        raise InputError("--family", f"unknown family {family!r}", allowed=", ".join(FAMILIES), hint=hint)
    return Renderer(FAMILIES[family], Tokenizer(model))


def import_atif(files: Sequence[Path], run: Path, renderer: Renderer | None = None) -> list[Path]:
    """Write every document of ``files`` as a closed trial of ``run``; returns their directories.

    Args:
        renderer: writes documents that hold text alone as tokens; without it such a trial has turns and no tokens.

    Raises:
        InputError: one of them is no ATIF document, or its trial is in the run already; nothing was written for any
            that cannot be read.
        StorageError: the run cannot be written.
    """
    documents = [(path, read_atif(path)) for path in files]
    written = []
    for path, trajectory in documents:
        extra = trajectory.extra or {}
        name = extra.get("trial_id") or trajectory.trajectory_id or f"{trajectory.session_id or 'atif'}/{path.stem}"
        attempt = extra.get("attempt", 1)
        with HotTrial(run, str(name), attempt if isinstance(attempt, int) and attempt > 0 else 1) as hot:
            columns, segments = token_content(trajectory, renderer)
            for call in calls_of(columns):
                hot.append_call(call)
            written.append(hot.close({**trial_record(trajectory), "segments": as_json(segments)}))
    return written


def trial_record(trajectory: AtifTrajectory) -> Record:
    """The record of the trial: who acted, what was asked, the turns; and the facts of our own export."""
    facts = {name: value for name, value in (trajectory.extra or {}).items() if name not in ("trial_id", "attempt")}
    return {
        **facts,
        "harness": trajectory.agent.name,
        "model": trajectory.agent.llm,
        "imported": trajectory.schema_version,
        "instruction": "\n\n".join(text_of(step.message) for step in trajectory.steps if step.source == "user"),
        "turns": [_turn(step) for step in trajectory.steps if step.source == "agent"],
        "split": facts.get("split", "imported"),
    }


def _turn(step: AtifStep) -> dict[str, Any]:
    metrics = step.metrics or Metrics()
    results = step.observation.results if step.observation else []
    return {
        "n_sampled": len(metrics.completion_token_ids or ()) or metrics.completion_tokens or 0,
        "text": text_of(step.message),
        "reasoning": step.reasoning_content or "",
        "calls": [{"tool": c.function_name, "arguments": c.arguments, "status": "ok"} for c in step.tool_calls or ()],
        "malformed": list((step.extra or {}).get("malformed") or ()),
        "observation": "\n".join(text_of(result.content) for result in results),
        "is_copied_context": bool(step.is_copied_context),
    }


def token_columns(trajectory: AtifTrajectory, renderer: Renderer | None = None) -> Columns:
    """The document as token columns ``[tokens]``; see ``token_content``."""
    return token_content(trajectory, renderer)[0]


def token_content(trajectory: AtifTrajectory, renderer: Renderer | None = None) -> tuple[Columns, tuple[Segment, ...]]:
    """The document as token columns ``[tokens]``, none for text without a renderer, and their segments.

    A step whose prompt does not go on from what was before opens a new segment at the longest common prefix.

    Raises:
        InputError: ids and logprobs of a step differ in number, or a renderer cannot write the text.
    """
    agents = [step for step in trajectory.steps if step.source == "agent"]
    if any(step.metrics is not None and step.metrics.completion_token_ids for step in agents):
        return _recorded(agents, trajectory)
    context = _rendered(trajectory, renderer) if renderer is not None else Context()
    return context.arrays(), context.segments


def sft_example(trajectory: AtifTrajectory, renderer: Renderer | None = None) -> tuple[Any, Any]:
    """Ids and mask of equal length, 1 where a token is learned. Raises as ``token_columns``."""
    columns = token_columns(trajectory, renderer)
    return columns.ids, columns.mask


def _recorded(agents: Sequence[AtifStep], trajectory: AtifTrajectory) -> tuple[Columns, tuple[Segment, ...]]:
    context, silent = Context(), np.empty(0, dtype=np.int64)
    for step in agents:
        metrics = step.metrics
        if metrics is None or metrics.completion_token_ids is None:
            continue
        prompt, sampled = metrics.prompt_token_ids or context.ids, metrics.completion_token_ids
        seen = context.ids
        kept = _common(seen, prompt)
        if kept < len(seen):
            context.open_segment(kept, "rewritten")
        (context.append_observation if context.turns else context.append_prompt)(prompt[kept:])
        start = context.stored
        try:
            _append(context, step, metrics, sampled)
        except ValueError as error:
            raise InputError(f"steps[{step.step_id - 1}].metrics", str(error)) from error
        mask = (metrics.extra or {}).get("loss_mask")
        if isinstance(mask, list) and len(mask) == len(sampled):
            silent = np.append(silent, start + np.flatnonzero(np.asarray(mask) == 0))
    columns = context.arrays()
    columns.mask[silent] = 0
    return columns, _named(context.segments, trajectory)


def _append(context: Context, step: AtifStep, metrics: Metrics, sampled: list[int]) -> None:
    extra: Mapping[str, Any] = metrics.extra or {}
    versions = extra.get("token_versions") or extra.get("policy_versions")
    if step.is_copied_context:
        (context.append_observation if context.turns else context.append_prompt)(sampled)
    elif not isinstance(versions, list) or not versions or min(versions) < 0 or metrics.logprobs is None:
        context.append_demonstration(sampled)
    else:
        context.append_sampled(sampled, metrics.logprobs, versions if len(versions) == len(sampled) else versions[0])


def _named(found: tuple[Segment, ...], trajectory: AtifTrajectory) -> tuple[Segment, ...]:
    """Our own export tells why each segment was opened; taken over where it opened the same ones."""
    try:
        told = of_json((trajectory.extra or {}).get("segments"))
    except ValueError:
        return found
    return told if [(s.start, s.shared) for s in told] == [(s.start, s.shared) for s in found] else found


def _rendered(trajectory: AtifTrajectory, renderer: Renderer) -> Context:
    """Text as tokens: every turn of the agent a demonstration, except those copied from elsewhere."""
    context = Context()
    steps = list(trajectory.steps)
    head: list[dict[str, str]] = []
    while steps and steps[0].source != "agent":
        step = steps.pop(0)
        head.append({"role": step.source, "content": text_of(step.message)})
    context.append_prompt(renderer.open(head, trajectory.agent.tool_definitions or ()))
    while steps:
        step = steps.pop(0)
        said: list[str] = []
        while steps and steps[0].source != "agent":
            said.append(text_of(steps.pop(0).message))
        ids = renderer.demonstrate(_demonstration(step))
        (context.append_observation if step.is_copied_context else context.append_demonstration)(ids)
        if steps:
            bridge = renderer.after(ids, results=_results(step), user="\n\n".join(said) or None)
            context.append_forced(bridge.forced)
            context.append_observation(bridge.observed)
    return context


def _demonstration(step: AtifStep) -> Demonstration:
    calls = tuple(ToolUse(call.function_name, call.arguments) for call in step.tool_calls or ())
    return Demonstration(text_of(step.message), calls, step.reasoning_content)


def _results(step: AtifStep) -> list[ToolResult]:
    names = {call.tool_call_id: call.function_name for call in step.tool_calls or ()}
    results = step.observation.results if step.observation else []
    return [ToolResult(text_of(r.content), names.get(r.source_call_id or "", "")) for r in results]


def _common(left: Sequence[int], right: Sequence[int]) -> int:
    """Length of the longest common prefix."""
    n = min(len(left), len(right))
    differ = np.flatnonzero(np.asarray(left[:n], dtype=np.int64) != np.asarray(right[:n], dtype=np.int64))
    return int(differ[0]) if len(differ) else n
