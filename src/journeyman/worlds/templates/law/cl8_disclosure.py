"""CL8: contracts that a disclosure schedule should list and does not.

What makes it hard: only some change of control clauses are to be disclosed, the schedule may call a party by the name
it had before, several counterparties have names that are nearly alike, and a contract may be missing from the room.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

from journeyman.worlds.curriculum import Knobs
from journeyman.worlds.papers import docx_bytes, heading, paragraph, save_document, table
from journeyman.worlds.template import Answer, Bound, Files, Lost, Solving, ToolCall, Unbindable, Wrong
from journeyman.worlds.templates import reading
from journeyman.worlds.templates.law.cl1_clauses import TITLES, clause_value
from journeyman.worlds.verify import Check

if TYPE_CHECKING:
    from journeyman.worlds.office import Office
    from journeyman.worlds.plan import Planted

FILE = "schedule_gaps.docx"
DUE = ("consent", "termination")
INDEXED = re.compile(r'\["(K\d+)", "((?:[^"\\]|\\.)*)", "(?:[^"\\]|\\.)*", "[^"]*", "((?:[^"\\]|\\.)*)"\]')
UNFILED = re.compile(r'\["(K\d+)", "((?:[^"\\]|\\.)*)", "(?:[^"\\]|\\.)*", "[^"]*"(?:, (?:null|""))?\]')
"""A line of the index that names no file: contract, title."""

UNNUMBERED = re.compile(r'\["", "((?:[^"\\]|\\.)*)", "')
"""A line of the schedule that has a party only."""

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
    traps: tuple[str, ...] = ("T7", "T11")

    def bind(self, office: Office, rng: random.Random, knobs: Knobs) -> Bound:
        """See ``Template.bind``."""
        rows = [{**row, **json.loads(row["params_json"])} for row in office.truth.as_of(office.today).rows(SQL)]
        listed = {row["contract_id"] for row in office.truth.rows("SELECT * FROM disclosure WHERE listed = 1")}
        renamed, unfiled = office.trap("T7", "disclosure:"), office.trap("T11", "contract:")
        titles = _titles(rows, listed, min(4, 2 + knobs.fan_out), renamed, unfiled, rng)
        rows = [row for row in rows if row["title"] in titles]
        due = [row for row in rows if row["value"] in DUE]
        gaps = [row for row in due if row["id"] not in listed]
        notices = [row for row in rows if row["value"] == "notice" and row["id"] not in listed]
        called = [_gap(row) for row in due if renamed is not None and renamed.site == f"disclosure:{row['id']}"]
        missing = [unfiled] if unfiled is not None and unfiled.right["title"] in titles else []
        ask = {"titles": titles, "file": FILE}
        answer: Answer = {
            "due": len(due),
            "listed": len(due) - len(gaps),
            "gaps": [_gap(row) for row in gaps],
            "unfiled": [{"contract": one.site.partition(":")[2], "ask": one.right["whom"]} for one in missing],
        }
        guessed = [{"contract": one.site.partition(":")[2], "counterparty": one.right["party"],
                    "provision": one.wrong["provision"], "clause": gaps[0]["no"]} for one in missing]  # fmt: skip
        blind = [*answer["gaps"], *called, *guessed, *(_gap(row) for row in notices)]
        wrong = _wrong(answer, due, notices, listed, called, guessed)
        return Bound(
            self.id, self.domain, office.id, _instruction(office, ask, rng), ask, answer, _checks(answer), (FILE,),
            wrong, trap_blind={**answer, "due": len(due) + len(notices), "gaps": blind, "unfiled": []},
            single={"due": 0, "listed": 0, "gaps": [], "unfiled": []},
            facts=(*(f"clause:{row['clause']}" for row in gaps), *(fact for one in missing for fact in one.fact_ids)),
            reads=tuple(d.path for kind in ("room_index", "disclosure_schedule") for d in office.of_kind(kind)),
            unordered=("gaps",), traps=tuple(sorted({one.trap for one in wrong if one.trap})), knobs=knobs,
            notes={"due": len(due), "gaps": len(gaps), "kinds": len(titles)},
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
        schedule = yield from reading.document_text(schedules[0])
        listed = set(re.findall(r'\["(K\d+)"', schedule))
        for name in UNNUMBERED.findall(schedule):
            said = re.search(r"its agreement, (K\d+)", (yield from _mail(json.loads(f'"{name}"'))))
            listed |= {said[1]} if said else set()
        text = yield from reading.tab(index[0])
        due, gaps, unfiled = 0, [], []
        for number, title in UNFILED.findall(text):
            if title in ask["titles"]:
                said = re.search(r"The original is with (.+?)\.(?:\s|$)", (yield from _mail(number)))
                unfiled.append({"contract": number, "ask": said[1] if said else ""})
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
        yield save_document(FILE, layout({"due": due, "listed": due - len(gaps), "gaps": gaps, "unfiled": unfiled}))


def _mail(subject: str) -> reading.Reading:
    """Text of the mails whose subject says this."""
    found = yield ToolCall("mail_search_mail", {"subject": subject})
    texts = []
    for line in found.splitlines():
        if line.startswith("{"):
            mail = json.loads((yield ToolCall("mail_read_mail", {"mail_id": json.loads(line)["mail_id"]})))
            texts.append(" ".join(mail["body"].split()))
    return "\n".join(texts)


def _titles(
    rows: Sequence[Mapping[str, Any]], listed: set[str], count: int, renamed: Planted | None, unfiled: Planted | None,
    rng: random.Random,
) -> list[str]:  # fmt: skip
    """Kinds of contracts with two gaps, a listed one and a notice; with what traps touch, if that can be."""
    every = sorted({str(row["title"]) for row in rows})
    touched = {str(row["title"]) for row in rows if renamed is not None and renamed.site == f"disclosure:{row['id']}"}
    touched |= {str(unfiled.right["title"])} & set(every) if unfiled is not None else set()
    for size in (count, *range(len(every), 1, -1)):
        fit = [kinds for kinds in combinations(every, min(size, len(every))) if _is_fit(rows, listed, kinds)]
        if fit:
            return list(rng.choice([kinds for kinds in fit if touched <= set(kinds)] or fit))
    raise Unbindable("the schedule has fewer than two gaps")


def _is_fit(rows: Sequence[Mapping[str, Any]], listed: set[str], kinds: Sequence[str]) -> bool:
    own = [(row["value"], row["id"] in listed) for row in rows if row["title"] in kinds]
    due = [is_listed for value, is_listed in own if value in DUE]
    return due.count(False) > 1 and True in due and ("notice", False) in own


def _gap(row: Mapping[str, Any]) -> dict[str, Any]:
    return {"contract": row["id"], "counterparty": row["counterparty"], "provision": row["value"], "clause": row["no"]}


def _wrong(
    answer: Answer, due: Sequence[Mapping[str, Any]], notices: Sequence[Mapping[str, Any]], listed: set[str],
    called: Sequence[Mapping[str, Any]], guessed: Sequence[Mapping[str, Any]],
) -> tuple[Wrong, ...]:  # fmt: skip
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
    found = [Wrong(name, {**answer, "gaps": given}, "gaps") for name, given in tried.items()]
    if called:
        found.append(Wrong("T7:former name", {**answer, "gaps": [*gaps, *called]}, "gaps", "T7"))
    if guessed:
        more = {**answer, "due": answer["due"] + len(guessed), "gaps": [*gaps, *guessed], "unfiled": []}
        found.append(Wrong("T11:guessed", more, "gaps", "T11"))
    return tuple(found)


def _checks(answer: Answer) -> tuple[Check, ...]:
    gaps = answer["gaps"]
    columns = ("Contract", "Counterparty", "Provision", "Clause")
    lines = [[row["contract"], row["counterparty"], row["provision"], row["clause"]] for row in gaps]
    counts = [
        {"value": answer["due"], "near": ["belong in the schedule"]},
        {"value": answer["listed"], "near": ["there already"]},
    ]
    unfiled = [[row["contract"], row["ask"]] for row in answer["unfiled"]]
    return (
        Check("readable", "present", {"files": [FILE]}, kind="gate", no_op="pass"),
        Check("gaps", "table", {"file": FILE, "columns": [{"name": one} for one in columns], "rows": lines,
                                "key": ["Contract"]}, weight=0.75, trap_ids=("T7", "T11")),
        Check("count", "doc.mentions", {"file": FILE, "facts": counts, "tol": {"abs": 0.4}}, weight=0.1,
              stage="intermediate", trap_ids=("T11",)),
        Check("without a document", "table", {"file": FILE, "columns": [{"name": "Without document"}, {"name": "Ask"}],
                                              "rows": unfiled}, weight=0.1, trap_ids=("T11",)),
        Check("section", "doc.headings", {"file": FILE, "headings": ["Gaps"]}, weight=0.05, stage="intermediate"),
    )  # fmt: skip


def layout(answer: Answer) -> list[dict[str, Any]]:
    """A heading, the counts, the gaps, what cannot be judged."""
    rows = [[row.get(key) for key in ("contract", "counterparty", "provision", "clause")] for row in answer["gaps"]]
    return [
        heading("Gaps"),
        paragraph(f"Contracts that belong in the schedule: {answer['due']}"),
        paragraph(f"Contracts that are there already: {answer['listed']}"),
        table(("Contract", "Counterparty", "Provision", "Clause"), rows),
        table(("Without document", "Ask"), [[row.get("contract"), row.get("ask")] for row in answer["unfiled"]]),
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
and amendments that nobody signed change nothing. A party is the same under a name that it had before.
Compare it with the contracts in legal/contracts of these kinds (see their titles): {"; ".join(ask["titles"])}.

Save `artifacts/{FILE}`, a Word document with the heading `Gaps`, a line `Contracts that belong in the schedule:`
followed by how many of these contracts belong in it, listed or not, a line `Contracts that are there already:` followed
by how many of those it lists, and a table of those of them that belong in it and are missing, with the columns

- `Contract`: its number
- `Counterparty`: the other party's full name, as the contract has it
- `Provision`: `consent` or `termination`
- `Clause`: number of the clause on change of control

A contract of these kinds that the index of the data room (folder legal) names but whose document is not in the room
cannot be judged: it is neither counted nor a gap. Below, list such contracts in a second table with the columns
`Without document` (its number) and `Ask` (full name of the person who can supply it); where there is none, it has only
its header.
"""
