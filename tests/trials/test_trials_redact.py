"""Secrets do not get into what is written and shown: planted keys are looked for in every form they may take."""

from __future__ import annotations

import itertools
import json
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from journeyman.redact import MIN_SECRET_CHARS, SHAPES, Redactor, clean_record, secrets_of

PLANTED = 'p"lanted\\key/=+ü-1234'


def test_a_planted_value_is_replaced_by_its_name_in_every_form_it_is_written_in() -> None:
    redact = Redactor({PLANTED: "MY_KEY"})
    forms = [PLANTED, json.dumps({"a": PLANTED}), json.dumps(PLANTED, ensure_ascii=False), quote(PLANTED, safe="")]
    for form in forms:
        found = redact(f"before {form} after")
        assert "lanted" not in found
        assert "[secret MY_KEY]" in found
        assert found.startswith("before ")
        assert found.endswith(" after")


SHAPED = {
    "sk-...": "sk-proj-AbCdEf0123456789_xyz",
    "hf_...": "hf_AbCdEfGhIjKlMnOpQrSt",
    "github token": "ghp_0123456789abcdefABCDEF0123",
    "AWS key id": "AKIAABCDEFGHIJKLMNOP",
    "Google key": "AIza0123456789abcdefghijABCDEFGHIJ_-x",
    "Slack token": "xoxb-12345-abcdef-XYZ",
    "JWT": "eyJhbGciOiJI.eyJzdWIiOiIx.SflKxwRJSMeKKF2QT4",
    "private key": "-----BEGIN RSA PRIVATE KEY-----\nMIIabc\n-----END RSA PRIVATE KEY-----",
    "bearer": "Bearer abcdef0123456789==",
    "password in a URL": "https://ann:pa55word@example.org/x",
}


@pytest.mark.parametrize("name", SHAPES)
def test_text_that_is_shaped_like_a_key_is_replaced_although_nobody_named_it(name: str) -> None:
    secret = SHAPED[name].removeprefix("Bearer ")
    found = Redactor()(f'{{"header": "{SHAPED[name]}"}}')
    assert f"[secret {name}]" in found
    for part in secret.split("\n"):
        assert part not in found
    assert json.loads(json.dumps(found)) == found


@pytest.mark.parametrize(
    "text",
    [
        "the task-force met; risk-averse clients sk-1",
        "AKIA is a syllable",
        "sheet eyJ.eyJ",
        "https://example.org:8080/path?q=a@b",
        "Bearer of news",
        "a -----BEGIN CERTIFICATE----- block",
        "hf_short ghp_ AIza xoxb-",
    ],
)
def test_ordinary_text_is_left_alone(text: str) -> None:
    assert Redactor({"a-real-secret": "X"})(text) == text


def test_variables_are_secrets_by_their_names() -> None:
    environment = {
        "OPENAI_API_KEY": "value-one",
        "HF_TOKEN": "value-two",
        "DB_PASSWORD": "value-three",
        "AWS_SECRET_ACCESS_KEY": "value-four",
        "TOKENIZERS_PARALLELISM": "false-false",
        "PATH": "/usr/bin:/bin",
        "MONKEY": "value-five",
        "JUDGE_KEY_1": "value-six",
        "API_KEY_2": "value-seven",
        "SHORT_TOKEN": "abc",
    }
    found = secrets_of(environment, names=["JUDGE_KEY_1"])
    assert sorted(found.values()) == [
        "API_KEY_2",
        "AWS_SECRET_ACCESS_KEY",
        "DB_PASSWORD",
        "HF_TOKEN",
        "JUDGE_KEY_1",
        "OPENAI_API_KEY",
    ]
    redact = Redactor(found)
    assert redact("is value-two in MONKEY=value-five?") == "is [secret HF_TOKEN] in MONKEY=value-five?"


def test_a_value_that_is_part_of_another_leaves_nothing_of_the_longer_one() -> None:
    redact = Redactor({"abcdefgh": "SHORT", "abcdefgh-and-more": "LONG"})
    assert redact("x abcdefgh-and-more abcdefgh y") == "x [secret LONG] [secret SHORT] y"


def test_data_is_redacted_at_every_depth_and_numbers_stay() -> None:
    redact = Redactor({"planted-key": "K"})
    value = {"a": ["planted-key", 1, None, {"planted-key": (True, 2.5, "x planted-key")}]}
    assert redact.data(value) == {"a": ["[secret K]", 1, None, {"[secret K]": [True, 2.5, "x [secret K]"]}]}


@given(st.text(min_size=MIN_SECRET_CHARS, max_size=40), st.text(max_size=20), st.text(max_size=20))
def test_no_value_survives_whatever_stands_around_it(secret: str, before: str, after: str) -> None:
    redact = Redactor({secret: "K"}, shapes=False)
    found = redact(f"{before}\u0001{secret}\u0001{after}")
    assert "[secret K]" in found
    assert redact(json.dumps({"x": secret})).find(json.dumps(secret)[1:-1]) < 0 or secret in "[secret K]"


def test_values_too_short_to_be_secrets_do_not_tear_text() -> None:
    assert Redactor(["a", "", "1234567"])("a 1234567") == "a 1234567"


def test_a_secret_that_spans_tokens_is_gone_from_all_of_them() -> None:
    redact = Redactor({"planted-key-1": "K"})
    assert redact.pieces(["a pla", "nted", "-key-1 b", "c"]) == ["a [secret K]", "", " b", "c"]
    assert redact.pieces(["planted-key-1planted-key-1"]) == ["[secret K][secret K]"]
    assert redact.pieces(["", "x", ""]) == ["", "x", ""]
    assert redact.pieces(["key sk-abcdefgh", "ijklmnopqrst", "uv end"]) == ["key [secret sk-...]", "", " end"]


@given(st.text(alphabet="abk-1 ", max_size=60), st.lists(st.integers(0, 60), max_size=8))
def test_however_a_text_is_cut_its_pieces_join_to_the_redacted_text(text: str, cuts: list[int]) -> None:
    redact = Redactor({"ab-ab-ab": "K"}, shapes=False)
    bounds = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    pieces = [text[start:end] for start, end in itertools.pairwise(bounds)]
    assert "".join(redact.pieces(pieces)) == redact(text)


def test_a_record_is_cleaned_but_for_the_policys_own_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANTED_API_KEY", "planted-0123456789")
    record = {"error": ["E", "bad planted-0123456789"], "deliverables": {"a": "planted-0123456789"}, "n": 1}
    assert clean_record(record) == {
        "error": ["E", "bad [secret PLANTED_API_KEY]"],
        "deliverables": {"a": "planted-0123456789"},
        "n": 1,
    }
    monkeypatch.delenv("PLANTED_API_KEY")
    assert clean_record(record) == record
