"""CL1: a matrix of clauses over many contracts, as they stand today.

What makes it hard: signed amendments replace clauses, drafts of amendments do not, and some counterparties have names
that are nearly alike. Long variants cover nearly all contracts and add what the yearly reviews say of each:
volumes, and who looks after it now.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from journeyman.worlds.curriculum import Knobs
from journeyman.worlds.drafting import sheet, xlsx_bytes
from journeyman.worlds.template import Answer, Bound, Files, Lost, Solving, ToolCall, Unbindable, Wrong
from journeyman.worlds.templates import reading
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
from journeyman.worlds.templates.matrices import matrix_checks
from journeyman.worlds.verify import Check

if TYPE_CHECKING:
    from journeyman.worlds.office import Office

FILE = "clause_matrix.xlsx"
TITLES = {
    "term": "Term",
    "renewal_notice": "Renewal",
    "payment_days": "Invoices and payment",
    "liability_cap": "Limitation of liability",
    "change_of_control": "Change of control",
    "price_adjustment": "Price adjustment",
    "termination_convenience": "Termination for convenience",
    "confidentiality": "Confidentiality",
    "warranty": "Warranty",
}
"""Clause -> its heading in the contracts."""

COLUMNS = {
    "term": ("Term", "initial term in months"),
    "renewal_notice": ("Renewal notice", "days before the end of the term by which non-renewal must be notified"),
    "payment_days": ("Payment", "days for payment"),
    "liability_cap": ("Liability cap", "amount, in whole units of the contract's currency"),
    "change_of_control": ("Change of control", "`consent`, `notice`, `termination` or `none`, what a change of control"
                          " of our side needs or gives rise to"),
    "price_adjustment": ("Price cap", "most that prices may rise a year, in per cent, e.g. 2.5"),
    "termination_convenience": ("Convenience", "days of notice for termination without cause, 0 where excluded"),
    "confidentiality": ("Confidentiality", "years for which secrecy goes on after the end"),
    "warranty": ("Warranty", "months of the warranty"),
}  # fmt: skip
"""Clause -> name of its column, and what to write there."""


@dataclass(frozen=True)
class CL1:
    """See the module."""

    id: str = "CL1"
    domain: str = "law"
    title: str = "clause matrix over contracts and their amendments"
    traps: tuple[str, ...] = ("T1", "T7", "T17")

    def bind(self, office: Office, rng: random.Random, knobs: Knobs) -> Bound:
        """See ``Template.bind``."""
        kinds = sorted(rng.sample(KINDS, min(len(KINDS), 1 + knobs.fan_out)))
        if bounds := DOCUMENTS.get(min(knobs.length, 2)):
            kinds = kinds_with(office, bounds, rng, reviews=knobs.length > 1)
        types = rng.sample(list(COLUMNS), 3 + min(knobs.hops, 2))
        years = years_of(office) if knobs.length > 1 else []
        rows = _rows(office, kinds, types, amended=True, years=years)
        if len(rows) < 5:
            raise Unbindable("fewer than five contracts")
        old = _rows(office, kinds, types, amended=False, years=years)
        hard = [(i, t) for i, row in enumerate(rows) for t in types if row[t] != old[i][t]]
        if not hard:
            raise Unbindable("no amendment among these clauses")
        ask = {"kinds": kinds, "types": types, "file": FILE, "columns": {t: COLUMNS[t][0] for t in types},
               "titles": sorted({row["title"] for row in rows}), "years": years}  # fmt: skip
        numbers = {row["contract"] for row in rows}
        drafts = {
            p.site.split(":")[1]: p for p in office.planted if p.trap in self.traps and p.site.startswith("clause:")
        }
        traps = sorted({p.trap for site, p in drafts.items() if site in numbers and p.site.split(":")[-1] in types})
        strip = tuple({key: value for key, value in row.items() if key not in ("title", "address")} for row in rows)
        answer = {"contracts": list(strip)}
        wrong = _wrong(strip, old, types, hard, drafts, traps)
        said = [*types, *(["owner"] if years else [])]
        blind = {"contracts": [{**row, **{t: old[i][t] for t in said}} for i, row in enumerate(strip)]}
        return Bound(
            self.id, self.domain, office.id, _instruction(office, ask, rng), ask, answer, _checks(ask, strip, hard),
            (FILE,), wrong, trap_blind=blind,
            single={"contracts": [row for n, row in enumerate(strip) if n not in {i for i, _ in hard}][:1]},
            facts=(*(f"clause:{row['id']}" for row in _clauses(office, numbers, types)),
                   *(f"review:{row['contract']}:{year}:volume" for row in rows for year in years
                     if row[f"volume_{year}"] != NONE)),
            traps=tuple(sorted({one.trap for one in wrong if one.trap})), unordered=("contracts",), knobs=knobs,
            notes={"contracts": len(rows), "clauses": len(types), "amended": len(hard)},
        )  # fmt: skip

    def write(self, bound: Bound, answer: Answer, world: Files, form: str = "plain") -> dict[str, bytes]:
        """See ``Template.write``."""
        return {FILE: xlsx_bytes(layout(bound.ask, answer))}

    def solve(self, ask: Mapping[str, Any]) -> Solving:
        """See ``Template.solve``."""
        index = yield from reading.tab((yield from reading.list_files("*data*room*index*.xlsx", "legal"))[0])
        listed = yield from reading.list_files("*", "legal")
        rows: dict[str, dict[str, Any]] = {}
        for contract, title, path in INDEXED.findall(index):
            if title not in ask["titles"]:
                continue
            text = yield from reading.document_text(json.loads(f'"{path}"'))
            row = _read_contract(text, ask)
            if row is None:
                raise Lost(f"{path} is not {title}")
            for clause_type in ask["types"]:
                row[clause_type] = yield from signed_value(contract, clause_type, text)
            rows[row["contract"]] = row
            own = [one for one in listed if re.match(rf"{contract}(?!\d)", one.rpartition("/")[2], re.IGNORECASE)]
            for other in own:
                name = other.rpartition("/")[2].lower()
                if "amendment" in name:
                    _amend(rows, (yield from reading.document_text(other)), ask)
                elif "review" in name and ask["years"]:
                    row |= read_review((yield from reading.plain_text(other)), ask["years"])
        if not rows:
            raise Lost("no contract of these kinds")
        answer = {"contracts": [rows[number] for number in sorted(rows)]}
        yield from reading.deliver_workbook(FILE, layout(ask, answer))


def _clauses(office: Office, numbers: set[str], types: list[str]) -> list[dict[str, Any]]:
    current = "valid_from <= :today AND (valid_to IS NULL OR valid_to > :today)"
    sql = f"SELECT id, contract_id, type FROM clause WHERE {current} ORDER BY id"
    rows = office.truth.rows(sql, today=office.today)
    return [row for row in rows if row["contract_id"] in numbers and row["type"] in types]


def _rows(
    office: Office, kinds: list[str], types: list[str], *, amended: bool, years: list[int]
) -> list[dict[str, Any]]:
    """One row per contract, sorted by number; ``amended`` False reads what was signed and reviewed first."""
    found = []
    contracts = office.truth.rows("SELECT * FROM contract WHERE signed = 1 ORDER BY id")
    for contract in contracts:
        if contract["kind"] not in kinds:
            continue
        clauses = office.truth.rows("SELECT * FROM clause WHERE contract_id = :c ORDER BY id", c=contract["id"])
        row: dict[str, Any] = {
            "contract": contract["id"], "counterparty": contract["counterparty"], "date": contract["date"],
            "title": contract["title"],
        }  # fmt: skip
        for clause_type in types:
            versions = [one for one in clauses if one["type"] == clause_type]
            if amended:
                versions = [one for one in versions if one["valid_from"] <= office.today]
                replaced = {one["supersedes"] for one in versions}
                versions = [one for one in versions if one["id"] not in replaced]
            else:
                versions = [one for one in versions if not one["supersedes"]]
            row[clause_type] = json.loads(versions[0]["params_json"])["value"] if versions else NONE
        found.append({**row, **reviewed(office, contract["id"], years, latest=amended)})
    return found


def _wrong(
    rows: tuple[dict[str, Any], ...], old: list[dict[str, Any]], types: list[str], hard: list[tuple[int, str]],
    drafts: Mapping[str, Any], traps: list[str],
) -> tuple[Wrong, ...]:  # fmt: skip
    listed = list(rows)
    stale = [{**row, **{t: old[i][t] for t in types}} for i, row in enumerate(listed)]
    where = hard[0][0]
    other = next(i for i in range(len(listed)) if any(listed[i][t] != listed[where][t] for t in types))
    swapped = [dict(row) for row in listed]
    for t in types:
        swapped[where][t], swapped[other][t] = listed[other][t], listed[where][t]
    shifted = [{**row, types[0]: listed[i - 1][types[0]]} for i, row in enumerate(listed)]
    lost = [{**row, **{t: NONE for i, t in hard if i == n}} for n, row in enumerate(listed)]
    rest = [row for n, row in enumerate(listed) if n not in {i for i, _ in hard}]
    found = [
        Wrong("stale-version", {"contracts": stale}, "hard cells"),
        Wrong("swapped-entity", {"contracts": swapped}, "every cell"),
        Wrong("a row too far", {"contracts": shifted}, "every cell"),
        Wrong("amended clauses left out", {"contracts": lost}, "hard cells"),
        Wrong("amended contracts left out", {"contracts": rest}, "every cell"),
    ]  # fmt: skip
    if "owner" in listed[0]:
        shown = [{**row, "owner": old[i]["owner"]} for i, row in enumerate(listed)]
        found.append(Wrong("owners of the first review", {"contracts": shown}, "every cell"))
    for trap in traps:
        wrong = [dict(row) for row in listed]
        for row in wrong:
            planted = drafts.get(row["contract"])
            if planted is not None and planted.trap == trap:
                kind = planted.site.split(":")[-1]
                if kind in types:
                    row[kind] = planted.wrong.get(kind, next(iter(planted.wrong.values())))
        found.append(Wrong(f"{trap}:fell for it", {"contracts": wrong}, "every cell", trap))
    return tuple(one for one in found if one.answer["contracts"] != listed)


def _checks(ask: Mapping[str, Any], rows: tuple[dict[str, Any], ...], hard: list[tuple[int, str]]) -> tuple[Check, ...]:
    types = list(ask["types"])
    columns: list[dict[str, Any]] = [{"name": "Contract"}]
    columns += [{"name": ask["columns"][t], "tol": {"abs": 0.001}} for t in types]
    columns += [{"name": name, "tol": {"abs": 0.5}} for name in _more_columns(ask)]
    keys = [*types, *_more_keys(ask)]
    cells = [[row["contract"], *(row[key] for key in keys)] for row in rows]
    places = [(where, 1 + types.index(t)) for where, t in hard]
    parties = [[row["contract"], row["counterparty"], {"date": row["date"]}] for row in rows]
    return (
        Check("files", "present", {"files": [FILE]}, kind="gate", no_op="pass"),
        *matrix_checks(FILE, columns, cells, places, key=["Contract"], trap_ids=("T1", "T7", "T17")),
        Check("parties", "table", {
            "file": FILE, "columns": [{"name": "Contract"}, {"name": "Counterparty"}, {"name": "Date"}],
            "rows": parties,
        }, weight=0.1, stage="intermediate"),
        *(_review_checks(ask, rows) if ask["years"] else ()),
    )  # fmt: skip


def _review_checks(ask: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> tuple[Check, ...]:
    """What was read from the reviews, and that its sums agree with it."""
    names = _more_columns(ask)[:-1]
    volumes = [[row["contract"], *(row[f"volume_{year}"] for year in ask["years"])] for row in rows]
    return (
        Check("volumes", "table", {"file": FILE, "sheet": "Matrix", "rows": volumes, "columns": [
            {"name": "Contract"}, *({"name": name, "tol": {"abs": 0.5}} for name in names)
        ]}, weight=0.04, stage="intermediate"),
        Check("years", "table", {"file": FILE, "sheet": "Years", "rows": by_year(ask, {"contracts": rows}),
              "columns": [{"name": name} for name in ("Year", "Reviews", "Volume")]}, weight=0.04,
              stage="intermediate"),
    )  # fmt: skip


def _more_keys(ask: Mapping[str, Any]) -> list[str]:
    return [*(f"volume_{year}" for year in ask["years"]), "owner"] if ask["years"] else []


def _more_columns(ask: Mapping[str, Any]) -> list[str]:
    return [*(f"Volume {year}" for year in ask["years"]), "Owner"] if ask["years"] else []


def by_year(ask: Mapping[str, Any], answer: Mapping[str, Any]) -> list[list[Any]]:
    """Year, reviews that were found, the sum of their volumes."""
    found = []
    for year in ask["years"]:
        values = [row.get(f"volume_{year}") for row in answer["contracts"]]
        known = [value for value in values if isinstance(value, int | float)]
        found.append([year, len(known), sum(known)])
    return found


def layout(ask: Mapping[str, Any], answer: Answer) -> list[dict[str, Any]]:
    """One row per contract; where reviews count, also one per year."""
    names = ["Contract", "Counterparty", "Date", *(ask["columns"][t] for t in ask["types"]), *_more_columns(ask)]
    keys = ("contract", "counterparty", "date", *ask["types"], *_more_keys(ask))
    matrix = sheet("Matrix", names, [[row.get(key) for key in keys] for row in answer["contracts"]])
    return [matrix, sheet("Years", ["Year", "Reviews", "Volume"], by_year(ask, answer))] if ask["years"] else [matrix]


def _read_contract(text: str, ask: Mapping[str, Any]) -> dict[str, Any] | None:
    """The row of a contract of the kinds that are asked for, as it was signed."""
    flat = " ".join(text.split())
    head = re.search(r"Contract number (\w+), dated (.+?) between (.+?) concerning", flat)
    title = next((one for one in ask["titles"] if one.lower() in flat[:400].lower()), None)
    if head is None or title is None:
        return None
    party = re.search(r'and (.+?) \(the "Counterparty"\)', head[3])
    if party is None:
        raise Lost(f"no counterparty in {head[0][:80]}")
    row: dict[str, Any] = {"contract": head[1], "counterparty": party[1], "date": reading.day(head[2])}
    return {**row, **dict.fromkeys(_more_keys(ask), NONE)}


def _amend(rows: dict[str, dict[str, Any]], text: str, ask: Mapping[str, Any]) -> None:
    """Apply a signed amendment; a draft changes nothing."""
    flat = " ".join(text.split())
    number = re.search(r"with the number (\w+)", flat)
    if number is None or number[1] not in rows or not reading.is_signed(flat):
        return
    for clause_type in ask["types"]:
        if new := amended_clause(text, clause_type):
            rows[number[1]][clause_type] = clause_value(clause_type, new)


def signed_value(contract: str, clause_type: str, text: str) -> reading.Reading:
    """What a clause of a contract came to when it was signed; a mail says what became of a change that is marked."""
    clause = reading.section(text, TITLES[clause_type])
    if "[change " in clause:
        found = yield ToolCall("mail_search_mail", {"subject": f"{contract}: proposal declined"})
        for line in found.splitlines():
            if line.startswith("{"):
                mail = json.loads((yield ToolCall("mail_read_mail", {"mail_id": json.loads(line)["mail_id"]})))
                clause = reading.words_between(" ".join(mail["body"].split()), "The clause stays at", ". ") or clause
    return clause_value(clause_type, clause)


def amended_clause(text: str, clause_type: str) -> str:
    """What a signed amendment puts in place of a clause; empty where it is a draft or about something else."""
    flat = " ".join(text.split())
    title = re.escape(TITLES[clause_type])
    match = re.search(rf"Clause \d+ \({title}\)(.*?)(?= \d+\. (?:Clause|Continuation)|$)", flat, re.IGNORECASE)
    if match is None or not reading.is_signed(flat):
        return ""
    return match[1].partition("following text:")[2] or match[1]


def clause_value(clause_type: str, text: str) -> Any:
    """What the text of a clause of this type comes to; ``NONE`` where it says nothing."""
    if not text:
        return NONE
    if clause_type == "change_of_control":
        low = text.lower()
        for word in ("terminat", "prior written consent", "notice"):
            if word in low:
                return {"terminat": "termination", "prior written consent": "consent", "notice": "notice"}[word]
        return NONE
    if clause_type == "liability_cap":
        match = re.search(r"(?:[A-Z]{3}|[$€£]) ?\d[\d.,' ]*\d|\d[\d.,' ]*\d ?(?:[A-Z]{3}|[$€£])", text)
        return reading.whole_number(match[0]) if match else NONE
    if clause_type == "price_adjustment":
        match = re.search(r"(\d+(?:[.,]\d+)?) per cent", text)
        return float(match[1].replace(",", ".")) if match else NONE
    match = re.search(r"(\d+) (?:days|months|years)", text)
    if match:
        return int(match[1])
    return 0 if clause_type == "termination_convenience" else NONE


def _instruction(office: Office, ask: Mapping[str, Any], rng: random.Random) -> str:
    titles = "; ".join(ask["titles"])
    columns = "\n".join(f"- `{COLUMNS[t][0]}`: {COLUMNS[t][1]}" for t in ask["types"])
    opener = rng.choice((
        f"{office.setting.company} is being sold and the buyer's counsel asks for an overview of its contracts.",
        f"We need a clause matrix for the contracts of {office.setting.company} before the call with the other side.",
        f"The general counsel of {office.setting.company} wants to know where the company stands under its contracts.",
    ))  # fmt: skip
    more = sheets = ""
    if ask["years"]:
        columns += "".join(
            f"\n- `Volume {year}`: its volume in fiscal year {year}, in whole units, by the review of that year;"
            f" `{NONE}` where it was not reviewed" for year in ask["years"]
        )  # fmt: skip
        columns += "\n- `Owner`: its business owner by the latest review"
        more = " The reviews lie in legal/reviews."
        sheets = """
A second sheet `Years` has one row per fiscal year: `Year` (such as 2024), `Reviews` (how many of these contracts were
reviewed) and `Volume` (the sum of theirs). The first sheet is called `Matrix`.
"""
    return f"""{opener}

Read the contracts in legal/contracts that are of these kinds (see their titles): {titles}. Report each clause as it
stands on {office.today}, with every amendment that both sides have signed; drafts and declined proposals change
nothing. Where a contract has no such clause, write `{NONE}`.{more}

Save `artifacts/{FILE}` with one row per contract on its first sheet, headers in row 1:

- `Contract`: its number
- `Counterparty`: the other party's full name, as the contract has it
- `Date`: when it was made
{columns}
{sheets}"""
