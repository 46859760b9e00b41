"""Properties of mail: what was written is read back equal, and another reader sees the same."""

from __future__ import annotations

from email import message_from_bytes, policy

from hypothesis import given, settings
from hypothesis import strategies as st

from journeyman.documents import mail
from journeyman.documents.mail.reader import message_facts, threaded
from journeyman.documents.node import Document, Node

LETTERS = st.characters(codec="utf-8", categories=("L", "N", "P", "S"))
WORDS = st.lists(st.text(LETTERS, min_size=1, max_size=30), min_size=1, max_size=6).map(" ".join)
BODIES = st.text(
    st.characters(codec="utf-8", categories=("L", "N", "P", "S", "Zs"), include_characters="\n\t"), max_size=200
)
LOCAL = st.text("abcdefgh0123", min_size=1, max_size=8)


@st.composite
def messages(draw, number: int, body: st.SearchStrategy[str]) -> Node:
    headers = {"From": f"{draw(LOCAL)}@example.org", "Subject": draw(WORDS), "Message-ID": f"<{number}@example.org>"}
    if draw(st.booleans()):
        headers["In-Reply-To"] = "<0@example.org>"
    address = f"msg:{number}@example.org"
    children = [Node("header", f"{address}/header/{key.lower()}", text, {"name": key}) for key, text in headers.items()]
    facts = {"type": "text/plain", "part": 1, "charset": "utf-8"}
    children.append(Node("body", f"{address}/body", draw(body), facts))
    if draw(st.booleans()):
        source = "<p>x</p>"
        facts = {"type": "text/html", "part": 2, "charset": "utf-8", "source": source}
        children.append(Node("alternative", f"{address}/part2", "x", facts))
    return Node("message", address, "", message_facts({k.lower(): v for k, v in headers.items()}), tuple(children))


@settings(max_examples=80, deadline=None)
@given(messages(1, BODIES))
def test_a_message_that_was_written_is_read_back_equal(node: Node):
    document = Document("eml", "x.eml", (node,))
    data = mail.write(document)
    assert mail.read(data, "x.eml") == document
    seen = message_from_bytes(data, policy=policy.default).get_body(("plain",)).get_content()
    body = next(child.text for child in node.children if child.kind == "body")
    assert seen.replace("\r\n", "\n").rstrip("\n") == body.rstrip("\n")
    assert max(len(line) for line in data.split(b"\r\n")) <= 998


@settings(max_examples=40, deadline=None)
@given(st.tuples(messages(1, BODIES.map(lambda text: text + "\n")), messages(2, BODIES.map(lambda text: text + "\n"))))
def test_a_mailbox_that_was_written_is_read_back_equal(nodes: tuple[Node, Node]):
    plain = [
        Node(n.kind, n.address, n.text, n.attributes, tuple(c for c in n.children if c.kind != "alternative"))
        for n in nodes
    ]
    document = Document("mbox", "x.mbox", tuple(threaded(plain)), {"messages": 2})
    assert mail.read(mail.write(document), "x.mbox") == document


@settings(max_examples=60, deadline=None)
@given(messages(1, BODIES), BODIES, WORDS)
def test_any_body_and_subject_can_be_set_and_all_else_stays(node: Node, body: str, subject: str):
    data = mail.write(Document("eml", "x.eml", (node,)))
    changes = [
        {"op": "set", "address": f"{node.address}/body", "text": body},
        {"op": "set", "address": f"{node.address}/header/subject", "text": subject},
    ]
    edited = mail.edit(data, "x.eml", changes)
    assert [report.after for report in edited.changed] == [body, subject]
    before = {one.address: one.text for one in node.children}
    after = {one.address: one.text for one in mail.read(edited.data, "x.eml").nodes[0].children}
    assert after == before | {f"{node.address}/body": body, f"{node.address}/header/subject": subject}


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=300))
def test_any_bytes_after_a_header_are_read(data: bytes):
    document = mail.read(b"From: a@x\r\n" + data, "x.eml")
    assert document.nodes[0].children[0].attributes["name"] == "From"
