"""One request, bounded from outside: whoever asks has an answer or a reason within the limit, to the second.

The request runs in a thread of its own, because nothing inside bounds it: a name that does not resolve, a server that
accepts and is silent, one that sends a byte now and then each restart some timeout. A thread that is given up ends by
its own read limit and changes nothing any more.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

#: Longest answer that is read: a judgement is a few lines.
MAX_ANSWER_BYTES = 2_000_000


@dataclass(frozen=True)
class Answer:
    """What a service said.

    Attributes:
        status: HTTP status; 0 when there was none.
        headers: lower-case names.
        text: the body, or the reason why there is none.
    """

    status: int
    headers: Mapping[str, str]
    text: str


def ask_once(client: Any, url: str, body: Mapping[str, Any], key: str, limit_s: float) -> Answer:
    """POST ``body`` and return what came within ``limit_s`` seconds; nothing is raised.

    Args:
        client: an ``httpx.Client``.
        key: sent as bearer token unless "".
    """
    box: list[Answer] = []
    done = threading.Event()

    def work() -> None:
        box.append(_ask(client, url, body, key, limit_s, done))
        done.set()

    threading.Thread(target=work, name="judge-try", daemon=True).start()
    if not done.wait(limit_s):
        done.set()  # tells the thread that nobody waits
        return Answer(0, {}, f"no answer within {limit_s:g} s")
    return box[0]


def _ask(client: Any, url: str, body: Mapping[str, Any], key: str, limit_s: float, given_up: threading.Event) -> Answer:
    import httpx

    headers = {"Authorization": f"Bearer {key}"} if key else {}
    try:
        with client.stream("POST", url, json=dict(body), headers=headers, timeout=limit_s) as response:
            parts: list[bytes] = []
            size = 0
            for part in response.iter_bytes():
                parts.append(part)
                size += len(part)
                if given_up.is_set() or size > MAX_ANSWER_BYTES:
                    return Answer(0, {}, f"the answer did not end within {limit_s:g} s and {MAX_ANSWER_BYTES} bytes")
            found = {name.lower(): value for name, value in response.headers.items()}
            return Answer(response.status_code, found, b"".join(parts).decode(errors="replace"))
    except httpx.TimeoutException:
        return Answer(0, {}, f"no answer within {limit_s:g} s")
    except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
        return Answer(0, {}, f"{type(error).__name__}: {error}")
