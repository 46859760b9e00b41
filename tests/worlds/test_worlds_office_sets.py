"""What is decided over a whole set: length and feedback, twins, splits, places, other words, the scaffold."""

from __future__ import annotations

import importlib.util
import sys
from collections import Counter
from pathlib import Path

import pytest
from verifier_here import office

from journeyman.errors import InputError
from journeyman.seeds import stream
from journeyman.worlds.binding import LONG, Place, Refusals, candidates, cycle_of, order_of, places_of
from journeyman.worlds.curriculum import BUCKETS, TURNS, Knobs, bucket_of, density_problem
from journeyman.worlds.dedupe import contaminated, minhash, similarity, sketch_of, twins
from journeyman.worlds.diversify import diversified, masked, restored
from journeyman.worlds.scaffold import new_template
from journeyman.worlds.splits import HELD_OUT_FAMILIES, families_of, office_worlds
from journeyman.worlds.templates import TEMPLATES
from journeyman.worlds.verify import lint


@pytest.mark.parametrize(
    ("calls", "bucket"), [(1, 10), (12, 10), (30, 30), (60, 100), (100, 100), (250, 300), (900, 300)]
)
def test_a_task_belongs_to_the_nearest_bucket(calls, bucket):
    assert bucket_of(calls) == bucket
    assert bucket in BUCKETS


def test_a_long_task_with_little_feedback_is_refused_and_a_short_one_is_not():
    assert density_problem(12, 1, 0) == ""
    assert "needs 15" in density_problem(100, 10, 5)
    assert "intermediate" in density_problem(300, 400, 1)
    assert density_problem(300, 400, 4) == ""


def test_knobs_are_turned_one_at_a_time_and_read_back():
    raised = Knobs().raised("hops")
    assert (raised.hops, raised.level) == (2, Knobs().level + 1)
    assert Knobs.of(raised.as_json()) == raised
    with pytest.raises(ValueError, match="no knob"):
        Knobs().raised("hop")


@pytest.mark.thorough
def test_the_same_task_again_is_a_twin_and_another_world_is_none():
    bound = next(candidates(7, office(), places_of(office_worlds(1), 1, 0)[0], TEMPLATES, Refusals(), set()))[2]
    first, second = sketch_of("a", bound), sketch_of("b", bound)
    assert twins([first, second]) == {"b": ["a"]}
    assert twins([first]) == {}


def test_minhash_tells_copies_from_strangers():
    text = "Read the contracts in the folder and report each clause as it stands today with every signed amendment"
    assert similarity(minhash(text), minhash(text.upper())) == 1.0
    assert (
        similarity(minhash(text), minhash("How many spoons of sugar does a cake need when it is baked at noon?")) < 0.2
    )
    assert contaminated({"t": text}, {"benchmark": f"{text}."}) == [("t", "benchmark", 1.0)]
    assert contaminated({"t": text}, {"benchmark": "Bake a cake with three spoons of sugar and an egg."}) == []


def test_worlds_of_a_longer_build_begin_with_those_of_a_shorter_one():
    assert office_worlds(20)[:7] == office_worlds(7)
    assert len(set(office_worlds(50))) == 50
    assert {split for split, _ in office_worlds(7)} == {"train", "dev", "test"}
    with pytest.raises(InputError):
        office_worlds(3, "valid")


def test_held_out_families_are_the_tests_alone():
    every = [*TEMPLATES, *HELD_OUT_FAMILIES]
    assert set(families_of("test", every)) == set(every)
    for split in ("sft", "train", "dev"):
        assert not HELD_OUT_FAMILIES & set(families_of(split, every))


def test_places_are_spread_evenly_and_all_of_them_are_given_out():
    worlds = office_worlds(7)
    found = [(worlds[at][0], place.turn) for at in range(7) for place in places_of(worlds, 23, at)]
    assert len(found) == len(set(found)) == 23
    for split in ("train", "dev", "test"):
        turns = [turn for name, turn in found if name == split]
        assert turns == list(range(len(turns)))


def test_turns_are_shared_out_evenly_and_the_test_has_enough_of_what_only_it_has():
    worlds = office_worlds(112)
    drawn: dict[str, Counter[str]] = {split: Counter() for split in ("train", "dev", "test")}
    for at, (split, _) in enumerate(worlds):
        for place in places_of(worlds, 1928, at):
            drawn[split][order_of(7, split, place, TEMPLATES)[0][0]] += 1
    assert sum(map(Counter.total, drawn.values())) == 1928
    assert min(drawn["test"][name] for name in HELD_OUT_FAMILIES & set(TEMPLATES)) >= 20
    everywhere = drawn["train"] + drawn["dev"] + drawn["test"]
    assert min(everywhere[name] for name in TEMPLATES) >= 20
    once = [count for name, count in drawn["train"].items() if len(TURNS.get(name, (0,))) == 1]
    assert max(once) - min(once) <= 1


def test_a_place_tries_every_family_and_last_what_its_world_has_anyway():
    place = places_of(office_worlds(1), 5, 0)[2]
    order = [name for name, _ in order_of(7, "train", place, TEMPLATES)]
    assert sorted(set(order)) == sorted(families_of("train", TEMPLATES))
    cycle = cycle_of("train", TEMPLATES)
    planned = {cycle[turn][0] for turn in (0, 1, 3, 4)}
    assert planned <= set(order[-5:])


def test_one_task_in_seven_is_drawn_to_take_a_hundred_calls_and_more_than_half_to_take_fifteen():
    worlds = office_worlds(112)
    places = [(split, place) for at, (split, _) in enumerate(worlds) for place in places_of(worlds, 1928, at)]
    turns = [order_of(7, split, place, TEMPLATES)[0] for split, place in places]
    assert sum(length >= LONG for _, length in turns) >= 0.13 * len(turns)
    assert sum(length == 3 for _, length in turns) >= 0.02 * len(turns)
    assert sum(name in TURNS for name, _ in turns) >= 0.53 * len(turns)


def test_a_place_for_a_long_task_tries_other_long_ones_first():
    cycle = cycle_of("train", TEMPLATES)
    at = next(turn for turn, (_, length) in enumerate(cycle) if length >= LONG)
    order = order_of(7, "train", Place(0, 0, at), TEMPLATES)
    able = sum(LONG in lengths for lengths in TURNS.values())
    assert order[0] == cycle[at]
    assert all(length >= LONG for _, length in order[:able])
    assert len(order) == len(set(order))


def test_the_same_place_draws_the_same_tasks_again():
    place = places_of(office_worlds(1), 1, 0)[0]
    first, again = (next(candidates(7, office(), place, TEMPLATES, Refusals(), set())) for _ in range(2))
    assert first[2] == again[2]
    assert first[0].startswith("train-0000-00-")


def test_facts_survive_other_words_exactly_once(tmp_path: Path):
    text = "Pay EUR 1,200 to Alder Group by 31 March 2025 and save `artifacts/a.xlsx`."
    hidden, facts = masked(text, ["artifacts/a.xlsx"])
    assert not any(fact in hidden for fact in facts)
    assert restored(hidden, facts) == (text, "")
    good = diversified(text, "m", lambda masked_text: (f"Please do this: {masked_text}", 9), tmp_path)
    assert (good.refused, good.text) == ("", f"Please do this: {text}")
    assert diversified(text, "m", None, tmp_path).is_cached
    assert diversified(text, "other", None, tmp_path).text == text


@pytest.mark.parametrize(
    "change", [lambda t: t.replace("{{0}}", ""), lambda t: f"{t} {{{{0}}}}", lambda t: f"{t} and 7 more"]
)
def test_a_paraphrase_that_touches_facts_is_refused(change, tmp_path: Path):
    text = "Pay EUR 1,200 to Alder Group by 31 March 2025."
    found = diversified(text, "m", lambda hidden: (change(hidden), 9), tmp_path)
    assert found.refused
    assert found.text == text


def test_a_new_template_binds_as_it_is_written(tmp_path: Path):
    source, test = new_template("IB77", "banking", tmp_path / "templates", tmp_path / "tests")
    spec = importlib.util.spec_from_file_location("ib77", source)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["ib77"] = module
    spec.loader.exec_module(module)
    template = module.IB77()
    bound = template.bind(office(), stream(7, "t"), Knobs())
    assert lint(bound.checks, bound.deliverables) == []
    assert set(template.write(bound, bound.answer, office().files)) == {"result.json"}
    assert "test_ib77_binds" in test.read_text()
    with pytest.raises(InputError, match="already"):
        new_template("IB77", "banking", tmp_path / "templates", tmp_path / "tests")
    with pytest.raises(InputError, match="no id"):
        new_template("ib-7", "banking", tmp_path, tmp_path)
