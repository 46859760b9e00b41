"""People of a script: they answer what they are asked, once in their own order, and say nothing to others."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from journeyman.errors import InputError
from journeyman.tasks.counterparts import FILE, MAX_ANSWERS, Script, Talk, load_script

DOCUMENT = {
    "agent": "Assistant@a.example",
    "seal": "s" * 32,
    "people": [
        {
            "address": "Ann@a.example",
            "name": "Ann Alder",
            "rules": [
                {"when": [["confirm"], ["4 March", "2025-03-04"]], "says": "Make it the 6th.", "marks": ["changed"],
                 "given": ["agrees"], "unless": ["changed"], "is_alone": True},
                {"when": [["confirm"], ["6 March"]], "without": ["4 March"], "says": "Confirmed.", "given": ["changed"],
                 "marks": ["confirmed"], "is_alone": True},
                {"when": [["confirm"]], "says": "Not yet.", "is_alone": True},
                {"when": [["day", "date"]], "says": "On 4 March.", "marks": ["said:day"]},
                {"when": [["place"]], "says": "In Room 4.", "marks": ["said:place"]},
            ],
            "otherwise": "What about it?",
        },
        {"address": "ben@a.example", "name": "Ben", "otherwise": "Hm.",
         "rules": [{"when": [["4 March"]], "says": "Yes.", "marks": ["agrees"]}]},
    ],
}  # fmt: skip


def told(*mails: tuple[str, str]) -> list[tuple[str, tuple[str, ...]]]:
    talk = Talk(Script.of(DOCUMENT))
    heard = [talk.hear(f"{who}@a.example", text) for who, text in mails]
    return [(one.text, one.marks) for one in heard if one is not None]


def test_a_person_says_what_was_asked_and_nothing_else():
    assert told(("ann", "What is the DAY?")) == [("On 4 March.", ("said:day",))]
    assert told(("ann", "Which day,\nand which place?")) == [("On 4 March.\nIn Room 4.", ("said:day", "said:place"))]
    assert told(("ann", "Hello Ann"), ("ann", "Today or yesterday?")) == [("What about it?", ())] * 2
    assert told(("ann", "> the day\nThanks")) == [("What about it?", ())]
    assert told(("carl", "Which day?")) == []


def test_a_mind_is_changed_once_and_only_after_what_must_come_before():
    asked = ("ann", "Please confirm 4 March")
    assert told(asked) == [("Not yet.", ())]
    mails = (("ben", "4 March?"), asked, asked, ("ann", "confirm 6 March, not 4 March"), ("ann", "Confirm 6 March"))
    assert [marks for _, marks in told(*mails)] == [("agrees",), ("changed",), (), (), ("confirmed",)]


def test_a_person_falls_silent_so_that_no_one_can_try_everything():
    talk = Talk(Script.of(DOCUMENT))
    answers = [talk.hear("ann@a.example", "day") for _ in range(MAX_ANSWERS + 3)]
    assert [one is None for one in answers] == [False] * MAX_ANSWERS + [True] * 3


def test_the_same_mails_are_answered_alike_each_time():
    mails = (("ann", "day and place"), ("ben", "4 March?"), ("ann", "confirm 4 March"))
    assert told(*mails) == told(*mails)


@pytest.mark.parametrize(
    "broken",
    [{}, [], {**DOCUMENT, "people": [{}]}, {**DOCUMENT, "people": [{**DOCUMENT["people"][1], "rules": [{"when": 1}]}]}],
)
def test_a_file_that_is_no_script_is_refused_by_its_name(broken, tmp_path: Path):
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / FILE).write_text(json.dumps(broken))
    with pytest.raises(InputError, match=FILE):
        load_script(tmp_path)


def test_a_task_without_a_script_has_none(tmp_path: Path):
    assert load_script(tmp_path) is None
