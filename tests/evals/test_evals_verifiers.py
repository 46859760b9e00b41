"""Measures of verifiers: shares with intervals that know of worlds, bounds, survivors where an author finds them."""

from __future__ import annotations

from journeyman.evals.verifiers import lines_of, quality_of
from journeyman.trials.worldgates.quality import Examined
from journeyman.trials.worldgates.steadiness import Steadiness

FULL = {"oracle": (1, 1), "no-op": (4, 4), "controls": (5, 5), "mutants": (20, 20), "positives": (4, 4)}


def examined(number: int, **counts: tuple[int, int]) -> Examined:
    world = f"train-{number // 2:04d}"
    return Examined(f"{world}-{number:02d}-ib1", "IB1", world, {**FULL, **counts})


def test_what_holds_everywhere_is_met_and_has_an_interval_still():
    quality = quality_of([examined(n) for n in range(20)])
    assert quality.is_met
    assert (quality.tasks, quality.worlds) == (20, 10)
    mutants = next(row for row in quality.rows if row.measure == "mutants")
    assert (mutants.held, mutants.total, mutants.high) == (400, 400, 1.0)
    assert 0.98 < mutants.low < 1.0


def test_one_control_that_slips_through_is_a_miss_and_a_few_mutants_are_not():
    quality = quality_of([examined(0, controls=(4, 5), mutants=(19, 20)), examined(1)])
    rows = {row.measure: row for row in quality.rows}
    assert not rows["controls"].is_met
    assert rows["mutants"].is_met
    assert not quality.is_met
    assert any("MISSED" in line for line in lines_of(quality))


def test_mutants_that_live_in_one_world_widen_the_interval():
    together = quality_of([examined(n, mutants=(10, 20) if n < 2 else (20, 20)) for n in range(20)]).rows[3]
    apart = quality_of([examined(n, mutants=(19, 20)) for n in range(20)]).rows[3]
    assert together.share == apart.share == 0.95
    assert together.low < apart.low


def test_survivors_are_listed_by_template_and_nothing_examined_is_no_pass():
    lives = Examined("t-0000-00-mc1", "MC1", "t-0000", FULL, survivors=("sign: rows.0.net: 1 -> -1",))
    assert quality_of([lives]).survivors == {"MC1": ["sign: rows.0.net: 1 -> -1 (t-0000-00-mc1)"]}
    assert not quality_of([]).is_met


def test_verdicts_that_change_are_a_miss_and_a_judge_that_flips_is_printed():
    tasks = [examined(0)]
    assert not quality_of(tasks, Steadiness(5, 20, ("t oracle",))).is_met
    flips = quality_of(tasks, Steadiness(5, 20, (), answers=40, flips=3, failures=1))
    assert flips.is_met
    assert flips.as_json()["steadiness"]["judge"]["flip_rate"] == 0.075
    assert "3 of 40 | 0.0750" in lines_of(flips)[-1]
