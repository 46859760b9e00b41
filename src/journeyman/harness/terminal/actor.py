"""The actor of the terminal protocol: reads answers, types keystrokes, asks twice before it believes the work done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from journeyman.harness.act import Act
from journeyman.harness.conversation import AttemptedCall
from journeyman.harness.spec import HarnessSpec
from journeyman.harness.terminal.answer import Answer, BadAnswer, Format
from journeyman.harness.terminal.keys import key_bytes
from journeyman.harness.terminal.limit import limited
from journeyman.harness.terminal.pty import Terminal
from journeyman.tokens.renderers import Renderer
from journeyman.tokens.renderers.family import ToolSchema

SYSTEM = (
    "You solve tasks in a terminal of 160 columns and 40 rows. You see its output and answer with keystrokes. "
    "{format}\nSay that the task is complete only when you have seen that it is; you are asked to confirm it."
)

CUT = (
    "ERROR!! NONE of the actions you just requested were performed because you exceeded the maximum length of "
    "{limit} tokens. Answer again, shorter, and split long work into several turns."
)
CONFIRM = (
    "{output}\n\nAre you sure you want to mark the task as complete? Your work is graded as it is now, and you cannot "
    "change it afterwards. If you are sure, {confirmation}."
)
UNREADABLE = "ERROR: {problem}\nNothing was typed. Answer again in the format that was described."


class TerminalActor:
    """Implements ``Actor``. State: whether the policy has said once that the task is complete."""

    def __init__(self, spec: HarnessSpec, renderer: Renderer, terminal: Terminal, style: Format) -> None:
        self._spec, self._renderer, self._terminal, self._style = spec, renderer, terminal, style
        self._said_once = False

    def opening(self, instruction: str, files: Sequence[str]) -> tuple[list[Mapping[str, str]], list[ToolSchema]]:
        """See ``Actor.opening``; starts the terminal."""
        self._terminal.start()
        listed = f"\n\nFiles: {', '.join(files)}" if files else ""
        user = f"{instruction}{listed}\n\n{self._shown()}"
        return [{"role": "system", "content": self._spec.system}, {"role": "user", "content": user}], []

    def begin_again(self) -> None:
        """See ``Actor.begin_again``; the terminal stays as it is."""
        self._said_once = False

    def act(self, sampled: Sequence[int], *, cut: bool, redraws_left: int, calls_left: int | None) -> Act:
        """See ``Actor.act``. Nothing that the policy writes ends the trial but a completion said twice."""
        if cut:
            return Act(malformed=("truncated_by_length",), user=CUT.format(limit=self._spec.budget.max_new_tokens))
        parsed = self._renderer.parse(sampled, {})
        try:
            answer = self._style.read(parsed.content)
        except BadAnswer as problem:
            return Act((AttemptedCall("", {}, "unparsable"),), ("bad_json",), user=UNREADABLE.format(problem=problem))
        commands = answer.commands if calls_left is None else answer.commands[:calls_left]
        for command in commands:
            self._terminal.exchange(key_bytes(command.keystrokes), command.duration_s)
        calls = tuple(
            AttemptedCall("keystrokes", {"keystrokes": c.keystrokes, "duration": c.duration_s}, "ok") for c in commands
        )
        if answer.is_complete and self._said_once:
            return Act(calls, answer=answer.analysis, status="completed", executed=len(calls))
        return Act(calls, user=self._reply(answer), executed=len(calls))

    def _reply(self, answer: Answer) -> str:
        """The terminal's output after an answer, with what was wrong with the answer before it."""
        self._said_once = answer.is_complete
        output = self._shown()
        if answer.is_complete:
            output = CONFIRM.format(output=output, confirmation=self._style.confirmation)
        notes = "".join(f"{n if n.startswith('AUTO-CORRECTED') else f'WARNING: {n}'}\n" for n in answer.notes)
        return f"{notes}\n{output}" if notes else output

    def _shown(self) -> str:
        return limited(self._terminal.output())
