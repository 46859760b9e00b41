"""The loop every harness for real models shares: tokens, budgets, cut results, the nudge, and contexts begun anew.

It only appends; what a turn means is its actor's business. Inside one epoch the ids of a prompt are those of the prompt
before it, what was sampled after it, and what ``respond`` returned. Each turn costs what is new in it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from journeyman.engines.protocol import TurnResult
from journeyman.errors import InputError
from journeyman.harness.act import Act, Actor, AgentTurn
from journeyman.harness.budget import Spent, exhausted
from journeyman.harness.cutting import SpillFiles
from journeyman.harness.discarding import DiscardingContext
from journeyman.harness.fresh import FRESH_START, SUMMARY_REQUEST, common_length, summary_turn
from journeyman.harness.protocol import LoopSampling, StopReason
from journeyman.harness.showing import FRAME_TOKENS, Showing
from journeyman.harness.spec import HarnessSpec
from journeyman.tokens.context import Context
from journeyman.tokens.renderers import Renderer
from journeyman.tokens.renderers.family import ToolSchema

KEPT_CHARS = 10_000
"""Of results that were not shown any more because the context or the trial ended, what is kept in the record."""

Clock = Callable[[], float]
"""Seconds of working time; only differences count. An executor may stop it while a trial waits for its place."""


@dataclass(frozen=True)
class ContextCost:
    """What one context of a trial cost, and why the next one began ("" for the last)."""

    spent: Spent
    left_for: str
    cost_usd: float | None


class AgentLoop:
    """One running trial. State: its context, its turns, what it spent."""

    def __init__(self, spec: HarnessSpec, renderer: Renderer, actor: Actor, spill: SpillFiles, clock: Clock) -> None:
        self.spec, self.renderer, self.actor = spec, renderer, actor
        self._discarding = DiscardingContext()
        self.context: Context = self._discarding
        self.turns: list[AgentTurn] = []
        self.stop_reason: StopReason | None = None
        self.answer: str | None = None
        self.status: str | None = None
        self.epoch = 0
        self.spent = Spent()
        self.contexts: list[ContextCost] = []
        self._showing = Showing(spec, renderer.tokenizer, spill)
        self._clock, self._started = clock, clock()
        self._at_start = Spent()  # what was spent when this context began
        self._messages: list[Mapping[str, str]] = []
        self._tools: list[ToolSchema] = []
        self._prompt: list[int] = []
        self._new = 0  # ids that the engine has not read yet
        self._redraws = 0
        self._is_summing_up = False
        self._request_tokens = len(renderer.tokenizer.encode(SUMMARY_REQUEST)) + FRAME_TOKENS

    @property
    def sampling(self) -> LoopSampling:
        """Of the next turn."""
        budget = self.spec.budget
        limit = self.spec.summary_tokens if self._is_summing_up else budget.max_new_tokens
        if budget.max_new_tokens_total is not None:
            limit = max(1, min(limit, budget.max_new_tokens_total - self.spent.sampled_tokens))
        return LoopSampling(limit, frozenset(self.renderer.stop_ids))

    @property
    def discarded(self) -> frozenset[int]:
        """Turns (values of the column ``turn``) that were drawn again; their mask is 0."""
        return self._discarding.discarded

    def open(self, instruction: str, files: Sequence[str]) -> list[int]:
        """Append the prompt and return it.

        Raises:
            InputError: the family states a date and the spec has none, it cannot offer tools, or the prompt leaves no
                room for a turn.
        """
        self._started = self._clock()
        self._messages, self._tools = self.actor.opening(instruction, files)
        self._prompt = self.renderer.open(self._messages, self._tools, today=self.spec.today)
        self.context.append_prompt(self._prompt)
        self._new = len(self._prompt)
        if self._room() < 0:
            problem = f"the prompt has {len(self._prompt)} tokens and leaves no room for a turn"
            raise InputError("budget.context_tokens", problem, hint="give a larger context, or offer fewer tools")
        return list(self._prompt)

    def respond(self, result: TurnResult) -> list[int] | None:
        """Take one sampled turn; see ``Loop.respond``."""
        if self.stop_reason is not None:
            return None
        self._take(result)
        if self._is_summing_up:
            return self._after_summary(result)
        began, epoch = self._clock(), self.epoch
        act = self.actor.act(
            result.ids,
            cut=result.finish != "stop",
            redraws_left=self.spec.max_regenerations - self._redraws,
            calls_left=self._calls_left(),
        )
        elapsed_s = self._clock() - began
        self.spent.tool_calls += act.executed
        self.spent.working_s = self._clock() - self._started
        if act.again:
            return self._draw_again(result, act)
        self._redraws = 0
        self.answer, self.status = act.answer, act.status
        appended, fields = self._follow(result, act)
        self._keep(result, act, epoch=epoch, elapsed_s=elapsed_s, **fields)
        return appended

    def _follow(self, result: TurnResult, act: Act) -> tuple[list[int] | None, dict[str, object]]:
        """What comes after a turn that stays: the end, or the ids before the next turn; and facts for its record."""
        if act.answer is not None:
            return self._stop("answered"), {"observation": ""}
        reason = "limit.malformed" if act.ends else exhausted(self.spec.budget, self.spent)
        if reason is not None:
            return self._stop(reason), {}
        here = self.spent.since(self._at_start).tool_calls
        limit = self.spec.budget.calls_per_context
        if limit is not None and here >= limit:
            return self._at_limit("limit.calls", result, act), {}
        return self._bridge(result, act)

    def _bridge(self, result: TurnResult, act: Act) -> tuple[list[int] | None, dict[str, object]]:
        shown = self._showing.results(act, self._room())
        if shown is None:
            return self._at_limit("limit.context", result, act), {}
        results, cuts = shown
        bridge = self.renderer.after(result.ids, results=results, user=act.user)
        nudge = self._showing.nudge(len(self.context) + len(bridge.ids))
        if nudge is not None:
            bridge = self.renderer.after(result.ids, results=results, user=act.user, nudge=nudge)
        if len(bridge.ids) > self._room():
            return self._at_limit("limit.context", result, act), {}
        self._showing.is_nudged = self._showing.is_nudged or nudge is not None
        seen = "\n".join([*(item.text for item in results), *([act.user] if act.user is not None else [])])
        facts: dict[str, object] = {"observation": seen, "cut_results": cuts, "nudged": nudge is not None}
        return self._append(bridge.forced, bridge.observed), facts

    def _append(self, forced: Sequence[int], observed: Sequence[int]) -> list[int]:
        self.context.append_forced(forced)
        self.context.append_observation(observed)
        self._new = len(forced) + len(observed)
        return [*forced, *observed]

    def _room(self) -> int:
        """Tokens that may still be appended before the next turn."""
        reserve = self.spec.summary_tokens + self._request_tokens if self.spec.at_limit == "compact" else 0
        return self.spec.budget.context_tokens - len(self.context) - self.sampling.max_new_tokens - reserve

    def _calls_left(self) -> int | None:
        budget = self.spec.budget
        here = self.spent.since(self._at_start).tool_calls
        limits = [(budget.max_tool_calls, self.spent.tool_calls), (budget.calls_per_context, here)]
        left = [limit - used for limit, used in limits if limit is not None]
        return min(left) if left else None

    def _take(self, result: TurnResult) -> None:
        versions = [span.version for span in result.spans for _ in range(span.start, span.end)]
        self.spent.turns += 1
        self.spent.sampled_tokens += len(result.ids)
        self.spent.prompt_tokens += self._new
        self.spent.cached_tokens += len(self.context) - self._new
        self.spent.working_s = self._clock() - self._started
        self.context.append_sampled(result.ids, result.logprobs, versions or result.version)

    def _draw_again(self, result: TurnResult, act: Act) -> list[int] | None:
        reason = exhausted(self.spec.budget, self.spent)
        self._keep(result, act, discarded=reason is None)  # what is not drawn again stays the policy's choice
        if reason is not None:
            return self._stop(reason)
        self._redraws += 1
        self._discarding.discard(len(result.ids))
        self.epoch += 1
        self._new = 0
        return self.context.ids

    def _at_limit(self, reason: StopReason, result: TurnResult, act: Act) -> list[int] | None:
        begun = len(self.contexts)
        if self.spec.at_limit == "stop" or begun >= self.spec.max_fresh_contexts:
            return self._stop(reason)
        if self.spec.at_limit == "clear-and-retry":
            self.actor.begin_again()
            note = FRESH_START.format(number=begun + 2, last=1 + self.spec.max_fresh_contexts)
            return self._begin([*self._messages, {"role": "user", "content": note}], "clear-and-retry")
        whole = self.spec.budget.context_tokens
        room = whole - len(self.context) - self.spec.summary_tokens - self._request_tokens - FRAME_TOKENS
        results = self._showing.squeezed(act.results, room)
        bridge = self.renderer.after(result.ids, results=results, user=SUMMARY_REQUEST)
        if len(self.context) + len(bridge.ids) + self.spec.summary_tokens > whole:
            return self._stop(reason)
        self._is_summing_up = True
        return self._append(bridge.forced, bridge.observed)

    def _after_summary(self, result: TurnResult) -> list[int] | None:
        self._is_summing_up = False
        self._keep(result, Act(), is_summary=True)
        reason = exhausted(self.spec.budget, self.spent)
        if reason is not None:
            return self._stop(reason)
        parsed = self.renderer.parse(result.ids, {}, truncated=result.finish != "stop")
        summary = (parsed.content or parsed.text).strip()
        return self._begin([*self._messages, summary_turn(summary)], "compact")

    def _begin(self, messages: Sequence[Mapping[str, str]], reason: str) -> list[int] | None:
        """Go on in a context of its own; what both contexts begin with is stored once."""
        self._close_context(reason)
        ids = self.renderer.open(messages, self._tools, today=self.spec.today)
        shared = common_length(self._prompt, ids)
        self.context.open_segment(shared, reason)
        self.context.append_prompt(ids[shared:])
        self._prompt, self._new, self._redraws = ids, len(ids) - shared, 0
        self.epoch += 1
        if self._room() < 0:
            return self._stop("limit.context")
        return list(ids)

    def _close_context(self, reason: str) -> None:
        spent = self.spent.since(self._at_start)
        self.contexts.append(ContextCost(spent, reason, spent.cost_usd(self.spec.budget.prices)))
        self._at_start = self.spent.copy()

    def _keep(self, result: TurnResult, act: Act, **fields: object) -> None:
        unshown = "\n".join(item.text[:KEPT_CHARS] for item in act.results)
        facts: dict[str, object] = {
            "observation": unshown[:KEPT_CHARS],  # unless the policy saw something else
            "number": self.context.turns,
            "epoch": self.epoch,
            "repaired": act.repaired,
            **fields,
        }
        self.turns.append(AgentTurn(len(result.ids), result.finish, act.calls, act.malformed, **facts))  # type: ignore[arg-type]

    def _stop(self, reason: StopReason) -> list[int] | None:
        self.stop_reason = reason
        self._close_context("")
        return None
