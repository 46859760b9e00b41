"""The text of an HTML body as a reader sees it: blocks on lines of their own, cells by tabs, nothing that is hidden."""

from __future__ import annotations

import re
from html.parser import HTMLParser

SKIPPED = {"script", "style", "head", "title", "template"}
BLOCKS = {"p", "div", "br", "tr", "li", "ul", "ol", "table", "blockquote", "hr", "pre", "section", "article"}
BLOCKS |= {"h1", "h2", "h3", "h4", "h5", "h6", "header", "footer", "dl", "dt", "dd"}


class _Text(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.out: list[str] = []
        self.skipped = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in SKIPPED:
            self.skipped += 1
        elif tag in BLOCKS:
            self.out.append("\n")
        elif tag in ("td", "th"):
            self.out.append("\t")
        elif tag == "img":
            alt = dict(attrs).get("alt")
            self.out.append(f"[{alt}]" if alt else "")

    def handle_endtag(self, tag: str) -> None:
        if tag in SKIPPED:
            self.skipped = max(0, self.skipped - 1)
        elif tag in BLOCKS:
            self.out.append("\n")

    def handle_data(self, data: str) -> None:
        if not self.skipped:
            self.out.append(re.sub(r"[ \t\r\n\f]+", " ", data))


def text_of_html(source: str) -> str:
    """The visible text; never fails, whatever the markup."""
    parser = _Text()
    # an unclosed head or style would hide the whole message
    parser.feed(re.sub(r"(?is)<(script|style)\b[^>]*>.*?(</\1\s*>|\Z)", " ", source))
    parser.close()
    text = "".join(parser.out)
    if parser.skipped and not text.strip():
        text = re.sub(r"<[^>]*>", " ", source)
    lines = [re.sub(r" *\t *", "\t", re.sub(r" {2,}", " ", line)).strip(" \t") for line in text.split("\n")]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip("\n")
