"""calendar: events as records; those of ics files beside them are read, and become records when they are changed."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from .kinds import need_parsers
from .state import found, load, new_id, now, store
from .workspace import Refused, Workspace

FIELDS = ("summary", "description", "start", "end", "location", "attendees", "colorId", "reminders", "recurrence")


def _home(workspace: Workspace) -> Path:
    return workspace.apps / "calendar"


def _state(workspace: Workspace) -> dict[str, Any]:
    """``events`` (records) and ``deleted`` (ids of events that ics files still hold)."""
    state: dict[str, Any] = load(_home(workspace) / "events.json", {})
    return {"events": list(state.get("events", [])), "deleted": list(state.get("deleted", []))}


def _events(workspace: Workspace) -> list[dict[str, Any]]:
    """Every event by its start."""
    state = _state(workspace)
    known = {one["id"] for one in state["events"]} | set(state["deleted"])
    read = [one for one in _imported(_home(workspace)) if one["id"] not in known]
    return sorted([*state["events"], *read], key=lambda one: (_instant(one.get("start")), str(one.get("id"))))


def _imported(home: Path) -> list[dict[str, Any]]:
    paths = sorted(home.glob("**/*.ics")) if home.is_dir() else []
    if not paths:
        return []
    need_parsers()
    from officedocs import open_document

    records = []
    for path in paths:
        for node in open_document(path.read_bytes(), path.name).walk():
            if node.kind == "event":
                facts = node.attributes
                records.append(
                    {
                        "id": node.address.removeprefix("event:"),
                        "summary": facts.get("summary") or node.text,
                        **{key: facts[key] for key in ("description", "location") if facts.get(key)},
                        "start": _when_of(facts.get("start")),
                        "end": _when_of(facts.get("end")),
                        **{key: value for key, value in facts.items() if key in ("attendees", "recurrence", "rule")},
                    }
                )
    return records


def _when_of(value: Any) -> dict[str, str]:
    """A time of officedocs as a record's time."""
    if isinstance(value, dict):
        text = str(value.get("value") or value.get("time") or value.get("local") or "")
        zone = {"timeZone": str(value["zone"])} if value.get("zone") else {}
    else:
        text, zone = str(value or ""), {}
    return {"date": text} if len(text) == 10 else {"dateTime": text, **zone}


def _instant(value: Any) -> float:
    """Seconds since 1970 of a record's time; 0 when it has none, so that it is listed first."""
    value = value if isinstance(value, dict) else {}
    try:
        if value.get("date"):
            day = date.fromisoformat(str(value["date"]))
            return datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()
        moment = datetime.fromisoformat(str(value.get("dateTime", "")).replace("Z", "+00:00"))
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=ZoneInfo(str(value["timeZone"])) if value.get("timeZone") else UTC)
        return moment.timestamp()
    except (ValueError, KeyError, OSError):
        return 0.0


def _checked(event: dict[str, Any]) -> dict[str, Any]:
    """The event when its times hold together. Raises Refused."""
    for key in ("start", "end"):
        value = event.get(key) or {}
        if not value.get("date") and not value.get("dateTime"):
            raise Refused(f"{key} needs dateTime or date")
        if value.get("timeZone"):
            try:
                ZoneInfo(str(value["timeZone"]))
            except (ValueError, KeyError, OSError) as error:
                raise Refused(f"{key}.timeZone {value['timeZone']!r} is no zone; write e.g. Europe/Vienna") from error
        if not _instant(value):
            raise Refused(f"{key} is {json.dumps(value)}; write ISO 8601, e.g. 2026-03-01T09:00:00+01:00")
    if bool(event["start"].get("date")) != bool(event["end"].get("date")):
        raise Refused("start and end must both be days (date) or both times (dateTime)")
    if _instant(event["end"]) < _instant(event["start"]):
        raise Refused("the event ends before it starts")
    for rule in event.get("recurrence") or ():
        if not str(rule).upper().startswith(("RRULE:", "EXDATE", "RDATE", "EXRULE:")):
            raise Refused(f"{rule!r} is no rule; write e.g. RRULE:FREQ=WEEKLY;COUNT=4")
    return event


def list_events(workspace: Workspace, limit: int = 50, offset: int = 0) -> str:
    """A line an event, by start."""
    events = _events(workspace)
    if offset and offset >= len(events):
        raise Refused(f"there are {len(events)} events, none at offset {offset}")
    keys = ("id", "summary", "start", "end", "location", "recurrence")
    lines = [
        json.dumps({key: one[key] for key in keys if one.get(key)}, ensure_ascii=False)
        for one in events[offset : offset + limit]
    ]
    return "\n".join([f"{len(events)} events", *lines])


def read_event(workspace: Workspace, event_id: str) -> dict[str, Any]:
    """The whole record."""
    return found(_events(workspace), "id", event_id, "event", "calendar_list_events")


def _stored(workspace: Workspace, event: dict[str, Any]) -> dict[str, Any]:
    state = _state(workspace)
    state["events"] = [*(one for one in state["events"] if one["id"] != event["id"]), event]
    store(workspace, _home(workspace) / "events.json", state)
    return read_event(workspace, event["id"])


def create_event(
    workspace: Workspace, summary: str, start: dict[str, Any], end: dict[str, Any], **fields: Any
) -> dict[str, Any]:
    """A new event; the answer is the record as stored."""
    count = len(_state(workspace)["events"])
    stamp = now()
    event: dict[str, Any] = {
        "id": new_id("event-", count, summary, start),
        "summary": summary,
        "start": start,
        "end": end,
    }
    event.update({key: fields[key] for key in FIELDS if fields.get(key) is not None})
    for attendee in event.get("attendees") or ():
        attendee.setdefault("responseStatus", "needsAction")
    return {"created": _stored(workspace, _checked({**event, "created": stamp, "updated": stamp}))}


def update_event(workspace: Workspace, event_id: str, **fields: Any) -> dict[str, Any]:
    """Change the given fields."""
    changes = {key: fields[key] for key in FIELDS if fields.get(key) is not None}
    if not changes:
        raise Refused(f"update_event needs at least one of {', '.join(FIELDS)}")
    event = {**read_event(workspace, event_id), **changes, "updated": now()}
    return {"updated": _stored(workspace, _checked(event))}


def delete_event(workspace: Workspace, event_id: str) -> dict[str, Any]:
    """Remove an event; the answer says how many are left."""
    event = read_event(workspace, event_id)
    state = _state(workspace)
    state["events"] = [one for one in state["events"] if one["id"] != event_id]
    state["deleted"] = sorted({*state["deleted"], event_id})
    store(workspace, _home(workspace) / "events.json", state)
    left = _events(workspace)
    return {"deleted": event["id"], "exists": any(one["id"] == event_id for one in left), "events_left": len(left)}


TOOLS: dict[str, Callable[..., Any]] = {
    "list_events": list_events,
    "read_event": read_event,
    "create_event": create_event,
    "update_event": update_event,
    "delete_event": delete_event,
}
