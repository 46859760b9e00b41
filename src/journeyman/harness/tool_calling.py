"""The actor of every harness whose policy calls tools: reads calls by token spans, runs them, answers defects."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from journeyman.harness.act import Act, Result
from journeyman.harness.conversation import AttemptedCall, Status
from journeyman.harness.defects import answer_to, attempted_name, settle
from journeyman.harness.spec import HarnessSpec
from journeyman.tokens.malformed import Call, Malformed, ParsedTurn
from journeyman.tokens.renderers import Renderer
from journeyman.tokens.renderers.family import ToolSchema
from journeyman.tools.toolset import ToolSet

Final = tuple[str, str | None]
"""Answer and status."""

SAY_OR_CALL = "No tool was called. Call a tool, or {finish} when the work is done."
OVER_BUDGET = "error: the budget of tool calls is used up; the call was not executed"

_STATUS_OF: dict[str, Status] = {
    "unknown_tool": "unknown_tool",
    "missing_param": "schema_violation",
    "wrong_type": "schema_violation",
    "duplicate_param": "schema_violation",
}


def tool_schemas(tools: ToolSet) -> list[ToolSchema]:
    """The tools as chat templates take them."""
    return [
        {"type": "function", "function": {"name": n, "description": tools.descriptions[n], "parameters": dict(schema)}}
        for n, schema in tools.schemas.items()
    ]


def opening_messages(system: str, instruction: str, files: Sequence[str]) -> list[Mapping[str, str]]:
    """System turn and user turn; the files of the task are named after the instruction."""
    listed = f"\n\nFiles: {', '.join(files)}" if files else ""
    return [{"role": "system", "content": system}, {"role": "user", "content": f"{instruction}{listed}"}]


class ToolCalling:
    """Reads turns as tool calls.

    Args:
        spec: system text, policies, deadlines.
        renderer: parses the turns.
        tools: what may be called; its schemas may change between turns.
        final: after each call asked whether it was the final one; None where a turn without a call is the answer.
        finish: how a policy that says nothing executable is told to end, e.g. "call final_answer".
        on_begin: called when a fresh context begins.
        readable: schemas a call is read by, where they are more than those offered.
    """

    def __init__(
        self,
        spec: HarnessSpec,
        renderer: Renderer,
        tools: ToolSet,
        *,
        final: Callable[[], Final | None] | None = None,
        finish: str = "",
        on_begin: Callable[[], None] = lambda: None,
        readable: Callable[[], Mapping[str, Mapping[str, Any]]] | None = None,
    ) -> None:
        self.spec, self.renderer, self.tools = spec, renderer, tools
        self._final, self._finish, self._on_begin = final, finish, on_begin
        self._readable = readable if readable is not None else lambda: tools.schemas

    def opening(self, instruction: str, files: Sequence[str]) -> tuple[list[Mapping[str, str]], list[ToolSchema]]:
        """See ``Actor.opening``."""
        return opening_messages(self.spec.system, instruction, files), tool_schemas(self.tools)

    def begin_again(self) -> None:
        """See ``Actor.begin_again``."""
        self._on_begin()

    def act(self, sampled: Sequence[int], *, cut: bool, redraws_left: int, calls_left: int | None) -> Act:
        """See ``Actor.act``."""
        schemas = self._readable()
        parsed = self.renderer.parse(sampled, schemas, truncated=cut)
        malformed = tuple(defect.kind for defect in parsed.malformed)
        settled = settle(parsed, self.spec.malformed, redraws_left)
        if settled.again or settled.ends:
            return Act(tuple(map(_unread, parsed.malformed)), malformed, again=settled.again, ends=settled.ends)
        if not settled.steps:
            return self._without_step(parsed, malformed, cut)
        return self._run(settled.steps, malformed, schemas, calls_left)

    def _without_step(self, parsed: ParsedTurn, malformed: tuple[str, ...], cut: bool) -> Act:
        """A turn that neither calls nor tries to: the answer where that is how a trial ends."""
        if self._final is None and not cut:
            return Act(malformed=malformed, answer=parsed.content.strip())
        finish = self._finish or "answer in plain text"
        return Act(malformed=malformed, user=SAY_OR_CALL.format(finish=finish))

    def _run(
        self,
        steps: Sequence[Call | Malformed],
        malformed: tuple[str, ...],
        schemas: Mapping[str, Mapping[str, Any]],
        calls_left: int | None,
    ) -> Act:
        """Execute and answer in order, up to the final call."""
        calls: list[AttemptedCall] = []
        results: list[Result] = []
        executed = repaired = 0
        for step in steps:
            if isinstance(step, Malformed):
                calls.append(_unread(step))
                results.append(Result(answer_to(step), attempted_name(step, schemas)))
                continue
            arguments = dict(step.arguments)
            if calls_left is not None and executed >= calls_left:
                calls.append(AttemptedCall(step.name, arguments, "tool_error"))
                results.append(Result(OVER_BUDGET, step.name))
                continue
            observation = self.tools.call(step.name, arguments, deadline_s=self.spec.deadline_s(step.name))
            executed += 1
            repaired += step.repaired
            calls.append(AttemptedCall(step.name, arguments, "tool_error" if observation.is_error else "ok"))
            final = self._final() if self._final is not None else None
            if final is not None:
                done = tuple(calls), malformed, tuple(results)
                return Act(*done, answer=final[0], status=final[1], executed=executed - 1, repaired=repaired)
            results.append(Result(observation.text, step.name, observation.spill))
        return Act(tuple(calls), malformed, tuple(results), executed=executed, repaired=repaired)


def _unread(defect: Malformed) -> AttemptedCall:
    return AttemptedCall("", {}, _STATUS_OF.get(defect.kind, "unparsable"))
