"""A world while it is made: its frame, its truth, its plan, and one random stream per stage."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, datetime
from random import Random
from typing import Any

from journeyman.worlds.content import Mail, Meeting, Message
from journeyman.worlds.plan import Document, Fact, Plan
from journeyman.worlds.simulate.setting import Setting
from journeyman.worlds.streams import stage_stream
from journeyman.worlds.truth import Truth


@dataclass
class Draft:
    """What the stages share. ``roles`` maps a role (``cfo``) to a person of the truth; ``notes`` carries what one stage
    found out for a later one, by name."""

    seed: int
    split: str
    index: int
    setting: Setting
    truth: Truth = field(default_factory=Truth)
    plan: Plan = field(default_factory=Plan)
    roles: dict[str, dict[str, Any]] = field(default_factory=dict)
    notes: dict[str, Any] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)

    def rng(self, stage: str) -> Random:
        """The stream of a stage."""
        return stage_stream(self.seed, self.split, self.index, stage)

    def next_id(self, prefix: str, width: int = 3) -> str:
        """``K001``, ``K002``, ..."""
        self.counts[prefix] = self.counts.get(prefix, 0) + 1
        return f"{prefix}{self.counts[prefix]:0{width}d}"

    def event(self, kind: str, day: date | str, summary: str, **payload: Any) -> str:
        """Record that something happened; the id that everything it causes names."""
        when = day if isinstance(day, str) else day.isoformat()
        event_id = self.next_id("E", 4)
        row = {"id": event_id, "kind": kind, "date": when, "summary": summary, "payload": payload}
        self.truth.add("event", row, event=event_id, at=when)
        return event_id

    def document(
        self, path: str, kind: str, content: Any, event_id: str, *, day: date | str, author: str = "",
        version: str = "1", as_of: str = "", supersedes: str = "", subject: str = "",
    ) -> Document:  # fmt: skip
        """Plan a file. ``day`` is when it came into being."""
        known = day if isinstance(day, str) else day.isoformat()
        return self.plan.add(
            Document(
                path, kind, version, as_of or known, known, author or self.setting.company, supersedes, event_id,
                content, subject,
            )
        )  # fmt: skip

    def fact(
        self, fact_id: str, surface: str, value: str | int | float, unit: str = "text", *, subject: str = "",
        predicate: str = "", currency: str = "", scale: int = 1, as_of: str = "", known: str = "",
        supersedes: str = "", rows: tuple[str, ...] = (),
    ) -> str:  # fmt: skip
        """Record a fact and give the marked text that states it. The parts of the id are its subject and predicate."""
        parts = fact_id.split(":")
        made = Fact(
            fact_id, subject or ":".join(parts[:2]), predicate or ":".join(parts[2:]) or parts[0], value, unit,
            currency, scale, as_of, known, supersedes, rows,
        )  # fmt: skip
        return self.plan.state(made, surface)

    def mail(
        self, event_id: str, when: datetime, sender: dict[str, Any] | str, to: list[dict[str, Any] | str], subject: str,
        body: str, *, cc: tuple[str, ...] = (), reply_to: Mail | None = None, attachments: tuple[str, ...] = (),
    ) -> Mail:  # fmt: skip
        """Plan a mail. People are rows of ``person`` or addresses."""
        number = self.next_id("M", 4)
        address = _address(sender)
        domain = address.rpartition("@")[2].rstrip(">")
        return self.plan.mail(
            event_id,
            Mail(
                f"{number.lower()}.{when:%Y%m%d%H%M}@{domain}", when, address, tuple(map(_address, to)), subject, body,
                cc, reply_to.message_id if reply_to else "", attachments,
            ),
        )  # fmt: skip

    def say(self, event_id: str, when: datetime, channel: str, who: dict[str, Any], text: str, thread: str = "") -> str:
        """Plan a chat message; its timestamp, which is the address within its channel."""
        seconds = int((when - datetime(1970, 1, 1)).total_seconds())
        ts = f"{seconds}.{int(self.next_id('C', 6)[1:]):06d}"
        self.plan.say(event_id, Message(channel, ts, who["id"], text, thread))
        return ts

    def meet(
        self, event_id: str, start: datetime, minutes: int, summary: str, description: str,
        organizer: dict[str, Any], attendees: list[dict[str, Any]], location: str = "",
    ) -> Meeting:  # fmt: skip
        """Plan a calendar item."""
        uid = f"{self.next_id('V', 4).lower()}@{self.setting.domain}"
        names = tuple(one["email"] for one in attendees)
        return self.plan.meet(
            event_id, Meeting(uid, start, minutes, summary, description, organizer["email"], names, location)
        )


def _address(person: dict[str, Any] | str) -> str:
    return person if isinstance(person, str) else f"{person['name']} <{person['email']}>"
