"""CL8: contracts that a disclosure schedule should list and does not.

What makes it hard: only some change of control clauses are to be disclosed, the schedule names contracts by number, and
several counterparties have names that are nearly alike.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from journeyman.worlds.curriculum import Knobs
from journeyman.worlds.papers import docx_bytes, heading, paragraph, save_document, table
from journeyman.worlds.template import Answer, Bound, Files, Lost, Solving, Unbindable, Wrong
from journeyman.worlds.templates import reading
from journeyman.worlds.templates.law.cl1_clauses import TITLES, clause_value
from journeyman.worlds.verify import Check

if TYPE_CHECKING:
    from journeyman.worlds.office import Office

FILE = "schedule_gaps.docx"
DUE = ("consent", "termination")
INDEXED = re.compile(r'\["(K\d+)", "((?:[^"\\]|\\.)*)", "(?:[^"\\]|\\.)*", "[^"]*", "((?:[^"\\]|\\.)*)"\]')
SQL = (
    "SELECT k.id, k.counterparty, k.title, c.id AS clause, c.no, c.params_json FROM clause_at c"
    " JOIN contract_at k ON k.id = c.contract_id WHERE c.type = 'change_of_control' ORDER BY k.id"
)


@dataclass(frozen=True)
class CL8:
    """See the module."""

    id: str = "CL8"
    domain: str = "law"
    title: str = "gaps of a disclosure schedule against the data room"
    traps: tuple[str, ...] = ()

    def bind(self, office: Office, rng: random.Random, knobs: Knobs) -> Bound:
        """See ``Template.bind``."""
        rows = [{**row, **json.loads(row["params_json"])} for row in office.truth.as_of(office.today).rows(SQL)]
        listed = {row["contract_id"] for row in office.truth.rows("SELECT * FROM disclosure WHERE listed = 1")}
        every = sorted({row["title"] for row in rows})
        titles = sorted(rng.sample(every, min(len(every), 2 + min(2, knobs.fan_out))))
        rows = [row for row in rows if row["title"] in titles]
        due = [row for row in rows if row["value"] in DUE]
        gaps = [row for row in due if row["id"] not in listed]
        notices = [row for row in rows if row["value"] == "notice" and row["id"] not in listed]
        if len(gaps) < 2 or not notices or len(due) == len(gaps):
            raise Unbindable("the schedule has fewer than two gaps")
        ask = {"titles": titles, "file": FILE}
        answer = {"due": len(due), "gaps": [_gap(row) for row in gaps]}
        return Bound(
            self.id, self.domain, office.id, _instruction(office, ask, rng), ask, answer, _checks(answer), (FILE,),
            _wrong(answer, due, notices, listed),
            trap_blind={"due": len(due) + len(notices), "gaps": [_gap(row) for row in (*gaps, *notices)]},
            single={"due": 0, "gaps": []}, facts=tuple(f"clause:{row['clause']}" for row in gaps),
            reads=tuple(d.path for kind in ("room_index", "disclosure_schedule") for d in office.of_kind(kind)),
            unordered=("gaps",), knobs=knobs, notes={"due": len(due), "gaps": len(gaps), "kinds": len(titles)},
        )  # fmt: skip

    def write(self, bound: Bound, answer: Answer, world: Files, form: str = "plain") -> dict[str, bytes]:
        """See ``Template.write``."""
        return {FILE: docx_bytes(layout(answer))}

    def solve(self, ask: Mapping[str, Any]) -> Solving:
        """See ``Template.solve``."""
        schedules = yield from reading.list_files("*disclosure*schedule*.docx", "legal")
        index = yield from reading.list_files("*data*room*index*.xlsx", "legal")
        if not schedules or not index:
            raise Lost("no disclosure schedule or no index")
        listed = set(re.findall(r'\["(K\d+)"', (yield from reading.document_text(schedules[0]))))
        text = yield from reading.tab(index[0])
        due, gaps = 0, []
        for number, title, path in INDEXED.findall(text):
            if title not in ask["titles"]:
                continue
            contract = yield from reading.document_text(json.loads(f'"{path}"'))
            provision = clause_value("change_of_control", reading.section(contract, TITLES["change_of_control"]))
            if provision not in DUE:
                continue
            due += 1
            if number in listed:
                continue
            party = re.search(r'and (.+?) \(the "Counterparty"\)', " ".join(contract.split()))
            clause = re.search(rf"^(\d+)\. {TITLES['change_of_control']}", contract, re.M | re.I)
            if party is None or clause is None:
                raise Lost(f"{path} has no counterparty or no clause number")
            gaps.append(
                {"contract": number, "counterparty": party[1], "provision": provision, "clause": int(clause[1])}
            )
        yield save_document(FILE, layout({"due": due, "gaps": gaps}))


def _gap(row: Mapping[str, Any]) -> dict[str, Any]:
    return {"contract": row["id"], "counterparty": row["counterparty"], "provision": row["value"], "clause": row["no"]}


def _wrong(
    answer: Answer, due: Sequence[Mapping[str, Any]], notices: Sequence[Mapping[str, Any]], listed: set[str]
) -> tuple[Wrong, ...]:
    gaps = list(answer["gaps"])
    known = [_gap(row) for row in due if row["id"] in listed]
    exchanged = {"consent": "termination", "termination": "consent"}
    tried = {
        "stale-version": known,
        "swapped-entity": [{**row, "counterparty": known[0]["counterparty"]} if i == 0 else row
                           for i, row in enumerate(gaps)],
        "notices taken for gaps": [*gaps, *(_gap(row) for row in notices)],
        "one gap missed": gaps[:-1],
        "everything listed again": [_gap(row) for row in due],
        "provisions exchanged": [{**row, "provision": exchanged[row["provision"]]} for row in gaps],
    }  # fmt: skip
    return tuple(Wrong(name, {**answer, "gaps": given}, "gaps") for name, given in tried.items())


def _checks(answer: Answer) -> tuple[Check, ...]:
    gaps = answer["gaps"]
    columns = ("Contract", "Counterparty", "Provision", "Clause")
    lines = [[row["contract"], row["counterparty"], row["provision"], row["clause"]] for row in gaps]
    count = {"value": answer["due"], "near": ["belong in the schedule"]}
    return (
        Check("readable", "present", {"files": [FILE]}, kind="gate", no_op="pass"),
        Check("gaps", "table", {"file": FILE, "columns": [{"name": one} for one in columns], "rows": lines,
                                "key": ["Contract"]}, weight=0.8),
        Check("count", "doc.mentions", {"file": FILE, "facts": [count], "tol": {"abs": 0.4}}, weight=0.1,
              stage="intermediate"),
        Check("section", "doc.headings", {"file": FILE, "headings": ["Gaps"]}, weight=0.1, stage="intermediate"),
    )  # fmt: skip


def layout(answer: Answer) -> list[dict[str, Any]]:
    """A heading, the count, the gaps."""
    rows = [[row.get(key) for key in ("contract", "counterparty", "provision", "clause")] for row in answer["gaps"]]
    return [
        heading("Gaps"),
        paragraph(f"Contracts that belong in the schedule: {answer['due']}"),
        table(("Contract", "Counterparty", "Provision", "Clause"), rows),
    ]


def _instruction(office: Office, ask: Mapping[str, Any], rng: random.Random) -> str:
    opener = rng.choice((
        f"The draft disclosure schedule of {office.setting.company} has never been checked.",
        f"Before {office.setting.company} signs, its disclosure schedule has to be complete.",
        f"Find what the draft disclosure schedule of {office.setting.company} leaves out.",
    ))  # fmt: skip
    return f"""{opener}

The schedule (folder legal) is to list every contract under which a change of control of the company needs the
counterparty's consent or lets the counterparty terminate; contracts that ask for a notice only do not belong in it,
and amendments that nobody signed change nothing.
Compare it with the contracts in legal/contracts of these kinds (see their titles): {"; ".join(ask["titles"])}.

Save `artifacts/{FILE}`, a Word document with the heading `Gaps`, a line `Contracts that belong in the schedule:`
followed by how many of these contracts belong in it, listed or not, and a table of those of them that belong in it and
are missing, with the columns

- `Contract`: its number
- `Counterparty`: the other party's full name, as the contract has it
- `Provision`: `consent` or `termination`
- `Clause`: number of the clause on change of control
"""
