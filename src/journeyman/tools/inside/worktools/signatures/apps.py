"""Signatures of mail, chat and calendar."""

from __future__ import annotations

from .signature import Schema, Signature, fields, flag, integer, many, record, text, tool, words

_MAIL_ID = text("mail_id of a mail")
_ATTACHMENTS = words("paths of files of the world")
_FORMAT = text("how the body is written", default="plain", enum=["plain", "html"])
_ADDRESSES: Schema = {"type": ["array", "string"], "items": {"type": "string"}, "description": "addresses"}
_REPLY = (
    {"original_mail_id": _MAIL_ID, "body": text("text of the answer")},
    {"attachments": _ATTACHMENTS, "body_format": _FORMAT},
)

MAIL: dict[str, Signature] = {
    "list_mails": tool(
        "List mails, newest first.",
        "pure",
        optional={
            "limit": integer("most mails", default=50, minimum=1, maximum=1000),
            "offset": integer("mails to skip", default=0, minimum=0),
        },
    ),
    "read_mail": tool("Read a mail with its body and headers.", "pure", {"mail_id": _MAIL_ID}),
    "search_mail": tool(
        "Find mails that match every given field.",
        "pure",
        optional={
            "from_email": text("part of the sender's address"),
            "to_email": text("part of a recipient's address"),
            "subject": text("part of the subject"),
            "after_date": text("ISO 8601; sent at or after"),
            "before_date": text("ISO 8601; sent before"),
            "thread_id": text("of one conversation"),
            "limit": integer("most mails", default=50, minimum=1, maximum=1000),
        },
    ),
    "send_mail": tool(
        "Send a mail; answers with the mail as it was stored.",
        "unsafe",
        {
            "from_email": text("sender's address"),
            "to_email": _ADDRESSES,
            "subject": text("subject"),
            "body": text("text of the mail"),
        },
        {
            "cc": _ADDRESSES,
            "bcc": _ADDRESSES,
            "attachments": _ATTACHMENTS,
            "body_format": _FORMAT,
            "thread_id": text("conversation it belongs to"),
            "in_reply_to": text("mail_id it answers"),
            "references": words("mail_ids of the conversation"),
        },
    ),
    "reply_mail": tool("Answer the sender of a mail.", "unsafe", *_REPLY),
    "reply_all_mail": tool("Answer the sender and all recipients of a mail.", "unsafe", *_REPLY),
    "forward_mail": tool(
        "Send a mail on to others.",
        "unsafe",
        {"original_mail_id": _MAIL_ID, "to_email": _ADDRESSES},
        {
            "body": text("text above the forwarded mail", default=""),
            "cc": _ADDRESSES,
            "bcc": _ADDRESSES,
            "attachments": _ATTACHMENTS,
            "body_format": _FORMAT,
        },
    ),
}

_CHANNEL = text("id of the channel, as list_channels gives it")
_POST = text("message_id of a message")
_PAGING = {
    "limit": integer("most entries", default=100, minimum=1, maximum=1000),
    "page": integer("page, from 0", default=0, minimum=0),
}

CHAT: dict[str, Signature] = {
    "list_channels": tool("List channels with their members' number and last message.", "pure", optional=_PAGING),
    "get_channel_history": tool(
        "Read a channel, newest messages first.",
        "pure",
        {"channel_id": _CHANNEL},
        {**_PAGING, "limit": integer("most messages", default=30, minimum=1, maximum=1000)},
    ),
    "get_thread_replies": tool("Read a message and its answers.", "pure", {"channel_id": _CHANNEL, "post_id": _POST}),
    "get_user_profile": tool("Name, address and channels of a person.", "pure", {"user_id": text("id or address")}),
    "get_users": tool("List people.", "pure", optional=_PAGING),
    "post_message": tool(
        "Write a message into a channel.", "unsafe", {"channel_id": _CHANNEL, "message": text("text of the message")}
    ),
    "reply_to_thread": tool(
        "Answer a message.",
        "unsafe",
        {"channel_id": _CHANNEL, "post_id": _POST, "message": text("text of the answer")},
    ),
    "add_reaction": tool(
        "React to a message.",
        "idempotent",
        {"channel_id": _CHANNEL, "post_id": _POST, "emoji_name": text("an emoji or its name, e.g. thumbsup")},
    ),
    "delete_post": tool("Delete a message.", "idempotent", {"channel_id": _CHANNEL, "post_id": _POST}),
}

_WHEN = fields(
    {
        "dateTime": text("ISO 8601 with offset, or without one together with timeZone"),
        "date": text("YYYY-MM-DD, for whole days"),
        "timeZone": text("e.g. Europe/Vienna"),
    }
)
_ATTENDEE = fields(
    {
        "email": text("address"),
        "displayName": text("name"),
        "responseStatus": text("answer", enum=["needsAction", "declined", "tentative", "accepted"]),
    },
    ("email",),
)
_EVENT: dict[str, Schema] = {
    "summary": text("title of the event"),
    "description": text("what it is about"),
    "start": {**_WHEN, "description": "when it starts"},
    "end": {**_WHEN, "description": "when it ends"},
    "location": text("where"),
    "attendees": many(_ATTENDEE, "who is invited"),
    "colorId": text("colour, 1 to 11"),
    "reminders": fields(
        {
            "useDefault": flag("as the calendar has it"),
            "overrides": many(record("method email or popup, minutes"), "reminders of this event"),
        }
    ),
    "recurrence": words("rules, e.g. RRULE:FREQ=WEEKLY;COUNT=4"),
}
_EVENT_ID = text("id of the event")
_NEW = ("summary", "start", "end")

CALENDAR: dict[str, Signature] = {
    "list_events": tool(
        "List events by their start.",
        "pure",
        optional={
            "limit": integer("most events", default=50, minimum=1, maximum=1000),
            "offset": integer("events to skip", default=0, minimum=0),
        },
    ),
    "read_event": tool("Read one event.", "pure", {"event_id": _EVENT_ID}),
    "create_event": tool(
        "Make an event; answers with the event as it was stored.",
        "unsafe",
        {name: _EVENT[name] for name in _NEW},
        {name: schema for name, schema in _EVENT.items() if name not in _NEW},
    ),
    "update_event": tool(
        "Change the given fields of an event; answers with the event as it is now.",
        "idempotent",
        {"event_id": _EVENT_ID},
        _EVENT,
    ),
    "delete_event": tool("Delete an event.", "idempotent", {"event_id": _EVENT_ID}),
}
