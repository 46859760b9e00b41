"""HTML as an agent reads it: text with headings, lists and tables, each link numbered, scripts and styles left out."""

from __future__ import annotations

import re
from dataclasses import dataclass
from html.parser import HTMLParser
from urllib.parse import urljoin, urlsplit

SILENT = ("script", "style", "noscript", "template", "svg", "iframe", "object")
BLOCKS = (
    *("p", "div", "section", "article", "main", "header", "footer", "nav", "aside", "ul", "ol", "table", "form"),
    *("blockquote", "pre", "h1", "h2", "h3", "h4", "h5", "h6", "li", "tr", "br", "hr", "dl", "dt", "dd", "figure"),
)
DATES = ("date", "article:published_time", "dc.date", "publish-date", "last-modified")
MAX_LINKS = 400


@dataclass(frozen=True)
class PageText:
    """A page that was read.

    Attributes:
        title: of the page, or "".
        date: what its metadata call its date, or "".
        text: lines; a link is ``words [3]``.
        links: addresses, absolute, by their number from 1.
    """

    title: str
    date: str
    text: str
    links: tuple[str, ...]


class _Reader(HTMLParser):
    def __init__(self, url: str) -> None:
        super().__init__(convert_charrefs=True)
        self.url, self.title, self.date = url, "", ""
        self.parts: list[str] = []
        self.links: list[str] = []
        self._silent = 0
        self._in_title = False
        self._link: str | None = None

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = {key: value or "" for key, value in attributes}
        if tag in SILENT:
            self._silent += 1
        elif tag == "title":
            self._in_title = True
        elif tag == "meta" and (values.get("name") or values.get("property", "")).lower() in DATES:
            self.date = self.date or values.get("content", "")
        elif tag == "base" and values.get("href"):
            self.url = urljoin(self.url, values["href"])
        elif tag == "a":
            self._link = _absolute(self.url, values.get("href", ""))
        elif tag == "img" and values.get("alt"):
            self.parts.append(f" [image: {values['alt']}] ")
        if tag in BLOCKS:
            self.parts.append("\n")
        if tag in ("h1", "h2", "h3", "h4", "h5", "h6"):
            self.parts.append("#" * int(tag[1]) + " ")
        elif tag == "li":
            self.parts.append("- ")
        elif tag in ("td", "th"):
            self.parts.append(" | ")

    def handle_endtag(self, tag: str) -> None:
        if tag in SILENT:
            self._silent = max(0, self._silent - 1)
        elif tag == "title":
            self._in_title = False
        elif tag == "a" and self._link:
            if self._link not in self.links and len(self.links) < MAX_LINKS:
                self.links.append(self._link)
            if self._link in self.links:
                self.parts.append(f" [{self.links.index(self._link) + 1}]")
            self._link = None
        if tag in BLOCKS:
            self.parts.append("\n")

    def handle_data(self, data: str) -> None:
        if self._in_title:
            self.title += data
        elif not self._silent:
            self.parts.append(data)


def _absolute(base: str, href: str) -> str | None:
    """An http address, or None for scripts, mails and places in the same page."""
    if not href or href.startswith("#"):
        return None
    try:
        target = urljoin(base, href.strip())
        return target if urlsplit(target).scheme in ("http", "https") else None
    except ValueError:
        return None


def read_page(html: str, url: str) -> PageText:
    """The text of a page. Broken HTML is read as far as it goes; nothing is raised."""
    reader = _Reader(url)
    reader.feed(html)
    reader.close()
    lines = [re.sub(r"[ \t\r\f\v\u00a0]+", " ", line).strip(" ") for line in "".join(reader.parts).split("\n")]
    kept = [line for line in lines if line and line not in ("-", "|")]
    return PageText(" ".join(reader.title.split()), reader.date, "\n".join(kept), tuple(reader.links))
