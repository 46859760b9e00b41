"""IF2: passages copied word for word out of long contracts, each from the place where it counts today.

What makes it hard: a provision may have moved into an amendment, an unsigned amendment lies beside the signed one, and
a passage is one sentence: neither the clause around it nor a paraphrase.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from journeyman.worlds.content import mark, unmarked
from journeyman.worlds.curriculum import Knobs
from journeyman.worlds.drafting import json_bytes
from journeyman.worlds.template import Answer, Bound, Files, Lost, Solving, Unbindable, Wrong
from journeyman.worlds.templates import reading
from journeyman.worlds.templates.instructions.contracts import provision
from journeyman.worlds.verify import Check

if TYPE_CHECKING:
    from journeyman.worlds.office import Office
    from journeyman.worlds.plan import Rendering

FILE = "spans.json"
CLAUSES = {
    "term": ("Term", "the initial term"),
    "renewal_notice": ("Renewal", "how long before its end non-renewal must be notified"),
    "payment_days": ("Invoices and payment", "the time for payment"),
    "liability_cap": ("Limitation of liability", "the amount to which liability is limited"),
    "price_adjustment": ("Price adjustment", "by how much prices may rise"),
    "confidentiality": ("Confidentiality", "for how long secrecy goes on after the end"),
    "warranty": ("Warranty", "the period in which defects are made good"),
    "insurance": ("Insurance", "the amount of cover"),
}
"""Clause -> its heading, and what its sentence states."""

COVENANTS = {
    "leverage": ("Leverage", "the highest leverage that is allowed"),
    "interest_cover": ("Interest cover", "the least interest cover"),
    "liquidity": ("Minimum liquidity", "the least liquidity"),
}
"""Covenant of the facilities agreement -> its heading, and what its sentence states."""

SENTENCE = re.compile(r"(?<=[.;])\s+(?=[A-Z\"“])")
CREDIT = "CA"


@dataclass(frozen=True)
class Item:
    """One passage to be found: which, where it stands now, and where its predecessor stands."""

    contract: str
    party: str
    kind: str
    fact: str
    now: Mapping[str, Any]
    before: Mapping[str, Any] | None = None
    draft: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class IF2:
    """See the module."""

    id: str = "IF2"
    domain: str = "instructions"
    title: str = "exact passages of long contracts, with the place where each counts"
    traps: tuple[str, ...] = ("T1",)

    def bind(self, office: Office, rng: random.Random, knobs: Knobs) -> Bound:
        """See ``Template.bind``."""
        found = _items(office)
        moved, still = [one for one in found if one.before], [one for one in found if not one.before]
        if len(moved) < 2 or len(still) < 12:
            raise Unbindable("too few provisions that were amended")
        rng.shuffle(moved)
        moved.sort(key=lambda one: one.draft is None)
        hard = moved[: 2 + knobs.hops]
        easy = rng.sample(still, 4 + 2 * knobs.fan_out)
        items = [*hard, *easy, *(one for one in _covenants(office) if one not in hard)]
        rng.shuffle(items)
        asked = [{"no": no, "contract": one.contract, "party": one.party, "kind": one.kind}
                 for no, one in enumerate(items, 1)]  # fmt: skip
        ask = {"items": asked, "file": FILE}
        answer = _answer(items, [one.now for one in items])
        stale = _answer(items, [one.before or one.now for one in items])
        wrong = _wrong(items, answer, stale)
        return Bound(
            self.id, self.domain, office.id, _instruction(office, ask, rng), ask, answer, _checks(items), (FILE,),
            wrong, trap_blind=stale, single={"spans": answer["spans"][:1]},
            facts=tuple(dict.fromkeys(one.fact for one in items)),
            reads=tuple(dict.fromkeys(one.now["path"] for one in items)),
            traps=tuple(sorted({one.trap for one in wrong if one.trap})), unordered=("spans",), knobs=knobs,
            notes={"spans": len(items), "moved": sum(one.before is not None for one in items)},
        )  # fmt: skip

    def write(self, bound: Bound, answer: Answer, world: Files, form: str = "plain") -> dict[str, bytes]:
        """See ``Template.write``."""
        return {FILE: json_bytes(answer)}

    def solve(self, ask: Mapping[str, Any]) -> Solving:
        """See ``Template.solve``."""
        spans, credit = [], None
        for item in ask["items"]:
            if item["contract"] == CREDIT:
                if credit is None:
                    credit = yield from _credit()
                found = _covenant_in(credit, item["kind"])
            else:
                found = _sentence(*(yield from provision(item["contract"], CLAUSES[item["kind"]][0])))
            spans.append({"no": item["no"], "file": found[0], "place": found[1], "text": found[2]})
        yield from reading.deliver_text(FILE, json_bytes({"spans": spans}))


def _items(office: Office) -> list[Item]:
    """Provisions of contracts whose sentence is told apart by its value; those with a declined change are left out."""
    tracked = {one.site for one in office.planted if one.trap == "T17"}
    contracts = office.truth.rows("SELECT id, counterparty FROM contract WHERE signed = 1 ORDER BY id")
    rows = office.truth.rows("SELECT * FROM clause WHERE valid_from <= :t ORDER BY id", t=office.today)
    found = []
    for contract in contracts:
        for kind in CLAUSES:
            versions = [row for row in rows if (row["contract_id"], row["type"]) == (contract["id"], kind)]
            replaced = {row["supersedes"] for row in versions}
            last = [row for row in versions if row["id"] not in replaced]
            if len(last) != 1 or f"clause:{contract['id']}:{kind}" in tracked:
                continue
            fact = f"clause:{last[0]['id']}"
            now, before = _passage(office, fact), None
            if last[0]["supersedes"]:
                before = _passage(office, f"clause:{last[0]['supersedes']}")
                if before is None:
                    continue
            if now is not None:
                found.append(Item(contract["id"], contract["counterparty"], kind, fact, now, before,
                                  _passage(office, f"{fact}:draft")))  # fmt: skip
    return found


def _covenants(office: Office) -> list[Item]:
    lender = office.roles["lender"]["entity_id"]
    found = []
    for kind in COVENANTS:
        fact, later = f"covenant:{kind}", f"covenant:{kind}:amended"
        first = _passage(office, fact, "credit_agreement")
        last = _passage(office, later, "credit_amendment") if later in office.facts else None
        if first is not None and (last is not None or later not in office.facts):
            found.append(Item(CREDIT, lender, kind, later if last else fact, last or first, first if last else None))
    return found


def _passage(office: Office, fact: str, kind: str = "") -> dict[str, Any] | None:
    """The sentence that states a fact, and where; None where it is not one sentence of one document."""
    kinds = (kind,) if kind else ("contract", "amendment", "amendment_draft")
    places = [one for one in office.where(fact) if one.path in office.documents]
    places = [one for one in places if office.documents[one.path].kind in kinds]
    if len({one.path for one in places}) != 1:
        return None
    place = places[0]
    sentences = [
        unmarked(sentence)[0].strip()
        for block in getattr(office.documents[place.path].content, "blocks", ())
        for sentence in SENTENCE.split(getattr(block, "text", ""))
        if mark(fact, place.surface) in sentence
    ]
    if len(sentences) != 1 or not re.search(r"\d", sentences[0]):
        return None
    return {"path": place.path, "text": sentences[0], "places": _places(places)}


def _places(renderings: Sequence[Rendering]) -> list[dict[str, str]]:
    return [{"path": one.path, "locator": one.locator} for one in renderings]


def _answer(items: Sequence[Item], passages: Sequence[Mapping[str, Any]]) -> Answer:
    return {"spans": [
        {"no": no, "file": one["path"], "place": one["places"][0]["locator"], "text": one["text"]}
        for no, one in enumerate(passages, 1)
    ]}  # fmt: skip


def _wrong(items: Sequence[Item], answer: Answer, stale: Answer) -> tuple[Wrong, ...]:
    spans = answer["spans"]
    other = {"spans": [{**one, **{key: spans[i - 1][key] for key in ("file", "place", "text")}}
                       for i, one in enumerate(spans)]}  # fmt: skip
    around = {"spans": [{**one, "text": f"{one['text']} All other provisions of the agreement remain as they are."}
                        for one in spans]}  # fmt: skip
    loose = {"spans": [{**one, "text": re.sub(r"\d+", "a certain number of", one["text"])} for one in spans]}
    brief = {"spans": [{**one, "text": " ".join(one["text"].split()[-5:])} for one in spans]}
    placeless = {"spans": [{**one, "place": ""} for one in spans]}
    found = [
        Wrong("stale-version", stale, "hard spans"),
        Wrong("swapped-entity", other, "every span"),
        Wrong("more than the passage", around, "every span"),
        Wrong("a paraphrase", loose, "every span"),
        Wrong("the figure alone", brief, "every span"),
        Wrong("no place", placeless, "every span"),
    ]
    drafted = _answer(items, [one.draft or one.now for one in items])
    if drafted != answer:
        found.append(Wrong("T1:unsigned amendment", drafted, "hard spans", "T1"))
    return tuple(found)


def _checks(items: Sequence[Item]) -> tuple[Check, ...]:
    wanted = [{"no": no, "text": one.now["text"], "places": one.now["places"]} for no, one in enumerate(items, 1)]
    hard = [span for span, one in zip(wanted, items, strict=True) if one.before]
    base = {"file": FILE, "path": "spans"}
    return (
        Check("shape", "json.shape", {"file": FILE, "keys": {"spans": "list"}}, kind="gate"),
        Check("every span", "spans", {**base, "spans": wanted}, weight=0.6, trap_ids=("T1",)),
        Check("hard spans", "spans", {**base, "spans": hard, "extra": "ignored"}, weight=0.25, trap_ids=("T1",)),
        Check("most spans", "spans", {**base, "spans": wanted, "credit": "share"}, weight=0.1, required=False,
              stage="intermediate"),
        Check("sources", "cites", {"file": FILE, "path": "spans", "level": "file", "credit": "share", "spare": 0,
                                   "hops": [span["places"] for span in wanted]}, weight=0.05, stage="intermediate"),
    )  # fmt: skip


def _sentence(path: str, raw: str, text: str) -> tuple[str, str, str]:
    """The sentence of a clause that has a figure in it."""
    sentences = [one.strip() for one in SENTENCE.split(" ".join(text.split())) if re.search(r"\d", one)]
    if not sentences:
        raise Lost(f"{path}: no sentence with a figure in {text[:60]!r}")
    return path, _place(raw, sentences[0]), sentences[0]


def _place(raw: str, sentence: str) -> str:
    words = sentence.split()
    for length in range(len(words), 3, -1):
        if place := reading.place_of(raw, " ".join(words[:length])):
            return place
    raise Lost(f"no place of {sentence[:60]!r}")


def _credit() -> reading.Reading:
    """(path, text with addresses) of the facilities agreement and of its signed amendments, the last one first."""
    found = []
    for path in (yield from reading.list_files("*facilities*agreement*", "legal/finance")):
        raw = yield from reading.addressed_text(path)
        if reading.is_signed(" ".join(reading.without_addresses(raw).split())):
            found.append((path, raw))
    return sorted(found, key=lambda one: "amendment" not in one[0].lower())


def _covenant_in(texts: Sequence[tuple[str, str]], kind: str) -> tuple[str, str, str]:
    title = COVENANTS[kind][0]
    for path, raw in texts:
        flat = " ".join(reading.without_addresses(raw).split())
        amended = re.search(rf"(In clause \d+ \({title}\) the ratio is replaced.*?\d\.)(?= 2\. Fee)", flat, re.I)
        if amended:
            return path, _place(raw, amended[1]), amended[1]
        clause = reading.section(reading.without_addresses(raw), title)
        if clause:
            return _sentence(path, raw, clause)
    raise Lost(f"no covenant on {title}")


def _instruction(office: Office, ask: Mapping[str, Any], rng: random.Random) -> str:
    opener = rng.choice((
        f"Counsel to {office.setting.company} checks an overview of its contracts against their words.",
        f"A memorandum about {office.setting.company} will quote its contracts, and every quotation must be exact.",
        f"The auditors of {office.setting.company} want to see the words themselves, not a summary.",
    ))  # fmt: skip
    lines = "\n".join(_line(one) for one in ask["items"])
    return f"""{opener}

For each of these provisions, copy the one sentence that states what is said here, as it is in force on {office.today}.
Where an amendment that both sides have signed replaces the provision, the sentence of the amendment counts and no
other; drafts change nothing. Contracts lie in legal/contracts, the facilities agreement in legal/finance.

{lines}

Save `artifacts/{FILE}`, a JSON object with `spans`: a list with one object per provision, of `no`, `file` (its path),
`place` (a page such as `p2` in a PDF, the paragraph's address, `para:...`, in a Word file) and `text` (the whole
sentence, word for word, without the number and heading of its clause and without any other sentence).
"""


def _line(item: Mapping[str, Any]) -> str:
    if item["contract"] == CREDIT:
        title, what = COVENANTS[item["kind"]]
        return f"{item['no']}. Senior facilities agreement with {item['party']}, {title}: {what}"
    title, what = CLAUSES[item["kind"]]
    return f"{item['no']}. {item['contract']} with {item['party']}, {title}: {what}"
