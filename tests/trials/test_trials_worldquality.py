"""Published verifiers: measured on fresh mutants, equal to themselves under load; the flips of a judge are counted."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from journeyman.errors import EnvironmentMissing
from journeyman.evals.verifiers import MEASURES, lines_of, quality_of
from journeyman.sandbox import PROVIDERS
from journeyman.tasks.judge import JudgeAnswer, JudgeQuestion
from journeyman.trials.worldgates.building import Order, build
from journeyman.trials.worldgates.quality import examine_tasks, sampled
from journeyman.trials.worldgates.steadiness import grade_again

pytestmark = pytest.mark.thorough

WAIVED = frozenset({"memory", "pids", "disk", "cpus"})


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    try:
        PROVIDERS["bwrap"]()
    except EnvironmentMissing as missing:
        pytest.skip(str(missing))
    return build(Order(7, 1, 2, "train", ("MC8", "IB1")), tmp_path_factory.mktemp("set") / "out", waive=WAIVED).out


@pytest.fixture
def load() -> Iterator[None]:
    """A busy process for every core, beside the gradings."""
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(os.cpu_count() or 1)]
    yield
    for process in busy:
        process.kill()
        process.wait()


class Wavering:
    """A judge that says yes three times out of four."""

    def __init__(self) -> None:
        self.asked = 0

    def judge(self, question: JudgeQuestion) -> JudgeAnswer:
        self.asked += 1
        return JudgeAnswer(self.asked % 4 != 0, "it depends")


def test_published_verifiers_meet_every_bound_and_a_changed_truth_is_found(built: Path):
    paths = sampled(built, 200, 0)
    assert {path.name.rpartition("-")[2] for path in paths} == {"mc8", "ib1"}
    quality = quality_of(examine_tasks(paths, built / "environments", seed=5, waive=WAIVED))
    assert quality.is_met, lines_of(quality)
    assert {row.measure for row in quality.rows} == set(MEASURES)
    assert next(row for row in quality.rows if row.measure == "mutants").total == 40
    truth = paths[0] / "tests" / "truth.json"
    kept = truth.read_bytes()
    truth.unlink()  # it may be linked
    truth.write_bytes(kept.replace(b'"weight":', b'"weight": ', 1))
    changed = quality_of(examine_tasks(paths[:1], built / "environments", waive=WAIVED))
    truth.write_bytes(kept)
    assert not changed.is_met
    assert "the seed makes another truth" in changed.findings[0]


def test_twenty_gradings_under_load_in_two_zones_and_locales_give_one_verdict(built: Path, load: None):
    paths = sampled(built, 2, 0)
    steady = grade_again(paths, built / "environments", 20, waive=WAIVED, judge=Wavering())
    assert steady.unsteady == ()
    assert steady.deliverables >= 8
    assert (steady.answers, steady.flips, steady.failures) == (20, 5, 0)
    assert "| 5 of 20 | 0.2500 |" in lines_of(quality_of([], steady))[-1]
