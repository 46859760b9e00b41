"""CL4: an audit of an agreement: terms defined and not used, used and not defined, references that lead nowhere.

What makes it hard: every clause has to be read for all three, a term may be used in another's definition or in the
singular only, and most terms are in order.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from journeyman.worlds.curriculum import Knobs
from journeyman.worlds.drafting import json_bytes
from journeyman.worlds.template import Answer, Bound, Files, Lost, Solving, Unbindable, Wrong
from journeyman.worlds.templates import reading
from journeyman.worlds.verify import Check

if TYPE_CHECKING:
    from journeyman.worlds.office import Office

FILE = "audit.json"
UNUSED, DANGLING, UNDEFINED = "unused term", "dangling reference", "undefined term"
DEFINED = re.compile(r'["\u201c]([^"\u201d]+)["\u201d] means ([^"\u201c]+)')
CAPITALISED = re.compile(r"\b[A-Z][a-z]+(?:-[a-z]+)?(?: [A-Z][a-z]+)+\b")
REFERENCE = re.compile(r"clause (\d+)")


@dataclass(frozen=True)
class CL4:
    """See the module."""

    id: str = "CL4"
    domain: str = "law"
    title: str = "audit of defined terms and cross-references"
    traps: tuple[str, ...] = ()

    def bind(self, office: Office, rng: random.Random, knobs: Knobs) -> Bound:
        """See ``Template.bind``."""
        rows = office.truth.rows("SELECT * FROM defect WHERE document = 'shareholders agreement' ORDER BY id")
        drafts = office.of_kind("shareholders_agreement")
        if len(rows) < 3 or len(drafts) != 1:
            raise Unbindable("no agreement with enough defects")
        found = [{"kind": row["kind"], "term": _short(row["term"]), "clause": int(row["place"])} for row in rows]
        answer = {"defects": found}
        ask = {"file": FILE}
        return Bound(
            self.id, self.domain, office.id, _instruction(office, rng), ask, answer, _checks(found), (FILE,),
            _wrong(found), trap_blind={"defects": [row for row in found if row["kind"] != UNUSED][:1]},
            single={"defects": []}, reads=(drafts[0].path,), unordered=("defects",), knobs=knobs,
            notes={"defects": len(found), "dangling": next(r["clause"] for r in found if r["kind"] == DANGLING)},
        )  # fmt: skip

    def write(self, bound: Bound, answer: Answer, world: Files, form: str = "plain") -> dict[str, bytes]:
        """See ``Template.write``."""
        return {FILE: json_bytes(answer)}

    def solve(self, ask: Mapping[str, Any]) -> Solving:
        """See ``Template.solve``."""
        paths = yield from reading.list_files("*shareholders*agreement*.docx", "legal")
        if not paths:
            raise Lost("no agreement")
        text = yield from reading.document_text(paths[0])
        yield from reading.deliver_text(FILE, json_bytes({"defects": audit(text)}))


def audit(text: str) -> list[dict[str, Any]]:
    """The defects of an agreement whose first clause defines terms and whose clauses are numbered ``2.1``."""
    terms = dict(DEFINED.findall(text))
    bodies: dict[int, str] = {}
    for line in text.splitlines():
        if match := re.match(r"(\d+)\.\d+ (.*)", line.strip()):
            bodies[int(match[1])] = bodies.get(int(match[1]), "") + match[2] + "\n"
    if not terms or not bodies:
        raise Lost("no definitions or no clauses")
    found: list[dict[str, Any]] = []
    for term in sorted(terms):
        elsewhere = [*bodies.values(), *(meaning for other, meaning in terms.items() if other != term)]
        if not any(term.rstrip("s") in one for one in elsewhere):
            found.append({"kind": UNUSED, "term": term, "clause": 1})
    for clause, body in sorted(bodies.items()):
        for number in sorted({int(one) for one in REFERENCE.findall(body)} - {1, *bodies}):
            found.append({"kind": DANGLING, "term": str(number), "clause": clause})
        for phrase in sorted(set(CAPITALISED.findall(body))):
            if phrase != "This Agreement" and not any(term.rstrip("s") in phrase for term in terms):
                found.append({"kind": UNDEFINED, "term": phrase.removeprefix("The "), "clause": clause})
    return found


def _short(term: str) -> str:
    return term.removeprefix("clause ")


def _wrong(found: Sequence[Mapping[str, Any]]) -> tuple[Wrong, ...]:
    rows = [dict(row) for row in found]
    plain = {"kind": UNUSED, "term": "Fair Price", "clause": 1}
    called = {UNUSED: UNDEFINED, UNDEFINED: UNUSED, DANGLING: DANGLING}
    tried = {
        "swapped-entity": [{**row, "kind": called[row["kind"]]} for row in rows],
        "stale-version": [row for row in rows if row["kind"] == DANGLING],
        "a sound term reported": [*rows, plain],
        "clauses off by one": [{**row, "clause": row["clause"] + 1} for row in rows],
        "one left out": rows[:-1],
        "nothing found": [],
    }
    return tuple(Wrong(name, {"defects": given}, "defects") for name, given in tried.items())


def _checks(found: Sequence[Mapping[str, Any]]) -> tuple[Check, ...]:
    expected = []
    for row in found:
        short = str(row["term"])
        words = {"one_of": [short, f"clause {short}"]} if row["kind"] == DANGLING else {"one_of": [short]}
        where = str(row["clause"])
        expected.append([row["kind"], words, {"one_of": [where, f"{where}.1", f"clause {where}"]}])
    whole = {"file": FILE, "path": "defects", "key": ["kind", "term"], "rows": expected,
             "columns": [{"name": "kind"}, {"name": "term"}, {"name": "clause"}]}  # fmt: skip
    per_kind = [{"file": FILE, **whole, "rows": [row for row in expected if row[0] == kind], "extra": "ignored"}
                for kind in (UNUSED, UNDEFINED)]  # fmt: skip
    return (
        Check("opens", "json.shape", {"file": FILE, "keys": {"defects": "list"}}, kind="gate"),
        Check("defects", "table", whole, weight=0.7),
        *(Check(f"{kind}s", "table", params, weight=0.15, stage="intermediate")
          for kind, params in zip(("unused", "undefined"), per_kind, strict=True) if params["rows"]),
    )  # fmt: skip


def _instruction(office: Office, rng: random.Random) -> str:
    opener = rng.choice((
        f"The draft shareholders' agreement of {office.setting.company} goes to the other side tonight.",
        f"Proofread the terms of the draft shareholders' agreement of {office.setting.company}.",
        f"Outside counsel of {office.setting.company} circulated a draft shareholders' agreement that needs an audit.",
    ))  # fmt: skip
    return f"""{opener}

Read the draft in legal/corporate and find three kinds of defects:

- `unused term`: a term that clause 1 defines and that occurs neither in another definition nor in any later clause;
  singular and plural are one term
- `undefined term`: a capitalised expression of two or more words that is used in a clause as if it were defined, and
  clause 1 does not define it (titles of clauses, and the word Agreement for the document itself, are none)
- `dangling reference`: a reference to a clause that the draft does not have

Save `artifacts/{FILE}`, a JSON object with `defects`: a list of all defects and nothing else, each an object with
`kind` (as above), `term` (the term as written; for a reference the number of the clause it names) and `clause` (number
of the clause in which the defect stands, without a part behind a dot; for an unused term the clause that defines it).
"""
