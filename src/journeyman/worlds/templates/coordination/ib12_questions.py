"""IB12: the bidders' question log, answered from the data room with sources: many small searches, to be shared out.

What makes it hard: some answers are not in the record and must be said to be absent, contracts count as amended, and
figures count as last reported. Long variants take most of the log, whose later rounds ask contract by contract and
payment by payment; what was counted by kind must agree with the answers.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from journeyman.worlds.curriculum import Knobs
from journeyman.worlds.drafting import sheet, xlsx_bytes
from journeyman.worlds.template import Answer, Bound, Files, Lost, Solving, Unbindable, Wrong
from journeyman.worlds.templates import reading
from journeyman.worlds.templates.banking.sheets import one_file, sheet_rows
from journeyman.worlds.templates.law.cl1_clauses import TITLES, clause_value
from journeyman.worlds.templates.matrices import matrix_checks
from journeyman.worlds.verify import Check

if TYPE_CHECKING:
    from journeyman.worlds.office import Office

FILE = "answers.xlsx"
ABSENT = "not in the record"
LAW = "Governing law and jurisdiction"
FIGURES = {
    "consolidated revenue": ("revenue", "Revenue"),
    "EBITDA before exceptional items": ("ebitda", "EBITDA before"),
}
"""Words of a question -> item of the truth, beginning of its line in a report."""

SHARES = re.compile(r"How many shares does (.+) hold in class (.+)\?")
STRATUM = re.compile(r"What is the population of the stratum (.+)\?")
FIGURE = re.compile(r"What was (consolidated revenue|EBITDA before exceptional items) in fiscal year (\d{4})\?")
CLAUSE = re.compile(r"What does contract (\w+) with (.+) provide on (.+)\?")
VOLUME = re.compile(r"What volume had contract (\w+) in fiscal year (\d{4})\?")
CENTRE = re.compile(r"Which cost centre bears payment (\w+)\?")
KINDS = {"clause": CLAUSE, "volume": VOLUME, "cost centre": CENTRE}
"""Kind of a question -> how it is put; every other question is of the kind ``other``."""

FOUND = {1: (20, 32), 2: (100, 120), 3: (172, 190)}
"""Knob ``length`` -> least and most questions that the record answers; about one document each."""


@dataclass(frozen=True)
class IB12:
    """See the module."""

    id: str = "IB12"
    domain: str = "coordination"
    title: str = "question log of bidders answered with sources"
    traps: tuple[str, ...] = ("T2", "T11", "T12")

    def bind(self, office: Office, rng: random.Random, knobs: Knobs) -> Bound:
        """See ``Template.bind``."""
        log = office.truth.rows("SELECT no, text, answerable FROM question ORDER BY no")
        known = [_answered(office, row) for row in log]
        rows = [row for row in known if row is not None]
        absent = [row for row in rows if row["answer"] == ABSENT]
        found = [row for row in rows if row["answer"] != ABSENT]
        if not absent or len(found) < 5:
            raise Unbindable("too few questions of known kinds")
        count = rng.randint(*FOUND[knobs.length]) if knobs.length else 4 + 5 * knobs.fan_out
        if count > len(found):
            raise Unbindable("the log is too short")
        chosen = [*rng.sample(found, count), *rng.sample(absent, min(len(absent), 1 + knobs.fan_out))]
        chosen.sort(key=lambda row: int(row["no"]))
        ask = {"numbers": [row["no"] for row in chosen], "file": FILE, "currency": office.setting.currency}
        answer = {"answers": [_line(row["no"], row["text"], row["answer"], row["source"]) for row in chosen]}
        hard = [i for i, row in enumerate(chosen) if row["answer"] != row["careless"]]
        blind = {"answers": [_line(row["no"], row["text"], row["careless"], row["source"]) for row in chosen]}
        wrong = _wrong(chosen, answer)
        return Bound(
            self.id, self.domain, office.id, _instruction(office, ask, rng), ask, answer, _checks(chosen, hard),
            (FILE,), wrong, trap_blind=blind,
            single={"answers": [{**row, "answer": ABSENT} for row in answer["answers"]][:2]},
            reads=(office.of_kind("question_log")[0].path,), traps=(), unordered=("answers",), knobs=knobs,
            notes={"questions": len(chosen), "absent": sum(row["answer"] == ABSENT for row in chosen)},
        )  # fmt: skip

    def write(self, bound: Bound, answer: Answer, world: Files, form: str = "plain") -> dict[str, bytes]:
        """See ``Template.write``."""
        return {FILE: xlsx_bytes(layout(answer))}

    def solve(self, ask: Mapping[str, Any]) -> Solving:
        """See ``Template.solve``."""
        rows = yield from sheet_rows((yield from one_file("*question*log*.xlsx")))
        questions = {int(row[0]): str(row[1]) for row in rows.values() if isinstance(row[0], int | float)}
        listed = yield from reading.list_files("*", "legal")
        listed += yield from reading.list_files("*voucher*", "procurement")
        answers = []
        for number in ask["numbers"]:
            found = yield from _look_up(questions[number], listed)
            answers.append(_line(number, questions[number], *found))
        yield from reading.deliver_workbook(FILE, layout({"answers": answers}))


def kind_of(text: str) -> str:
    """What a question is about."""
    return next((kind for kind, put in KINDS.items() if put.fullmatch(text)), "other")


def _line(number: int, text: str, answer: Any, source: str) -> dict[str, Any]:
    return {"no": number, "kind": kind_of(text), "answer": answer, "source": source}


def _answered(office: Office, row: Mapping[str, Any]) -> dict[str, Any] | None:
    """A question with its answer, what a careless reader says, and a file that shows it; None for unknown kinds."""
    text, truth = row["text"], office.truth
    base = {"no": row["no"], "text": text}
    if not row["answerable"]:
        return {**base, "answer": ABSENT, "careless": 25 + row["no"], "source": "", "sources": ()}
    if match := SHARES.fullmatch(text):
        shares = truth.value(
            "SELECT shares FROM security WHERE holder = :h AND share_class = :c", h=match[1], c=match[2]
        )
        return _row(base, shares, shares, [d.path for d in office.of_kind("cap_table")])
    if match := STRATUM.fullmatch(text):
        people = truth.value("SELECT population FROM stratum WHERE segment = :s", s=match[1])
        return _row(
            base, people, people, [d.path for kind in ("survey_method", "survey") for d in office.of_kind(kind)]
        )
    if match := FIGURE.fullmatch(text):
        return _figure(office, base, FIGURES[match[1]][0], match[2])
    if match := CLAUSE.fullmatch(text):
        return _clause(office, base, match[1], match[3].replace(" ", "_"))
    if match := VOLUME.fullmatch(text):
        facts = [office.facts.get(f"review:{match[1]}:{int(match[2]) + off}:volume") for off in (0, -1, 1)]
        values = [fact.value for fact in facts if fact is not None]
        return _stated(office, base, f"review:{match[1]}:{match[2]}:volume", values[min(1, len(values) - 1)])
    if match := CENTRE.fullmatch(text):
        fact = f"voucher:{match[1]}:centre"
        return _stated(office, base, fact, office.facts[fact].value) if fact in office.facts else None
    return None


def _stated(office: Office, base: Mapping[str, Any], fact: str, careless: Any) -> dict[str, Any] | None:
    """A question that one fact answers."""
    return _row(base, office.facts[fact].value, careless, sorted({one.path for one in office.where(fact)}))


def _row(base: Mapping[str, Any], answer: Any, careless: Any, sources: list[str]) -> dict[str, Any] | None:
    return (
        {**base, "answer": answer, "careless": careless, "source": sources[-1], "sources": sources} if sources else None
    )


def _figure(office: Office, base: Mapping[str, Any], item: str, year: str) -> dict[str, Any] | None:
    fact = f"income:group:FY{year}:{item}"
    first, last = office.facts.get(fact), office.facts.get(f"{fact}:restated") or office.facts.get(fact)
    if first is None or last is None:
        return None
    reports = [r.path for f in (last.fact_id,) for r in office.where(f) if "annual_report" in r.path.lower()]
    return _row(
        base, round(float(last.value) / 1000) * 1000, round(float(first.value) / 1000) * 1000, sorted(set(reports))
    )


def _clause(office: Office, base: Mapping[str, Any], contract: str, kind: str) -> dict[str, Any] | None:
    if (kind not in TITLES and kind != "governing_law") or office.trap("T17", f"clause:{contract}:{kind}"):
        return None
    rows = office.truth.rows(
        "SELECT * FROM clause WHERE contract_id = :c AND type = :t ORDER BY id", c=contract, t=kind
    )
    now = [row for row in rows if row["valid_from"] <= office.today]
    last = [row for row in now if row["id"] not in {one["supersedes"] for one in now}]
    first = [row for row in now if not row["supersedes"]]
    if len(last) != 1 or len(first) != 1:
        return None
    values = [json.loads(row["params_json"])["value"] for row in (last[0], first[0])]
    paths = sorted({r.path for r in office.where(f"clause:{last[0]['id']}")})
    return _row(base, values[0], values[1], paths)


def _look_up(text: str, listed: list[str]) -> reading.Reading:
    """(answer, file) for one question, by the tools; ``listed``: files of the contracts and vouchers."""
    if match := CLAUSE.fullmatch(text):
        return (yield from _look_up_clause(match[1], match[3].replace(" ", "_"), listed))
    if match := VOLUME.fullmatch(text):
        name = re.compile(rf"reviews/{match[1]}\W?_?review\W?_?FY{match[2]}\.txt", re.IGNORECASE)
        path = next((one for one in listed if name.search(one)), "")
        body = (yield from reading.plain_text(path)) if path else ""
        return reading.whole_number(reading.words_between(body, f"Volume in FY{match[2]}:")), path
    if match := CENTRE.fullmatch(text):
        path = next(one for one in listed if one.lower().endswith(f"{match[1].lower()}.txt"))
        return reading.words_between((yield from reading.plain_text(path)), "Cost centre:"), path
    if match := SHARES.fullmatch(text):
        path = (yield from reading.list_files("*cap*table*.xlsx"))[0]
        table = yield from reading.tab(path)
        for line in table.splitlines():
            if f'"{match[1]}"' in line and f'"{match[2]}"' in line:
                cells = json.loads(line.partition(": ")[2])
                return next(int(one) for one in cells if isinstance(one, int | float) and one > 999), path
        raise Lost(text)
    if match := STRATUM.fullmatch(text):
        path = (yield from reading.list_files("*survey*method*"))[0]
        body = yield from reading.document_text(path)
        found = re.search(rf"{re.escape(match[1])}\W+(\d[\d.,' ]*)", body)
        return (reading.whole_number(found[1]), path) if found else (ABSENT, "")
    if match := FIGURE.fullmatch(text):
        return (yield from _look_up_figure(FIGURES[match[1]][1], int(match[2])))
    yield from reading.search(text.rstrip("?"))
    return ABSENT, ""


def _look_up_figure(line: str, year: int) -> reading.Reading:
    """The last report that shows the year: that of the year after, in its second column, else its own."""
    for shown, column in ((year + 1, 1), (year, 0)):
        found = yield from reading.list_files(f"*annual*report*{shown}*.pdf")
        if found:
            text = yield from reading.document_text(found[0])
            numbers = reading.report_line(text, line)
            if len(numbers) > column:
                return reading.whole_number(numbers[column]) * 1000, found[0]
    raise Lost(f"{line} {year}")


def _look_up_clause(contract: str, kind: str, listed: list[str]) -> reading.Reading:
    own = [one for one in listed if re.match(rf"{contract}(?!\d)", one.rpartition("/")[2], re.IGNORECASE)]
    path = next(one for one in own if one.startswith("legal/contracts/"))
    text = yield from reading.document_text(path)
    value, source = _value_of(kind, reading.section(text, TITLES.get(kind, LAW))), path
    for amendment in (one for one in own if "amendment" in one.rpartition("/")[2].lower()):
        body = " ".join((yield from reading.document_text(amendment)).split())
        title = re.escape(TITLES.get(kind, LAW))
        found = re.search(rf"Clause \d+ \({title}\)(.*?)(?= \d+\. (?:Clause|Continuation)|$)", body, re.IGNORECASE)
        if found and reading.is_signed(body):
            value, source = _value_of(kind, found[1].partition("following text:")[2] or found[1]), amendment
    return value, source


def _value_of(kind: str, text: str) -> Any:
    if kind != "governing_law":
        return clause_value(kind, text)
    found = re.search(r"[Ll]aws of ((?:the )?[A-Z]\w+(?: (?:of|and|[A-Z]\w+))*(?: [A-Z]\w+)?)", text)
    return found[1].removesuffix(" The").strip() if found else ABSENT


def _wrong(chosen: list[dict[str, Any]], answer: Answer) -> tuple[Wrong, ...]:
    rows = answer["answers"]
    invented = [
        {**row, "answer": chosen[i]["careless"] if row["answer"] == ABSENT else row["answer"]}
        for i, row in enumerate(rows)
    ]
    stale = [{**row, "answer": chosen[i]["careless"]} for i, row in enumerate(rows)]
    shifted = [{**row, "answer": rows[i - 1]["answer"]} for i, row in enumerate(rows)]
    given_up = [{**row, "answer": ABSENT} for row in rows]
    scaled = [
        {**row, "answer": row["answer"] / 1000 if isinstance(row["answer"], int | float) else row["answer"]}
        for row in rows
    ]
    found = [
        Wrong("T11:invented", {"answers": invented}, "hard cells", "T11"),
        Wrong("stale-version", {"answers": stale}, "hard cells"),
        Wrong("swapped-entity", {"answers": shifted}, "every cell"),
        Wrong("nothing is in the record", {"answers": given_up}, "every cell"),
        Wrong("thousands for units", {"answers": scaled}, "every cell"),
    ]
    return tuple(one for one in found if one.answer["answers"] != rows)


def _checks(chosen: list[dict[str, Any]], hard: list[int]) -> tuple[Check, ...]:
    cells = [[row["no"], {"absent": True} if row["answer"] == ABSENT else row["answer"]] for row in chosen]
    sources = [
        [
            row["no"],
            {"one_of": [form for path in row["sources"] for form in (path, f"/{path}", path.rpartition("/")[2])]},
        ]
        for row in chosen
        if row["sources"]
    ]
    columns: list[dict[str, Any]] = [{"name": "No"}, {"name": "Answer", "tol": {"abs": 0.01, "rel": 1e-6}}]
    kinds = by_kind({"answers": [{"kind": kind_of(row["text"]), "answer": row["answer"]} for row in chosen]})
    parts = [
        Check(f"part {kind}", "table", {
            "file": FILE, "columns": columns, "key": ["No"], "extra": "ignored",
            "rows": [cell for cell, row in zip(cells, chosen, strict=True) if kind_of(row["text"]) == kind],
        }, weight=0.02, stage="intermediate")
        for kind, _, _ in kinds if kind in KINDS and len(chosen) >= FOUND[2][0]
    ]  # fmt: skip
    return (
        Check("files", "present", {"files": [FILE]}, kind="gate", no_op="pass"),
        *matrix_checks(FILE, columns, cells, [(i, 1) for i in hard], key=["No"], trap_ids=("T11", "T2")),
        Check("sources", "table", {
            "file": FILE, "columns": [{"name": "No"}, {"name": "Source"}], "rows": sources, "extra": "ignored",
            "credit": "share",
        }, weight=0.1, stage="intermediate"),
        Check("kinds", "table", {
            "file": FILE, "sheet": "Kinds", "rows": [list(line) for line in kinds],
            "columns": [{"name": name} for name in ("Kind", "Questions", "Absent")],
        }, weight=0.05, stage="intermediate"),
        *parts,
    )  # fmt: skip


def layout(answer: Answer) -> list[dict[str, Any]]:
    """One row per question; one per kind of question."""
    rows = [[row.get("no"), row.get("answer"), row.get("source") or None] for row in answer["answers"]]
    return [
        sheet("Answers", ["No", "Answer", "Source"], rows),
        sheet("Kinds", ["Kind", "Questions", "Absent"], [list(line) for line in by_kind(answer)]),
    ]


def by_kind(answer: Answer) -> list[tuple[str, int, int]]:
    """Kind, questions, how many of them the record does not answer; kinds that were asked, in their order."""
    rows = answer["answers"]
    counted = []
    for kind in (*KINDS, "other"):
        own = [row for row in rows if row.get("kind") == kind]
        if own:
            counted.append((kind, len(own), sum(row.get("answer") == ABSENT for row in own)))
    return counted


def _instruction(office: Office, ask: Mapping[str, Any], rng: random.Random) -> str:
    numbers = ", ".join(map(str, ask["numbers"]))
    opener = rng.choice((
        f"The bidders for {office.setting.company} have sent questions, and answers go out tonight.",
        f"Please answer part of the bidders' question log for {office.setting.company} from the data room.",
        f"We owe the bidders for {office.setting.company} answers to their questions.",
    ))  # fmt: skip
    return f"""{opener}

The log is Question_Log.xlsx in deals. Answer numbers {numbers}; the questions do not depend on each other. Contracts
count as they stand on {office.today}, with every amendment that both sides have signed. Figures of a fiscal year are
those of the latest annual report that shows the year. What the record does not hold is answered with `{ABSENT}`; do not
estimate.

Save `artifacts/{FILE}` with two sheets, headers in row 1. `Answers` has one row per question: `No`; `Answer` (one
value: amounts in whole {ask["currency"]}, so that 1,234 thousand is 1234000; periods as the bare number; choices as one
word, of `consent`, `notice`, `termination`, `none` or `exclusive`, `non-exclusive`; laws by the name of the country or
state as written; cost centres by their code); `Source` (path of the file that says it, empty where there is none).
`Kinds` has one row for each kind of question that occurs: `Kind`, of `clause` (what a contract provides on something),
`volume` (of a contract in a year), `cost centre` (of a payment) or `other`; `Questions` (how many of the numbers above
are of this kind); `Absent` (how many of those the record does not answer).
"""
