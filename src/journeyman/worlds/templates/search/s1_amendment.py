"""S1: what changed in a contract, over a mail, the amendment it speaks of, and the contract behind it, each cited.

What makes it hard: only the mail says when it was signed, the amendment alone says what replaces what, and the same
party may have several contracts.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from journeyman.worlds.curriculum import Knobs
from journeyman.worlds.drafting import json_bytes
from journeyman.worlds.template import Answer, Bound, Files, Lost, Solving, ToolCall, Unbindable, Wrong
from journeyman.worlds.templates import reading
from journeyman.worlds.templates.law.cl1_clauses import TITLES, clause_value
from journeyman.worlds.verify import Check

if TYPE_CHECKING:
    from journeyman.worlds.office import Office

FILE = "result.json"
KEYS = ("contract", "clause", "before", "after", "effective")


@dataclass(frozen=True)
class S1:
    """See the module."""

    id: str = "S1"
    domain: str = "search"
    title: str = "what an amendment changed, over mail, amendment and contract, with citations"
    traps: tuple[str, ...] = ("T1", "T18")

    def bind(self, office: Office, rng: random.Random, knobs: Knobs) -> Bound:
        """See ``Template.bind``."""
        cases = [case for case in _cases(office) if case["clause"] in TITLES]
        if len(cases) < 3:
            raise Unbindable("fewer than three amendments that a mail announces")
        case = cases[rng.randrange(len(cases))]
        month = case["effective"][:7]
        if sum(one["party"] == case["party"] and one["effective"][:7] == month for one in cases) > 1:
            raise Unbindable("two amendments with one party in one month")
        ask = {"party": case["party"], "month": month, "file": FILE}
        answer = _answer(case)
        others = [one for one in cases if one["id"] != case["id"]]
        like = next((one for one in others if one["clause"] == case["clause"]), others[0])
        wrong = (
            Wrong("stale-version", {**answer, "after": answer["before"]}, "change"),
            Wrong("swapped-entity", {**_answer(like), "citations": answer["citations"]}, "change"),
            Wrong("before for after", {**answer, "before": answer["after"], "after": answer["before"]}, "change"),
            Wrong("another clause", {**answer, "clause": _other_title(case["clause"])}, "change"),
            Wrong("another contract", {**answer, "contract": like["contract"]}, "change"),
        )
        blind = {**answer, "after": answer["before"], "effective": case["signed"], "citations": answer["citations"][2:]}
        return Bound(
            self.id, self.domain, office.id, _instruction(office, ask, rng), ask, answer, _checks(case), (FILE,),
            tuple(one for one in wrong if any(one.answer[key] != answer[key] for key in KEYS)), trap_blind=blind,
            single={**answer, "before": None, "after": answer["before"], "effective": None, "citations": []},
            facts=(f"clause:{case['old']}", f"clause:{case['new']}"), reads=(case["path"], case["contract_path"]),
            traps=(), unordered=("citations",), knobs=knobs, notes={"clause": case["clause"]},
        )  # fmt: skip

    def write(self, bound: Bound, answer: Answer, world: Files, form: str = "plain") -> dict[str, bytes]:
        """See ``Template.write``."""
        return {FILE: json_bytes(answer)}

    def solve(self, ask: Mapping[str, Any]) -> Solving:
        """See ``Template.solve``."""
        mail = yield from _mail_of(ask)
        number = re.search(r"\b(K\d{3})\b", mail["subject"])
        if number is None:
            raise Lost("the mail names no contract")
        amendments = yield from reading.list_files(f"*{number[1]}[!0-9]*amendment*", "legal")
        for path in amendments:
            raw = yield from reading.addressed_text(path)
            flat = " ".join(reading.without_addresses(raw).split())
            found = re.search(r"Clause \d+ \(([^)]+)\)(.*?following text:)(.*?)(?= \d+\. Continuation|$)", flat, re.I)
            effective = re.search(r"takes effect on (\d+ \w+ \d{4}|\w+ \d+, \d{4})", flat)
            if found is None or effective is None or not reading.is_signed(flat):
                continue
            title = next((t for t in TITLES.values() if t.lower() == found[1].lower()), found[1])
            kind = next(key for key, value in TITLES.items() if value == title)
            contract = (yield from reading.list_files(f"*{number[1]}[!0-9]*", "legal/contracts"))[0]
            original = yield from reading.addressed_text(contract)
            old = reading.section(reading.without_addresses(original), title)
            cited = [
                {"file": "mail", "place": mail["mail_id"]},
                {"file": path, "place": reading.place_of(raw, found[3].strip()[:25]) or "p1"},
                {"file": contract, "place": reading.place_of(original, old[:40])},
            ]
            answer = {
                "contract": number[1], "clause": title, "before": clause_value(kind, old),
                "after": clause_value(kind, found[3]), "effective": reading.day(effective[1]), "citations": cited,
            }  # fmt: skip
            yield from reading.deliver_text(FILE, json_bytes(answer))
            return
        raise Lost(f"no amendment of {number[1]}")


def _cases(office: Office) -> list[dict[str, Any]]:
    """Amendments that are in force, with both versions of their clause and the mail that announced them."""
    found = []
    for row in office.truth.rows("SELECT * FROM amendment WHERE signed = 1 AND date <= :t ORDER BY id", t=office.today):
        mails = [k for k, e in office.source_of.items() if e == row["source_event_id"] and "@" in k and "/" not in k]
        new = office.truth.rows("SELECT * FROM clause WHERE amendment_id = :a", a=row["id"])
        contract = office.truth.rows("SELECT * FROM contract WHERE id = :c", c=row["contract_id"])
        if len(new) != 1 or len(contract) != 1 or len(mails) != 1 or not new[0]["supersedes"]:
            continue
        old = office.truth.one("SELECT * FROM clause WHERE id = :i", i=new[0]["supersedes"])
        here, there = (office.where(f"clause:{one}") for one in (new[0]["id"], old["id"]))
        here = tuple(one for one in here if "amendment" in one.path.lower())
        there = tuple(one for one in there if "contracts/" in one.path)
        if not here or not there:
            continue
        found.append({
            "id": row["id"], "contract": row["contract_id"], "party": contract[0]["counterparty"],
            "signed": contract[0]["date"], "clause": new[0]["type"], "no": new[0]["no"],
            "before": json.loads(old["params_json"])["value"], "after": json.loads(new[0]["params_json"])["value"],
            "effective": new[0]["valid_from"], "old": old["id"], "new": new[0]["id"], "mail": mails[0],
            "path": here[0].path, "contract_path": there[0].path,
            "hops": [[{"path": "mail", "locator": mails[0]}], _places(here), _places(there)],
        })  # fmt: skip
    return found


def _places(renderings: Any) -> list[dict[str, str]]:
    return [{"path": one.path, "locator": one.locator} for one in renderings]


def _answer(case: Mapping[str, Any]) -> Answer:
    cited = [{"file": hop[0]["path"], "place": hop[0]["locator"]} for hop in case["hops"]]
    return {**{key: case[key] for key in KEYS}, "clause": TITLES[case["clause"]], "citations": cited}


def _other_title(kind: str) -> str:
    return next(title for other, title in TITLES.items() if other != kind)


def _checks(case: Mapping[str, Any]) -> tuple[Check, ...]:
    title = TITLES[case["clause"]]
    clause = {"one_of": [title, f"{case['no']}", f"Clause {case['no']}", f"{title} (clause {case['no']})"]}
    base = {"file": FILE, "tol": {"abs": 0.001}}
    return (
        Check("shape", "json.shape", {"file": FILE, "keys": {**dict.fromkeys(KEYS, "any"), "citations": "list"}},
              kind="gate"),
        Check("change", "json.fields", {**base, "fields": {
            "contract": case["contract"], "clause": clause, "after": case["after"], "before": case["before"],
        }}, weight=0.6, trap_ids=("T1", "T18")),
        Check("date", "json.fields", {**base, "fields": {"effective": {"date": case["effective"]}}}, weight=0.15),
        Check("citations", "cites", {"file": FILE, "path": "citations", "hops": case["hops"], "spare": 2}, weight=0.25,
              stage="intermediate"),
    )  # fmt: skip


def _mail_of(ask: Mapping[str, Any]) -> reading.Reading:
    """The mail of the month whose subject speaks of an amendment with the party."""
    year, month = map(int, ask["month"].split("-"))
    after = f"{year + month // 12}-{month % 12 + 1:02d}-10"
    arguments = {"subject": "amendment", "after_date": f"{ask['month']}-01", "before_date": after, "limit": 100}
    text = yield ToolCall("mail_search_mail", arguments)
    for line in text.splitlines():
        if line.startswith("{"):
            mail = json.loads(line)
            if f" {ask['party']}:" in f" {mail['subject']}":
                full = yield ToolCall("mail_read_mail", {"mail_id": mail["mail_id"]})
                assert full
                return mail
    raise Lost(f"no mail about an amendment with {ask['party']}")


def _instruction(office: Office, ask: Mapping[str, Any], rng: random.Random) -> str:
    opener = rng.choice((
        f"Counsel to {office.setting.company} is asked what was agreed with {ask['party']}.",
        f"{ask['party']} refers to an amendment, and nobody at {office.setting.company} remembers what it changed.",
        f"Before we answer {ask['party']}, find out what its amendment changed.",
    ))  # fmt: skip
    return f"""{opener}

A mail of {ask["month"]} told colleagues that an amendment with {ask["party"]} had been signed. Find it, the amendment
and the contract, and save `artifacts/{FILE}`, a JSON object with

- `contract`: the contract's number, such as K000
- `clause`: heading of the clause that was replaced, as in the contract
- `before`, `after`: what it provided before and provides now: the bare number (days, months, per cent, amounts in whole
  units; 0 where a right is excluded), or for change of control one of `consent`, `notice`, `termination`, `none`
- `effective`: date from which the new text counts, ISO 8601
- `citations`: a list of objects with `file` and `place`, one for each of the three sources. A mail is file `mail` and
  its mail_id as place; otherwise the path, and a page (`p2`) or the paragraph's address (`para:...`).
"""
