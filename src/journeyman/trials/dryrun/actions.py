"""Loops without a model: the task's own solution, and an agent that calls random tools with random arguments.

Both record what they did as turns, so that the classifier reads them as it reads any trial; their contexts stay empty.
"""

from __future__ import annotations

import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from journeyman.engines.protocol import TurnResult
from journeyman.harness.protocol import LoopSampling, StopReason, TurnRecord
from journeyman.sandbox.errors import ExecTimeout
from journeyman.sandbox.protocol import Sandbox
from journeyman.tokens.context import Context
from journeyman.tools.checking import fitted
from journeyman.tools.toolset import ToolSet
from journeyman.trials.dryrun.classifier import SOLUTION

SOLVE = ("sh", "/solution/solve.sh")
MAX_TEXT = 4_000
"""Characters kept of an output: its end, where errors stand."""

RANDOM_CALLS = 6
CALL_DEADLINE_S = 60.0


@dataclass(frozen=True)
class Step:
    """One action as it is kept; the fields mean what those of ``harness.act.AgentTurn`` mean."""

    tool: str
    arguments: dict[str, Any]
    status: str
    observation: str
    elapsed_s: float

    def record(self) -> dict[str, Any]:
        call = {"tool": self.tool, "arguments": self.arguments, "status": self.status}
        return {
            "n_sampled": 0,
            "finish": "stop",
            "calls": [call],
            "malformed": [],
            "observation": self.observation,
            "elapsed_s": round(self.elapsed_s, 4),
        }


class Unsampled:
    """What both loops share: nothing is sampled; ``open`` acts and the trial is over."""

    def __init__(self) -> None:
        self.context, self.epoch = Context(), 0
        self.turns: list[TurnRecord] = []
        self.stop_reason: StopReason | None = None
        self.answer: str | None = None
        self.sampling = LoopSampling(1, frozenset())

    def respond(self, result: TurnResult) -> list[int] | None:
        """Never asked."""
        return None


class Solution(Unsampled):
    """Executes the task's ``solve.sh`` and keeps its status and output.

    Args:
        sandbox: with the solution at ``/solution``.
        limit_s: working time of the task.
    """

    def __init__(self, sandbox: Sandbox, limit_s: float) -> None:
        super().__init__()
        self._sandbox, self._limit_s = sandbox, limit_s

    def open(self, instruction: str, files: Sequence[str]) -> list[int]:
        """Act at once. A solution that needs longer than its task allows ends with ``limit.time``."""
        started = time.monotonic()
        try:
            result = self._sandbox.exec(list(SOLVE), deadline_s=self._limit_s)
        except ExecTimeout:
            text, status, self.stop_reason = f"no end within {self._limit_s:g} s", 0, "limit.time"
        else:
            output = (result.stdout + b"\n" + result.stderr).decode(errors="replace").strip()
            text, status, self.stop_reason = output[-MAX_TEXT:], result.return_code, "answered"
        is_well = status == 0 and self.stop_reason == "answered"
        arguments = {"command": " ".join(SOLVE), "status": status}
        self.turns.append(
            Step(SOLUTION, arguments, "ok" if is_well else "tool_error", text, time.monotonic() - started)
        )
        return []


class RandomActions(Unsampled):
    """Calls random tools and hands in a random word: what no verifier may accept and every tool must survive.

    Args:
        tools: what may be called.
        seed: of the choices.
        num_calls: how many.
    """

    def __init__(self, tools: ToolSet, seed: int, num_calls: int = RANDOM_CALLS) -> None:
        super().__init__()
        self._tools, self._random, self._num_calls = tools, random.Random(seed), num_calls

    def open(self, instruction: str, files: Sequence[str]) -> list[int]:
        """Act at once. Raises what the machinery of a tool raises."""
        words = [word.strip(".,;:()") for word in instruction.split()] or ["x"]
        names = list(self._tools.schemas)
        for _ in range(self._num_calls if names else 0):
            name = self._random.choice(names)
            schema = self._tools.schemas[name]
            arguments = self._arguments(schema, words, files)
            started = time.monotonic()
            seen = self._tools.call(name, arguments, deadline_s=CALL_DEADLINE_S)
            status = "ok" if not seen.is_error else "tool_error"
            if seen.is_error and fitted(arguments, schema)[1]:
                status = "schema_violation"
            self.turns.append(Step(name, arguments, status, seen.text[-MAX_TEXT:], time.monotonic() - started))
        self.answer, self.stop_reason = self._random.choice(words), "answered"
        return []

    def _arguments(self, schema: Mapping[str, Any], words: Sequence[str], files: Sequence[str]) -> dict[str, Any]:
        """Required arguments always, optional ones every second time."""
        properties: Mapping[str, Any] = schema.get("properties") or {}
        required = schema.get("required") or ()
        return {
            name: self._value(name, part, words, files)
            for name, part in properties.items()
            if name in required or self._random.random() < 0.5
        }

    def _value(self, name: str, schema: Mapping[str, Any], words: Sequence[str], files: Sequence[str]) -> Any:
        if schema.get("enum"):
            return self._random.choice(list(schema["enum"]))
        kind = schema.get("type", "string")
        kind = kind[0] if isinstance(kind, list) else kind
        if kind in ("integer", "number"):
            return self._random.randint(0, 20)
        if kind == "boolean":
            return self._random.random() < 0.5
        if kind == "array":
            return [self._value(name, schema.get("items") or {}, words, files)]
        if kind == "object":
            return self._arguments(schema, words, files)
        is_path = any(part in name.lower() for part in ("path", "file", "directory"))
        return self._random.choice(list(files) if is_path and files else words)
