"""ATIF trajectories (v1.0 to v1.8) as strict models: an unknown field is an error, ``extra`` is the field for more.

A document that a task ships as prior context, one that another program recorded, and the ones the store writes are all
checked by these. Media are references; nothing is opened.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from journeyman.errors import InputError

VERSIONS = tuple(f"ATIF-v1.{minor}" for minor in range(9))
MAX_ATIF_BYTES = 512_000_000
"""A document repeats the whole prompt's ids in every step, so it may be long; more is refused."""


class Strict(BaseModel):
    """Unknown fields are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True)


_ALIASES = {
    **dict.fromkeys(("audio/mp3", "audio/mpga", "audio/x-mpeg"), "audio/mpeg"),
    **dict.fromkeys(("audio/x-wav", "audio/wave", "audio/vnd.wave"), "audio/wav"),
    **dict.fromkeys(("audio/x-m4a", "audio/m4a"), "audio/mp4"),
    "audio/x-aac": "audio/aac",
    "audio/x-flac": "audio/flac",
    "audio/x-aiff": "audio/aiff",
}
_IMAGES = tuple(f"image/{name}" for name in ("jpeg", "png", "gif", "webp"))
_AUDIO = tuple(f"audio/{name}" for name in ("wav", "mpeg", "mp4", "aac", "ogg", "flac", "webm", "aiff"))


def _registered(value: Any) -> Any:
    plain = value.strip().lower() if isinstance(value, str) else value
    return _ALIASES.get(plain, plain) if isinstance(plain, str) else value


def _media(value: str) -> str:
    if value not in (*_IMAGES, *_AUDIO):
        raise ValueError(f"allowed: {', '.join((*_IMAGES, *_AUDIO))}")
    return value


class MediaSource(Strict):
    """Where an image or a recording lies; ``duration_sec`` belongs to recordings."""

    media_type: Annotated[str, BeforeValidator(_registered), AfterValidator(_media)]
    path: str
    duration_sec: Annotated[float, Field(ge=0)] | None = None


class ContentPart(Strict):
    """A piece of a message: text, or a reference to an image or a recording."""

    type: Literal["text", "image", "audio"]
    text: str | None = None
    source: MediaSource | None = None

    @model_validator(mode="after")
    def _holds_what_its_type_says(self) -> ContentPart:
        if self.type == "text":
            if self.text is None or self.source is not None:
                raise ValueError("a part of type text has text and no source")
            return self
        if self.source is None or self.text is not None:
            raise ValueError(f"a part of type {self.type} has a source and no text")
        if not self.source.media_type.startswith(f"{self.type}/"):
            raise ValueError(f"a part of type {self.type} cannot be {self.source.media_type}")
        if self.type == "image" and self.source.duration_sec is not None:
            raise ValueError("an image has no duration")
        return self


Content = str | list[ContentPart]


class SubagentRef(Strict):
    """Points to another trajectory: one embedded in this document, or a file."""

    trajectory_id: str | None = None
    session_id: str | None = None
    trajectory_path: str | None = None
    extra: dict[str, Any] | None = None

    @model_validator(mode="after")
    def _can_be_resolved(self) -> SubagentRef:
        if self.trajectory_id is None and self.trajectory_path is None:
            raise ValueError("needs trajectory_id or trajectory_path; a session_id alone names no document")
        return self


class ToolCall(Strict):
    tool_call_id: str
    function_name: str
    arguments: dict[str, Any]
    extra: dict[str, Any] | None = None


class ObservationResult(Strict):
    source_call_id: str | None = None
    content: Content | None = None
    subagent_trajectory_ref: list[SubagentRef] | None = None
    extra: dict[str, Any] | None = None


class Observation(Strict):
    results: list[ObservationResult]


class Metrics(Strict):
    """Tokens of one model call: the whole prompt, the completion, the logprobs of the completion."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    cost_usd: float | None = None
    prompt_token_ids: list[int] | None = None
    completion_token_ids: list[int] | None = None
    logprobs: list[float] | None = None
    extra: dict[str, Any] | None = None


class FinalMetrics(Strict):
    total_prompt_tokens: int | None = None
    total_completion_tokens: int | None = None
    total_cached_tokens: int | None = None
    total_cost_usd: float | None = None
    total_steps: Annotated[int, Field(ge=0)] | None = None
    extra: dict[str, Any] | None = None


class AtifAgent(Strict):
    name: str
    version: str
    llm: str | None = Field(default=None, alias="model_name")
    tool_definitions: list[dict[str, Any]] | None = None
    extra: dict[str, Any] | None = None


def _instant(value: str) -> str:
    datetime.fromisoformat(re.sub("Z$", "+00:00", value))
    return value


AGENT_ONLY = ("llm", "reasoning_effort", "reasoning_content", "tool_calls", "metrics")


class AtifStep(Strict):
    """One step. Steps copied from another trajectory (``is_copied_context``) are never trained on."""

    step_id: Annotated[int, Field(ge=1)]
    timestamp: Annotated[str, AfterValidator(_instant)] | None = None
    source: Literal["system", "user", "agent"]
    llm: str | None = Field(default=None, alias="model_name")
    reasoning_effort: str | float | None = None
    message: Content
    reasoning_content: str | None = None
    tool_calls: list[ToolCall] | None = None
    observation: Observation | None = None
    metrics: Metrics | None = None
    is_copied_context: bool | None = None
    llm_call_count: Annotated[int, Field(ge=0)] | None = None
    extra: dict[str, Any] | None = None

    @model_validator(mode="after")
    def _fields_fit_who_speaks(self) -> AtifStep:
        if self.source != "agent":
            for name in AGENT_ONLY:
                if getattr(self, name) is not None:
                    word = "model_name" if name == "llm" else name
                    raise ValueError(f"{word} belongs to steps of the agent, this one is the {self.source}'s")
        elif self.llm_call_count == 0 and (self.metrics is not None or self.reasoning_content is not None):
            raise ValueError("a step without a model call has neither metrics nor reasoning_content")
        known = {call.tool_call_id for call in self.tool_calls or ()}
        for result in self.observation.results if self.observation else ():
            if result.source_call_id is not None and result.source_call_id not in known:
                raise ValueError(f"an observation answers {result.source_call_id!r}, which is no call of this step")
        return self


class AtifTrajectory(Strict):
    """A whole document."""

    schema_version: Literal[VERSIONS] = "ATIF-v1.8"  # type: ignore[valid-type]
    session_id: str | None = None
    trajectory_id: str | None = None
    agent: AtifAgent
    steps: Annotated[list[AtifStep], Field(min_length=1)]
    notes: str | None = None
    final_metrics: FinalMetrics | None = None
    continued_trajectory_ref: str | None = None
    extra: dict[str, Any] | None = None
    subagent_trajectories: list[AtifTrajectory] | None = None

    @model_validator(mode="after")
    def _numbers_and_names_are_unique(self) -> AtifTrajectory:
        for expected, step in enumerate(self.steps, 1):
            if step.step_id != expected:
                raise ValueError(f"steps are numbered from 1 without gaps; found {step.step_id} in place of {expected}")
        names = [sub.trajectory_id for sub in self.subagent_trajectories or ()]
        if None in names or len(set(names)) != len(names):
            raise ValueError("every embedded trajectory has a trajectory_id of its own")
        return self


def parse_atif(data: bytes | str, where: str) -> AtifTrajectory:
    """A document.

    Raises:
        InputError: it is none; names every field that is wrong.
    """
    if len(data) > MAX_ATIF_BYTES:
        raise InputError(where, f"is longer than {MAX_ATIF_BYTES} bytes")
    try:
        return AtifTrajectory.model_validate_json(data)
    except ValidationError as error:
        rows = [f"{'.'.join(map(str, r['loc'])) or 'document'}: {r['msg']}" for r in error.errors(include_url=False)]
        raise InputError(where, "is no ATIF trajectory: " + "; ".join(rows[:20])) from error
    except RecursionError as error:
        raise InputError(where, "is no ATIF trajectory: nested too deeply") from error


def atif_json(trajectory: AtifTrajectory) -> dict[str, Any]:
    """The document as JSON-able data, without empty fields."""
    return trajectory.model_dump(mode="json", by_alias=True, exclude_none=True)


def text_of(content: Content | None) -> str:
    """The text of a message; media as ``[image: path]``."""
    if content is None or isinstance(content, str):
        return content or ""
    return "\n".join(p.text or "" if p.source is None else f"[{p.type}: {p.source.path}]" for p in content)
