"""One request from its words to its recorded turn: place it, sample, write it down, answer."""

from __future__ import annotations

import asyncio
import hashlib
import itertools
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from journeyman.engines.capture.driver import Driver
from journeyman.engines.capture.journal import call_of
from journeyman.engines.capture.lines import Line, Lines
from journeyman.engines.capture.messages import Answered, Asked, Said
from journeyman.engines.errors import ContextOverflow
from journeyman.engines.protocol import Sampling, TurnRequest, TurnResult
from journeyman.tokens.renderers import Renderer

HELD_TRIALS = 256
"""Conversations whose state the engine keeps; the one unused for longest is submitted anew when it goes on."""
PROGRAMS_OWN = ("missing_param", "wrong_type")
"""Arguments that do not fit the tool's schema are the program's to refuse, in its own words: the call is passed on."""
LOOK_S = 0.25
"""Seconds between two looks at whether the program is still there."""


@dataclass(frozen=True)
class Limits:
    """What holds where a request does not say.

    Attributes:
        max_new_tokens: of a turn, also where the request asks for more.
        temperature, top_p: of the sampling.
        seed: of the whole recording.
    """

    max_new_tokens: int = 4096
    temperature: float = 1.0
    top_p: float = 1.0
    seed: int = 0


class Gone(Exception):
    """The program hung up before its turn was done."""


class Turns:
    """Samples turns for requests and records them; called on the event loop's thread only."""

    def __init__(self, lines: Lines, renderer: Renderer, driver: Driver, max_len: int, limits: Limits) -> None:
        self._lines, self._renderer, self._driver = lines, renderer, driver
        self._max_len, self._limits = max_len, limits
        self._held: OrderedDict[str, Line] = OrderedDict()
        self._trials = itertools.count(1)

    async def answer(self, asked: Asked, style: str, is_gone: Callable[[], Awaitable[bool]]) -> Answered:
        """Sample, record, answer.

        Raises:
            InputError: the request cannot be written as tokens. ContextOverflow: it does not fit. EngineError: the
                engine failed. StorageError: the turn could not be recorded. Gone: nobody waits any more.
        """
        place = self._lines.place(asked)
        line = place.line
        try:
            before = [token for piece in place.before for token in piece.ids]
            prompt_tokens = len(line.ids) + len(before)
            sampling = self._sampling(asked, line, prompt_tokens)
            result = await self._sampled(line, before, sampling, is_gone)
            turn = self._read(asked, line, result, prompt_tokens)
            self._lines.record(place, call_of(result, [*place.keys, turn.message.key], place.before, style))
            line.held = len(line.ids)
            return turn
        except BaseException:
            self._drop(line)
            self._lines.give_up(place)
            raise

    def count(self, asked: Asked) -> int:
        """Tokens of a request's prompt, without asking anything."""
        return sum(len(piece.ids) for piece in self._lines.written(asked))

    def _sampling(self, asked: Asked, line: Line, prompt_tokens: int) -> Sampling:
        room = self._max_len - prompt_tokens
        if room < 1:
            raise ContextOverflow(line.head.name, prompt_tokens + 1, self._max_len)
        limits = self._limits
        wanted = min(asked.max_tokens or limits.max_new_tokens, limits.max_new_tokens, room)
        temperature = limits.temperature if asked.temperature is None else float(asked.temperature)
        top_p = limits.top_p if asked.top_p is None else float(asked.top_p)
        return Sampling(wanted, temperature, frozenset(self._renderer.stop_ids), top_p=top_p)

    async def _sampled(
        self, line: Line, before: list[int], sampling: Sampling, is_gone: Callable[[], Awaitable[bool]]
    ) -> TurnResult:
        append = before
        if line.held != len(line.ids) or line.head.name not in self._held:
            if line.held:
                self._drop(line)
            append = [*line.ids, *before]
        self._hold(line)
        name = f"{self._limits.seed}:{line.head.name}:{len(line.ends)}"
        key = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big")
        future = asyncio.wrap_future(self._driver.ask(TurnRequest(line.trial, append, key, sampling)))
        while True:
            done, _ = await asyncio.wait([future], timeout=LOOK_S)
            if done:
                return future.result()
            if await is_gone():
                raise Gone

    def _hold(self, line: Line) -> None:
        self._held[line.head.name] = line
        self._held.move_to_end(line.head.name)
        idle = [name for name, held in self._held.items() if not held.busy]
        for name in idle[: max(0, len(self._held) - HELD_TRIALS)]:
            self._drop(self._held[name])

    def _drop(self, line: Line) -> None:
        """The engine forgets the conversation; it goes on there under another name."""
        self._held.pop(line.head.name, None)
        self._driver.forget(line.trial)
        line.trial, line.held = f"{line.head.name}~{next(self._trials)}", 0

    def _read(self, asked: Asked, line: Line, result: TurnResult, prompt_tokens: int) -> Answered:
        """The turn as text and calls. Without a call that can be executed, its text shows whatever it tried."""
        cut = result.finish == "length"
        parsed = self._renderer.parse(result.ids, asked.schemas, truncated=cut)
        if any(defect.kind in PROGRAMS_OWN for defect in parsed.malformed):
            parsed = self._renderer.parse(result.ids, {name: {} for name in asked.schemas}, truncated=cut)
        name = f"{line.head.name}-{len(line.ends) + 1}"
        calls = tuple(
            Said(f"call_{name}-{n}".replace("-", "_"), call.name, call.arguments) for n, call in enumerate(parsed.calls)
        )
        text = parsed.content if calls or not parsed.malformed else parsed.text or parsed.content
        if not calls and parsed.malformed and not text.strip():
            text = self._renderer.tokenizer.decode(t for t in result.ids if t not in self._renderer.stop_ids)
        reasoning = None
        if parsed.reasoning is not None:
            inner = result.ids[slice(*parsed.reasoning)]
            special = self._renderer.tokenizer.special_ids
            reasoning = self._renderer.tokenizer.decode(token for token in inner if token not in special).strip()
        return Answered(text, reasoning, calls, result.finish, prompt_tokens, len(result.ids), name)
