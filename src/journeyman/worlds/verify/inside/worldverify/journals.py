"""Checks of a journal: what an agent did in mail, chat and calendar, and what it was told before it did so.

The journal is kept outside the agent's reach by whoever ran its tools (see ``tasks/counterparts.py``): an object with
``seal`` and ``entries``, each with ``by`` (``agent``, or the address of somebody who answered), ``tool``, and
``arguments`` and ``stored`` of an act or ``marks`` of an answer.
"""

from __future__ import annotations

import hmac
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from .bundle import Bundle, MalformedDeliverable
from .comparing import items_of, normal, shown
from .outcome import Outcome

SENDING = ("mail_send_mail", "mail_reply_mail", "mail_reply_all_mail", "mail_forward_mail")
Entry = dict[str, Any]


def entries_of(bundle: Bundle, name: str) -> list[Entry]:
    """The lines of a journal. Raises MalformedDeliverable for a file that is none."""
    value = bundle.json(name)
    entries = value.get("entries") if isinstance(value, dict) else None
    if not isinstance(entries, list) or not all(isinstance(one, dict) for one in entries):
        raise MalformedDeliverable(f"{name} is no journal")
    return entries


def sealed(bundle: Bundle, params: dict[str, Any]) -> Outcome:
    """The journal was kept by whoever ran the tools. Params: ``file``; ``seal``: what only they know."""
    entries_of(bundle, params["file"])
    given = str(bundle.json(params["file"]).get("seal", ""))
    same = hmac.compare_digest(given.encode(), params["seal"].encode())
    return Outcome.when(same, "the journal carries the seal", "the journal carries another seal")


def obtained(bundle: Bundle, params: dict[str, Any]) -> Outcome:
    """What had to be on record was there before the first act of a kind.

    Params: ``file``; ``marks``: texts; ``before``?: an act (``tool``?, ``to``?: address of a receiver), which must have
    happened; without it the marks must stand there at all; ``credit``: ``all`` or ``share``.
    """
    entries = entries_of(bundle, params["file"])
    first = _first(entries, params["before"]) if "before" in params else len(entries)
    if first is None:
        return Outcome(0.0, "it was never done")
    known = {str(mark) for one in entries[:first] if one.get("by") != "agent" for mark in one.get("marks") or ()}
    missing = [f"{mark} was not obtained before" for mark in params["marks"] if mark not in known]
    total = len(params["marks"])
    share = (total - len(missing)) / total
    score = 1.0 if not missing else share if params.get("credit") == "share" else 0.0
    return Outcome.of(score, f"{total - len(missing)} of {total} on record in time", missing)


def events(bundle: Bundle, params: dict[str, Any]) -> Outcome:
    """The calendar ends with exactly these entries of the agent's, and none of others' was touched.

    Params: ``file``; ``events``: [{``summary``, ``start``, ``end`` (ISO 8601, UTC), ``people``: addresses,
    ``location``}]; ``needs``?: marks that must be on record before the first entry is made.
    """
    alive: dict[str, Entry] = {}
    findings = _too_early(bundle, params, {"tool": "calendar_create_event"})
    for one in _acts(entries_of(bundle, params["file"])):
        stored = one.get("stored") or {}
        if one["tool"] == "calendar_create_event":
            alive[str(stored.get("id"))] = {**(one.get("arguments") or {}), **stored}
        elif one["tool"] in ("calendar_update_event", "calendar_delete_event"):
            key = str((one.get("arguments") or {}).get("event_id"))
            if key not in alive:
                findings.append(f"an entry of somebody else was changed: {key[:40]}")
            elif one["tool"] == "calendar_delete_event":
                del alive[key]
            else:
                alive[key] |= one.get("arguments") or {}
    left = list(alive.values())
    for want in params["events"]:
        hit = next((one for one in left if not _differs(want, one)), None)
        if hit is not None:
            left.remove(hit)
        else:
            near = _differs(want, left[0]) if left else "there is none"
            findings.append(f"an entry is not as it should be: {near}")
    if len(alive) > len(params["events"]):
        findings.append(f"{len(alive)} entries, {len(params['events'])} were asked for")
    return Outcome.of(0.0 if findings else 1.0, f"{len(alive)} entries in the calendar", findings)


def _too_early(bundle: Bundle, params: dict[str, Any], act: dict[str, Any]) -> list[str]:
    if not params.get("needs"):
        return []
    found = obtained(bundle, {"file": params["file"], "marks": params["needs"], "before": act})
    return [] if found.score == 1.0 else [found.explain]


def _differs(want: dict[str, Any], event: Entry) -> str:
    """The first thing that is not as wanted; empty for nothing."""
    for key in ("summary", "location"):
        if key in want and normal(event.get(key)) != normal(want[key]):
            return f"{key} is {shown(event.get(key))}"
    for key in ("start", "end"):
        if instant(event.get(key)) != instant({"dateTime": want[key]}):
            return f"{key} is {shown((event.get(key) or {}).get('dateTime'))}"
    people = sorted(normal(one.get("email")) for one in event.get("attendees") or () if isinstance(one, dict))
    return "" if people == sorted(map(normal, want["people"])) else f"{len(people)} people are invited, or others"


def instant(value: Any) -> datetime | None:
    """A time of a calendar in UTC, which it is when it names no zone; None where it is none."""
    value = value if isinstance(value, dict) else {}
    try:
        moment = datetime.fromisoformat(str(value.get("dateTime")).replace("Z", "+00:00"))
        if moment.tzinfo is None:
            zone = str(value.get("timeZone") or "UTC")
            moment = moment.replace(tzinfo=UTC if zone in ("UTC", "Etc/UTC", "GMT") else ZoneInfo(zone))
        return moment.astimezone(UTC)
    except (ValueError, OSError, KeyError):
        return None


def mails(bundle: Bundle, params: dict[str, Any]) -> Outcome:
    """What went to people who are not of the talk: exactly these mails.

    Params: ``file``; ``known``: addresses that may be written to at any time; ``mails``: [{``to``, ``cc``: addresses,
    ``attachments``: paths, ``subject``: words that it contains}]; ``needs``?: marks that must be on record before the
    first of their receivers gets a mail.
    """
    known = {normal(one) for one in params["known"]}
    sent = [mail for mail in _sent(entries_of(bundle, params["file"])) if receivers_of(mail) - known]
    findings = [one for want in params["mails"] for one in _too_early(bundle, params, {"to": want["to"][0]})]
    for want in params["mails"]:
        hit = next((one for one in sent if not _unlike(want, one)), None)
        if hit is not None:
            sent.remove(hit)
        else:
            findings.append(f"no mail is as it should be: {_unlike(want, sent[0]) if sent else 'there is none'}")
    if sent:
        findings.append(f"{len(sent)} mails to people who were to get none, or another one")
    return Outcome.of(0.0 if findings else 1.0, f"{len(params['mails'])} mails to others", findings)


def _unlike(want: dict[str, Any], mail: Entry) -> str:
    for key in ("to", "cc"):
        if sorted(addresses(mail.get(key))) != sorted(map(normal, want[key])):
            return f"{key} is {shown(mail.get(key))}"
    if sorted(map(_path, mail.get("attachments") or ())) != sorted(map(_path, want["attachments"])):
        return f"{len(mail.get('attachments') or ())} files are attached, or others"
    return "" if normal(want["subject"]) in normal(mail.get("subject")) else "the subject is another one"


def only(bundle: Bundle, params: dict[str, Any]) -> Outcome:
    """The agent did nothing else: wrote as itself and to these people only, and used no other tool that leaves a trace.

    Params: ``file``; ``agent``: its address; ``people``: addresses; ``tools``: names of tools.
    """
    allowed, bad = {normal(one) for one in params["people"]}, []
    entries = entries_of(bundle, params["file"])
    bad += [f"{one['tool']} was used" for one in _acts(entries) if one.get("tool") not in params["tools"]]
    for mail in _sent(entries):
        bad += [f"{one} got a mail" for one in sorted(receivers_of(mail) - allowed)]
        if normal(mail.get("from_email")) != normal(params["agent"]):
            bad.append(f"a mail was sent as {shown(mail.get('from_email'))}")
    return Outcome.of(0.0 if bad else 1.0, f"{len(bad)} acts that were not to be done", bad)


def _acts(entries: list[Entry]) -> list[Entry]:
    return [one for one in entries if one.get("by") == "agent"]


def _sent(entries: list[Entry]) -> list[Entry]:
    """Mails of the agent as they were stored; what an answer of the tool did not tell is what was asked for."""
    found = []
    for one in _acts(entries):
        if one.get("tool") in SENDING:
            asked = one.get("arguments") or {}
            found.append({"to": asked.get("to_email"), **asked, **(one.get("stored") or {})})
    return found


def addresses(value: Any) -> list[str]:
    """Addresses of a field, which is a text or a list."""
    return items_of(value)


def receivers_of(mail: Entry) -> set[str]:
    """Everybody who got a mail."""
    return {address for key in ("to", "cc", "bcc") for address in addresses(mail.get(key))}


def _path(value: Any) -> str:
    return str(value).removeprefix("/ws/").removeprefix("/filesystem/").lstrip("/").lower()


def _first(entries: list[Entry], act: dict[str, Any]) -> int | None:
    """Place of the first act of a kind: ``tool``?, and ``to``?: an address that is among its receivers."""
    for number, one in enumerate(entries):
        if one.get("by") != "agent" or ("tool" in act and one.get("tool") != act["tool"]):
            continue
        if "to" not in act or (one.get("tool") in SENDING and normal(act["to"]) in receivers_of(_sent([one])[0])):
            return number
    return None
