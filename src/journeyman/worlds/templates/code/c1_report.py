"""C1: repair a script that reports monthly revenue, and make the report anew.

What makes it hard: the code looks tidy and its tests pass; the rules stand in a README, and one of them is broken. What
was right must stay right.
"""

from __future__ import annotations

import csv
import io
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from journeyman.worlds.content import Delimited, unmarked
from journeyman.worlds.curriculum import Knobs
from journeyman.worlds.data import pack
from journeyman.worlds.drafting import sheet, xlsx_bytes
from journeyman.worlds.template import Answer, Bound, Files, Lost, Solving, Unbindable, Wrong
from journeyman.worlds.templates import reading
from journeyman.worlds.verify import Check

if TYPE_CHECKING:
    from journeyman.worlds.office import Office

BOOK = "report.xlsx"
SOURCES = ("report.py", "periods.py", "rules.py")
COLUMNS = ("booking", "booked_on", "region", "kind", "status", "gross", "tax")
NUM_DRAWS = 300
REPO = "it/monthly_report"

Booking = dict[str, str]


@dataclass(frozen=True)
class C1:
    """See the module."""

    id: str = "C1"
    domain: str = "code"
    title: str = "a broken reporting script, repaired, and its report"
    traps: tuple[str, ...] = ()

    def bind(self, office: Office, rng: random.Random, knobs: Knobs) -> Bound:
        """See ``Template.bind``."""
        found = [one for one in office.of_kind("bookings") if isinstance(one.content, Delimited)]
        if len(found) != 1 or not isinstance(found[0].content, Delimited):
            raise Unbindable("no bookings, or several")
        bug = office.truth.value("SELECT kind FROM defect WHERE id = 'DF-repo'")
        rows = [[unmarked(word)[0] for word in row] for row in found[0].content.rows]
        bookings = [dict(zip(rows[0], row, strict=True)) for row in rows[1:]]
        bugs = sorted(pack("reporting_repo")["bugs"])
        kept = dict.fromkeys(bugs, True)
        ask, chosen = _scope(bookings, bug, rng)
        ask |= {"folder": REPO, "bookings": found[0].path}
        answer: Answer = {"kept": kept, "report": _since(revenue(chosen), ask)}
        fails, passes = _cases(bug, bugs, rng)
        broken: Answer = {"kept": {**kept, bug: False}, "report": _since(revenue(chosen, bug), ask)}
        return Bound(
            self.id, self.domain, office.id, _instruction(office, ask, rng), ask, answer,
            _checks(answer, fails, passes), (*SOURCES, BOOK), _wrong(answer, broken, bug, bugs, chosen, ask),
            trap_blind=broken, single={"kept": broken["kept"], "report": []},
            reads=(found[0].path, *(f"{REPO}/{name}" for name in SOURCES)), knobs=knobs,
            notes={"bug": bug, "months": len({row["month"] for row in answer["report"]})},
        )  # fmt: skip

    def write(self, bound: Bound, answer: Answer, world: Files, form: str = "plain") -> dict[str, bytes]:
        """See ``Template.write``."""
        texts = sources([bug for bug, is_kept in answer["kept"].items() if not is_kept])
        return {**{name: text.encode() for name, text in texts.items()}, BOOK: xlsx_bytes(layout(answer))}

    def solve(self, ask: Mapping[str, Any]) -> Solving:
        """See ``Template.solve``."""
        yield from reading.shell(f"cat {ask['folder']}/README.md")
        texts: dict[str, str] = {}
        for name in SOURCES:
            texts[name] = yield from reading.shell(f"cat {ask['folder']}/{name}")
        repaired = 0
        for known in pack("reporting_repo")["bugs"].values():
            text = texts[known["file"]]
            if known["right"] not in text and known["wrong"] in text:
                texts[known["file"]] = text.replace(known["wrong"], known["right"])
                repaired += 1
        if repaired != 1:
            raise Lost(f"{repaired} lines break a rule of the README")
        for name, text in texts.items():
            yield from reading.deliver_text(name, text.encode())
        pick = f"[row for row in rows[1:] if int(row[5]) >= {ask['least']}]"
        code = f"rows = list(csv.reader(open('{ask['bookings']}')))\nout = rows[:1] + {pick}\n"
        part = f"python3 -c \"import csv\n{code}csv.writer(open('/tmp/part.csv', 'w')).writerows(out)\""
        run = f"{part} && cd artifacts && python3 -B report.py /tmp/part.csv /tmp/report.csv && cat /tmp/report.csv"
        printed = yield from reading.shell(run)
        table = list(csv.DictReader(io.StringIO(printed)))
        rows = [{**row, "revenue": int(row["revenue"])} for row in table if row["month"] >= ask["since"]]
        yield from reading.deliver_workbook(BOOK, layout({"report": rows}))


def revenue(bookings: Iterable[Booking], bug: str = "") -> list[dict[str, Any]]:
    """The report as the rules of the README want it, or with one of them broken."""
    totals: dict[tuple[str, str], int] = {}
    seen = list(bookings)
    for one in seen:
        status = one["status"] if bug == "cancelled" else one["status"].strip().lower()
        if status == "cancelled":
            continue
        amount = int(one["gross"]) - (0 if bug == "gross" else int(one["tax"]))
        amount = -amount if one["kind"] == "credit note" and bug != "sign" else amount
        key = one["booked_on"][:7], one["region"]
        totals[key] = totals.get(key, 0) + amount
    months, regions = {one["booked_on"][:7] for one in seen}, {one["region"] for one in seen}
    keys = sorted(totals) if bug == "missing" else [(m, r) for m in sorted(months) for r in sorted(regions)]
    if bug == "order":
        keys = [(m, r) for r in sorted(regions) for m in sorted(months)]
    return [{"month": m, "region": r, "revenue": totals.get((m, r), 0)} for m, r in keys]


def _scope(bookings: Sequence[Booking], bug: str, rng: random.Random) -> tuple[dict[str, Any], list[Booking]]:
    """Which bookings and months the report is about, such that the bug shows in it. Raises Unbindable."""
    sizes = sorted((int(one["gross"]) for one in bookings), reverse=True)
    leasts = [0, *(sizes[min(len(sizes) - 1, count)] for count in (20, 30, 45, 70))]
    rng.shuffle(leasts)
    for least in leasts:
        chosen = [one for one in bookings if int(one["gross"]) >= least]
        months = sorted({one["booked_on"][:7] for one in chosen})
        ask = {"since": months[rng.randrange(max(1, len(months) - 2))], "least": least}
        if _since(revenue(chosen), ask) != _since(revenue(chosen, bug), ask):
            return ask, chosen
    raise Unbindable("the bug shows in no report")


def _since(rows: Sequence[Mapping[str, Any]], ask: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [dict(row) for row in rows if row["month"] >= ask["since"]]


def sources(broken: Sequence[str]) -> dict[str, str]:
    """The modules of the repository with these rules broken."""
    library = pack("reporting_repo")
    texts = {name: str(library["files"][name]).lstrip("\n") for name in SOURCES}
    for bug in broken:
        known = library["bugs"][bug]
        texts[known["file"]] = texts[known["file"]].replace(known["right"], known["wrong"])
    return texts


def _draw(rng: random.Random) -> list[Booking]:
    """Bookings in which everything occurs."""
    made = []
    for number in range(1, rng.randrange(14, 26)):
        net = 10 * rng.randrange(5, 400)
        kind = "credit note" if rng.random() < 0.25 else "sale"
        status = rng.choice(("booked", "booked", "booked", "cancelled", "Cancelled ", " CANCELLED"))
        day = f"{rng.choice((2023, 2024))}-{rng.randrange(1, 13):02d}-{rng.randrange(1, 29):02d}"
        words = (f"BK{number:03d}", day, rng.choice(("east", "north", "south")), kind, status,
                 str(net + net // 5), str(net // 5))  # fmt: skip
        made.append(dict(zip(COLUMNS, words, strict=True)))
    return made


def _cases(bug: str, bugs: Sequence[str], rng: random.Random) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Cases that the broken script fails, and cases that it passes but would fail if another rule broke."""
    fails = next((c for c in (_draw(rng) for _ in range(NUM_DRAWS)) if revenue(c, bug) != revenue(c)), None)
    if fails is None:
        raise Unbindable(f"no case shows {bug}")
    passes, others = [], [one for one in bugs if one != bug]
    for _ in range(NUM_DRAWS):
        case = _harmless(_draw(rng), bug)
        if revenue(case, bug) != revenue(case):
            continue
        told = [one for one in others if revenue(case, one) != revenue(case)]
        if told:
            passes.append(case)
            others = [one for one in others if one not in told]
        if not others:
            return [_as_case(fails, "fails now")], [_as_case(one, f"passes now {n}") for n, one in enumerate(passes, 1)]
    raise Unbindable(f"no case shows {', '.join(others)}")


def _harmless(case: list[Booking], bug: str) -> list[Booking]:
    """The bookings that a bug does not touch."""
    if bug == "sign":
        return [one for one in case if one["kind"] == "sale"]
    if bug == "cancelled":
        return [one for one in case if one["status"] in ("booked", "cancelled")] if case else case
    if bug == "gross":
        return [{**one, "tax": "0"} for one in case]
    if bug == "order":
        return [{**one, "booked_on": case[0]["booked_on"]} for one in case]
    grid = [{**one, "booked_on": f"2024-0{1 + n % 2}-11", "region": ("east", "north")[n // 2 % 2]}
            for n, one in enumerate(case)]  # fmt: skip
    return [{**one, "status": "booked"} if n < 4 else one for n, one in enumerate(grid)]


def _as_case(case: list[Booking], name: str) -> dict[str, Any]:
    lines = [",".join(COLUMNS), *(",".join(one[key] for key in COLUMNS) for one in case)]
    out = ["month,region,revenue", *(f"{r['month']},{r['region']},{r['revenue']}" for r in revenue(case))]
    text = "\n".join(lines) + "\n"
    return {"name": name, "args": ["b.csv", "/dev/stdout"], "files": {"b.csv": text}, "stdout": "\n".join(out) + "\n"}


def _wrong(
    answer: Answer, broken: Answer, bug: str, bugs: Sequence[str], bookings: Sequence[Booking], ask: Mapping[str, Any]
) -> tuple[Wrong, ...]:
    kept, rows = answer["kept"], answer["report"]
    swapped = [{**row, "revenue": rows[i - 1]["revenue"]} for i, row in enumerate(rows)]
    found = [
        Wrong("not repaired", broken, "fails now"),
        Wrong("report by hand", {"kept": broken["kept"], "report": rows}, "fails now"),
        Wrong("stale-version", {"kept": kept, "report": _since(revenue(bookings, "gross"), ask)}, "report"),
        Wrong("swapped-entity", {"kept": kept, "report": swapped}, "report"),
        Wrong("all months", {"kept": kept, "report": revenue(bookings)}, "report"),
    ]
    other = next(one for one in bugs if one != bug)
    found.append(Wrong("another rule broken", {"kept": {**kept, other: False}, "report": rows}, "passes now"))
    return tuple(one for one in found if one.answer != answer)


def _checks(
    answer: Answer, fails: Sequence[Mapping[str, Any]], passes: Sequence[Mapping[str, Any]]
) -> tuple[Check, ...]:
    rows = [[row["month"], row["region"], row["revenue"]] for row in answer["report"]]
    columns = [{"name": "Month"}, {"name": "Region"}, {"name": "Revenue", "tol": {"abs": 0.0}}]
    return (
        Check("files", "present", {"files": [*SOURCES, BOOK]}, kind="gate", no_op="pass"),
        Check("passes now", "code.properties", {"entry": "report.py", "cases": list(passes)}, kind="gate",
              no_op="pass"),
        Check("fails now", "code.properties", {"entry": "report.py", "cases": list(fails)}, weight=0.5,
              stage="intermediate"),
        Check("report", "table", {"file": BOOK, "sheet": "Report", "columns": columns, "rows": rows,
                                  "key": ["Month", "Region"], "ordered": True}, weight=0.5),
    )  # fmt: skip


def layout(answer: Answer) -> list[dict[str, Any]]:
    """One sheet, one row per month and region; months are text."""
    rows = [[row.get("month"), row.get("region"), row.get("revenue")] for row in answer["report"]]
    return [sheet("Report", ["Month", "Region", "Revenue"], rows)]


def _instruction(office: Office, ask: Mapping[str, Any], rng: random.Random) -> str:
    opener = rng.choice((
        f"The monthly revenue report of {office.setting.company} has been wrong since somebody tidied up the code.",
        f"Finance at {office.setting.company} cannot use the monthly report: it disagrees with the ledger.",
        f"Since last week the monthly report of {office.setting.company} does not do what its README says.",
    ))  # fmt: skip
    names = ", ".join(f"`artifacts/{name}`" for name in SOURCES)
    what = f"{ask['bookings']}"
    if ask["least"]:
        what = f"the bookings of {what} with a gross amount of {ask['least']} or more, whatever their kind and status,"
    return f"""{opener}

The script is in {ask["folder"]}; the rules stand in its README. Find what breaks them and repair it; nothing else about
how it is called, what it reads and what it writes may change. Leave the folder as it is and save the whole repaired
program as {names} (files that needed no change as they are).

Then run it on {what}
and save the months from {ask["since"]} on as `artifacts/{BOOK}`: one sheet `Report` with the headers `Month`, `Region`,
`Revenue` in row 1, and the lines of the report below, months as text such as {ask["since"]}.

The program is also run on other bookings, with /dev/stdout as the file that it writes.
"""
