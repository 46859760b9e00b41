"""The workbench holds what the docs say it holds, and nothing that the quickstart's environment would need."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from journeyman.sandbox.protocol import Provider, SandboxSpec
from journeyman.tools import SandboxTools
from journeyman.tools.agent_environment import AGENT_DISTRIBUTIONS
from journeyman.tools.workbench import (
    TOOL_DISTRIBUTIONS,
    WORKBENCH_DISTRIBUTIONS,
    WORKBENCH_MODULES,
    workbench_environment,
)

DOCS = Path(__file__).parents[2] / "docs" / "tools.md"


def test_the_docs_list_every_module_of_the_workbench() -> None:
    text = DOCS.read_text()
    assert [name for name in WORKBENCH_MODULES if f"`{name}`" not in text] == []


def test_the_quickstart_environment_stays_the_small_one() -> None:
    assert AGENT_DISTRIBUTIONS == ("openpyxl", "pdfplumber", "python-docx")
    assert set(AGENT_DISTRIBUTIONS) < set(TOOL_DISTRIBUTIONS) < set(WORKBENCH_DISTRIBUTIONS)


@pytest.mark.slow
def test_code_in_the_workbench_imports_each_module(office_provider: Provider, tmp_path: Path) -> None:
    environment = workbench_environment(tmp_path / "environments")
    spec = SandboxSpec(
        label="test-workbench",
        environment=environment,
        memory_mb=2048,
        waive=frozenset({"memory", "pids", "disk", "cpus"}),
    )
    sandbox = office_provider.create(spec)
    try:
        tools = SandboxTools(sandbox, servers=("code",))
        for name in WORKBENCH_MODULES:
            seen = json.loads(tools.call("code_exec", {"code": f"python3 -c 'import {name}'"}, deadline_s=60).text)
            assert seen["success"], (name, seen["output"])
        plot = "python3 -c 'import matplotlib.pyplot as p; p.plot([1, 2]); p.savefig(\"x.png\")' && ls -s x.png"
        assert json.loads(tools.call("code_exec", {"code": plot}, deadline_s=60).text)["success"]
    finally:
        sandbox.destroy()
