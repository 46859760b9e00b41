"""MC5: the price waterfall by segment and for all customers, with its chart.

What makes it hard: a deduction may be negative, which raises the price; lines of sums stand among the steps; and the
weights of the segments stand in another document.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from journeyman.worlds.curriculum import Knobs
from journeyman.worlds.drafting import CREATED, SheetRow
from journeyman.worlds.render.xlsx import column_letters
from journeyman.worlds.simulate.market import SUBTOTALS
from journeyman.worlds.template import FOLDER, Answer, Bound, Files, Lost, Solving, ToolCall, Unbindable, Wrong
from journeyman.worlds.templates import reading
from journeyman.worlds.verify import Check

if TYPE_CHECKING:
    from journeyman.worlds.office import Office

FILE = "waterfall.xlsx"
SHEET = "Waterfall"
STEPS = {
    "list_price": "List price", "volume_discount": "Volume discount", "promotion": "Promotions",
    "rebate": "Year-end rebate", "freight": "Freight absorbed", "terms": "Payment terms",
}  # fmt: skip
"""Steps in their order, as the study names them; all but the first are deducted."""

HEAD = ["Segment", "Customers", "Pocket price", "Pocket share"]
"""What stands before the columns of the steps."""

CENT = {"abs": 0.011}


@dataclass(frozen=True)
class MC5:
    """See the module."""

    id: str = "MC5"
    domain: str = "consulting"
    title: str = "price waterfall by segment, weighted, with a chart"
    traps: tuple[str, ...] = ("T6", "T10")

    def bind(self, office: Office, rng: random.Random, knobs: Knobs) -> Bound:
        """See ``Template.bind``."""
        studies, methods = office.of_kind("price_waterfall"), office.of_kind("survey_method")
        if len(studies) != 1 or len(methods) != 1:
            raise Unbindable("no price study, or no survey method")
        segments = list(office.setting.trade["segments"])
        chosen = rng.sample(segments, max(2, min(len(segments), 2 + knobs.fan_out)))
        rows = []
        for segment in chosen:
            count = office.truth.value("SELECT population FROM stratum WHERE segment = :s", s=segment)
            amounts = {
                step: float(office.truth.value(
                    "SELECT amount FROM price WHERE segment = :s AND step = :p AND valid_to IS NULL", s=segment, p=step
                ))
                for step in STEPS
            }  # fmt: skip
            rows.append({"segment": segment, "customers": int(count), **_effects(amounts)})
        ask: dict[str, Any] = {"segments": chosen, "file": FILE}
        answer: Answer = {"segments": rows}
        wrong = _wrong(rows, office)
        return Bound(
            self.id, self.domain, office.id, _instruction(office, ask, rng), ask, answer, _checks(rows, office),
            (FILE,), wrong,
            trap_blind={"segments": [_summed(_turned({**row, "customers": 1}), office) for row in rows]},
            single={"segments": [_summed({**row, "customers": 1, "freight": -abs(row["freight"])}, office)
                                 for row in rows]},
            facts=tuple(f"price:{s}:{step}" for s in chosen for step in STEPS),
            reads=(studies[0].path, methods[0].path), traps=tuple(sorted({one.trap for one in wrong if one.trap})),
            knobs=knobs, notes={"segments": len(chosen)},
        )  # fmt: skip

    def write(self, bound: Bound, answer: Answer, world: Files, form: str = "plain") -> dict[str, bytes]:
        """See ``Template.write``."""
        return {FILE: _book([heads(answer["segments"]), *layout(answer, form)], len(answer["segments"]))}

    def solve(self, ask: Mapping[str, Any]) -> Solving:
        """See ``Template.solve``."""
        studies = yield from reading.list_files("*price*waterfall*.xlsx")
        methods = yield from reading.list_files("*survey*method*.docx")
        if len(studies) != 1 or len(methods) != 1:
            raise Lost("no price study, or no survey method")
        text = yield from reading.tab(f"/{studies[0]}", formulas=True)
        lines = [json.loads(match[1]) for match in re.finditer(r"^\d+: (\[.*\])$", text, re.MULTILINE)]
        head = next(line for line in lines if line[0] == "Step")
        single = [line for line in lines[lines.index(head) + 1 :] if "{=" not in str(line[1])]
        keys = {name: step for step, name in STEPS.items()}
        amounts = {keys.get(line[0], line[0]): dict(zip(head[1:], line[1:], strict=False)) for line in single}
        method = yield from reading.document_text(methods[0])
        rows = []
        for segment in ask["segments"]:
            count = re.search(rf"{re.escape(segment)}\W+(\d[\d.,'\u2019 \u00a0\u202f]*)", method)
            if count is None:
                raise Lost(f"no number of customers for {segment}")
            found = {step: float(amount[segment]) for step, amount in amounts.items()}
            rows.append({"segment": segment, "customers": reading.whole_number(count[1]), **_effects(found)})
        page = {"name": SHEET, "headers": heads(rows), "rows": layout({"segments": rows})}
        book = {"directory": f"/{FOLDER}", "file_name": FILE, "sheets": [page]}
        yield ToolCall("spreadsheets_create_spreadsheet", book)
        last = len(rows) + 2
        yield ToolCall("spreadsheets_create_chart", {
            "file_path": f"/{FOLDER}/{FILE}", "sheet": SHEET, "data_range": f"A1:C{last}", "chart_type": "bar",
            "title": "Price by segment", "categories_column": 0,
        })  # fmt: skip


def _effects(amounts: Mapping[str, float]) -> dict[str, float]:
    """Effects on the price: the list price, and deductions with their sign turned."""
    return {step: amount if step == "list_price" else -amount for step, amount in amounts.items()}


def _turned(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row in which every deduction lowers the price."""
    return {key: -abs(value) if key in STEPS and key != "list_price" else value for key, value in row.items()}


def _summed(row: Mapping[str, Any], office: Office) -> dict[str, Any]:
    """A row in which the sums that the study strikes on the way are deducted as steps of their own."""
    found: dict[str, Any] = {}
    for key, value in row.items():
        found[key] = value
        fact = office.facts.get(f"price:{row['segment']}:subtotal:{key}")
        if fact is not None:
            found[SUBTOTALS[key]] = -float(fact.value)
    return found


def steps_of(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The steps in their order, and whatever else somebody took for one."""
    found = dict.fromkeys(key for row in rows for key in row if key not in ("segment", "customers"))
    return list(found) or list(STEPS)


def heads(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The header line."""
    return [*HEAD, *(STEPS.get(step, step) for step in steps_of(rows))]


def pocket(row: Mapping[str, Any]) -> float:
    """What is left of the list price."""
    return round(sum(float(row[step]) for step in STEPS), 4)


def weighted(rows: Sequence[Mapping[str, Any]], key: str) -> float:
    """Mean of a step over segments, weighted with customers."""
    amounts = [(int(row["customers"]), pocket(row) if key == "pocket" else float(row[key])) for row in rows]
    return sum(count * amount for count, amount in amounts) / sum(count for count, _ in amounts)


def _wrong(rows: list[dict[str, Any]], office: Office) -> tuple[Wrong, ...]:
    added = [{k: -v if k in STEPS and k != "list_price" else v for k, v in row.items()} for row in rows]
    shifted = [{**row, "customers": rows[i - 1]["customers"]} for i, row in enumerate(rows)]
    swapped = [{**rows[i - 1], "segment": row["segment"], "customers": row["customers"]} for i, row in enumerate(rows)]
    plain = [{**row, "customers": 1} for row in rows]
    older = [{**row, "rebate": 0.0, "terms": 0.0} for row in rows]
    found = [
        Wrong("deductions added", {"segments": added}, "steps"),
        Wrong("weights of another segment", {"segments": shifted}, "all customers"),
        Wrong("swapped-entity", {"segments": swapped}, "steps"),
        Wrong("not weighted", {"segments": plain}, "all customers"),
        Wrong("stale-version", {"segments": older}, "steps"),
    ]
    turned = [_turned(row) for row in rows]
    if office.trap("T6", "price:") is not None and turned != rows:
        found.append(Wrong("T6:freight deducted", {"segments": turned}, "steps", "T6"))
    if office.trap("T10", "price:") is not None:
        found.append(Wrong("T10:sums deducted", {"segments": [_summed(row, office) for row in rows]}, "steps", "T10"))
    return tuple(one for one in found if one.answer["segments"] != rows)


def _checks(rows: list[dict[str, Any]], office: Office) -> tuple[Check, ...]:
    steps = list(STEPS)
    last = len(rows) + 2
    columns: list[dict[str, Any]] = [{"name": name, "tol": CENT} for name in heads(rows)]
    columns[3]["tol"] = {"abs": 0.00051}
    cells = [
        [r["segment"], r["customers"], pocket(r), pocket(r) / r["list_price"], *(r[s] for s in steps)] for r in rows
    ]
    mean = {step: weighted(rows, step) for step in (*steps, "pocket")}
    total = ["All", sum(r["customers"] for r in rows), mean["pocket"], mean["pocket"] / mean["list_price"],
             *(mean[s] for s in steps)]  # fmt: skip
    more, first = 100.0, rows[0]
    share = first["customers"] / total[1]
    trial = {"set": {f"{SHEET}!E2": first["list_price"] + more}, "expect": {
        f"{SHEET}!C2": pocket(first) + more, f"{SHEET}!E{last}": mean["list_price"] + more * share,
        f"{SHEET}!C{last}": mean["pocket"] + more * share,
    }}  # fmt: skip
    base = {"file": FILE, "sheet": SHEET, "key": ["Segment"], "columns": columns}
    return (
        Check("files", "present", {"files": [FILE]}, kind="gate", no_op="pass"),
        Check("no errors", "xlsx.no_errors", {"file": FILE}, kind="gate", no_op="pass"),
        Check("steps", "table", {**base, "rows": [*cells, total]}, weight=0.4, trap_ids=("T6", "T10")),
        Check("all customers", "table", {**base, "rows": [total], "extra": "ignored"}, weight=0.3,
              trap_ids=("T6", "T10")),
        Check("pocket prices", "table", {**base, "rows": cells, "only": ["Pocket price"], "credit": "f1",
                                         "extra": "ignored"}, weight=0.05, stage="intermediate", required=False),
        Check("formulas", "xlsx.follows", {"file": FILE, "trials": [trial], "tol": CENT}, weight=0.2),
        Check("chart", "xlsx.chart", {"file": FILE, "ranges": [f"{SHEET}!C2:C{last}"]}, weight=0.1),
    )  # fmt: skip


def layout(answer: Answer, form: str = "plain") -> list[SheetRow]:
    """Rows below the header: the segments, then all customers; what follows from others is a formula."""
    rows: list[list[Any]] = []
    given, steps = answer["segments"], steps_of(answer["segments"])
    letters = [column_letters(len(HEAD) + number) for number in range(len(steps))]
    end, last = len(given) + 1, len(given) + 2
    for number, row in enumerate(given, start=2):
        values = [row.get(step) for step in steps]
        typed = sum(value or 0 for value in values)
        made: list[Any] = [f"=SUM(E{number}:{letters[-1]}{number})", f"=C{number}/E{number}"]
        made = made if form != "typed" else [typed, typed / (values[0] or 1)]
        rows.append([row.get("segment"), row.get("customers"), *made, *values])
    weight = f"$B$2:$B${end}"
    means: list[Any] = [f"=SUMPRODUCT({weight},{c}2:{c}{end})/$B${last}" for c in letters]
    total: list[Any] = ["All", f"=SUM(B2:B{end})", f"=SUM(E{last}:{letters[-1]}{last})", f"=C{last}/E{last}", *means]
    if form == "typed":
        count = sum(row[1] or 0 for row in rows) or 1
        means = [sum((row[1] or 0) * (row[c] or 0) for row in rows) / count for c in range(4, 4 + len(steps))]
        total = ["All", count, sum(means), sum(means) / (means[0] or 1), *means]
    return [*rows, total]


def _book(rows: Sequence[SheetRow], count: int) -> bytes:
    """The workbook with its chart."""
    import io

    import xlsxwriter

    made = io.BytesIO()
    book = xlsxwriter.Workbook(made, {"in_memory": True})
    book.set_properties({"created": CREATED})
    page = book.add_worksheet(SHEET)
    for number, line in enumerate(rows):
        for column, value in enumerate(line):
            if value is not None:
                page.write(number, column, value)
    chart = book.add_chart({"type": "column"})
    chart.add_series({
        "name": f"={SHEET}!$C$1", "categories": f"={SHEET}!$A$2:$A${count + 2}",
        "values": f"={SHEET}!$C$2:$C${count + 2}",
    })  # fmt: skip
    page.insert_chart("A20", chart)
    book.close()
    return made.getvalue()


def _instruction(office: Office, ask: Mapping[str, Any], rng: random.Random) -> str:
    company, names = office.setting.company, ", ".join(ask["segments"])
    opener = rng.choice((
        f"We want to show the management of {company} where the list price goes.",
        f"For the pricing workshop at {company} we need the waterfall on one page.",
        f"Sales at {company} doubts that discounts are the problem; please draw up the price waterfall.",
    ))  # fmt: skip
    return f"""{opener}

The price study (price waterfall, in commercial) has the steps of each segment, from the list price on; it shows
deductions, so that a negative one raises the price. Sums of steps, such as its pocket price, are no steps. Take these
segments: {names}.

Save `artifacts/{FILE}` with one sheet `{SHEET}`: headers in row 1, the segments in the order above from row 2, then a
row `All`. Columns in this order:

- `Segment`; `Customers`: their number by the survey's method note; for All the sum over these segments
- `Pocket price`: list price plus all effects; `Pocket share`: pocket price over list price, as a fraction
- one column for every step, under its name and in the order of the study: the effect on the price, so that what lowers
  it is negative; for All the mean weighted with customers

All, pocket price and pocket share are formulas. Add a native column chart of the pocket prices of the segments and All.
"""
