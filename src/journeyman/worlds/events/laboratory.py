"""What a laboratory leaves: a calibration with its samples and method, and logs of an ageing test with its protocol."""

from __future__ import annotations

import math
from random import Random
from typing import Any

from journeyman.worlds.content import Block, Book, Content, Delimited, Heading, Paragraph, Prose, Text
from journeyman.worlds.draft import Draft
from journeyman.worlds.events.tables import sheet_of
from journeyman.worlds.truth.store import Row

WATER, AGEING = "laboratory/water", "laboratory/batteries"
ANALYTES = {"copper": 2.0, "iron": 0.6, "manganese": 0.8, "nitrite": 0.5, "aluminium": 1.0}
"""Analyte -> action value of the house in mg/L; the action values are made up."""

REMARKS = ("air bubble in the cell", "cuvette scratched", "lamp flickered")
GAS_CONSTANT = 8.314462618
"""J / (mol K), the exact value of the SI."""

END_OF_LIFE = 0.8
CHAMBERS = (35, 45, 55, 65)
"""Degrees Celsius."""


def water_sampled(draft: Draft, event: Row) -> None:
    """Standards, samples with three readings each, the method, and certificates of two lots of the stock solution."""
    rng = draft.rng("water")
    analyte = rng.choice(sorted(ANALYTES))
    limit = ANALYTES[analyte]
    lots = rng.sample(range(1000, 9999), 2)
    contents = {
        lot: round(rng.uniform(0.955, 0.992) if lot == lots[0] else rng.uniform(1.005, 1.03), 3) for lot in lots
    }
    slope, offset = rng.uniform(0.3, 0.5) / limit, rng.uniform(0.008, 0.03)

    def absorbance(concentration: float) -> float:
        return round(offset + slope * concentration + rng.gauss(0, 0.004), 4)

    standards = [
        (level, int(1000 * limit * part), repeat, absorbance(limit * part * contents[lots[0]]))
        for level, part in enumerate((0, 0.2, 0.4, 0.8, 1.2, 1.6), start=1)
        for repeat in (1, 2)
    ]
    head = ("level", "nominal_ug_per_L", "replicate", "absorbance", "stock_lot")
    lines = [head, *(tuple(map(str, (*row, lots[0]))) for row in standards)]
    samples = _samples(draft, rng, limit, absorbance)
    _keep(draft, event, "water", {"analyte": analyte, "limit": limit, "lot": lots[0], "standards": standards,
                                  "contents": {str(lot): value for lot, value in contents.items()},
                                  "samples": samples})  # fmt: skip
    _file(draft, event, f"{WATER}/calibration.csv", "calibration", Delimited(tuple(lines)))
    for number, (lot, content) in enumerate(sorted(contents.items()), start=1):
        shown = draft.fact(f"water:stock:{lot}", f"{100 * content:.1f}", content, "percent")
        said = (f"Stock solution, {analyte}.", f"Lot {lot}.", f"Content: {shown}% of the nominal one.")
        words: tuple[Block, ...] = (
            Heading("Certificate of analysis", 0),
            *(Paragraph(line) for line in said),
        )
        certificate = Prose(words, "Certificate of analysis", header=draft.setting.company)
        _file(draft, event, f"{WATER}/certificate_{number}.pdf", "stock_certificate", certificate)
    names = ("Sample", "Site", "Dilution", "Reading 1", "Reading 2", "Reading 3", "Remark")
    rows = [(s["sample"], s["site"], s["dilution"], *s["readings"], s["remark"]) for s in samples]
    sheet = sheet_of("Samples", names, rows, styles=("", "", "", "rate", "rate", "rate", ""), widths=(12,) * 6 + (40,))
    _file(draft, event, f"{WATER}/{draft.setting.file_name('water samples')}.xlsx", "water_samples",
          Book((sheet,), "Water samples"))  # fmt: skip
    _file(draft, event, f"{WATER}/method.docx", "water_method", _method(draft, analyte, limit))


def _samples(draft: Draft, rng: Random, limit: float, absorbance: Any) -> list[dict[str, Any]]:
    """Two taps a site; some samples were diluted, some readings carry a remark."""
    made = []
    for number, site in enumerate(sorted(draft.setting.locale["city"]) * 2, start=1):
        dilution = rng.choice((1, 1, 2, 5))
        content = limit * rng.choice((rng.uniform(0.2, 0.8), rng.uniform(0.9, 1.3), rng.uniform(1.2, 2.2)))
        readings = [absorbance(content / dilution) for _ in range(3)]
        remark = ""
        if rng.random() < 0.45:
            bad = rng.randrange(3)
            readings[bad] = round(readings[bad] + rng.choice((-1, 1)) * rng.uniform(0.04, 0.09), 4)
            remark = f"reading {bad + 1}: {rng.choice(REMARKS)}"
        made.append({"sample": f"WS{number:02d}", "site": site, "dilution": dilution,
                     "readings": readings, "remark": remark})  # fmt: skip
    return made


def _method(draft: Draft, analyte: str, limit: float) -> Prose:
    shown = draft.fact("water:limit", f"{limit:g}", limit, "mg/L")
    blocks: list[Block] = [
        Heading(f"Photometric determination of {analyte} in water", 0),
        Paragraph("Standards are made from the stock solution. Their concentration is the nominal one times the content"
                  " of the stock by the certificate of its lot. Results are stated in mg/L."),
        Paragraph("The calibration is the straight line through the absorbances y of all standards over their"
                  " concentrations x by least squares, each replicate a point: slope b, intercept a, n points, residual"
                  " standard deviation s with n - 2 degrees of freedom."),
        Paragraph("Each sample is read three times. A reading with a remark is left out. The concentration is the mean"
                  " of the p readings that are left, less a, over b, times the dilution."),
        Paragraph("The standard uncertainty is dilution times s over b times the root of 1/p + 1/n + (mean of the"
                  " sample's readings less mean of all y)\u00b2 / (b\u00b2 times the sum of the squared deviations of x"
                  " from its mean). The expanded uncertainty is twice that."),
        Paragraph(f"The action value is {shown} mg/L. It counts as exceeded only where the concentration less its"
                  " expanded uncertainty is above it."),
    ]  # fmt: skip
    return Prose(tuple(blocks), "Method", header=draft.setting.company)


def batteries_aged(draft: Draft, event: Row) -> None:
    """Twelve logs in the units of three chambers, the protocol, and what went wrong during the test."""
    rng = draft.rng("ageing")
    energy, rate = 1000 * rng.uniform(42, 68), rng.uniform(0.5e-4, 1.4e-4)
    modules: list[dict[str, Any]] = []
    for number in range(12):
        celsius = CHAMBERS[number % 4]
        k = rate * math.exp(-energy / GAS_CONSTANT * (1 / (celsius + 273.15) - 1 / 298.15)) * rng.uniform(0.96, 1.04)
        start = rng.uniform(98, 104)
        days = sorted({0, *(7 * week for week in rng.sample(range(2, 27), 7))})
        readings = [[day, round(start * math.exp(-k * day) * (1 + rng.gauss(0, 0.0015)), 2)] for day in days]
        modules.append({"module": f"BM{number + 1:02d}", "celsius": celsius, "readings": readings})
    order = rng.sample(range(12), 3)
    exchanged, opened, early = (modules[number] for number in order)
    for reading in exchanged["readings"][4:]:
        reading[1] = round(reading[1] * rng.uniform(1.04, 1.08), 2)
    cuts = {"exchanged": exchanged["module"]}
    for name, one in (("opened", opened), ("early", early)):
        since = one["readings"][5][0]
        cuts[name] = one["module"]
        cuts[f"{name}_day"] = since
        for reading in one["readings"][5:]:
            reading[1] = round(reading[1] * rng.uniform(0.93, 0.96), 2)
    _keep(draft, event, "ageing", {"modules": modules, "cuts": cuts, "end": END_OF_LIFE})
    for one in modules:
        text = _log(one, rng)
        _file(draft, event, f"{AGEING}/logs/{one['module'].lower()}.txt", "ageing_log", Text(text))
    notes = (
        "# Deviations\n\n"
        f"- {exchanged['module']} was exchanged for a new module during the test. None of its readings counts.\n"
        f"- {opened['module']}: the chamber stood open from day {cuts['opened_day']} on; readings of that day and later"
        " do not count.\n"
        f"- {early['module']}: a cell failed on day {cuts['early_day']}; readings of that day and later do not count.\n"
    )
    _file(draft, event, f"{AGEING}/deviations.md", "ageing_deviations", Text(notes))
    _file(draft, event, f"{AGEING}/protocol.docx", "ageing_protocol", _protocol(draft))


def _log(module: dict[str, Any], rng: Random) -> str:
    """A log as its chamber writes it: time in days, weeks or hours; capacity in Ah or mAh."""
    celsius = module["celsius"]
    chamber = rng.choice((f"{celsius} C", f"{celsius + 273.15:.2f} K", f"{celsius * 9 / 5 + 32:.0f} F"))
    name, per_day = rng.choice((("days", 1), ("weeks", 1 / 7), ("hours", 24)))
    unit, factor = rng.choice((("Ah", 1), ("mAh", 1000)))
    lines = [
        f"{day * per_day:.0f}\t{capacity * factor:.{2 if factor == 1 else 0}f}" for day, capacity in module["readings"]
    ]
    head = [f"module {module['module']}", f"chamber {chamber}", f"time in {name}, capacity in {unit}", ""]
    return "\n".join([*head, *lines, ""])


def _protocol(draft: Draft) -> Prose:
    shown = draft.fact("ageing:end", f"{100 * END_OF_LIFE:.0f}%", END_OF_LIFE, "percent")
    blocks: list[Block] = [
        Heading("Ageing of battery modules: protocol", 0),
        Paragraph("Modules age at constant temperature; their capacity is measured at the beginning (day 0) and on"
                  " later days. Readings to which a deviation applies do not count."),
        Paragraph("Relative capacity is a reading over the module's reading of day 0. For each temperature, the rate k"
                  " in 1/day is the negative slope of the straight line, with intercept, through the natural logarithm"
                  " of relative capacity over days by least squares, all readings of all its modules taken together,"
                  " those of day 0 included."),
        Paragraph("The activation energy in kJ/mol follows from the straight line through ln k over 1/T by least"
                  " squares, one point a temperature: it is the negative slope times R = 8.314462618 J/(mol K), over"
                  " 1000; T = temperature in degrees Celsius + 273.15."),
        Paragraph("The same line gives k at the temperature of use. Life in days is the natural logarithm of 1 over the"
                  f" end of life, divided by that k. A module is at its end of life at {shown} of its first capacity."),
    ]  # fmt: skip
    return Prose(tuple(blocks), "Protocol", header=draft.setting.company)


def _keep(draft: Draft, event: Row, name: str, value: dict[str, Any]) -> None:
    row = {"id": f"laboratory:{name}", "model": "laboratory", "name": name, "value": value}
    draft.truth.add("assumption", row, event=event["id"], at=event["date"])


def _file(draft: Draft, event: Row, path: str, kind: str, content: Content) -> None:
    draft.document(path, kind, content, event["id"], day=event["date"], author=draft.roles["plant"]["name"])
