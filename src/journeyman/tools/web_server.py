"""Serves a ``Site`` over real HTTP on the loopback interface, with its two search APIs. Only the tool host reaches it.

All hosts of the site are served by one socket and told apart by the ``Host`` header. ``/search`` and ``/academic`` on
``search.example`` answer JSON: ``{"results": [{"title", "url", "published_at", "snippet", ...}]}``.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from journeyman.tools.page_reader import read_page
from journeyman.tools.web_site import Page, Site

SEARCH_HOST = "search.example"


class SiteServer:
    """A running server; ``port`` is where. ``close`` ends it."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self._index = _Index(site)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _requests_of(site, self._index))
        self._server.daemon_threads = True
        self.port = int(self._server.server_address[1])
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), name="site", daemon=True)
        self._thread.start()

    @property
    def hosts(self) -> frozenset[str]:
        """Hosts that this server answers for."""
        return frozenset({urlsplit(url).netloc for url in self.site.pages} | {SEARCH_HOST})

    def close(self) -> None:
        """Stop serving; a second call does nothing."""
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join(timeout=5)
            self._server.server_close()
            self._index.close()


class _Index:
    """Full text of the pages. Ties are broken by address."""

    def __init__(self, site: Site) -> None:
        self._lock = threading.Lock()
        self._pages = site.pages
        self._database = sqlite3.connect(":memory:", check_same_thread=False)
        self._database.execute(
            "CREATE VIRTUAL TABLE pages USING fts5(url UNINDEXED, body, tokenize='porter unicode61')"
        )
        rows = [(url, f"{page.title}\n{read_page(page.html, url).text}") for url, page in sorted(site.pages.items())]
        self._database.executemany("INSERT INTO pages VALUES (?, ?)", rows)

    def close(self) -> None:
        """Give the index back."""
        with self._lock:
            self._database.close()

    def find(self, query: str) -> list[tuple[Page, str]]:
        """Pages with their snippet, best first; no word, no page."""
        words = [word.replace('"', "") for word in query.split() if any(one.isalnum() for one in word)]
        if not words:
            return []
        matching = " OR ".join(f'"{word}"' for word in words if word)
        statement = (
            "SELECT url, snippet(pages, 1, '', '', ' ... ', 30) FROM pages WHERE pages MATCH ? "
            "ORDER BY round(bm25(pages), 9), url LIMIT 400"
        )
        with self._lock:
            rows = self._database.execute(statement, (matching,)).fetchall()
        return [(self._pages[url], " ".join(text.split())) for url, text in rows]


def _requests_of(site: Site, index: _Index) -> type[BaseHTTPRequestHandler]:
    class PageRequest(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = 30
        disable_nagle_algorithm = True  # head and body are two writes; the second must not wait for an answer

        def do_GET(self) -> None:
            host = (self.headers.get("Host") or "").partition(":")[0]
            parts = urlsplit(self.path)
            if host == SEARCH_HOST:
                self._answer(*_searched(parts.path, parse_qs(parts.query), index))
                return
            path = parts.path if parts.path == "/" else parts.path.rstrip("/")
            page = site.pages.get(f"http://{host}{path}")
            if page is None:
                self._answer(404, "text/html", "<html><head><title>Not found</title></head><body>404</body></html>")
            else:
                self._answer(200, "text/html", page.html)

        def _answer(self, status: int, kind: str, text: str) -> None:
            body = text.encode()
            self.send_response(status)
            self.send_header("Content-Type", f"{kind}; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            return

    return PageRequest


def _searched(path: str, query: dict[str, list[str]], index: _Index) -> tuple[int, str, str]:
    hits = index.find((query.get("q") or [""])[0])
    if path == "/search":
        results = [_shown(page, text) for page, text in hits]
    elif path == "/academic":
        first, last = int((query.get("from") or ["0"])[0]), int((query.get("to") or ["9999"])[0])
        results = [
            {**_shown(page, text), **page.paper}
            for page, text in hits
            if page.paper is not None and first <= int(str(page.paper["year"])) <= last
        ]
    else:
        return 404, "application/json", "{}"
    limit = int((query.get("n") or ["10"])[0])
    return 200, "application/json", json.dumps({"results": results[:limit]})


def _shown(page: Page, snippet: str) -> dict[str, object]:
    return {"title": page.title, "url": page.url, "published_at": page.published_at, "snippet": snippet}
