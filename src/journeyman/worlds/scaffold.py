"""``new-template``: a template that binds, with its oracle, controls and a test, to be filled in."""

from __future__ import annotations

import re
from pathlib import Path

from journeyman.errors import InputError

DOMAINS = (
    *("banking", "law", "consulting", "search", "code", "coordination"),
    *("instructions", "dialogue", "mathematics", "science", "engineering"),
)

TEMPLATE = '''\
"""{id}: how much of a customer's billing falls into one fiscal year. Replace this by what your template asks.

What makes it hard: say it here in one sentence; the traps and controls below must match it.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from journeyman.worlds.curriculum import Knobs
from journeyman.worlds.drafting import json_bytes
from journeyman.worlds.template import Answer, Bound, Files, Lost, Solving, Unbindable, Wrong
from journeyman.worlds.templates import reading
from journeyman.worlds.verify import Check

if TYPE_CHECKING:
    from journeyman.worlds.office import Office

FILE = "result.json"


@dataclass(frozen=True)
class {cls}:
    """See the module."""

    id: str = "{id}"
    domain: str = "{domain}"
    title: str = "billing of one customer in one fiscal year"
    traps: tuple[str, ...] = ()

    def bind(self, office: Office, rng: random.Random, knobs: Knobs) -> Bound:
        """1. Take facts from the truth by SQL; ``Unbindable`` and ``Ambiguous`` pass the world over."""
        year = rng.choice(office.setting.years)
        months = [office.setting.label(month) for month in office.setting.year_months(year)]
        sums = office.truth.rows(
            "SELECT customer_id AS id, SUM(net) AS net, SUM(gross) AS gross, COUNT(*) AS count FROM invoice"
            " WHERE substr(date, 1, 7) BETWEEN :first AND :last GROUP BY customer_id ORDER BY customer_id",
            first=months[0], last=months[-1],
        )  # fmt: skip
        if len(sums) < 3:
            raise Unbindable("fewer than three customers")
        at = rng.randrange(len(sums))
        row, other = sums[at], sums[at - 1]
        answer = {{"customer": row["id"], "net": row["net"], "invoices": row["count"]}}
        ask = {{"customer": row["id"], "first": months[0], "last": months[-1]}}
        wrong = (
            Wrong("swapped-entity", {{**answer, "net": other["net"], "invoices": other["count"]}}, "net"),
            Wrong("stale-version", {{**answer, "net": row["net"] - other["net"]}}, "net"),
            Wrong("everybody", {{**answer, "net": sum(one["net"] for one in sums)}}, "net"),
            Wrong("thousands", {{**answer, "net": row["net"] / 1000}}, "net"),
        )
        checks = (
            Check("shape", "json.shape", {{"file": FILE, "keys": {{"net": "number", "invoices": "number"}}}},
                  kind="gate"),
            Check("net", "json.fields", {{"file": FILE, "fields": {{"net": row["net"]}}, "tol": {{"abs": 0.5}}}},
                  weight=0.7),
            Check("invoices", "json.fields", {{"file": FILE, "fields": {{
                "invoices": row["count"], "customer": row["id"],
            }}}}, weight=0.3, stage="intermediate"),
        )  # fmt: skip
        instruction = (
            f"What was customer {{row['id']}} of {{office.setting.company}} billed, net of tax, from {{months[0]}} to"
            f" {{months[-1]}}? The invoice registers are in the folder commercial.\\n\\nSave `artifacts/{{FILE}}`, a"
            " JSON object with `customer`, `net` and `invoices` (how many there were).\\n"
        )
        return Bound(
            self.id, self.domain, office.id, instruction, ask, answer, checks, (FILE,), wrong,
            trap_blind={{**answer, "net": row["gross"] + 1, "invoices": 0}}, single=None, knobs=knobs,
        )  # fmt: skip

    def write(self, bound: Bound, answer: Answer, world: Files, form: str = "plain") -> dict[str, bytes]:
        """2. An answer, right or wrong, as the files that were asked for."""
        return {{FILE: json_bytes(answer)}}

    def solve(self, ask: Mapping[str, Any]) -> Solving:
        """3. Find the answer with the agent's tools; only ``ask`` is known here."""
        seen: dict[str, float] = {{}}
        for path in (yield from reading.list_files("*invoice*register*.csv")):
            for record in (yield from reading.csv_records(path)):
                if record["customer_id"] == ask["customer"]:
                    if ask["first"] <= reading.day(record["date"])[:7] <= ask["last"]:
                        seen[record["invoice_no"]] = reading.number(record["net"])
        if not seen:
            raise Lost("no invoice of this customer")
        answer = {{"customer": ask["customer"], "net": round(sum(seen.values())), "invoices": len(seen)}}
        yield from reading.deliver_text(FILE, json_bytes(answer))
'''

TEST = '''\
"""{id} binds, its controls differ from its answer, and its checks are sound; the gates do the rest in sandboxes."""

from __future__ import annotations

from journeyman.seeds import stream
from journeyman.worlds.curriculum import Knobs
from journeyman.worlds.office import make_office
from journeyman.worlds.template import Unbindable
from journeyman.worlds.verify import lint
from {module} import {cls}


def test_{name}_binds_with_one_answer_and_sound_checks():
    office = make_office(7, "train", 0)
    template = {cls}()
    for draw in range(20):
        try:
            bound = template.bind(office, stream(7, "test", draw), Knobs())
        except Unbindable:
            continue
        assert not lint(bound.checks, bound.deliverables)
        assert all(wrong.answer != bound.answer for wrong in bound.wrong)
        assert set(template.write(bound, bound.answer, office.files)) == set(bound.deliverables)
        return
    raise AssertionError("no draw could be bound")
'''


def new_template(template_id: str, domain: str, root: Path, tests: Path) -> tuple[Path, Path]:
    """Write a template and its test.

    Args:
        template_id: e.g. ``IB13``; letters, then digits.
        domain: folder below ``templates``.
        root: the package directory ``worlds/templates``, or any other package.
        tests: directory of tests.

    Returns:
        both files.

    Raises:
        InputError: a bad id or domain, or a file is there already; nothing was written.
    """
    if not re.fullmatch(r"[A-Z]+\d+", template_id):
        raise InputError(
            "id", f"{template_id!r} is no id of a template", allowed="capital letters and a number, e.g. IB13"
        )
    if domain not in DOMAINS:
        raise InputError("--domain", f"{domain!r} is unknown", allowed=", ".join(DOMAINS))
    name = template_id.lower()
    source, test = root / domain / f"{name}.py", tests / f"test_worlds_template_{name}.py"
    for path in (source, test):
        if path.exists():
            raise InputError(str(path), "is there already", hint="choose another id")
    module = f"journeyman.worlds.templates.{domain}.{name}"
    words = {"id": template_id, "domain": domain, "cls": template_id, "name": name, "module": module}
    source.parent.mkdir(parents=True, exist_ok=True)
    tests.mkdir(parents=True, exist_ok=True)
    source.write_text(TEMPLATE.format(**words), encoding="utf-8")
    test.write_text(TEST.format(**words), encoding="utf-8")
    return source, test
