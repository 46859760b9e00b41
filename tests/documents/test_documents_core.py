"""One table of formats for reading, writing and editing; what the bytes are is told apart before a reader sees them."""

from __future__ import annotations

import pickle
import subprocess
import sys
from io import BytesIO
from zipfile import ZipFile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from journeyman.documents import Change, ChangeReport, Document, Edited, Node, edit, errors, open_document, write
from journeyman.documents.content import NAMES, detect
from journeyman.documents.editing import changes_of
from journeyman.documents.errors import (
    BadEdit,
    NoSuchAddress,
    TooLarge,
    UnreadableDocument,
    Unsupported,
    WrongKind,
)
from journeyman.documents.formats import FORMATS, suffix_of
from journeyman.documents.opening import MAX_BYTES, recalculate
from journeyman.worlds.mini.render import RENDERERS

LINES = [["Client", "Q1"], ["Acme", 412]]


@pytest.mark.parametrize("suffix", sorted({"pdf", "xlsx", "docx"}))
def test_a_file_is_known_by_its_bytes(suffix):
    assert detect(RENDERERS[suffix]("sales", LINES)) == suffix


@pytest.mark.parametrize(
    ("stream", "kind"), [("WordDocument", "doc"), ("Workbook", "xls"), ("__properties_version1.0", "msg")]
)
def test_legacy_office_files_are_told_apart_by_their_streams(stream, kind):
    data = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(504) + stream.encode("utf-16-le") + bytes(96)
    assert detect(data) == kind


@pytest.mark.parametrize("suffix", sorted(suffix for suffix, row in FORMATS.items() if row.container != "text"))
def test_every_wrong_suffix_names_what_the_file_is(suffix):
    for content, data in {"pdf": RENDERERS["pdf"]("a", LINES), "docx": RENDERERS["docx"]("a", LINES)}.items():
        if FORMATS[suffix].content != content:
            with pytest.raises(WrongKind) as caught:
                open_document(data, f"a.{suffix}")
            assert NAMES[content] in str(caught.value)
            assert caught.value.remedy == f"rename it to .{content}"


@pytest.mark.parametrize("suffix", ["csv", "eml", "ics", "json"])
def test_a_container_under_the_name_of_a_text_format_is_the_wrong_kind(suffix):
    with pytest.raises(WrongKind, match=r"the content is a Word document \(docx\); rename it to \.docx"):
        open_document(RENDERERS["docx"]("a", LINES), f"a.{suffix}")


def test_an_unknown_suffix_gets_the_nearest_and_the_list():
    with pytest.raises(Unsupported, match="no reader for 'docxx'; did you mean docx"):
        open_document(b"x", "a.docxx")
    with pytest.raises(Unsupported, match="readable: csv, "):
        open_document(b"x", "noname")
    with pytest.raises(Unsupported, match="doc files are not read; convert it"):
        stream = "WordDocument".encode("utf-16-le")
        open_document(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(504) + stream + bytes(96), "a.doc")


def test_empty_and_oversized_files_are_refused():
    with pytest.raises(UnreadableDocument, match="the file is empty"):
        open_document(b"", "a.pdf")
    with pytest.raises(TooLarge, match="64000001 bytes are more than the 64000000"):
        open_document(bytes(MAX_BYTES + 1), "a.pdf")


def test_a_member_that_grows_too_much_is_named():
    buffer = BytesIO()
    with ZipFile(buffer, "w") as target:
        target.writestr("xl/workbook.xml", b"x" * 100)
    data = bytearray(buffer.getvalue())
    at = data.rindex(b"PK\x01\x02")
    data[at + 24 : at + 28] = (200_000_000).to_bytes(4, "little")  # the size that the directory claims
    with pytest.raises(TooLarge, match=r"a\.xlsx, xl/workbook\.xml: grows 2000000 fold"):
        open_document(bytes(data), "a.xlsx")


def test_every_row_of_the_table_names_a_package_that_keeps_its_promises():
    for suffix, row in FORMATS.items():
        if not row.package:
            continue
        module = row.module(f"a.{suffix}")
        assert module.__doc__, suffix
        assert callable(module.read), suffix
        assert not row.is_written or callable(module.write), suffix
        assert not row.is_edited or callable(module.edit), suffix


def test_what_is_not_written_or_edited_says_what_is():
    with pytest.raises(Unsupported, match="'msg' is not written; written are: pdf, csv"):
        write(Document("msg", "a.msg"))
    with pytest.raises(Unsupported, match=r"pdf files are not edited; edited are: csv"):
        edit(RENDERERS["pdf"]("a", LINES), "a.pdf", [{"op": "set", "address": "p1"}])
    with pytest.raises(Unsupported, match="pdf files have no formulas"):
        recalculate(RENDERERS["pdf"]("a", LINES), "a.pdf")


@pytest.mark.parametrize("value", [{}, {"op": ""}, {"op": "set", "address": 3}, "set", None, {"address": "p1"}])
def test_what_is_no_change_is_refused_with_the_shape_of_one(value):
    with pytest.raises(BadEdit, match=r'a change is \{"op": text, "address": text'):
        changes_of([value], "a.xlsx")


def test_no_change_at_all_is_refused():
    with pytest.raises(BadEdit, match="no change was asked for"):
        changes_of([], "a.xlsx")


def test_a_change_comes_back_from_json_and_its_fields_are_checked():
    change = Change.of({"op": "set", "address": "A!B1", "value": 3, "text": "t"}, "a.xlsx")
    assert Change.of(change.as_json(), "a.xlsx") == change
    assert change.text("text", "a.xlsx") == "t"
    with pytest.raises(BadEdit, match=r"a\.xlsx, A!B1: op 'set' needs 'value' as text, got 3"):
        change.text("value", "a.xlsx")
    with pytest.raises(BadEdit, match=r"did you mean 'sets'\?; ops: clear, sets"):
        change.require(["sets", "clear"], "a.xlsx")
    change.require(["set"], "a.xlsx")


def test_what_was_changed_is_json():
    edited = Edited(b"abc", (ChangeReport("set", "A!B1", 1, 2), ChangeReport("set", "A!B2", note="n")), ("w",))
    assert edited.as_json() == {
        "size_bytes": 3,
        "changed": [
            {"op": "set", "address": "A!B1", "before": 1, "after": 2},
            {"op": "set", "address": "A!B2", "before": None, "after": None, "note": "n"},
        ],
        "warnings": ["w"],
    }


NODES = st.recursive(
    st.builds(Node, st.text(max_size=5), st.text(max_size=5), st.text(max_size=9)),
    lambda inner: st.builds(
        Node,
        st.just("x"),
        st.text(max_size=5),
        st.text(max_size=5),
        st.dictionaries(st.text(max_size=3), st.integers() | st.text(max_size=3), max_size=2),
        st.lists(inner, max_size=3).map(tuple),
    ),
    max_leaves=12,
)


@given(st.lists(NODES, max_size=4).map(tuple))
def test_a_tree_comes_back_from_json(nodes):
    document = Document("pdf", "a.pdf", nodes, {"title": "t"}, ("w",))
    assert Document.from_json(document.as_json()) == document


def test_an_address_that_does_not_exist_gets_the_nearest():
    document = Document("xlsx", "m.xlsx", (Node("sheet", "DCF", children=(Node("cell", "DCF!B12"),)),))
    assert document.find("DCF!B12").kind == "cell"
    with pytest.raises(NoSuchAddress, match=r"m\.xlsx, DCF!B21: no 'DCF!B21' in this xlsx; nearest: DCF!B12"):
        document.find("DCF!B21")


def test_every_error_has_a_kind_of_its_own_and_survives_a_pipe():
    types = [one for one in vars(errors).values() if isinstance(one, type) and issubclass(one, UnreadableDocument)]
    assert len({one.kind for one in types}) == len(types)
    for one in types:
        error = one("a.pdf", "what", place="p1", remedy="do")
        back = pickle.loads(pickle.dumps(error))
        assert (type(back), str(back)) == (one, "a.pdf, p1: what; do")


@pytest.mark.parametrize(
    ("name", "suffix"), [("a.PDF", "pdf"), ("x/y.z/noname", ""), ("a.tar.gz", "gz"), ("dir.d/a.eml", "eml")]
)
def test_only_the_last_suffix_of_the_file_name_counts(name, suffix):
    assert suffix_of(name) == suffix


def test_opening_the_room_costs_nothing():
    program = "import sys, journeyman.documents; print(sorted({'json', 'dataclasses', 'zipfile'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=True)
    assert done.stdout == "[]\n"


def test_a_legacy_workbook_under_a_password_is_told_by_its_records():
    head = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(504) + "Workbook".encode("utf-16-le") + bytes(496)
    begin = b"\x09\x08\x10\x00\x00\x06\x05\x00" + bytes(12)
    locked = head + begin + b"\x86\x00\x00\x00" + b"\x2f\x00\x06\x00" + bytes(6)
    assert detect(locked) == "encrypted"
    assert detect(head + begin + b"\x42\x00\x02\x00\xb0\x04" + bytes(64)) == "xls"
    with pytest.raises(errors.Encrypted, match=r"a\.xls: protected by a password"):
        open_document(locked, "a.xls")


def container_of(*names: str) -> bytes:
    """An OLE container whose root holds the first streams, the last one inside a storage of the first."""
    entries = ["Root Entry", *names]
    directory = b""
    for at, name in enumerate(entries):
        text = name.encode("utf-16-le")
        links = {0: (-1, -1, 1), 1: (-1, 2 if len(names) > 2 else -1, len(names))}.get(at, (-1, -1, -1))
        head = text.ljust(64, b"\0") + (len(text) + 2).to_bytes(2, "little") + b"\1\1"
        directory += (head + b"".join(one.to_bytes(4, "little", signed=True) for one in links)).ljust(128, b"\0")
    fat = b"\xfd\xff\xff\xff" + b"\xfe\xff\xff\xff" + b"\xff" * 504
    head = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(22) + (9).to_bytes(2, "little") + bytes(16)
    head += (1).to_bytes(4, "little") + bytes(24) + (0).to_bytes(4, "little") + b"\xff" * 432
    return head + fat + directory.ljust(512, b"\0")


def test_an_embedded_word_document_does_not_make_a_workbook_one():
    assert detect(container_of("Ole1", "Workbook", "WordDocument")) == "xls"
    assert detect(container_of("WordDocument", "x", "Workbook")) == "doc"
    assert detect(container_of("Ole1", "WORKBOOK", "x")) == "xls"


@given(st.binary(max_size=2000))
def test_any_bytes_behind_the_mark_of_a_container_are_some_kind(noise):
    assert detect(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + noise) in {*NAMES, "encrypted"}
    assert detect(b"PK\x03\x04" + noise) in NAMES
    assert detect(noise) in {*NAMES, "encrypted"}
