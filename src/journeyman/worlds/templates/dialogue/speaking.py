"""What dialogues share: how people write days and times, rules of a script, and a talk played without tools.

``Stage`` plays the mails of an answer, right or wrong, against the script, so a journal comes out as the tools would
have kept it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Any

from journeyman.digest import sha256
from journeyman.tasks.counterparts import Script, Talk, answered, entry, journal_bytes
from journeyman.worlds.simulate.setting import MONTHS
from journeyman.worlds.template import Lost, ToolCall
from journeyman.worlds.templates import reading

CONFIRM = ("confirm", "confirmation", "please approve", "is that right", "is this right")
MAIL = "mail_send_mail"


def rule(when: Sequence[Sequence[str]], says: str, *marks: str, **more: Any) -> dict[str, Any]:
    """A rule as ``tasks.counterparts`` reads it; ``more`` may hold ``given``, ``unless``, ``without``, ``is_alone``."""
    return {"when": [list(group) for group in when], "says": says, "marks": list(marks), **more}


def day_forms(day: str, times: Iterable[str] = ()) -> list[str]:
    """How a day is written in mails.

    Args:
        day: ISO 8601.
        times: ``HH:MM``, for days and times in one word.
    """
    when = date.fromisoformat(day)
    month, number = MONTHS[when.month - 1], when.day
    suffix = "th" if number in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    numbers = dict.fromkeys((str(number), f"{number:02d}", f"{number}{suffix}", f"{number}."))
    forms = [f"{one} {name}" for one in numbers for name in (month, month[:3], f"of {month}")]
    forms += [f"{name} {one}" for one in numbers for name in (month, month[:3]) if not one.endswith(".")]
    return [day, *forms, when.strftime("%d.%m.%Y"), f"{number}.{when.month}.{when.year}", *_joined(day, times)]


def time_forms(time: str, days: Iterable[str] = ()) -> list[str]:
    """How a time of day, ``HH:MM``, is written in mails."""
    hour, minute = map(int, time.split(":"))
    half = "am" if hour < 12 else "pm"
    twelve = (hour + 11) % 12 + 1
    forms = [
        time,
        f"{hour}:{minute:02d}",
        f"{hour:02d}.{minute:02d}",
        f"{hour}.{minute:02d}",
        f"{hour:02d}{minute:02d}",
    ]
    forms += [
        f"{clock}{gap}{half}" for clock in (f"{twelve}:{minute:02d}", f"{twelve}.{minute:02d}") for gap in ("", " ")
    ]
    if minute == 0:
        forms += [f"{twelve} {half}", f"{twelve}{half}", f"{hour} o'clock", f"{hour}h", f"{hour} h"]
    return [*dict.fromkeys(forms), *(form for day in days for form in _joined(day, [time]))]


def _joined(day: str, times: Iterable[str]) -> list[str]:
    return [f"{day}T{time}{seconds}{zone}" for time in times for seconds in ("", ":00") for zone in ("", "Z")]


def length_forms(minutes: int, start: str) -> list[str]:
    """How a length is written, or the time at which it ends."""
    forms = [f"{minutes} minutes", f"{minutes} min", f"{minutes} mins", f"{minutes}-minute", f"{minutes}min"]
    if minutes % 30 == 0:
        hours = f"{minutes / 60:g}"
        forms += [f"{hours} hours", f"{hours} hour", f"{hours}h", f"{hours} h", f"{hours}-hour"]
    words = {30: ("half an hour",), 45: ("three quarters of an hour",), 60: ("one hour", "an hour"),
             90: ("an hour and a half", "one and a half hours"), 120: ("two hours",),
             150: ("two and a half hours",)}  # fmt: skip
    return [*forms, *words.get(minutes, ()), *time_forms(later(start, minutes))]


def later(time: str, minutes: int) -> str:
    """``HH:MM`` so many minutes after a time of day."""
    return (datetime.fromisoformat(f"2000-01-01T{time}") + timedelta(minutes=minutes)).strftime("%H:%M")


class Stage:
    """A talk without tools. State: the journal so far."""

    def __init__(self, script: Mapping[str, Any]) -> None:
        self._script = Script.of(script)
        self._talk = Talk(self._script)
        self.entries: list[dict[str, Any]] = []

    def mail(self, to: str, body: str, *, subject: str = "Question", **more: Any) -> None:
        """The agent sends a mail, and whoever it reaches answers."""
        asked = {"from_email": self._script.agent, "to_email": [to], "subject": subject, "body": body, **more}
        stored = {"from_email": self._script.agent, "to": [to], "subject": subject, "body": body,
                  "cc": more.get("cc", []), "attachments": more.get("attachments", []),
                  "mail_id": f"mail-{len(self.entries)}"}  # fmt: skip
        self.entries.append(entry("agent", MAIL, arguments=asked, stored=stored))
        self.entries += [line for _, line in answered(self._talk, [to, *stored["cc"]], body)]

    def event(self, fields: Mapping[str, Any]) -> None:
        """The agent makes an entry in the calendar."""
        stored = {"id": f"event-{len(self.entries)}", **fields}
        self.entries.append(entry("agent", "calendar_create_event", arguments=dict(fields), stored=stored))

    def journal(self) -> bytes:
        """What was said and done."""
        return journal_bytes(self._script, self.entries)


def seal_of(world: str, instruction: str, number: int) -> str:
    """The seal of a task's journal."""
    return sha256(f"{world} {number} {instruction}".encode())[:32]


def ask(agent: str, person: str, subject: str, body: str) -> reading.Reading:
    """Send a mail to somebody and read the answer. Raises Lost when none came."""
    sent = json.loads((yield ToolCall(MAIL, {"from_email": agent, "to_email": [person], "subject": subject,
                                             "body": body})))["sent"]  # fmt: skip
    hits = yield ToolCall("mail_search_mail", {"from_email": person, "thread_id": sent["thread_id"]})
    found = [json.loads(line) for line in hits.splitlines() if line.startswith("{")]
    if len(found) != 1:
        raise Lost(f"{len(found)} answers of {person}")
    full = json.loads((yield ToolCall("mail_read_mail", {"mail_id": found[0]["mail_id"]})))
    return str(full["body"])


def handbook() -> reading.Reading:
    """Text of the handbook for assistants. Raises Lost."""
    paths = yield from reading.list_files("*handbook*assistants*")
    if len(paths) != 1:
        raise Lost(f"{len(paths)} handbooks")
    return (yield from reading.document_text(paths[0]))
