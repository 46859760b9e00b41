"""Hostile files end as typed errors within their limits, and no process outlives its purpose."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import zlib
from io import BytesIO
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from journeyman.documents import Document, Node, child, open_document, write
from journeyman.documents.child import pool, read_safely
from journeyman.documents.child.columns import columns_of, document_of
from journeyman.documents.child.process import Child, Died, Late
from journeyman.documents.child.wire import Broken, pack, unpack
from journeyman.documents.errors import (
    Encrypted,
    MissingPart,
    ReaderDied,
    TookTooLong,
    TooLarge,
    UnreadableDocument,
    Unsupported,
    WrongKind,
)
from journeyman.worlds.mini.render import RENDERERS

LINES = [["Client", "Q1"], ["Acme", 412]]
CSV = b"Client,Q1\nAcme,412\n"


@pytest.fixture(autouse=True)
def no_children_left():
    yield
    child.close_children()


def pdf_of(*objects: bytes) -> bytes:
    """A PDF of these objects, the first of which is its catalogue."""
    body, places = b"%PDF-1.7\n", []
    for number, item in enumerate(objects, start=1):
        places.append(len(body))
        body += b"%d 0 obj\n%s\nendobj\n" % (number, item)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    head = b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    tail = b"trailer\n<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF" % (len(objects) + 1, len(body))
    return body + head + table + tail


def stream(data: bytes, entries: bytes = b"") -> bytes:
    return b"<<%s/Length %d>>\nstream\n%s\nendstream" % (entries, len(data), data)


FONT = b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"
RESOURCES = b"/Resources<</Font<</F 5 0 R>>/XObject<</X %d 0 R>>>>"
FORM = b"/Type/XObject/Subtype/Form/BBox[0 0 600 800]" + RESOURCES


def one_page(content: bytes, *more: bytes) -> bytes:
    page = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents 4 0 R%s>>" % (RESOURCES % 6)
    return pdf_of(b"<</Type/Catalog/Pages 2 0 R>>", b"<</Type/Pages/Kids[3 0 R]/Count 1>>", page, content, FONT, *more)


def growing_forms() -> bytes:
    """Each form draws the next one ten times: 10^9 words from 2 kB."""
    forms = [stream(b"/X Do " * 10, FORM % (7 + level)) for level in range(8)]
    word = stream(b"BT /F 10 Tf 10 10 Td (lol) Tj ET", FORM % 5)
    return one_page(stream(b"/X Do"), *forms, word)


def swollen_stream() -> bytes:
    """A content stream of 420 MB, packed into 2 MB."""
    packer = zlib.compressobj(1)
    piece = b"0 0 m 9 9 l S\n" * 100_000
    data = b"".join(packer.compress(piece) for _ in range(300)) + packer.flush()
    return one_page(stream(data, b"/Filter/FlateDecode"))


def container(**parts: bytes) -> bytes:
    buffer = BytesIO()
    with ZipFile(buffer, "w", ZIP_DEFLATED, compresslevel=1) as target:
        for name, data in parts.items():
            target.writestr(name.replace("__", "/").replace("_DOT_", "."), data)
    return buffer.getvalue()


def replaced(data: bytes, part: str, content: bytes) -> bytes:
    """A container with other content in one of its parts."""
    buffer = BytesIO()
    with ZipFile(BytesIO(data)) as source, ZipFile(buffer, "w", ZIP_DEFLATED) as target:
        for item in source.infolist():
            target.writestr(item.filename, content if item.filename == part else source.read(item))
    return buffer.getvalue()


def test_a_healthy_child_is_asked_again_and_answers_as_the_reader_in_this_process():
    data = RENDERERS["pdf"]("sales", LINES)
    assert read_safely(data, "a.pdf") == open_document(data, "a.pdf")
    first = pool._idle[0].pid
    assert read_safely(data, "b.pdf").name == "b.pdf"
    assert [one.pid for one in pool._idle] == [first]


def test_the_child_of_a_large_parent_is_asked_again_too():
    ballast = bytearray(900 << 20)
    ballast[::4096] = b"1" * len(ballast[::4096])  # really resident
    data = RENDERERS["pdf"]("sales", LINES)
    read_safely(data, "a.pdf")
    assert len(pool._idle) == 1
    del ballast


def test_edits_and_writes_go_through_the_child_with_their_reports():
    page = Node("page", "p1", children=(Node("paragraph", "p", "hello"),))
    data = child.write_safely(Document("pdf", "a.pdf", (page,)))
    assert data == write(Document("pdf", "a.pdf", (page,)))
    with pytest.raises(Unsupported, match=r"a\.pdf: pdf files are not edited; edited are: csv"):
        child.edit_safely(data, "a.pdf", [{"op": "set", "address": "p1"}])


def test_a_file_that_takes_for_ever_is_stopped_and_the_next_one_is_read():
    began = time.monotonic()
    with pytest.raises(TookTooLong, match=r"laughs\.pdf: no end within 1 s"):
        read_safely(growing_forms(), "laughs.pdf", deadline_s=1)
    assert time.monotonic() - began < 4
    assert pool._idle == []
    assert read_safely(RENDERERS["pdf"]("sales", LINES), "a.pdf").nodes


def test_a_file_that_takes_all_memory_ends_its_child_alone():
    with pytest.raises((ReaderDied, TooLarge)) as caught:
        read_safely(swollen_stream(), "swollen.pdf", memory_mb=250, deadline_s=60)
    assert "swollen.pdf" in str(caught.value)
    assert read_safely(RENDERERS["pdf"]("sales", LINES), "a.pdf", memory_mb=250).nodes


def test_loops_in_a_pdf_end():
    itself = one_page(stream(b"/X Do"), stream(b"/X Do BT /F 10 Tf 10 10 Td (once) Tj ET", FORM % 6))
    assert read_safely(itself, "form.pdf").text() == "once"
    pages = pdf_of(b"<</Type/Catalog/Pages 2 0 R>>", b"<</Type/Pages/Kids[2 0 R]/Count 100>>")
    with pytest.raises(UnreadableDocument, match="none of its 100 pages"):
        read_safely(pages, "pages.pdf")


def test_a_zip_bomb_is_refused_before_it_is_unpacked():
    with pytest.raises(TooLarge, match="unpack to 300000000 bytes"):
        read_safely(container(word__document_DOT_xml=bytes(300_000_000)), "bomb.docx")


@pytest.mark.parametrize(("suffix", "part"), [("xlsx", "xl/worksheets/sheet1.xml"), ("docx", "word/document.xml")])
def test_entities_that_multiply_do_not(suffix, part):
    levels = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 10))
    bomb = f'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY e0 "lol">{levels}]><x>&e9;</x>'.encode()
    data = replaced(RENDERERS[suffix]("sales", LINES), part, bomb)
    began = time.monotonic()
    try:
        document = read_safely(data, f"bomb.{suffix}")
    except UnreadableDocument as error:
        assert f"bomb.{suffix}" in str(error)
    else:
        assert len(document.text()) < 10_000
    assert time.monotonic() - began < 12


@pytest.mark.parametrize("suffix", ["pdf", "xlsx", "docx"])
@pytest.mark.parametrize("share", [0.02, 0.3, 0.9])
def test_a_truncated_file_is_a_typed_error_or_what_is_left_of_it(suffix, share):
    whole = RENDERERS[suffix]("sales", LINES)
    try:
        document = read_safely(whole[: int(len(whole) * share)], f"cut.{suffix}")
    except UnreadableDocument as error:
        assert str(error).startswith(f"cut.{suffix}")
    else:
        assert suffix == "pdf"
        assert document.format == suffix


@pytest.mark.parametrize("suffix", ["csv", "docx", "pdf", "xlsx"])
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_a_damaged_file_is_a_typed_error_or_a_tree_and_never_another_error(suffix: str, data: st.DataObject):
    whole = RENDERERS[suffix]("sales", LINES)
    start = data.draw(st.integers(0, len(whole) - 1))
    noise = data.draw(st.binary(min_size=1, max_size=64))
    try:
        document = read_safely(whole[:start] + noise + whole[start + len(noise) :], f"a.{suffix}")
    except UnreadableDocument as error:
        assert str(error).startswith(f"a.{suffix}")
    else:
        assert document.name == f"a.{suffix}"


def test_a_password_a_missing_part_and_a_wrong_name_are_told_apart():
    ole = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(504) + "EncryptedPackage".encode("utf-16-le") + bytes(96)
    with pytest.raises(Encrypted, match=r"a\.xlsx: protected by a password; save it without a password"):
        read_safely(ole, "a.xlsx")
    with pytest.raises(MissingPart, match=r"a\.docx: no docx document in the container"):
        read_safely(container(readme=b"hello"), "a.docx")
    with pytest.raises(WrongKind, match=r"a\.docx: the name says docx, the content is a PDF; rename it to \.pdf"):
        read_safely(RENDERERS["pdf"]("sales", LINES), "a.docx")


def test_a_reader_that_dies_is_a_typed_error():
    one = Child(512)
    threading.Timer(0.3, os.kill, (one.pid, signal.SIGSEGV)).start()
    with pytest.raises(Died, match=f"signal {int(signal.SIGSEGV)}"):
        one.ask(request("laughs.pdf"), [growing_forms()], 10)
    assert not one.is_alive()


def request(name: str) -> dict[str, object]:
    return {"verb": "read", "names": [name], "options": {}}


def test_a_child_that_died_while_it_waited_is_replaced():
    data = RENDERERS["pdf"]("sales", LINES)
    read_safely(data, "a.pdf")
    os.kill(pool._idle[0].pid, signal.SIGKILL)
    time.sleep(0.1)
    assert read_safely(data, "a.pdf").nodes


def test_a_child_that_is_late_is_dead_when_the_error_arrives():
    one = Child(512)
    with pytest.raises(Late):
        one.ask(request("laughs.pdf"), [growing_forms()], 0.5)
    assert not one.is_alive()
    with pytest.raises(ProcessLookupError):
        os.kill(one.pid, 0)


def test_many_threads_are_served_at_once_and_two_children_are_kept():
    data, found = RENDERERS["pdf"]("sales", LINES), list[Document]()
    threads = [
        threading.Thread(target=lambda: found.append(read_safely(data, "a.pdf", deadline_s=60))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    assert len(pool._idle) <= pool.MAX_IDLE


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("name", ["idle", "busy"])
def test_a_parent_that_is_killed_leaves_no_child(tmp_path: Path, name: str):
    (tmp_path / "a.pdf").write_bytes(growing_forms() if name == "busy" else RENDERERS["pdf"]("sales", LINES))
    program = f"""
        import threading, time
        from journeyman.documents.child import read_safely
        data = open({str(tmp_path / "a.pdf")!r}, "rb").read()
        work = lambda: read_safely(data, "a.pdf", deadline_s={1 if name == "busy" else 60})
        thread = threading.Thread(target=work)  # a thread: its end must not be taken for the parent's
        thread.start()
        {"thread.join()" if name == "idle" else "time.sleep(0.6)"}
        print("ready", flush=True)
        time.sleep(60)
    """
    parent = subprocess.Popen([sys.executable, "-c", textwrap.dedent(program)], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    assert parent.stdout.readline() == "ready\n"
    (pid,) = children_of(parent.pid)
    parent.kill()
    parent.wait()
    parent.stdout.close()
    ends_at = time.monotonic() + 8
    while is_running(pid) and time.monotonic() < ends_at:
        time.sleep(0.05)
    assert not is_running(pid)


def children_of(parent: int) -> list[int]:
    tasks = Path(f"/proc/{parent}/task").glob("*/children")
    return [int(word) for task in tasks for word in task.read_text().split()]


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_panic_of_a_library_becomes_a_typed_error_and_an_interruption_does_not():
    from journeyman.documents.opening import _Boundary

    panic = type("PanicException", (BaseException,), {})
    with pytest.raises(UnreadableDocument, match=r"a\.xlsx: damaged: index out of range"), _Boundary("a.xlsx"):
        raise panic("index out of range")
    with pytest.raises(KeyboardInterrupt), _Boundary("a.xlsx"):
        raise KeyboardInterrupt


def test_frames_come_back_and_nonsense_is_refused():
    data = b"".join(pack({"a": "ü"}, [b"one", b""]))
    source = BytesIO(data)
    assert unpack(source.read) == ({"a": "ü", "sizes": [3, 0]}, [b"one", b""])
    for frame in (b"\xff" * 8, (3).to_bytes(8, "big") + b"[1]", (2).to_bytes(8, "big") + b"{}"):
        with pytest.raises(Broken):
            unpack(BytesIO(frame).read)


def test_trees_cross_the_wire_whole_also_when_they_are_deeper_than_python_recurses():
    node = Node("leaf", "n0", "text", {"a": 1})
    for depth in range(1, 5000):
        node = Node("x", f"n{depth}", children=(node, Node("y", f"m{depth}")))
    document = Document("pptx", "a.pptx", (node, Node("z", "last")), {"title": "t"}, ("w",))
    back = document_of(columns_of(document))
    assert [(one.kind, one.address, one.text) for one in back.walk()] == [
        (one.kind, one.address, one.text) for one in document.walk()
    ]
    assert (back.metadata, back.warnings) == (document.metadata, document.warnings)
