"""One trial's turn cycle: sampled ids in, the ids to append out, until a stop reason.

The context is the only history: what was sampled is parsed where it stands and never encoded again. Tools are called
through the context the trial hands in; whatever a tool cannot do for the model is text, whatever breaks is raised.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from journeyman.engines.protocol import TurnResult
from journeyman.harness.protocol import Harness, LoopSampling, StopReason
from journeyman.tokens.context import Context
from journeyman.tokens.framing import STOP, close_ids, observation_ids, open_context
from journeyman.tokens.spans import Call, parse_turn
from journeyman.tokens.tokenizer import Tokenizer
from journeyman.tools import TOOLS, ToolContext, call

MALFORMED_TEXT = "error: malformed call"

EXECUTED_REPAIRED = frozenset({"unclosed", "multi_json", "text_after_call", "no_wrapper"})
"""Classes of malformed calls that cost the policy nothing when a complete call was found: executed, and flagged."""

Status = Literal["ok", "tool_error", "unparsable", "unknown_tool", "schema_violation"]
_STATUS_OF: dict[str, Status] = {
    "unknown_tool": "unknown_tool",
    "missing_param": "schema_violation",
    "wrong_type": "schema_violation",
    "duplicate_param": "schema_violation",
}


@dataclass(frozen=True)
class AttemptedCall:
    """One call that the policy attempted: its name ("" when unreadable), its arguments and what became of it."""

    tool: str
    arguments: dict[str, Any]
    status: Status


@dataclass(frozen=True)
class Turn:
    """What one model call did.

    Attributes:
        n_sampled: sampled tokens, the stop token included.
        finish: why sampling ended.
        calls: every attempted call, in order.
        malformed: class of each malformed call.
        observation: text returned to the policy, "" after the final call.
    """

    n_sampled: int
    finish: str
    calls: tuple[AttemptedCall, ...]
    malformed: tuple[str, ...]
    observation: str

    def record(self) -> dict[str, Any]:
        return asdict(self)


class Conversation:
    """The state of one running trial: its context, its turns, and how it ended."""

    def __init__(self, harness: Harness, tokenizer: Tokenizer, tools: ToolContext, max_context: int) -> None:
        self.harness, self.tokenizer, self.tools, self.max_context = harness, tokenizer, tools, max_context
        self.context = Context()
        self.turns: list[Turn] = []
        self.stop_reason: StopReason | None = None
        self.answer: str | None = None
        self.epoch = 0

    @property
    def sampling(self) -> LoopSampling:
        """Of the next turn: the same for all."""
        return LoopSampling(self.harness.max_new_tokens, frozenset({self.tokenizer.special(STOP)}))

    def open(self, instruction: str, files: Sequence[str]) -> list[int]:
        """Append the prompt and return it: system, instruction with file names, start of the first turn."""
        ids = open_context(self.tokenizer, self.harness.framing, instruction, list(files))
        self.context.append_prompt(ids)
        return ids

    def respond(self, result: TurnResult) -> list[int] | None:
        """Take one sampled turn; return the ids to append before the next one, or None when the trial is over.

        Raises:
            SystemFault: a tool's machinery broke; the trial has no verdict then.
        """
        versions = [span.version for span in result.spans for _ in range(span.start, span.end)]
        self.context.append_sampled(result.ids, result.logprobs, versions or result.version)
        cut = result.finish == "length"
        parsed = parse_turn(result.ids, self.tokenizer, self._schemas(), truncated=cut)
        calls, texts = self._execute(parsed.calls)
        refused = [m.kind for m in parsed.malformed if m.kind not in EXECUTED_REPAIRED or not calls]
        if refused or not calls:
            texts.append(MALFORMED_TEXT)
        calls += [AttemptedCall("", {}, _STATUS_OF.get(kind, "unparsable")) for kind in refused]
        text = "" if self.answer is not None else "\n".join(texts)
        malformed = tuple(m.kind for m in parsed.malformed)
        self.turns.append(Turn(len(result.ids), result.finish, tuple(calls), malformed, text))
        if self.answer is not None:
            return self._stop("answered")
        if len(self.turns) >= self.harness.max_turns:
            return self._stop("limit.turns")
        return self._continue(text, close_ids(self.tokenizer, result.ids))

    def _execute(self, calls: Sequence[Call]) -> tuple[list[AttemptedCall], list[str]]:
        """Run the calls in order up to the final one; returns what became of them and the observation texts."""
        framing = self.harness.framing
        attempted: list[AttemptedCall] = []
        texts: list[str] = []
        for item in calls:
            arguments = dict(item.arguments)
            if item.name == framing.final_verb:
                self.answer = str(arguments[framing.final_argument])
                attempted.append(AttemptedCall(item.name, arguments, "ok"))
                break
            observation = call(item.name, arguments, self.tools)
            attempted.append(AttemptedCall(item.name, arguments, "tool_error" if observation.is_error else "ok"))
            texts.append(observation.text)
        return attempted, texts

    def _continue(self, text: str, forced: list[int]) -> list[int] | None:
        observed = observation_ids(self.tokenizer, self.harness.framing, text)
        room = self.max_context - len(self.context) - len(forced) - len(observed)
        if room < self.harness.max_new_tokens + 2:
            return self._stop("limit.context")
        self.context.append_forced(forced)
        self.context.append_observation(observed)
        return forced + observed

    def _stop(self, reason: StopReason) -> list[int] | None:
        self.stop_reason = reason
        return None

    def _schemas(self) -> dict[str, Mapping[str, Any]]:
        framing = self.harness.framing
        schemas: dict[str, Mapping[str, Any]] = {name: TOOLS[name].schema for name in self.harness.tools}
        schemas[framing.final_verb] = {
            "type": "object",
            "properties": {framing.final_argument: {"type": "string"}},
            "required": [framing.final_argument],
        }
        return schemas
