"""Which recorded conversation a request continues, and the tokens that continue it: at its end, or as a fork."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date

from journeyman.engines.capture.journal import Call, Head, Journal, Piece, calls_in, heads_in
from journeyman.engines.capture.messages import Asked, Message
from journeyman.tokens.renderers import Demonstration, Renderer, ToolResult, ToolUse


@dataclass
class Line:
    """One conversation.

    Attributes:
        head: how it began.
        ids: all tokens so far.
        keys: of all messages so far.
        ends: for each sampled turn: messages, tokens and length of the turn at its end.
        busy: a turn is under way.
        trial, held: its name at the engine, and the tokens the engine has of it.
    """

    head: Head
    ids: list[int] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    ends: list[tuple[int, int, int]] = field(default_factory=list)
    busy: bool = False
    trial: str = ""
    held: int = 0

    def grow(self, call: Call) -> None:
        """A recorded call becomes part of it."""
        for piece in call.before:
            self.ids += piece.ids
        self.ids += call.ids
        self.keys += call.keys
        self.ends.append((len(self.keys), len(self.ids), len(call.ids)))


@dataclass(frozen=True)
class Place:
    """Where a request goes on.

    Attributes:
        line: the conversation, new or old.
        before: what is appended before the turn.
        keys: of the messages that are new to it.
    """

    line: Line
    before: list[Piece]
    keys: list[str]


class Lines:
    """All conversations of a recording; those on the disk are read first.

    Args:
        journal: where they are recorded.
        renderer: writes what programs say as tokens.
        today: the date of families that state one.
    """

    def __init__(self, journal: Journal, renderer: Renderer, today: date | None = None) -> None:
        self._journal, self._renderer, self._today = journal, renderer, today
        self.lines: dict[str, Line] = {}
        for head in heads_in(journal.root):
            line = Line(head, trial=head.name)
            if head.parent:
                line.ids = self.lines[head.parent].ids[: head.shared]
                line.keys = list(head.keys)
            for call in calls_in(journal.root, head.name, mend=True):
                line.grow(call)
            self.lines[head.name] = line

    def place(self, asked: Asked) -> Place:
        """The conversation that a request continues; it is busy from now on.

        Raises:
            InputError: the family cannot write this request.
        """
        keys = [message.key for message in asked.messages]
        line, end = self._longest(asked.head, keys)
        if line is None:
            before = self._opening(asked)
            line = self._begin(Head(self._name(asked), asked.head))
            line.busy = True
            return Place(line, before, keys)
        n_keys, n_ids, n_sampled = line.ends[end]
        sampled = line.ids[n_ids - n_sampled : n_ids]
        before = self._continued(sampled, asked.messages[n_keys - 1], asked.messages[n_keys:])
        if end < len(line.ends) - 1 or line.busy or n_keys == len(keys):
            head = Head(self._name(asked), asked.head, line.head.name, n_ids, keys[:n_keys], end + 1)
            forked = self._begin(head)
            forked.ids, forked.keys = line.ids[:n_ids], keys[:n_keys]
            line = forked
        line.busy = True
        return Place(line, before, keys[n_keys:])

    def written(self, asked: Asked) -> list[Piece]:
        """The whole request as tokens, whatever is recorded of it."""
        return self._opening(asked)

    def _longest(self, head: str, keys: Sequence[str]) -> tuple[Line | None, int]:
        """The line and its turn with the longest prefix of the request; an end that is free before one that is busy."""
        best: tuple[int, int, int] = (0, 0, 0)
        found: tuple[Line | None, int] = (None, 0)
        for line in self.lines.values():
            if line.head.head != head:
                continue
            for at in reversed(range(len(line.ends))):
                n_keys = line.ends[at][0]
                if n_keys < len(keys) and line.keys[:n_keys] == list(keys[:n_keys]):
                    is_free_end = at == len(line.ends) - 1 and not line.busy
                    rank = (n_keys, int(is_free_end), 1)
                    if rank > best:
                        best, found = rank, (line, at)
                    break
        return found

    def _name(self, asked: Asked) -> str:
        """``tools-0001`` and on for requests that offer tools, ``plain-0001`` for others: programs mix both."""
        kind = "tools" if asked.tools else "plain"
        number = 1 + sum(name.startswith(kind) for name in self.lines)
        return f"{kind}-{number:04d}"

    def _begin(self, head: Head) -> Line:
        self._journal.begin(head)
        line = self.lines[head.name] = Line(head, trial=head.name)
        return line

    def _opening(self, asked: Asked) -> list[Piece]:
        """The whole conversation of a request that nothing recorded begins."""
        first = next((n for n, message in enumerate(asked.messages) if message.role != "user"), len(asked.messages))
        opening = [{"role": "user", "content": message.text} for message in asked.messages[:first]]
        if asked.system is not None:
            opening.insert(0, {"role": "system", "content": asked.system})
        ids = self._renderer.open(opening, asked.tools, today=self._today)
        if first == len(asked.messages):
            return [Piece("prompt", ids)]
        turn = asked.messages[first]
        told = self._renderer.demonstrate(_demonstration(turn))
        rest = self._continued(told, turn, asked.messages[first + 1 :])
        return [Piece("prompt", [*ids, *told]), *rest]

    def _continued(self, sampled: Sequence[int], turn: Message, after: Sequence[Message]) -> list[Piece]:
        """What follows a turn up to the next generation prompt; assistant turns nobody sampled are written out."""
        pieces: list[Piece] = []
        waiting = list(after)
        while True:
            upto = next((n for n, message in enumerate(waiting) if message.role == "assistant"), len(waiting))
            part, waiting = waiting[:upto], waiting[upto:]
            bridge = self._renderer.after(sampled, results=_results(turn, part), user=_user(part))
            pieces += [Piece("forced", list(bridge.forced))] if bridge.forced else []
            pieces.append(Piece("observation", list(bridge.observed)))
            if not waiting:
                return pieces
            turn, waiting = waiting[0], waiting[1:]
            sampled = self._renderer.demonstrate(_demonstration(turn))
            pieces.append(Piece("observation", list(sampled)))

    def record(self, place: Place, call: Call) -> None:
        """The turn was sampled: on the disk first, then part of the line, which is free again."""
        self._journal.append(place.line.head.name, call)
        place.line.grow(call)
        place.line.busy = False

    def give_up(self, place: Place) -> None:
        """No turn came of it."""
        place.line.busy = False


def _results(turn: Message, part: Sequence[Message]) -> list[ToolResult]:
    """Tool results in the order of the calls they answer."""
    order = {call.id: n for n, call in enumerate(turn.calls)}
    names = {call.id: call.name for call in turn.calls}
    told = [message for message in part if message.role == "tool"]
    told.sort(key=lambda message: order.get(message.answers, len(order)))
    return [ToolResult(message.text, names.get(message.answers, "")) for message in told]


def _user(part: Sequence[Message]) -> str | None:
    told = [message.text for message in part if message.role == "user"]
    return "\n\n".join(told) if told else None


def _demonstration(turn: Message) -> Demonstration:
    calls = tuple(ToolUse(c.name, c.arguments) for c in turn.calls if not isinstance(c.arguments, str))
    return Demonstration(turn.text, calls)
