from __future__ import annotations

import json
import math
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from journeyman.tasks import errors
from journeyman.tasks.errors import RewardFileEmpty, RewardFileMissing, RewardInvalid, VerifierCrashed
from journeyman.tasks.frames import decode_answer
from journeyman.tasks.reward_file import parse_reward_json, parse_reward_txt, read_reward
from journeyman.tasks.verdict import (
    CheckResult,
    Verdict,
    malformed,
    plain_text,
    scored,
    valid_reward,
    verdict_from_dict,
    verifier_error,
)

BAD_REWARDS = [math.nan, math.inf, -math.inf, 1.5, 7.5, -0.1, -2, True, False, "1", "0.5", None, [1], {"a": 1}, 10**400]


@pytest.mark.parametrize("value", BAD_REWARDS, ids=lambda v: str(v)[:12])
def test_what_is_not_one_finite_number_from_0_to_1_is_no_reward(value: object):
    with pytest.raises(RewardInvalid):
        valid_reward(value)
    with pytest.raises(RewardInvalid):
        scored(value, True)


@pytest.mark.parametrize("value", [0, 1, 0.0, 0.5, 1.0, 5e-324])
def test_a_number_from_0_to_1_is_a_reward(value: float):
    assert valid_reward(value) == value
    assert isinstance(valid_reward(value), float)


@pytest.mark.parametrize("text", ["nan", "inf", "-inf", "1.5", "-0.1", "7.5", "true", "one", "0.5 0.5", "1_0", "0x1"])
def test_a_reward_txt_with_anything_but_one_number_in_range_is_invalid(text: str):
    with pytest.raises(RewardInvalid):
        parse_reward_txt(text.encode())


@pytest.mark.parametrize(("text", "reward"), [("1", 1.0), (" 0.25\n", 0.25), ("1e-1", 0.1), (".5", 0.5), ("+0", 0.0)])
def test_a_reward_txt_with_one_number_is_that_number(text: str, reward: float):
    assert parse_reward_txt(text.encode()) == reward


@pytest.mark.parametrize(
    "text",
    [
        '{"reward": true}',
        '{"reward": "1"}',
        '{"reward": NaN}',
        '{"reward": Infinity}',
        '{"reward": 7.5, "x": -2}',
        '{"reward": 1, "x": -2}',
        '{"reward": 1.5}',
        '{"reward": -0.1}',
        '{"a": 1, "b": 0}',
        "{}",
        "[1]",
        "1",
        "not json",
        "[" * 100_000,
    ],
)
def test_a_reward_json_that_cannot_be_believed_is_invalid(text: str):
    with pytest.raises(RewardInvalid):
        parse_reward_json(text.encode())


def test_reward_json_gives_its_key_reward_or_its_only_key():
    assert parse_reward_json(b'{"reward": 0.5, "speed": 1}') == 0.5
    assert parse_reward_json(b'{"accuracy": 1}') == 1.0


def test_empty_files_and_wrong_encodings_have_their_own_reasons():
    for parse in (parse_reward_txt, parse_reward_json):
        with pytest.raises(RewardFileEmpty):
            parse(b" \n")
        with pytest.raises(RewardInvalid, match="UTF-8"):
            parse(b"\xff\xfe1")


def test_reward_json_wins_over_reward_txt_also_when_it_is_the_broken_one(tmp_path: Path):
    with pytest.raises(RewardFileMissing):
        read_reward(tmp_path)
    (tmp_path / "reward.txt").write_text("1")
    assert read_reward(tmp_path) == 1.0
    (tmp_path / "reward.json").write_text('{"reward": 0}')
    assert read_reward(tmp_path) == 0.0
    (tmp_path / "reward.json").write_text("{")
    with pytest.raises(RewardInvalid):
        read_reward(tmp_path)


def test_links_pipes_and_endless_files_in_the_place_of_a_reward_are_not_read(tmp_path: Path):
    (tmp_path / "elsewhere").write_text("1")
    (tmp_path / "reward.txt").symlink_to(tmp_path / "elsewhere")
    os.mkfifo(tmp_path / "reward.json")
    with pytest.raises(RewardFileMissing):
        read_reward(tmp_path)
    (tmp_path / "reward.json").unlink()
    (tmp_path / "reward.json").write_bytes(b" " * 3_000_000 + b'{"reward": 1}')
    with pytest.raises(RewardInvalid, match="longer than"):
        read_reward(tmp_path)


def test_only_a_verifier_error_has_no_number():
    good = scored(0.5, False, [{"id": "a", "kind": "gate", "score": 1, "explain": "equal"}])
    assert (good.kind, good.reward, good.passed) == ("scored", 0.5, False)
    assert good.checks == (CheckResult("a", "gate", 1.0, "equal"),)
    bad = malformed("no answer.json")
    assert (bad.kind, bad.reward, bad.passed, bad.explain) == ("malformed_deliverable", 0.0, False, "no answer.json")
    broken = verifier_error(VerifierCrashed("boom"))
    assert (broken.kind, broken.reward, broken.passed) == ("verifier_error", None, None)
    assert (broken.error, broken.explain) == ("VerifierCrashed", "boom")


@pytest.mark.parametrize(
    ("kind", "reward", "passed", "error"),
    [
        ("verifier_error", 0.0, None, "VerifierCrashed"),
        ("verifier_error", None, False, "VerifierCrashed"),
        ("verifier_error", None, None, None),
        ("malformed_deliverable", 0.5, False, None),
        ("malformed_deliverable", 0.0, True, None),
        ("malformed_deliverable", None, None, None),
        ("scored", None, True, None),
        ("scored", 1.5, True, None),
        ("scored", math.nan, True, None),
        ("scored", 1.0, None, None),
        ("scored", 1.0, True, "VerifierCrashed"),
        ("solved", 1.0, True, None),
    ],
)
def test_a_verdict_that_mixes_the_kinds_cannot_be_made(kind: str, reward: object, passed: object, error: object):
    with pytest.raises(ValueError, match="no such verdict"):
        Verdict(kind, reward, passed, error=error)  # type: ignore[arg-type]


def test_without_an_opinion_of_the_verifier_only_a_full_reward_passes():
    assert scored(1, None).passed is True
    assert scored(0.999, None).passed is False
    with pytest.raises(RewardInvalid, match="not a boolean"):
        scored(1, "yes")


@pytest.mark.parametrize(
    "checks",
    [{"id": "a"}, ["a"], [{"id": "a", "kind": "bonus", "score": 1}], [{"id": "a", "kind": "gate", "score": 2}], 5],
)
def test_checks_that_are_no_checks_make_the_grade_invalid(checks: object):
    with pytest.raises(RewardInvalid):
        scored(1, True, checks)


def test_every_verdict_survives_json():
    for verdict in (
        scored(0.5, False, [{"id": "a", "kind": "scored", "score": 0.5, "explain": "ü \ud800"}]),
        malformed("x"),
        verifier_error(VerifierCrashed("y")),
    ):
        assert verdict_from_dict(json.loads(json.dumps(verdict.to_dict()).encode())) == verdict


def test_explanations_are_bounded_and_always_encodable():
    text = plain_text("\ud800" + "x" * 5_000)
    assert text.encode().startswith(b"?xxx")
    assert text.endswith("[3001 characters left out]")


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "kind": st.sampled_from(["scored", "malformed_deliverable", "verifier_error", "won"]) | _json,
            "reward": _json,
            "passed": _json,
            "checks": _json,
            "explain": _json,
            "error": st.sampled_from(["VerifierTimeout", "SystemFault", "ClassVar", "annotations"]) | _json,
        },
    )
    | _json
)
def test_whatever_the_grader_answers_it_becomes_one_of_the_three_kinds(answer: object):
    verdict = decode_answer(json.dumps(answer).encode())
    if verdict.kind == "scored":
        assert isinstance(answer, dict)
        assert verdict.reward == answer["reward"]
        assert not isinstance(answer["reward"], bool)


@given(st.binary(max_size=40))
def test_bytes_that_are_no_answer_are_a_verifier_error(answer: bytes):
    assert decode_answer(answer).kind == "verifier_error"


def test_the_page_about_tasks_lists_every_verifier_error():
    page = (Path(__file__).parents[2] / "docs" / "tasks.md").read_text()
    faults = [k for k in vars(errors).values() if isinstance(k, type) and issubclass(k, errors.VerifierFault)]
    assert len(faults) > 8
    for fault in faults:
        words = " ".join((fault.__doc__ or "").split())
        assert fault is errors.VerifierFault or f"| `{fault.__name__}` | {words} |" in page
