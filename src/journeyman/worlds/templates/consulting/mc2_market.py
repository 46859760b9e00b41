"""MC2: the size of a market from three studies that disagree, on three slides, by a rule of precedence.

What makes it hard: the rule stands in a mail, one study counts in thousands where the others count in millions, and
nobody may average.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from journeyman.worlds.curriculum import Knobs
from journeyman.worlds.decks import Slide, pptx_bytes, save_deck, slide
from journeyman.worlds.template import Answer, Bound, Files, Lost, Solving, ToolCall, Unbindable, Wrong
from journeyman.worlds.templates import reading
from journeyman.worlds.verify import Check

if TYPE_CHECKING:
    from journeyman.worlds.office import Office

FILE = "market.pptx"
TITLES = ("Market size", "What the sources say", "Which source counts")
SCALES = {"thousand": 1_000, "million": 1_000_000}

Studies = dict[str, dict[str, float]]
"""Source, in the order of precedence -> year -> whole units of currency."""


@dataclass(frozen=True)
class MC2:
    """See the module."""

    id: str = "MC2"
    domain: str = "consulting"
    title: str = "market size by a rule of precedence, on three slides"
    traps: tuple[str, ...] = ("T4", "T12")

    def bind(self, office: Office, rng: random.Random, knobs: Knobs) -> Bound:
        """See ``Template.bind``."""
        rows = office.truth.rows(
            "SELECT source, rank, year, amount, scale FROM market_estimate WHERE valid_to IS NULL ORDER BY rank, year"
        )
        studies: Studies = {}
        for row in rows:
            studies.setdefault(row["source"], {})[str(row["year"])] = float(row["amount"])
        years = sorted({str(row["year"]) for row in rows})
        if len(studies) < 3 or len(years) < 3:
            raise Unbindable("fewer than three studies or years")
        ask: dict[str, Any] = {
            "years": years if rng.random() < 0.5 else years[rng.randint(0, 1) :][:2],
            "unit": rng.choice(tuple(SCALES)), "file": FILE,
        }  # fmt: skip
        answer = triangulated(studies, ask)
        wrong = _wrong(studies, ask, answer, office)
        blind = triangulated(dict(list(_misread(studies, office).items())[1:]), ask)
        last = list(studies)[-1]
        return Bound(
            self.id, self.domain, office.id, _instruction(office, ask, rng), ask, answer, _checks(ask, answer), (FILE,),
            wrong, trap_blind=blind, single=triangulated({last: studies[last]}, ask),
            facts=("market:precedence", *(f"market:{rank}:{year}" for rank in (1, 2, 3) for year in ask["years"])),
            reads=tuple(one.path for one in office.of_kind("market_study")),
            traps=tuple(sorted({one.trap for one in wrong if one.trap})), knobs=knobs,
            notes={"years": len(ask["years"]), "unit": ask["unit"]},
        )  # fmt: skip

    def write(self, bound: Bound, answer: Answer, world: Files, form: str = "plain") -> dict[str, bytes]:
        """See ``Template.write``."""
        return {FILE: pptx_bytes(slides(bound.ask, answer))}

    def solve(self, ask: Mapping[str, Any]) -> Solving:
        """See ``Template.solve``."""
        listed = yield ToolCall("mail_search_mail", {"subject": "Market size", "limit": 20})
        mail = re.search(r'"mail_id": "([^"]+)"', listed)
        if mail is None:
            raise Lost("no mail about the size of the market")
        text = " ".join((yield ToolCall("mail_read_mail", {"mail_id": mail[1]})).replace("\\n", " ").split())
        order = re.search(r"precedence is: first (.+?), then (.+?), then (.+?)\. A lower", text)
        if order is None:
            raise Lost("the mail names no order")
        found: Studies = {name: {} for name in order.groups()}
        for path in (yield from reading.list_files("*market*study*.pdf", "market")):
            page = yield from reading.document_text(path)
            source = next((name for name in found if name in " ".join(page.split())), None)
            scale = re.search(r"Market size, [A-Z]{3} (thousand|million)", page)
            if source is None or scale is None:
                raise Lost(f"{path} names no source, or no scale")
            for year, amount in re.findall(r'\["(\d{4})", "([^"]+)"\]', page):
                found[source][year] = float(reading.whole_number(amount)) * SCALES[scale[1]]
        yield from save_deck(FILE, slides(ask, triangulated(found, ask)))


def triangulated(studies: Mapping[str, Mapping[str, float]], ask: Mapping[str, Any]) -> Answer:
    """What the slides show: for each year the first source that covers it; never a mean."""
    scale, years = SCALES[ask["unit"]], ask["years"]
    size = [
        {"year": year, "amount": next((s[year] / scale for s in studies.values() if year in s), 0.0)} for year in years
    ]
    sources = {name: [found.get(year, 0.0) / scale for year in years] for name, found in studies.items()}
    ends = [amounts[-1] for amounts in sources.values()]
    return {"size": size, "sources": sources, "first": next(iter(studies)), "spread": max(ends) - min(ends)}


def _misread(studies: Studies, office: Office) -> Studies:
    """Scales of headers not read: the study in thousands a thousand times too small or too large."""
    planted = office.trap("T4", "market:")
    if planted is None:
        return {name: {year: amount * 1000 for year, amount in found.items()} for name, found in studies.items()}
    rank = int(planted.site.rpartition(":")[2])
    return {
        name: {year: amount * (1000 if number == rank else 1) for year, amount in found.items()}
        for number, (name, found) in enumerate(studies.items(), start=1)
    }


def _wrong(studies: Studies, ask: Mapping[str, Any], answer: Answer, office: Office) -> tuple[Wrong, ...]:
    names = list(studies)
    second = {name: studies[name] for name in (names[1], names[0], names[2])}
    mean = [
        {**row, "amount": sum(amounts[i] for amounts in answer["sources"].values()) / len(names)}
        for i, row in enumerate(answer["size"])
    ]
    rotated = {name: studies[names[i - 1]] for i, name in enumerate(names)}
    shifted = [{**row, "amount": answer["size"][i - 1]["amount"]} for i, row in enumerate(answer["size"])]
    larger = [{**row, "amount": max(amounts[i] for amounts in answer["sources"].values())}
              for i, row in enumerate(answer["size"])]  # fmt: skip
    found = [
        Wrong("T12:second source", triangulated(second, ask), "market size",
              "T12" if office.trap("T12", "market:") else ""),
        Wrong("mean of sources", {**answer, "size": mean}, "market size"),
        Wrong("swapped-entity", triangulated(rotated, ask), "market size"),
        Wrong("stale-version", {**answer, "size": shifted}, "market size"),
        Wrong("the largest source", {**answer, "size": larger}, "market size"),
    ]  # fmt: skip
    if office.trap("T4", "market:") is not None:
        found.append(Wrong("T4:scale not read", triangulated(_misread(studies, office), ask), "which source", "T4"))
    return tuple(one for one in found if one.fails == "which source" or one.answer["size"] != answer["size"])


def _checks(ask: Mapping[str, Any], answer: Answer) -> tuple[Check, ...]:
    tol = {"rel": 1e-4, "abs": 0.01}
    years = list(ask["years"])
    return (
        Check("files", "present", {"files": [FILE]}, kind="gate", no_op="pass"),
        Check("titles", "deck.titles", {"file": FILE, "titles": list(TITLES)}, kind="gate", no_op="pass"),
        Check("market size", "deck.series", {
            "file": FILE, "title": TITLES[0], "categories": years, "tol": tol,
            "series": [{"values": [row["amount"] for row in answer["size"]]}],
        }, weight=0.5, trap_ids=("T4", "T12")),
        Check("sources", "deck.series", {
            "file": FILE, "title": TITLES[1], "categories": years, "tol": tol,
            "series": [{"name": name, "values": amounts} for name, amounts in answer["sources"].items()],
        }, weight=0.4, trap_ids=("T4",)),
        Check("which source", "deck.says", {
            "file": FILE, "title": TITLES[2], "facts": [answer["first"], answer["spread"]],
            "tol": {"rel": 1e-4, "abs": 0.6},
        }, weight=0.1, stage="intermediate"),
        Check("size of the deck", "doc.length", {"file": FILE, "slides": [3, 3]}, kind="gate", no_op="pass"),
    )  # fmt: skip


def slides(ask: Mapping[str, Any], answer: Answer) -> list[Slide]:
    """Three slides."""
    years = [str(one.get("year")) for one in answer["size"]]
    size = slide(TITLES[0], [f"In {ask['unit']}"], years, Market=[one.get("amount") for one in answer["size"]])
    shown = slide(TITLES[1], [f"In {ask['unit']}"], list(ask["years"]), **answer["sources"])
    spread = answer["spread"]
    lines = [f"First in the order of precedence: {answer['first']}", f"Spread in the last year: {spread}"]
    return [size, shown, slide(TITLES[2], lines)]


def _instruction(office: Office, ask: Mapping[str, Any], rng: random.Random) -> str:
    market, currency = office.setting.trade["market"], office.setting.currency
    opener = rng.choice((
        f"For the board of {office.setting.company} we need the size of the market for {market} on three slides.",
        f"How large is the market for {market}? {office.setting.company} has three studies and wants one answer.",
        f"The strategy deck of {office.setting.company} lacks the market for {market}.",
    ))  # fmt: skip
    return f"""{opener}

The studies are in the folder market; a mail says which of them we use. Show these years: {", ".join(ask["years"])};
amounts in {currency} {ask["unit"]}.

Save `artifacts/{FILE}` with three slides titled `{TITLES[0]}`, `{TITLES[1]}` and `{TITLES[2]}`:

- the first has a native chart with one series, the size of the market by year, categories the years
- the second has a native chart with one series for each source, named like the source
- the third names the source that comes first in the order of precedence, and, on a line of its own, states the spread
  in the last of these years: the largest less the smallest of the sources, in the same unit as a plain number
"""
