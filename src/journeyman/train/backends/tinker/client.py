"""The wire of a Tinker-compatible service: JSON over HTTP, long work as futures that are asked for until they are done.

Written against the public API (``/api/v1``) as SkyRL serves it; nothing of the service's own client is needed.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from journeyman.deadline import Deadline
from journeyman.errors import EnvironmentMissing, SystemFault

if TYPE_CHECKING:
    import httpx

PREFIX = "/api/v1"
RETRIED = frozenset({408, 425, 429, 500, 502, 503, 504})
"""Answers after which the same request is sent again until the deadline."""
PAUSE_S, LONGEST_PAUSE_S = 0.1, 5.0
"""Between two tries; doubled each time."""
POLL_S = 45.0
"""How long the service may hold one question for a future."""
HEARTBEAT_S = 10.0


class ServiceRefused(SystemFault):
    """The service understood and said no. Sending it again would not help.

    Args:
        what: the request.
        status: HTTP.
        answer: the service's words.
    """

    cause = "trainer_service_refused"

    def __init__(self, what: str, status: int, answer: str) -> None:
        self.what, self.status, self.answer = what, status, answer
        super().__init__(f"the training service refused {what} with {status}: {answer}")


class ServiceGone(SystemFault):
    """The service did not answer, or only with errors of its own, until the deadline.

    Args:
        what: the request.
        last: the last failure.
        limit_s: the deadline.
    """

    cause = "trainer_service_gone"

    def __init__(self, what: str, last: str, limit_s: float) -> None:
        self.what, self.last, self.limit_s = what, last, limit_s
        super().__init__(f"the training service did not do {what} within {limit_s:g} s: {last}")


class Client:
    """One session with a service.

    Args:
        url: base, without ``/api/v1``.
        api_key: sent as ``X-API-Key``; empty sends none.
        deadline_s: for every call, a future's whole wait included.

    Raises:
        EnvironmentMissing: nothing answers there.
    """

    def __init__(self, url: str, api_key: str, deadline_s: float) -> None:
        import httpx

        headers = {"X-API-Key": api_key} if api_key else {}
        self._http = httpx.Client(base_url=url.rstrip("/") + PREFIX, headers=headers, timeout=POLL_S + 15)
        self._deadline_s = deadline_s
        self._closed = threading.Event()
        try:
            self._http.get("/healthz", timeout=10).raise_for_status()
        except httpx.HTTPError as error:
            self._http.close()
            raise EnvironmentMissing(f"no training service answers at {url}: {error}") from error
        body = {"tags": ["journeyman"], "user_metadata": None, "sdk_version": "0.38.0", "type": "create_session"}
        self.session_id = str(self.post("/create_session", body)["session_id"])
        self._beat = threading.Thread(target=self._heartbeat, name="tinker-heartbeat", daemon=True)
        self._beat.start()

    def post(self, path: str, body: Mapping[str, Any], deadline: Deadline | None = None) -> dict[str, Any]:
        """One request, sent again while the way or the service is broken. Raises ServiceRefused, ServiceGone."""
        deadline = deadline or Deadline.after(self._deadline_s, path)
        answer: dict[str, Any] = self._tried("POST", path, deadline, body).json()
        return answer

    def future(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """A request that answers with a future, and its result."""
        deadline = Deadline.after(self._deadline_s, path)
        request = self.post(path, body, deadline)
        return self.post("/retrieve_future", {"request_id": str(request["request_id"])}, deadline)

    def download(self, path: str) -> bytes:
        """A file of the service, redirects followed."""
        return self._tried("GET", path, Deadline.after(self._deadline_s, path)).content

    def get(self, path: str) -> dict[str, Any]:
        """One JSON document."""
        answer: dict[str, Any] = self._tried("GET", path, Deadline.after(self._deadline_s, path)).json()
        return answer

    def close(self) -> None:
        """End heartbeat and connections. Idempotent."""
        self._closed.set()
        self._beat.join(timeout=HEARTBEAT_S)
        self._http.close()

    def _tried(
        self, method: str, path: str, deadline: Deadline, body: Mapping[str, Any] | None = None
    ) -> httpx.Response:
        import httpx

        pause, last = PAUSE_S, "it was not tried"
        while not deadline.has_passed:
            try:
                limit = max(min(deadline.remaining_s, POLL_S + 15), 0.01)
                response = self._http.request(method, path, json=body, timeout=limit, follow_redirects=True)
            except httpx.HTTPError as error:
                last = f"{type(error).__name__}: {error}"
            else:
                if response.is_success:
                    return response
                last = f"{response.status_code}: {_words(response)}"
                if response.status_code not in RETRIED or _is_final(path, response):
                    raise ServiceRefused(path, response.status_code, _words(response))
                if response.status_code == 408:  # the future is not done yet: ask on
                    pause = PAUSE_S
            time.sleep(min(pause, deadline.remaining_s))
            pause = min(2 * pause, LONGEST_PAUSE_S)
        raise ServiceGone(path, last, deadline.limit_s)

    def _heartbeat(self) -> None:
        import httpx

        while not self._closed.wait(HEARTBEAT_S):
            try:
                self._http.post("/session_heartbeat", json={"session_id": self.session_id}, timeout=5)
            except (httpx.HTTPError, RuntimeError):  # a call that matters will say so
                continue


def _is_final(path: str, response: httpx.Response) -> bool:
    """A future that failed stays failed."""
    return path == "/retrieve_future" and response.status_code == 500


def _words(response: httpx.Response) -> str:
    try:
        detail = response.json().get("detail")
    except (ValueError, AttributeError):
        detail = response.text
    return str(detail)[:500]
