"""A world served over the protocol: the same as in process, for our client and the SDK's, and gone without a trace."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from journeyman.errors import InputError
from journeyman.sandbox import PROVIDERS
from journeyman.sandbox.protocol import AgentEnvironment, Provider
from journeyman.sandbox.reaper import traces
from journeyman.tools.fault_rules import CONFIG_FILE
from journeyman.tools.hosts import ToolDeadline
from journeyman.tools.mcp.endpoints import serve_http
from journeyman.tools.mcp.errors import McpHostFailed
from journeyman.tools.mcp.facade import facade
from journeyman.tools.mcp.world import WorldSpec, opened
from journeyman.tools.mcp_client import McpTools
from journeyman.tools.protocol import Observation

pytest.importorskip("mcp", reason="the extra mcp is not installed")

SERVERS = ("filesystem", "code")
FAULTS = {"error_rules": [{"error_type": "malformed_response", "tool": "get_directory_tree"}]}


@pytest.fixture(scope="module")
def spec(
    tmp_path_factory: pytest.TempPathFactory, office_provider: Provider, office_environment: AgentEnvironment
) -> WorldSpec:
    """A world as Archipelago lays it out, with a fault in one tool of the file server."""
    root = tmp_path_factory.mktemp("served")
    (root / "world/filesystem/reports").mkdir(parents=True)
    (root / "world/filesystem/reports/pumps.txt").write_text("42 pumps\n" * 3)
    config = root / "world/.apps_data/filesystem" / CONFIG_FILE
    config.parent.mkdir(parents=True)
    config.write_text(json.dumps(FAULTS))
    waive = frozenset({"memory", "pids"}) - office_provider.supports
    return WorldSpec(root / "world", SERVERS, environments=office_environment.path.parent, waive=waive)


def command(spec: WorldSpec, *more: str) -> list[str]:
    words = [sys.executable, "-m", "journeyman.cli.main", "mcp", "serve", str(spec.directory), "--quiet"]
    waived = [word for limit in sorted(spec.waive) for word in ("--waive", limit)]
    return [*words, "--servers", ",".join(spec.servers), "--environments", str(spec.environments), *waived, *more]


@pytest.fixture(scope="module")
def in_process(spec: WorldSpec) -> Iterator[Any]:
    with opened(spec) as tools:
        yield tools


@pytest.fixture(scope="module")
def over_stdio(spec: WorldSpec) -> Iterator[McpTools]:
    program, *args = command(spec)
    tools = McpTools({"mcpServers": {"world": {"command": program, "args": args}}})
    mine = [name for name, one in traces().items() if grandparent(one.identity.owner_pid) == os.getpid()]
    assert len(mine) == 1
    yield tools
    tools.close()
    assert not traces().keys() & set(mine)


def grandparent(pid: int) -> int:
    """Of a server that was started on its leash by this process: this process. 0 when there is none."""
    try:
        for _ in range(2):
            pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0
    return pid


def test_the_same_tools_are_offered_in_process_and_over_the_protocol(in_process, over_stdio):
    assert list(over_stdio.schemas) == list(in_process.schemas)
    assert over_stdio.schemas == in_process.schemas
    assert over_stdio.descriptions == in_process.descriptions
    assert over_stdio.contracts == dict(in_process.contracts)


@pytest.mark.parametrize(
    ("name", "arguments", "deadline_s"),
    [
        ("filesystem_list_files", {"path": "/"}, 60),
        ("filesystem_read_text_file", {"file_path": "/reports/pumps.txt"}, 60),
        ("filesystem_read_text_file", {"file_path": "/reports/pump.txt"}, 60),
        ("filesystem_read_text_file", {"path": 3}, 60),
        ("filesystem_search_files", {"pattern": "*.txt"}, 60),
        ("filesystem_get_directory_tree", {}, 60),  # the fault of the world: a cut answer
        ("filesystem_red_text_file", {}, 60),
        ("code_exec", {"code": "echo done > made.txt; cat made.txt; exit 3"}, 60),
        ("filesystem_read_text_file", {"file_path": "/made.txt"}, 60),
        ("code_exec", {"code": "print(1 + 1)"}, 60),
        ("code_exec", {"code": "seq 1 9000"}, 60),
        ("code_exec", {"code": "sleep 30"}, 1.5),
        ("code_exec", {"code": "ls -A /apps_data/filesystem/.config"}, 60),
    ],
)
def test_a_call_gives_the_same_in_process_and_over_the_protocol(in_process, over_stdio, name, arguments, deadline_s):
    here = replace(in_process.call(name, arguments, deadline_s=deadline_s), elapsed_s=0)
    there = replace(over_stdio.call(name, arguments, deadline_s=deadline_s), elapsed_s=0)
    assert untimed(there) == untimed(here)


def untimed(observation):
    """Without what depends on the instant of a kill: the seconds, and whether the shell could still say it."""
    text = re.sub(r"after [0-9.]+ s|Killed\\n", "", observation.text)
    return replace(observation, text=text)


def test_the_fault_of_a_world_is_marked_and_its_file_cannot_be_seen(over_stdio):
    assert over_stdio.call("filesystem_get_directory_tree", {}).injected == "malformed_response"
    assert "injected_errors" not in over_stdio.call("code_exec", {"code": "find / -name '*injected*' 2>/dev/null"}).text


def test_the_world_itself_is_never_changed(spec, over_stdio):
    over_stdio.call("code_exec", {"code": "rm -r /ws/reports; touch /ws/new"})
    assert (spec.directory / "filesystem/reports/pumps.txt").is_file()
    assert not (spec.directory / "filesystem/new").exists()


class Broken:
    """Tools whose machinery fails."""

    def __init__(self) -> None:
        self.schemas = {"wait": {"type": "object"}}
        self.descriptions = {"wait": "Waits."}
        self.contracts = {"wait": "probe"}

    def call(self, name: str, arguments: Any, *, deadline_s: float = 60.0) -> Observation:
        raise ToolDeadline(name, deadline_s)

    def close(self) -> None:
        pass


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_the_sdks_client_sees_tools_answers_and_errors(in_process, mode):
    from mcp import Client
    from mcp.shared.exceptions import MCPError

    async def talk() -> None:
        async with Client(facade(in_process), mode=mode) as client:
            listed = {tool.name: tool for tool in (await client.list_tools()).tools}
            assert list(listed) == list(in_process.schemas)
            hints = listed["filesystem_list_files"].annotations
            assert hints is not None and hints.read_only_hint
            found = await client.call_tool("filesystem_list_files", {"path": "/reports"})
            assert "pumps.txt" in found.content[0].text and not found.is_error
            wrong = await client.call_tool("filesystem_list_files", {"path": "/nowhere"})
            assert wrong.is_error and "no directory" in wrong.content[0].text
        async with Client(facade(Broken()), mode=mode) as client:
            with pytest.raises(MCPError, match="wait did not answer within 60 s") as failed:
                await client.call_tool("wait", {})
            assert failed.value.data == {"cause": "tool_host_failed", "type": "ToolDeadline"}

    asyncio.run(talk())


@contextmanager
def serving(spec: WorldSpec, *more: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A server over HTTP and its address."""
    words = command(spec, "--http", "127.0.0.1:0", "--json", *more)
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process, json.loads(process.stdout.readline())["url"]
        finally:
            process.kill()


def test_over_http_both_clients_work_on_one_view_and_sigterm_leaves_nothing(spec):
    from mcp import Client

    async def read(url: str) -> str:
        async with Client(url) as client:
            found = await client.call_tool("filesystem_read_text_file", {"file_path": "/made.txt"})
            return found.content[0].text

    with serving(spec) as (process, url):
        tools = McpTools({"mcpServers": {"world": {"url": url}}})
        try:
            assert not tools.call("code_exec", {"code": "echo shared > made.txt"}).is_error
            assert asyncio.run(read(url)) == "shared\n"
            process.terminate()
            assert process.wait(20) == 0
        finally:
            tools.close()
    assert not [name for name, one in traces(f"mcp-{process.pid}").items() if one.processes() or one.groups]


def test_a_token_is_asked_for_over_http_and_an_open_address_needs_one(spec):
    import httpx2

    with serving(spec, "--token", "s3cret") as (_, url):
        assert httpx2.post(url, json={}).status_code == 401
        tools = McpTools({"mcpServers": {"w": {"url": url, "headers": {"Authorization": "Bearer s3cret"}}}})
        assert not tools.call("filesystem_list_files", {"path": "/"}).is_error
        tools.close()
    with pytest.raises(InputError, match="is open to others; give --token too"):
        serve_http(Broken(), "0.0.0.0", 0)


def wait_until(holds: Callable[[], bool], limit_s: float) -> bool:
    ends_at = time.monotonic() + limit_s
    while time.monotonic() < ends_at and not holds():
        time.sleep(0.05)
    return holds()


INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "by hand", "version": "1"}},
}
SLEEP = {
    "jsonrpc": "2.0",
    "id": 2,
    "method": "tools/call",
    "params": {"name": "code_exec", "arguments": {"code": "sleep 100"}},
}


@pytest.mark.parametrize("how", ["end of input", "sigterm", "parent killed"])
def test_a_server_over_stdio_ends_in_mid_call_and_leaves_nothing(spec, how):
    """The input stays open where a signal or the death of the parent is to end it."""
    read, write = os.pipe()
    starter = (
        "import subprocess, sys; "
        "p = subprocess.Popen(sys.argv[1:], stdin=0); print('pid', p.pid, file=sys.stderr, flush=True); p.wait()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", starter, *command(spec)],
        stdin=read,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as parent:
        assert parent.stdout is not None and parent.stderr is not None
        os.close(read)
        server = int(parent.stderr.readline().split()[1])
        os.write(write, f"{json.dumps(INITIALIZE)}\n".encode())
        assert json.loads(parent.stdout.readline())["result"]["serverInfo"]["name"] == "journeyman"
        os.write(write, f"{json.dumps(SLEEP)}\n".encode())
        mine = f"mcp-{server}"
        assert wait_until(lambda: any(len(one.processes()) > 3 for one in traces(mine).values()), 30)
        if how == "parent killed":
            parent.kill()
        elif how == "sigterm":
            os.kill(server, signal.SIGTERM)
        else:
            os.close(write)
        assert wait_until(lambda: not Path(f"/proc/{server}").exists() and not traces(mine), 20)
        parent.kill()
    if how != "end of input":
        os.close(write)


def test_a_server_killed_itself_leaves_no_process(spec):
    with serving(spec) as (process, _):
        mine = f"mcp-{process.pid}"
        assert traces(mine)
        process.kill()
        process.wait()
        assert wait_until(lambda: not any(one.processes() for one in traces(mine).values()), 10)
    PROVIDERS["bwrap"]().reap(mine)
    assert not traces(mine)


def test_a_server_of_ours_killed_in_mid_call_is_back_in_less_than_two_seconds(spec):
    program, *args = command(spec)
    before = traces()
    tools = McpTools({"mcpServers": {"world": {"command": program, "args": args}}})
    try:
        tools.call("filesystem_list_files", {"path": "/"})
        owners = {one.identity.owner_pid for name, one in traces().items() if name not in before}
        (server,) = [pid for pid in owners if grandparent(pid) == os.getpid()]
        threading.Timer(1.0, os.kill, (server, signal.SIGKILL)).start()
        seen = tools.call("code_exec", {"code": "sleep 30"}, deadline_s=60)
        killed_at = time.monotonic()
        again = tools.call("filesystem_read_text_file", {"file_path": "/reports/pumps.txt"})
        lost_s = time.monotonic() - killed_at
        assert seen.is_error
        assert "ended before it answered; whether the call took effect is not known" in seen.text
        assert again.text.count("42 pumps") == 3
        assert tools.num_reconnects == {"world": 1}
        print(f"lost {lost_s:.2f} s, load {os.getloadavg()[0]:.1f}")
        assert lost_s < 2 * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))  # what others run here slows a start
    finally:
        tools.close()
        PROVIDERS["bwrap"]().reap()


def test_our_client_turns_a_fault_of_our_server_into_a_fault(tmp_path):
    program = tmp_path / "broken.py"
    program.write_text(
        "import sys\n"
        f"sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        "from test_tools_mcp_serve import Broken\n"
        "from journeyman.tools.mcp.endpoints import serve_stdio\n"
        "serve_stdio(Broken(), lambda: None)\n"
    )
    tools = McpTools({"mcpServers": {"broken": {"command": sys.executable, "args": [str(program)]}}})
    try:
        with pytest.raises(McpHostFailed, match="'broken': wait did not answer within") as failed:
            tools.call("wait", {})
        assert failed.value.cause == "tool_host_failed"
    finally:
        tools.close()


def test_a_server_that_we_did_not_write_is_used_like_our_own():
    pytest.importorskip("mcp_server_time", reason="mcp-server-time is not installed")
    config = {"time": {"command": sys.executable, "args": ["-m", "mcp_server_time", "--local-timezone", "UTC"]}}
    tools = McpTools({"mcpServers": config})
    try:
        assert list(tools.schemas) == ["get_current_time", "convert_time"]
        arguments = {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}
        seen = tools.call("convert_time", arguments)
        assert json.loads(seen.text)["target"]["datetime"].endswith("T21:00:00+09:00")
        assert tools.call("get_current_time", {"timezone": "Mars/Olympus"}).is_error
    finally:
        tools.close()


def test_a_directory_or_server_that_does_not_exist_is_refused(tmp_path):
    with pytest.raises(InputError, match="is no directory"), opened(WorldSpec(tmp_path / "absent")):
        pass
    with pytest.raises(InputError, match="did you mean filesystem"), opened(WorldSpec(tmp_path, ("filesytem",))):
        pass
    with pytest.raises(InputError, match="'web' runs beside a sandbox"), opened(WorldSpec(tmp_path, ("web",))):
        pass
