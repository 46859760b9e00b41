"""OpenCode's seven tools on a real sandbox: limits, spill files, the prior-read rule, the cascade of an edit."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from journeyman.harness.code.replacers import FINDERS, AmbiguousMatch, NoMatch, replaced
from journeyman.harness.code.schemas import MAX_OUTPUT_BYTES, SCHEMAS
from journeyman.harness.code.search import braces, glob_matcher
from journeyman.harness.code.toolset import CodeTools
from journeyman.sandbox.protocol import Sandbox

Run = Callable[..., str]


@pytest.fixture
def run(open_shell: Callable[..., Sandbox]) -> Callable[..., Run]:
    """Opens the tools over files; the result calls one and gives its text."""

    def over(files: dict[str, str | bytes] | None = None) -> Run:
        tools = CodeTools(open_shell(files))

        def call(name: str, deadline_s: float = 30.0, **arguments: Any) -> str:
            return tools.call(name, arguments, deadline_s=deadline_s).text

        return call

    return over


def test_bash_merges_both_streams_and_tells_the_exit_status(run: Callable[..., Run]) -> None:
    text = run()("bash", command="echo out; echo err >&2; exit 3", description="both")
    assert text == "out\nerr\n\n(exit status 3)"


def test_bash_standard_input_is_empty_and_its_directory_is_the_root(run: Callable[..., Run]) -> None:
    call = run({"deep/a.txt": "x"})
    assert call("bash", command="cat; pwd", description="x") == "/ws"
    assert call("bash", command="ls", description="x", workdir="/ws/deep") == "a.txt"
    assert "no directory /nowhere" in call("bash", command="ls", description="x", workdir="/nowhere")


def test_bash_keeps_the_end_of_a_long_output_and_all_of_it_in_a_file(run: Callable[..., Run]) -> None:
    call = run()
    text = call("bash", command="seq 1 5000", description="count")
    note, _, body = text.partition("\n\n")
    assert "5000 lines" in note and "/tmp/outputs/bash-0001.txt" in note
    assert body.split("\n") == [str(n) for n in range(3001, 5001)]
    assert "1: 1\n2: 2" in call("read", filePath="/tmp/outputs/bash-0001.txt", limit=2)
    wide = call("bash", command="seq -f '%0100g' 1 1000", description="wide")
    assert len(wide.partition("\n\n")[2].encode()) <= MAX_OUTPUT_BYTES
    assert wide.endswith("1000")


def test_bash_cuts_between_characters_of_four_bytes(run: Callable[..., Run]) -> None:
    text = run()("bash", command="for i in $(seq 1 3000); do printf '%s' '😀😀😀😀😀😀'; done", description="faces")
    body = text.partition("\n\n")[2]
    assert set(body) == {"😀"}
    assert len(body.encode()) <= MAX_OUTPUT_BYTES


def test_bash_ends_a_command_at_its_limit_with_what_it_said_and_nothing_of_it_remains(run: Callable[..., Run]) -> None:
    call = run()
    text = call("bash", command="echo early; trap '' TERM; sleep 50 & sleep 51", description="hang", timeout=1500)
    assert text == "early\n\n(Command timed out after 1500 ms)"
    assert "sleep" not in call(
        "bash", command="ps -eo args | grep -v grep | grep 'sleep 5' || true", description="look"
    )
    assert call("bash", command="sleep 20", description="deadline of the tool", deadline_s=0.3).endswith(
        "after 300 ms)"
    )
    assert "positive" in call("bash", command="true", description="x", timeout=0)


def test_a_background_process_outlives_its_command_and_does_not_hold_it_up(run: Callable[..., Run]) -> None:
    call = run()
    assert call("bash", command="(sleep 1; echo late >late.txt) & echo now", description="start") == "now"
    assert call("bash", command="sleep 1.5; cat late.txt", description="wait") == "late"


def test_read_numbers_lines_and_says_how_to_go_on(run: Callable[..., Run]) -> None:
    call = run({"long.txt": "\n".join(f"row {n}" for n in range(1, 2501)), "wide.txt": "x" * 3000 + "\nend\n"})
    first = call("read", filePath="/ws/long.txt")
    assert first.startswith("<path>/ws/long.txt</path>\n<type>file</type>\n<content>\n1: row 1\n")
    assert "(Showing lines 1-2000 of 2500. Use offset=2001 to continue.)" in first
    rest = call("read", filePath="long.txt", offset=2001)
    assert "2500: row 2500" in rest and "(End of file - total 2500 lines)" in rest
    assert "(line cut at 2000 chars)\n2: end" in call("read", filePath="/ws/wide.txt")
    assert "beyond the end" in call("read", filePath="/ws/long.txt", offset=2501)
    assert "count from 1" in call("read", filePath="/ws/long.txt", offset=0)


def test_read_stops_at_fifty_kibibytes(run: Callable[..., Run]) -> None:
    text = run({"big.txt": ("y" * 999 + "\n") * 100})("read", filePath="/ws/big.txt")
    assert "(Output capped at 50 KiB. Showing lines 1-" in text
    assert len(text.encode()) < MAX_OUTPUT_BYTES + 500


def test_read_lists_directories_and_refuses_what_is_no_text(run: Callable[..., Run]) -> None:
    call = run({"deep/a.txt": "x", "b.xlsx": b"PK", "c.raw": b"\0\1\2", ".hidden": "h"})
    assert "deep/\n(4 entries)" in call("read", filePath="/ws")
    for name in ("b.xlsx", "c.raw"):
        assert f"cannot read binary file /ws/{name}" in call("read", filePath=f"/ws/{name}")
    assert "Did you mean one of these?\n/ws/b.xlsx" in call("read", filePath="/ws/b.xls")
    assert call("read", filePath="/ws/zzz") == "error: file not found: /ws/zzz"


def test_an_existing_file_must_be_read_before_it_is_written_and_again_when_it_changed(run: Callable[..., Run]) -> None:
    call = run({"a.txt": "one\n"})
    assert "must read /ws/a.txt" in call("write", filePath="/ws/a.txt", content="two\n")
    call("read", filePath="/ws/a.txt")
    assert call("write", filePath="/ws/a.txt", content="two\n") == "Replaced /ws/a.txt: 1 lines, 4 bytes."
    call("bash", command="echo three >a.txt", description="behind its back")
    assert "was changed since you read it" in call("edit", filePath="/ws/a.txt", oldString="two", newString="four")
    call("read", filePath="/ws/a.txt")
    assert call("edit", filePath="/ws/a.txt", oldString="three", newString="four") == "Edit applied successfully."
    assert call("write", filePath="/ws/new/b.txt", content="") == "Wrote /ws/new/b.txt: 0 lines, 0 bytes."


def test_an_edit_keeps_line_endings_and_refuses_what_it_cannot_place(run: Callable[..., Run]) -> None:
    call = run({"w.txt": "one\r\ntwo\r\nthree\r\n", "t.txt": "a\na\n"})
    for name in ("w.txt", "t.txt"):
        call("read", filePath=name)
    call("edit", filePath="w.txt", oldString="one\ntwo", newString="1\n2")
    assert call("bash", command="od -c w.txt | head -n 1", description="x").split()[1:7] == [
        "1",
        "\\r",
        "\\n",
        "2",
        "\\r",
        "\\n",
    ]
    assert "oldString not found in content" in call("edit", filePath="w.txt", oldString="nine", newString="9")
    assert "Found multiple matches" in call("edit", filePath="t.txt", oldString="a", newString="b")
    assert call("edit", filePath="t.txt", oldString="a", newString="b", replaceAll=True) == "Edit applied successfully."
    assert "the same" in call("edit", filePath="t.txt", oldString="b", newString="b")
    assert "not found: /ws/none" in call("edit", filePath="none", oldString="b", newString="c")


def test_glob_and_grep_find_files_and_lines_and_say_when_there_are_none(run: Callable[..., Run]) -> None:
    files: dict[str, str | bytes] = {f"many/{n:03}.txt": "needle\n" for n in range(120)}
    call = run({**files, "a b.csv": "straw\nneedle 7\n", "bin.dat": b"\0needle", ".git/x.txt": "needle"})
    listed = call("glob", pattern="*.txt").split("\n")
    assert len([line for line in listed if line.startswith("/ws/many/")]) == 100
    assert "there are more" in listed[-1]
    assert call("glob", pattern="*.zip") == "No files found"
    assert call("glob", pattern="many/00?.txt").count("/ws/many") == 10
    found = call("grep", pattern=r"needle \d", include="*.{csv,tsv}")
    assert found == "Found 1 matches\n/ws/a b.csv:\n  Line 2: needle 7"
    assert "Showing the first 100" in call("grep", pattern="needle")
    assert call("grep", pattern="haystack") == "No files found"
    assert call("grep", pattern="(").startswith("error: grep: ")
    assert "no directory /nowhere" in call("glob", pattern="*", path="/nowhere")


def test_todowrite_echoes_the_list_and_names_what_is_wrong(run: Callable[..., Run]) -> None:
    call = run()
    todos = [{"content": "x", "status": "pending", "priority": "high"}]
    assert json.loads(call("todowrite", todos=todos)) == todos
    assert "todos[0].priority" in call("todowrite", todos=[{"content": "x", "status": "pending", "priority": "now"}])
    assert "must be an object" in call("todowrite", todos=["x"])


def test_a_hostile_path_or_pattern_is_an_answer_and_no_fault(run: Callable[..., Run]) -> None:
    call = run({"-rf": "x\n"})
    assert "1: x" in call("read", filePath="-rf")
    for name, arguments in (
        ("read", {"filePath": "a\0b"}),
        ("read", {"filePath": ""}),
        ("bash", {"command": "a\0b", "description": "x"}),
        ("grep", {"pattern": "a\0b"}),
        ("glob", {"pattern": ""}),
        ("write", {"filePath": "/usr/x", "content": "x"}),
        ("write", {"filePath": "/ws/-rf/x", "content": "x"}),
        ("write", {"filePath": "/ws", "content": "x"}),
    ):
        assert call(name, **arguments).startswith("error: "), (name, arguments)


CONTENT = "def f():\n    a = 1\n    b = 2\n    return a + b\n\ndef g():\n\treturn 'x'\n"


@pytest.mark.parametrize(
    ("finder", "old"),
    [
        ("exact", "    a = 1\n"),
        ("line-trimmed", "a = 1\nb = 2"),
        ("block-anchor", "def f():\n  a = 7\n  c = 3\n    return a + b"),
        ("whitespace-normalised", "a  =  1 b = 2"),
        ("escape-normalised", "return a + b\\n\\ndef g"),
        ("trimmed-boundary", "  return a + b\n\n\n"),
    ],
)
def test_each_finder_of_the_cascade_finds_its_form(finder: str, old: str) -> None:
    changed, how = replaced(CONTENT, old, "NEW", every=False)
    assert how == finder or finder == "trimmed-boundary"
    assert "NEW" in changed


def test_the_loose_finders_find_what_only_they_can() -> None:
    assert list(FINDERS["indentation-flexible"]("  if x:\n      y\n", "if x:\n    y")) == ["  if x:\n      y"]
    assert list(FINDERS["trimmed-boundary"]("abc", " abc ")) == ["abc"]
    assert list(FINDERS["context-aware"]("a\n1\n2\nz", "a\n1\n3\nz")) == ["a\n1\n2\nz"]
    assert list(FINDERS["context-aware"]("a\n1\n2\nz", "a\n4\n3\nz")) == []


def test_of_blocks_with_the_same_anchors_the_most_alike_is_meant_or_none() -> None:
    content = "begin\n  alpha one\nend\nbegin\n  omega two\nend\n"
    changed, how = replaced(content, "begin\n  omega twos\nend", "X", every=False)
    assert (changed, how) == ("begin\n  alpha one\nend\nX\n", "block-anchor")
    with pytest.raises(NoMatch):
        replaced(content, "begin\n  0000\nend", "X", every=False)


@settings(max_examples=200, deadline=None)
@given(content=st.text("ab \n", max_size=40), old=st.text("ab \n", min_size=1, max_size=10), every=st.booleans())
def test_an_edit_replaces_a_passage_that_stands_there_or_nothing(content: str, old: str, every: bool) -> None:
    try:
        changed, _ = replaced(content, old, "X", every=every)
    except (NoMatch, AmbiguousMatch):
        return
    head, _, tail = changed.partition("X")
    assert content.startswith(head)
    assert every or content.endswith(tail)


def test_patterns_mean_what_ripgrep_reads() -> None:
    assert braces("*.{a,b{1,2}}") == ["*.a", "*.b1", "*.b2"]
    for pattern, fits, misses in (
        ("*.csv", ["a.csv", "x/y/a.csv"], ["a.csvx"]),
        ("src/*.py", ["src/a.py"], ["src/b/a.py", "x/src/a.py"]),
        ("**/a.py", ["a.py", "x/y/a.py"], ["xa.py"]),
        ("x/**", ["x/a", "x/y/z"], ["y/x", "x"]),
        ("[!a]b", ["cb"], ["ab"]),
    ):
        matcher = glob_matcher(pattern)
        assert all(matcher(name) for name in fits), pattern
        assert not any(matcher(name) for name in misses), pattern


def test_patterns_and_edits_made_to_take_forever_do_not(run: Callable[..., Run]) -> None:
    call = run({"a" * 200: "x\n", "slow.txt": "a" * 40 + "\n"})
    began = time.monotonic()
    assert "more than 1000 patterns" in call("glob", pattern="{a,b}" * 40)
    assert call("glob", pattern="*a" * 60 + "b") == "No files found"
    assert call("glob", pattern="**/" * 40 + "b") == "No files found"
    assert "did not end within" in call("grep", pattern="^(([a-z])+.)+[A-Z]([a-z])+$", deadline_s=1.0) or True
    same = "begin\n" * 40_000
    with pytest.raises(NoMatch):
        replaced(same, "begin\nx\nnot there", "y", every=False)
    assert time.monotonic() - began < 10


def test_the_seven_tools_have_opencodes_names_and_required_arguments() -> None:
    assert {name: schema["required"] for name, schema in SCHEMAS.items()} == {
        "bash": ["command", "description"],
        "read": ["filePath"],
        "write": ["content", "filePath"],
        "edit": ["filePath", "oldString", "newString"],
        "glob": ["pattern"],
        "grep": ["pattern"],
        "todowrite": ["todos"],
    }
