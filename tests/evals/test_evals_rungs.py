"""The ladder of baselines over a set: families in order, all of them strictly, small sets without a word."""

from __future__ import annotations

from journeyman.evals.rungs import lines_of, rungs_of
from journeyman.worlds.gates import Report

STEPS = {"no-op": 0.0, "naive": 0.02, "single": 0.05, "trap-blind": 0.1, "oracle": 1.0}


def report(world: int, number: int, family: str = "IB1", **ladder: float) -> Report:
    shift = 0.001 * (world + number)
    rungs = {name: value + (shift if 0 < value < 1 else 0.0) for name, value in STEPS.items()} | ladder
    return Report(f"train-{world:04d}-{number:02d}-{family.lower()}", family, {}, {}, rungs, 10, 1.0)


def wide(**ladder: float) -> list[Report]:
    return [report(world, number, **ladder) for world in range(8) for number in range(10)]


def test_a_set_in_order_has_a_positive_interval_at_every_step():
    rungs = rungs_of(wide())
    assert rungs.is_judged
    assert rungs.findings == ()
    assert all(step.low is not None and step.low > 0 for step in rungs.steps.values())
    assert (rungs.tasks, rungs.worlds) == (80, 8)


def test_equal_rungs_are_allowed_in_a_family_and_not_over_all_of_them():
    found = rungs_of(wide(single=0.1, **{"trap-blind": 0.1})).findings
    assert len(found) == 1
    assert found[0].startswith("all families: trap-blind is not above single: +0.0000")


def test_a_family_out_of_order_is_named_even_where_the_whole_is_in_order():
    odd = [report(world, 99, "C2", naive=0.2, single=0.1) for world in range(8)]
    assert [line.partition(":")[0] for line in rungs_of([*wide(), *odd]).findings] == ["C2"]


def test_a_small_set_is_printed_and_not_judged():
    rungs = rungs_of([report(0, 0, naive=0.0)])
    assert not rungs.is_judged
    assert rungs.findings == ()
    lines = lines_of(rungs, ["IB1"])
    assert "| `IB1` | 1 | 0.000 | 0.000 | 0.050 | 0.100* | 1.000 |" in lines
    assert lines[-1].startswith("the order over all families is judged from")


def test_what_was_never_graded_is_no_rung():
    assert rungs_of([Report("t-0000-00-ib1", "IB1", {}, {}, {}, None, None)]).tasks == 0
