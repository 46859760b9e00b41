"""react and toolbelt over the real tools, in a real sandbox, on a real workbook: the file is as the policy left it."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator

import openpyxl
import pytest
from harness_driving import Opened

from journeyman.harness import Budget
from journeyman.sandbox.protocol import AgentEnvironment, Provider, Sandbox, SandboxSpec
from journeyman.tools.sandbox_tools import SandboxTools
from journeyman.tools.workbench import tools_environment

BUDGET = Budget(context_tokens=120_000, max_new_tokens=2_000)


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> AgentEnvironment:
    return tools_environment(tmp_path_factory.mktemp("environments"))


@pytest.fixture
def world(bwrap: Provider, environment: AgentEnvironment) -> Iterator[Sandbox]:
    """A sandbox with the tools' environment and a workbook in its files."""
    workbook = openpyxl.Workbook()
    workbook.active.title = "Sales"
    for row in (["name", "q1"], ["Acme", 412], ["Borealis", 388]):
        workbook.active.append(row)
    data = io.BytesIO()
    workbook.save(data)
    waived = frozenset({"memory", "pids"}) - bwrap.supports
    sandbox = bwrap.create(SandboxSpec("harness-world", environment=environment, waive=waived))
    sandbox.upload(data.getvalue(), "/ws/sales.xlsx", deadline_s=20)
    yield sandbox
    sandbox.destroy()


def cell(sandbox: Sandbox, path: str, address: str) -> object:
    """A cell of a workbook inside, read outside."""
    workbook = openpyxl.load_workbook(io.BytesIO(sandbox.download(path, deadline_s=20)))
    return workbook["Sales"][address].value


def test_react_reads_and_edits_a_workbook(world: Sandbox, opened: Callable[..., Opened]) -> None:
    trial = opened("react", tools=SandboxTools(world), sandbox=world, budget=BUDGET)
    edit = {"type": "set_cell", "sheet": "Sales", "cell": "B4", "value": 800}
    turns = [
        trial.call("spreadsheets_read_tab", file_path="/sales.xlsx", tab_index=0),
        trial.call("spreadsheets_read_tab", file_path="/sale.xlsx", tab_index=0),
        trial.call("spreadsheets_edit_spreadsheet", file_path="/sales.xlsx", operations=[edit]),
        trial.say("800"),
    ]
    loop = trial.play(turns, "add both and write the sum below", ["sales.xlsx"])
    assert "Borealis" in loop.turns[0].observation
    assert [turn.calls[0].status for turn in loop.turns[:3]] == ["ok", "tool_error", "ok"]
    assert cell(world, "/ws/sales.xlsx", "B4") == 800
    assert loop.answer == "800"


def test_toolbelt_finds_its_tools_by_domain_and_finishes(world: Sandbox, opened: Callable[..., Opened]) -> None:
    tools = SandboxTools(world)
    trial = opened("toolbelt", "qwen3.5", tools=tools, sandbox=world, budget=BUDGET)
    edit = {"type": "set_cell", "sheet": "Sales", "cell": "B2", "value": 413}
    turns = [
        trial.call("toolbelt_list_tools"),
        trial.call("toolbelt_add_tool", tool_name="spreadsheets_edit_spreadsheet"),
        trial.call("spreadsheets_edit_spreadsheet", file_path="/sales.xlsx", operations=[edit]),
        trial.call("final_answer", answer="corrected Acme in sales.xlsx", status="completed"),
    ]
    loop = trial.play(turns, "Acme sold 413", ["sales.xlsx"])
    listed = loop.turns[0].observation.splitlines()
    assert {"filesystem", "spreadsheets", "mail"} <= {line.partition(":")[0] for line in listed}
    assert sum(line.count("_") > 0 for line in listed) > 5
    assert cell(world, "/ws/sales.xlsx", "B2") == 413
    assert (loop.stop_reason, loop.status) == ("answered", "completed")


def test_a_long_result_is_read_on_from_where_the_rest_lies(world: Sandbox, opened: Callable[..., Opened]) -> None:
    text = "\n".join(f"entry {n}: {n * n}" for n in range(20_000))
    world.upload(text.encode(), "/ws/log.txt", deadline_s=20)
    trial = opened("react", tools=SandboxTools(world), sandbox=world, budget=BUDGET, max_result_tokens=1_000)
    loop = trial.play([trial.call("filesystem_read_text_file", file_path="/log.txt")])
    (place,) = {word.rstrip(";") for word in loop.turns[0].observation.split() if word.startswith("/tmp/")}
    again = trial.call("code_exec", code=f"sed -n 15000p {place} | head -c 100")
    trial2 = opened("react", tools=SandboxTools(world), sandbox=world, budget=BUDGET)
    assert "entry 14999: 224970001" in trial2.play([again]).turns[0].observation
