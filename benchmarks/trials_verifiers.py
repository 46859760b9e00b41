"""The side of ``verifiers`` (0.1, ``StatefulToolEnv``) in ``benchmarks/trials.py``; runs in its own environment.

python trials_verifiers.py TASK TRIALS CALLS CONCURRENCY OUT

The same sandboxes, a client that answers at once from a script, the reward read from the sandbox by a rubric function.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from pathlib import Path
from typing import Any

import verifiers as vf
from datasets import Dataset
from verifiers.clients.client import Client
from verifiers.types import Response, ResponseMessage, ToolCall

from journeyman.sandbox.bwrap import Bubblewrap
from journeyman.sandbox.protocol import Mount, SandboxSpec

COMMAND = "read line < /ws/sales.csv; echo $line"
WRITE = 'mkdir -p /tmp/logs/artifacts && echo \'{"answer": "412"}\' > /tmp/logs/artifacts/answer.json'
LIMITS = frozenset({"memory", "pids", "disk", "cpus"})
PROVIDER = Bubblewrap()


class Script(Client[Any, Any, Any, Any]):
    """K calls of the shell, one that writes the answer, then a word."""

    def __init__(self, calls: int) -> None:
        super().__init__(None)
        self.calls = calls

    def setup_client(self, config: Any) -> Any:
        return None

    async def get_response(
        self, prompt: Any, model: str, sampling_args: Any, tools: Any = None, **kwargs: Any
    ) -> Response:
        done = sum(getattr(message, "role", None) == "tool" for message in prompt)
        calls = None
        if done <= self.calls:
            command = COMMAND if done < self.calls else WRITE
            calls = [ToolCall(id=str(done), name="shell", arguments=json.dumps({"command": command}))]
        message = ResponseMessage(
            content=None if calls else "done",
            tool_calls=calls,
            finish_reason="tool_calls" if calls else "stop",
            is_truncated=False,
        )
        return Response(id="1", created=0, model=model, message=message)

    async def to_native_tool(self, tool: Any) -> Any: ...
    async def to_native_prompt(self, messages: Any) -> Any: ...
    async def get_native_response(self, *words: Any, **others: Any) -> Any: ...
    async def raise_from_native_response(self, response: Any) -> None: ...
    async def from_native_response(self, response: Any) -> Any: ...
    async def close(self) -> None: ...


async def shell(command: str, sandbox: Any) -> str:
    """Run a command.

    Args:
        command: a shell line.
        sandbox: where.
    """
    done = await asyncio.to_thread(lambda: sandbox.exec(command, deadline_s=60))
    return str(done.stdout.decode())


class ShellEnv(vf.StatefulToolEnv):
    """A sandbox per rollout."""

    def __init__(self, world: Path, **others: Any) -> None:
        super().__init__(**others)
        self.world = world
        self.add_tool(shell, args_to_skip=["sandbox"])

    async def setup_state(self, state: Any, **kwargs: Any) -> Any:
        spec = SandboxSpec(
            label="bench-verifiers",
            mounts=(Mount(self.world, "/ws", overlay=True),),
            waive=LIMITS - PROVIDER.supports,
        )
        state["sandbox"] = await asyncio.to_thread(PROVIDER.create, spec)
        return await super().setup_state(state, **kwargs)

    def update_tool_args(self, tool_name: str, tool_args: dict, messages: Any, state: Any, **kwargs: Any) -> dict:
        return {**tool_args, "sandbox": state["sandbox"]}


async def solved(state: Any, **kwargs: Any) -> float:
    """1.0 when the written answer is right; ends the sandbox."""
    sandbox = state.pop("sandbox")
    data = await asyncio.to_thread(lambda: sandbox.download("/tmp/logs/artifacts/answer.json", deadline_s=60))
    await asyncio.to_thread(sandbox.destroy)
    return float(json.loads(data) == {"answer": "412"})


async def main(words: list[str]) -> int:
    task, out = Path(words[0]), Path(words[4])
    trials, calls, concurrency = (int(word) for word in words[1:4])
    logging.disable(logging.INFO)
    rows = Dataset.from_list([{"question": "report Acme Q1", "answer": "412"}] * trials)
    environment = ShellEnv(
        task / "environment" / "world",
        dataset=rows,
        eval_dataset=rows,
        rubric=vf.Rubric(funcs=[solved]),
        max_turns=calls + 3,
    )
    found = await environment.evaluate(
        Script(calls), "script", max_concurrent=concurrency, results_path=out, save_results=True
    )
    rewards = [output["reward"] for output in found["outputs"]]
    if rewards != [1.0] * trials:
        print(rewards, found["outputs"][0].get("error"), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main(sys.argv[1:])))
