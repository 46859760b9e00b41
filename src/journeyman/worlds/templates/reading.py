"""What solvers share: calls of the agent's tools as small generators, and texts that they answer read as values.

A generator here is used with ``yield from`` and gives back what it found. Only tool calls are yielded, so a solver sees
nothing that an agent could not see.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Generator, Sequence
from fnmatch import fnmatch
from typing import Any

from journeyman.worlds.drafting import save_text, save_workbook
from journeyman.worlds.template import Lost, ToolCall

Reading = Generator[ToolCall, str, Any]

PLAIN = re.compile(r"\s*-?\d+(?:\.\d+)?\s*")

LINES_PER_LOOK = 110
"""Lines of a text file per call, below what one answer shows."""

MOST_FILES = 300
"""Paths per listing, below what one answer shows."""


def shell(code: str) -> Reading:
    """Output of a command line. Raises Lost when it fails."""
    answer = json.loads((yield ToolCall("code_exec", {"code": code})))
    if not answer["success"]:
        raise Lost(f"{code[:80]}: {answer['output'][:200]}")
    return answer["output"]


def list_files(pattern: str, under: str = "") -> Reading:
    """Paths of files whose name matches a shell pattern, sorted.

    No shell is asked: after one, what the tools have read before must be read anew.
    """
    arguments = {"pattern": pattern, "path": f"/{under}", "max_results": MOST_FILES}
    listed = yield ToolCall("filesystem_search_files", arguments)
    paths = [line.lstrip("/") for line in listed.splitlines()[1:] if line.startswith("/")]
    return sorted(path for path in paths if fnmatch(path.rpartition("/")[2].lower(), pattern.lower()))


def plain_text(path: str) -> Reading:
    """A short text file."""
    return (yield ToolCall("filesystem_read_text_file", {"file_path": f"/{path}"}))


def text_lines(path: str) -> Reading:
    """All lines of a text file, a look at a time."""
    lines: list[str] = []
    while True:
        first = len(lines) + 1
        output = yield from shell(f"sed -n '{first},{first + LINES_PER_LOOK - 1}p' '{path}'")
        found = output.split("\n")
        found = found[:-1] if found and found[-1] == "" else found
        lines += found
        if len(found) < LINES_PER_LOOK:
            return [line.rstrip("\r") for line in lines]


def csv_records(path: str) -> Reading:
    """Records of a csv file by the names of its columns."""
    lines = yield from text_lines(path)
    text = "\n".join(lines).lstrip("\ufeff")
    delimiter = max(",;\t", key=text.partition("\n")[0].count)
    return list(csv.DictReader(io.StringIO(text), delimiter=delimiter))


def search(query: str, most: int = 10, path: str = "/") -> Reading:
    """Hits of the full-text search: path, place and words around, as the tool gives them."""
    arguments = {"query": query, "max_results": most, "path": path}
    text = yield ToolCall("search_world", arguments)
    return text


def tab(path: str, index: int = 0, cells: str = "", *, formulas: bool = False) -> Reading:
    """Cells of a sheet as {address: text}; formulas begin with ``=`` when they are asked for."""
    arguments: dict[str, Any] = {"file_path": path, "tab_index": index, "max_rows": 400, "include_formulas": formulas}
    if cells:
        arguments["cell_range"] = cells
    text = yield ToolCall("spreadsheets_read_tab", arguments)
    return text


_BLOCK = re.compile(
    r"^(?:p\d+@[\d.,-]+(?: \([a-z]+\))?|\S+ (?:[Hh]eading \d|Title|paragraph|[A-Z][\w ]*)(?: \d)?:) ?", re.MULTILINE
)


def document_text(path: str) -> Reading:
    """Text of a Word or PDF file, one block a line, without addresses."""
    return without_addresses((yield from addressed_text(path)))


def addressed_text(path: str) -> Reading:
    """The same with the address at the beginning of each line, as the tools give it."""
    if path.lower().endswith(".pdf"):
        return (yield ToolCall("pdfs_read_pdf_pages", {"file_path": f"/{path}"}))
    found, page, pages = "", 0, 1
    while page < pages:
        text = yield ToolCall("documents_read_document_content", {"file_path": f"/{path}", "page_index": page})
        head, _, body = text.partition("\n")
        pages, page = int(json.loads(head).get("pages", 1)), page + 1
        found += body + "\n"
    return found


def place_of(addressed: str, words: str) -> str:
    """Page or paragraph of the first block that holds these words; empty where none does."""
    wanted = " ".join(words.split()).lower()
    for line in addressed.splitlines():
        if wanted in " ".join(line.split()).lower():
            return line.split(" ", 1)[0].partition("@")[0]
    return ""


def report_line(text: str, line: str) -> list[str]:
    """The numbers behind the name of a line in the income statement of a report, as written."""
    match = re.search(rf"{re.escape(line)}(?: exceptional items)?[^\n\d(]*([^\n]+)", text)
    return re.findall(r"\(?\d[\d.,']*\)?", match[1]) if match else []


def section(text: str, title: str) -> str:
    """The text of a numbered clause with this title, up to the next one; empty where there is none."""
    match = re.search(rf"^\d+\. {re.escape(title)}[^\S\n]*\n(.*?)(?=^\d+\. [A-Z]|\Z)", text, re.M | re.S | re.I)
    return " ".join(match[1].split()) if match else ""


def number(text: Any) -> float:
    """A number as people and programs write it. Raises Lost when there is none."""
    from journeyman.documents.amounts import NotAnAmount, parse

    if PLAIN.fullmatch(str(text)):
        return float(text)
    try:
        return float(parse(str(text)).value)
    except (NotAnAmount, ValueError) as error:
        raise Lost(f"no number: {text!r}") from error


def without_addresses(addressed: str) -> str:
    """The text of ``addressed_text`` alone."""
    return _BLOCK.sub("", addressed)


def day(text: str) -> str:
    """A date in ISO 8601. Raises Lost when there is none."""
    from journeyman.documents.amounts import NotADate, parse_date

    try:
        return str(parse_date(text.strip().rstrip(",")).value)[:10]
    except NotADate as error:
        raise Lost(f"no date: {text!r}") from error


def days(texts: Sequence[str]) -> list[str]:
    """Dates of one column in ISO 8601: whether the month stands first in ``07/03/2023`` shows in the others.

    Raises:
        Lost: one is no date.
    """
    figures = [found for text in texts if (found := _FIGURES.fullmatch(text.strip()))]
    if not any(int(found[1]) > 12 for found in figures) and any(int(found[2]) > 12 for found in figures):
        return [day(_FIGURES.sub(r"\3-\1-\2", text.strip())) for text in texts]
    return [day(text) for text in texts]


_FIGURES = re.compile(r"(\d\d)/(\d\d)/(\d{4})")


def is_signed(text: str) -> bool:
    """Whether both sides have signed: two lines with a name and a date, none left open."""
    return len(re.findall(r"Signed for [^:_]+: [^_:]*?\d{4}", text)) >= 2


def thousands(text: str) -> float:
    """A whole number of a report, negative in brackets."""
    value = float(whole_number(text))
    return -value if text.strip().startswith(("(", "-")) else value


def whole_number(text: str) -> int:
    """A whole amount, whatever separates its thousands: ``EUR 3.000.000``, ``1,500,000 USD``. Raises Lost."""
    digits = re.sub(r"[.,]\d{1,2}(?!\d)", "", text)
    found = re.sub(r"\D", "", digits)
    if not found:
        raise Lost(f"no amount: {text!r}")
    return int(found)


def deliver_workbook(name: str, sheets: Sequence[dict[str, Any]]) -> Reading:
    """Leave a workbook where deliverables belong."""
    return (yield save_workbook(name, sheets))


def deliver_text(name: str, data: bytes) -> Reading:
    """Leave a text file where deliverables belong. Raises Lost when it could not be written."""
    answer = json.loads((yield save_text(name, data)))
    if not answer["success"]:
        raise Lost(str(answer["output"])[:200])
    return answer["output"]


def words_between(text: str, start: str, end: str = "\n") -> str:
    """What stands between two marks; empty when the first is not there."""
    match = re.search(re.escape(start) + r"(.*?)" + re.escape(end), text + end, re.DOTALL)
    return match[1].strip() if match else ""
