"""Word documents: nothing a reader can see is dropped, and edits touch what they name alone."""

from __future__ import annotations

import io
import zipfile

import docx as python_docx
import pytest
from docx.oxml import parse_xml

from journeyman.documents import docx
from journeyman.documents.errors import BadEdit, Encrypted, MissingPart, NoSuchAddress, UnreadableDocument, WrongKind

W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
W14 = 'xmlns:w14="http://schemas.microsoft.com/office/word/2010/wordml"'
TRACKED = f"""<w:p {W} {W14} w14:paraId="0A0B0C0D"><w:r><w:t xml:space="preserve">The fee is </w:t></w:r>
<w:del w:id="7" w:author="Ann" w:date="2026-01-02T03:04:05Z">
<w:r><w:rPr><w:b/></w:rPr><w:delText>5</w:delText></w:r></w:del>
<w:ins w:id="8" w:author="Ann"><w:r><w:rPr><w:b/></w:rPr><w:t>6</w:t></w:r></w:ins>
<w:r><w:t xml:space="preserve"> %.</w:t></w:r></w:p>"""
JOINED = f"""<w:p {W}><w:pPr><w:rPr><w:del w:id="9" w:author="Ann"/></w:rPr></w:pPr>
<w:r><w:t>First</w:t></w:r></w:p>"""
FIELD = f"""<w:p {W}><w:r><w:fldChar w:fldCharType="begin"/></w:r><w:r><w:instrText> PAGE </w:instrText></w:r>
<w:r><w:fldChar w:fldCharType="separate"/></w:r><w:r><w:t>3</w:t></w:r>
<w:r><w:fldChar w:fldCharType="end"/></w:r></w:p>"""
BOX = f"""<w:p {W} xmlns:v="urn:schemas-microsoft-com:vml"><w:r><w:t>outside</w:t></w:r>
<w:r><w:pict><v:shape><v:textbox><w:txbxContent><w:p><w:r><w:t>inside</w:t></w:r></w:p></w:txbxContent>
</v:textbox></v:shape></w:pict></w:r></w:p>"""


def saved(file) -> bytes:
    out = io.BytesIO()
    file.save(out)
    return out.getvalue()


def with_body(*elements: str) -> bytes:
    file = python_docx.Document()
    for element in elements:
        file.element.body.insert(len(file.element.body) - 1, parse_xml(element))
    return saved(file)


@pytest.fixture
def contract() -> bytes:
    file = python_docx.Document()
    file.core_properties.title = "Contract"
    file.add_heading("Terms", 1)
    paragraph = file.add_paragraph("Payable by ")
    paragraph.add_run("Acme").bold = True
    paragraph.add_run(" Ltd within 30 days.").italic = True
    file.add_paragraph("first", style="List Bullet")
    table = file.add_table(rows=2, cols=3)
    table.cell(0, 0).merge(table.cell(0, 1)).text = "wide"
    table.cell(1, 2).text = "42"
    inner = table.cell(1, 0).add_table(rows=1, cols=1)
    inner.cell(0, 0).text = "nested"
    file.sections[0].header.paragraphs[0].text = "Confidential"
    file.sections[0].footer.paragraphs[0].text = "Page"
    file.add_comment(paragraph.runs[1:2], text="Which Acme?", author="Ann Lee", initials="AL")
    return saved(file)


def parts(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as container:
        return {name: container.read(name) for name in container.namelist()}


def changed_parts(before: bytes, after: bytes) -> set[str]:
    old, new = parts(before), parts(after)
    return {name for name in old | new if old.get(name) != new.get(name)}


def test_tables_headers_footers_lists_and_comments_are_read(contract):
    document = docx.read(contract, "c.docx")
    assert document.find("body/p1").attributes["heading"] == 1
    assert document.find("body/p3").attributes["list"]["format"] == "bullet"
    assert document.find("body/t1/r1c1").attributes == {"columns": 2}
    assert document.find("body/t1/r2c1/t1/r1c1/p1").text == "nested"
    assert document.find("header1/p1").text == "Confidential"
    assert document.find("footer1").attributes["pages"] == ["default"]
    comment = document.find("comment:0")
    assert (comment.attributes["anchor"], comment.attributes["quoted"]) == ("body/p2", "Acme")
    assert comment.children[0].text == "Which Acme?"
    assert document.metadata["title"] == "Contract"


def test_runs_keep_their_formats_apart(contract):
    runs = docx.read(contract, "c.docx").find("body/p2").attributes["runs"]
    assert [run["text"] for run in runs] == ["Payable by ", "Acme", " Ltd within 30 days."]
    assert (runs[1]["bold"], runs[2]["italic"]) == (True, True)


def test_tracked_changes_are_shown_in_three_states():
    document = docx.read(with_body(TRACKED, JOINED, FIELD), "t.docx")
    node = document.find("para:0A0B0C0D")
    assert (node.text, node.attributes["original"]) == ("The fee is 6 %.", "The fee is 5 %.")
    assert node.attributes["marked"] == "The fee is [-5-][+6+] %."
    assert document.find("change:7").attributes["date"] == "2026-01-02T03:04:05Z"
    assert docx.view(document) == "The fee is 6 %.\nFirst3"
    assert docx.view(document, "original") == "The fee is 5 %.\nFirst\n3"
    assert "First[-¶-]" in docx.view(document, "marked")
    assert any("tracked" in warning for warning in document.warnings)


def test_fields_show_their_result_and_keep_their_code():
    node = docx.read(with_body(FIELD), "f.docx").find("body/p1")
    assert (node.text, node.attributes["fields"]) == ("3", [{"code": "PAGE", "result": "3"}])


def test_text_boxes_are_children_of_their_paragraph():
    document = docx.read(with_body(BOX), "b.docx")
    assert document.find("body/p1").text == "outside"
    assert document.find("body/p1/box1/p1").text == "inside"


def test_a_replacement_across_runs_keeps_the_formats_around_it(contract):
    edited = docx.edit(
        contract, "c.docx", [{"op": "replace", "address": "body/p2", "old": "by Acme", "new": "to Birch"}]
    )
    runs = docx.read(edited.data, "c.docx").find("body/p2").attributes["runs"]
    assert [run["text"] for run in runs] == ["Payable to Birch", " Ltd within 30 days."]
    assert edited.changed[0].after == "Payable to Birch Ltd within 30 days."
    assert changed_parts(contract, edited.data) == {"word/document.xml"}


def test_setting_a_text_keeps_the_format_of_what_stays(contract):
    change = {"op": "set", "address": "body/p2", "text": "Payable by Acme Ltd within 14 days."}
    edited = docx.edit(contract, "c.docx", [change])
    runs = docx.read(edited.data, "c.docx").find("body/p2").attributes["runs"]
    assert (runs[1]["bold"], runs[2]["text"]) == (True, " Ltd within 14 days.")


def test_rows_cells_headers_and_comments_are_edited_and_read_back(contract):
    changes = [
        {"op": "set", "address": "body/t1/r2c3", "text": "43\nnet"},
        {"op": "insert", "address": "body/t1/r1", "values": ["total"]},
        {"op": "set", "address": "header1/p1", "text": "Public"},
        {"op": "comment", "address": "body/p2", "quoted": "30 days", "text": "Too long", "author": "Bo"},
        {"op": "delete", "address": "comment:0"},
    ]
    edited = docx.edit(contract, "c.docx", changes)
    assert [report.after for report in edited.changed] == ["43\nnet", "total\t", "Public", "Too long", None]
    document = docx.read(edited.data, "c.docx")
    assert document.find("body/t1/r3c3/p2").text == "net"
    assert document.find("comment:1").attributes["quoted"] == "30 days"
    assert changed_parts(contract, edited.data) == {"word/document.xml", "word/comments.xml", "word/header1.xml"}


def test_the_first_comment_of_a_document_brings_its_part():
    data = with_body(TRACKED)
    bare = {name: content for name, content in parts(data).items() if "comments" not in name}
    assert "word/comments.xml" not in bare
    edited = docx.edit(data, "t.docx", [{"op": "comment", "address": "para:0A0B0C0D", "text": "Why?", "author": "Bo"}])
    assert [one.text for one in python_docx.Document(io.BytesIO(edited.data)).comments] == ["Why?"]


@pytest.mark.parametrize(("op", "text"), [("accept", "The fee is 6 %."), ("reject", "The fee is 5 %.")])
def test_settled_changes_leave_no_record(op: str, text: str):
    edited = docx.edit(with_body(TRACKED, JOINED, FIELD), "t.docx", [{"op": op}])
    document = docx.read(edited.data, "t.docx")
    assert document.nodes[0].children[0].text == text
    assert not [node for node in document.walk() if node.kind == "change"]
    assert not document.warnings


def test_one_change_is_settled_and_the_other_stays():
    edited = docx.edit(with_body(TRACKED), "t.docx", [{"op": "accept", "address": "change:7"}])
    node = docx.read(edited.data, "t.docx").find("para:0A0B0C0D")
    assert (node.attributes["original"], node.text) == ("The fee is  %.", "The fee is 6 %.")


def test_a_redline_shows_both_texts_and_both_ways_lead_back(contract):
    change = {"op": "redline", "address": "body/p2", "old": "Acme Ltd", "new": "Birch plc", "author": "Bo"}
    edited = docx.edit(contract, "c.docx", [change])
    node = docx.read(edited.data, "c.docx").find("body/p2")
    assert node.attributes["marked"] == "Payable by [-Acme Ltd-][+Birch plc+] within 30 days."
    rejected = docx.edit(edited.data, "c.docx", [{"op": "reject"}])
    assert docx.view(docx.read(rejected.data, "c.docx")) == docx.view(docx.read(contract, "c.docx"))


def test_changes_of_one_call_use_the_addresses_of_the_file_that_was_read(contract):
    changes = [
        {"op": "insert", "address": "body/p1", "text": "new", "where": "before"},
        {"op": "delete", "address": "body/p3"},
        {"op": "set", "address": "body/p2", "text": "second"},
    ]
    texts = docx.view(docx.read(docx.edit(contract, "c.docx", changes).data, "c.docx")).splitlines()
    assert texts[:3] == ["new", "Terms", "second"]
    assert "first" not in texts


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"op": "replace", "address": "body/p2", "old": "Akme", "new": "x"}, "did you mean 'Acme'"),
        ({"op": "delete", "address": "body/t1/r1c1/p1"}, "needs one paragraph"),
        ({"op": "sett", "address": "body/p2", "text": "x"}, "did you mean 'set'"),
        ({"op": "style", "address": "body/p2", "style": "Headng 1"}, "heading 1"),
        ({"op": "insert", "address": "body/t1/r1", "values": ["1", "2", "3"]}, "3 values for 2 cells"),
        ({"op": "set", "address": "body/p2", "text": "bell\x07"}, "set"),
        ({"op": "accept"}, "no tracked change"),
    ],
)
def test_a_change_that_cannot_be_made_says_why(contract, change, problem: str):
    with pytest.raises(BadEdit, match=problem):
        docx.edit(contract, "c.docx", [change])


def test_an_address_that_does_not_exist_names_the_nearest(contract):
    with pytest.raises(NoSuchAddress, match="body/p3"):
        docx.edit(contract, "c.docx", [{"op": "set", "address": "body/p33", "text": "x"}])


def rezipped(data: bytes, **replaced: bytes | None) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as target:
        for name, content in (parts(data) | {key.replace("__", "/"): one for key, one in replaced.items()}).items():
            if content is not None:
                target.writestr(name, content)
    return out.getvalue()


def test_damaged_files_are_typed_errors_that_name_the_part(contract):
    with pytest.raises(UnreadableDocument, match=r"word/document\.xml"):
        docx.read(rezipped(contract, **{"word__document.xml": b"<w:document"}), "c.docx")
    with pytest.raises(MissingPart):
        docx.read(rezipped(contract, **{"word__document.xml": None}), "c.docx")
    with pytest.raises(UnreadableDocument, match="document type"):
        docx.read(rezipped(contract, **{"word__document.xml": b'<!DOCTYPE a [<!ENTITY b "c">]><a/>'}), "c.docx")
    with pytest.raises(UnreadableDocument):
        docx.read(contract[:2000], "c.docx")
    with pytest.raises(WrongKind):
        docx.read(b"%PDF-1.7", "c.docx")
    with pytest.raises(Encrypted):
        docx.read(b"\xd0\xcf\x11\xe0" + "EncryptedPackage".encode("utf-16-le"), "c.docx")


def test_a_document_that_another_program_saved_again_reads_the_same(contract):
    for data in (contract, with_body(TRACKED, JOINED, FIELD, BOX)):
        again = saved(python_docx.Document(io.BytesIO(data)))
        assert docx.read(again, "c.docx").nodes == docx.read(data, "c.docx").nodes


def test_a_damaged_footer_is_a_warning_not_the_end(contract):
    document = docx.read(rezipped(contract, **{"word__footer1.xml": b"<"}), "c.docx")
    assert document.find("header1/p1").text == "Confidential"
    assert any("footer1.xml" in warning for warning in document.warnings)
