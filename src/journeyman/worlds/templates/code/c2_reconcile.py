"""C2: write a program that reconciles a ledger with a bank statement, to a specification full of edges.

What makes it hard: the specification decides order, ties, days, empty references and what is said about lines whose
amount alone differs; hidden cases are drawn anew for each task, and together they show every edge.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any

from journeyman.worlds.curriculum import Knobs
from journeyman.worlds.template import Answer, Bound, Files, Lost, Solving, Unbindable, Wrong
from journeyman.worlds.templates import reading
from journeyman.worlds.templates.code.ledger import as_text, program, reconcile
from journeyman.worlds.verify import Check

if TYPE_CHECKING:
    from journeyman.worlds.office import Office

FILE = "reconcile.py"
COLUMNS = ["id", "date", "amount", "reference"]
EDGES = {
    "trims": "blanks around references",
    "folds_case": "upper and lower case",
    "needs_reference": "empty references",
    "nearest": "the nearest day",
    "smaller_id": "ties by id",
    "by_date": "ledger lines by date",
    "says_amount": "amounts that differ",
    "once": "each line once",
    "says_unexpected": "bank lines that are left",
}
"""Rule of the program -> what of the specification it keeps."""

NUM_DRAWS = 400
NAMES = {",": "a comma", ";": "a semicolon", "|": "a vertical bar"}
Case = tuple[list[dict[str, str]], list[dict[str, str]]]


@dataclass(frozen=True)
class C2:
    """See the module."""

    id: str = "C2"
    domain: str = "code"
    title: str = "a reconciliation program to a specification, under hidden cases"
    traps: tuple[str, ...] = ()

    def bind(self, office: Office, rng: random.Random, knobs: Knobs) -> Bound:
        """See ``Template.bind``."""
        found = office.of_kind("specification")
        window = int(office.truth.value("SELECT value FROM assumption WHERE id = 'spec:window'"))
        if len(found) != 1:
            raise Unbindable("no specification, or several")
        ask = {
            "separator": rng.choice(tuple(NAMES)), "ignore": rng.choice(("", "INT-", "FEE-", "TMP-")),
            "file": FILE, "specification": found[0].path,
        }  # fmt: skip
        right = {"window": window, "separator": ask["separator"], "ignore": ask["ignore"], **dict.fromkeys(EDGES, True)}
        answer = {"rules": right}
        cases = _telling(right, rng)
        wrong = [Wrong(name, {"rules": {**right, kind: False}}, "drawn cases") for kind, name in EDGES.items()]
        wrong.append(Wrong("a day too few", {"rules": {**right, "window": window - 1}}, "drawn cases"))
        blind = {**right, **dict.fromkeys(EDGES, False), "says_unexpected": True, "once": True}
        return Bound(
            self.id, self.domain, office.id, _instruction(office, ask, rng), ask, answer, _checks(right, cases),
            (FILE,), tuple(wrong), trap_blind={"rules": blind},
            single={"rules": {**right, **dict.fromkeys(EDGES, False)}},
            facts=("spec:window",), reads=(found[0].path,), knobs=knobs,
            notes={"window": window, "separator": ask["separator"], "ignore": ask["ignore"]},
        )  # fmt: skip

    def write(self, bound: Bound, answer: Answer, world: Files, form: str = "plain") -> dict[str, bytes]:
        """See ``Template.write``."""
        return {FILE: program(answer["rules"]).encode()}

    def solve(self, ask: Mapping[str, Any]) -> Solving:
        """See ``Template.solve``."""
        text = "\n".join((yield from reading.text_lines(ask["specification"])))
        window = re.search(r"more than (\d+) days apart", text)
        if window is None:
            raise Lost("the specification names no number of days")
        rules = {"window": int(window[1]), "separator": ask["separator"], "ignore": ask["ignore"],
                 **dict.fromkeys(EDGES, True)}  # fmt: skip
        yield from reading.deliver_text(FILE, program(rules).encode())
        yield from reading.shell(f": > /tmp/e && python3 artifacts/{FILE} /tmp/e /tmp/e /dev/stdout")


def _case(rng: random.Random, window: int, ignore: str) -> Case:
    """A ledger and a statement in which everything occurs."""
    start = date(2024, 1, 1) + timedelta(days=rng.randrange(300))
    names = [f"{rng.choice(('INV', 'RE', 'PO'))}{rng.randrange(100, 999)}" for _ in range(5)] + [""]
    if ignore:
        names.append(f"{ignore}{rng.randrange(10, 99)}")
    amounts = [rng.randrange(-900, 900) for _ in range(3)]

    def lines(prefix: str, count: int) -> list[dict[str, str]]:
        numbers = rng.sample(range(1, 120), count)
        made = []
        for number in numbers:
            name = rng.choice(names)
            shown = rng.choice((name, name, name.lower(), f" {name}", f"{name.title()} "))
            day = start + timedelta(days=rng.randrange(0, 2 * window + 2))
            made.append({"id": f"{prefix}{number}", "date": day.isoformat(), "amount": str(rng.choice(amounts)),
                         "reference": shown})  # fmt: skip
        return made

    return lines("L", rng.randrange(14, 22)), lines("B", rng.randrange(14, 22))


def _telling(right: Mapping[str, Any], rng: random.Random) -> list[Case]:
    """Few cases that together show whether every edge is kept. Raises Unbindable when some edge cannot be shown."""
    careless = [{**right, kind: False} for kind in EDGES]
    careless += [{**right, "window": right["window"] + more} for more in (-1, 1)]
    careless += [{**right, "ignore": ""}] if right["ignore"] else []
    found: list[Case] = []
    for _ in range(NUM_DRAWS):
        case = _case(rng, right["window"], right["ignore"])
        expected = reconcile(*case, dict(right))
        left = [rules for rules in careless if reconcile(*case, rules) == expected]
        if len(left) < len(careless):
            found.append(case)
            careless = left
        if not careless:
            return found
    raise Unbindable(f"no cases tell {len(careless)} of the edges")


def _checks(right: Mapping[str, Any], cases: Sequence[Case]) -> tuple[Check, ...]:
    told = [_as_case(case, right, f"drawn {n}") for n, case in enumerate(cases, 1)]
    return (
        Check("files", "present", {"files": [FILE]}, kind="gate", no_op="pass"),
        Check("drawn cases", "code.properties", {"entry": FILE, "cases": told}, weight=0.8),
        Check("empty files", "code.properties", {"entry": FILE, "cases": [_as_case(([], []), right, "empty")]},
              weight=0.2, stage="intermediate"),
    )  # fmt: skip


def _as_case(case: Case, right: Mapping[str, Any], name: str) -> dict[str, Any]:
    separator = right["separator"]
    files = {
        f"{what}.csv": as_text([COLUMNS, *([line[key] for key in COLUMNS] for line in lines)], separator)
        for what, lines in zip(("ledger", "bank"), case, strict=True)
    }
    expected = as_text(reconcile(*case, dict(right)), separator)
    return {"name": name, "args": ["ledger.csv", "bank.csv", "/dev/stdout"], "files": files, "stdout": expected}


def _instruction(office: Office, ask: Mapping[str, Any], rng: random.Random) -> str:
    opener = rng.choice((
        f"The treasury of {office.setting.company} reconciles its ledger by hand and wants a program for it.",
        f"Finance and technology at {office.setting.company} agreed how ledger and bank are compared. Please write it.",
        f"{office.setting.company} needs a small command that compares the ledger with the bank statement.",
    ))  # fmt: skip
    ignore = (
        f"- lines of both files whose reference begins with {ask['ignore']}, blanks at both ends removed and whatever"
        " its case, are left out before anything else, and appear nowhere\n"
        if ask["ignore"]
        else ""
    )
    return f"""{opener}

The specification is {ask["specification"]}. Save the program as `artifacts/{FILE}`; it uses the standard library only
and consists of this one file. In addition to the specification:

- all three files separate their columns with {NAMES[ask["separator"]]}; dates are ISO 8601
- lines end with a line feed, nothing is quoted, and ids are compared as text, character by character
- lines with status `amount` are settled after all matches, in the same order and by the same choice as matches
{ignore}- LEDGER and BANK are opened with `open`, and OUT is opened with `open` for writing; it may be /dev/stdout

It is run on ledgers and statements that you have not seen.
"""
