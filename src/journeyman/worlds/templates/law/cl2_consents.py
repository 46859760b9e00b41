"""CL2: what a change of control needs under the company's contracts, and by which day.

What makes it hard: the deadline runs backwards from completion for a consent and forwards for everything else, some
clauses say that nothing happens, the draft disclosure schedule lists too few contracts, and a register of contracts
differs from some of them. Long variants cover all contracts and say where each notice goes and how much business is
touched, from the yearly reviews.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any

from journeyman.worlds.curriculum import Knobs
from journeyman.worlds.papers import docx_bytes, heading, paragraph, save_document, table
from journeyman.worlds.template import Answer, Bound, Files, Lost, Solving, Unbindable, Wrong
from journeyman.worlds.templates import reading
from journeyman.worlds.templates.law.cl1_clauses import TITLES, amended_clause, clause_value
from journeyman.worlds.templates.law.reviews import (
    DOCUMENTS,
    INDEXED,
    KINDS,
    NONE,
    kinds_with,
    read_review,
    reviewed,
    years_of,
)
from journeyman.worlds.verify import Check

if TYPE_CHECKING:
    from journeyman.worlds.office import Office
    from journeyman.worlds.plan import Planted

FILE = "consents.docx"
COLUMNS = ("Contract", "Counterparty", "Effect", "Day")
KEYS = ("contract", "counterparty", "effect", "day")
EFFECTS = ("consent", "notice", "termination")

SQL = (
    "SELECT k.id, k.kind, k.title, k.counterparty, c.id AS clause, c.params_json FROM clause_at c"
    " JOIN contract_at k ON k.id = c.contract_id WHERE c.type = 'change_of_control' ORDER BY k.id"
)


@dataclass(frozen=True)
class CL2:
    """See the module."""

    id: str = "CL2"
    domain: str = "law"
    title: str = "change of control list with deadlines for a deal"
    traps: tuple[str, ...] = ("T1", "T12")

    def bind(self, office: Office, rng: random.Random, knobs: Knobs) -> Bound:
        """See ``Template.bind``."""
        kinds = set(rng.sample(KINDS, min(len(KINDS), 1 + knobs.fan_out)))
        if knobs.length:
            kinds = set(KINDS if knobs.length > 1 else kinds_with(office, DOCUMENTS[1], rng, reviews=False))
        years = years_of(office) if knobs.length > 1 else []
        found = [{**row, **json.loads(row["params_json"])} for row in office.truth.as_of(office.today).rows(SQL)]
        found = [{**row, **reviewed(office, row["id"], years, latest=True)} for row in found if row["kind"] in kinds]
        touched = [row for row in found if row["value"] != "none"]
        if len(touched) < 4 or len({row["value"] for row in touched}) < 3 or len(touched) == len(found):
            raise Unbindable("too few kinds of change of control clauses")
        if years and (papers := _papers(office, found, touched)) < DOCUMENTS[2][0]:
            raise Unbindable(f"only {papers} documents say something")
        close = date.fromisoformat(office.today) + timedelta(days=rng.randrange(60, 120))
        ask = {"completion": close.isoformat(), "titles": sorted({row["title"] for row in found}), "file": FILE,
               "years": years}  # fmt: skip
        answer = {"contracts": [_entry(row, close) for row in touched]}
        listed = {row["contract_id"] for row in office.truth.rows("SELECT * FROM disclosure WHERE listed = 1")}
        drafts = [one for one in office.planted if one.trap == "T1" and one.site.endswith(":change_of_control")]
        shown = _registered(found, office.planted)
        wrong = (
            *_wrong(answer, found, close, listed),
            *_followed(answer, close, drafts),
            *_believed(answer, shown, close),
        )
        if years:
            first = {row["id"]: reviewed(office, row["id"], years, latest=False) for row in touched}
            old = [{**row, "address": first[row["contract"]]["address"]} for row in answer["contracts"]]
            wrong += (Wrong("notices to an old address", {"contracts": old}, "deadlines"),)
        return Bound(
            self.id, self.domain, office.id, _instruction(office, ask, rng), ask, answer, _checks(ask, answer),
            (FILE,), wrong,
            trap_blind={"contracts": [_entry(row, close, sign=1) for row in shown]},
            single={"contracts": answer["contracts"][:1]},
            facts=(*(f"clause:{row['clause']}" for row in touched),
                   *(f"review:{row['id']}:{years[-1]}:address" for row in touched if years)),
            reads=tuple(document.path for document in office.of_kind("room_index")),
            unordered=("contracts",), traps=tuple(sorted({one.trap for one in wrong if one.trap})), knobs=knobs,
            notes={"contracts": len(touched), "of": len(found), "kinds": len(kinds)},
        )  # fmt: skip

    def write(self, bound: Bound, answer: Answer, world: Files, form: str = "plain") -> dict[str, bytes]:
        """See ``Template.write``."""
        return {FILE: docx_bytes(layout(bound.ask, answer))}

    def solve(self, ask: Mapping[str, Any]) -> Solving:
        """See ``Template.solve``."""
        close = date.fromisoformat(ask["completion"])
        index = yield from reading.list_files("*data*room*index*.xlsx")
        if not index:
            raise Lost("no index of the data room")
        text = yield from reading.tab(index[0])
        listed = yield from reading.list_files("*", "legal")
        rows = []
        for number, title, path in INDEXED.findall(text):
            if title not in ask["titles"]:
                continue
            contract = yield from reading.document_text(json.loads(f'"{path}"'))
            clause = reading.section(contract, TITLES["change_of_control"])
            own = [one for one in listed if re.match(rf"{number}(?!\d)", one.rpartition("/")[2], re.IGNORECASE)]
            for paper in (one for one in own if "amendment" in one.rpartition("/")[2].lower()):
                clause = amended_clause((yield from reading.document_text(paper)), "change_of_control") or clause
            party = re.search(r'and (.+?) \(the "Counterparty"\)', " ".join(contract.split()))
            effect, days = clause_value("change_of_control", clause), re.search(r"(\d+) days", clause)
            if party is None:
                raise Lost(f"no counterparty in {path}")
            if days is not None:
                row = {"id": number, "counterparty": party[1], "value": effect, "days": int(days[1])}
                row |= {f"volume_{year}": NONE for year in ask["years"]}
                for paper in (one for one in own if ask["years"] and "review" in one.rpartition("/")[2].lower()):
                    row |= read_review((yield from reading.plain_text(paper)), ask["years"])
                rows.append(_entry(row, close))
        yield save_document(FILE, layout(ask, {"contracts": rows}))


def _entry(row: Mapping[str, Any], close: date, sign: int = 0) -> dict[str, Any]:
    """A line of the list; ``sign`` 1 counts every period forwards, 0 as the clause says."""
    way = sign or (-1 if row["value"] == "consent" else 1)
    day = close + timedelta(days=way * int(row.get("days") or 0))
    more = {key: row[key] for key in row if key == "address" or key.startswith("volume_")}
    return {**dict(zip(KEYS, (row["id"], row["counterparty"], row["value"], day.isoformat()), strict=True)), **more}


def _papers(office: Office, found: Sequence[Mapping[str, Any]], touched: Sequence[Mapping[str, Any]]) -> int:
    """Contracts and amendments that are read, and reviews of those that matter."""
    read, matter = ({f"contract:{row['id']}" for row in rows} for rows in (found, touched))
    papers = office.documents.values()
    return sum(one.subject in (matter if one.kind == "review" else read) for one in papers)


def _more(ask: Mapping[str, Any]) -> dict[str, str]:
    """Key of an entry -> its column, beyond those that every list has."""
    volumes = {f"volume_{year}": f"Volume {year}" for year in ask["years"]}
    return {"address": "Notices to", **volumes} if ask["years"] else {}


def by_effect(ask: Mapping[str, Any], answer: Mapping[str, Any]) -> list[list[Any]]:
    """Effect, contracts, their volume in the last year."""
    found = []
    for effect in EFFECTS if ask["years"] else ():
        own = [row for row in answer["contracts"] if row.get("effect") == effect]
        values = [row.get(f"volume_{ask['years'][-1]}") for row in own]
        found.append([effect, len(own), sum(value for value in values if isinstance(value, int | float))])
    return found


def _wrong(answer: Answer, found: Sequence[Mapping[str, Any]], close: date, listed: set[str]) -> tuple[Wrong, ...]:
    rows = list(answer["contracts"])
    forwards = [_entry(row, close, sign=1) for row in found if row["value"] != "none"]
    late = [{**row, "day": (date.fromisoformat(row["day"]) + timedelta(days=1)).isoformat()} for row in rows]
    swapped = [{**row, "day": rows[i - 1]["day"], "effect": rows[i - 1]["effect"]} for i, row in enumerate(rows)]
    called = [{**row, "effect": "consent"} for row in rows]
    return (
        Wrong("stale-version", {"contracts": [row for row in rows if row["contract"] in listed]}, "parties"),
        Wrong("swapped-entity", {"contracts": swapped}, "deadlines"),
        Wrong("consents counted forwards", {"contracts": forwards}, "deadlines"),
        Wrong("a day late", {"contracts": late}, "deadlines"),
        Wrong("every clause listed", {"contracts": [_entry(row, close) for row in found]}, "parties"),
        Wrong("everything called consent", {"contracts": called}, "deadlines"),
    )


def _followed(answer: Answer, close: date, drafts: Sequence[Planted]) -> tuple[Wrong, ...]:
    """Who takes an unsigned amendment for the clause."""
    found = []
    for one in drafts:
        contract = one.site.split(":")[1]
        rows = [
            {**row, "effect": "notice", "day": (close + timedelta(days=int(one.wrong["days"]))).isoformat()}
            if row["contract"] == contract
            else row
            for row in answer["contracts"]
        ]
        if rows != answer["contracts"]:
            found.append(Wrong("T1:unsigned draft followed", {"contracts": rows}, "deadlines", "T1"))
    return tuple(found)


def _registered(found: Sequence[Mapping[str, Any]], planted: Sequence[Planted]) -> list[dict[str, Any]]:
    """The same clauses as the register of contracts has them, which ranks below the contracts."""
    said = {one.site.partition(":")[2]: one.wrong for one in planted if one.site.startswith("consents:")}
    return [
        {**row, "value": said[row["id"]]["effect"], "days": said[row["id"]]["days"]} if row["id"] in said else {**row}
        for row in found
    ]


def _believed(answer: Answer, shown: Sequence[Mapping[str, Any]], close: date) -> tuple[Wrong, ...]:
    """Who copies the register."""
    rows = [_entry(row, close) for row in shown if row["value"] != "none"]
    if rows == answer["contracts"]:
        return ()
    return (Wrong("T12:register believed", {"contracts": rows}, "deadlines", "T12"),)


def _checks(ask: Mapping[str, Any], answer: Answer) -> tuple[Check, ...]:
    rows, more = list(answer["contracts"]), _more(ask)
    lines = [
        [row["contract"], row["counterparty"], row["effect"], {"date": row["day"]}, *(row[key] for key in more)]
        for row in rows
    ]
    named: list[dict[str, Any]] = [{"name": name} for name in (*COLUMNS, *more.values())]
    effects = [
        Check("effects", "table", {"file": FILE, "rows": by_effect(ask, answer), "columns": [
            {"name": name} for name in ("Effect", "Contracts", "Volume")
        ]}, weight=0.05, stage="intermediate")
    ] if more else []  # fmt: skip
    return (
        Check("document", "present", {"files": [FILE]}, kind="gate", no_op="pass"),
        Check("headings", "doc.headings", {"file": FILE, "headings": ["Summary", "Consents and notices"]}, weight=0.05,
              stage="intermediate"),
        Check("parties", "members", {"file": FILE, "column": "Contract", "items": [row["contract"] for row in rows]},
              weight=0.25, stage="intermediate"),
        Check("deadlines", "table", {"file": FILE, "columns": named, "rows": lines}, weight=0.7,
              trap_ids=("T1", "T12")),
        *effects,
    )  # fmt: skip


def layout(ask: Mapping[str, Any], answer: Answer) -> list[dict[str, Any]]:
    """Two headings, a sentence, and the list; where reviews count, a table by effect below a third heading."""
    more = _more(ask)
    last = [heading("Business touched"), table(("Effect", "Contracts", "Volume"), by_effect(ask, answer))]
    return [
        heading("Summary"),
        paragraph(f"Completion is planned for {ask['completion']}. The list below says what it needs."),
        heading("Consents and notices"),
        table((*COLUMNS, *more.values()), [[row.get(key) for key in (*KEYS, *more)] for row in answer["contracts"]]),
        *(last if more else ()),
    ]


def _instruction(office: Office, ask: Mapping[str, Any], rng: random.Random) -> str:
    opener = rng.choice((
        f"All shares in {office.setting.company} are being sold, and the buyer asks which contracts that touches.",
        f"Prepare the change of control list for the sale of {office.setting.company}.",
        f"The sale of {office.setting.company} needs a plan for consents and notices under its contracts.",
    ))  # fmt: skip
    more = ""
    if years := ask["years"]:
        more = f"""- `Notices to`: the address for notices by the latest review of the contract (legal/reviews)
- {" and ".join(f"`Volume {year}`" for year in years)}: its volume in these fiscal years by their reviews, in whole
  units; `{NONE}` where it was not reviewed

A third heading `Business touched` stands above a table with one row each for `consent`, `notice` and `termination`, in
the columns `Effect`, `Contracts` (how many) and `Volume` (the sum of what they had in {years[-1]}).
"""
    return f"""{opener}

Completion, which is when control changes and when every counterparty learns of it, is on {ask["completion"]}. Read the
contracts in legal/contracts of these kinds (see their titles): {"; ".join(ask["titles"])}.
The contracts count, with amendments that both sides have signed; drafts and the unchecked disclosure schedule do not.

Save `artifacts/{FILE}`, a Word document with the headings `Summary` (a sentence or two) and `Consents and notices`.
Below the second stands a table with the columns `Contract`, `Counterparty`, `Effect` and `Day`, one row for every
contract under which the change of control needs a consent, needs a notice or lets the counterparty terminate, and no
others:

- `Contract`: its number
- `Counterparty`: the other party's full name, as the contract has it
- `Effect`: `consent`, `notice` or `termination`
- `Day` (ISO 8601), counted in calendar days from completion and not moved for weekends: for a consent the latest day on
  which it can still be obtained or requested in time; for a notice the last day on which we may give it; for a
  termination the last day on which the counterparty may give notice of it
{more}"""
