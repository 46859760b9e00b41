"""Entry programs: frames, and the fork server that gives each call a child of its own."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable

import pytest

from journeyman.sandbox.environment import forkserver_entry
from journeyman.sandbox.errors import CallKilled, CallRaised, CallTimedOut, SandboxLost
from journeyman.sandbox.protocol import AgentEnvironment, Provider, Sandbox

Opener = Callable[..., Sandbox]


def test_a_call_returns_what_the_function_returns(serve_calls: Opener) -> None:
    sandbox = serve_calls()
    assert sandbox.call(b"abc", deadline_s=10) == b"cba"
    assert sandbox.call(b"", deadline_s=10) == b""
    assert sandbox.call(b"x" * 3_000_000, deadline_s=10) == b"x" * 3_000_000
    assert sandbox.alive(deadline_s=1)


def test_an_exception_inside_arrives_with_its_type_and_text(serve_calls: Opener) -> None:
    sandbox = serve_calls()
    with pytest.raises(CallRaised) as caught:
        sandbox.call(b"raise", deadline_s=10)
    assert (caught.value.type_name, caught.value.message) == ("KeyError", "'no such row'")
    with pytest.raises(CallRaised, match="TypeError"):
        sandbox.call(b"text", deadline_s=10)
    with pytest.raises(CallRaised, match="SystemExit"):
        sandbox.call(b"exit", deadline_s=10)
    assert sandbox.call(b"ab", deadline_s=10) == b"ba"


def test_a_call_past_the_programs_deadline_dies_alone(serve_calls: Opener) -> None:
    sandbox = serve_calls(deadline_s=0.3)
    with pytest.raises(CallTimedOut) as caught:
        sandbox.call(b"sleep", deadline_s=10)
    assert caught.value.by_program
    assert sandbox.call(b"ab", deadline_s=10) == b"ba"


def test_a_call_past_the_callers_deadline_dies_and_the_next_one_is_served(serve_calls: Opener) -> None:
    sandbox = serve_calls()
    started = time.monotonic()
    with pytest.raises(CallTimedOut) as caught:
        sandbox.call(b"sleep", deadline_s=0.3)
    assert not caught.value.by_program
    assert time.monotonic() - started < 3
    assert sandbox.call(b"ab", deadline_s=10) == b"ba"


def test_a_call_that_is_killed_before_it_has_read_its_frame_is_never_answered_for_the_next(serve_calls: Opener) -> None:
    lost = 0
    for number in range(24):
        sandbox = serve_calls()
        with contextlib.suppress(CallTimedOut, SandboxLost):
            sandbox.call(b"%d " % number, deadline_s=0.0001 * (1 + number))
        try:
            assert sandbox.call(b"ab", deadline_s=10) == b"ba"
        except SandboxLost:
            lost += 1
        sandbox.destroy(deadline_s=10)
    assert lost < 24  # a frame that was read to its end costs the call alone


def test_a_call_that_takes_too_much_memory_is_killed_alone(serve_calls: Opener) -> None:
    sandbox = serve_calls(memory_mb=300)
    with pytest.raises(CallKilled, match="memory"):
        sandbox.call(b"allocate", deadline_s=20)
    assert sandbox.call(b"ab", deadline_s=10) == b"ba"


def test_a_call_that_dies_is_told_from_one_that_raised(serve_calls: Opener) -> None:
    sandbox = serve_calls()
    with pytest.raises(CallKilled, match="SIGKILL"):
        sandbox.call(b"die", deadline_s=10)
    assert sandbox.call(b"ab", deadline_s=10) == b"ba"


def test_a_call_leaves_no_process_to_the_next(
    open_isolated: Opener, environment: AgentEnvironment, isolating: Provider
) -> None:
    sandbox = open_isolated(environment=environment, entry=forkserver_entry("handler:handle"))
    sandbox.call(b"ab", deadline_s=10)
    (before,) = [info.num_processes for info in isolating.list() if info.id == sandbox.id]
    sandbox.call(b"daemon", deadline_s=10)
    assert [info.num_processes for info in isolating.list() if info.id == sandbox.id] == [before]


def test_a_call_that_was_taken_over_cannot_answer_for_the_server(
    open_isolated: Opener, environment: AgentEnvironment
) -> None:
    sandbox = open_isolated(environment=environment, entry=forkserver_entry("handler:handle"))
    assert sandbox.call(b"forge", deadline_s=10) == b"kept out"
    assert sandbox.call(b"ab", deadline_s=10) == b"ba"


def test_a_call_that_may_not_write_leaves_no_file_to_the_next(
    open_isolated: Opener, environment: AgentEnvironment
) -> None:
    writing = open_isolated(environment=environment, entry=forkserver_entry("handler:handle"))
    assert writing.call(b"write", deadline_s=10) == b"etirw"
    bounded = open_isolated(environment=environment, entry=forkserver_entry("handler:handle", file_mb=0))
    with pytest.raises((CallKilled, CallRaised)):
        bounded.call(b"write", deadline_s=10)


def test_an_entry_program_that_is_not_there_is_lost_with_its_last_words(open_sandbox: Opener) -> None:
    sandbox = open_sandbox(entry=("/no/such/program",))
    with pytest.raises(SandboxLost, match=r"not found|No such file"):
        sandbox.call(b"x", deadline_s=5)


def test_an_answer_that_is_no_frame_ends_the_sandbox(open_sandbox: Opener) -> None:
    sandbox = open_sandbox(entry=("/bin/sh", "-c", "while :; do echo nonsense; done"))
    with pytest.raises(SandboxLost, match="no frame"):
        sandbox.call(b"x", deadline_s=5)
    assert not sandbox.alive(deadline_s=1)


def test_a_program_that_never_answers_is_ended_at_the_deadline(open_sandbox: Opener) -> None:
    sandbox = open_sandbox(entry=("/bin/sh", "-c", "exec sleep 100"))
    started = time.monotonic()
    with pytest.raises(CallTimedOut):
        sandbox.call(b"x", deadline_s=0.2)
    assert time.monotonic() - started < 5
    assert not sandbox.alive(deadline_s=1)


def test_a_shell_serves_no_calls_and_a_program_no_commands(open_sandbox: Opener, serve_calls: Opener) -> None:
    with pytest.raises(ValueError, match="serves exec"):
        open_sandbox().call(b"x", deadline_s=1)
    with pytest.raises(ValueError, match="serves call"):
        serve_calls().exec("true", deadline_s=1)
