"""A renderer: one family over one vocabulary. It opens a context and extends it; it never rewrites what stands there.

Invariant: what ``after`` returns is appended to the prompt and the sampled ids as they are, so each prompt starts with
the one before and what was sampled after it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date

from journeyman.errors import InputError
from journeyman.tokens.malformed import ParsedTurn
from journeyman.tokens.renderers.family import Demonstration, Family, Opening, ToolResult, ToolSchema, TurnEnd
from journeyman.tokens.renderers.styles import STYLES
from journeyman.tokens.runs import Parts, encode_parts
from journeyman.tokens.spans import Schemas
from journeyman.tokens.tokenizer import Tokenizer
from journeyman.tokens.turn import Turn

OPENING_ROLES = ("system", "developer", "user")


@dataclass(frozen=True)
class Bridge:
    """What follows a sampled turn.

    Attributes:
        forced: the end of a turn that did not close itself; mask 0.
        observed: the next turns and the next generation prompt; mask 0.
    """

    forced: tuple[int, ...]
    observed: tuple[int, ...]

    @property
    def ids(self) -> list[int]:
        """All ids to append."""
        return [*self.forced, *self.observed]


class Renderer:
    """One family over one vocabulary.

    Args:
        family: an entry of ``FAMILIES``.
        tokenizer: the model's.
        thinking: whether the model is asked to think, in every turn of a trial.

    Raises:
        InputError: the vocabulary lacks special tokens of the family; names them all.
    """

    def __init__(self, family: Family, tokenizer: Tokenizer, *, thinking: bool = True) -> None:
        missing = [name for name in family.specials if name not in tokenizer.special_names]
        if missing:
            hint = f"the vocabulary is not that of {family.models}; use its own tokenizer or another renderer"
            raise InputError("tokenizer", f"lacks {', '.join(missing)} as single tokens, for {family.name}", hint=hint)
        self.family, self.tokenizer, self.thinking = family, tokenizer, thinking
        self._stops = tuple(tokenizer.special(name) for name in family.stops)
        self._closes = frozenset(tokenizer.special(name) for name in family.closes)

    @property
    def stop_ids(self) -> tuple[int, ...]:
        """Ids at which sampling stops."""
        return self._stops

    def open(
        self, messages: Sequence[Mapping[str, str]], tools: Sequence[ToolSchema] = (), *, today: date | None = None
    ) -> list[int]:
        """The prompt: an optional system turn, the user turns, the tools, the generation prompt.

        Args:
            messages: ``{"role", "content"}``; later turns are sampled and bridged, never rendered.
            tools: schemas as chat templates take them.
            today: the trial's date; families that state one insist on it, and the wall clock is never asked.

        Raises:
            InputError: another role, no user turn, no date where one is stated, or tools the family cannot offer.
        """
        return encode_parts(self.tokenizer, self.opening_parts(messages, tools, today=today))

    def opening_parts(
        self, messages: Sequence[Mapping[str, str]], tools: Sequence[ToolSchema] = (), *, today: date | None = None
    ) -> Parts:
        """The parts ``open`` encodes; same arguments and errors."""
        given = _opening(messages, tools, self.thinking, today)
        try:
            return [*self.family.opening(given), self.family.generation(self.thinking)]
        except ValueError as error:
            raise InputError(f"renderer {self.family.name}", str(error)) from error

    def after(
        self,
        sampled: Sequence[int],
        *,
        results: Sequence[ToolResult] = (),
        user: str | None = None,
        nudge: str | None = None,
    ) -> Bridge:
        """What to append after a sampled turn: its forced end if it has none, then the next turns.

        Args:
            sampled: the turn as sampled; without its stop token it was cut, and nothing else needs to be said.
            results: what the tools answered, in the order of the calls.
            user: a user turn after them.
            nudge: a notice, put inside the last result so that no template drops thinking for it; without results it
                ends the user turn or becomes one.
        """
        forced: tuple[int, ...] = ()
        closed = bool(sampled) and sampled[-1] in self._closes
        if not closed:
            forced = tuple(encode_parts(self.tokenizer, [self.family.forced(self._end(sampled))]))
        parts = [self.family.separator, *self._turns(results, user, nudge), self.family.generation(self.thinking)]
        observed = encode_parts(self.tokenizer, parts)
        if closed and self.family.stop_is_next_role and observed[:1] == [sampled[-1]]:
            del observed[0]
        return Bridge(forced, tuple(observed))

    def demonstrate(self, turn: Demonstration) -> list[int]:
        """Ids of a turn somebody wrote, as the model would have sampled it after the generation prompt."""
        return encode_parts(self.tokenizer, self.family.demonstration(turn, self.thinking))

    def parse(self, sampled: Sequence[int], schemas: Schemas, *, truncated: bool = False) -> ParsedTurn:
        """Calls, defects, thinking and content of a sampled turn, by token spans. Any ids give an answer."""
        turn = Turn(sampled, self.tokenizer, self._stops)
        opened = self.family.opens_thinking and self.thinking
        return STYLES[self.family.call_style](turn, schemas, truncated, self.family.think, opened)

    def _turns(self, results: Sequence[ToolResult], user: str | None, nudge: str | None) -> Parts:
        given = list(results)
        if nudge is not None and given:
            given[-1] = replace(given[-1], text=f"{given[-1].text}\n\n{nudge}")
        elif nudge is not None:
            user = nudge if user is None else f"{user}\n\n{nudge}"
        parts = self.family.results(given) if given else []
        return [*parts, *(self.family.user(user, self.thinking) if user is not None else [])]

    def _end(self, sampled: Sequence[int]) -> TurnEnd:
        turn = Turn(sampled, self.tokenizer, self._stops)
        specials = [token for token in sampled if token in self.tokenizer.special_ids]
        last = self.tokenizer.token_bytes(specials[-1]).decode() if specials else None
        opened = self.family.opens_thinking and self.thinking
        stopped = bool(sampled) and sampled[-1] in self._stops
        inside = self.family.think is not None and not stopped and turn.thinking(self.family.think, opened).is_open
        return TurnEnd(inside, last)


def _opening(
    messages: Sequence[Mapping[str, str]], tools: Sequence[ToolSchema], thinking: bool, today: date | None
) -> Opening:
    system: str | None = None
    users: list[str] = []
    for index, message in enumerate(messages):
        role = message.get("role")
        if role not in OPENING_ROLES or (role != "user" and index):
            hint = "later turns are sampled and bridged with after(), a demonstrated one with demonstrate()"
            problem = f"role {role!r} at position {index} cannot open a context"
            raise InputError(f"messages[{index}]", problem, allowed="one system turn, then user turns", hint=hint)
        if role == "user":
            users.append(message["content"])
        else:
            system = message["content"]
    if not users:
        raise InputError("messages", "hold no user turn", allowed="one system turn, then user turns")
    return Opening(system, tuple(users), tuple(tools), thinking, today)
