"""What each kind of fault does, which rule decides a call, and what a broken file is answered with."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from journeyman.errors import InputError
from journeyman.tools.fault_rules import CONFIG_FILE, ERROR_TYPES, load_plan, load_world_plans, plan_of
from journeyman.tools.faults import BEHAVIOURS, FaultyTools
from journeyman.tools.protocol import Observation

ANSWER = "forty-two pages about pumps"


class Notes:
    """Tools over a list in memory: every call leaves a note, so what really happened can be seen."""

    NAMES = ("mail_send_mail", "mail_list_mails", "pdfs_read_pdf_pages", "code_exec")

    def __init__(self) -> None:
        self.schemas: Mapping[str, Mapping[str, Any]] = {name: {"type": "object"} for name in self.NAMES}
        self.descriptions = {name: name for name in self.NAMES}
        self.notes: list[tuple[str, Mapping[str, Any], float]] = []
        self.dropped: list[str] = []
        self.is_closed = False

    def call(self, name: str, arguments: Mapping[str, Any], *, deadline_s: float = 60.0) -> Observation:
        self.notes.append((name, arguments, deadline_s))
        return Observation(ANSWER)

    def drop_connection(self, name: str) -> None:
        self.dropped.append(name)

    def close(self) -> None:
        self.is_closed = True


class Hands:
    """A clock that only moves when somebody waits."""

    def __init__(self) -> None:
        self.now = 0.0
        self.waits: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds


def faulty(*rules: dict[str, Any], seed: int = 0, **options: Any) -> tuple[FaultyTools, Notes, Hands]:
    notes, hands = Notes(), Hands()
    plan = plan_of({"seed": seed, "error_rules": list(rules)})
    return FaultyTools(notes, [plan], sleep=hands.sleep, clock=lambda: hands.now, **options), notes, hands


def test_every_error_type_has_a_behaviour():
    assert set(BEHAVIOURS) == set(ERROR_TYPES)


@pytest.mark.parametrize(
    ("rule", "text", "is_error", "num_real_calls", "waits"),
    [
        ({"error_type": "timeout"}, "error: code_exec did not answer within 7 s", True, 0, [7.0]),
        ({"error_type": "rate_limit"}, "error: rate limit reached for code_exec; retry after 5 s", True, 0, []),
        ({"error_type": "permission_denied"}, "error: permission denied for code_exec", True, 0, []),
        ({"error_type": "permission_denied", "message": "not yours"}, "error: not yours", True, 0, []),
        ({"error_type": "server_error"}, "error: code_exec failed with an internal server error (500)", True, 0, []),
        (
            {"error_type": "server_error", "metadata": {"after_side_effect": True}},
            "error: code_exec failed with an internal server error (500)",
            True,
            1,
            [],
        ),
        (
            {"error_type": "dropped_connection"},
            "error: the connection to the server of code_exec closed before it answered",
            True,
            0,
            [],
        ),
        ({"error_type": "malformed_response", "metadata": {"keep_share": 0.5}}, ANSWER[:13], False, 1, []),
        (
            {"error_type": "slow", "metadata": {"distribution": "constant", "delay_s": 3}},
            ANSWER,
            False,
            1,
            [3.0],
        ),
        (
            {"error_type": "slow", "metadata": {"distribution": "constant", "delay_s": 30}},
            "error: code_exec did not answer within 7 s",
            True,
            0,
            [7.0],
        ),
    ],
)
def test_each_type_behaves_like_what_it_is_called(rule, text, is_error, num_real_calls, waits):
    tools, notes, hands = faulty(rule)
    seen = tools.call("code_exec", {}, deadline_s=7)
    assert (seen.text, seen.is_error, seen.injected) == (text, is_error, rule["error_type"])
    assert len(notes.notes) == num_real_calls
    assert hands.waits == waits
    assert [(one.tool, one.call_index, one.error_type) for one in tools.injected] == [
        ("code_exec", 0, rule["error_type"])
    ]


def test_a_timeout_really_waits_to_the_deadline():
    tools = FaultyTools(Notes(), [plan_of({"error_rules": [{"error_type": "timeout"}]})])
    started = time.monotonic()
    seen = tools.call("code_exec", {}, deadline_s=0.3)
    assert time.monotonic() - started >= 0.3
    assert 0.3 <= seen.elapsed_s < 2


def test_a_slow_call_leaves_the_tool_what_remains_of_the_deadline():
    tools, notes, _ = faulty({"error_type": "slow", "metadata": {"distribution": "constant", "delay_s": 3}})
    tools.call("code_exec", {}, deadline_s=10)
    assert notes.notes[0][2] == 7


def test_a_rate_limit_refuses_until_its_time_is_over_and_then_lets_the_call_through():
    tools, notes, hands = faulty({"error_type": "rate_limit", "tool": "mail_*", "metadata": {"retry_after_s": 4}})
    assert tools.call("mail_list_mails", {}).text.endswith("retry after 4 s")
    hands.sleep(1.5)
    assert tools.call("mail_send_mail", {}).text.endswith("retry after 2.5 s")
    assert not notes.notes
    hands.sleep(2.5)
    assert tools.call("mail_list_mails", {}) == Observation(ANSWER)
    assert tools.call("mail_list_mails", {}).injected == "rate_limit"


def test_a_refused_call_within_a_rate_limit_uses_up_no_occurrence():
    tools, _, hands = faulty({"error_type": "rate_limit", "max_occurrences": 2, "metadata": {"retry_after_s": 4}})
    kinds = []
    for _ in range(8):
        kinds.append(tools.call("code_exec", {}).injected)
        hands.sleep(1)
    hands.sleep(10)
    kinds += [tools.call("code_exec", {}).injected for _ in range(3)]
    assert kinds == ["rate_limit"] * 4 + [None] + ["rate_limit"] * 3 + [None] * 3


def test_a_dropped_connection_is_dropped_in_earnest_where_there_is_one():
    tools, notes, _ = faulty({"error_type": "dropped_connection"})
    tools.call("code_exec", {})
    assert notes.dropped == ["code_exec"]


@pytest.mark.parametrize(
    ("rules", "name", "arguments", "injected"),
    [
        ([{"error_type": "timeout", "tool": "mail_*"}], "code_exec", {}, None),
        ([{"error_type": "timeout", "tool": "mail_*"}], "mail_send_mail", {}, "timeout"),
        ([{"error_type": "timeout", "tool": "MAIL_SEND_MAIL*"}, {"error_type": "slow"}], "mail_send_mail", {}, "slow"),
        ([{"error_type": "timeout", "paths": ["*.pdf"]}], "pdfs_read_pdf_pages", {"file_path": "/a/b.pdf"}, "timeout"),
        ([{"error_type": "timeout", "paths": ["*.pdf"]}], "pdfs_read_pdf_pages", {"file_path": "/a/b.xlsx"}, None),
        ([{"error_type": "timeout", "paths": ["*.pdf"]}], "code_exec", {"deep": [{"x": "c.pdf"}]}, "timeout"),
        ([{"error_type": "timeout", "paths": ["*.pdf"]}], "code_exec", {"c.pdf": 1}, None),
        # the first that matches decides alone, also when its draw lets the call through
        ([{"error_type": "timeout", "probability": 0}, {"error_type": "server_error"}], "code_exec", {}, None),
        (
            [{"error_type": "timeout", "max_occurrences": 0}, {"error_type": "server_error"}],
            "code_exec",
            {},
            "server_error",
        ),
        ([{"error_type": "timeout", "paths": ["x"]}, {"error_type": "server_error"}], "code_exec", {}, "server_error"),
    ],
)
def test_the_first_rule_that_matches_and_is_not_used_up_decides(rules, name, arguments, injected):
    tools, _, _ = faulty(*rules, is_strict=False)
    assert tools.call(name, arguments).injected == injected


def test_a_rule_that_is_used_up_leaves_the_call_to_the_next_one():
    tools, _, _ = faulty({"error_type": "timeout", "max_occurrences": 2}, {"error_type": "server_error"})
    kinds = [tools.call("code_exec", {}).injected for _ in range(4)]
    assert kinds == ["timeout", "timeout", "server_error", "server_error"]


def test_draws_depend_on_the_tool_and_its_own_calls_only():
    rule = {"error_type": "server_error", "probability": 0.4}
    alone, _, _ = faulty(rule, seed=3)
    one_by_one = [alone.call("code_exec", {}).injected for _ in range(40)]
    mixed, _, _ = faulty(rule, seed=3)
    among_others = []
    for index in range(40):
        for _ in range(index % 3):
            mixed.call("mail_list_mails", {})
        among_others.append(mixed.call("code_exec", {}).injected)
    assert one_by_one == among_others
    assert 6 <= sum(kind is not None for kind in one_by_one) <= 26  # 16 expected, standard deviation 3.1
    other, _, _ = faulty(rule, seed=4)
    assert one_by_one != [other.call("code_exec", {}).injected for _ in range(40)]
    trial, _, _ = faulty(rule, {"error_type": "slow"}, seed=3)
    trial.seed = 1
    assert one_by_one != [trial.call("code_exec", {}).injected for _ in range(40)]


def test_a_lognormal_delay_has_the_median_that_was_asked_for_and_respects_its_maximum():
    metadata = {"distribution": "lognormal", "median_s": 2, "sigma": 0.8, "max_s": 9}
    tools, _, hands = faulty({"error_type": "slow", "metadata": metadata})
    for _ in range(400):
        tools.call("code_exec", {}, deadline_s=60)
    waits = sorted(hands.waits)
    assert 1.7 < waits[200] < 2.35  # the standard error of the median is 2 * 0.8 * 1.25 / sqrt(400) = 0.1
    assert waits[-1] == 9
    assert waits[0] > 0


@pytest.mark.parametrize(
    ("document", "where", "words"),
    [
        ([], "faults", "seed and error_rules"),
        ({"error_rule": []}, "faults.error_rule", "did you mean error_rules?"),
        ({"seed": "x"}, "faults:seed", "whole number"),
        ({"error_rules": {}}, "faults:error_rules", "list of rules"),
        ({"error_rules": ["timeout"]}, "faults:error_rules[0]", "an object"),
        ({"error_rules": [{}]}, "faults:error_rules[0].error_type", "rate_limit"),
        ({"error_rules": [{"error_type": "time_out"}]}, "faults:error_rules[0].error_type", "did you mean timeout?"),
        ({"error_rules": [{"error_type": "slow", "probabilty": 1}]}, "faults:error_rules[0].probabilty", "probability"),
        ({"error_rules": [{"error_type": "slow", "probability": 1.5}]}, "faults:error_rules[0].probability", "0 to 1"),
        ({"error_rules": [{"error_type": "slow", "probability": True}]}, "faults:error_rules[0].probability", "True"),
        ({"error_rules": [{"error_type": "slow", "paths": "*.pdf"}]}, "faults:error_rules[0].paths", "list of globs"),
        ({"error_rules": [{"error_type": "slow", "max_occurrences": -1}]}, "faults:error_rules[0].max_occu", "-1"),
        (
            {"error_rules": [{"error_type": "slow"}, {"error_type": "slow", "metadata": {"distribution": "normal"}}]},
            "faults:error_rules[1].metadata.distribution",
            "did you mean lognormal?",
        ),
        (
            {"error_rules": [{"error_type": "rate_limit", "metadata": {"retry_after": 3}}]},
            "faults:error_rules[0].metadata.retry_after",
            "did you mean retry_after_s?",
        ),
    ],
)
def test_a_broken_file_is_refused_with_field_and_nearest(document, where, words):
    with pytest.raises(InputError) as refused:
        plan_of(document)
    assert refused.value.where.startswith(where)
    assert words in str(refused.value)


def test_a_rule_for_a_tool_that_nobody_has_is_refused():
    with pytest.raises(InputError, match=r"'mail_sent_mail' matches no tool; did you mean mail_send_mail\?"):
        faulty({"error_type": "timeout", "tool": "mail_sent_mail"})


def test_a_file_that_is_no_json_is_refused_by_name(tmp_path):
    (tmp_path / "faults.json").write_text("{")
    with pytest.raises(InputError, match=r"faults\.json: is no JSON"):
        load_plan(tmp_path / "faults.json")
    with pytest.raises(InputError, match="cannot be read"):
        load_plan(tmp_path / "absent.json")


def test_a_world_keeps_one_file_per_server_whose_globs_name_its_own_tools(tmp_path):
    place = tmp_path / "mail" / CONFIG_FILE
    place.parent.mkdir(parents=True)
    place.write_text(json.dumps({"error_rules": [{"error_type": "server_error", "tool": "list_*"}]}))
    tools = FaultyTools(Notes(), load_world_plans(tmp_path))
    assert tools.call("mail_list_mails", {}).injected == "server_error"
    assert tools.call("mail_send_mail", {}).injected is None
    assert tools.call("code_exec", {}).injected is None
    place.parents[1].rename(tmp_path / "male")
    with pytest.raises(InputError, match="no tool of a server 'male'"):
        FaultyTools(Notes(), load_world_plans(tmp_path))


def test_an_unknown_tool_is_answered_by_the_real_tools_and_closing_closes_them():
    tools, notes, _ = faulty({"error_type": "timeout"})
    assert tools.call("nothing", {}) == Observation(ANSWER)
    assert replace(tools.call("code_exec", {}), elapsed_s=0).injected == "timeout"
    tools.close()
    assert notes.is_closed
