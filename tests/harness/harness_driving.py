"""Driving a loop by written turns on a real engine, checking at every step that the tokens only grow."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from itertools import count
from typing import Any

from journeyman.engines.protocol import Sampling, TurnRequest, TurnResult
from journeyman.engines.scripted import ScriptedEngine
from journeyman.harness import LOOPS, SPECS, Budget
from journeyman.harness.agent import AgentLoop
from journeyman.sandbox.protocol import Sandbox
from journeyman.tokens.renderers import Demonstration, Renderer, ToolUse
from journeyman.tools.protocol import Observation
from journeyman.tools.toolset import ToolSet

Written = Sequence[int]
DEFAULT_BUDGET = Budget(context_tokens=60_000, max_new_tokens=2_000, max_turns=400)


@dataclass
class Opened:
    """A loop, and how to write turns for it."""

    loop: AgentLoop
    renderer: Renderer
    sent: list[int] = field(default_factory=list)
    epoch: int = 0

    @classmethod
    def of(
        cls,
        name: str,
        renderer: Renderer,
        *,
        today: date,
        tools: ToolSet | None = None,
        sandbox: Sandbox | None = None,
        budget: Budget = DEFAULT_BUDGET,
        clock: Callable[[], float] | None = None,
        **changes: Any,
    ) -> Opened:
        """The loop of a spec with changes; by default its clock stands still."""
        spec = replace(SPECS[name], today=today, budget=budget, **changes)
        return cls(LOOPS[spec.loop](spec, renderer, tools, sandbox, clock or (lambda: 0.0)), renderer)

    def call(self, name: str, **arguments: Any) -> Written:
        """A turn with one call."""
        return self.renderer.demonstrate(Demonstration(calls=(ToolUse(name, arguments),)))

    def two(self, name: str, first: Mapping[str, Any], second: Mapping[str, Any]) -> Demonstration:
        """Two calls of a tool, for families that can make two."""
        return Demonstration(calls=(ToolUse(name, first), ToolUse(name, second)))

    def say(self, content: str) -> Written:
        """A turn with text only."""
        return self.renderer.demonstrate(Demonstration(content=content))

    def keys(self, *commands: tuple[str, float], done: bool = False) -> Written:
        """A turn of the terminal protocol in JSON."""
        typed = [{"keystrokes": keys, "duration": duration} for keys, duration in commands]
        answer = {"analysis": "looked", "plan": "go on", "commands": typed, "task_complete": done}
        return self.say(json.dumps(answer))

    def play(self, turns: Sequence[Written], instruction: str = "do it", files: Sequence[str] = ()) -> AgentLoop:
        """Play whole turns on a ScriptedEngine until the loop ends or the turns do."""
        waiting = iter(turns)
        self.sent = self.loop.open(instruction, files)
        append: list[int] | None = list(self.sent)
        for number in count():
            turn = next(waiting, None)
            if turn is None or append is None:
                return self.loop
            append = self.respond(append, turn, f"turn-{number}")
        return self.loop

    def respond(self, append: list[int], turn: Written, trial: str) -> list[int] | None:
        """One turn: sampled by the engine as the loop asks for it; then the prefix property is checked."""
        sampling = self.loop.sampling
        engine = ScriptedEngine({trial: [turn]}, version=7, max_len=10_000_000)
        engine.submit(TurnRequest(trial, append, 1, Sampling(sampling.max_new_tokens, 1.0, sampling.stop_ids)))
        (result,) = engine.step()
        return self.take(result)

    def take(self, result: TurnResult) -> list[int] | None:
        """Hand a result to the loop; its context must begin with what the engine has seen."""
        before = [*self.sent, *result.ids]
        appended = self.loop.respond(result)
        if appended is None:
            return None
        if self.loop.epoch == self.epoch:
            self.sent = [*before, *appended]
        else:
            self.epoch, self.sent = self.loop.epoch, list(appended)
        assert self.loop.context.ids == self.sent
        return appended


class Drawer:
    """A tool set of three tools over named texts: real enough to have domains, errors and long results."""

    def __init__(self, files: Mapping[str, str]) -> None:
        self.files = dict(files)

    @property
    def schemas(self) -> Mapping[str, Mapping[str, Any]]:
        path = {"path": {"type": "string"}}
        return {
            "filesystem_read_text_file": {"type": "object", "properties": path, "required": ["path"]},
            "filesystem_list_files": {"type": "object", "properties": {}, "required": []},
            "mail_send_mail": {
                "type": "object",
                "properties": {"to": {"type": "string"}, "body": {"type": "string"}},
                "required": ["to", "body"],
            },
        }

    @property
    def descriptions(self) -> Mapping[str, str]:
        return {
            "filesystem_read_text_file": "Read a file.",
            "filesystem_list_files": "List the files.",
            "mail_send_mail": "Send a mail.",
        }

    def call(self, name: str, arguments: Mapping[str, Any], *, deadline_s: float = 60.0) -> Observation:
        if name == "filesystem_list_files":
            return Observation("\n".join(self.files))
        if name == "mail_send_mail":
            self.files[f"mail to {arguments['to']}"] = arguments["body"]
            return Observation("sent")
        if arguments["path"] not in self.files:
            return Observation("error: no such file", is_error=True)
        return Observation(self.files[arguments["path"]])

    def close(self) -> None: ...
