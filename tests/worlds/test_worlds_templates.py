"""Templates: what is asked has one answer, the plan reaches it, and every control is wrong in the way it says."""

from __future__ import annotations

import random
import re
from collections import Counter

import pytest

from journeyman.documents import calc
from journeyman.worlds.mini import pools
from journeyman.worlds.mini.checks import answer as check
from journeyman.worlds.mini.gates import Subject, controls_fail, findings_of, plan_findings
from journeyman.worlds.mini.protocol import BoundTask, Control, Step
from journeyman.worlds.mini.templates import TEMPLATES
from journeyman.worlds.mini.world import World, make_world

Q = r"(Q[1-4])"
E = r"([A-Z][a-z]+)"
F = r"((?:sales|costs|budget|stock)\.(?:xlsx|csv|pdf|docx))"
SENTENCES = {
    "look": rf"report {E} {Q} from {F}",
    "sum2": rf"add {E} {Q} and {E} {Q} from {F}",
    "cross": rf"add {E} {Q} from {F} and {E} {Q} from {F}",
    "own": rf"report client of {E} {Q} from {F}",
    "rep": rf"report {E} {Q} and {E} {Q} from {F}",
}


def tool(world: World, name: str, arguments: dict[str, str]) -> str:
    """The tools, played by the truth."""
    if name == "calc":
        return calc.evaluate(arguments["expr"])
    if arguments["path"] == pools.OWNERS_FILE:
        return world.clients[arguments["row"]]
    return str(world.table(arguments["path"]).values[arguments["row"], arguments["col"]])


def value(world: World, file: str, entity: str, quarter: str) -> int:
    return world.table(file).values[entity, quarter]


def solved(world: World, family: str, instruction: str) -> str:
    """The answer as a reader of the instruction finds it, written apart from the templates."""
    match = re.fullmatch(SENTENCES[family], instruction)
    assert match, instruction
    words = match.groups()
    if family == "look":
        return str(value(world, words[2], words[0], words[1]))
    if family == "own":
        return str(value(world, words[2], world.clients[words[0]], words[1]))
    if family == "cross":
        a, q, t1, b, q2, t2 = words
        assert t1 != t2
        return str(value(world, t1, a, q) + value(world, t2, b, q2))
    a, q, b, q2, t1 = words
    values = value(world, t1, a, q), value(world, t1, b, q2)
    return str(sum(values)) if family == "sum2" else ";".join(map(str, values))


@pytest.fixture(scope="module")
def bound_tasks() -> list[tuple[World, BoundTask]]:
    """Every family in each of 200 worlds: 1,000 tasks."""
    rng = random.Random(3)
    worlds = [make_world(5, "train", index) for index in range(200)]
    return [(world, template.bind(world, rng)) for world in worlds for template in TEMPLATES.values()]


def test_the_answer_of_1000_tasks_is_what_the_instruction_asks_for(
    bound_tasks: list[tuple[World, BoundTask]],
) -> None:
    assert len(bound_tasks) == 1000
    for world, bound in bound_tasks:
        assert bound.answer == solved(world, bound.family, bound.instruction)


def test_the_plan_of_1000_tasks_ends_with_the_answer_and_scores_1(bound_tasks: list[tuple[World, BoundTask]]) -> None:
    for world, bound in bound_tasks:
        assert plan_findings(bound, lambda name, arguments, world=world: tool(world, name, dict(arguments))) == []
        grade = check.grade({"answer.json": f'{{"answer": "{bound.answer}"}}'.encode()}, {"answer": bound.answer})
        assert (grade["reward"], grade["passed"]) == (1.0, True)


def test_every_task_has_at_least_four_controls_and_each_fails_the_check_it_names(
    bound_tasks: list[tuple[World, BoundTask]],
) -> None:
    names: Counter[tuple[str, str]] = Counter()
    for world, bound in bound_tasks:
        assert controls_fail(Subject(5, world, bound)) == []
        assert len(bound.controls) >= 5
        names.update((bound.family, control.name) for control in bound.controls)
    assert {name for family, name in names if family == "own"} == {
        "other-person",
        "other-quarter",
        "other-file",
        "client-only",
        "echo",
        "empty",
    }


def test_only_rep_gives_partial_credit_to_a_control(bound_tasks: list[tuple[World, BoundTask]]) -> None:
    for _, bound in bound_tasks:
        for control in bound.controls:
            text = control.answer.replace('"', "")
            reward = check.grade({"answer.json": f'{{"answer": "{text}"}}'.encode()}, {"answer": bound.answer})[
                "reward"
            ]
            is_half = bound.family == "rep" and control.name in ("other-entity", "other-quarter")
            assert reward == (0.5 if is_half else 0.0)


def test_files_are_drawn_uniformly_over_the_four_formats(bound_tasks: list[tuple[World, BoundTask]]) -> None:
    for family in TEMPLATES:
        of_family = [b.params for _, b in bound_tasks if b.family == family]
        counts = Counter(p[t].rpartition(".")[2] for p in of_family for t in ("t1", "t2") if t in p)
        assert set(counts) == set(pools.FORMATS)
        assert min(counts.values()) > 0.15 * sum(counts.values())


def test_the_same_stream_binds_the_same_task() -> None:
    world = make_world(5, "dev", 0)
    for template in TEMPLATES.values():
        assert template.bind(world, random.Random(1)) == template.bind(world, random.Random(1))


def test_the_script_holds_no_value_of_the_tables(bound_tasks: list[tuple[World, BoundTask]]) -> None:
    for _, bound in bound_tasks:
        assert not re.search(r"\d{3}", "\n".join(bound.script))


def test_a_weak_control_is_found_by_its_gate(bound_tasks: list[tuple[World, BoundTask]]) -> None:
    world, bound = bound_tasks[0]
    changed = {**vars(bound), "controls": (Control("right", bound.answer, "field-1"), *bound.controls)}
    assert findings_of(Subject(5, world, BoundTask(**changed))) == ["controls_fail: control right passes"]
    changed["controls"] = (Control("mislabelled", "1", "fields"), *bound.controls[:1])
    assert findings_of(Subject(5, world, BoundTask(**changed))) == [
        "controls_fail: 2 negative controls, 3 are needed",
        "controls_fail: control mislabelled does not fail fields",
    ]


def test_a_plan_that_misses_the_answer_is_found(bound_tasks: list[tuple[World, BoundTask]]) -> None:
    world, bound = bound_tasks[1]
    shorter = BoundTask(**{**vars(bound), "plan": bound.plan[:-1]})
    assert plan_findings(shorter, lambda name, arguments: tool(world, name, dict(arguments))) != []


def test_leaks_and_other_worlds_are_found_by_their_gates() -> None:
    world = make_world(987654321, "train", 4)
    bound = TEMPLATES["look"].bind(world, random.Random(0))
    assert findings_of(Subject(987654321, world, bound)) == []
    mail = world.files["owners.eml"]
    leaking = {**vars(world), "files": {**world.files, "owners.eml": mail + world.canary.encode() + b" 987654321"}}
    assert findings_of(Subject(987654321, World(**leaking), bound)) == [
        "reproducible: seed 987654321 makes another world train-0004",
        "no_leak: canary occurs in owners.eml",
        "no_leak: seed occurs in owners.eml",
    ]
    told = BoundTask(**{**vars(bound), "instruction": f"{bound.instruction} ({bound.answer})"})
    assert "no_leak: the answer occurs in the instruction or a file name" in findings_of(
        Subject(987654321, world, told)
    )


def test_a_leak_inside_a_container_is_found() -> None:
    from journeyman.worlds.render.canonical import canonical_zip, unzip

    world = make_world(1, "train", 0)
    bound = TEMPLATES["look"].bind(world, random.Random(0))
    name = next(name for name in world.files if name.endswith(".docx"))
    parts = {**unzip(world.files[name]), "docProps/custom.xml": world.canary.encode()}
    leaking = World(**{**vars(world), "files": {**world.files, name: canonical_zip(parts)}})
    assert f"no_leak: canary occurs in {name}/docProps/custom.xml" in findings_of(Subject(1, leaking, bound))


def test_an_ambiguous_label_is_found() -> None:
    world = make_world(1, "train", 0)
    bound = TEMPLATES["look"].bind(world, random.Random(0))
    table = world.table(bound.params["t1"])
    twice = type(table)(**{**vars(table), "entities": (*table.entities, bound.params["a"])})
    tables = tuple(twice if one.file == table.file else one for one in world.tables)
    shared = {**world.clients, "Nobody": world.entities[0]}
    ambiguous = World(**{**vars(world), "tables": tables, "clients": shared})
    findings = findings_of(Subject(1, ambiguous, bound))
    assert f"unique_answer: {bound.params['a']} occurs 2 times in {table.file}" in findings
    assert "unique_answer: a client has two owners" in findings


def test_steps_are_concrete() -> None:
    world = make_world(1, "train", 0)
    bound = TEMPLATES["sum2"].bind(world, random.Random(0))
    first, second = (tool(world, step.tool, dict(step.arguments)) for step in bound.plan[:2])
    assert bound.plan[2] == Step("calc", {"expr": f"{first}+{second}"})
