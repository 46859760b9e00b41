"""Each kind of harness solves a small task with real files: calls go in, the world changes, the answer comes out."""

from __future__ import annotations

import signal
from collections.abc import Callable
from datetime import date

import pytest
from harness_driving import Drawer, Opened

from journeyman.errors import InputError
from journeyman.harness import LOOPS, SPECS
from journeyman.sandbox.protocol import Sandbox
from journeyman.tokens.renderers import FAMILIES, Renderer

TODAY = date(2026, 3, 4)
SALES = "name,q1\nAcme,412\nBorealis,388\n"


def test_react_reads_a_file_and_answers_in_plain_text(opened: Callable[..., Opened]) -> None:
    trial = opened("react", tools=Drawer({"sales.csv": SALES}))
    turns = [trial.call("filesystem_read_text_file", path="sales.csv"), trial.say("Acme and Borealis: 800")]
    loop = trial.play(turns, "add Acme and Borealis", ["sales.csv"])
    assert (loop.stop_reason, loop.answer) == ("answered", "Acme and Borealis: 800")
    assert "Borealis,388" in loop.turns[0].observation
    assert [call.tool for call in loop.turns[0].calls] == ["filesystem_read_text_file"]


@pytest.mark.parametrize("thinking", [False, True])
@pytest.mark.parametrize("family", [name for name in FAMILIES if name != "llama3"])
def test_every_family_calls_a_tool_and_answers(
    family: str, thinking: bool, renderer_of: Callable[..., Renderer]
) -> None:
    trial = Opened.of("react", renderer_of(family, thinking), today=TODAY, tools=Drawer({"sales.csv": SALES}))
    turns = [trial.call("filesystem_read_text_file", path="sales.csv"), trial.say("The sum is 800.")]
    loop = trial.play(turns)
    assert [call.status for call in loop.turns[0].calls] == ["ok"]
    assert (loop.stop_reason, loop.answer) == ("answered", "The sum is 800.")
    assert all(turn.malformed == () for turn in loop.turns)


def test_toolbelt_takes_a_tool_from_the_belt_plans_and_is_refused_while_todos_are_open(
    opened: Callable[..., Opened],
) -> None:
    drawer = Drawer({"sales.csv": SALES})
    trial = opened("toolbelt", tools=drawer)
    todo = {"id": "1", "content": "mail the sum", "status": "pending"}
    turns = [
        trial.call("toolbelt_list_tools"),
        trial.call("mail_send_mail", to="ann@example.org", body="too early"),
        trial.call("todo_write", todos=[todo], merge=False),
        trial.call("toolbelt_add_tool", tool_name="mail_send_mail"),
        trial.call("mail_send_mail", to="ann@example.org", body="800"),
        trial.call("final_answer", answer="mailed", status="completed"),
        trial.call("todo_write", todos=[{"id": "1", "status": "completed"}], merge=True),
        trial.call("final_answer", answer="mailed", status="completed"),
    ]
    loop = trial.play(turns)
    seen = [turn.observation for turn in loop.turns]
    assert "mail: mail_send_mail" in seen[0]
    assert "toolbelt_add_tool" in seen[1]
    assert "todos are open: 1" in seen[5]
    assert seen[6] == "1 [completed] mail the sum"
    assert (loop.stop_reason, loop.answer, loop.status) == ("answered", "mailed", "completed")
    assert drawer.files["mail to ann@example.org"] == "800"


def test_the_belt_holds_no_more_than_its_limit(opened: Callable[..., Opened]) -> None:
    trial = opened("toolbelt", tools=Drawer({}), options={"max_tools": 1, "initial_tools": ["mail_send_mail"]})
    turns = [
        trial.call("toolbelt_add_tool", tool_name="filesystem_list_files"),
        trial.call("toolbelt_remove_tool", tool_name="mail_send_mail"),
        trial.call("toolbelt_add_tool", tool_name="filesystem_list_files"),
        trial.say("I am done"),
    ]
    seen = [turn.observation for turn in trial.play(turns).turns]
    assert "holds 1 tools already" in seen[0]
    assert seen[2].startswith("added")
    assert "call final_answer" in seen[3]


def test_code_reads_edits_searches_and_runs_in_a_real_sandbox(
    opened: Callable[..., Opened], open_shell: Callable[..., Sandbox]
) -> None:
    sandbox = open_shell({"sales.csv": SALES, "deep/notes.txt": "see Acme\n"})
    trial = opened("code", sandbox=sandbox)
    edit = {"filePath": "/ws/sales.csv", "oldString": "Acme,412", "newString": "Acme,413"}
    turns = [
        trial.call("glob", pattern="**/*.{csv,txt}"),
        trial.call("grep", pattern="Acme"),
        trial.call("edit", **edit),
        trial.call("read", filePath="/ws/sales.csv"),
        trial.call("edit", **edit),
        trial.call("bash", command="echo $(($(tail -n 2 sales.csv | cut -d, -f2 | paste -sd+)))", description="sum"),
        trial.call("write", filePath="/ws/out/sum.txt", content="801\n"),
        trial.say("801"),
    ]
    loop = trial.play(turns, "sum", ["sales.csv"])
    seen = [turn.observation for turn in loop.turns]
    assert set(seen[0].split()) == {"/ws/sales.csv", "/ws/deep/notes.txt"}
    assert "Found 2 matches" in seen[1] and "  Line 2: Acme,412" in seen[1]
    assert "must read /ws/sales.csv" in seen[2]
    assert "2: Acme,412" in seen[3] and "(End of file - total 3 lines)" in seen[3]
    assert seen[4] == "Edit applied successfully."
    assert seen[5] == "801"
    assert sandbox.download("/ws/out/sum.txt", deadline_s=10) == b"801\n"
    assert (loop.stop_reason, loop.answer) == ("answered", "801")


def test_terminal_types_into_a_real_pty_and_must_say_twice_that_it_is_done(
    opened: Callable[..., Opened], open_terminal: Callable[..., Sandbox]
) -> None:
    sandbox = open_terminal({"sales.csv": SALES})
    trial = opened("terminal", sandbox=sandbox)
    turns = [
        trial.keys(("cut -d, -f2 sales.csv | tail -n 2 | paste -sd+ | tee sum.txt\n", 0.5)),
        trial.keys(("sleep 100\n", 0.3), ("C-c", 0.3), ("echo interrupted $?\n", 0.3)),
        trial.say("this is no JSON"),
        trial.keys(done=True),
        trial.keys(("echo on\n", 0.2)),
        trial.keys(done=True),
        trial.keys(done=True),
    ]
    loop = trial.play(turns, "add them", ["sales.csv"])
    seen = [turn.observation for turn in loop.turns]
    assert "412+388" in seen[0] and seen[0].startswith("New Terminal Output:")
    assert "interrupted 130" in seen[1]
    assert seen[2].startswith("ERROR: ")
    assert "Are you sure you want to mark the task as complete?" in seen[3]
    assert "Are you sure" not in seen[4]
    assert (loop.stop_reason, loop.status) == ("answered", "completed")
    assert sandbox.download("/ws/sum.txt", deadline_s=10) == b"412+388\n"


def test_an_interrupt_reaches_a_terminal_whose_run_was_started_in_the_background(
    opened: Callable[..., Opened], open_terminal: Callable[..., Sandbox]
) -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # as a shell starts what it puts behind an ampersand
    try:
        trial = opened("terminal", sandbox=open_terminal({"sales.csv": SALES}))
        turns = [
            trial.keys(("sleep 100\n", 1.0), ("C-c", 1.0), ("echo interrupted $?\n", 2.0)),
            trial.keys(done=True),
            trial.keys(done=True),
        ]
        loop = trial.play(turns, "wait", ["sales.csv"])
    finally:
        signal.signal(signal.SIGINT, before)
    assert "interrupted 130" in loop.turns[0].observation


@pytest.mark.parametrize("name", SPECS)
def test_every_spec_names_a_loop_and_describes_its_boundary(name: str) -> None:
    described = SPECS[name].described()
    assert described["loop"] in LOOPS
    assert {"budget", "malformed", "at_limit", "score_kind", "nudge", "max_result_tokens"} <= described.keys()


@pytest.mark.parametrize("name", SPECS)
def test_a_harness_without_what_it_acts_on_is_refused(name: str, opened: Callable[..., Opened]) -> None:
    with pytest.raises(InputError, match="needs"):
        opened(name)
