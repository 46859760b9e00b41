"""Six worlds and a hundred tasks through every gate: what is published stands in a table without a gap."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from journeyman.errors import EnvironmentMissing
from journeyman.sandbox import PROVIDERS
from journeyman.trials.worldgates.building import Order, build
from journeyman.trials.worldgates.checking import split_findings
from journeyman.worlds.gates import GATES
from journeyman.worlds.stats import statistics_of
from journeyman.worlds.templates import TEMPLATES

WAIVED = frozenset({"memory", "pids", "disk", "cpus"})


@pytest.mark.thorough
def test_a_hundred_tasks_of_six_worlds_pass_every_gate(tmp_path: Path) -> None:
    try:
        PROVIDERS["bwrap"]()
    except EnvironmentMissing as missing:
        pytest.skip(str(missing))
    out = tmp_path / "out"
    made = build(Order(7, 6, 100), out, jobs=2, waive=WAIVED)
    assert len(made.tasks) == 100, made.refused
    found = statistics_of(out)
    assert {gate: (row["tasks"], row["failed"]) for gate, row in found["gates"].items()} == dict.fromkeys(
        GATES, (100, 0)
    )
    assert (found["ladder"]["all"]["oracle"], found["ladder"]["all"]["no-op"]) == (1.0, 0.0)
    assert split_findings([path for path in out.glob("tasks/*/*") if path.is_dir()]) == []
    assert len(found["diversity"]["templates"]) > len(TEMPLATES) / 2
    for report in (json.loads(path.read_text()) for path in out.glob("tasks/*/*/tests/gates.json")):
        assert report["kill_rate"] >= 0.95
        assert report["oracle_calls"] > 0
    spent = found["cost"]["cpu_s"]
    assert spent["build"] > 0
    assert spent["gates"] > 0
