"""Long tasks in real sandboxes: their oracles take the calls that were asked for, and every gate passes."""

from __future__ import annotations

import json

import pytest

from journeyman.errors import EnvironmentMissing
from journeyman.sandbox import PROVIDERS
from journeyman.trials.worldgates.building import Order, build
from journeyman.worlds.curriculum import bucket_of
from journeyman.worlds.stats import statistics_of

LEAST_CALLS = {0: 1, 1: 18, 2: 100, 3: 174}


@pytest.mark.slow
def test_a_round_of_long_families_is_published_with_the_calls_that_were_asked_for(tmp_path):
    try:
        PROVIDERS["bwrap"]()
    except EnvironmentMissing as missing:
        pytest.skip(str(missing))
    order = Order(7, 1, 7, "train", ("MC3", "CL2"))
    made = build(order, tmp_path / "out", waive=frozenset({"memory", "pids", "disk", "cpus"}))
    assert len(made.tasks) == 7
    lengths = []
    for path in (tmp_path / "out" / "tasks" / "train").iterdir():
        origin = json.loads((path / "tests" / "provenance.json").read_text())
        report = json.loads((path / "tests" / "gates.json").read_text())
        assert all(facts["passed"] for facts in report["gates"].values())
        length = origin["knobs"]["length"]
        assert report["oracle_calls"] >= LEAST_CALLS[length]
        assert bucket_of(report["oracle_calls"]) == (10, 30, 100, 300)[length]
        lengths.append(length)
    assert sorted(lengths) == [1, 1, 1, 1, 2, 2, 3]
    stats = statistics_of(tmp_path / "out")
    assert {bucket: row["tasks"] for bucket, row in stats["feedback"].items()} == {"30": 4, "100": 2, "300": 1}
    assert stats["feedback"]["300"]["least_nodes"] >= 40
