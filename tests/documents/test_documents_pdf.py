"""PDFs as they are written in earnest: columns, tables, notes, turned pages, scans, forms; each with a known truth."""

from __future__ import annotations

import importlib.util
from io import BytesIO
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from journeyman.documents import Document, Node, open_document, write
from journeyman.documents.errors import Encrypted, UnreadableDocument, Unsupported
from journeyman.documents.pdf.boxes import Box, turn
from journeyman.documents.pdf.order import blocks
from journeyman.documents.pdf.paragraphs import join
from journeyman.documents.pdf.reader import ranges
from journeyman.documents.pdf.rulings import Ruling, turn_ruling


@pytest.fixture(scope="module")
def files() -> ModuleType:
    """The generators that the benchmark uses."""
    path = Path(__file__).resolve().parents[2] / "benchmarks" / "document_files.py"
    spec = importlib.util.spec_from_file_location("document_files", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def drawn(draw, size=(595, 842), **options) -> bytes:
    """A PDF of what ``draw(canvas)`` puts on it."""
    from reportlab.pdfgen.canvas import Canvas

    buffer = BytesIO()
    canvas = Canvas(buffer, pagesize=size, invariant=1, **options)
    draw(canvas)
    canvas.save()
    return buffer.getvalue()


def of_kind(document: Document, kind: str) -> list[Node]:
    return [node for node in document.walk() if node.kind == kind]


@pytest.mark.parametrize(
    ("make", "n_marks"), [("two_col", 250), ("row_order", 500), ("three_columns", 45), ("narrow_gutter", 20)]
)
def test_no_paragraph_of_a_page_in_columns_is_lost_or_mixed(files, make, n_marks):
    text = open_document(getattr(files, make)(), "a.pdf").text()
    assert files.kept_and_mixed(text, n_marks) == (n_marks, 0)


def test_text_in_rows_across_the_columns_counts_as_mixed(files):
    assert files.kept_and_mixed("MARK0 a MARK1 b\nc END0 d END1", 3) == (0, 2)


def test_a_title_close_above_two_columns_does_not_join_them():
    def draw(page) -> None:
        page.setFont("Helvetica", 16)
        page.drawString(150, 780, "One title over both of the columns")
        page.setFont("Helvetica", 10)
        for line in range(20):
            shift = 0 if line < 10 else 6  # paragraphs of both columns end at the same height, so a cut goes through
            page.drawString(50, 763 - 12 * line - shift, f"left {line:02d} and some more words of prose")
            page.drawString(320, 763 - 12 * line - shift, f"right {line:02d} and some more words of prose")

    text = " ".join(node.text for node in of_kind(open_document(drawn(draw), "two.pdf"), "paragraph"))
    assert text.index("left 19") < text.index("right 00")


def test_tables_in_columns_are_cut_out_whole_and_titles_are_told_apart(files):
    document = open_document(files.two_col(4), "a.pdf")
    rows = [[cell.text for cell in row.children] for row in of_kind(document, "row")]
    assert len(rows) == 4 * 9
    assert rows.count(["Item", "2024", "2025"]) == 4
    assert all(len(row) == 3 for row in rows)
    n_pages = len(of_kind(document, "page"))
    headers = [node.text for node in of_kind(document, "header")]
    assert headers == ["Quarterly report - confidential"] * n_pages
    footers = [node.text for node in of_kind(document, "footer") if "unaudited" in node.text]
    assert footers == [f"Note: figures are unaudited. Page {page}" for page in range(1, n_pages + 1)]
    headings = [node.text for node in of_kind(document, "heading")]
    assert {f"Section {number}" for number in range(1, 5)} <= set(headings)


@settings(max_examples=20, deadline=None)
@given(
    st.lists(
        st.lists(st.text("abcXYZ019-&<>'", min_size=1, max_size=12), min_size=3, max_size=3), min_size=2, max_size=5
    )
)
def test_a_tree_written_and_read_keeps_its_cells_and_paragraphs(rows):
    cells = [Node("row", f"r{i}", children=tuple(Node("cell", f"r{i}c{j}", t) for j, t in enumerate(r)))
             for i, r in enumerate(rows)]  # fmt: skip
    page = Node("page", "p1", children=(Node("paragraph", "a", "Before"), Node("table", "t", children=tuple(cells))))
    read = open_document(write(Document("pdf", "a.pdf", (page,), {"title": "T"})), "a.pdf")
    assert [[cell.text for cell in row.children] for row in of_kind(read, "row")] == rows
    assert [node.text for node in of_kind(read, "paragraph")] == ["Before"]
    assert read.metadata["title"] == "T"


def test_what_the_standard_fonts_lack_is_refused_with_its_place():
    page = Node("page", "p1", children=(Node("paragraph", "p1@x", "中"),))
    with pytest.raises(Unsupported, match=r"a.pdf, p1@x: '中'"):
        write(Document("pdf", "a.pdf", (page,)))


def test_every_address_is_unique_and_finds_its_node(files):
    document = open_document(files.two_col(2), "a.pdf")
    addresses = [node.address for node in document.walk()]
    assert len(addresses) == len(set(addresses))
    table = of_kind(document, "table")[0]
    assert document.find(f"{table.address}/r1c2").text == "2024"
    block = of_kind(document, "paragraph")[0]
    left, top, right, bottom = map(float, block.address.split("@")[1].split(","))
    assert 0 <= left < right <= 595
    assert 0 <= top < bottom <= 842


def test_merged_cells_span_and_pdfplumber_sees_the_same_cells():
    from reportlab.platypus import Table, TableStyle

    lines = [["Region", "Sales", ""], ["", "2024", "2025"], ["North", "1", "2"]]
    style = [("GRID", (0, 0), (-1, -1), 1, "black"), ("SPAN", (1, 0), (2, 0)), ("SPAN", (0, 0), (0, 1))]

    def draw(canvas):
        table = Table(lines, style=TableStyle(style))
        table.wrapOn(canvas, 400, 400)
        table.drawOn(canvas, 100, 600)

    data = drawn(draw)
    document = open_document(data, "a.pdf")
    rows = [{cell.address: cell.text for cell in row.children} for row in of_kind(document, "row")]
    assert rows[0] == {"p1/t1/r1c1": "Region", "p1/t1/r1c2": "Sales"}
    assert document.find("p1/t1/r1c2").attributes == {"rows": 1, "columns": 2}
    assert document.find("p1/t1/r1c1").attributes == {"rows": 2, "columns": 1}
    import pdfplumber

    with pdfplumber.open(BytesIO(data)) as other:
        (found,) = other.pages[0].extract_tables()
    assert [[cell for cell in row if cell is not None] for row in found] == [list(row.values()) for row in rows]


def test_a_table_without_vertical_lines_is_a_table_too():
    def draw(canvas):
        canvas.setFont("Helvetica", 10)
        for y, cells in ((700, ("Client", "Amount")), (680, ("Acme", "412")), (660, ("Birch", "105"))):
            canvas.drawString(100, y, cells[0])
            canvas.drawString(300, y, cells[1])
        for y in (715, 695, 652):
            canvas.line(90, y, 400, y)

    rows = [[cell.text for cell in row.children] for row in of_kind(open_document(drawn(draw), "a.pdf"), "row")]
    assert rows == [["Client", "Amount"], ["Acme", "412"], ["Birch", "105"]]


def test_an_unruled_table_is_read_row_by_row():
    def draw(canvas):
        canvas.setFont("Helvetica", 10)
        for row in range(10):
            canvas.drawString(100, 700 - 12 * row, f"Item {row}")
            canvas.drawString(300, 700 - 12 * row, str(100 + row))

    assert "Item 0 100 Item 1 101" in " ".join(open_document(drawn(draw), "a.pdf").text().split())


def test_a_footnote_is_marked_and_stands_after_the_text():
    def draw(canvas):
        for row in range(20):
            canvas.setFont("Helvetica", 11)
            canvas.drawString(80, 760 - 14 * row, "A sentence of the running text that fills the width of the page.")
        canvas.setFont("Helvetica", 8)
        canvas.drawString(80, 130, "1 The figure includes discontinued operations.")
        canvas.drawString(80, 118, "2 Restated.")

    notes = of_kind(open_document(drawn(draw), "a.pdf"), "footnote")
    assert [(node.text, node.attributes["mark"]) for node in notes] == [
        ("1 The figure includes discontinued operations.", "1"),
        ("2 Restated.", "2"),
    ]


@pytest.mark.parametrize("rotation", [0, 90, 180, 270])
def test_text_of_a_turned_page_has_its_box_as_the_page_is_shown(rotation):
    import pypdfium2

    def draw(canvas):
        canvas.drawString(100, 700, "corner")

    source = pypdfium2.PdfDocument(drawn(draw))
    source[0].set_rotation(rotation)
    buffer = BytesIO()
    source.save(buffer)
    (node,) = of_kind(open_document(buffer.getvalue(), "a.pdf"), "paragraph")
    left, top, right, bottom = map(float, node.address.split("@")[1].split(","))
    shown = {0: (100, 142), 90: (700, 100), 180: (495, 700), 270: (142, 495)}[rotation]
    assert min(abs(left - shown[0]), abs(right - shown[0])) <= 10
    assert min(abs(top - shown[1]), abs(bottom - shown[1])) <= 10
    assert node.attributes.get("angle", 0) == (360 - rotation) % 360


def test_text_along_the_margin_is_kept_apart_from_the_page():
    def draw(canvas):
        canvas.setFont("Helvetica", 10)
        for row in range(12):
            canvas.drawString(120, 700 - 12 * row, "upright words of the page")
        canvas.rotate(90)
        canvas.drawString(300, -60, "along the margin")

    document = open_document(drawn(draw), "a.pdf")
    turned = [node for node in of_kind(document, "paragraph") if node.attributes.get("angle") == 90]
    assert [node.text for node in turned] == ["along the margin"]
    assert document.text().endswith("along the margin")


def test_a_page_that_is_one_image_is_said_to_be_a_scan_and_an_empty_one_to_have_no_text():
    from reportlab.lib.utils import ImageReader

    def draw(canvas):
        from PIL import Image

        canvas.drawImage(ImageReader(Image.new("L", (60, 80), 200)), 0, 0, 595, 842)
        canvas.showPage()
        canvas.drawString(100, 700, "text")
        canvas.showPage()
        canvas.showPage()

    document = open_document(drawn(draw), "a.pdf")
    assert [node.attributes.get("text_layer") for node in document.nodes] == ["none, scan", None, "none"]
    assert document.warnings == (
        "page 1: no text layer, the page is a scanned image: its text needs OCR",
        "page 3: no text layer",
    )


def test_links_fields_and_metadata_are_read():
    def draw(canvas):
        canvas.setTitle("Form")
        canvas.setAuthor("The finance team")
        canvas.drawString(100, 700, "see")
        canvas.linkURL("https://example.org/a", (100, 690, 160, 712))
        canvas.acroForm.textfield(name="amount", value="412", x=100, y=600, width=100, height=20)
        canvas.acroForm.checkbox(name="agreed", checked=True, x=100, y=560, size=20)

    document = open_document(drawn(draw), "a.pdf")
    (link,) = of_kind(document, "link")
    assert link.attributes["uri"] == "https://example.org/a"
    assert link.attributes["box"] == [100.0, 130.0, 160.0, 152.0]
    fields = {node.attributes["name"]: node for node in of_kind(document, "field")}
    assert fields["amount"].text == "412"
    assert fields["agreed"].attributes["checked"] is True
    assert (document.metadata["title"], document.metadata["author"]) == ("Form", "The finance team")


def test_an_attachment_is_named_with_its_digest():
    import pypdfium2

    source = pypdfium2.PdfDocument(drawn(lambda canvas: canvas.drawString(100, 700, "text")))
    attachment = source.new_attachment("ledger.csv")
    attachment.set_data(b"a,b\n")
    buffer = BytesIO()
    source.save(buffer)
    (node,) = of_kind(open_document(buffer.getvalue(), "a.pdf"), "attachment")
    assert (node.attributes["name"], node.attributes["size_bytes"]) == ("ledger.csv", 4)


def test_a_pdf_under_a_password_says_so_and_one_without_an_opening_password_is_read():
    from reportlab.lib.pdfencrypt import StandardEncryption

    def draw(canvas):
        canvas.drawString(100, 700, "secret")

    with pytest.raises(Encrypted, match=r"a\.pdf: protected by a password; save it without a password"):
        open_document(drawn(draw, encrypt=StandardEncryption("user", "owner")), "a.pdf")
    assert open_document(drawn(draw, encrypt=StandardEncryption("", "owner")), "a.pdf").text() == "secret"


@pytest.mark.parametrize(
    ("text", "line", "compounds", "joined"),
    [
        ("the state-", "ment", (), "the statement"),
        ("the well-", "known firm", ("well-known",), "the well-known firm"),
        ("the state\x02", "ment", (), "the statement"),
        ("Jean-", "Paul", (), "Jean-Paul"),
        ("2020-", "21", (), "2020-21"),
        ("end.", "Next", (), "end. Next"),
    ],
)
def test_a_word_split_at_a_line_end_is_made_whole(text, line, compounds, joined):
    assert join(text, line, compounds) == joined


def boxes_at(*places: tuple[float, float, str]) -> list[Box]:
    return [Box(x, y, x + 40, y + 9, y + 8, 9.0, 0, text) for x, y, text in places]


def test_columns_of_a_script_read_from_right_to_left_start_on_the_right():
    left = [(50.0, 100.0 + 12 * row, f"שמאל {row} " * 5) for row in range(6)]
    right = [(300.0, 100.0 + 12 * row, f"ימין {row} " * 5) for row in range(6)]
    order = [block[0].text for block in blocks(boxes_at(*left, *right))]
    assert [text[0] for text in order] == ["י", "ש"]


BOX = st.tuples(st.floats(0, 400), st.floats(0, 700)).map(lambda xy: Box(*xy, xy[0] + 50, xy[1] + 9, 0, 9, 0, "x"))


@given(st.lists(BOX, max_size=60))
def test_the_cut_neither_loses_nor_doubles_a_box(boxes):
    found = [box for block in blocks(boxes) for box in block]
    assert sorted(found) == sorted(boxes)


@given(BOX, st.sampled_from([90, 180, 270]))
def test_a_box_turned_and_turned_back_is_where_it_was(box, angle):
    turned = turn(box, angle, 595, 842)
    size = (842, 595) if angle in (90, 270) else (595, 842)
    back = turn(turned, 360 - angle, *size)
    assert back[:4] == pytest.approx(box[:4])


@given(BOX, st.sampled_from([90, 180, 270]))
def test_the_edge_of_a_turned_box_is_the_turned_edge(box, angle):
    turned = turn(box, angle, 595, 842)
    edge = turn_ruling(Ruling(True, box.y0, box.x0, box.x1), angle, 595, 842)
    near, far = (turned.y0, turned.y1) if edge.is_horizontal else (turned.x0, turned.x1)
    assert min(abs(edge.at - near), abs(edge.at - far)) < 1e-6
    ends = (turned.x0, turned.x1) if edge.is_horizontal else (turned.y0, turned.y1)
    assert (edge.start, edge.end) == pytest.approx(ends)


def test_runs_of_pages_are_written_short():
    assert ranges([1, 2, 3, 7, 9, 10]) == "1-3, 7, 9-10"


def test_a_damaged_file_after_one_under_a_password_is_still_called_damaged():
    from reportlab.lib.pdfencrypt import StandardEncryption

    locked = drawn(lambda canvas: canvas.drawString(9, 9, "x"), encrypt=StandardEncryption("user", "owner"))
    damaged = b"%PDF-1.7\ntrailer\n<</Size 1>>\n%%EOF"
    with pytest.raises(UnreadableDocument) as alone:
        open_document(damaged, "a.pdf")
    with pytest.raises(Encrypted):
        open_document(locked, "b.pdf")
    with pytest.raises(UnreadableDocument) as after:
        open_document(damaged, "a.pdf")
    assert type(after.value) is type(alone.value) is UnreadableDocument
    assert str(after.value) == str(alone.value)
