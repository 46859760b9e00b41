"""Servers of others as the tools of a trial: found, called, lost, brought back, and never left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from journeyman.errors import InputError
from journeyman.tools.mcp.connection import Patience
from journeyman.tools.mcp.errors import McpConnectFailed, McpServerLost, McpServerSilent
from journeyman.tools.mcp_client import McpTools

pytest.importorskip("mcp", reason="the extra mcp is not installed")

PLAIN = str(Path(__file__).with_name("mcp_plain_server.py"))


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    return tmp_path / "journal"


@pytest.fixture
def plain(journal: Path) -> Iterator[Callable[..., McpTools]]:
    """Opens tools over the server of ``mcp_plain_server.py``; closed afterwards, with nothing left of them."""
    made: list[McpTools] = []

    def make(**patience: float) -> McpTools:
        made.append(McpTools({"mcpServers": {"plain": server(journal)}}, patience=Patience(**patience)))
        return made[-1]

    yield make
    for tools in made:
        tools.close()
    assert not [pid for _, pid in lines(journal) if is_alive(pid)]


def server(journal: Path) -> dict[str, Any]:
    return {"command": sys.executable, "args": [PLAIN, str(journal)]}


def lines(journal: Path) -> list[tuple[str, int]]:
    words = [line.split() for line in journal.read_text().splitlines()] if journal.exists() else []
    return [(word, int(pid)) for word, pid in words]


def count(journal: Path, word: str) -> int:
    return sum(found == word for found, _ in lines(journal))


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_until(holds: Callable[[], bool], limit_s: float) -> bool:
    ends_at = time.monotonic() + limit_s
    while time.monotonic() < ends_at:
        if holds():
            return True
        time.sleep(0.02)
    return holds()


def test_a_call_gives_the_servers_text_and_every_page_of_tools_is_offered(plain):
    tools = plain()
    assert list(tools.schemas) == [
        *("echo", "note", "die", "die_once", "late", "wedge", "malformed", "refuse", "child"),
    ]
    seen = tools.call("echo", {"text": "grüße"})
    assert (seen.text, seen.is_error, seen.injected) == ("grüße", False, None)
    assert seen.elapsed_s > 0


def test_what_the_policy_can_act_on_is_text(plain):
    tools = plain()
    assert tools.call("ecko", {}).text == "error: no tool 'ecko'; did you mean echo?"
    assert tools.call("refuse", {}).text == "error: not like this"
    assert tools.call("malformed", {}).text.startswith("error: malformed gave a malformed answer")
    assert all(tools.call(name, {}).is_error for name in ("ecko", "refuse", "malformed"))


def test_a_server_killed_in_mid_call_costs_an_error_and_less_than_two_seconds(plain, journal):
    tools = plain()
    tools.call("echo", {})
    started = time.monotonic()
    seen = tools.call("die", {})
    again = tools.call("echo", {"text": "still here"})
    lost_s = time.monotonic() - started
    assert seen.is_error
    assert "ended before it answered; whether the call took effect is not known" in seen.text
    assert again.text == "still here"
    assert lost_s < 2
    assert count(journal, "start") == 2
    assert count(journal, "die") == 1  # not repeated: the server did not say that it may be
    assert tools.num_reconnects == {"plain": 1}


@pytest.mark.thorough
def test_a_standby_takes_over_from_a_server_that_is_slow_to_start(journal):
    slow = (
        f"import time, runpy, sys; time.sleep(2); sys.argv = [{PLAIN!r}, {str(journal)!r}]; runpy.run_path({PLAIN!r})"
    )
    tools = McpTools({"slow": {"command": sys.executable, "args": ["-c", slow], "standby": True}})
    try:
        assert wait_until(lambda: count(journal, "start") == 2, 20)
        started = time.monotonic()
        assert tools.call("die", {}).is_error
        assert tools.call("echo", {"text": "from the second"}).text == "from the second"
        assert time.monotonic() - started < 2
        assert wait_until(lambda: count(journal, "start") == 3, 20)
    finally:
        tools.close()
    assert wait_until(lambda: not any(is_alive(pid) for _, pid in lines(journal)), 5)


def test_a_call_that_may_be_repeated_survives_the_death_of_its_server(plain, journal):
    tools = plain()
    assert tools.call("die_once", {"text": "answered"}).text == "answered"
    assert count(journal, "die_once") == 2
    assert count(journal, "start") == 2


def test_a_server_that_dies_between_calls_is_back_before_the_next_one(plain, journal):
    tools = plain()
    os.kill(lines(journal)[0][1], signal.SIGKILL)
    assert wait_until(lambda: count(journal, "start") == 2, 10)
    assert tools.call("note", {"text": "kept"}).text == "kept"
    assert count(journal, "note") == 1


def test_a_missed_deadline_is_an_error_while_the_server_lives(plain, journal):
    tools = plain()
    started = time.monotonic()
    seen = tools.call("late", {}, deadline_s=0.5)
    assert 0.5 <= time.monotonic() - started < 2
    assert seen.text == "error: late did not answer within 0.5 s; the call was cancelled"
    assert tools.call("echo", {"text": "at once"}).text == "at once"
    assert count(journal, "start") == 1


def test_a_server_that_hangs_is_a_system_fault_and_replaced(plain, journal):
    tools = plain(ping_s=0.3)
    with pytest.raises(McpServerSilent, match=r"'plain' hangs: no answer to wedge within 0\.3 s") as silent:
        tools.call("wedge", {}, deadline_s=0.3)
    assert silent.value.cause == "tool_host_failed"
    assert tools.call("echo", {"text": "a new one"}).text == "a new one"
    assert count(journal, "start") == 2


def test_a_server_that_never_comes_back_ends_the_trial_by_name(journal, tmp_path):
    script = tmp_path / "server.py"
    script.write_text(Path(PLAIN).read_text())
    config = {"mcpServers": {"gone": {"command": sys.executable, "args": [str(script), str(journal)]}}}
    tools = McpTools(config, patience=Patience(reconnect_s=0.5))
    try:
        script.write_text("raise SystemExit('the disk is gone')")
        assert tools.call("die", {}).is_error
        with pytest.raises(McpServerLost, match=r"'gone' was lost: .*the disk is gone"):
            tools.call("echo", {}, deadline_s=20)
    finally:
        tools.close()


def test_a_server_that_keeps_dying_is_given_up(plain):
    tools = plain(max_reconnects=2)
    assert tools.call("die", {}).is_error
    assert tools.call("die", {}).is_error
    assert tools.call("die", {}).is_error
    with pytest.raises(McpServerLost, match="ended 3 times"):
        tools.call("echo", {})


@pytest.mark.thorough
def test_servers_that_cannot_be_reached_fail_the_start_and_are_all_named(journal):
    broken = {
        "absent": {"command": "no-such-program"},
        "dies": {"command": "/bin/sh", "args": ["-c", "echo no licence >&2; exit 3"]},
        "nobody": {"url": "http://127.0.0.1:9/mcp"},
        "silent": {"command": "/bin/sh", "args": ["-c", "sleep 100"]},
        "plain": server(journal),
    }
    with pytest.raises(McpConnectFailed) as failed:
        McpTools({"mcpServers": broken}, connect_deadline_s=4)
    assert set(failed.value.reasons) == {"absent", "dies", "nobody", "silent"}
    assert failed.value.cause == "tool_host_failed"
    assert "no-such-program" in failed.value.reasons["absent"]
    assert "no licence" in failed.value.reasons["dies"]
    assert "did not answer within 4 s" in failed.value.reasons["silent"]
    assert wait_until(lambda: not is_alive(lines(journal)[0][1]), 5)


def test_two_servers_carry_their_names_and_equal_names_without_them_are_refused(journal, tmp_path):
    two = {"a": server(journal), "b": server(tmp_path / "other")}
    tools = McpTools({"mcpServers": two})
    assert {"a_echo", "b_echo"} <= set(tools.schemas)
    assert tools.call("b_echo", {"text": "b"}).text == "b"
    tools.close()
    for entry in two.values():
        entry["prefix"] = False
    with pytest.raises(InputError, match="'echo', and so does 'a'; set prefix = true"):
        McpTools({"mcpServers": two})


def test_closing_ends_the_server_with_everything_it_started(journal):
    tools = McpTools({"mcpServers": {"plain": server(journal)}})
    child = int(tools.call("child", {}).text)
    assert is_alive(child)
    tools.close()
    tools.close()
    assert wait_until(lambda: not is_alive(child) and not is_alive(lines(journal)[0][1]), 5)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_killing_the_owner_leaves_no_server_and_nothing_that_it_started(journal, number):
    owner = f"""
import sys, time
from journeyman.tools.mcp_client import McpTools
tools = McpTools({{"mcpServers": {{"plain": {server(journal)!r}}}}})
print(tools.call("child", {{}}).text, flush=True)
tools.call("wedge", {{}}, deadline_s=100)
"""
    with subprocess.Popen([sys.executable, "-c", owner], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        child = int(process.stdout.readline())
        assert wait_until(lambda: count(journal, "wedge") == 1, 10)
        process.send_signal(number)
        process.wait(10)
    pids = [child, *(pid for _, pid in lines(journal))]
    assert wait_until(lambda: not any(is_alive(pid) for pid in pids), 5)


def test_a_dropped_connection_is_brought_back(plain, journal):
    tools = plain()
    tools.drop_connection("echo")
    assert tools.call("echo", {"text": "back"}).text == "back"
    assert count(journal, "start") == 2


def test_closed_tools_say_so(plain):
    tools = plain()
    tools.close()
    with pytest.raises(RuntimeError, match="closed"):
        tools.call("echo", {})
