"""chat: channels and messages in the files of a workspace export (``Groups/<id>``, ``Users/<id>``)."""

from __future__ import annotations

import json
from collections.abc import Callable
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from .state import found, load, new_id, now, person, store
from .workspace import Refused, Workspace

EMOJI = {
    "thumbsup": "\N{THUMBS UP SIGN}",
    "+1": "\N{THUMBS UP SIGN}",
    "thumbsdown": "\N{THUMBS DOWN SIGN}",
    "-1": "\N{THUMBS DOWN SIGN}",
    "heart": "\N{HEAVY BLACK HEART}",
    "smile": "\N{SMILING FACE WITH OPEN MOUTH}",
    "tada": "\N{PARTY POPPER}",
    "eyes": "\N{EYES}",
    "white_check_mark": "\N{WHITE HEAVY CHECK MARK}",
    "check": "\N{WHITE HEAVY CHECK MARK}",
    "rocket": "\N{ROCKET}",
    "fire": "\N{FIRE}",
    "clap": "\N{CLAPPING HANDS SIGN}",
    "pray": "\N{PERSON WITH FOLDED HANDS}",
}
"""Name -> emoji."""


def _groups(workspace: Workspace) -> Path:
    return workspace.apps / "chat" / "Groups"


def _directories(path: Path) -> list[str]:
    return sorted(one.name for one in path.iterdir() if one.is_dir()) if path.is_dir() else []


def _channel(workspace: Workspace, channel_id: str) -> Path:
    known = _directories(_groups(workspace))
    if channel_id not in known:
        near = get_close_matches(channel_id, known, n=3, cutoff=0.4)
        hint = f"did you mean {', '.join(near)}?" if near else f"there are {', '.join(known[:20]) or 'none'}"
        raise Refused(f"no channel {channel_id!r}; {hint}")
    return _groups(workspace) / channel_id


def _messages(channel: Path) -> list[dict[str, Any]]:
    value: dict[str, Any] = load(channel / "messages.json", {})
    return list(value.get("messages", []))


def _store(workspace: Workspace, channel: Path, messages: list[dict[str, Any]]) -> None:
    store(workspace, channel / "messages.json", {"messages": messages})


def _shown(message: dict[str, Any]) -> str:
    if message.get("message_state") == "DELETED":
        keys = ("message_id", "topic_id", "created_date", "message_state", "deleted_date")
        return json.dumps({key: message.get(key) for key in keys}, ensure_ascii=False)
    return json.dumps({key: value for key, value in message.items() if value not in (None, [])}, ensure_ascii=False)


def list_channels(workspace: Workspace, limit: int = 100, page: int = 0) -> str:
    """A line a channel."""
    names = _directories(_groups(workspace))
    lines = []
    for name in names[page * limit : (page + 1) * limit]:
        channel = _groups(workspace) / name
        info: dict[str, Any] = load(channel / "group_info.json", {})
        messages = _messages(channel)
        last = max((str(one.get("created_date") or "") for one in messages), default="")
        facts = {"channel_id": name, "name": info.get("name"), "members": len(info.get("members", []))}
        lines.append(json.dumps({**facts, "messages": len(messages), "last_message_at": last}, ensure_ascii=False))
    return "\n".join([f"{len(names)} channels", *lines])


def get_channel_history(workspace: Workspace, channel_id: str, limit: int = 30, page: int = 0) -> str:
    """Messages, newest first."""
    messages = sorted(
        _messages(_channel(workspace, channel_id)), key=lambda one: str(one.get("created_date") or ""), reverse=True
    )
    part = messages[page * limit : (page + 1) * limit]
    if messages and not part:
        raise Refused(f"{channel_id} has {len(messages)} messages, none on page {page} of {limit}")
    return "\n".join([f"{len(messages)} messages in {channel_id}, newest first", *map(_shown, part)])


def get_thread_replies(workspace: Workspace, channel_id: str, post_id: str) -> str:
    """A message and everything in its thread, oldest first."""
    messages = _messages(_channel(workspace, channel_id))
    post = found(messages, "message_id", post_id, "message", "chat_get_channel_history")
    thread = [one for one in messages if one.get("topic_id") == post.get("topic_id")]
    thread.sort(key=lambda one: str(one.get("created_date") or ""))
    return "\n".join([f"{len(thread)} messages in thread {post.get('topic_id')}", *map(_shown, thread)])


def _people(workspace: Workspace) -> list[dict[str, Any]]:
    """Everybody, from the user files and from the members of channels."""
    home = workspace.apps / "chat" / "Users"
    people: dict[str, dict[str, Any]] = {}
    for name in _directories(home):
        info: dict[str, Any] = load(home / name / "user_info.json", {})
        groups = [one.get("group_id") for one in info.get("membership_info", [])]
        people[str(info.get("user", {}).get("email") or name)] = {
            "user_id": name,
            **info.get("user", {}),
            "channels": groups,
        }
    for name in _directories(_groups(workspace)):
        group: dict[str, Any] = load(_groups(workspace) / name / "group_info.json", {})
        for member in group.get("members", []):
            email = str(member.get("email"))
            entry = people.setdefault(email, {"user_id": email, **member, "channels": []})
            if name not in entry["channels"]:
                entry["channels"].append(name)
    return [people[key] for key in sorted(people)]


def get_user_profile(workspace: Workspace, user_id: str) -> dict[str, Any]:
    """One person, by id or address."""
    people = _people(workspace)
    by_email = [one for one in people if one.get("email") == user_id]
    return by_email[0] if by_email else found(people, "user_id", user_id, "person", "chat_get_users")


def get_users(workspace: Workspace, limit: int = 100, page: int = 0) -> str:
    """A line a person."""
    people = _people(workspace)
    lines = [json.dumps(one, ensure_ascii=False) for one in people[page * limit : (page + 1) * limit]]
    return "\n".join([f"{len(people)} people", *lines])


def _post(workspace: Workspace, channel_id: str, message: str, topic_id: str | None) -> str:
    if not message.strip():
        raise Refused("the message is empty")
    channel = _channel(workspace, channel_id)
    messages = _messages(channel)
    message_id = new_id("msg-", len(messages), channel_id, message)
    record: dict[str, Any] = {
        "creator": person(),
        "created_date": now(),
        "text": message,
        "topic_id": topic_id or new_id("topic-", len(messages), channel_id, message),
        "message_id": message_id,
        "reactions": [],
        "annotations": [],
        "message_state": None,
        "deleted_date": None,
        "deletion_metadata": None,
    }
    _store(workspace, channel, [*messages, record])
    saved = found(_messages(channel), "message_id", message_id, "message", "chat_get_channel_history")
    return f"posted in {channel_id}; stored as\n{_shown(saved)}"


def post_message(workspace: Workspace, channel_id: str, message: str) -> str:
    """A new message."""
    return _post(workspace, channel_id, message, None)


def reply_to_thread(workspace: Workspace, channel_id: str, post_id: str, message: str) -> str:
    """A message in the thread of another."""
    messages = _messages(_channel(workspace, channel_id))
    post = found(messages, "message_id", post_id, "message", "chat_get_channel_history")
    return _post(workspace, channel_id, message, str(post.get("topic_id")))


def add_reaction(workspace: Workspace, channel_id: str, post_id: str, emoji_name: str) -> str:
    """One's reaction to a message; a second time changes nothing."""
    name = emoji_name.strip().strip(":")
    unicode = EMOJI.get(name.lower(), name)
    if not unicode or (unicode.isascii() and unicode.isalnum()):
        raise Refused(f"no emoji {emoji_name!r}; known names: {', '.join(EMOJI)}, or give the emoji itself")
    channel = _channel(workspace, channel_id)
    messages = _messages(channel)
    post = found(messages, "message_id", post_id, "message", "chat_get_channel_history")
    reactions = post.setdefault("reactions", [])
    entry = next((one for one in reactions if one.get("emoji", {}).get("unicode") == unicode), None)
    if entry is None:
        entry = {"emoji": {"unicode": unicode}, "reactor_emails": []}
        reactions.append(entry)
    if person()["email"] not in entry["reactor_emails"]:
        entry["reactor_emails"].append(person()["email"])
    _store(workspace, channel, messages)
    saved = found(_messages(channel), "message_id", post_id, "message", "chat_get_channel_history")
    return f"stored as\n{_shown(saved)}"


def delete_post(workspace: Workspace, channel_id: str, post_id: str) -> str:
    """Mark a message as deleted and take its text away."""
    channel = _channel(workspace, channel_id)
    messages = _messages(channel)
    post = found(messages, "message_id", post_id, "message", "chat_get_channel_history")
    if post.get("message_state") != "DELETED":
        post.update(
            text="", message_state="DELETED", deleted_date=now(), deletion_metadata={"deletion_type": "CREATOR"}
        )
        _store(workspace, channel, messages)
    saved = found(_messages(channel), "message_id", post_id, "message", "chat_get_channel_history")
    return f"deleted; stored as\n{_shown(saved)}"


TOOLS: dict[str, Callable[..., Any]] = {
    "list_channels": list_channels,
    "get_channel_history": get_channel_history,
    "get_thread_replies": get_thread_replies,
    "get_user_profile": get_user_profile,
    "get_users": get_users,
    "post_message": post_message,
    "reply_to_thread": reply_to_thread,
    "add_reaction": add_reaction,
    "delete_post": delete_post,
}
