"""The web as tools: search, visit, academic search, over a world's site or any search API. Runs beside the sandbox.

What a trial could reach and what read for it is part of what was measured: ``boundary`` names the search, the hosts and
the summariser, for the record of the run.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import urlencode, urlsplit

from journeyman.errors import SystemFault
from journeyman.tools.checking import fitted
from journeyman.tools.hosts import ToolDeadline, ToolHostFailed
from journeyman.tools.page_reader import read_page
from journeyman.tools.protocol import Observation
from journeyman.tools.surface import WEB_SERVERS, specs_of
from journeyman.tools.web_server import SEARCH_HOST, SiteServer

MAX_PAGE_BYTES = 2_000_000
PAGE_CHARS = 12_000
"""Characters of a page in one answer; ``offset`` reads on."""

MAX_REDIRECTS = 5


@dataclass(frozen=True)
class Summariser:
    """A model that shortens a page towards a goal.

    Attributes:
        identity: model, version and prompt digest, for the record.
        summarise: (goal, text of the page, seconds left) -> text; raises SystemFault when it fails.
    """

    identity: str
    summarise: Callable[[str, str, float], str]


class SearchApi(Protocol):
    """Any search: a world's own, or a paid one."""

    @property
    def identity(self) -> str:
        """What it is, for the record of the run."""
        ...

    def find(self, kind: str, query: Mapping[str, Any], *, deadline_s: float) -> list[dict[str, Any]]:
        """Results of ``search`` or ``academic``: at least title and url each. Raises SystemFault."""
        ...


class JsonSearch:
    """A search that answers ``GET <address>/<kind>?q=&n=`` with ``{"results": [...]}``.

    Args:
        fetch: sends the request; bound to the tools that use it.
        address: without a final slash.
    """

    def __init__(self, fetch: Fetch, address: str) -> None:
        self._fetch, self.address = fetch, address

    @property
    def identity(self) -> str:
        """See ``SearchApi.identity``."""
        return f"json:{self.address}"

    def find(self, kind: str, query: Mapping[str, Any], *, deadline_s: float) -> list[dict[str, Any]]:
        """See ``SearchApi.find``."""
        names = {"query": "q", "max_results": "n", "year_from": "from", "year_to": "to"}
        words = urlencode({names[key]: value for key, value in query.items() if key in names})
        status, _, body, _ = self._fetch(f"{self.address}/{kind}?{words}", deadline_s)
        try:
            results = json.loads(body)["results"]
        except (ValueError, KeyError, TypeError) as error:
            raise ToolHostFailed(f"the search answered {status} without results") from error
        return [dict(one) for one in results]


Fetch = Callable[[str, float], tuple[int, str, bytes, str]]
"""(address, seconds) -> (status, content type, body, final address). Raises SystemFault, or Unreachable."""


class Unreachable(Exception):
    """No such page for the policy: an address that is none, or a host outside this world."""


class WebTools:
    """Implements ``ToolSet`` for the servers ``web`` and ``academic``. Not shared between threads.

    Args:
        server: the world's site; None for a web without one.
        search: another search than the site's.
        summariser: used by ``web_visit`` when a goal is given; None shows pages as they are.
        open_hosts: hosts outside the world that may be visited; ``*`` for all. None by default.
    """

    def __init__(
        self,
        server: SiteServer | None,
        search: SearchApi | None = None,
        summariser: Summariser | None = None,
        open_hosts: frozenset[str] = frozenset(),
    ) -> None:
        import httpx

        if server is None and search is None:
            raise ValueError("a web needs a site or a search")
        self._server, self._summariser, self._open_hosts = server, summariser, open_hosts
        self._search: SearchApi = search or JsonSearch(self.fetch, f"http://{SEARCH_HOST}")
        self._client = httpx.Client(follow_redirects=False, trust_env=False)
        self._specs = specs_of(WEB_SERVERS)

    @property
    def schemas(self) -> Mapping[str, Mapping[str, Any]]:
        """See ``ToolSet.schemas``."""
        return {name: spec.schema for name, spec in self._specs.items()}

    @property
    def descriptions(self) -> Mapping[str, str]:
        """See ``ToolSet.descriptions``."""
        return {name: spec.description for name, spec in self._specs.items()}

    @property
    def boundary(self) -> dict[str, Any]:
        """What stood behind these tools, for the record of the run."""
        return {
            "search": self._search.identity,
            "hosts": sorted(self._server.hosts if self._server else ()) + sorted(self._open_hosts),
            "summariser": self._summariser.identity if self._summariser else None,
        }

    def call(self, name: str, arguments: Mapping[str, Any], *, deadline_s: float = 60.0) -> Observation:
        """See ``ToolSet.call``."""
        started = time.monotonic()
        if name not in self._specs:
            return Observation(f"error: no tool {name!r}; there are {', '.join(self._specs)}", is_error=True)
        fit, problems = fitted(arguments, self._specs[name].schema)
        if problems:
            return Observation(f"error: {name}: {'; '.join(problems)}", is_error=True)
        try:
            if name == "web_visit":
                text = self._visit(fit, deadline_s)
            else:
                text = self._found("search" if name == "web_search" else "academic", fit, deadline_s)
        except Unreachable as error:
            return Observation(f"error: {error}", is_error=True, elapsed_s=time.monotonic() - started)
        return Observation(text, elapsed_s=time.monotonic() - started)

    def close(self) -> None:
        """See ``ToolSet.close``. The site's server belongs to whoever started it."""
        self._client.close()

    def _found(self, kind: str, fit: Mapping[str, Any], deadline_s: float) -> str:
        results = self._search.find(kind, {"max_results": 10, **fit}, deadline_s=deadline_s)
        lines = [json.dumps(one, ensure_ascii=False) for one in results[: int(fit.get("max_results", 10))]]
        return "\n".join([f"{len(lines)} results for {fit['query']!r}", *lines])

    def _visit(self, fit: Mapping[str, Any], deadline_s: float) -> str:
        ends_at = time.monotonic() + deadline_s
        url = str(fit["url"])
        status, kind, body, final = self.fetch(url, deadline_s)
        if status != 200:
            raise Unreachable(f"{url} answered {status}; search for the page or follow a link")
        if not kind.startswith(("text/", "application/json", "application/xhtml")):
            raise Unreachable(f"{url} is {kind or 'of unknown kind'}, not a page of text")
        decoded = body.decode("utf-8", "replace")
        page = read_page(decoded if "html" in kind else f"<pre>{decoded}</pre>", final)
        goal = str(fit.get("goal") or "")
        if self._summariser is not None and goal:
            short = self._summariser.summarise(goal, page.text, max(0.1, ends_at - time.monotonic()))
            return f"{page.title}\n{final} ({page.date})\nsummary by {self._summariser.identity}:\n{short}"
        offset = int(fit.get("offset") or 0)
        if offset and offset >= len(page.text):
            raise Unreachable(f"the page has {len(page.text)} characters, fewer than offset {offset}")
        part = page.text[offset : offset + PAGE_CHARS]
        end = offset + len(part)
        rest = f"\n[characters {offset} to {end} of {len(page.text)}; read on with offset {end}]"
        numbers = [number for number in range(1, len(page.links) + 1) if f"[{number}]" in part]
        links = "\n".join(f"[{number}] {page.links[number - 1]}" for number in numbers)
        return f"{page.title}\n{final} ({page.date})\n{part}{rest if end < len(page.text) else ''}\n{links}"

    def fetch(self, url: str, deadline_s: float) -> tuple[int, str, bytes, str]:
        """See ``Fetch``: real HTTP, with redirects; hosts of the site go to its server."""
        import httpx

        ends_at = time.monotonic() + deadline_s
        for _ in range(MAX_REDIRECTS + 1):
            target, headers = self._target(url)
            try:
                body = bytearray()
                with self._client.stream(
                    "GET", target, headers=headers, timeout=max(0.1, ends_at - time.monotonic())
                ) as response:
                    for chunk in response.iter_bytes():
                        body += chunk
                        if len(body) > MAX_PAGE_BYTES or time.monotonic() > ends_at:
                            break
                if time.monotonic() > ends_at:
                    raise ToolDeadline("web", deadline_s)
                if response.is_redirect and response.headers.get("location"):
                    url = str(httpx.URL(url).join(response.headers["location"]))
                    continue
                kind = response.headers.get("content-type", "")
                return response.status_code, kind, bytes(body[:MAX_PAGE_BYTES]), url
            except httpx.TimeoutException as error:
                raise ToolDeadline("web", deadline_s) from error
            except (httpx.HTTPError, httpx.InvalidURL) as error:
                raise self._broken(url, error) from error
        raise Unreachable(f"{url} redirects more than {MAX_REDIRECTS} times")

    def _broken(self, url: str, error: Exception) -> SystemFault | Unreachable:
        """Our own server failing is a fault; another host failing is how the web is."""
        if self._server is not None and urlsplit(url).netloc in self._server.hosts:
            return ToolHostFailed(f"the world's site: {error!r}")
        return Unreachable(f"{url} cannot be reached ({type(error).__name__})")

    def _target(self, url: str) -> tuple[str, dict[str, str]]:
        """Where to connect and with which header. Raises Unreachable."""
        try:
            parts = urlsplit(url)
            host = parts.netloc
        except ValueError as error:
            raise Unreachable(f"{url!r} is no address") from error
        if parts.scheme not in ("http", "https") or not host:
            raise Unreachable(f"{url!r} is no address of a page; it must begin with http:// or https://")
        if self._server is not None and host in self._server.hosts:
            query = f"?{parts.query}" if parts.query else ""
            return f"http://127.0.0.1:{self._server.port}{parts.path or '/'}{query}", {"Host": host}
        if host in self._open_hosts or "*" in self._open_hosts:
            return url, {}
        raise Unreachable(f"no host {host} can be reached from here; web_search finds pages that can")
