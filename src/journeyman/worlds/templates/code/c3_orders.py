"""C3: one clean csv from the raw exports of two systems, and the account of what became of every line.

What makes it hard: one system writes cents and the other units, their dates differ, and an order that both exported is
one order however it is written.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from journeyman.worlds.content import Delimited, unmarked
from journeyman.worlds.curriculum import Knobs
from journeyman.worlds.drafting import csv_bytes, json_bytes
from journeyman.worlds.template import Answer, Bound, Files, Lost, Solving, Unbindable, Wrong
from journeyman.worlds.templates import reading
from journeyman.worlds.templates.matrices import matrix_checks
from journeyman.worlds.verify import Check

if TYPE_CHECKING:
    from journeyman.worlds.office import Office

FILE, REPORT = "orders.csv", "load.json"
COLUMNS = ("order_no", "customer", "date", "quantity", "amount_cents")

Row = dict[str, Any]


@dataclass(frozen=True)
class C3:
    """See the module."""

    id: str = "C3"
    domain: str = "code"
    title: str = "clean csv from the raw order exports of two systems"
    traps: tuple[str, ...] = ("T14", "T15")

    def bind(self, office: Office, rng: random.Random, knobs: Knobs) -> Bound:
        """See ``Template.bind``."""
        found = office.of_kind("orders_raw")
        if not found or not isinstance(found[0].content, Delimited):
            raise Unbindable("no raw orders")
        raw = [[unmarked(word)[0] for word in row] for row in found[0].content.rows]
        records = [dict(zip(raw[0], row, strict=True)) for row in raw[1:]]
        days = sorted(row["date"] for row in cleaned(records, {"since": ""}))
        since = days[int(len(days) * rng.choice((0.0, 0.15, 0.3, 0.4, 0.5)))]
        ask = {"since": since, "least": rng.choice((0, 5, 10)), "file": FILE, "report": REPORT}
        rows = cleaned(records, ask)
        facts = {f"order:{row['order_no']}:cents": row["amount_cents"] for row in rows}
        for fact, cents in facts.items():
            if fact in office.facts and office.facts[fact].value != cents:
                raise Unbindable(f"{fact} reads in two ways")
        amounts = sorted((row["amount_cents"] for row in rows), reverse=True)
        if len(amounts) < 2 or amounts[0] == amounts[1]:
            raise Unbindable("two orders are the largest")
        answer = _loaded(rows, records, ask)
        blind = _loaded([*careless(records, ask, is_scaled=False), *_doubled(records, ask)], records, ask, repeated=0)
        wrong = _wrong(records, ask, rows)
        traps = tuple(sorted({one.trap for one in wrong if one.trap and office.trap(one.trap, "order")}))
        return Bound(
            self.id, self.domain, office.id, _instruction(office, ask, rng, found[0].path), ask, answer,
            _checks(answer, records), (FILE, REPORT), wrong, trap_blind=blind,
            single=_loaded(_of_one_system(records, ask), _one_system(records), ask),
            facts=tuple(fact for fact in facts if fact in office.facts), reads=(found[0].path,), traps=traps,
            unordered=("orders", "report.customers"), knobs=knobs, notes={"orders": len(rows), "lines": len(records)},
        )  # fmt: skip

    def write(self, bound: Bound, answer: Answer, world: Files, form: str = "plain") -> dict[str, bytes]:
        """See ``Template.write``."""
        orders = csv_bytes(COLUMNS, [[row.get(name) for name in COLUMNS] for row in answer["orders"]])
        return {FILE: orders, REPORT: json_bytes(answer["report"])}

    def solve(self, ask: Mapping[str, Any]) -> Solving:
        """See ``Template.solve``."""
        found = yield from reading.list_files("*orders_raw*")
        target = yield from reading.list_files("target.md")
        if len(found) != 1 or not target:
            raise Lost(f"{len(found)} files of raw orders")
        yield from reading.text_lines(target[0])
        records = yield from reading.csv_records(found[0])
        rows = cleaned(records, ask)
        data = csv_bytes(COLUMNS, [[row[name] for name in COLUMNS] for row in rows])
        yield from reading.deliver_text(FILE, data)
        yield from reading.deliver_text(REPORT, json_bytes(_loaded(rows, records, ask)["report"]))
        yield from reading.shell(f"wc -l artifacts/{FILE}")


def _loaded(
    rows: Sequence[Row], records: Sequence[Mapping[str, str]], ask: Mapping[str, Any], repeated: int | None = None
) -> Answer:
    """Orders as they were loaded, and the account: lines = repeated + early + small + loaded where all is right.

    Args:
        repeated: lines that somebody took for repetitions, where that is not what they are.
    """
    every = cleaned(records, {"since": ""})
    early = [row for row in every if row["date"] < ask["since"]]
    small = [row for row in every if row["date"] >= ask["since"] and row["quantity"] < ask["least"]]
    count: Counter[str] = Counter()
    cents: Counter[str] = Counter()
    for row in rows:
        count[row["customer"]] += 1
        cents[row["customer"]] += row["amount_cents"]
    days = sorted(row["date"] for row in rows) or [""]
    largest = max(rows, key=lambda row: int(row["amount_cents"]), default={"order_no": "", "amount_cents": 0})
    return {"orders": list(rows), "report": {
        "lines": len(records), "repeated": len(records) - len(every) if repeated is None else repeated,
        "early": len(early), "small": len(small), "loaded": len(rows), "amount_cents": sum(cents.values()),
        "first_day": days[0], "last_day": days[-1],
        "largest": {key: largest[key] for key in ("order_no", "amount_cents")},
        "customers": [{"customer": name, "orders": count[name], "amount_cents": cents[name]} for name in sorted(count)],
    }}  # fmt: skip


def cleaned(records: Iterable[Mapping[str, str]], ask: Mapping[str, Any]) -> list[Row]:
    """Orders by number, each once, as the target describes them."""
    found: dict[str, Row] = {}
    for record in records:
        number = record["order_no"].strip().upper()
        amount = reading.number(record["amount"])
        cents = round(amount * 100) if record["amount_unit"].strip() == "units" else round(amount)
        found[number] = {"order_no": number, "customer": record["customer"].strip(), "date": _iso(record["date"]),
                         "quantity": int(reading.number(record["quantity"])), "amount_cents": cents}  # fmt: skip
    rows = [found[number] for number in sorted(found)]
    return [row for row in rows if row["date"] >= ask["since"] and row["quantity"] >= ask.get("least", 0)]


def careless(records: Iterable[Mapping[str, str]], ask: Mapping[str, Any], *, is_scaled: bool) -> list[Row]:
    """Each line as it stands, doubles told by their spelling only."""
    rows: dict[str, Row] = {}
    for record in records:
        amount = reading.number(record["amount"])
        cents = round(amount * 100) if is_scaled and record["amount_unit"] == "units" else round(amount)
        number = record["order_no"].strip()
        rows[number] = {"order_no": number, "customer": record["customer"], "date": _iso(record["date"]),
                        "quantity": int(record["quantity"]), "amount_cents": cents}  # fmt: skip
    return [row for row in rows.values() if row["date"] >= ask["since"] and row["quantity"] >= ask.get("least", 0)]


def _of_one_system(records: Sequence[Mapping[str, str]], ask: Mapping[str, Any]) -> list[Row]:
    return careless(_one_system(records), ask, is_scaled=True)


def _one_system(records: Sequence[Mapping[str, str]]) -> list[Mapping[str, str]]:
    return [record for record in records if record["amount_unit"] != "units"]


def _doubled(records: Sequence[Mapping[str, str]], ask: Mapping[str, Any]) -> list[Row]:
    """The second lines of orders that were exported twice."""
    seen: set[str] = set()
    again: list[Row] = []
    for record in records:
        number = record["order_no"].strip().upper()
        if number in seen:
            again += cleaned([record], ask)
        seen.add(number)
    return again


def _wrong(records: Sequence[Mapping[str, str]], ask: Mapping[str, Any], rows: list[Row]) -> tuple[Wrong, ...]:
    unscaled = [
        {**row, "amount_cents": row["amount_cents"] // 100 if _of_units(records, row) else row["amount_cents"]}
        for row in rows
    ]
    misread = [{**row, "date": _other_way(row["date"])} for row in cleaned(records, {"since": ""})]
    american = [row for row in misread if row["date"] >= ask["since"] and row["quantity"] >= ask["least"]]
    swapped = [{**row, "customer": rows[i - 1]["customer"]} for i, row in enumerate(rows)]
    late = cleaned(records, {"since": "", "least": 0})
    doubles = [*rows, *_doubled(records, ask)]
    tried: list[tuple[str, list[Row], str, int | None]] = [
        ("units taken for cents", unscaled, "hard cells", None),
        ("month before day", american, "every cell", None),
        ("swapped-entity", swapped, "customers", None),
        ("stale-version", late, "control totals", None),
        ("T14:doubles kept", doubles, "order numbers", 0),
        ("T15:as written", careless(records, ask, is_scaled=True), "every cell", 0),
    ]
    found = [
        Wrong(name, _loaded(given, records, ask, repeated), fails, name.partition(":")[0] if ":" in name else "")
        for name, given, fails, repeated in tried
        if given != rows
    ]
    moved = [{**row, "amount_cents": rows[i - 1]["amount_cents"]} for i, row in enumerate(rows)]
    apart = {**_loaded(rows, records, ask), "orders": moved}
    return (*found, Wrong("amounts a row too far", apart, "file and account agree"))


def _of_units(records: Sequence[Mapping[str, str]], row: Row) -> bool:
    return any(
        record["order_no"].strip().upper() == row["order_no"] and record["amount_unit"] == "units" for record in records
    )


def _other_way(day: str) -> str:
    year, month, date = day.split("-")
    return f"{year}-{date}-{month}" if int(date) <= 12 else day


def _iso(text: str) -> str:
    text = text.strip()
    if len(text) == 10 and text[4] == "-":
        return text
    parts = text.split(".")
    if len(parts) != 3:
        raise Lost(f"no date: {text!r}")
    return f"{parts[2]}-{int(parts[1]):02d}-{int(parts[0]):02d}"


def _checks(answer: Answer, records: Sequence[Mapping[str, str]]) -> tuple[Check, ...]:
    rows, report = answer["orders"], answer["report"]
    columns: list[dict[str, Any]] = [{"name": name} for name in COLUMNS]
    for column in columns[3:]:
        column["tol"] = {"abs": 0.0}
    cells = [
        [row["order_no"], row["customer"], {"date": row["date"]}, row["quantity"], row["amount_cents"]] for row in rows
    ]
    hard = [(i, 4) for i, row in enumerate(rows) if _of_units(records, row)] or [(0, 4)]
    return (
        Check("files", "present", {"files": [FILE, REPORT]}, kind="gate", no_op="pass"),
        *matrix_checks(FILE, columns, cells, hard, key=["order_no"], trap_ids=("T14", "T15")),
        Check("order numbers", "members", {"file": FILE, "column": "order_no", "items": [r["order_no"] for r in rows]},
              weight=0.1, stage="intermediate", trap_ids=("T14",)),
        *_account_checks(report),
    )  # fmt: skip


def _account_checks(report: Mapping[str, Any]) -> tuple[Check, ...]:
    """Nothing is lost on the way: every line has gone somewhere, and sums of the file are those of the account."""
    exact = {"abs": 0.0}
    gone = {name: report[name] for name in ("lines", "repeated", "early", "small")}
    kept: dict[str, Any] = {name: report[name] for name in ("loaded", "amount_cents")}
    kept |= {name: {"date": report[name]} for name in ("first_day", "last_day")}
    kept |= {f"largest.{name}": value for name, value in report["largest"].items()}
    by_customer = [[one["customer"], one["orders"], one["amount_cents"]] for one in report["customers"]]
    names = [{"name": "customer"}, {"name": "orders", "tol": exact}, {"name": "amount_cents", "tol": exact}]
    where = {"file": FILE, "columns": ["order_no", "amount_cents"], "row": report["largest"]["order_no"]}
    said = {"file": REPORT, "path": "largest.amount_cents"}
    return (
        Check("lines accounted for", "json.fields", {"file": REPORT, "fields": gone, "tol": exact}, weight=0.04,
              stage="intermediate", trap_ids=("T14",)),
        Check("control totals", "json.fields", {"file": REPORT, "fields": kept, "tol": exact}, weight=0.03,
              trap_ids=("T14", "T15")),
        Check("customers", "table", {"file": REPORT, "path": "customers", "columns": names, "rows": by_customer},
              weight=0.03, stage="intermediate"),
        Check("file and account agree", "agree", {"pairs": [{"a": where, "b": said}], "tol": exact}, weight=0.02,
              stage="intermediate"),
    )  # fmt: skip


def _instruction(office: Office, ask: Mapping[str, Any], rng: random.Random, path: str) -> str:
    least = f" and a quantity of at least {ask['least']}" if ask["least"] else ""
    opener = rng.choice((
        f"The order systems of {office.setting.company} are being merged, and the export of both has to be cleaned.",
        f"Finance at {office.setting.company} cannot reconcile the raw order export. Please clean it.",
        f"We are loading the orders of {office.setting.company} into the new ledger and need a clean file.",
    ))  # fmt: skip
    return f"""{opener}

The export is {path}; the file target.md beside it says what a clean line is. Keep orders dated {ask["since"]} or
later{least}.

Save `artifacts/{FILE}`: comma separated, a header `{",".join(COLUMNS)}`, one line an order, by order_no.

Save `artifacts/{REPORT}` beside it, a JSON object that accounts for every line of the export:

- `lines`: lines of the export without its header; `repeated`: how many of them repeat an order that is there already
- `early`: orders dated before {ask["since"]}; `small`: orders dated {ask["since"]} or later whose quantity is too low
  (0 where every quantity counts); each order once
- `loaded`: orders in the csv file; `amount_cents`: the sum of their amounts; `first_day` and `last_day`: the first and
  the last date among them
- `largest`: an object with `order_no` and `amount_cents` of the largest of them by amount
- `customers`: a list with an object for every customer that has an order in the csv file: `customer`, `orders` (how
  many) and `amount_cents` (their sum)
"""
