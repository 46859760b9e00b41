"""The terminal protocol: answers in JSON and XML, keys, the screen, output limits, and a shell that can be killed."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from harness_driving import Opened
from hypothesis import given, settings
from hypothesis import strategies as st

from journeyman.errors import InputError
from journeyman.harness.terminal.answer import BadAnswer, Command, read_json, read_xml
from journeyman.harness.terminal.inside.screen import Screen
from journeyman.harness.terminal.keys import key_bytes
from journeyman.harness.terminal.limit import MAX_BYTES, limited
from journeyman.sandbox.protocol import Sandbox

GOOD = '{"analysis": "a", "plan": "p", "commands": [{"keystrokes": "ls\\n", "duration": 0.1}], "task_complete": true}'


def test_a_good_answer_is_read_without_notes() -> None:
    answer = read_json(GOOD)
    assert (answer.commands, answer.is_complete, answer.notes) == ((Command("ls\n", 0.1),), True, ())
    xml = (
        "<response><analysis>a</analysis><plan>p</plan><commands>"
        '<keystrokes duration="0.1">echo "<b>" & ls\n</keystrokes></commands></response>'
    )
    assert read_xml(xml).commands == (Command('echo "<b>" & ls\n', 0.1),)


@pytest.mark.parametrize(
    ("text", "note"),
    [
        (f"Here: {GOOD}", "text before"),
        (f"{GOOD} done", "text after"),
        (GOOD[: GOOD.index(', "task_complete"')], "AUTO-CORRECTED"),
        (GOOD.replace("true", '"true"'), "AUTO-CORRECTED"),
        (GOOD.replace("0.1", "600"), "capped at 60 seconds"),
        (GOOD.replace("0.1", '"soon"'), "1.0 was taken"),
        (GOOD.replace('"duration"', '"wait"'), "unknown fields wait"),
        (GOOD.replace("[{", '[{"keystrokes": "cd deep"}, {'), "does not end with a newline"),
    ],
)
def test_small_slips_are_put_right_and_named(text: str, note: str) -> None:
    answer = read_json(text)
    assert answer.commands[-1].keystrokes == "ls\n"
    assert any(note in line for line in answer.notes)
    assert all(command.duration_s <= 60 for command in answer.commands)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "no JSON object"),
        ('{"analysis": "a"}', "missing required fields: plan, commands"),
        (GOOD.replace('[{"keystrokes": "ls\\n", "duration": 0.1}]', '"ls"'), "must be an array"),
        (GOOD.replace('"keystrokes"', '"keys"'), 'with "keystrokes" as text'),
        ("{" * 100_000, "invalid JSON"),
        ('{"analysis": ]}', "invalid JSON"),
    ],
)
def test_what_cannot_be_read_says_what_to_put_right(text: str, problem: str) -> None:
    with pytest.raises(BadAnswer, match=problem):
        read_json(text)


def test_xml_without_commands_or_with_an_open_tag_is_refused() -> None:
    assert read_xml("<response><commands/><task_complete>true</task_complete>").is_complete
    with pytest.raises(BadAnswer, match="no <commands>"):
        read_xml("<response></response>")
    with pytest.raises(BadAnswer, match="not closed"):
        read_xml("<response><commands><keystrokes>ls</commands></response>")
    with pytest.raises(BadAnswer, match="no <response>"):
        read_xml("ls")


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet='{}[]",:\\nase <>/keytrokscm', max_size=60))
def test_any_text_is_an_answer_or_a_bad_answer(text: str) -> None:
    for read in (read_json, read_xml):
        try:
            assert read(text).commands is not None
        except BadAnswer as bad:
            assert str(bad)


def test_a_whole_name_is_a_key_and_everything_else_is_text() -> None:
    assert [key_bytes(keys) for keys in ("C-c", "C-d", "^C", "Escape", "Up", "M-x", "Enter")] == [
        b"\x03",
        b"\x04",
        b"\x03",
        b"\x1b",
        b"\x1b[A",
        b"\x1bx",
        b"\r",
    ]
    assert key_bytes("echo C-c\n") == b"echo C-c\n"
    assert key_bytes("C-cC-c") == b"C-cC-c"
    assert key_bytes("é\n") == "é\n".encode()


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=3000), st.integers(10, 2000))
def test_a_limited_output_holds_both_ends_and_counts_what_is_missing(text: str, limit: int) -> None:
    shown = limited(text, limit)
    whole = text.encode("utf-8", "replace").decode()
    if len(whole.encode()) <= limit:
        assert shown == whole
        return
    head, _, tail = shown.partition(f"\n[... output limited to {limit} bytes; ")
    omitted, _, tail = tail.partition(" interior bytes omitted ...]\n")
    assert whole.startswith(head) and whole.endswith(tail)
    assert len(head.encode()) + len(tail.encode()) + int(omitted) == len(whole.encode())
    assert len(head.encode()) + len(tail.encode()) <= limit


def test_the_screen_shows_what_a_terminal_would() -> None:
    screen = Screen(10, 3)
    screen.feed(b"one\r\ntwo\r\nthree\r\nfour")
    assert (screen.visible(), screen.everything()) == ("two\nthree\nfour", "one\ntwo\nthree\nfour")
    screen.feed(b"\x1b[2J\x1b[Hab\x1b[31mc\x1b[0m\rX\x1b[2;3HY\x1b]0;title\x07")
    assert screen.visible() == "Xbc\n  Y"
    assert screen.feed(b"\x1b[6n") == b"\x1b[2;4R"


def test_the_screen_wraps_long_lines_and_counts_wide_characters_twice() -> None:
    screen = Screen(4, 3)
    screen.feed("ab漢字".encode())
    assert screen.visible() == "ab漢\n字"


def test_the_alternate_screen_leaves_the_main_one_as_it_was() -> None:
    screen = Screen(10, 3)
    screen.feed(b"shell$ \x1b[?1049h\x1b[Hpager\nmore\nmore\nmore")
    assert "pager" not in screen.visible()
    screen.feed(b"\x1b[?1049l")
    assert screen.everything() == "shell$"


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.one_of(st.binary(max_size=30), st.sampled_from([b"\x1b[", b"\x1b[9999;9999H", b"\x1b[5L", b"\x1b[99P"]))
    )
)
def test_no_bytes_break_the_screen_however_they_are_cut(parts: list[bytes]) -> None:
    screen, whole = Screen(20, 5), Screen(20, 5)
    for part in parts:
        screen.feed(part)
    whole.feed(b"".join(parts))
    assert all(len(row) == 20 for row in screen._cells) and len(screen._cells) == 5
    assert screen.everything() == whole.everything()


@pytest.mark.podman
def test_a_terminal_in_a_container_is_a_real_one_of_its_own(
    opened: Callable[..., Opened], open_container: Callable[..., Sandbox]
) -> None:
    sandbox = open_container({"sales.csv": "name,q1\nAcme,412\n"})
    trial = opened("terminal", sandbox=sandbox)
    turns = [
        trial.keys(("tty; stty size\n", 1.0)),
        trial.keys(('read -s x; echo "got $x" >out.txt\n', 0.5), ("typed\n", 0.5)),
        trial.keys(done=True),
        trial.keys(done=True),
    ]
    loop = trial.play(turns)
    assert "/dev/pts/0\n40 160" in loop.turns[0].observation
    assert sandbox.download("/ws/out.txt", deadline_s=20) == b"got typed\n"
    assert loop.stop_reason == "answered"


def test_a_long_output_is_limited_and_the_policy_sees_both_ends(
    opened: Callable[..., Opened], open_terminal: Callable[..., Sandbox]
) -> None:
    trial = opened("terminal", sandbox=open_terminal())
    seen = trial.play([trial.keys(("seq 1 4000\n", 1.0))]).turns[0].observation
    assert "interior bytes omitted" in seen
    assert len(seen.encode()) < MAX_BYTES + 200
    assert "\n4000\n" in seen


def test_a_program_that_takes_the_whole_screen_is_shown_as_a_screen(
    opened: Callable[..., Opened], open_terminal: Callable[..., Sandbox]
) -> None:
    trial = opened("terminal", sandbox=open_terminal())
    script = "printf '\\033[?1049h\\033[2J\\033[5;5Hmenu'; read x; printf '\\033[?1049l'; echo got $x\n"
    loop = trial.play([trial.keys((script, 0.4)), trial.keys(("7\n", 0.4))])
    assert loop.turns[0].observation == "Current Terminal Screen:\n\n\n\n\n\n    menu"
    assert "got 7" in loop.turns[1].observation


def test_a_terminal_that_the_policy_killed_is_started_again_and_said_to_be(
    opened: Callable[..., Opened], open_terminal: Callable[..., Sandbox]
) -> None:
    trial = opened("terminal", sandbox=open_terminal())
    loop = trial.play([trial.keys(("exit\n", 0.5)), trial.keys(("echo again\n", 0.3))])
    assert "started again" in loop.turns[0].observation
    assert "again" in loop.turns[1].observation


def test_a_stopped_or_removed_terminal_is_no_fault_of_the_system(
    opened: Callable[..., Opened], open_terminal: Callable[..., Sandbox], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("journeyman.harness.terminal.pty.ANSWER_S", 2.0)
    trial = opened("terminal", sandbox=open_terminal())
    turns = [
        trial.keys(("kill -STOP $PPID\n", 0.2)),
        trial.keys(("rm -r ../tmp/.terminal-*\n", 0.5)),
        trial.keys(("echo on\n", 0.3)),
    ]
    loop = trial.play(turns)
    assert ["started again" in turn.observation for turn in loop.turns] == [True, True, False]
    assert "on" in loop.turns[2].observation
    assert loop.stop_reason is None


def test_a_cut_answer_is_not_performed_and_the_next_turn_says_so(
    opened: Callable[..., Opened], open_terminal: Callable[..., Sandbox]
) -> None:
    trial = opened("terminal", sandbox=open_terminal())
    loop = trial.play([list(trial.keys(("touch made\n", 0.1)))[:-1] + [5] * 3000])
    assert loop.turns[0].observation.startswith("ERROR!! NONE of the actions you just requested were performed")
    assert loop.turns[0].calls == ()


def test_xml_answers_work_as_json_ones_do(opened: Callable[..., Opened], open_terminal: Callable[..., Sandbox]) -> None:
    trial = opened("terminal-xml", sandbox=open_terminal())
    said = "<response><analysis>a</analysis><plan>p</plan><commands>{}</commands>{}</response>"
    done = said.format("", "<task_complete>true</task_complete>")
    loop = trial.play(
        [
            trial.say(said.format('<keystrokes duration="0.3">echo x$((1+1))\n</keystrokes>', "")),
            trial.say(done),
            trial.say(done),
        ]
    )
    assert "x2" in loop.turns[0].observation
    assert loop.stop_reason == "answered"
    prompt = trial.renderer.tokenizer.decode(loop._prompt)
    assert "<keystrokes duration" in prompt and json.dumps("task_complete") not in prompt


def test_an_unknown_format_is_refused(opened: Callable[..., Opened], open_terminal: Callable[..., Sandbox]) -> None:
    with pytest.raises(InputError, match="json, xml"):
        opened("terminal", sandbox=open_terminal(), options={"format": "yaml"})
