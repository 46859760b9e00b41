"""SC2: rates, activation energy and life of battery modules from twelve logs, with the program that computes them.

What makes it hard: logs are in the units of their chambers, some readings do not count, and the program is executed
again: on the data that was delivered with it, and on readings that nobody has seen.
"""

from __future__ import annotations

import json
import math
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from journeyman.worlds.curriculum import Knobs
from journeyman.worlds.drafting import csv_bytes, json_bytes
from journeyman.worlds.template import Answer, Bound, Files, Lost, Solving, Wrong
from journeyman.worlds.templates import reading
from journeyman.worlds.templates.science.ageing import GAS_CONSTANT, Reading, evaluated, program
from journeyman.worlds.verify import Check

if TYPE_CHECKING:
    from journeyman.worlds.office import Office

DATA, PROGRAM, RESULT = "readings.csv", "ageing.py", "result.json"
COLUMNS = ("module", "celsius", "day", "capacity_ah")
STEPS = ("relative", "logarithm", "intercept", "keeps_day_0", "kelvin")
PER_DAY = {"days": 1.0, "weeks": 7.0, "hours": 1 / 24}
CLOSE = {"rel": 2e-4}


@dataclass(frozen=True)
class SC2:
    """See the module."""

    id: str = "SC2"
    domain: str = "science"
    title: str = "ageing rates, activation energy and life from test logs, by a program that is executed again"
    traps: tuple[str, ...] = ()

    def bind(self, office: Office, rng: random.Random, knobs: Knobs) -> Bound:
        """See ``Template.bind``."""
        given = json.loads(office.truth.value("SELECT value FROM assumption WHERE id = 'laboratory:ageing'"))
        use = rng.choice((15, 18, 20, 22, 25, 28, 30))
        temperatures = sorted({one["celsius"] for one in given["modules"]})
        left_out = rng.choice((None, *temperatures))
        ask = {"use": use, "without": left_out, "data": DATA, "program": PROGRAM, "result": RESULT}
        modules = [one for one in given["modules"] if one["celsius"] != left_out]
        right = {**dict.fromkeys(STEPS, True), "typed": None}
        kept = counted(modules, given["cuts"])
        answer = {"readings": kept, "rules": right, "result": evaluated(kept, use, given["end"], right)}
        wrong = _wrong(modules, given, ask, answer)
        everything = counted(modules, {})
        blind_rules = {**right, "relative": False, "intercept": False}
        blind = {"readings": everything, "rules": blind_rules, "result": answer["result"]}
        kinds = ("ageing_log", "ageing_deviations", "ageing_protocol")
        logs = [one.path for kind in kinds for one in office.of_kind(kind)]
        return Bound(
            self.id, self.domain, office.id, _instruction(office, ask, rng), ask, answer,
            _checks(answer, ask, given, rng), (DATA, PROGRAM, RESULT), wrong, trap_blind=blind,
            single={**blind, "readings": [one for one in kept if one["module"] == kept[0]["module"]]},
            facts=("ageing:end",), reads=tuple(logs), unordered=("readings",), knobs=knobs,
            notes={"readings": len(kept), "use": use, "temperatures": len({one["celsius"] for one in kept})},
        )  # fmt: skip

    def write(self, bound: Bound, answer: Answer, world: Files, form: str = "plain") -> dict[str, bytes]:
        """See ``Template.write``."""
        rows = [[one.get(name) for name in COLUMNS] for one in answer["readings"]]
        return {DATA: csv_bytes(COLUMNS, rows), PROGRAM: program(answer["rules"]).encode(),
                RESULT: json_bytes(answer["result"])}  # fmt: skip

    def solve(self, ask: Mapping[str, Any]) -> Solving:
        """See ``Template.solve``."""
        folder = "laboratory/batteries"
        protocol = yield from reading.document_text(f"{folder}/protocol.docx")
        end = re.search(r"end of life at (\d+)% of its first", protocol)
        notes = yield from reading.plain_text(f"{folder}/deviations.md")
        if end is None:
            raise Lost("the protocol names no end of life")
        gone = set(re.findall(r"(BM\d+) was exchanged", notes))
        since = {m[1]: int(m[2]) for m in re.finditer(r"(BM\d+): [^.\n]*?day (\d+)", notes)}
        kept: list[Reading] = []
        for path in (yield from reading.list_files("bm*.txt", f"{folder}/logs")):
            log = _read_log((yield from reading.plain_text(path)))
            kept += [one for one in log if one["module"] not in gone and one["celsius"] != ask["without"]
                     and one["day"] < since.get(one["module"], math.inf)]  # fmt: skip
        rules = {**dict.fromkeys(STEPS, True), "typed": None}
        share = int(end[1]) / 100
        rows = [[one[name] for name in COLUMNS] for one in kept]
        yield from reading.deliver_text(DATA, csv_bytes(COLUMNS, rows))
        yield from reading.deliver_text(PROGRAM, program(rules).encode())
        run = f"cd artifacts && python3 -B {PROGRAM} {DATA} {ask['use']} {share:g} > {RESULT} && cat {RESULT}"
        yield from reading.shell(run)


def counted(modules: Sequence[Mapping[str, Any]], cuts: Mapping[str, Any]) -> list[Reading]:
    """Readings of modules without those to which a deviation applies; with no ``cuts``, all of them."""
    since = {cuts[name]: cuts[f"{name}_day"] for name in ("opened", "early") if name in cuts}
    return [
        {"module": one["module"], "celsius": one["celsius"], "day": day, "capacity_ah": capacity}
        for one in modules if one["module"] != cuts.get("exchanged")
        for day, capacity in one["readings"] if day < since.get(one["module"], math.inf)
    ]  # fmt: skip


def _read_log(text: str) -> list[Reading]:
    """Readings of a log in degrees Celsius, days and ampere-hours. Raises Lost."""
    module = re.search(r"module (BM\d+)", text)
    chamber = re.search(r"chamber ([\d.]+) ([CKF])", text)
    units = re.search(r"time in (\w+), capacity in (m?Ah)", text)
    if module is None or chamber is None or units is None:
        raise Lost(f"no log: {text[:60]!r}")
    degrees = float(chamber[1])
    celsius = {"C": degrees, "K": degrees - 273.15, "F": (degrees - 32) * 5 / 9}[chamber[2]]
    factor = 0.001 if units[2] == "mAh" else 1.0
    return [
        {"module": module[1], "celsius": round(celsius), "day": round(float(time) * PER_DAY[units[1]]),
         "capacity_ah": round(float(capacity) * factor, 5)}
        for time, capacity in re.findall(r"^(\d+)\t([\d.]+)$", text, re.MULTILINE)
    ]  # fmt: skip


def _wrong(
    modules: Sequence[Mapping[str, Any]], given: Mapping[str, Any], ask: Mapping[str, Any], answer: Answer
) -> tuple[Wrong, ...]:
    def evaluate(readings: list[Reading], **rules: Any) -> Answer:
        made = {**answer["rules"], **rules}
        try:
            result = evaluated(readings, ask["use"], given["end"], made)
        except ValueError:  # a rate came out negative, and nobody would report that
            return answer
        return {"readings": readings, "rules": made, "result": result}

    kept = answer["readings"]
    cuts = given["cuts"]
    partly = counted(modules, {name: value for name, value in cuts.items() if name != "exchanged"})
    weeks = [{**one, "day": one["day"] / 7} for one in kept]
    shifted = {one["module"]: one["celsius"] for one in kept}
    names = sorted(shifted)
    turned = [{**one, "celsius": shifted[names[names.index(one["module"]) - 1]]} for one in kept]
    typed = {**answer, "rules": {**answer["rules"], "typed": answer["result"]}}
    found = [
        Wrong("deviations ignored", evaluate(counted(modules, {})), "readings"),
        Wrong("exchanged module kept", evaluate(partly), "readings"),
        Wrong("weeks taken for days", evaluate(weeks), "readings"),
        Wrong("swapped-entity", evaluate(turned), "readings"),
        Wrong("typed result", typed, "hidden readings"),
        Wrong("no intercept", evaluate(kept, intercept=False), "hidden readings"),
        Wrong("degrees Celsius in 1/T", evaluate(kept, kelvin=False), "hidden readings"),
        Wrong("first readings left out", evaluate(kept, keeps_day_0=False), "hidden readings"),
    ]
    return tuple(one for one in found if one.answer != answer)


def _drawn(rng: random.Random, number: int) -> tuple[list[Reading], int, float]:
    """Readings of another test, the temperature of use, and the end of life."""
    energy, base = 1000 * rng.uniform(35, 75), rng.uniform(0.5e-4, 2e-4)
    readings: list[Reading] = []
    for index, celsius in enumerate(rng.sample((30, 40, 50, 60, 70), 3 + number % 2)):
        k = base * math.exp(-energy / GAS_CONSTANT * (1 / (celsius + 273.15) - 1 / 298.15))
        for module in range(rng.randint(1, 3)):
            start = rng.uniform(60, 140)
            readings += [
                {"module": f"X{index}{module}", "celsius": celsius, "day": day,
                 "capacity_ah": round(start * math.exp(-k * day) * (1 + rng.gauss(0, 0.004)), 3)}
                for day in sorted({0, *rng.sample(range(10, 200), rng.randint(4, 7))})
            ]  # fmt: skip
    rng.shuffle(readings)
    return readings, rng.randint(10, 35), rng.choice((0.7, 0.75, 0.8))


def _hidden(rng: random.Random, rules: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Cases on which every step that is left out shows."""
    cases: list[dict[str, Any]] = []
    while len(cases) < 3:
        readings, use, end = _drawn(rng, len(cases))
        try:
            want = evaluated(readings, use, end, dict(rules))
        except ValueError:  # noise made a rate negative: no test of this kind
            continue
        text = csv_bytes(COLUMNS, [[one[name] for name in COLUMNS] for one in readings]).decode()
        cases.append({"name": f"drawn {len(cases) + 1}", "args": ["in.csv", str(use), str(end)],
                      "files": {"in.csv": text}, "json": want})  # fmt: skip
    return cases


def _checks(answer: Answer, ask: Mapping[str, Any], given: Mapping[str, Any], rng: random.Random) -> tuple[Check, ...]:
    names = ("module", "day", "celsius", "capacity_ah")
    rows = [[one[name] for name in names] for one in answer["readings"]]
    result = answer["result"]
    fields = {f"rates.{name}": rate for name, rate in result["rates"].items()}
    fields |= {name: result[name] for name in ("activation_energy", "rate", "life")}
    again = {"entry": PROGRAM, "args": [DATA, ask["use"], given["end"]], "data": [DATA], "file": RESULT,
             "fields": fields, "tol": CLOSE}  # fmt: skip
    return (
        Check("files", "present", {"files": [DATA, PROGRAM, RESULT]}, kind="gate", no_op="pass"),
        Check("readings", "data.records", {"file": DATA, "columns": list(names), "rows": rows, "tol": [0.01, 0.0051]},
              weight=0.2, stage="intermediate"),
        Check("executed again", "program.reproduces", again, weight=0.3),
        Check("hidden readings", "code.properties", {"entry": PROGRAM, "cases": _hidden(rng, answer["rules"]),
                                                     "tol": CLOSE}, weight=0.5),
    )  # fmt: skip


def _instruction(office: Office, ask: Mapping[str, Any], rng: random.Random) -> str:
    opener = rng.choice((
        f"The backup supply of {office.setting.company} gets new batteries. How long will they last?",
        f"{office.setting.company} had battery modules aged at several temperatures. Please evaluate the test.",
        f"The life of the battery modules of {office.setting.company} has to be predicted from its ageing test.",
    ))  # fmt: skip
    without = f" Leave the modules aged at {ask['without']} degrees Celsius out altogether." if ask["without"] else ""
    return f"""{opener}

Protocol, deviations and logs are in laboratory/batteries; follow the protocol. The temperature of use is {ask["use"]}
degrees Celsius.{without} Save

- `artifacts/{DATA}`: every reading that counts, comma separated, with the header `{",".join(COLUMNS)}`: module as
  in its log, temperature in whole degrees Celsius, whole day, capacity in Ah
- `artifacts/{PROGRAM}`: the evaluation, one file, standard library only. `python3 {PROGRAM} READINGS CELSIUS END` reads
  such a csv file, a temperature of use and an end of life as a fraction, and prints one JSON object:
  `rates` (an object: temperature as in the csv, such as "35", and its rate in 1/day), `activation_energy` (kJ/mol),
  `rate` (1/day at the temperature of use) and `life` (days); nothing is rounded
- `artifacts/{RESULT}`: what it prints for these readings

All is executed again: the program on your readings, and on readings of other tests, in any order.
"""
