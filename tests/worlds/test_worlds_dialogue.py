"""Dialogues: the talk that leads to the answer scores 1, one that skips a question or a confirmation does not."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import pytest
from verifier_here import graded, office

from journeyman.seeds import stream
from journeyman.tasks.counterparts import JOURNAL, Script, Talk, load_script
from journeyman.tasks.task import load_task
from journeyman.worlds.curriculum import Knobs
from journeyman.worlds.package import write_layer, write_program, write_task
from journeyman.worlds.template import Bound
from journeyman.worlds.templates import TEMPLATES
from journeyman.worlds.templates.dialogue.speaking import day_forms, length_forms, time_forms

NAMES = ("TD1", "TD2")


@cache
def bound(name: str) -> Bound:
    return TEMPLATES[name].bind(office(), stream(3, name), Knobs())


def reward(name: str, data: bytes) -> float:
    found: float = graded(bound(name).checks, {JOURNAL: data})["reward"]
    return found


def journal(name: str, acts: list[object]) -> bytes:
    return TEMPLATES[name].write(bound(name), {"acts": acts}, {})[JOURNAL]


@pytest.mark.parametrize("name", NAMES)
def test_the_right_talk_scores_1_and_every_shorter_one_less(name):
    acts = bound(name).answer["acts"]
    assert reward(name, journal(name, acts)) == 1.0
    for gone in range(len(acts)):
        assert reward(name, journal(name, acts[:gone] + acts[gone + 1 :])) < 1.0


@pytest.mark.parametrize("name", NAMES)
def test_every_control_fails_the_check_that_it_names(name):
    for wrong in bound(name).wrong:
        found = graded(bound(name).checks, TEMPLATES[name].write(bound(name), wrong.answer, {}))
        assert {one["id"]: one["score"] for one in found["checks"]}[wrong.fails] < 1.0
        assert found["reward"] <= 0.5


@pytest.mark.parametrize("name", NAMES)
def test_an_agent_cannot_write_the_journal_itself(name):
    forged = json.loads(journal(name, bound(name).answer["acts"]))
    assert reward(name, json.dumps({**forged, "seal": "0" * 32}).encode()) == 0.0
    assert reward(name, json.dumps({"entries": forged["entries"]}).encode()) == 0.0


@pytest.mark.parametrize("name", NAMES)
def test_neither_instruction_nor_world_tells_what_only_people_know(name):
    one = bound(name)
    seal = str(one.counterparts["seal"])
    assert seal not in one.instruction
    assert not any(seal.encode() in data for data in (*office().files.values(), *office().apps.values()))
    asked = json.dumps(dict(one.ask))
    assert len(one.ask) == 2
    assert "REL-" not in asked + one.instruction


def test_a_written_task_keeps_its_script_with_the_tests_and_nothing_of_it_with_the_world(tmp_path: Path):
    one, world = bound("TD1"), office()
    layer, program = write_layer(world, tmp_path / "layers"), write_program(tmp_path)
    task = write_task(world, TEMPLATES["TD1"], one, tmp_path / "task", layer, program, {})
    assert load_script(task) == Script.of(one.counterparts)
    assert load_task(task).world.is_dir()
    seal = str(one.counterparts["seal"]).encode()
    seen = [task / "instruction.md", *(path for path in (task / "environment").rglob("*") if path.is_file())]
    assert not any(seal in path.read_bytes() for path in seen)
    assert "tests/counterparts.json" in (task / "task.toml").read_text()


def test_a_mail_that_names_every_day_confirms_nothing_before_the_others_agreed():
    one = bound("TD1")
    talk = Talk(Script.of(one.counterparts))
    host = str(one.ask["host"])
    entry = one.answer["acts"][-1]
    days = " ".join(f"{entry['start'][:8]}{day:02d}" for day in range(1, 32))
    text = f"Please confirm {days} {entry['start'][11:]} {entry['end'][11:]} {entry['location']}"
    answer = talk.hear(host, text)
    assert answer is not None
    assert answer.marks == ()


def test_days_times_and_lengths_are_understood_as_people_write_them():
    assert {"2025-03-04", "4 March", "March 4", "04.03.2025", "4th March", "Mar 4"} <= set(day_forms("2025-03-04"))
    assert {"14:30", "2:30 pm", "2.30pm", "14.30"} <= set(time_forms("14:30"))
    assert {"90 minutes", "1.5 hours", "an hour and a half", "16:00"} <= set(length_forms(90, "14:30"))
