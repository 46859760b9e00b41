"""Mail: broken messages are read as far as they go, and an edit leaves every byte that it does not name."""

from __future__ import annotations

import base64
import struct
from email import message_from_bytes, policy
from hashlib import sha256

import pytest

from journeyman.documents import mail
from journeyman.documents.errors import BadEdit, NoSuchAddress, TooLarge, UnreadableDocument, Unsupported, WrongKind
from journeyman.documents.mail.rtf import text_of_rtf

PDF = b"%PDF-1.4 some bytes \x00\xff"
INNER = b"Message-ID: <in@x>\r\nSubject: inner\r\n\r\nnested text\r\n"
MIXED = (
    b'From: =?utf-8?q?J=C3=B6rg?= <j@example.org>\r\nTo: a@x, "B, C" <b@x>\r\nMessage-ID: <m1@x>\r\n'
    b"In-Reply-To: <m0@x>\r\nReferences: <root@x> <m0@x>\r\nDate: Mon, 2 Mar 2026 10:00:00 +0100\r\n"
    b"Subject: =?utf-8?b?" + base64.b64encode("Prüfung".encode()) + b"?=\r\n\tsecond line\r\nMIME-Version: 1.0\r\n"
    b'Content-Type: multipart/mixed; boundary="xx"\r\n\r\npreamble\r\n--xx\r\n'
    b'Content-Type: multipart/alternative; boundary="yy"\r\n\r\n--yy\r\n'
    b"Content-Type: text/plain; charset=iso-8859-1\r\n"
    b"Content-Transfer-Encoding: quoted-printable\r\n\r\ncaf=E9\r\n=\r\nend\r\n--yy\r\nContent-Type: text/html\r\n\r\n"
    b"<style>x{}</style><p>caf&eacute;</p><table><tr><td>a<td>b</table>\r\n--yy--\r\n--xx\r\n"
    b"Content-Type: application/pdf\r\nContent-Transfer-Encoding: base64\r\n"
    b"Content-Disposition: attachment; filename*=utf-8''r%C3%A9sum%C3%A9.pdf\r\n\r\n"
    + base64.b64encode(PDF)
    + b"\r\n--xx\r\nContent-Type: message/rfc822\r\n\r\n"
    + INNER
    + b"\r\n--xx--\r\nepilogue\r\n"
)
BOX = (
    b"From a@x Mon Mar  2 10:00:00 2026\nMessage-ID: <1@x>\nSubject: one\n\nfirst\n>From the start\n\n"
    b"From b@x Mon Mar  2 11:00:00 2026\nMessage-ID: <2@x>\nIn-Reply-To: <1@x>\nSubject: Re: one\n\nsecond\n"
)


def test_headers_bodies_attachments_and_nested_messages_have_addresses():
    document = mail.read(MIXED, "m.eml")
    assert document.find("msg:m1@x/header/subject").text == "Prüfung\tsecond line"
    assert document.find("msg:m1@x/body").text == "café\nend"
    assert document.find("msg:m1@x/part2").text == "café\n\na\tb"
    pdf = document.find("msg:m1@x/part3").attributes
    assert (pdf["name"], pdf["size_bytes"], pdf["sha256"]) == ("résumé.pdf", len(PDF), sha256(PDF).hexdigest())
    assert document.find("msg:m1@x/part4/msg:in@x/body").text == "nested text\n"
    facts = document.nodes[0].attributes
    assert facts["to"] == [{"address": "a@x"}, {"name": "B, C", "address": "b@x"}]
    assert (facts["from"][0]["name"], facts["sent_at"]) == ("Jörg", "2026-03-02T10:00:00+01:00")
    assert facts["references"] == ["root@x", "m0@x"]
    assert document.warnings == ()


def test_the_bytes_of_an_attachment_are_found_by_its_address():
    assert mail.attachment(MIXED, "m.eml", "msg:m1@x/part3") == ("résumé.pdf", PDF)
    name, nested = mail.attachment(MIXED, "m.eml", "msg:m1@x/part4")
    assert mail.read(nested, name).find("msg:in@x/header/subject").text == "inner"
    with pytest.raises(NoSuchAddress):
        mail.attachment(MIXED, "m.eml", "msg:m1@x/part9")


def test_an_html_body_alone_is_the_body_and_keeps_its_source():
    body = mail.read(b"Subject: x\nContent-Type: text/html\n\n<p>Hello<br>you &amp; me", "h.eml").find("msg:1/body")
    assert (body.text, body.attributes["source"]) == ("Hello\nyou & me", "<p>Hello<br>you &amp; me")


@pytest.mark.parametrize(
    ("headers", "body", "text"),
    [
        (b"Content-Type: text/plain; charset=iso-2022-jp", "日本".encode("iso-2022-jp"), "日本"),
        (b"Content-Type: text/plain; charset=ks_c_5601-1987", "한국".encode("cp949"), "한국"),
        (b"Content-Type: text/plain; charset=shift_jis", "日本".encode("shift_jis"), "日本"),
        (b"Content-Type: text/plain", "grün".encode(), "grün"),
        (b"Content-Type: text/plain; charset=us-ascii", "grün".encode("latin-1"), "grün"),
        (b"Content-Type: text/plain; charset=nonsense", b"plain", "plain"),
        (b"Content-Transfer-Encoding: base64", b"aGVs\nbG8", "hello"),
        (b"Content-Transfer-Encoding: x-uuencode", b"begin 644 a\n%:&5L;&\\\nend\n", "hello"),
        (b"Content-Transfer-Encoding: 7-bit; odd", b"as is", "as is"),
    ],
)
def test_character_sets_and_transfer_encodings_are_undone(headers: bytes, body: bytes, text: str):
    assert mail.read(b"Subject: x\n" + headers + b"\n\n" + body, "c.eml").find("msg:1/body").text == text


def test_what_was_assumed_is_said():
    document = mail.read(b"Subject: x\nContent-Type: text/plain; charset=utf-8\n\ngr\xfcn", "c.eml")
    assert document.find("msg:1/body").text == "grün"
    assert document.warnings == ("msg:1/body: not utf-8 as declared, read as cp1252",)


def test_words_of_a_header_that_were_cut_inside_a_character_are_joined():
    raw = "ü".encode()
    words = b" ".join(b"=?utf-8?b?" + base64.b64encode(part) + b"?=" for part in (b"a" + raw[:1], raw[1:] + b"b"))
    assert mail.read(b"Subject: " + words + b"\n\n", "w.eml").find("msg:1/header/subject").text == "aüb"


def test_a_cut_off_multipart_is_read_with_a_warning():
    document = mail.read(MIXED[: MIXED.index(b"--xx\r\nContent-Type: application/pdf")], "m.eml")
    assert document.find("msg:m1@x/body").text == "café\nend"
    assert any("cut off" in warning for warning in document.warnings)


def test_a_mailbox_has_threads_and_unquoted_lines():
    document = mail.read(BOX, "b.mbox")
    assert [node.attributes["thread"] for node in document.nodes] == ["1@x", "1@x"]
    assert document.find("msg:1@x/body").text == "first\nFrom the start\n"
    assert document.metadata == {"messages": 2}


def test_an_edit_of_a_header_and_a_body_leaves_every_other_byte():
    changes = [
        {"op": "set", "address": "msg:m1@x/header/subject", "text": "Größe"},
        {"op": "replace", "address": "msg:m1@x/body", "old": "end", "new": "→"},
        {"op": "insert", "address": "msg:m1@x", "header": "Cc", "text": "Jürgen <c@x>"},
    ]
    edited = mail.edit(MIXED, "m.eml", changes)
    assert [report.after for report in edited.changed] == ["Größe", "café\n→", "Jürgen <c@x>"]
    start = MIXED.index(b"--yy\r\nContent-Type: text/html")
    assert edited.data.endswith(MIXED[start:])
    assert edited.data.startswith(MIXED[: MIXED.index(b"Subject")])
    seen = message_from_bytes(edited.data, policy=policy.default)
    assert (seen["subject"], str(seen["cc"])) == ("Größe", "Jürgen <c@x>")
    assert seen.get_body(("plain",)).get_content().splitlines() == ["café", "→"]


def test_an_attachment_is_deleted_with_its_boundary():
    edited = mail.edit(MIXED, "m.eml", [{"op": "delete", "address": "msg:m1@x/part3"}])
    assert edited.changed[0].before == "résumé.pdf"
    seen = message_from_bytes(edited.data, policy=policy.default)
    assert [part.get_content_type() for part in seen.iter_parts()] == ["multipart/alternative", "message/rfc822"]


def test_a_mailbox_is_edited_in_place():
    change = {"op": "set", "address": "msg:1@x/body", "text": "new\nFrom now on"}
    edited = mail.edit(BOX, "b.mbox", [change])
    document = mail.read(edited.data, "b.mbox")
    assert (len(document.nodes), document.find("msg:1@x/body").text) == (2, "new\nFrom now on\n")
    assert edited.data.endswith(BOX[BOX.index(b"\nFrom b@x") :])


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"op": "set", "address": "msg:m1@x/header/subject", "text": "a\nBcc: evil@x"}, "one line"),
        ({"op": "set", "address": "msg:m1@x/part2", "text": "x"}, "source"),
        ({"op": "set", "address": "msg:m1@x/part3", "text": "x"}, "only headers and bodies"),
        ({"op": "replace", "address": "msg:m1@x/body", "old": "absent", "new": ""}, "does not occur"),
    ],
)
def test_a_change_that_cannot_be_made_says_why(change, problem: str):
    with pytest.raises(BadEdit, match=problem):
        mail.edit(MIXED, "m.eml", [change])


def test_two_changes_of_one_place_are_refused():
    change = {"op": "set", "address": "msg:m1@x/header/subject", "text": "a"}
    with pytest.raises(BadEdit, match="same place"):
        mail.edit(MIXED, "m.eml", [change, {"op": "delete", "address": "msg:m1@x/header/subject"}])


def test_files_of_other_kinds_are_typed_errors():
    with pytest.raises(WrongKind):
        mail.read(b"just text without any header\n", "x.eml")
    with pytest.raises(UnreadableDocument):
        mail.read(b"", "x.eml")
    with pytest.raises(WrongKind):
        mail.read(b"Subject: x\n\nno line that begins a message", "x.mbox")
    with pytest.raises(UnreadableDocument):
        mail.read(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), "x.msg")
    with pytest.raises(Unsupported):
        mail.edit(b"\xd0\xcf\x11\xe0", "x.msg", [{"op": "delete", "address": "x"}])


def test_a_bomb_of_nested_parts_is_refused():
    message = b"x"
    for depth in range(40):
        boundary = b"b%d" % depth
        head = b"Subject: x\nContent-Type: multipart/mixed; boundary=" + boundary + b"\n\n"
        message = head + b"--" + boundary + b"\n" + message + b"\n--" + boundary + b"--\n"
    with pytest.raises(TooLarge):
        mail.read(message, "x.eml")


def test_compressed_rich_text_is_read():
    rtf = rb"{\rtf1\ansi{\fonttbl{\f0 Arial;}}\f0 caf\'e9 \u8364?\par two}"
    stored = struct.pack("<IIII", len(rtf) + 12, len(rtf), 0x414C454D, 0) + rtf
    assert text_of_rtf(stored) == ("café €\ntwo", "")
    # the example of the specification, MS-OXRTFCP 4.1.1
    packed = bytes.fromhex(
        "2d0000002b0000004c5a4675f1c5c7a703000a007263706731323542320af32068656c090020627705b06c647d0a800fa0"
    )
    assert text_of_rtf(packed) == ("hello world", "")
    assert text_of_rtf(b"short")[1] != ""
