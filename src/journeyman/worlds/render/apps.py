"""The applications of an office: mailbox, chat, calendar, in the layout that the tools read, and exports of them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from journeyman.digest import canonical_json
from journeyman.worlds.content import Meeting, Message
from journeyman.worlds.render.canonical import canonical_zip
from journeyman.worlds.render.places import Places

EPOCH = datetime(1970, 1, 1)


def render_slack(
    messages: Sequence[Message], people: Mapping[str, Mapping[str, Any]], channels: Sequence[str], places: Places
) -> bytes:
    """A Slack export: ``channels.json``, ``users.json``, one JSON file a channel and day. Facts at ``#channel/ts``."""
    used = {message.user for message in messages}
    parts: dict[str, Any] = {
        "channels.json": [
            {"id": f"C{n:04d}", "name": name, "members": sorted(used)} for n, name in enumerate(channels)
        ],
        "users.json": [
            {
                "id": key,
                "name": one["email"].partition("@")[0],
                "real_name": one["name"],
                "profile": {"real_name": one["name"], "email": one["email"]},
            }
            for key, one in sorted(people.items())
            if key in used
        ],
    }
    for message in sorted(messages, key=lambda one: (one.channel, float(one.ts))):
        day = (EPOCH + timedelta(seconds=float(message.ts))).date().isoformat()
        row = {
            "type": "message",
            "ts": message.ts,
            "user": message.user,
            "text": places.take(message.text, f"#{message.channel}/{message.ts}"),
        }
        if message.thread_ts:
            row["thread_ts"] = message.thread_ts
        parts.setdefault(f"{message.channel}/{day}.json", []).append(row)
    return canonical_zip(
        {name: json.dumps(value, ensure_ascii=False, indent=1).encode() for name, value in parts.items()}
    )


def render_chat(
    messages: Sequence[Message], people: Mapping[str, Mapping[str, Any]], channels: Sequence[str]
) -> dict[str, bytes]:
    """The state of the chat application: ``chat/Groups/<id>/...`` and ``chat/Users/<id>/user_info.json``."""
    files, scratch = {}, Places()
    for name in channels:
        rows = [
            {
                "message_id": f"msg-{message.ts}",
                "topic_id": f"topic-{message.thread_ts or message.ts}",
                "creator": {"name": people[message.user]["name"], "email": people[message.user]["email"]},
                "created_date": _instant(EPOCH + timedelta(seconds=int(float(message.ts)))),
                "text": scratch.take(message.text, ""),
            }
            for message in sorted(messages, key=lambda one: float(one.ts))
            if message.channel == name
        ]
        members = {m.user: people[m.user] for m in messages if m.channel == name}
        info = {
            "name": name,
            "members": [
                {"name": one["name"], "email": one["email"], "user_type": "Human"} for _, one in sorted(members.items())
            ],
        }
        files[f"chat/Groups/{name}/group_info.json"] = canonical_json(info)
        files[f"chat/Groups/{name}/messages.json"] = canonical_json({"messages": rows})
    for key, one in sorted({m.user: people[m.user] for m in messages}.items()):
        person = {"user": {"name": one["name"], "email": one["email"], "user_type": "Human"}}
        files[f"chat/Users/{key}/user_info.json"] = canonical_json(person)
    return files


def _instant(when: datetime) -> str:
    return when.strftime("%Y-%m-%dT%H:%M:%SZ")


def render_calendar(meetings: Sequence[Meeting], title: str, places: Places) -> bytes:
    """All meetings as one iCalendar file in UTC; facts lie at ``event:<uid>``."""
    from icalendar import Calendar, Event, vCalAddress, vText

    calendar = Calendar()
    calendar.add("prodid", "-//office//calendar//EN")
    calendar.add("version", "2.0")
    calendar.add("x-wr-calname", title)
    for meeting in sorted(meetings, key=lambda one: (one.start, one.uid)):
        event = Event()
        event.add("uid", meeting.uid)
        event.add("dtstamp", meeting.start.replace(tzinfo=UTC) - timedelta(days=3))
        event.add("dtstart", meeting.start.replace(tzinfo=UTC))
        event.add("dtend", meeting.start.replace(tzinfo=UTC) + timedelta(minutes=meeting.minutes))
        event.add("summary", places.take(meeting.summary, f"event:{meeting.uid}"))
        event.add("description", places.take(meeting.description, f"event:{meeting.uid}"))
        if meeting.location:
            event.add("location", vText(meeting.location))
        event["organizer"] = vCalAddress(f"MAILTO:{meeting.organizer}")
        for one in meeting.attendees:
            event.add("attendee", vCalAddress(f"MAILTO:{one}"), encode=False)
        calendar.add_component(event)
    data = calendar.to_ical()
    assert isinstance(data, bytes)
    return data
