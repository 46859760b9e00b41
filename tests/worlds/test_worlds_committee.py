"""The committee's memo: right when its parts are, wrong with any of them; briefings and quotations to the letter."""

from __future__ import annotations

from functools import cache

from verifier_here import graded, office

from journeyman.seeds import stream
from journeyman.worlds.curriculum import Knobs
from journeyman.worlds.template import Answer, Bound
from journeyman.worlds.templates import TEMPLATES


@cache
def bound(name: str) -> Bound:
    return TEMPLATES[name].bind(office(), stream(3, name), Knobs())


def scores(name: str, answer: Answer) -> dict[str, float]:
    one = bound(name)
    files = TEMPLATES[name].write(one, answer, office().files)
    found = graded(one.checks, files, {path: office().files[path] for path in one.originals})
    return {"reward": found["reward"], **{check["id"]: check["score"] for check in found["checks"]}}


def test_a_memo_that_does_not_say_what_its_parts_say_is_caught_by_both():
    one = bound("X1")
    assert scores("X1", one.answer)["reward"] == 1.0
    rows = [{**row, "value": row["value"] + 5} if row["item"] == "Best price" else row for row in one.answer["figures"]]
    found = scores("X1", {**one.answer, "figures": rows})
    assert found["key figures"] == found["results kept"] == 0.0
    assert found["IB5: every cell"] == 1.0


def test_a_late_offer_that_does_not_count_spoils_part_and_memo():
    one = bound("X1")
    late = next(wrong for wrong in one.wrong if wrong.trap in ("T18", "T21", "T1"))
    found = scores("X1", late.answer)
    assert found["key figures"] == found["IB5: every cell"] == 0.0
    assert found["results kept"] == 1.0
    assert found["reward"] <= 0.5


def test_a_briefing_loses_the_constraint_that_it_breaks_and_the_whole():
    one = bound("IF1")
    assert scores("IF1", one.answer)["reward"] == 1.0
    for wrong in one.wrong:
        found = scores("IF1", wrong.answer)
        assert found[wrong.fails] < 1.0
        assert found["everything"] == 0.0


def test_quotations_count_only_from_where_they_are_in_force():
    one = bound("IF2")
    assert scores("IF2", one.answer)["reward"] == 1.0
    stale = next(wrong for wrong in one.wrong if wrong.name == "stale-version")
    found = scores("IF2", stale.answer)
    assert found["hard spans"] == 0.0
    assert 0.0 < found["most spans"] < 1.0
