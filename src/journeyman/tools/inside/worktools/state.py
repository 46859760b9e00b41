"""State of mail, chat and calendar: JSON files of records, read whole, checked, replaced whole."""

from __future__ import annotations

import hashlib
import json
import os
from datetime import UTC, datetime
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from .workspace import Refused, Workspace


def now() -> str:
    """The world's time, ``WORKTOOLS_NOW`` (ISO 8601) where the world stands still, else the clock's."""
    return os.environ.get("WORKTOOLS_NOW") or datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def person() -> dict[str, str]:
    """Whom the agent acts as in chats, from ``WORKTOOLS_USER`` (an address)."""
    email = os.environ.get("WORKTOOLS_USER") or "agent@world.example"
    return {"name": email.partition("@")[0].replace(".", " ").title(), "email": email, "user_type": "Human"}


def load(path: Path, empty: Any) -> Any:
    """The value of a file, ``empty`` when there is none. Raises Refused for a damaged one."""
    try:
        value = json.loads(path.read_bytes())
    except FileNotFoundError:
        return empty
    except (OSError, ValueError) as error:
        raise Refused(f"the state in {path.name} is damaged: {error}") from error
    if not isinstance(value, type(empty)):
        raise Refused(f"the state in {path.name} is damaged: not a {type(empty).__name__}")
    return value


def store(workspace: Workspace, path: Path, value: Any) -> None:
    """Replace a file by a value."""
    workspace.write(path, json.dumps(value, ensure_ascii=False, indent=1).encode())


def new_id(prefix: str, *parts: Any) -> str:
    """An id that the same acts in the same state give again."""
    return f"{prefix}{hashlib.sha256(json.dumps(parts, default=str).encode()).hexdigest()[:12]}"


def found(records: list[dict[str, Any]], key: str, wanted: str, what: str, tool: str) -> dict[str, Any]:
    """The record with this id. Raises Refused with the nearest ids."""
    for record in records:
        if record.get(key) == wanted:
            return record
    near = get_close_matches(wanted, [str(record.get(key)) for record in records], n=3, cutoff=0.5)
    hint = f"did you mean {', '.join(near)}?" if near else f"{tool} lists them"
    raise Refused(f"no {what} {wanted!r}; {hint}")


def when(text: str, what: str) -> datetime:
    """A time from ISO 8601, in UTC when it names no zone. Raises Refused."""
    try:
        moment = datetime.fromisoformat(text.strip().replace("Z", "+00:00"))
    except ValueError as error:
        raise Refused(f"{what} is {text!r}; write ISO 8601, e.g. 2026-03-01T09:00:00Z") from error
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
