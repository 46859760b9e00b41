"""Office tasks built, judged and graded in real sandboxes: resumable, equal twice, stable, refused with evidence."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from journeyman.digest import directory_sha256
from journeyman.errors import EnvironmentMissing, InputError
from journeyman.sandbox import PROVIDERS
from journeyman.tasks.artifacts import read_artifacts
from journeyman.tasks.grading import GradeItem
from journeyman.tasks.task import load_task
from journeyman.tasks.verify import BatchVerifier, verify_in_sandbox
from journeyman.tools.workbench import tools_environment
from journeyman.trials.worldgates.building import Order, Outcome, build
from journeyman.trials.worldgates.checking import check_build, table_lines
from journeyman.worlds.binding import rebound
from journeyman.worlds.gates import Subject
from journeyman.worlds.office import make_office
from journeyman.worlds.stats import statistics_of
from journeyman.worlds.templates import TEMPLATES
from journeyman.worlds.variants.baselines import Texts
from journeyman.worlds.verify import verifier_environment

pytestmark = pytest.mark.thorough

WAIVED = frozenset({"memory", "pids", "disk", "cpus"})
ORDER = Order(7, 1, 2, "train", ("IB1", "S1"))


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    try:
        PROVIDERS["bwrap"]()
    except EnvironmentMissing as missing:
        pytest.skip(str(missing))
    return build(ORDER, tmp_path_factory.mktemp("offices") / "out", waive=WAIVED)


def tasks_of(built: Outcome) -> list[Path]:
    return sorted((built.out / "tasks" / "train").iterdir())


def test_what_was_built_passed_every_gate_and_can_be_read_by_anyone(built):
    assert len(built.tasks) == 2
    for path in tasks_of(built):
        task = load_task(path)
        report = json.loads((path / "tests" / "gates.json").read_text())
        assert all(facts["passed"] for facts in report["gates"].values())
        assert report["oracle_calls"] > 3
        assert report["kill_rate"] >= 0.95
        assert task.split == "train"
        assert not any(name.startswith(("tests", "solution")) for name in task.files)
    stats = statistics_of(built.out)
    assert stats["ladder"]["all"]["oracle"] == 1.0
    assert stats["ladder"]["all"]["no-op"] == 0.0


def test_a_finished_build_is_found_and_another_order_is_refused(built):
    before = {path.name: directory_sha256(path) for path in tasks_of(built)}
    assert build(ORDER, built.out, waive=WAIVED).tasks == built.tasks
    assert {path.name: directory_sha256(path) for path in tasks_of(built)} == before
    with pytest.raises(InputError, match="another build"):
        build(replace(ORDER, seed=8), built.out, waive=WAIVED)


def test_harbors_way_of_grading_agrees_with_the_batch(built):
    task = load_task(tasks_of(built)[0])
    right = read_artifacts(task.path / "solution" / "deliverables")
    environment = tools_environment(built.out / "environments")
    provider = PROVIDERS["bwrap"]()
    assert verify_in_sandbox(task, right, provider, environment, label="harbor-way", waive=WAIVED).reward == 1.0
    wrong = dict.fromkeys(right, b"nothing of it")
    assert verify_in_sandbox(task, wrong, provider, environment, label="harbor-way", waive=WAIVED).reward == 0.0


def test_an_environment_that_knows_nothing_of_worlds_grades_with_the_tasks_own_program(built):
    tasks = [load_task(path) for path in tasks_of(built)]
    environment = tools_environment(built.out / "environments")
    assert not (environment.path / "lib" / "worldverify").exists()
    items = [GradeItem(task.id, task, read_artifacts(task.path / "solution" / "deliverables")) for task in tasks]
    with BatchVerifier(PROVIDERS["bwrap"](), environment, "own-program", waive=WAIVED) as verifier:
        assert [verdict.reward for verdict in verifier.grade(items)] == [1.0, 1.0]


def test_workbooks_of_the_sample_that_another_program_spoils_are_named(built, monkeypatch):
    from journeyman.trials.worldgates import legs

    task = load_task(next(path for path in tasks_of(built) if path.name.endswith("ib1")))
    office = make_office(7, "train", 0)
    origin = json.loads((task.path / "tests" / "provenance.json").read_text())
    template = TEMPLATES["IB1"]
    right = read_artifacts(task.path / "solution" / "deliverables")
    bound = next(
        one
        for one in rebound(7, office, template, 0, origin["number"])
        if template.write(one, one.answer, office.files) == right
    )
    subject = Subject(7, task.id, office, template, bound, Texts.of({}))
    monkeypatch.setattr(legs, "SHARE", 1.0)
    monkeypatch.setattr(legs.office, "program", lambda: "soffice")
    environment = verifier_environment(built.out / "environments")
    with BatchVerifier(PROVIDERS["bwrap"](), environment, "legs", waive=WAIVED) as verifier:
        kept = legs.leg_of(subject, task, verifier, lambda data: data)
        spoilt = legs.leg_of(subject, task, verifier, lambda data: b"nothing of it")
    assert kept == {"task": task.id, "ran": True, "problem": ""}
    assert "LibreOffice scores 0.0" in spoilt["problem"]
    assert legs.counted([kept, spoilt]) == {"drawn": 2, "ran": 2, "failed": 1}


def test_a_stopped_build_goes_on_with_the_world_it_was_in(built):
    lost = next((built.out / "progress").iterdir())
    kept, tasks = lost.read_bytes(), {path.name: directory_sha256(path) for path in tasks_of(built)}
    lost.unlink()
    build(ORDER, built.out, waive=WAIVED)
    assert lost.read_bytes() == kept
    assert {path.name: directory_sha256(path) for path in tasks_of(built)} == tasks


@pytest.mark.slow
def test_two_builds_in_other_processes_zones_and_hash_seeds_are_equal_byte_for_byte(tmp_path):
    digests = set()
    for number, (zone, seed) in enumerate((("Asia/Kolkata", "1"), ("America/New_York", "77"))):
        out = tmp_path / str(number)
        words = [
            "worlds",
            "build",
            "--seed",
            "7",
            "--worlds",
            "1",
            "--tasks",
            "6",
            "--gates",
            "static",
            "--out",
            str(out),
        ]
        env = {**os.environ, "TZ": zone, "PYTHONHASHSEED": seed}
        subprocess.run([sys.executable, "-m", "journeyman.cli.main", *words], env=env, check=True, timeout=900)
        digests.add((directory_sha256(out / "tasks"), directory_sha256(out / "layers")))
    assert len(digests) == 1


@pytest.mark.slow
def test_a_check_builds_again_and_finds_a_changed_task(built):
    found = check_build(built.out, waive=WAIVED)
    assert found.findings == ()
    assert len(table_lines(found.table)) == 15
    assert len(table_lines(found.table, found.legs)) == 16
    victim = tasks_of(built)[0] / "instruction.md"
    kept = victim.read_text()
    victim.write_text(f"{kept} ")
    assert any("differs" in line for line in check_build(built.out, waive=WAIVED).findings)
    victim.write_text(kept)


@pytest.mark.slow
def test_the_same_deliverables_get_the_same_verdicts_twenty_times_in_any_zone_and_locale(built, monkeypatch):
    tasks = [load_task(path) for path in tasks_of(built)]
    items = []
    for task in tasks:
        right = read_artifacts(task.path / "solution" / "deliverables")
        items += [GradeItem("right", task, right), GradeItem("empty", task, dict.fromkeys(right, b""))]
    seen = set()
    for zone, locale in (("Asia/Kolkata", "de_DE.UTF-8"), ("America/New_York", "C")):
        monkeypatch.setitem(os.environ, "TZ", zone)
        monkeypatch.setitem(os.environ, "LC_ALL", locale)
        environment = verifier_environment(built.out / "environments")
        with BatchVerifier(PROVIDERS["bwrap"](), environment, "stable", waive=WAIVED, one_batch=True) as verifier:
            for _ in range(10):
                seen.add(json.dumps([verdict.to_dict() for verdict in verifier.grade(items)]))
    assert len(seen) == 1


def test_what_a_killed_build_left_unfinished_is_removed_by_the_next_one(tmp_path: Path) -> None:
    order = Order(7, 1, 1, templates=("CL4",), gates="static")
    dead = tmp_path / "out" / ".staging-train-0000-999999999" / "layers"
    alive = tmp_path / "out" / ".staging-train-0001-1"
    dead.mkdir(parents=True)
    alive.mkdir()
    build(order, tmp_path / "out")
    assert [path.name for path in (tmp_path / "out").glob(".staging-*")] == [alive.name]
