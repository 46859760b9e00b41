"""SC1: content of water samples from a photometric calibration, with its uncertainty, in a workbook that lives.

What makes it hard: standards are micrograms and of a stock whose content a certificate gives, of two; readings with a
remark do not count; and the workbook has to follow when readings change.
"""

from __future__ import annotations

import copy
import json
import math
import random
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from journeyman.worlds.curriculum import Knobs
from journeyman.worlds.drafting import xlsx_bytes
from journeyman.worlds.template import Answer, Bound, Files, Lost, Solving, Wrong
from journeyman.worlds.templates import reading
from journeyman.worlds.verify import Check

if TYPE_CHECKING:
    from journeyman.worlds.office import Office

FILE = "water.xlsx"
HEAD = [
    "Sample",
    "Dilution",
    "Reading 1",
    "Reading 2",
    "Reading 3",
    "Readings",
    "Concentration",
    "Uncertainty",
    "Exceeds",
]
PLACES = {"stock": "G1", "slope": "G2", "intercept": "G3", "residual": "G4", "limit": "G5", "coverage": "G6"}
"""What of the sheet ``Calibration`` is looked at."""

CLOSE = {"rel": 1e-4, "abs": 1e-7}
COVERAGE = 2


@dataclass(frozen=True)
class SC1:
    """See the module."""

    id: str = "SC1"
    domain: str = "science"
    title: str = "water samples by a calibration, with uncertainty, in a workbook that is executed again"
    traps: tuple[str, ...] = ()

    def bind(self, office: Office, rng: random.Random, knobs: Knobs) -> Bound:
        """See ``Template.bind``."""
        given = json.loads(office.truth.value("SELECT value FROM assumption WHERE id = 'laboratory:water'"))
        names = sorted({one["site"] for one in given["samples"]})
        sites = sorted(rng.sample(names, min(len(names), 2 + knobs.fan_out)))
        ask = {"sites": sites, "analyte": given["analyte"], "file": FILE}
        answer = inputs(given, ask)
        others = [lot for lot in given["contents"] if lot != str(given["lot"])]
        wrong = _wrong(given, answer, ask, given["contents"][others[0]])
        kinds = ("calibration", "water_samples", "water_method", "stock_certificate")
        careless = inputs(given, ask, keeps_remarked=True)
        return Bound(
            self.id, self.domain, office.id, _instruction(office, ask, rng), ask, answer, _checks(answer), (FILE,),
            wrong, trap_blind={**careless, "stock": 1.0, "coverage": 1}, single={**careless, "stock": 1000.0},
            facts=(f"water:stock:{given['lot']}", "water:limit"),
            reads=tuple(one.path for kind in kinds for one in office.of_kind(kind)), knobs=knobs,
            notes={"samples": len(answer["samples"]), "analyte": given["analyte"]},
        )  # fmt: skip

    def write(self, bound: Bound, answer: Answer, world: Files, form: str = "plain") -> dict[str, bytes]:
        """See ``Template.write``."""
        return {FILE: xlsx_bytes(layout(answer, form))}

    def solve(self, ask: Mapping[str, Any]) -> Solving:
        """See ``Template.solve``."""
        folder = "laboratory/water"
        rows = yield from reading.csv_records(f"{folder}/calibration.csv")
        books = yield from reading.list_files("*.xlsx", folder)
        if len(books) != 1:
            raise Lost(f"{len(books)} workbooks of samples")
        text = yield from reading.tab(f"/{books[0]}")
        lines = [json.loads(match[1]) for match in re.finditer(r"^\d+: (\[.*\])$", text, re.MULTILINE)]
        method = yield from reading.document_text(f"{folder}/method.docx")
        limit = re.search(r"action value is ([\d.]+) mg/L", method)
        contents = {}
        for path in (yield from reading.list_files("certificate*.pdf", folder)):
            words = yield from reading.document_text(path)
            lot, content = re.search(r"Lot (\d+)", words), re.search(r"Content: ([\d.]+)%", words)
            if lot and content:
                contents[lot[1]] = float(content[1]) / 100
        if limit is None or rows[0]["stock_lot"] not in contents:
            raise Lost("no action value, or no certificate of the stock")
        samples = [
            {"sample": row[0], "site": row[1], "dilution": int(row[2]), "readings": list(map(float, row[3:6])),
             "remark": row[6] or "" if len(row) > 6 else ""}
            for row in lines if re.fullmatch(r"WS\d+", str(row[0]))
        ]  # fmt: skip
        standards = [[row["level"], int(row["nominal_ug_per_L"]), row["replicate"], float(row["absorbance"])]
                     for row in rows]  # fmt: skip
        given = {"standards": standards, "samples": samples, "contents": contents, "lot": rows[0]["stock_lot"],
                 "limit": float(limit[1])}  # fmt: skip
        yield from reading.deliver_workbook(FILE, layout(inputs(given, ask)))


def inputs(given: Mapping[str, Any], ask: Mapping[str, Any], *, keeps_remarked: bool = False) -> Answer:
    """What the workbook starts from; everything else in it is calculated."""
    samples = []
    for one in given["samples"]:
        if one["site"] not in ask["sites"]:
            continue
        bad = re.match(r"reading (\d)", one["remark"])
        kept = [None if bad and int(bad[1]) == n and not keeps_remarked else value
                for n, value in enumerate(one["readings"], 1)]  # fmt: skip
        samples.append({"sample": one["sample"], "dilution": one["dilution"],
                        **{f"reading_{n}": value for n, value in enumerate(kept, 1)}})  # fmt: skip
    standards = [{"nominal": row[1], "absorbance": row[3]} for row in given["standards"]]
    return {"stock": given["contents"][str(given["lot"])], "limit": given["limit"], "coverage": COVERAGE,
            "standards": standards, "samples": samples}  # fmt: skip


def computed(answer: Answer) -> dict[str, Any]:
    """Calibration and results by the method. Concentrations in mg/L."""
    xs = [one["nominal"] * answer["stock"] / 1000 for one in answer["standards"]]
    ys = [one["absorbance"] for one in answer["standards"]]
    n = len(xs)
    x_mean, y_mean = sum(xs) / n, sum(ys) / n
    spread = sum((x - x_mean) ** 2 for x in xs)
    slope = sum((x - x_mean) * (y - y_mean) for x, y in zip(xs, ys, strict=True)) / spread
    intercept = y_mean - slope * x_mean
    residual = math.sqrt(sum((y - intercept - slope * x) ** 2 for x, y in zip(xs, ys, strict=True)) / (n - 2))
    rows = []
    for one in answer["samples"]:
        kept = [one[f"reading_{i}"] for i in (1, 2, 3) if one[f"reading_{i}"] is not None]
        mean = sum(kept) / len(kept)
        content = (mean - intercept) / slope * one["dilution"]
        root = math.sqrt(1 / len(kept) + 1 / n + (mean - y_mean) ** 2 / (slope**2 * spread))
        expanded = answer["coverage"] * one["dilution"] * residual / slope * root
        exceeds = "yes" if content - expanded > answer["limit"] else "no"
        rows.append({"sample": one["sample"], "readings": len(kept), "content": content, "expanded": expanded,
                     "exceeds": exceeds})  # fmt: skip
    return {"slope": slope, "intercept": intercept, "residual": residual, "rows": rows}


def layout(answer: Answer, form: str = "plain") -> list[dict[str, Any]]:
    """Both sheets; results are formulas unless numbers are typed."""
    last = len(answer["standards"]) + 1
    y, x = f"Calibration!$C$2:$C${last}", f"Calibration!$B$2:$B${last}"
    block: list[tuple[str, Any]] = [
        ("Stock content", answer["stock"]), ("Slope", f"=SLOPE({y},{x})"), ("Intercept", f"=INTERCEPT({y},{x})"),
        ("Residual deviation", f"=STEYX({y},{x})"), ("Action value", answer["limit"]),
        ("Coverage factor", answer["coverage"]),
    ]  # fmt: skip
    standards: list[list[Any]] = [["Nominal ug/L", "Concentration mg/L", "Absorbance", None, None, *block[0]]]
    for number in range(2, max(last, len(block)) + 1):
        one = answer["standards"][number - 2] if number <= last else {}
        beside = block[number - 1] if number <= len(block) else (None, None)
        content = f"=A{number}*$G$1/1000" if one else None
        standards.append([one.get("nominal"), content, one.get("absorbance"), None, None, *beside])
    cal = {name: f"Calibration!$G${row}" for row, name in enumerate(("stock", "b", "a", "s", "limit", "k"), start=1)}
    rows: list[list[Any]] = []
    for number, one in enumerate(answer["samples"], start=2):
        mean, count = f"AVERAGE(C{number}:E{number})", f"F{number}"
        root = f"SQRT(1/{count}+1/COUNT({y})+({mean}-AVERAGE({y}))^2/({cal['b']}^2*DEVSQ({x})))"
        rows.append([
            one.get("sample"), one.get("dilution"), *(one.get(f"reading_{i}") for i in (1, 2, 3)),
            f"=COUNT(C{number}:E{number})", f"=({mean}-{cal['a']})/{cal['b']}*B{number}",
            f"={cal['k']}*B{number}*{cal['s']}/{cal['b']}*{root}",
            f'=IF(G{number}-H{number}>{cal["limit"]},"yes","no")',
        ])  # fmt: skip
    if form == "typed":
        standards, rows = _typed(answer, standards, rows)
    return [{"name": "Calibration", "headers": standards[0], "rows": standards[1:]},
            {"name": "Samples", "headers": HEAD, "rows": rows}]  # fmt: skip


def _typed(
    answer: Answer, standards: list[list[Any]], rows: list[list[Any]]
) -> tuple[list[list[Any]], list[list[Any]]]:
    found = computed(answer)
    for line, name in zip(standards[1:4], ("slope", "intercept", "residual"), strict=True):
        line[6] = found[name]
    for line, one in zip(rows, found["rows"], strict=True):
        line[5:] = [one["readings"], one["content"], one["expanded"], one["exceeds"]]
    return standards, rows


def _wrong(given: Mapping[str, Any], answer: Answer, ask: Mapping[str, Any], other: float) -> tuple[Wrong, ...]:
    samples = answer["samples"]
    grams = [{**one, "nominal": one["nominal"] * 1000} for one in answer["standards"]]
    undiluted = [{**one, "dilution": 1} for one in samples]
    names = [one["sample"] for one in samples]
    turned = [{**one, "sample": names[i - 1]} for i, one in enumerate(samples)]
    found = [
        Wrong("stale-version", {**answer, "stock": other}, "results"),
        Wrong("stock taken as nominal", {**answer, "stock": 1.0}, "results"),
        Wrong("micrograms taken for milligrams", {**answer, "standards": grams}, "results"),
        Wrong("remarked readings kept", inputs(given, ask, keeps_remarked=True), "results"),
        Wrong("dilution forgotten", {**answer, "samples": undiluted}, "results"),
        Wrong("standard uncertainty only", {**answer, "coverage": 1}, "results"),
        Wrong("swapped-entity", {**answer, "samples": turned}, "results"),
    ]
    return tuple(one for one in found if one.answer != answer)


def _moved(answer: Answer) -> list[dict[str, Any]]:
    """Other data in the same cells, and what the results are then."""
    trials = []
    for cells, factor in (((1, 6), 1.04), ((3, 10), 0.93)):
        made = copy.deepcopy(answer)
        put: dict[str, float] = {}
        for number in cells:
            one = made["standards"][number]
            one["absorbance"] = put[f"Calibration!C{number + 2}"] = round(one["absorbance"] * factor + 0.003, 4)
        if factor > 1:
            made["stock"] = put["Calibration!G1"] = round(answer["stock"] * 0.985, 4)
        for row, one in enumerate(made["samples"], start=2):
            at = next(i for i in (1, 2, 3) if one[f"reading_{i}"] is not None)
            one[f"reading_{at}"] = put[f"Samples!{'BCDE'[at]}{row}"] = round(one[f"reading_{at}"] * factor + 0.002, 4)
        rows = computed(made)["rows"]
        expect = {f"Samples!G{row}": one["content"] for row, one in enumerate(rows, start=2)}
        expect |= {f"Samples!H{row}": one["expanded"] for row, one in enumerate(rows, start=2)}
        trials.append({"set": put, "expect": expect})
    return trials


def _checks(answer: Answer) -> tuple[Check, ...]:
    found = computed(answer)
    line = {**found, "stock": answer["stock"], "limit": answer["limit"], "coverage": answer["coverage"]}
    places = {f"Calibration!{place}": line[name] for name, place in PLACES.items()}
    results = [[one["sample"], one["readings"], one["content"], one["expanded"], one["exceeds"]]
               for one in found["rows"]]  # fmt: skip
    columns = [{"name": HEAD[0]}, {"name": HEAD[5], "tol": {"abs": 0}}, {"name": HEAD[6], "tol": CLOSE},
               {"name": HEAD[7], "tol": CLOSE}, {"name": HEAD[8]}]  # fmt: skip
    return (
        Check("opens", "present", {"files": [FILE]}, kind="gate", no_op="pass"),
        Check("calibration line", "xlsx.cells", {"file": FILE, "cells": places, "tol": CLOSE}, weight=0.1,
              stage="intermediate"),
        Check("results", "table", {"file": FILE, "sheet": "Samples", "key": [HEAD[0]], "columns": columns,
                                   "rows": results}, weight=0.5),
        Check("executed again", "xlsx.follows", {"file": FILE, "trials": _moved(answer), "tol": CLOSE}, weight=0.4),
    )  # fmt: skip


def _instruction(office: Office, ask: Mapping[str, Any], rng: random.Random) -> str:
    company, sites = office.setting.company, ", ".join(ask["sites"])
    opener = rng.choice((
        f"{company} had the drinking water of its buildings read for {ask['analyte']}; the results are still missing.",
        f"Facilities at {company} needs the {ask['analyte']} content of its tap water, with uncertainty.",
        f"The laboratory that read the water of {company} left readings only. Please evaluate {ask['analyte']}.",
    ))  # fmt: skip
    return f"""{opener}

Method, calibration, certificates and readings are in laboratory/water; follow the method. Evaluate the samples of these
sites, in the order of the readings: {sites}.

Save `artifacts/{FILE}` with two sheets; whatever follows from other cells is a formula. It is
executed again on other readings:

- `Calibration`: headers in row 1 (`Nominal ug/L`, `Concentration mg/L`, `Absorbance`), from row 2 the standards in the
  order of the file. Beside it, labels in F1 to F6 and in G1 to G6: content of the stock solution as a fraction, slope
  (per mg/L), intercept, residual standard deviation, action value in mg/L, and the factor of the expanded uncertainty
- `Samples`: headers in row 1, a sample a row from row 2, in columns A to I: {", ".join(f"`{name}`" for name in HEAD)}.
  A reading that does not count is left empty; `Readings` is how many are left; `Concentration` and `Uncertainty` (the
  expanded one) are in mg/L; `Exceeds` is yes or no
"""
