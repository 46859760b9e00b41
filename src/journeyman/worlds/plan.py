"""What is in a world, before it is written: documents, mails, messages, meetings, and the facts they state.

Everything names the event it came from. ``Rendering`` is the pivot of verification: where a fact can be read.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from journeyman.worlds.content import Content, Mail, Meeting, Message, mark


@dataclass(frozen=True)
class Fact:
    """Something that is true, as a value with a unit.

    Attributes:
        fact_id: e.g. ``revenue:group:FY2025`` or ``clause:K012:7``.
        subject, predicate: of what, and what about it.
        value: number, text or ISO date.
        unit: ``currency``, ``ratio``, ``percent``, ``count``, ``days``, ``date``, ``text``, ...
        currency: code, for amounts.
        scale: 1, 1_000 or 1_000_000: what one unit of ``value`` stands for.
        as_of: ISO date the value is about.
        known_from: ISO date from which it could be known.
        supersedes: fact that it replaces.
        source_rows: rows of the truth it comes from, ``table:id``.
    """

    fact_id: str
    subject: str
    predicate: str
    value: str | int | float
    unit: str = "text"
    currency: str = ""
    scale: int = 1
    as_of: str = ""
    known_from: str = ""
    supersedes: str = ""
    source_rows: tuple[str, ...] = ()


@dataclass(frozen=True)
class Document:
    """A file as it will be written.

    Attributes:
        path: in the world, ``finance/annual_report_fy2025.pdf``; the suffix decides the format.
        kind: what it is, e.g. ``annual_report``, ``contract``, ``bid_letter``.
        version: ``1``, ``draft 2``, ``signed``, ...
        as_of: ISO date that its content is about.
        known_from: ISO date it came into being.
        author: name of a person or firm.
        supersedes: path of the document it replaces.
        event_id: event that emitted it.
        content: what it says.
        subject: what it is about, e.g. ``contract:K012``, so that a template finds it.
    """

    path: str
    kind: str
    version: str
    as_of: str
    known_from: str
    author: str
    supersedes: str
    event_id: str
    content: Content
    subject: str = ""


@dataclass(frozen=True)
class Rendering:
    """Where a fact can be read: ``locator`` is an address of ``documents/`` in the file at ``path``.

    ``path`` is a key of ``Office.files``, or ``apps/`` and a key of ``Office.apps``. In PDFs the address is that of the
    page for prose and of the cell for tables; facts on image-only pages have the address of the page.
    """

    path: str
    fact_id: str
    surface: str
    locator: str


@dataclass(frozen=True)
class Planted:
    """A trap in a world.

    Attributes:
        trap: ``T1`` to ``T21``.
        site: what it was planted in, e.g. ``contract:K012:notice_days``; says which templates it concerns.
        fact_ids: facts with the right values; each must be rendered somewhere readable.
        locators: (path, address) of the places that disarm the trap; filled when the world is written.
        wrong: name -> what a solver gets by falling for it; the automatic negative controls.
        right: name -> the right value under the same names.
        bait_facts: facts with the wrong values, as far as documents state them.
        bait: (path, address) of the places that mislead.
    """

    trap: str
    site: str
    fact_ids: tuple[str, ...]
    wrong: dict[str, str | int | float]
    right: dict[str, str | int | float]
    bait_facts: tuple[str, ...] = ()
    locators: tuple[tuple[str, str], ...] = ()
    bait: tuple[tuple[str, str], ...] = ()


@dataclass
class Plan:
    """Everything that will be written. Adding twice under one path or id is an error of the generator."""

    documents: dict[str, Document] = field(default_factory=dict)
    facts: dict[str, Fact] = field(default_factory=dict)
    mails: list[Mail] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    meetings: list[Meeting] = field(default_factory=list)
    planted: list[Planted] = field(default_factory=list)
    source_of: dict[str, str] = field(default_factory=dict)

    def add(self, document: Document) -> Document:
        """Add a file."""
        assert document.path not in self.documents, f"{document.path} is planned twice"
        assert document.event_id, f"{document.path} has no event"
        self.documents[document.path] = document
        self.source_of[document.path] = document.event_id
        return document

    def revise(self, path: str, content: Content) -> None:
        """Give a planned file other content: what trap operators do."""
        self.documents[path] = replace(self.documents[path], content=content)

    def fact(self, fact: Fact) -> Fact:
        """Record a fact; the same fact may be recorded again."""
        known = self.facts.setdefault(fact.fact_id, fact)
        assert known == fact, f"{fact.fact_id} has two values: {known.value!r} and {fact.value!r}"
        return known

    def state(self, fact: Fact, surface: str) -> str:
        """Record a fact and give the marked text that states it."""
        self.fact(fact)
        return mark(fact.fact_id, surface)

    def mail(self, event_id: str, mail: Mail) -> Mail:
        """Add a mail that an event caused."""
        self.mails.append(mail)
        self.source_of[mail.message_id] = event_id
        return mail

    def say(self, event_id: str, message: Message) -> Message:
        """Add a chat message that an event caused."""
        self.messages.append(message)
        self.source_of[f"#{message.channel}/{message.ts}"] = event_id
        return message

    def meet(self, event_id: str, meeting: Meeting) -> Meeting:
        """Add a calendar item that an event caused."""
        self.meetings.append(meeting)
        self.source_of[meeting.uid] = event_id
        return meeting

    def of_kind(self, kind: str, subject: str = "") -> list[Document]:
        """Documents of a kind (about ``subject``, if given), by path."""
        found = [one for one in self.documents.values() if one.kind == kind and subject in ("", one.subject)]
        return sorted(found, key=lambda one: one.path)
