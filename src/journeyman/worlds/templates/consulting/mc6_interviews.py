"""MC6: interviews coded with a fixed taxonomy, each code with the statement that carries it, verbatim, and its place.

What makes it hard: transcripts are many and of two formats, most answers carry no code, and a quote must be word for
word. Transcripts do not depend on each other, so the work can be shared out.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from journeyman.worlds.curriculum import Knobs
from journeyman.worlds.data import pack
from journeyman.worlds.drafting import sheet, xlsx_bytes
from journeyman.worlds.template import Answer, Bound, Files, Lost, Solving, Unbindable, Wrong
from journeyman.worlds.templates import reading
from journeyman.worlds.verify import Check

if TYPE_CHECKING:
    from journeyman.worlds.office import Office

FILE = "codes.xlsx"
KEYS = ("interview", "code", "quote", "file", "place")


@dataclass(frozen=True)
class MC6:
    """See the module."""

    id: str = "MC6"
    domain: str = "consulting"
    title: str = "interviews coded with a taxonomy, quotes verbatim with their place"
    traps: tuple[str, ...] = ()

    def bind(self, office: Office, rng: random.Random, knobs: Knobs) -> Bound:
        """See ``Template.bind``."""
        interviews = [row["id"] for row in office.truth.rows("SELECT id FROM interview ORDER BY id")]
        books = office.of_kind("code_book")
        if len(interviews) < 12 or len(books) != 1:
            raise Unbindable("fewer than twelve interviews, or no code book")
        chosen = sorted(rng.sample(interviews, min(len(interviews), 6 + 6 * knobs.fan_out)))
        rows, places = [], []
        for name in chosen:
            quotes = office.truth.rows("SELECT id, code, text FROM quote WHERE interview_id = :i ORDER BY code", i=name)
            for quote in quotes:
                where = office.where(f"quote:{quote['id']}")
                if len(where) != 1:
                    raise Unbindable(f"quote {quote['id']} stands in {len(where)} places")
                rows.append({"interview": name, "code": quote["code"], "quote": quote["text"], "file": where[0].path,
                             "place": where[0].locator})  # fmt: skip
                places.append([{"path": where[0].path, "locator": where[0].locator}])
        ask = {"interviews": chosen, "file": FILE}
        return Bound(
            self.id, self.domain, office.id, _instruction(office, ask, rng), ask, {"codes": rows},
            _checks(rows, places), (FILE,), _wrong(rows),
            trap_blind={"codes": [{**row, "place": ""} for row in _first(rows)]},
            single={"codes": [row for row in rows if row["interview"] == chosen[0]]},
            facts=tuple(f"quote:{row['interview']}:{row['code']}" for row in rows),
            reads=(books[0].path, *sorted({row["file"] for row in rows})), unordered=("codes",), knobs=knobs,
            notes={"interviews": len(chosen), "codes": len(rows)},
        )  # fmt: skip

    def write(self, bound: Bound, answer: Answer, world: Files, form: str = "plain") -> dict[str, bytes]:
        """See ``Template.write``."""
        return {FILE: xlsx_bytes(layout(answer))}

    def solve(self, ask: Mapping[str, Any]) -> Solving:
        """See ``Template.solve``."""
        books = yield from reading.list_files("*code*book*.docx", "interviews")
        yield from reading.document_text(books[0])
        rows = []
        for name in ask["interviews"]:
            paths = yield from reading.list_files(f"*{name}*", "interviews")
            if len(paths) != 1:
                raise Lost(f"{len(paths)} transcripts of {name}")
            for place, answer in (yield from _answers(paths[0])):
                code = code_of(answer)
                if code:
                    rows.append({"interview": name, "code": code, "quote": answer, "file": paths[0], "place": place})
        yield from reading.deliver_workbook(FILE, layout({"codes": rows}))


def _answers(path: str) -> reading.Reading:
    """(place, answer) of a transcript."""
    if path.endswith(".txt"):
        lines = yield from reading.text_lines(path)
        return [(f"line:{i}", line[3:]) for i, line in enumerate(lines, 1) if line.startswith("A: ")]
    text = yield from reading.addressed_text(path)
    found = []
    for line in text.splitlines():
        head, _, answer = line.partition(": A: ")
        if answer:
            found.append((head.split(" ")[0], answer))
    return found


def code_of(answer: str) -> str:
    """The code of a statement, by what statements of a code sound like; empty for none."""
    for code, statements in pack("interviews")["answers"].items():
        if code != "neutral" and answer.strip() in statements:
            return str(code)
    return ""


def _first(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """One code per interview."""
    seen: dict[str, dict[str, Any]] = {}
    for row in rows:
        seen.setdefault(row["interview"], dict(row))
    return list(seen.values())


def _wrong(rows: list[dict[str, Any]]) -> tuple[Wrong, ...]:
    codes = sorted({row["code"] for row in rows})
    other = {code: codes[i - 1] for i, code in enumerate(codes)}
    longest = max(rows, key=lambda row: len(row["quote"]))
    found = [
        Wrong("one code per interview", {"codes": _first(rows)}, "codes"),
        Wrong("swapped-entity", {"codes": [{**row, "code": other[row["code"]]} for row in rows]}, "codes"),
        Wrong("not verbatim", {"codes": [{**r, "quote": r["quote"].partition(",")[0]} for r in rows]}, "quotes"),
        Wrong("stale-version", {"codes": [row for row in rows if row["interview"] != rows[-1]["interview"]]}, "codes"),
        Wrong("a code too many", {"codes": [*rows, {**longest, "code": other[longest["code"]]}]}, "quotes"),
    ]
    return tuple(one for one in found if one.answer["codes"] != rows)


def _checks(rows: list[dict[str, Any]], places: Sequence[Sequence[Mapping[str, str]]]) -> tuple[Check, ...]:
    names = ("Interview", "Code", "Quote")
    base: dict[str, Any] = {"file": FILE, "columns": [{"name": name} for name in names], "key": ["Interview", "Code"],
                            "rows": [[row["interview"], row["code"], row["quote"]] for row in rows]}  # fmt: skip
    labels = {**base, "columns": base["columns"][:2], "rows": [line[:2] for line in base["rows"]]}
    return (
        Check("files", "present", {"files": [FILE]}, kind="gate", no_op="pass"),
        Check("quotes", "table", base, weight=0.55),
        Check("codes", "table", labels, weight=0.15, stage="intermediate"),
        Check("places", "cites", {"file": FILE, "columns": ["File", "Place"], "hops": list(map(list, places)),
                                  "spare": 0}, weight=0.2, stage="intermediate"),
        Check("most codes", "table", {**labels, "credit": "f1"}, weight=0.1, stage="intermediate", required=False),
    )  # fmt: skip


def layout(answer: Answer) -> list[dict[str, Any]]:
    """One sheet, one row per code of an interview."""
    rows = [[row.get(key) for key in KEYS] for row in answer["codes"]]
    return [sheet("Codes", ["Interview", "Code", "Quote", "File", "Place"], rows)]


def _instruction(office: Office, ask: Mapping[str, Any], rng: random.Random) -> str:
    company = office.setting.company
    opener = rng.choice((
        f"The customer interviews for {company} are done and have to be coded.",
        f"We need the evidence from the interviews about {company} in one table.",
        f"Please code the interviews of the study on {company}.",
    ))  # fmt: skip
    return f"""{opener}

Code these transcripts in the folder interviews: {", ".join(ask["interviews"])}. The code book there defines the codes;
use them as they are written. An answer that fits a code gets it, one answer at most one code; answers that fit none are
left out. A transcript may have several codes, each at most once.

Save `artifacts/{FILE}` with one sheet, headers in row 1, one row per code of a transcript: `Interview` (such as
{ask["interviews"][0]}); `Code`; `Quote` (the whole answer, word for word, without the leading A:); `File` (its path);
`Place` (the line of a text file as `line:12`, the paragraph's address of a Word file as `para:...`).
"""
