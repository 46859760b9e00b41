"""IF1: a briefing on provisions of contracts, written under more than a dozen constraints, each checked by itself.

What makes it hard: every constraint holds at once, the lines must say what is in force rather than what was signed
first, and one of the constraints is a count over them.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from journeyman.worlds.curriculum import Knobs
from journeyman.worlds.papers import docx_bytes, heading, paragraph, save_document
from journeyman.worlds.template import Answer, Bound, Files, Lost, Solving, Unbindable, Wrong
from journeyman.worlds.templates.instructions.contracts import agreement, counterparty, provision
from journeyman.worlds.templates.law.cl1_clauses import TITLES, clause_value
from journeyman.worlds.verify import Check
from journeyman.worlds.verify.inside.worldverify.constraints import NUMBER_WORDS

if TYPE_CHECKING:
    from journeyman.worlds.office import Office

FILE = "briefing.docx"
SUBJECTS = {
    "payment_days": ("time for payment", "days"),
    "renewal_notice": ("notice of non-renewal", "days"),
    "term": ("initial term", "months"),
    "confidentiality": ("duty of confidence after the end", "years"),
    "warranty": ("warranty", "months"),
}
"""Clause -> what the briefing calls it, and the unit of its value."""

HEADINGS = {
    "German": ("Zusammenfassung", "Vertr\u00e4ge", "N\u00e4chste Schritte"),
    "French": ("R\u00e9sum\u00e9", "Contrats", "Prochaines \u00e9tapes"),
    "Spanish": ("Resumen", "Contratos", "Pr\u00f3ximos pasos"),
    "Italian": ("Sintesi", "Contratti", "Prossimi passi"),
    "Dutch": ("Samenvatting", "Contracten", "Volgende stappen"),
}
ENGLISH = ["Summary", "Contracts", "Next steps"]
FORMS = (
    ("{contract} | {party} | {value} {unit}", r"K\d{{3}} \| .+ \| \d+ {unit}"),
    ("{party} ({contract}): {value} {unit}", r".+ \(K\d{{3}}\): \d+ {unit}"),
    ("{value} {unit} - {contract} - {party}", r"\d+ {unit} - K\d{{3}} - .+"),
)
"""Form of a line, and the pattern that it must match."""

ORDERS = {
    "lowest first": "by value, lowest first, and by number of the contract where values are equal",
    "highest first": "by value, highest first, and by number of the contract where values are equal",
    "last number first": "by number of the contract, the highest number first",
    "alphabet": "by the other party's name as in a dictionary, and by number of the contract where names are equal",
}
OPENINGS = ("For the board:", "In brief:", "For decision:", "At a glance:")
CLOSINGS = ("before the next board meeting.", "by the end of the quarter.", "without further notice.", "in writing.")
WORDS = ("CLEAR", "AUDIT", "BOARD", "TRUST", "FOCUS", "SCOPE", "TERMS", "STEPS")
AVOIDED = ("ensure", "leverage", "robust", "utilise", "moving forward", "stakeholder", "holistic", "synergy", "impact")
STEPS = {
    "A": "All signed copies stay in the legal archive", "B": "Both sides confirm the figures",
    "C": "Counsel reads each draft that is still open", "D": "Drafts are marked as such",
    "E": "Every change goes through the legal department", "F": "Finance enters the figures in its system",
    "I": "Invoices are compared with the list", "L": "Lawyers of the other side are told",
    "M": "Managers of the accounts are told", "O": "Open questions are collected",
    "P": "Procurement checks its own list", "R": "Renewals are entered in the calendar",
    "S": "Sales receives a copy of the list", "T": "The list is kept up to date",
    "U": "Unsigned papers are set aside",
}  # fmt: skip
"""First letter -> a step of the last section."""

PROSE = (
    "The figures are those in force today and count every amendment that both sides have signed.",
    "Drafts of amendments were left aside.",
    "The list below is complete for the contracts that were asked about.",
    "Each line was read in the contract or in the amendment that replaced it.",
)


@dataclass(frozen=True)
class IF1:
    """See the module."""

    id: str = "IF1"
    domain: str = "instructions"
    title: str = "briefing on contracts under more than a dozen constraints of form"
    traps: tuple[str, ...] = ("T1",)

    def bind(self, office: Office, rng: random.Random, knobs: Knobs) -> Bound:
        """See ``Template.bind``."""
        by_kind = {kind: _provisions(office, kind) for kind in SUBJECTS}
        kinds = [kind for kind, known in by_kind.items()
                 if len(known) >= 8 and any(one["value"] != one["signed"] for one in known)]  # fmt: skip
        if not kinds:
            raise Unbindable("no clause with a plain figure was amended")
        kind = rng.choice(kinds)
        known = by_kind[kind]
        amended = [one for one in known if one["value"] != one["signed"]]
        rest = [one for one in known if one not in amended]
        chosen = rng.sample(amended, min(len(amended), 2 + knobs.hops))
        chosen += rng.sample(rest, min(len(rest), 5 + 2 * knobs.fan_out))
        ask = _demand(office, rng, kind, chosen)
        rows = _ordered([_row(one, "value") for one in chosen], ask["order"])
        answer = _answer(ask, rows)
        stale = _answer(ask, _ordered([_row(one, "signed") for one in chosen], ask["order"]))
        if any(ask["short"].lower() in row["party"].lower() for row in rows) or not 0 < _over(ask, rows) < len(rows):
            raise Unbindable("the counts would be ambiguous")
        wrong = _wrong(ask, answer, stale, chosen)
        changed = {one["contract"] for one in chosen if one["value"] != one["signed"]}
        return Bound(
            self.id, self.domain, office.id, _instruction(office, ask, rng), ask, answer,
            _checks(ask, answer, changed), (FILE,), wrong, trap_blind=stale,
            single={**answer, "rows": [{**row, "value": 0 if i or row["contract"] in changed else row["value"]}
                                       for i, row in enumerate(rows)], "count": ""},
            facts=tuple(one["fact"] for one in chosen), traps=tuple(sorted({one.trap for one in wrong if one.trap})),
            knobs=knobs,
            notes={"contracts": len(rows), "amended": len(changed), "constraints": len(_forms(ask, answer))},
        )  # fmt: skip

    def write(self, bound: Bound, answer: Answer, world: Files, form: str = "plain") -> dict[str, bytes]:
        """See ``Template.write``."""
        return {FILE: docx_bytes(layout(bound.ask, answer))}

    def solve(self, ask: Mapping[str, Any]) -> Solving:
        """See ``Template.solve``."""
        rows = []
        for contract in ask["contracts"]:
            _, raw = yield from agreement(contract)
            _, _, text = yield from provision(contract, TITLES[ask["kind"]])
            value = clause_value(ask["kind"], text)
            if not isinstance(value, int):
                raise Lost(f"no figure in {text[:80]!r}")
            rows.append({"contract": contract, "party": counterparty(raw), "value": value})
        yield save_document(FILE, layout(ask, _answer(ask, _ordered(rows, ask["order"]))))


def _provisions(office: Office, kind: str) -> list[dict[str, Any]]:
    """Contracts with this clause: its value in force, as signed, and in a draft that nobody signed."""
    rows = office.truth.rows(
        "SELECT k.id AS contract, k.counterparty AS party, c.id AS clause, c.supersedes AS supersedes, c.params_json"
        " AS params, c.valid_from AS since FROM clause c JOIN contract k ON k.id = c.contract_id"
        " WHERE c.type = :kind AND k.signed = 1 ORDER BY c.id", kind=kind,
    )  # fmt: skip
    rows = [row for row in rows if row["since"] <= office.today]
    old = {row["clause"]: json.loads(row["params"])["value"] for row in rows}
    replaced = {row["supersedes"] for row in rows}
    found = []
    for row in rows:
        value = json.loads(row["params"])["value"]
        if row["clause"] in replaced or not isinstance(value, int) or isinstance(value, bool):
            continue
        if office.trap("T17", f"clause:{row['contract']}:{kind}"):  # whose tracked change counts, only a mail says
            continue
        draft = office.trap("T1", f"clause:{row['contract']}:{kind}")
        found.append({
            "contract": row["contract"], "party": row["party"], "fact": f"clause:{row['clause']}", "value": value,
            "signed": old.get(row["supersedes"], value), "draft": draft.wrong["draft"] if draft else value,
        })  # fmt: skip
    return sorted(found, key=lambda one: str(one["contract"]))


def _demand(office: Office, rng: random.Random, kind: str, chosen: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Everything that is asked for; the threshold lies between two values."""
    language = rng.choice(sorted(HEADINGS))
    values = sorted({one["value"] for one in chosen})
    return {
        "kind": kind, "contracts": sorted(one["contract"] for one in chosen), "language": language,
        "headings": list(HEADINGS[language]), "form": rng.randrange(len(FORMS)), "order": rng.choice(sorted(ORDERS)),
        "threshold": values[max(0, len(values) // 2 - 1)], "opening": rng.choice(OPENINGS),
        "closing": rng.choice(CLOSINGS), "initials": rng.choice(WORDS), "sentences": rng.randint(4, 6),
        "mentions": rng.randint(2, 3),
        "avoid": sorted(rng.sample(AVOIDED, 4)), "owner": office.roles["gc"]["name"], "short": office.setting.short,
        "file": FILE,
    }  # fmt: skip


def _row(one: Mapping[str, Any], which: str) -> dict[str, Any]:
    return {"contract": one["contract"], "party": one["party"], "value": one[which]}


def _ordered(rows: list[dict[str, Any]], order: str) -> list[dict[str, Any]]:
    rows = sorted(rows, key=lambda row: str(row["contract"]), reverse=order == "last number first")
    if order == "alphabet":
        return sorted(rows, key=lambda row: str(row["party"]).casefold())
    if order == "last number first":
        return rows
    return sorted(rows, key=lambda row: row["value"] if order == "lowest first" else -row["value"])


def _over(ask: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> int:
    return sum(row["value"] > ask["threshold"] for row in rows)


def _answer(ask: Mapping[str, Any], rows: list[dict[str, Any]]) -> Answer:
    kept = {key: ask[key] for key in ("headings", "opening", "closing", "initials", "owner")}
    return {**kept, "count": NUMBER_WORDS[_over(ask, rows)], "rows": rows}


def layout(ask: Mapping[str, Any], answer: Answer) -> list[dict[str, Any]]:
    """The briefing. Keys of the demand that an answer has too are taken from the answer: that is how it goes wrong."""
    said = {**ask, **answer}
    subject, unit = SUBJECTS[ask["kind"]]
    short, heads = ask["short"], [str(one or "-") for one in said["headings"]]
    heads += ["-"] * (3 - len(heads))
    texts = [
        f"{said['opening'] or ''} this note covers what the contracts of {short} provide on the {subject}.",
        f"Of the contracts listed below, {said['count']} provide for more than the threshold that was set.",
        *(f"{short} keeps the signed copies." for _ in range(said["mentions"] - 1)),
    ]  # fmt: skip
    texts += PROSE[: max(0, said["sentences"] - len(texts))]
    form = FORMS[said["form"]][0]
    lines = [form.format(contract=row.get("contract"), party=row.get("party"), value=row.get("value"), unit=unit)
             for row in said["rows"]]  # fmt: skip
    letters = [one for one in str(said["initials"] or "").upper() if one.isalpha()]
    steps = [STEPS.get(one, f"{one}-") for one in letters]
    ends = [f" and {said['owner']} signs the list" if i == 0 else "" for i in range(len(steps))]
    steps = [f"{step}{end}." for step, end in zip(steps, ends, strict=True)]
    if steps:
        steps[-1] = f"{steps[-1][:-1]} {said['closing'] or ''}"
    return [
        heading(heads[0]), paragraph(" ".join([*texts, *said.get("more", ())])),
        heading(heads[1]), *(paragraph(line) for line in lines),
        heading(heads[2]), *(paragraph(step) for step in steps), *(heading(one) for one in heads[3:]),
    ]  # fmt: skip


def _wrong(
    ask: Mapping[str, Any], answer: Answer, stale: Answer, chosen: Sequence[Mapping[str, Any]]
) -> tuple[Wrong, ...]:
    rows = answer["rows"]
    other = [{**row, "value": rows[i - 1]["value"]} for i, row in enumerate(rows)]
    number = NUMBER_WORDS.index(answer["count"])
    found = [
        Wrong("stale-version", stale, "amended lines"),
        Wrong("swapped-entity", {**answer, "rows": other}, "everything"),
        Wrong("headings in English", {**answer, "headings": ENGLISH}, "headings"),
        Wrong("a word that was to be avoided", {**answer, "more": [f"We {ask['avoid'][0]} that."]}, "words to avoid"),
        Wrong("another order", {**answer, "rows": rows[::-1]}, "order of the lines"),
        Wrong("a count in digits", {**answer, "count": str(number)}, "no digits"),
        Wrong("a count that is off", {**answer, "count": NUMBER_WORDS[number + 1]}, "count in words"),
        Wrong("a sentence too many", {**answer, "more": ["The rest follows."]}, "sentences"),
        Wrong("another form", {**answer, "form": (ask["form"] + 1) % len(FORMS)}, "form of the lines"),
        Wrong("no acrostic", {**answer, "initials": answer["initials"][::-1] + "A"}, "first letters"),
    ]
    drafted = _answer(ask, _ordered([_row(one, "draft") for one in chosen], ask["order"]))
    if drafted != answer:
        found.append(Wrong("T1:unsigned amendment", drafted, "everything", "T1"))
    return tuple(one for one in found if one.answer != answer)


def _forms(ask: Mapping[str, Any], answer: Answer) -> dict[str, dict[str, Any]]:
    """Constraint by name, as rules of the check."""
    first, middle, last = ask["headings"]
    unit = SUBJECTS[ask["kind"]][1]
    lines = [row["contract"] for row in answer["rows"]]
    return {
        "headings": {"rule": "headings", "headings": ask["headings"]},
        "one paragraph": {"rule": "paragraphs", "section": first, "count": 1},
        "sentences": {"rule": "sentences", "section": first, "count": ask["sentences"]},
        "length": {"rule": "words", "section": first, "least": 30, "most": 120},
        "opening": {"rule": "starts", "section": first, "text": ask["opening"]},
        "no digits": {"rule": "lacks", "section": first, "characters": "0123456789"},
        "count in words": {"rule": "number word", "section": first, "word": answer["count"]},
        "form of the lines": {"rule": "form", "section": middle,
                              "pattern": FORMS[ask["form"]][1].format(unit=unit)},
        "order of the lines": {"rule": "order", "section": middle, "texts": lines},
        "first letters": {"rule": "initials", "section": last, "letters": ask["initials"]},
        "short steps": {"rule": "words of each paragraph", "section": last, "least": 4, "most": 20},
        "closing": {"rule": "ends", "section": last, "text": ask["closing"]},
        "named once": {"rule": "occurs", "text": ask["owner"], "count": 1},
        "company": {"rule": "occurs", "text": ask["short"], "count": ask["mentions"]},
        "words to avoid": {"rule": "lacks", "texts": ask["avoid"], "characters": "!?;"},
    }  # fmt: skip


def _checks(ask: Mapping[str, Any], answer: Answer, changed: set[str]) -> tuple[Check, ...]:
    forms = _forms(ask, answer)
    middle, unit = ask["headings"][1], SUBJECTS[ask["kind"]][1]
    lines = {row["contract"]: FORMS[ask["form"]][0].format(**row, unit=unit) for row in answer["rows"]}
    said = [{"rule": "line", "section": middle, "line": line} for line in lines.values()]
    hard = [{"rule": "line", "section": middle, "line": line} for no, line in lines.items() if no in changed]
    each = 0.18 / len(forms)
    return (
        Check("briefing", "present", {"files": [FILE]}, kind="gate", no_op="pass"),
        Check("everything", "rules", {"file": FILE, "rules": [*forms.values(), *said]}, weight=0.5, trap_ids=("T1",)),
        Check("amended lines", "rules", {"file": FILE, "rules": hard}, weight=0.22, trap_ids=("T1",)),
        Check("lines", "rules", {"file": FILE, "rules": said, "credit": "share"}, weight=0.1, stage="intermediate"),
        *(Check(name, "rules", {"file": FILE, "rules": [rule]}, weight=each, stage="intermediate")
          for name, rule in forms.items()),
    )  # fmt: skip


def _instruction(office: Office, ask: Mapping[str, Any], rng: random.Random) -> str:
    opener = rng.choice((
        f"The board of {office.setting.company} reads one page, and reads it to the letter.",
        f"Write a briefing for the general counsel of {office.setting.company}, who has rules for such papers.",
        f"{office.setting.company} has a house style, and a paper that breaks it is sent back.",
    ))  # fmt: skip
    subject, unit = SUBJECTS[ask["kind"]]
    first, middle, last = ask["headings"]
    form = re.sub(r"\{(\w+)\}", lambda m: {"contract": "K000", "party": "NAME", "value": "00", "unit": unit}[m[1]],
                  FORMS[ask["form"]][0])  # fmt: skip
    return f"""{opener}

It is about the {subject} in these contracts (folder legal/contracts), as in force on {office.today}; amendments
that both sides have signed count, drafts do not: {", ".join(ask["contracts"])}.

Save `artifacts/{FILE}`, a Word document. All of this must hold:

- It has three headings in {ask["language"]}, and nothing stands before the first: {first}, {middle}, {last}.
- Under {first} there is one paragraph of exactly {ask["sentences"]} sentences and 30 to 120 words. It begins with
  "{ask["opening"]}", and it has no digit.
- It says in words (such as twelve) how many of the contracts provide for more than {ask["threshold"]} {unit}, and
  has no other number in words.
- Under {middle} there is one paragraph per contract, in exactly this form and nothing else: `{form}`, with
  the contract's number, the other party's full name as the contract has it, and the figure.
- These paragraphs are ordered {ORDERS[ask["order"]]}.
- Under {last} there are {len(ask["initials"])} paragraphs whose first letters spell {ask["initials"]}. Each has 4 to
  20 words, and the last one ends with "{ask["closing"]}"
- {ask["owner"]} is named exactly once, and {ask["short"]} exactly {ask["mentions"]} times, in the whole document.
- Nowhere does it say {", ".join(ask["avoid"])}, and there is no exclamation mark, question mark or semicolon.
"""
