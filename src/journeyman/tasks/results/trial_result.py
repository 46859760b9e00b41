"""``result.json`` of a trial: Harbor's TrialResult, document version 1.

Unknown keys stay (``unknown_result_keys`` lists them). Times are ISO 8601.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, ValidationError

from journeyman.errors import InputError
from journeyman.tasks.task_sections import VerifierMode


class Part(BaseModel):
    """A table of the document. Unknown keys are kept."""

    model_config = ConfigDict(extra="allow", frozen=True)


class Timing(Part):
    """When a phase began and ended."""

    started_at: datetime | None = None
    finished_at: datetime | None = None


class ExceptionInfo(Part):
    """What ended a trial or a step early."""

    exception_type: str
    exception_message: str
    exception_traceback: str
    occurred_at: datetime
    policy: dict[str, Any] | None = None
    policy_override: dict[str, Any] | None = None


class ModelInfo(Part):
    name: str
    provider: str | None = None


class AgentInfo(Part):
    name: str
    version: str
    llm: ModelInfo | None = Field(default=None, alias="model_info")


class ModelUsage(Part):
    """Tokens and cost of one model; input includes cached tokens."""

    n_input_tokens: int = 0
    n_cache_tokens: int = 0
    n_output_tokens: int = 0
    cost_usd: FiniteFloat | None = None


class RolloutDetail(Part):
    """Token ids of one chat history: full prompt, completion and logprobs per turn, three lists of one length."""

    prompt_token_ids: list[list[int]] | None = None
    completion_token_ids: list[list[int]] | None = None
    logprobs: list[list[float]] | None = None
    extra: dict[str, list[Any]] | None = None


class AgentContext(Part):
    """What the agent used. Empty for a task of several steps: each step has its own."""

    n_input_tokens: int | None = None
    n_cache_tokens: int | None = None
    n_output_tokens: int | None = None
    cost_usd: FiniteFloat | None = None
    usage: dict[str, ModelUsage] | None = Field(default=None, alias="model_usage")
    rollout_details: list[RolloutDetail] | None = None
    metadata: dict[str, Any] | None = None


class VerifierResult(Part):
    """Rewards by name."""

    rewards: dict[str, FiniteFloat] | None = None


class StepResult(Part):
    step_name: str
    agent_result: AgentContext | None = None
    verifier_result: VerifierResult | None = None
    exception_info: ExceptionInfo | None = None
    agent_execution: Timing | None = None
    verifier: Timing | None = None


class TrialResult(Part):
    """The whole document.

    Attributes:
        config: the trial's configuration, as it was given.
        reward_valid: Harbor's judgement, which it writes along; None in documents that lack it.
    """

    schema_version: Literal[1] = 1
    id: UUID
    task_name: str
    trial_name: str
    trial_uri: str
    task_id: dict[str, Any]
    source: str | None = None
    task_checksum: str
    config: dict[str, Any]
    agent_info: AgentInfo
    agent_result: AgentContext | None = None
    verifier_result: VerifierResult | None = None
    verifier_environment_mode: VerifierMode | None = None
    exception_info: ExceptionInfo | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    environment_setup: Timing | None = None
    agent_setup: Timing | None = None
    agent_execution: Timing | None = None
    verifier: Timing | None = None
    step_results: list[StepResult] | None = None
    reward_valid: bool | None = None

    @property
    def exceptions(self) -> list[ExceptionInfo]:
        """The trial's own first, then those of its steps."""
        found = [self.exception_info, *(step.exception_info for step in self.step_results or ())]
        return [error for error in found if error is not None]

    @property
    def usage(self) -> ModelUsage:
        """Tokens and cost of the whole trial: of the trial where it says so, else the sum over its steps."""
        contexts = [self.agent_result] if self.agent_result else [s.agent_result for s in self.step_results or ()]
        known = [context for context in contexts if context is not None]
        costs = [context.cost_usd for context in known if context.cost_usd is not None]
        return ModelUsage(
            n_input_tokens=sum(context.n_input_tokens or 0 for context in known),
            n_cache_tokens=sum(context.n_cache_tokens or 0 for context in known),
            n_output_tokens=sum(context.n_output_tokens or 0 for context in known),
            cost_usd=sum(costs) if costs else None,
        )


def parse_trial_result(data: bytes, where: str) -> TrialResult:
    """A ``result.json``.

    Raises:
        InputError: it is no such document; names every field that is wrong.
    """
    try:
        return TrialResult.model_validate_json(data)
    except ValidationError as error:
        rows = [f"{'.'.join(map(str, row['loc']))}: {row['msg']}" for row in error.errors(include_url=False)]
        raise InputError(where, "is no result of a trial: " + "; ".join(rows)) from error


def result_json(result: TrialResult) -> dict[str, Any]:
    """The document as JSON-able data; unknown keys included."""
    return result.model_dump(mode="json", by_alias=True)


def unknown_result_keys(part: Part, prefix: str = "") -> Iterator[str]:
    """Dotted path of every key no model knows."""
    yield from (f"{prefix}{key}" for key in part.model_extra or {})
    for name in type(part).model_fields:
        value = getattr(part, name)
        for index, child in enumerate(value if isinstance(value, list) else (value,)):
            if isinstance(child, Part):
                yield from unknown_result_keys(child, f"{prefix}{name}{f'[{index}]' if value is not child else ''}.")
