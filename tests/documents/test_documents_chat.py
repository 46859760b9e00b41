"""Chat exports: threads, reactions and edits are read, and an edit rewrites one line or one file."""

from __future__ import annotations

import io
import json
import zipfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from journeyman.documents import chat
from journeyman.documents.chat.reader import instant_of
from journeyman.documents.errors import BadEdit, NoSuchAddress, UnreadableDocument, Unsupported, WrongKind
from journeyman.documents.node import Document, Node

FIRST = {"type": "message", "user": "U1", "ts": "1772445600.000100", "text": "see <https://x.org|the site> &amp; <@U2>"}
REPLY = {"type": "message", "user": "U2", "ts": "1772445700.000200", "text": "ok", "thread_ts": FIRST["ts"]}
REPLY |= {"reactions": [{"name": "+1", "users": ["U1"], "count": 1}], "edited": {"user": "U2", "ts": "1772445800.0"}}


def slack() -> bytes:
    files = {
        "users.json": [
            {"id": "U1", "name": "ann", "profile": {"display_name": "Ann"}},
            {"id": "U2", "real_name": "Bo"},
        ],
        "channels.json": [{"id": "C1", "name": "general", "topic": {"value": "all"}, "members": ["U1", "U2"]}],
        "dms.json": [{"id": "D1", "members": ["U1", "U2"]}],
        "general/2026-03-02.json": [{**FIRST, "reply_count": 1}, REPLY],
        "D1/2026-03-02.json": [{**FIRST, "text": "private"}],
    }
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as target:
        for name, value in files.items():
            target.writestr(name, json.dumps(value, indent=4))
    return out.getvalue()


def test_an_export_has_channels_threads_reactions_and_names():
    document = chat.read(slack(), "export.zip")
    first = document.find("#general/1772445600.000100")
    assert first.text == "see the site (https://x.org) & @Bo"
    assert (first.attributes["user_name"], first.attributes["replies"]) == ("Ann", 1)
    assert first.attributes["sent_at"] == "2026-03-02T10:00:00.000100+00:00"
    reply = document.find("#general/1772445700.000200").attributes
    assert reply["answers"] == "#general/1772445600.000100"
    assert reply["reactions"] == [{"name": "+1", "users": ["U1"]}]
    assert reply["edited"]["user"] == "U2"
    assert document.find("@D1/1772445600.000100").text == "private"
    assert document.find("#general").attributes["topic"] == "all"


def test_an_edit_rewrites_the_file_of_its_message_alone():
    changes = [
        {"op": "set", "address": "#general/1772445700.000200", "text": "a < b", "by": "U2", "at": "1772446000.0"},
        {"op": "react", "address": "#general/1772445600.000100", "name": "eyes", "user": "U2"},
        {"op": "insert", "address": "#general", "user": "U1", "ts": "1772446100.0", "text": "new"},
    ]
    edited = chat.edit(slack(), "export.zip", changes)
    assert [report.after for report in edited.changed] == ["a < b", [{"name": "eyes", "users": ["U2"]}], "new"]
    assert edited.changed[2].address == "#general/1772446100.0"
    before, after = (zipfile.ZipFile(io.BytesIO(data)) for data in (slack(), edited.data))
    changed = {name for name in before.namelist() if before.read(name) != after.read(name)}
    assert changed == {"general/2026-03-02.json"}
    assert json.loads(after.read("general/2026-03-02.json"))[1]["text"] == "a &lt; b"


LINES = b'{"channel": "ops", "ts": "1", "text": "one"}\r\n\n{"channel":"ops","ts":"2","text":"two","x":1.50}\n{broken\n'


def test_lines_of_json_are_read_and_edited_line_by_line():
    document = chat.read(LINES, "log.jsonl")
    assert [node.text for node in document.nodes[0].children] == ["one", "two"]
    assert document.warnings == ("lines that are no messages: 4",)
    changes = [
        {"op": "set", "address": "#ops/1", "text": "1"},
        {"op": "insert", "address": "#ops", "user": "u", "ts": "3", "text": "x"},
    ]
    edited = chat.edit(LINES, "log.jsonl", changes)
    kept = edited.data.split(b"\n")
    assert kept[0] == b'{"channel": "ops", "ts": "1", "text": "1"}\r'
    assert kept[1:4] == LINES.split(b"\n")[1:4]
    gone = chat.edit(edited.data, "log.jsonl", [{"op": "delete", "address": "#ops/1"}])
    assert gone.data.split(b"\n") == kept[1:]


def test_a_chat_of_a_phone_is_read_with_the_order_of_its_dates():
    text = "[13/03/2026, 10:15:32] Ann: hello\nsecond line\n[13/03/2026, 22:16:00] Bo: hi: there\n"
    document = chat.read(text.encode(), "WhatsApp Chat with Team.txt")
    first, second = document.nodes[0].children
    assert (first.address, first.text) == ("#Team/2026-03-13T10:15:32", "hello\nsecond line")
    assert (second.attributes["user"], second.text) == ("Bo", "hi: there")
    assert document.warnings == ()
    american = "3/13/26, 10:16 PM - Ann: hello\n3/13/26, 10:17 PM - Bo left\n"
    nodes = chat.read(american.encode(), "chat.txt").nodes[0].children
    assert nodes[0].attributes["sent_at"] == "2026-03-13T22:16:00"
    assert nodes[1].attributes["subtype"] == "system"
    assert "cannot be told apart" in chat.read(b"03/04/2026, 10:16 - A: x\n", "c.txt").warnings[0]
    with pytest.raises(Unsupported):
        chat.edit(text.encode(), "c.txt", [{"op": "delete", "address": first.address}])


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"op": "unreact", "address": "#ops/1", "name": "x", "user": "u"}, "has not reacted"),
        ({"op": "insert", "address": "#ops", "user": "u", "ts": "2", "text": "x"}, "exists"),
        ({"op": "set", "address": "#ops", "text": "x"}, "address of a message"),
    ],
)
def test_a_change_that_cannot_be_made_says_why(change, problem: str):
    with pytest.raises(BadEdit, match=problem):
        chat.edit(LINES, "log.jsonl", [change])


def test_files_without_messages_are_typed_errors():
    with pytest.raises(WrongKind):
        chat.read(b'{"a": 1}', "x.json")
    with pytest.raises(WrongKind):
        chat.read(b"no chat at all", "x.txt")
    with pytest.raises(UnreadableDocument):
        chat.read(b"", "x.json")
    with pytest.raises(UnreadableDocument):
        chat.read(b"[" * 100_000, "x.json")
    with pytest.raises(NoSuchAddress):
        chat.edit(LINES, "log.jsonl", [{"op": "delete", "address": "#ops/9"}])


TEXT = st.text(st.characters(codec="utf-8", exclude_categories=("Cs",)), max_size=20)
IDS = st.sampled_from(["U1", "U2"])


@st.composite
def documents(draw, suffix: str) -> Document:
    nodes, count = [], 0
    for channel in draw(st.lists(st.sampled_from(["#a", "#b-c", "@D1"]), unique=True, min_size=1)):
        messages = []
        for stamp in sorted(draw(st.lists(st.integers(1_700_000_000, 1_700_900_000), unique=True, max_size=4))):
            text, address = draw(TEXT), f"{channel}/{stamp}.000100"
            attributes = {"user": draw(IDS), "sent_at": instant_of(f"{stamp}.000100")}
            if messages and draw(st.booleans()):
                attributes["answers"] = messages[0].address
            if draw(st.booleans()):
                attributes["reactions"] = [{"name": "ok", "users": ["U1"]}]
            escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
            if suffix != "jsonl" and escaped != text:
                attributes["source"] = escaped
            messages.append(Node("message", address, text, attributes))
        count += len(messages)
        if messages:
            nodes.append(Node("channel", channel, "", {}, tuple(messages)))
    kind = {"zip": "slack"}.get(suffix, suffix)
    return Document("chat", f"x.{suffix}", tuple(nodes), {"kind": kind, "messages": count})


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(["jsonl", "json", "zip"]), st.data())
def test_what_was_written_is_read_back_equal(suffix: str, data):
    document = data.draw(documents(suffix))
    if not document.nodes:
        return
    read = chat.read(chat.write(document), document.name)
    assert sorted(read.nodes, key=lambda node: node.address) == sorted(document.nodes, key=lambda node: node.address)
    assert read.metadata == document.metadata
