"""TD1: a meeting arranged by mail with people who answer what they are asked, and who change their mind once.

What makes it hard: nothing is said unless it is asked for, the handbook decides how long the meeting is and who has to
agree first, and a change makes every agreement before it void.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any

from journeyman.tasks.counterparts import JOURNAL
from journeyman.worlds.curriculum import Knobs
from journeyman.worlds.simulate.calendars import add_working_days
from journeyman.worlds.template import Answer, Bound, Files, Lost, Solving, ToolCall, Unbindable, Wrong
from journeyman.worlds.templates import reading
from journeyman.worlds.templates.dialogue import speaking
from journeyman.worlds.templates.dialogue.speaking import CONFIRM, Stage, day_forms, length_forms, rule, time_forms
from journeyman.worlds.verify import Check

if TYPE_CHECKING:
    from journeyman.worlds.office import Office

HOSTS = ("ceo", "cfo", "coo", "cto", "chro")
GUESTS = (
    "gc",
    "cco",
    "controller",
    "treasurer",
    "counsel",
    "procurement",
    "sales",
    "marketing",
    "data",
    "hrbp",
    "plant",
)
SUBJECTS = (
    "pension plan",
    "new office",
    "price list",
    "storage costs",
    "travel policy",
    "spare parts",
    "order backlog",
)
PLACES = ("Room 1", "Room 4", "Library", "Board room", "Canteen")
TOPICS = {
    "kind": ("kind", "type", "sort"),
    "subject": ("subject", "about", "topic", "title", "purpose"),
    "people": ("people", "who", "participants", "attendees", "attend", "whom", "guests"),
    "day": ("day", "date", "when"),
    "time": ("time", "hour", "what o'clock", "when"),
    "place": ("place", "where", "room", "location", "venue"),
}
"""What can be asked for -> words by which it is asked."""

ENTRY = {"tool": "calendar_create_event"}


@dataclass(frozen=True)
class TD1:
    """See the module."""

    id: str = "TD1"
    domain: str = "dialogue"
    title: str = "meeting arranged by mail with people who answer and change their mind"
    traps: tuple[str, ...] = ()

    def bind(self, office: Office, rng: random.Random, knobs: Knobs) -> Bound:
        """See ``Template.bind``."""
        host = office.roles[rng.choice(HOSTS)]
        guests = [office.roles[role] for role in rng.sample(GUESTS, 2 + min(2, knobs.fan_out // 2 + knobs.hops // 3))]
        lengths = {row["name"]: int(row["value"])
                   for row in office.truth.rows("SELECT * FROM assumption WHERE model = 'handbook'")}  # fmt: skip
        if not lengths or len({one["email"] for one in (host, *guests)}) != 1 + len(guests):
            raise Unbindable("no handbook, or one person has two roles")
        off = {row["date"] for row in office.truth.rows("SELECT date FROM holiday")}
        today = date.fromisoformat(office.today)
        first, second = sorted(rng.sample(range(4, 15), 2))
        days = [add_working_days(today, ahead, off).isoformat() for ahead in (first, second)]
        if rng.random() < 0.4:
            days.reverse()
        kind = rng.choice(sorted(lengths))
        told = {
            "kind": kind, "subject": rng.choice(SUBJECTS), "people": [one["email"] for one in guests], "day": days[0],
            "then": days[1], "time": f"{rng.randrange(9, 15):02d}:{rng.choice((0, 30)):02d}",
            "place": rng.choice(PLACES), "minutes": lengths[kind],
        }  # fmt: skip
        told["end"] = speaking.later(told["time"], lengths[kind])
        ask = {"host": host["email"], "agent": f"assistant@{office.setting.domain}"}
        instruction = _instruction(office, ask, host["name"], rng)
        seal = speaking.seal_of(office.id, f"{instruction} {told}", rng.getrandbits(32))
        script = _script(ask, told, host, guests, seal)
        answer = _answer(ask, told)
        wrong = _wrong(ask, told, answer)
        return Bound(
            self.id, self.domain, office.id, instruction, ask, answer, _checks(ask, told, seal), (JOURNAL,), wrong,
            trap_blind=wrong[0].answer, single={"acts": answer["acts"][: len(TOPICS)]},
            facts=(f"handbook:{kind}",), reads=(office.of_kind("handbook")[0].path,), knobs=knobs, secrets=(seal,),
            notes={"people": len(guests), "minutes": lengths[kind]}, counterparts=script,
        )  # fmt: skip

    def write(self, bound: Bound, answer: Answer, world: Files, form: str = "plain") -> dict[str, bytes]:
        """See ``Template.write``; the journal of the talk that an answer's acts lead to."""
        stage, right = Stage(bound.counterparts), bound.answer["acts"][-1]
        told = {"time": right["start"][11:], "end": right["end"][11:], "place": right["location"]}
        for act in answer["acts"]:
            if act.get("summary") is not None:
                stage.event(_event(act))
            elif act.get("to"):
                stage.mail(str(act["to"]), _words(act, told))
        return {JOURNAL: stage.journal()}

    def solve(self, ask: Mapping[str, Any]) -> Solving:
        """See ``Template.solve``."""
        rules = yield from speaking.handbook()
        told: dict[str, Any] = {}
        for topic in TOPICS:
            told[topic] = (yield from _said(ask, ask["host"], {"asks": topic}, told)).splitlines()[0]
        told["people"] = re.findall(r"[\w.-]+@[\w.-]+\w", told["people"])
        told["day"], told["time"] = (_found(r"\d{4}-\d\d-\d\d", told["day"]), _found(r"\d\d:\d\d", told["time"]))
        told |= {key: told[key].split(": ", 1)[-1].strip(". ") for key in ("kind", "subject", "place")}
        told["end"] = speaking.later(told["time"], int(_found(rf"{told['kind']}\W+(\d+)", rules)))
        yield from _agreed(ask, told)
        said = yield from _said(ask, ask["host"], {"confirms": told["day"]}, told)
        if change := re.search(r"make it (\d{4}-\d\d-\d\d)", said):
            told["day"] = change[1]
            yield from _agreed(ask, told)
            said = yield from _said(ask, ask["host"], {"confirms": told["day"]}, told)
        if not said.startswith("Confirmed"):
            raise Lost(f"not confirmed: {said[:80]}")
        yield ToolCall("calendar_create_event", _event(_entry(ask, told, told["day"])))


def _found(pattern: str, text: str) -> str:
    match = re.search(pattern, text)
    if match is None:
        raise Lost(f"no {pattern} in {text[:60]!r}")
    return match[match.lastindex or 0]


def _said(ask: Mapping[str, Any], person: str, act: Mapping[str, Any], told: Mapping[str, Any]) -> reading.Reading:
    return (yield from speaking.ask(ask["agent"], person, "Meeting", _words(act, told)))


def _agreed(ask: Mapping[str, Any], told: Mapping[str, Any]) -> reading.Reading:
    for person in told["people"]:
        said = yield from _said(ask, person, {"day": told["day"]}, told)
        if not said.startswith("Yes"):
            raise Lost(f"{person} says {said[:60]}")


def _words(act: Mapping[str, Any], told: Mapping[str, Any]) -> str:
    """The text of a mail: a question, a day that is put to somebody, or what is to be confirmed."""
    if act.get("asks"):
        return f"Could you tell me the {act['asks']} of the meeting?"
    if act.get("confirms"):
        return f"Please confirm: {act['confirms']} from {told['time']} to {told['end']} UTC, {told['place']}."
    return f"Would {act.get('day')} at {told['time']} UTC suit you?"


def _entry(ask: Mapping[str, Any], told: Mapping[str, Any], day: str) -> dict[str, Any]:
    """The act that makes the entry."""
    return {
        "summary": f"{told['kind']}: {told['subject']}", "start": f"{day}T{told['time']}",
        "end": f"{day}T{told['end']}", "location": told["place"],
        "people": [ask["host"], *told["people"]],
    }  # fmt: skip


def _event(act: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of the calendar's tool."""
    return {
        "summary": act.get("summary"), "start": {"dateTime": f"{act.get('start')}:00Z"},
        "end": {"dateTime": f"{act.get('end')}:00Z"}, "location": act.get("location"),
        "attendees": [{"email": str(one)} for one in act.get("people") or ()],
    }  # fmt: skip


def _script(
    ask: Mapping[str, Any], told: Mapping[str, Any], host: Mapping[str, str], guests: Sequence[Mapping[str, str]],
    seal: str,
) -> dict[str, Any]:  # fmt: skip
    """Who answers, and by which rules."""
    days, time = (told["day"], told["then"]), told["time"]
    agreed = [[f"agrees:{one}:{day}" for one in told["people"]] for day in days]
    asked = [
        [CONFIRM, day_forms(day, [time]), time_forms(time, [day]), length_forms(told["minutes"], time), [told["place"]]]
        for day in days
    ]
    people = ", ".join(f"{one['name']} ({one['email']})" for one in guests)
    says = {"kind": f"The kind is this: {told['kind']}.", "subject": f"The subject is this: {told['subject']}.",
            "people": f"Besides myself: {people}.", "time": f"At {time} UTC.",
            "place": f"The place is this: {told['place']}."}  # fmt: skip
    rules = [
        rule(asked[0], f"One thing has changed: please make it {days[1]}. Everything else stays as I said.", "changed",
             given=agreed[0], unless=["changed"], is_alone=True),
        rule(asked[1], "Confirmed.", "confirmed", given=["changed", *agreed[1]], is_alone=True),
        rule([CONFIRM], "I cannot confirm that. Are day, time, length and place all there and right, and have all the"
             " others agreed to this day and time?", is_alone=True),
        *(rule([TOPICS[topic]], text, f"said:{topic}") for topic, text in says.items()),
        rule([TOPICS["day"]], f"On {days[0]}.", "said:day", unless=["changed"]),
        rule([TOPICS["day"]], f"On {days[1]}.", given=["changed"]),
    ]  # fmt: skip
    known = [{"address": host["email"], "name": host["name"], "rules": rules,
              "otherwise": "What would you like to know about the meeting?"}]  # fmt: skip
    for one in guests:
        put = [[day_forms(day, [time]), time_forms(time, [day])] for day in days]
        answers = [
            rule(put[1], "Yes, that suits me.", f"agrees:{one['email']}:{days[1]}", given=["changed"], is_alone=True),
            rule(put[0], "Yes, that suits me.", f"agrees:{one['email']}:{days[0]}", unless=["changed"], is_alone=True),
        ]
        known.append({"address": one["email"], "name": one["name"], "rules": answers,
                      "otherwise": "Tell me the day and the time that were asked for, and I will say."})  # fmt: skip
    return {"agent": ask["agent"], "seal": seal, "people": known}


def _answer(ask: Mapping[str, Any], told: Mapping[str, Any]) -> Answer:
    acts: list[dict[str, Any]] = [{"to": ask["host"], "asks": topic} for topic in TOPICS]
    for day in (told["day"], told["then"]):
        acts += [{"to": one, "day": day} for one in told["people"]]
        acts.append({"to": ask["host"], "confirms": day})
    return {"acts": [*acts, _entry(ask, told, told["then"])]}


def _wrong(ask: Mapping[str, Any], told: Mapping[str, Any], answer: Answer) -> tuple[Wrong, ...]:
    acts, entry, guests = answer["acts"][:-1], answer["acts"][-1], len(told["people"])
    once = acts[: len(TOPICS) + guests + 1]
    found = {
        "stale-version": [*once, _entry(ask, told, told["day"])],
        "the others not asked again": [*once, acts[-1], entry],
        "entered before it was confirmed": [*acts[:-1], entry, acts[-1]],
        "never confirmed": [*acts[: len(TOPICS)], entry],
        "swapped-entity": [*acts, {**entry, "people": [*entry["people"][:-1], ask["agent"]]}],
        "without the one who asked": [*acts, {**entry, "people": entry["people"][1:]}],
        "another length": [*acts, {**entry, "end": f"{entry['start'][:11]}{speaking.later(entry['end'][11:], 15)}"}],
        "without the kind": [*acts, {**entry, "summary": told["subject"]}],
        "entered twice": [*acts, _entry(ask, told, told["day"]), entry],
    }
    return tuple(Wrong(name, {"acts": made}, "entry") for name, made in found.items())


def _checks(ask: Mapping[str, Any], told: Mapping[str, Any], seal: str) -> tuple[Check, ...]:
    entry = _entry(ask, told, told["then"])
    again = [f"agrees:{one}:{told['then']}" for one in told["people"]]
    event = {"summary": entry["summary"], "start": f"{entry['start']}:00Z", "end": f"{entry['end']}:00Z",
             "location": entry["location"], "people": entry["people"]}  # fmt: skip
    people = [ask["host"], *told["people"], ask["agent"]]
    return (
        Check("journal", "journal.sealed", {"file": JOURNAL, "seal": seal}, kind="gate"),
        Check("nothing else done", "journal.only", {
            "file": JOURNAL, "agent": ask["agent"], "people": people, "tools": [
                "mail_send_mail", "mail_reply_mail", "mail_reply_all_mail", "mail_forward_mail",
                "calendar_create_event", "calendar_update_event", "calendar_delete_event",
            ],
        }, kind="gate", no_op="pass"),
        Check("entry", "journal.events", {"file": JOURNAL, "events": [event], "needs": ["confirmed", *again]},
              weight=0.7),
        Check("confirmed first", "journal.obtained", {"file": JOURNAL, "marks": ["changed", "confirmed"],
                                                      "before": ENTRY}, weight=0.12, stage="intermediate"),
        Check("agreed first", "journal.obtained", {"file": JOURNAL, "marks": again, "before": ENTRY}, weight=0.08,
              stage="intermediate"),
        Check("asked", "journal.obtained", {"file": JOURNAL, "marks": [f"said:{topic}" for topic in TOPICS],
                                            "credit": "share"}, weight=0.1, stage="intermediate"),
    )  # fmt: skip


def _instruction(office: Office, ask: Mapping[str, Any], host: str, rng: random.Random) -> str:
    opener = rng.choice((
        f"{host} of {office.setting.company} wants a meeting and has said no more than that.",
        f"You assist the management of {office.setting.company}. {host} needs a meeting to be arranged.",
        f"{host} asks the assistant's desk of {office.setting.company} to arrange a meeting.",
    ))  # fmt: skip
    return f"""{opener}

Arrange it as the company's handbook for assistants (folder people) says, and enter it in the calendar. Find out by mail
what you need to know:

- you write as {ask["agent"]}
- begin with {ask["host"]}
- people answer what you ask and nothing else, and what they answer is in the mailbox at once
- write to nobody who has no part in the meeting

Today is {office.today}, and all times are UTC.

There is no file to leave: your mails and the entry in the calendar are the result. An entry made before the handbook
allows it does not count.
"""
