"""Workbooks: what reading shows, what writing keeps, and edits that leave every part they do not name."""

from __future__ import annotations

import os
import warnings
from datetime import date
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openpyxl import Workbook, load_workbook

from journeyman.documents.diff import diff
from journeyman.documents.editing import Edited, changes_of
from journeyman.documents.errors import BadEdit, Encrypted, MissingPart, NoSuchAddress, UnreadableDocument, Unsupported
from journeyman.documents.node import Document, Node
from journeyman.documents.xlsx import edit, read, values, write
from journeyman.documents.xlsx.address import cell_address, letters, parse
from journeyman.documents.xlsx.dates import iso_of
from journeyman.documents.xlsx.formula import normal, relative, renamed_sheet, tokens
from journeyman.documents.xlsx.styles import is_date


def bytes_of(book: Any) -> bytes:
    out = BytesIO()
    book.save(out)
    return out.getvalue()


def rich() -> bytes:
    """A file with what a round trip through a library loses: a text box, rich text, an x14 rule, an image, a chart."""
    import xlsxwriter

    out = BytesIO()
    book = xlsxwriter.Workbook(out, {"in_memory": True})
    bold, money = book.add_format({"bold": True}), book.add_format({"num_format": "#,##0.00"})
    data = book.add_worksheet("Cash flow")
    data.write_row("A1", ["month", "in", "out", "net"])
    for row in range(1, 7):
        data.write_row(row, 0, [f"2025-{row:02d}", 100 * row, 40 * row])
        data.write_formula(row, 3, f"=B{row + 1}-C{row + 1}", money, 60 * row)
    data.write_formula("D9", "=SUM(D2:D7)", money, 1260)
    data.write_rich_string("A11", "all ", bold, "bold", " words")
    data.insert_textbox("F2", "do not lose me")
    data.insert_image("F12", "dot.png", {"image_data": BytesIO(PNG)})
    data.add_sparkline("E2", {"range": "'Cash flow'!B2:D2"})
    data.conditional_format("B2:B7", {"type": "data_bar", "data_bar_2010": True})
    data.write_comment("B2", "first", {"author": "Ann"})
    data.merge_range("A13:C13", "a merged line")
    chart = book.add_chart({"type": "line"})
    chart.add_series({"name": "='Cash flow'!$D$1", "values": "='Cash flow'!$D$2:$D$7"})
    book.add_worksheet("Sum").write_formula("A1", "='Cash flow'!D9*2", None, 2520)
    book.get_worksheet_by_name("Sum").insert_chart("B2", chart)
    book.define_name("Net", "='Cash flow'!$D$9")
    book.close()
    return out.getvalue()


PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c49444154789c63f8cfc0000003010100c9fe92ef"
    "0000000049454e44ae426082"
)


@pytest.fixture(scope="module")
def book() -> bytes:
    return rich()


def loaded(data: bytes) -> Any:
    """As openpyxl sees it, which warns of what it would drop."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return load_workbook(BytesIO(data))


def changed(data: bytes, *changes: dict[str, Any]) -> Edited:
    return edit(data, "book.xlsx", changes_of(changes, "book.xlsx"))


def parts(data: bytes) -> dict[str, bytes]:
    with ZipFile(BytesIO(data)) as container:
        return {name: container.read(name) for name in container.namelist()}


def differing(one: bytes, other: bytes) -> set[str]:
    first, second = parts(one), parts(other)
    return {name for name in first.keys() | second.keys() if first.get(name) != second.get(name)}


def at(data: bytes, address: str) -> Node:
    return read(data, "book.xlsx").find(address)


def test_reading_gives_addresses_formulas_looks_and_what_floats(book):
    document = read(book, "book.xlsx")
    cell = document.find("'Cash flow'!D9")
    assert (cell.text, cell.attributes["formula"], cell.attributes["number_format"]) == (
        "1260",
        "=SUM(D2:D7)",
        "#,##0.00",
    )
    assert document.find("name:Net").text == "='Cash flow'!$D$9"
    assert document.find("'Cash flow'!B2/comment").text == "first"
    assert document.find("'Cash flow'!shape:1").text == "do not lose me"
    assert document.find("'Cash flow'!image:1").attributes["anchor"] == "F12"
    chart = document.find("Sum!chart:1")
    assert chart.attributes["series"] == [{"name": "'Cash flow'!$D$1", "values": "'Cash flow'!$D$2:$D$7"}]
    assert document.find("sheet:Cash flow").attributes["merged"] == ["A13:C13"]
    assert document.find("'Cash flow'!A11").text == "all bold words"


@pytest.mark.parametrize(("epoch", "iso"), [(1900, "2025-03-31"), (1904, "2025-03-31")])
def test_dates_follow_the_epoch_of_their_workbook(epoch, iso):
    made = Workbook()
    from openpyxl.utils.datetime import CALENDAR_MAC_1904, CALENDAR_WINDOWS_1900

    made.epoch = CALENDAR_WINDOWS_1900 if epoch == 1900 else CALENDAR_MAC_1904
    made.active["A1"] = date(2025, 3, 31)
    document = read(bytes_of(made), "dates.xlsx")
    assert document.metadata["epoch"] == epoch
    assert (document.find("Sheet!A1").text, document.find("Sheet!A1").attributes["type"]) == (iso, "date")


@pytest.mark.parametrize(
    ("serial", "epoch", "iso"),
    [(1, 1900, "1900-01-01"), (59, 1900, "1900-02-28"), (61, 1900, "1900-03-01"), (0, 1904, "00:00:00"),
     (45000.5, 1900, "2023-03-15T12:00:00"), (0.25, 1900, "06:00:00"), (-1, 1900, ""), (3e6, 1900, "")],
)  # fmt: skip
def test_serial_numbers_become_dates(serial, epoch, iso):
    assert iso_of(serial, epoch) == iso


@pytest.mark.parametrize(
    ("code", "expected"),
    [("General", False), ("0.00", False), ("yyyy-mm-dd", True), ("[h]:mm:ss", True), ('0 "days"', False),
     ("[Red]0.0", False), ("mm:ss.0", True), ("@", False), ("d. mmm yyyy", True), ('"day" 0', False)],
)  # fmt: skip
def test_date_formats_are_told_from_number_formats(code, expected):
    assert is_date(code) is expected


def test_warnings_say_what_a_reader_would_miss():
    made = Workbook()
    made.active["A1"] = "=1+1"
    made.active.row_dimensions[3].hidden = True
    made.active.column_dimensions["C"].hidden = True
    made.create_sheet("Secret").sheet_state = "hidden"
    text = " | ".join(read(bytes_of(made), "x.xlsx").warnings)
    for said in (
        "1 formulas were never calculated, the first is Sheet!A1",
        "hidden sheets: Secret",
        "1 rows and columns C",
    ):
        assert said in text


def test_the_fast_path_gives_stored_values(book):
    rows = values(book, "book.xlsx")["Cash flow"]
    assert rows[0][:4] == ["month", "in", "out", "net"]
    assert rows[8][3] == 1260


def test_an_edit_changes_one_part_and_the_values_that_follow(book):
    done = changed(book, {"op": "set", "address": "'Cash flow'!B2", "value": 150})
    assert differing(book, done.data) == {"xl/worksheets/sheet1.xml", "xl/worksheets/sheet2.xml"}
    reports = {one.address: (one.op, one.before, one.after) for one in done.changed}
    assert reports["'Cash flow'!B2"] == ("set", {"value": 100.0, "text": "100"}, {"value": 150.0, "text": "150"})
    assert reports["'Cash flow'!D9"] == ("recalculated", 1260.0, 1310.0)
    assert reports["Sum!A1"] == ("recalculated", 2520.0, 2620.0)
    assert len(reports) == 4
    found = diff(book, done.data, "book.xlsx", "book.xlsx")
    assert [(e.kind, e.address) for e in found.entries if e.kind != "downstream"] == [("input", "'Cash flow'!B2")]


def test_stored_values_that_no_change_reaches_stay_as_the_writer_left_them():
    import xlsxwriter

    out = BytesIO()
    made = xlsxwriter.Workbook(out, {"in_memory": True})
    sheet = made.add_worksheet("S")
    sheet.write_number("A1", 1)
    sheet.write_formula("B1", "=A1*2", None, 2)
    sheet.write_formula("C1", "=PI()", None, 3)
    made.close()
    done = changed(out.getvalue(), {"op": "set", "address": "S!A1", "value": 5})
    assert (at(done.data, "S!B1").text, at(done.data, "S!C1").text) == ("10", "3")
    assert "S!C1" in done.warnings[0]


@pytest.mark.parametrize(
    ("value", "text"),
    [(1.5, "1.5"), (True, "TRUE"), ("two\nlines", "two\nlines"), (" x ", " x "), (0.1 + 0.2, repr(0.1 + 0.2))],
)
def test_values_are_stored_as_they_are(book, value, text):
    done = changed(book, {"op": "set", "address": "Sum!C9", "value": value})
    assert at(done.data, "Sum!C9").text == text
    assert loaded(done.data)["Sum"]["C9"].value == value


def test_none_empties_a_cell_and_a_range_takes_rows(book):
    done = changed(book, {"op": "set", "address": "'Cash flow'!B2:C3", "values": [[1, 2], [3, None]]})
    rows = values(done.data, "book.xlsx")["Cash flow"]
    assert (rows[1][1:3], rows[2][1:3]) == ([1, 2], [3, ""])


def test_a_formula_of_a_newer_function_is_stored_so_that_programs_know_it(book):
    formula = "=XLOOKUP(300,'Cash flow'!B2:B7,'Cash flow'!D2:D7)"
    done = changed(book, {"op": "set", "address": "Sum!A2", "formula": formula})
    assert b"_xlfn.XLOOKUP" in parts(done.data)["xl/worksheets/sheet2.xml"]
    assert at(done.data, "Sum!A2").text == "180"


def test_a_look_changes_by_adding_to_the_styles(book):
    where = {"op": "format", "address": "'Cash flow'!B2:C2"}
    done = changed(book, {**where, "style": {"bold": True, "fill": "#FFFF00"}, "number_format": "0.0"})
    assert differing(book, done.data) == {"xl/worksheets/sheet1.xml", "xl/styles.xml"}
    cell = at(done.data, "'Cash flow'!C2")
    assert cell.attributes["style"] == {"bold": True, "fill": "#FFFF00"}
    assert cell.attributes["number_format"] == "0.0"
    back = changed(done.data, {**where, "style": {"bold": None, "fill": None}, "number_format": None})
    assert diff(book, back.data, "a.xlsx", "a.xlsx").entries == ()
    assert loaded(done.data)["Cash flow"]["B2"].font.bold


def test_inserted_rows_move_everything_that_names_a_place(book):
    done = changed(book, {"op": "insert_rows", "address": "'Cash flow'!4:5"})
    document = read(done.data, "book.xlsx")
    assert document.find("'Cash flow'!D11").attributes["formula"] == "=SUM(D2:D9)"
    assert document.find("'Cash flow'!D6").attributes["formula"] == "=B6-C6"
    assert document.find("Sum!A1").attributes["formula"] == "='Cash flow'!D11*2"
    assert document.find("name:Net").text == "='Cash flow'!$D$11"
    assert document.find("Sum!chart:1").attributes["series"][0]["values"] == "'Cash flow'!$D$2:$D$9"
    assert document.find("sheet:Cash flow").attributes["merged"] == ["A15:C15"]
    assert document.find("'Cash flow'!image:1").attributes["anchor"] == "F14"
    assert document.find("'Cash flow'!B2:B9/format").attributes["type"] == "dataBar"
    undone = changed(done.data, {"op": "delete_rows", "address": "'Cash flow'!4:5"})
    assert diff(book, undone.data, "book.xlsx", "book.xlsx").entries == ()


def test_deleted_columns_leave_errors_where_nothing_is_left_to_read(book):
    done = changed(book, {"op": "delete_columns", "address": "'Cash flow'!B:B"})
    document = read(done.data, "book.xlsx")
    assert document.find("'Cash flow'!C2").attributes["formula"] == "=#REF!-B2"
    assert document.find("'Cash flow'!C2").text == "#REF!"
    assert document.find("name:Net").text == "='Cash flow'!$C$9"
    with pytest.raises(NoSuchAddress):
        document.find("'Cash flow'!B2/comment")


def test_sheets_are_renamed_added_moved_and_deleted_with_what_reads_them(book):
    done = changed(
        book,
        {"op": "rename_sheet", "address": "sheet:Cash flow", "name": "Flow"},
        {"op": "add_sheet", "address": "sheet:Notes", "position": 1},
        {"op": "set", "address": "Notes!A1", "formula": "=Flow!D9"},
        {"op": "move_sheet", "address": "sheet:Sum", "position": 1},
    )
    document = read(done.data, "book.xlsx")
    assert [node.address for node in document.nodes if node.kind == "sheet"] == [
        "sheet:Sum",
        "sheet:Notes",
        "sheet:Flow",
    ]
    assert document.find("Sum!A1").attributes["formula"] == "=Flow!D9*2"
    assert document.find("Notes!A1").text == "1260"
    assert document.find("name:Net").text == "=Flow!$D$9"
    gone = changed(done.data, {"op": "delete_sheet", "address": "sheet:Flow"})
    assert at(gone.data, "Sum!A1").text == "#REF!"
    assert loaded(gone.data).sheetnames == ["Sum", "Notes"]


def test_names_are_defined_changed_and_deleted(book):
    done = changed(
        book,
        {"op": "define_name", "address": "name:Rate", "formula": "=Sum!$A$1"},
        {"op": "define_name", "address": "name:Net", "formula": "='Cash flow'!$D$2"},
        {"op": "set", "address": "Sum!A3", "formula": "=Net+Rate"},
    )
    assert at(done.data, "Sum!A3").text == "2580"
    with pytest.raises(NoSuchAddress, match="names: Net"):
        changed(book, {"op": "delete_name", "address": "name:Nett"})


def test_rows_columns_and_sheets_are_hidden_and_shown(book):
    done = changed(
        book,
        {"op": "hide", "address": "'Cash flow'!3:4"},
        {"op": "hide", "address": "'Cash flow'!B:C"},
        {"op": "hide", "address": "sheet:Sum"},
    )
    facts = at(done.data, "sheet:Cash flow").attributes
    assert (facts["hidden_rows"], facts["hidden_columns"]) == ([3, 4], ["B", "C"])
    assert at(done.data, "sheet:Sum").attributes["state"] == "hidden"
    shown = ("'Cash flow'!3:4", "'Cash flow'!B:C", "sheet:Sum")
    back = changed(done.data, *({"op": "show", "address": address} for address in shown))
    assert diff(book, back.data, "a.xlsx", "a.xlsx").entries == ()


def test_shared_formulas_can_change_one_by_one():
    made = Workbook()
    for row in range(1, 4):
        made.active.cell(row, 1).value = 10 * row
    data = bytes_of(made)
    shared = (
        b'<c r="B1"><f t="shared" ref="B1:B3" si="0">A1*2</f><v>20</v></c>',
        b'<c r="B2"><f t="shared" si="0"/><v>40</v></c>',
        b'<c r="B3"><f t="shared" si="0"/><v>60</v></c>',
    )
    out = BytesIO()
    with ZipFile(out, "w") as container:
        for name, content in parts(data).items():
            if name.endswith("sheet1.xml"):
                for row, cell in reversed(list(enumerate(shared, start=1))):
                    mark = b"<v>%d0</v></c></row>" % row
                    content = content.replace(mark, mark.replace(b"</row>", cell + b"</row>"))
            container.writestr(name, content)
    assert at(out.getvalue(), "Sheet!B3").attributes["formula"] == "=A3*2"
    done = changed(out.getvalue(), {"op": "set", "address": "Sheet!B1", "value": 7})
    assert [at(done.data, f"Sheet!B{row}").text for row in (1, 2, 3)] == ["7", "40", "60"]


@pytest.mark.parametrize(
    ("asked", "error", "says"),
    [
        ({"op": "set", "address": "Nowhere!A1", "value": 1}, NoSuchAddress, "sheets: Cash flow, Sum"),
        ({"op": "set", "address": "'Cash flow'!ZZZZ1", "value": 1}, NoSuchAddress, "ZZZZ1"),
        ({"op": "set", "address": "'Cash flow'!B13", "value": 1}, BadEdit, "merged A13:C13"),
        ({"op": "set", "address": "Sum!A1", "formula": "=SUM(("}, BadEdit, "does not parse"),
        ({"op": "set", "address": "Sum!A1:B2", "value": 1}, BadEdit, "many cells"),
        ({"op": "set", "address": "Sum!A1", "value": float("nan")}, BadEdit, "nan"),
        ({"op": "format", "address": "Sum!A1", "style": {"blink": True}}, BadEdit, "blink"),
        ({"op": "format", "address": "Sum!A1", "style": {"fill": "yellow"}}, BadEdit, "#RRGGBB"),
        ({"op": "insert_rows", "address": "Sum!A1"}, BadEdit, "Sheet!5:6"),
        ({"op": "rename_sheet", "address": "sheet:Sum", "name": "a/b"}, BadEdit, "no name for a sheet"),
        ({"op": "rename_sheet", "address": "sheet:Sum", "name": "cash FLOW"}, BadEdit, "already"),
        ({"op": "define_name", "address": "name:A1", "formula": "=1"}, BadEdit, "cannot be a name"),
        ({"op": "mreg", "address": "Sum!A1"}, BadEdit, "did you mean"),
    ],
)  # fmt: skip
def test_impossible_edits_name_the_place_and_the_remedy(book, asked, error, says):
    with pytest.raises(error, match=r"book\.xlsx") as raised:
        changed(book, asked)
    assert says in str(raised.value)


def test_a_chain_of_changes_is_applied_whole_or_not_at_all(book):
    with pytest.raises(NoSuchAddress):
        changed(book, {"op": "set", "address": "Sum!A1", "value": 1}, {"op": "set", "address": "Gone!A1", "value": 1})


@pytest.mark.parametrize(
    ("broken", "error"),
    [
        (lambda data: data[: len(data) // 2], UnreadableDocument),
        (lambda data: b"PK\x03\x04 not a zip", UnreadableDocument),
        (lambda data: b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + "EncryptedPackage".encode("utf-16-le"), Encrypted),
        (lambda data: without(data, "xl/worksheets/sheet1.xml"), MissingPart),
        (lambda data: without(data, "xl/workbook.xml"), MissingPart),
    ],
)
def test_damaged_workbooks_are_typed_errors(book, broken, error):
    with pytest.raises(error, match=r"book\.xlsx"):
        edit(broken(book), "book.xlsx", changes_of([{"op": "set", "address": "Sum!A1", "value": 1}], "book.xlsx"))


def without(data: bytes, part: str) -> bytes:
    out = BytesIO()
    with ZipFile(out, "w") as container:
        for name, content in parts(data).items():
            if name != part:
                container.writestr(name, content)
    return out.getvalue()


TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), min_size=1, max_size=12)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False).map(lambda value: value + 0.0)
COLORS = st.integers(0, 0xFFFFFF).map(lambda value: f"#{value:06X}")
STYLES = st.fixed_dictionaries(
    {},
    optional={
        "bold": st.just(True),
        "italic": st.just(True),
        "size": st.sampled_from([8.0, 10.5, 14.0]),
        "fill": COLORS,
        "align": st.sampled_from(["center", "right"]),
        "wrap": st.just(True),
        "border_left": st.sampled_from(["thin #000001", "double #FF0000"]),
        "unlocked": st.just(True),
    },
)


@st.composite
def cells(draw: st.DrawFn, sheet: str, row: int, column: int) -> Node:
    kind = draw(st.sampled_from(["text", "number", "boolean", "formula"]))
    facts: dict[str, Any] = {}
    if kind == "text":
        text = draw(TEXTS)
        facts["type"] = "text"
    elif kind == "boolean":
        value = draw(st.booleans())
        text, facts = ("TRUE" if value else "FALSE"), {"type": "boolean", "value": value}
    else:
        number = draw(NUMBERS)
        text = str(int(number)) if number.is_integer() and abs(number) < 1e15 else repr(number)
        facts = {"type": "number", "value": number}
        if kind == "formula":
            facts["formula"] = draw(st.sampled_from(["=A1*2", "=SUM(A1:C9)", "=IF(A1>0,1,2)"]))
    if draw(st.booleans()) and kind != "text":
        facts["number_format"] = draw(st.sampled_from(["0.00", "#,##0", '0 "EUR"']))
    if look := draw(STYLES):
        facts["style"] = look
    return Node("cell", cell_address(sheet, row, column), text, facts)


@st.composite
def sheets(draw: st.DrawFn, name: str) -> Node:
    rows = []
    for number in sorted(draw(st.sets(st.integers(1, 9), max_size=4))):
        columns = sorted(draw(st.sets(st.integers(1, 6), min_size=1, max_size=3)))
        line = tuple(draw(cells(name, number, column)) for column in columns)
        rows.append(Node("row", f"{cell_address(name, number, 1).rpartition('!')[0]}!{number}:{number}", "", {}, line))
    facts: dict[str, Any] = {"name": name}
    if rows:
        places = [parse(cell.address, "") for row in rows for cell in row.children]
        bottom, right = max(one.top for one in places), max(one.left for one in places)
        facts["used"] = f"A1:{letters(right)}{bottom}"
    if draw(st.booleans()):
        facts["widths"] = {"B": draw(st.sampled_from([4.0, 20.25, 33.3]))}
    return Node("sheet", f"sheet:{name}", "", facts, tuple(rows))


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_what_is_written_reads_back(data):
    nodes = [data.draw(sheets(name)) for name in ("Data", "My sheet")]
    nodes.append(Node("name", "name:Rate", "=Data!$A$1"))
    written = write(Document("xlsx", "t.xlsx", tuple(nodes)))
    document = read(written, "t.xlsx")
    assert document.nodes == tuple(nodes)
    assert read(write(document), "t.xlsx") == document


def test_writing_is_deterministic_and_refuses_what_it_would_drop(book):
    document = Document("xlsx", "t.xlsx", (Node("sheet", "sheet:A", "", {"name": "A"}),))
    assert write(document) == write(document)
    with pytest.raises(Unsupported, match="is not written"):
        write(read(book, "book.xlsx"))


def test_formulas_have_one_normal_form():
    assert normal("sum( $a$1 : b2 )*'Data'!C3+1.50", "Data") == "SUM(A1:B2)*C3+1.5"
    assert normal('if(a1="x ""y"" A1",_xlfn.XLOOKUP(1,B:B,C:C),TRUE)') == 'IF(A1="x ""y"" A1",XLOOKUP(1,B:B,C:C),TRUE)'
    assert normal("A1 B2") == "A1 B2"
    assert relative("A1+$B$2", "S", 3, 3) == "R[-2]C[-2]+R2C2"
    assert relative("A1*2", "S", 1, 2) == relative("A7*2", "S", 7, 2)
    assert renamed_sheet("Old!A1+'Old'!B2+\"Old!A1\"", "old", "New one") == "'New one'!A1+'New one'!B2+\"Old!A1\""


@settings(max_examples=300, deadline=None)
@given(st.text("A1$:!'\"(),+ [#]REF.x_9", max_size=30))
def test_tokens_joined_are_the_formula(text):
    assert "".join(token.text for token in tokens(text)) == text


@pytest.mark.slow
@pytest.mark.skipif("JOURNEYMAN_CORPORA" not in os.environ, reason="JOURNEYMAN_CORPORA names no folder of checkouts")
def test_public_workbooks_are_read_or_refused_and_differ_from_themselves_in_nothing():
    files = [p for p in sorted(Path(os.environ["JOURNEYMAN_CORPORA"]).rglob("*.xls*")) if p.is_file()]
    assert files
    for path in files:
        data = path.read_bytes()
        try:
            read(data, path.name)
            if path.suffix in (".xlsx", ".xlsm"):
                found = diff(data, data + b"", path.name, f"copy-{path.name}")
                assert found.entries == (), path.name
        except UnreadableDocument as error:
            assert path.name in str(error)
