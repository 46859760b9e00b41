"""People of a task who answer by mail: a script, read from the task's tests, that no agent sees.

``tests/counterparts.json`` says who they are and by which rules they answer. What they say depends on what they are
told and on nothing else: no clock, no chance, no model. Whoever runs the agent's tools plays them, and keeps a journal
of what was said and done, in order. The journal is delivered with the agent's files and carries the script's seal,
which an agent cannot know.

    {"agent": "assistant@a.example", "seal": "...", "people": [{"address": "ann@a.example", "name": "Ann Alder",
     "rules": [{"when": [["day", "date"]], "says": "Tuesday.", "marks": ["said:day"]}], "otherwise": "What about it?"}]}
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from journeyman.errors import InputError

FILE = "counterparts.json"
"""Below ``tests``."""

JOURNAL = "journal.json"
"""Name of the journal among the deliverables; a file of this name that an agent left does not count."""

MAX_ANSWERS = 15
"""Mails that one person answers; after that they are silent."""


@dataclass(frozen=True)
class Rule:
    """One way to answer.

    Attributes:
        when: groups of words; of each group one must be said.
        without: words of which none may be said.
        given: marks that must have been made before.
        unless: marks of which none may have been made.
        says: the answer.
        marks: what is on record once it was said, e.g. ``confirmed``.
        is_alone: no later rule is looked at.
    """

    when: tuple[tuple[str, ...], ...]
    says: str
    without: tuple[str, ...] = ()
    given: tuple[str, ...] = ()
    unless: tuple[str, ...] = ()
    marks: tuple[str, ...] = ()
    is_alone: bool = False

    def fits(self, text: str, marks: Iterable[str]) -> bool:
        """Whether this rule answers a text (see ``plain``) after these marks."""
        known = set(marks)
        return (
            known.issuperset(self.given)
            and not known.intersection(self.unless)
            and all(any(says(text, word) for word in group) for group in self.when)
            and not any(says(text, word) for word in self.without)
        )


@dataclass(frozen=True)
class Person:
    """Somebody who answers; ``otherwise`` is said when no rule fits."""

    address: str
    name: str
    rules: tuple[Rule, ...]
    otherwise: str


@dataclass(frozen=True)
class Script:
    """Everybody who answers, the address under which the agent writes, and the seal of the journal."""

    agent: str
    people: Mapping[str, Person]
    seal: str

    @classmethod
    def of(cls, document: Any, where: str = FILE) -> Script:
        """Read a script. Raises InputError that names the field."""
        try:
            people = [
                Person(
                    str(one["address"]).lower(), str(one["name"]), tuple(_rule(rule) for rule in one["rules"]),
                    str(one["otherwise"]),
                )
                for one in document["people"]
            ]  # fmt: skip
            return cls(str(document["agent"]).lower(), {one.address: one for one in people}, str(document["seal"]))
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(where, f"is no script of counterparts: {error!r}", hint="see docs/worlds.md") from error


def _rule(value: Mapping[str, Any]) -> Rule:
    groups = tuple(tuple(map(str, group)) for group in value["when"])
    lists = {key: tuple(map(str, value.get(key, ()))) for key in ("without", "given", "unless", "marks")}
    return Rule(groups, str(value["says"]), **lists, is_alone=bool(value.get("is_alone", False)))


def load_script(task: Path) -> Script | None:
    """The script of a task's directory; None where nobody answers. Raises InputError for a file that is none."""
    path = task / "tests" / FILE
    if not path.is_file():
        return None
    try:
        return Script.of(json.loads(path.read_bytes()), str(path))
    except ValueError as error:
        raise InputError(str(path), f"is no JSON: {error}") from error


@dataclass(frozen=True)
class Answer:
    """What somebody said, and what is on record since."""

    person: str
    text: str
    marks: tuple[str, ...]


class Talk:
    """A conversation with everybody of a script. State: the marks that were made, and how often each has answered."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.marks: list[str] = []
        self._answers: Counter[str] = Counter()

    def hear(self, address: str, text: str) -> Answer | None:
        """What the person with this address says to a mail of the agent; None when nobody answers."""
        person = self.script.people.get(address.lower())
        if person is None or self._answers[person.address] >= MAX_ANSWERS:
            return None
        self._answers[person.address] += 1
        said, heard = [], plain(text)
        for rule in person.rules:
            if rule.fits(heard, self.marks):
                said.append(rule)
                if rule.is_alone:
                    break
        marks = tuple(mark for rule in said for mark in rule.marks)
        self.marks += marks
        return Answer(person.address, "\n".join(rule.says for rule in said) or person.otherwise, marks)


def plain(text: str) -> str:
    """A text as rules compare it: without quoted lines, case and white space."""
    own = [line for line in text.splitlines() if not line.lstrip().startswith(">")]
    return " ".join(" ".join(own).casefold().split())


def says(text: str, words: str) -> bool:
    """Whether a plain text holds these words as whole words."""
    return bool(re.search(rf"(?<!\w){re.escape(plain(words))}(?!\w)", text))


def entry(by: str, tool: str, **facts: Any) -> dict[str, Any]:
    """A line of the journal: who did what with which tool."""
    return {"by": by, "tool": tool, **facts}


def answered(talk: Talk, receivers: Iterable[str], text: str) -> list[tuple[Answer, dict[str, Any]]]:
    """What the receivers of a mail answer, each with its line of the journal."""
    answers = [talk.hear(one, text) for one in dict.fromkeys(one.lower() for one in receivers)]
    return [(one, entry(one.person, "mail_send_mail", marks=list(one.marks), body=one.text)) for one in answers if one]


def journal_bytes(script: Script, entries: Iterable[Mapping[str, Any]]) -> bytes:
    """The journal as it is delivered."""
    value = {"seal": script.seal, "entries": [dict(one) for one in entries]}
    return (json.dumps(value, ensure_ascii=False, indent=1) + "\n").encode()
