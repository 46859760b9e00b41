"""The imperfect demonstrator: right form, wrong work, low score."""

from __future__ import annotations

import json
import random
from collections import Counter, defaultdict

import pytest

from journeyman.worlds.mini import pools
from journeyman.worlds.mini.checks import answer as check
from journeyman.worlds.mini.demonstrator import MODES, flawed
from journeyman.worlds.mini.protocol import BoundTask, Step
from journeyman.worlds.mini.templates import TEMPLATES
from journeyman.worlds.mini.world import World, make_world

Draw = tuple[BoundTask, World, tuple[Step, ...], str]


@pytest.fixture(scope="module")
def draws() -> list[Draw]:
    """1,000 draws: 40 worlds, five families, five draws each."""
    rng = random.Random(8)
    made = []
    for index in range(40):
        world = make_world(2, "sft", index)
        for template in TEMPLATES.values():
            for _ in range(5):
                bound = template.bind(world, rng)
                made.append((bound, world, *flawed(bound, world, rng)))
    return made


def reward(bound: BoundTask, answer: str) -> float:
    artifacts = {"answer.json": json.dumps({"answer": answer}).encode()}
    return float(check.grade(artifacts, {"answer": bound.answer})["reward"])


def test_1000_flawed_demonstrations_score_below_a_twentieth(draws: list[Draw]) -> None:
    by_family = defaultdict(list)
    for bound, _, _, answer in draws:
        by_family[bound.family].append(reward(bound, answer))
    means = {family: sum(scores) / len(scores) for family, scores in by_family.items()}
    assert sum(map(len, by_family.values())) == 1000
    assert sum(means.values()) / 5 < 0.05, means
    assert max(means.values()) < 0.1, means


def test_flawed_demonstrations_are_well_formed_and_shorter_than_the_oracle(draws: list[Draw]) -> None:
    for bound, world, plan, answer in draws:
        for step in plan:
            allowed = {"lookup": {"path", "row", "col"}, "read_file": {"path"}, "calc": {"expr"}}[step.tool]
            assert set(step.arguments) <= allowed
            assert step.arguments.get("path", "owners.eml") in world.files
        assert answer.count(";") == bound.answer.count(";")
        assert all(field.isdigit() for field in answer.split(";"))
    assert sum(len(plan) for _, _, plan, _ in draws) < 0.8 * sum(len(bound.plan) for bound, *_ in draws)


def test_the_four_modes_are_drawn_alike(draws: list[Draw]) -> None:
    def mode(bound: BoundTask, plan: tuple[Step, ...]) -> str:
        if not plan:
            return "guess or skip"
        if plan[0].tool == "read_file":
            return "wrongfile"
        return "skip" if plan == bound.plan[:-1] else "wrongrow"

    counts = Counter(mode(bound, plan) for bound, _, plan, _ in draws if bound.family != "look")
    assert {name: round(count / 800, 1) for name, count in counts.items()} == {
        "guess or skip": pytest.approx(0.25, abs=0.06),
        "skip": pytest.approx(0.25, abs=0.06),
        "wrongfile": pytest.approx(0.25, abs=0.06),
        "wrongrow": pytest.approx(0.25, abs=0.06),
    }


@pytest.mark.parametrize("family", sorted(TEMPLATES))
def test_wrongrow_really_looks_up_the_wrong_cells_and_answers_with_them(family: str) -> None:
    world, rng = make_world(2, "sft", 0), random.Random(4)
    for _ in range(50):
        bound = TEMPLATES[family].bind(world, rng)
        plan, answer = MODES["wrongrow"](bound, world, rng)
        assert [step.tool for step in plan] == [step.tool for step in bound.plan]
        rows = [
            (wrong.arguments["row"], right.arguments["row"])
            for wrong, right in zip(plan, bound.plan, strict=True)
            if wrong.tool == "lookup"
        ]
        assert all(wrong != right for wrong, right in rows)
        found = [
            str(world.table(s.arguments["path"]).values[s.arguments["row"], s.arguments["col"]])
            for s in plan
            if s.tool == "lookup" and s.arguments["path"] != pools.OWNERS_FILE
        ]
        if family in ("sum2", "cross"):
            assert plan[-1].arguments["expr"] == "+".join(found)
            assert answer == str(sum(map(int, found)))
        else:
            assert answer == ";".join(found)
        if family == "own":
            assert plan[1].arguments["row"] == world.clients[plan[0].arguments["row"]]


def test_the_same_stream_gives_the_same_flaw() -> None:
    world = make_world(2, "sft", 0)
    bound = TEMPLATES["rep"].bind(world, random.Random(1))
    assert flawed(bound, world, random.Random(6)) == flawed(bound, world, random.Random(6))
