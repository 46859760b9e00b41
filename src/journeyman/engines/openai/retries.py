"""Which failures of a service are worth another try, and when: its own word first, else a growing, jittered wait."""

from __future__ import annotations

import email.utils
import time
from collections.abc import Mapping
from typing import Any

from journeyman.engines.errors import EngineError

AGAIN = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
"""Statuses that may pass by themselves."""
FINAL_CODES = frozenset({"insufficient_quota", "billing_hard_limit_reached", "context_length_exceeded"})
"""Error codes that no wait will mend, whatever the status says."""


class ServiceRefused(EngineError):
    """The service will not answer this request; asking again is of no use.

    Args:
        status: HTTP status.
        code: the service's error code, or "".
        text: its words.
    """

    def __init__(self, status: int, code: str, text: str) -> None:
        self.status, self.code = status, code
        super().__init__(f"the service refused with {status}{f' ({code})' if code else ''}: {text[:500]}")


class ServiceUnavailable(EngineError):
    """No answer in all tries, or none by the deadline; the last reason is in the message."""


class RateLimited(ServiceUnavailable):
    """The service wants a longer wait than the deadline leaves.

    Args:
        wait_s: seconds it asked for.
        left_s: seconds left.
    """

    def __init__(self, wait_s: float, left_s: float) -> None:
        self.wait_s, self.left_s = wait_s, left_s
        super().__init__(f"the service asks to wait {wait_s:g} s, and the deadline is {left_s:.1f} s away")


def error_of(status: int, text: str, body: Any) -> tuple[bool, ServiceRefused]:
    """Whether to try again after an answer that is an error, and the error if not."""
    given = body.get("error") if isinstance(body, dict) else None
    given = given if isinstance(given, dict) else {}
    code = str(given.get("code") or given.get("type") or "")
    refused = ServiceRefused(status, code, str(given.get("message") or text))
    return status in AGAIN and code not in FINAL_CODES, refused


def asked_wait(headers: Mapping[str, str]) -> float | None:
    """Seconds of ``retry-after-ms`` or ``retry-after`` (a number or a date); None when there is no such word."""
    for name, scale in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        value = headers.get(name)
        if value is None:
            continue
        try:
            return max(0.0, float(value) * scale)
        except ValueError:
            pass
        try:
            return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - time.time())
        except (TypeError, ValueError):
            continue
    return None
