"""MC8: a memo on the net promoter score of a customer base, weighted, with a stratum that nobody asked.

What makes it hard: the score of all customers is no mean over answers, the method says what becomes of a stratum
without answers, and only answers of a period count.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from journeyman.worlds.curriculum import Knobs
from journeyman.worlds.papers import Block, docx_bytes, heading, paragraph, save_document, table
from journeyman.worlds.template import Answer, Bound, Files, Lost, Solving, Unbindable, Wrong
from journeyman.worlds.templates import reading
from journeyman.worlds.verify import RUBRIC, Check

if TYPE_CHECKING:
    from journeyman.worlds.office import Office

FILE = "memo.docx"
HEADINGS = ("Customer survey", "Result", "Key figures", "Strata without responses")
NONE = "n/a"
POINTS = {"abs": 0.051}

Given = tuple[str, str, int]
"""Stratum, ISO date, score of one answer."""

READABLE = (
    "The memo says in plain words how strata without responses were treated and why, so that a reader who never saw the"
    " survey can judge what the weighted score stands for."
)
"""What only a judge can tell, where one is given."""


@dataclass(frozen=True)
class MC8:
    """See the module."""

    id: str = "MC8"
    domain: str = "consulting"
    title: str = "memo on a weighted survey score with missing strata"
    traps: tuple[str, ...] = ("T11",)

    def bind(self, office: Office, rng: random.Random, knobs: Knobs) -> Bound:
        """See ``Template.bind``."""
        people = {
            row["segment"]: int(row["population"])
            for row in office.truth.rows("SELECT segment, population FROM stratum ORDER BY segment")
        }
        given: list[Given] = [
            (row["segment"], row["date"], int(row["score"]))
            for row in office.truth.rows("SELECT segment, date, score FROM survey_response WHERE valid_to IS NULL")
        ]
        days = sorted(one[1] for one in given)
        since = days[int(len(days) * rng.choice((0.05, 0.1, 0.15, 0.2, 0.25, 0.3)))]
        ask: dict[str, Any] = {"since": since, "file": FILE}
        answer = scores(given, people, ask)
        missing = [row["stratum"] for row in answer["strata"] if not row["responses"]]
        if not missing or since == days[0]:
            raise Unbindable("no stratum without responses, or all responses count")
        plain = _plain(answer, [one for one in given if one[1] >= since])
        wrong = _wrong(given, people, ask, answer, plain, "T11" if office.trap("T11", "survey:") else "")
        known = [{**row, "customers": None} for row in answer["strata"] if row["responses"]]
        return Bound(
            self.id, self.domain, office.id, _instruction(office, ask, rng), ask, answer, _checks(answer), (FILE,),
            wrong,
            trap_blind={**answer, **plain, "strata": [r for r in answer["strata"] if r["responses"]], "missing": {}},
            single={**answer, **plain, "strata": known, "missing": {}},
            facts=tuple(f"stratum:{name}:population" for name in people),
            reads=tuple(d.path for kind in ("survey", "survey_method") for d in office.of_kind(kind)),
            unordered=("strata",), traps=("T11",) if any(one.trap for one in wrong) else (), knobs=knobs,
            notes={"strata": len(people), "missing": len(missing)},
        )  # fmt: skip

    def write(self, bound: Bound, answer: Answer, world: Files, form: str = "plain") -> dict[str, bytes]:
        """See ``Template.write``."""
        return {FILE: docx_bytes(memo(answer))}

    def solve(self, ask: Mapping[str, Any]) -> Solving:
        """See ``Template.solve``."""
        responses = yield from reading.list_files("*survey*responses*.csv")
        methods = yield from reading.list_files("*survey*method*.docx")
        if len(responses) != 1 or len(methods) != 1:
            raise Lost("no responses, or no method")
        method = yield from reading.addressed_text(methods[0])
        rows = re.findall(r'\["([^"]+)", "(\d[^"]*)"\]', method)
        people = {name: reading.whole_number(count) for name, count in rows}
        records = yield from reading.csv_records(responses[0])
        given = [(row["segment"], row["date"][:10], int(row["score"])) for row in records]
        yield save_document(FILE, memo(scores(given, people, ask)))


def scores(given: Iterable[Given], people: Mapping[str, int], ask: Mapping[str, Any]) -> Answer:
    """Scores by stratum and for all, by the method: strata without answers left out, weights scaled up to one."""
    counted: dict[str, list[int]] = {name: [] for name in people}
    for stratum, day, score in given:
        if day >= ask["since"]:
            counted[stratum].append(score)
    rows: list[dict[str, Any]] = [
        {"stratum": name, "customers": people[name], "responses": len(found), "nps": _nps(found)}
        for name, found in sorted(counted.items())
    ]
    known = [row for row in rows if row["responses"]]
    weight = sum(people[row["stratum"]] for row in known) or 1
    total = sum(people.values())
    missing = {row["stratum"]: round(100 * people[row["stratum"]] / total, 1) for row in rows if not row["responses"]}
    result = sum(people[row["stratum"]] * _exact(counted[row["stratum"]]) for row in known) / weight
    return {"strata": rows, "weighted": round(result, 1), "missing": missing}


def _exact(found: Sequence[int]) -> float:
    return 100 * (sum(one >= 9 for one in found) - sum(one <= 6 for one in found)) / len(found)


def _nps(found: Sequence[int]) -> float | str:
    return round(_exact(found), 1) if found else NONE


def _plain(answer: Answer, given: Sequence[Given]) -> dict[str, Any]:
    """The score over all answers, not weighted."""
    return {"weighted": round(_exact([one[2] for one in given]), 1)}


def _wrong(
    given: Sequence[Given], people: Mapping[str, int], ask: Mapping[str, Any], answer: Answer,
    plain: Mapping[str, Any], absent: str,
) -> tuple[Wrong, ...]:  # fmt: skip
    rows = answer["strata"]
    known = [row for row in rows if row["responses"]]
    total = sum(row["customers"] for row in rows)
    nought = round(sum(row["customers"] * row["nps"] for row in known) / total, 1)
    mean = round(sum(row["nps"] for row in known) / len(known), 1)
    swapped = [{**row, "nps": known[i - 1]["nps"]} for i, row in enumerate(known)]
    turned = round(sum(r["customers"] * r["nps"] for r in swapped) / sum(r["customers"] for r in swapped), 1)
    found = [
        Wrong("not weighted", {**answer, **plain}, "weighted score"),
        Wrong("mean of strata", {**answer, "weighted": mean}, "weighted score"),
        Wrong("missing stratum counts nought", {**answer, "weighted": nought}, "weighted score", absent),
        Wrong("swapped-entity", {**answer, "weighted": turned, "strata": [
            *swapped, *(row for row in rows if not row["responses"])
        ]}, "key figures"),
        Wrong("stale-version", scores(given, people, {"since": ""}), "key figures"),
    ]  # fmt: skip
    return tuple(
        one for one in found
        if one.answer != answer and (one.fails != "weighted score" or abs(one.answer["weighted"] - answer["weighted"])
                                     > POINTS["abs"] + 0.05)
    )  # fmt: skip


def memo(answer: Answer) -> list[Block]:
    """The memo in blocks."""
    rows = [[row.get(key) for key in ("stratum", "customers", "responses", "nps")] for row in answer["strata"]]
    left_out = [
        paragraph(f"{name} gave no responses; it holds {share} % of customers and is left out, and the weights of the"
                  " other strata are scaled up to one.")
        for name, share in answer["missing"].items()
    ]  # fmt: skip
    return [
        heading(HEADINGS[0]),
        heading(HEADINGS[1], 2),
        paragraph(f"The weighted net promoter score of the customer base is {answer['weighted']} points."),
        heading(HEADINGS[2], 2),
        table(("Stratum", "Customers", "Responses", "NPS"), rows),
        heading(HEADINGS[3], 2),
        *left_out,
    ]


def _checks(answer: Answer) -> tuple[Check, ...]:
    columns: list[dict[str, Any]] = [{"name": name} for name in ("Stratum", "Customers", "Responses", "NPS")]
    columns[3]["tol"] = POINTS
    cells = [
        [
            row["stratum"],
            row["customers"],
            row["responses"],
            row["nps"] if row["responses"] else {"one_of": [NONE, "none"]},
        ]
        for row in answer["strata"]
    ]
    missing = answer["missing"].items()
    facts = [{"value": {"one_of": [share, share / 100]}, "near": [name]} for name, share in missing]
    shares = [number for _, share in missing for number in (share, share / 100)]
    numbers = [answer["weighted"], *shares]
    for row in answer["strata"]:
        numbers += [row["customers"], row["responses"], *([row["nps"]] if row["responses"] else [])]
    return (
        Check("files", "present", {"files": [FILE]}, kind="gate", no_op="pass"),
        Check("headings", "doc.headings", {"file": FILE, "headings": list(HEADINGS)}, weight=0.02, no_op="pass"),
        Check("weighted score", "doc.mentions", {
            "file": FILE, "facts": [{"value": answer["weighted"], "near": ["weighted"]}], "tol": POINTS,
        }, weight=0.5),
        Check("key figures", "table", {"file": FILE, "columns": columns, "rows": cells}, weight=0.3),
        Check("missing strata", "doc.mentions", {"file": FILE, "facts": facts, "tol": {"abs": 0.00051}}, weight=0.1,
              stage="intermediate"),
        Check("known numbers", "doc.known_numbers", {"file": FILE, "numbers": numbers, "tol": {"abs": 0.00051}},
              weight=0.01, no_op="pass"),
        Check("responses", "table", {
            "file": FILE, "columns": columns, "rows": cells, "only": ["Responses"], "credit": "f1", "extra": "ignored",
        }, weight=0.07, stage="intermediate", required=False),
        Check("plain words", RUBRIC, {"criterion": READABLE}, weight=0.15, required=False),
    )  # fmt: skip


def _instruction(office: Office, ask: Mapping[str, Any], rng: random.Random) -> str:
    company = office.setting.company
    opener = rng.choice((
        f"The board of {company} wants one page on what customers think.",
        f"Please write up the customer survey of {company} for the management.",
        f"Marketing at {company} needs the result of the survey as a short memo.",
    ))  # fmt: skip
    return f"""{opener}

Responses and the note on the method are in commercial. Count responses dated {ask["since"]} or later, and follow the
method for the score of the customer base and for strata without such responses. Scores are in points, one decimal.

Save `artifacts/{FILE}`, a Word memo with the headings {"; ".join(f"`{one}`" for one in HEADINGS)}, in this order:

- under `Result` a sentence that states the weighted net promoter score of the customer base
- under `Key figures` a table, headers in its first row, one row per stratum of the method: `Stratum`, `Customers`,
  `Responses` (how many count), `NPS` (`{NONE}` where there are none)
- under `Strata without responses`, for each of them, a sentence with its name, its share of all customers in per cent,
  one decimal, and what was done about it

Numbers in the text are those of the table, the score and these shares, no others.
"""
