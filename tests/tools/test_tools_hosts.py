"""Ways into the sandbox: both give the same answers, both survive what files and agents do to them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from journeyman.digest import sha256
from journeyman.sandbox.protocol import Sandbox
from journeyman.tools import SandboxTools
from journeyman.tools.hosts import DIRECT_ENTRY, WORKTOOLS_ENTRY, ToolDeadline
from journeyman.tools.observations import ObservationCache


@pytest.mark.parametrize("entry", [WORKTOOLS_ENTRY, DIRECT_ENTRY], ids=["forked", "direct"])
def test_frames_and_pipes_give_the_same_answers(
    open_office: Callable[..., Sandbox], tmp_path: Path, entry: tuple[str, ...]
) -> None:
    world = tmp_path / "world"
    world.mkdir()
    (world / "rows.csv").write_text("a,b\n1,2\n")
    shell = SandboxTools(open_office(world))
    frames = SandboxTools(open_office(world, entry=entry), serves_frames=True)
    for name, arguments in (
        ("filesystem_list_files", {}),
        ("spreadsheets_read_csv", {"file_path": "rows.csv"}),
        ("spreadsheets_read_csv", {"file_path": "row.csv"}),
        ("code_exec", {"code": "echo one; echo two >&2; exit 3"}),
        ("code_exec", {"code": "sleep 100 & rm rows.csv"}),
        ("filesystem_list_files", {}),
    ):
        one, other = shell.call(name, arguments), frames.call(name, arguments)
        assert (one.text.rstrip(), one.is_error) == (other.text.rstrip().replace("two\\n", "two"), other.is_error)


def test_the_program_is_started_anew_after_it_was_killed(tools: SandboxTools) -> None:
    before = tools.call("filesystem_list_files", {}).text
    tools.sandbox.exec("kill -9 $(cat /tmp/.worktools/pid)", deadline_s=10)
    assert tools.call("filesystem_list_files", {}).text == before


def test_what_parses_nothing_is_served_without_the_program_that_holds_the_parsers(tools: SandboxTools) -> None:
    parsers = "cat /tmp/.worktools-parsers/pid"
    for name, arguments in (
        ("filesystem_read_text_file", {"file_path": "note.txt"}),
        ("search_world", {"query": "quick fox"}),
        ("calendar_list_events", {}),
        ("mail_list_mails", {}),
        ("chat_list_channels", {}),
    ):
        assert not tools.call(name, arguments).is_error, name
    assert tools.sandbox.exec(parsers, deadline_s=10).return_code != 0
    assert tools.call("spreadsheets_read_csv", {"file_path": "none.csv"}).text.startswith("error: no file")
    assert tools.sandbox.exec(parsers, deadline_s=10).return_code == 0


def test_what_turns_out_to_need_a_parser_is_sent_on(open_office: Callable[..., Sandbox], tmp_path: Path) -> None:
    from PIL import Image

    world, apps = tmp_path / "world", tmp_path / "apps"
    (apps / "calendar").mkdir(parents=True)
    world.mkdir()
    (world / "rows.csv").write_text("animal,legs\nzebra,4\n")
    (world / "note.txt").write_text("a zebra\n")
    Image.new("RGB", (3, 2), "red").save(world / "dot.png")
    event = "BEGIN:VEVENT\nUID:one\nSUMMARY:Feed the zebra\nDTSTART:20260105T090000Z\nEND:VEVENT"
    (apps / "calendar" / "zoo.ics").write_text(f"BEGIN:VCALENDAR\nVERSION:2.0\nPRODID:x\n{event}\nEND:VCALENDAR\n")
    tools = SandboxTools(open_office(world, apps))
    assert tools.call("search_world", {"query": "zebra"}).text.startswith("2 places")
    assert json.loads(tools.call("filesystem_read_image_file", {"file_path": "dot.png"}).text)["width"] == 3
    assert "Feed the zebra" in tools.call("calendar_list_events", {}).text
    tools.sandbox.exec("kill -9 $(cat /tmp/.worktools-parsers/pid)", deadline_s=10)
    assert tools.call("search_world", {"query": "zebra"}).text.startswith("2 places")  # nothing has to be read again
    assert tools.sandbox.exec("kill -0 $(cat /tmp/.worktools-parsers/pid)", deadline_s=10).return_code != 0


def test_a_command_past_its_deadline_is_an_answer_and_tools_go_on(tools: SandboxTools) -> None:
    tools.call("filesystem_list_files", {})
    late = tools.call("code_exec", {"code": "echo begun; sleep 60"}, deadline_s=1.0)
    assert late.is_error
    assert "begun" in late.text
    assert "stopped after 1 s" in late.text
    assert not tools.call("filesystem_list_files", {}).is_error


def test_a_program_that_never_answers_is_a_fault(tools: SandboxTools) -> None:
    tools.call("filesystem_list_files", {})
    tools.sandbox.exec("kill -STOP $(cat /tmp/.worktools/pid)", deadline_s=10)
    with pytest.raises(ToolDeadline) as caught:
        tools.call("filesystem_list_files", {}, deadline_s=1.0)
    assert caught.value.cause == "tool_host_failed"
    assert not tools.call("filesystem_list_files", {}).is_error


def test_code_that_stops_the_program_harms_its_own_trial_only(tools: SandboxTools) -> None:
    tools.call("filesystem_list_files", {})
    tools.call("code_exec", {"code": "kill -STOP $(cat /tmp/.worktools/pid)"})
    seen = tools.call("filesystem_list_files", {}, deadline_s=1.0)
    assert seen.is_error
    assert "may have stopped it" in seen.text
    assert not tools.call("filesystem_list_files", {}).is_error


def test_nothing_of_this_project_can_be_imported_inside(tools: SandboxTools) -> None:
    code = "python3 -c 'import journeyman' 2>&1; python3 -c 'import worktools.serve, officedocs; print(\"these can\")'"
    seen = json.loads(tools.call("code_exec", {"code": code}).text)
    assert "No module named 'journeyman'" in seen["output"]
    assert "these can" in seen["output"]
    found = tools.call("code_exec", {"code": "grep -rl 'import journeyman\\|from journeyman' /opt/agent/lib | head"})
    assert json.loads(found.text)["output"] == ""


def test_a_long_answer_is_cut_and_its_whole_can_be_read_on(open_office: Callable[..., Sandbox], tmp_path: Path) -> None:
    world = tmp_path / "world"
    world.mkdir()
    (world / "long.txt").write_text("".join(f"line {number} \N{SNOWMAN}\n" for number in range(9000)))
    tools = SandboxTools(open_office(world))
    for name, arguments in (
        ("filesystem_read_text_file", {"file_path": "long.txt"}),
        ("code_exec", {"code": "cat long.txt"}),
    ):
        seen = tools.call(name, arguments)
        assert seen.spill is not None
        assert len(seen.text) < tools.max_chars + 400
        assert "characters left out of" in seen.text
        assert seen.text.startswith(("line 0", '{"success"'))
        page = tools.call("output_read_page", {"file_path": seen.spill, "offset": 100_000, "limit": 50})
        assert "line " in page.text
        assert "read on with offset 100050" in page.text


@pytest.mark.parametrize("name", ["bomb.xlsx", "deep.docx", "bomb.png", "empty.pdf", "liar.pptx"])
def test_a_hostile_file_is_an_error_and_no_fault(
    open_office: Callable[..., Sandbox], tmp_path: Path, name: str
) -> None:
    world = tmp_path / "world"
    world.mkdir()
    (world / name).write_bytes(_hostile(name))
    tools = SandboxTools(open_office(world, memory_mb=512))
    tool = {
        "xlsx": "spreadsheets_read_tab",
        "docx": "documents_read_document_content",
        "png": "filesystem_read_image_file",
        "pdf": "pdfs_read_pdf_pages",
        "pptx": "presentations_read_completedeck",
    }[name.rpartition(".")[2]]
    seen = tools.call(tool, {"file_path": name})
    assert seen.is_error
    assert seen.text.startswith("error: ")
    assert not tools.call("filesystem_list_files", {}).is_error
    assert "1 places" not in tools.call("search_world", {"query": "zebra"}).text


def _hostile(name: str) -> bytes:
    import zlib
    from io import BytesIO
    from zipfile import ZIP_DEFLATED, ZipFile

    if name == "empty.pdf":
        return b""
    if name == "liar.pptx":
        return b"MZ\x90\x00" + b"\x00" * 500
    if name == "bomb.png":  # says 60,000 by 60,000 pixels

        def chunk(kind: bytes, data: bytes) -> bytes:
            return len(data).to_bytes(4, "big") + kind + data + zlib.crc32(kind + data).to_bytes(4, "big")

        side = (60_000).to_bytes(4, "big")
        head = chunk(b"IHDR", side + side + b"\x08\x02\x00\x00\x00")
        return b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(b"\x00" * 1000)) + chunk(b"IEND", b"")
    buffer = BytesIO()
    with ZipFile(buffer, "w", ZIP_DEFLATED) as container:
        kind = "spreadsheetml.sheet" if name == "bomb.xlsx" else "wordprocessingml.document"
        container.writestr(
            "[Content_Types].xml", f"<Types>application/vnd.openxmlformats-officedocument.{kind}.main+xml</Types>"
        )
        if name == "bomb.xlsx":
            container.writestr("xl/workbook.xml", b"0" * 300_000_000)
        else:
            container.writestr("word/document.xml", b"<a>" * 200_000)
    return buffer.getvalue()


def test_a_known_answer_is_served_from_the_cache_while_nothing_changed(
    open_office: Callable[..., Sandbox], tmp_path: Path
) -> None:
    world = tmp_path / "world"
    world.mkdir()
    (world / "rows.csv").write_text("a,b\n1,2\n")
    arguments = {"file_path": "rows.csv"}
    cache = ObservationCache("v1", tmp_path / "cache")
    first = SandboxTools(open_office(world), reads=cache)
    told = first.call("spreadsheets_read_csv", arguments)
    kept = sorted((tmp_path / "cache").glob("*.json"))
    assert len(kept) == 1
    marked = json.loads(kept[0].read_text()) | {"content": "from the cache"}
    kept[0].write_text(json.dumps(marked))
    second = SandboxTools(open_office(world), reads=ObservationCache("v1", tmp_path / "cache"))
    assert second.call("spreadsheets_read_csv", arguments).text == told.text  # the digest is not known yet
    kept[0].write_text(json.dumps(marked))
    files = {"rows.csv": sha256((world / "rows.csv").read_bytes())}
    third = SandboxTools(open_office(world), reads=ObservationCache("v1", tmp_path / "cache"), files=files)
    assert third.call("spreadsheets_read_csv", arguments).text == "from the cache"
    third.call("code_exec", {"code": "true"})
    assert third.call("spreadsheets_read_csv", arguments).text == told.text
    other = SandboxTools(open_office(world), reads=ObservationCache("v2", tmp_path / "cache"), files=files)
    assert other.call("spreadsheets_read_csv", arguments).text == told.text
    assert first.call("spreadsheets_read_csv", arguments).text == told.text
    first.call("code_exec", {"code": "printf 'a,b\\n1,3\\n' > rows.csv"})
    assert '"3"' in first.call("spreadsheets_read_csv", arguments).text
    first.call("code_exec", {"code": "printf 'a,b\\n1,2\\n' > rows.csv"})
    assert first.call("spreadsheets_read_csv", arguments).text == told.text


def test_answers_are_not_kept_once_code_has_run_in_the_sandbox(
    open_office: Callable[..., Sandbox], tmp_path: Path
) -> None:
    world = tmp_path / "world"
    world.mkdir()
    (world / "rows.csv").write_text("a,b\n1,2\n")
    tools = SandboxTools(open_office(world), reads=ObservationCache("v1", tmp_path / "cache"))
    tools.call("code_exec", {"code": "true"})
    tools.call("spreadsheets_read_csv", {"file_path": "rows.csv"})
    assert not list((tmp_path / "cache").glob("*.json"))
