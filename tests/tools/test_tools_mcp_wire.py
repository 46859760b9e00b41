"""Configurations of servers as they are found in the wild, and observations that survive the protocol unchanged."""

from __future__ import annotations

import json
import tomllib
from typing import Any

import pytest

from journeyman.errors import InputError
from journeyman.sandbox.errors import SandboxLost
from journeyman.tasks.task_sections import McpServer as HarborServer
from journeyman.tools.hosts import ToolDeadline
from journeyman.tools.mcp.servers import servers_of
from journeyman.tools.mcp.wire import MAX_CHARS, fault_of, to_error, to_observation, to_result
from journeyman.tools.protocol import Observation

types = pytest.importorskip("mcp_types", reason="the extra mcp is not installed")

HARBOR = """
[[environment.mcp_servers]]
name = "docs"
transport = "streamable-http"
url = "http://docs:8000/mcp"
headers = { Authorization = "Bearer ${DOCS_TOKEN}" }

[[environment.mcp_servers]]
name = "old"
url = "http://old:8000/sse"

[[environment.mcp_servers]]
name = "files"
transport = "stdio"
command = "files-server"
args = ["--root", "${ROOT:-/ws}"]
"""


def test_an_archipelago_gateway_configuration_is_read():
    entry = {"transport": "stdio", "command": "python", "args": ["main.py"], "cwd": "/app/mail", "env": {"ROOT": "/x"}}
    (found,) = servers_of({"mcpServers": {"mail_server": entry}}, environ={})
    assert (found.name, found.transport, found.command, found.args) == ("mail_server", "stdio", "python", ("main.py",))
    assert (found.cwd, dict(found.env), found.has_prefix) == ("/app/mail", {"ROOT": "/x"}, False)


def test_harbors_servers_are_read_with_its_default_transport_and_variables():
    entries = tomllib.loads(HARBOR)["environment"]["mcp_servers"]
    environ = {"DOCS_TOKEN": "s3cret"}
    docs, old, files = servers_of(entries, environ=environ)
    assert (docs.transport, docs.headers["Authorization"]) == ("http", "Bearer s3cret")
    assert (old.transport, old.url) == ("sse", "http://old:8000/sse")
    assert (files.transport, files.args) == ("stdio", ("--root", "/ws"))
    assert all(server.has_prefix for server in (docs, old, files))
    read = [HarborServer.model_validate(entry) for entry in entries]
    assert servers_of(read, environ=environ) == (docs, old, files)


def test_a_secret_is_never_shown():
    config = {"a": {"url": "http://x/mcp", "headers": {"Authorization": "Bearer ${T}"}, "prefix": True}}
    (found,) = servers_of(config, environ={"T": "s3cret"})
    assert "s3cret" not in repr(found)
    with pytest.raises(
        InputError, match=r"mcpServers\.a\.headers\.Authorization: names the variable T, which is not set"
    ):
        servers_of(config, environ={})


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ("x", "an object of servers"),
        ({}, "names no server"),
        ({"a": 3}, "mcpServers.a: is of type int"),
        ({"a": {"comand": "x"}}, "mcpServers.a.comand: is no known field; allowed: transport"),
        ({"a": {"comand": "x"}}, "did you mean command?"),
        ({"a": {"command": "x", "transport": "pigeon"}}, "mcpServers.a.transport: is 'pigeon'; allowed: stdio, http"),
        ({"a": {"transport": "stdio"}}, "mcpServers.a.command: is missing"),
        ({"a": {"type": "http"}}, "mcpServers.a.url: is missing"),
        ({"a": {"command": "x", "url": "http://y"}}, "mcpServers.a.url: has no meaning"),
        ({"a": {"command": "x", "args": "-v"}}, "mcpServers.a.args: is '-v'"),
        ({"a": {"command": "x", "env": {"N": 3}}}, "mcpServers.a.env.N: is of type int"),
        ({"a b": {"command": "x"}}, "'a b' is no name"),
        ([{"command": "x"}], "mcpServers[0].name: is missing"),
        ([{"name": "a", "url": "u"}, {"name": "a", "url": "v"}], "names the server 'a' twice"),
    ],
)
def test_a_configuration_that_cannot_be_used_is_refused_with_its_field(document, words):
    with pytest.raises(InputError) as refused:
        servers_of(document, environ={})
    assert words in str(refused.value)


@pytest.mark.parametrize(
    "observation",
    [
        Observation(""),
        Observation("grüße\n\u2028 \x00 end"),
        Observation("error: no such file", is_error=True),
        Observation("cut", injected="malformed_response", spill="/tmp/tool_outputs/a.txt"),
    ],
)
def test_an_observation_is_the_same_after_the_protocol(observation):
    wire = json.loads(to_result(observation).model_dump_json(by_alias=True, exclude_none=True))
    assert to_observation(types.CallToolResult.model_validate(wire)) == observation


def test_what_cannot_be_sent_is_replaced_and_does_not_break_the_call():
    assert to_observation(to_result(Observation("half a pair \ud83d"))).text == "half a pair ?"


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"content": []}, "(no content)"),
        ({"content": [], "structuredContent": {"a": 1}}, '{"a": 1}'),
        ({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}, "a\nb"),
        (
            {"content": [{"type": "image", "data": "QUJDRA==", "mimeType": "image/png"}]},
            "[image of type image/png, 6 bytes, not shown]",
        ),
        ({"content": [{"type": "resource", "resource": {"uri": "file:///a", "text": "inside"}}]}, "inside"),
        ({"content": [{"type": "resource_link", "uri": "file:///a", "name": "a"}]}, "[resource_link file:///a]"),
    ],
)
def test_every_kind_of_content_becomes_words(given: dict[str, Any], text: str):
    assert to_observation(types.CallToolResult.model_validate(given)).text == text


def test_an_endless_answer_is_bounded_and_says_what_is_missing():
    result = types.CallToolResult(content=[types.TextContent(type="text", text="x" * (MAX_CHARS + 7))])
    seen = to_observation(result)
    assert seen.text.endswith("\n[7 characters left out]")
    assert len(seen.text) < MAX_CHARS + 50


def test_a_system_fault_keeps_its_cause_across_the_protocol():
    lost = fault_of("w", to_error(SandboxLost("s1", "call", "gone")))
    late = fault_of("w", to_error(ToolDeadline("pdfs_read_pdf_pages", 60)))
    assert lost is not None and late is not None
    assert (lost.cause, late.cause) == ("sandbox_failed", "tool_host_failed")
    assert "pdfs_read_pdf_pages did not answer within 60 s" in str(late)
    error = to_error(SandboxLost("s1", "call", "gone"))
    error.error.code = -32602
    assert fault_of("w", error) is None
