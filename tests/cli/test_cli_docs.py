"""Office files from the command line, as a user types it; every error names the file, the place and what to do."""

from __future__ import annotations

import json
from io import BytesIO
from pathlib import Path

import pytest

from journeyman.worlds.mini.render import RENDERERS


@pytest.fixture(autouse=True)
def no_children_left():
    from journeyman.documents.child import close_children

    yield
    close_children()


@pytest.fixture
def model(tmp_path) -> Path:
    """A workbook of an input, a formula and its value."""
    import xlsxwriter

    buffer = BytesIO()
    with xlsxwriter.Workbook(buffer) as book:
        sheet = book.add_worksheet("DCF")
        sheet.write_row("A1", ["rate", 0.05])
        sheet.write("A2", "double")
        sheet.write_formula("B2", "=2*B1", value=0.1)
    path = tmp_path / "model.xlsx"
    path.write_bytes(buffer.getvalue())
    return path


def test_read_prints_each_place_with_its_address_and_says_what_was_read(run, tmp_path):
    path = tmp_path / "sales.pdf"
    path.write_bytes(RENDERERS["pdf"]("sales", [["Client", "Q1"], ["Acme", 412]]))
    done = run("docs", "read", str(path))
    assert done.code == 0
    assert "p1/t1/r2c2\tcell\t412" in done.out.splitlines()
    assert done.out.splitlines()[-1].endswith(f"places: {path} (pdf)")


def test_read_takes_one_place_and_gives_json(run, model):
    done = run("docs", "read", str(model), "--at", "DCF!B2", "--json")
    (document,) = json.loads(done.out)
    (node,) = document["nodes"]
    assert (node["address"], node["attributes"]["formula"]) == ("DCF!B2", "=2*B1")


def test_a_file_that_cannot_be_read_does_not_hide_the_others(run, model, tmp_path):
    (tmp_path / "bad.xlsx").write_bytes(b"PK\x03\x04")
    done = run("docs", "read", str(tmp_path / "bad.xlsx"), str(tmp_path / "none.pdf"), str(model))
    assert done.code == 2
    assert f"{tmp_path / 'bad.xlsx'}: damaged container: File is not a zip file" in done.err
    assert f"{tmp_path / 'none.pdf'}: cannot be read: No such file" in done.err
    assert "DCF!B2\tcell" in done.out


def test_an_edit_says_what_it_changed_and_a_diff_finds_that_and_no_more(run, model, tmp_path):
    out = tmp_path / "new.xlsx"
    change = '{"op": "set", "address": "DCF!B1", "value": 0.06}'
    done = run("docs", "edit", str(model), "--change", change, "--out", str(out))
    assert done.code == 0, done.err
    assert done.out.splitlines()[-1] == f"2 changes: {out}"
    found = json.loads(run("docs", "diff", str(model), str(out), "--json").out)
    assert [(one["address"], one["kind"]) for one in found["entries"]] == [
        ("DCF!B1", "input"),
        ("DCF!B2", "downstream"),
    ]
    assert run("docs", "diff", str(model), str(out), "--allowed", "DCF!B1:B2").code == 0
    outside = run("docs", "diff", str(model), str(out), "--allowed", "DCF!A1")
    assert outside.code == 1
    assert "(collateral)" in outside.out


def test_without_out_the_file_itself_is_replaced(run, model):
    before = model.read_bytes()
    assert run("docs", "edit", str(model), "--change", '{"op": "set", "address": "DCF!B1", "value": 7}').code == 0
    assert model.read_bytes() != before
    assert "DCF!B2\tcell\t14" in run("docs", "read", str(model), "--at", "DCF!B2").out


def test_recalculation_reports_and_writes_only_when_asked(run, model, tmp_path):
    done = run("docs", "recalc", str(model))
    assert done.code == 0, done.err
    assert "formulas: 1" in done.out
    assert run("docs", "recalc", str(model), "--out", str(tmp_path / "fresh.xlsx")).code == 0
    assert (tmp_path / "fresh.xlsx").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["read", "{model}", "--at", "DCF!B20"], "no 'DCF!B20' in this xlsx [no_such_address]; nearest: DCF!B2"),
        (["edit", "{model}", "--change", '{"op": "set", "address": "DFC!B1", "value": 1}'], "model.xlsx, DFC!B1: "),
        (["edit", "{model}", "--change", '{"op": "st", "address": "DCF!B1"}'], "[bad_edit]"),
        (["edit", "{model}", "--change", "{"], "--change: no JSON"),
        (["edit", "{model}"], "no change was asked for [bad_edit]"),
        (["recalc", "{wrong}"], "the name says pdf, the content is an Excel workbook (xlsx) [wrong_kind]"),
        (
            ["diff", "{model}", "{locked}"],
            "locked.xlsx: protected by a password [encrypted]; save it without a password",
        ),
        (["read", "{part}"], "[missing_part]"),
    ],
)
def test_bad_input_ends_with_2_and_says_where_and_what_to_do(run, model, tmp_path, words, message):
    ole = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(504) + "EncryptedPackage".encode("utf-16-le") + bytes(96)
    places = {"model": model}
    for name, file, data in (
        ("wrong", "wrong.pdf", model.read_bytes()),
        ("locked", "locked.xlsx", ole),
        ("part", "part.xlsx", without(model.read_bytes(), "xl/workbook.xml")),
    ):
        places[name] = tmp_path / file
        places[name].write_bytes(data)
    before = model.read_bytes()
    done = run("docs", *(str(places[word[1:-1]]) if word[1:-1] in places else word for word in words))
    assert done.code == 2
    assert message in done.err
    assert str(tmp_path) in done.err or "--change" in done.err
    assert model.read_bytes() == before


def without(data: bytes, part: str) -> bytes:
    from zipfile import ZipFile

    buffer = BytesIO()
    with ZipFile(BytesIO(data)) as source, ZipFile(buffer, "w") as target:
        for item in source.infolist():
            if item.filename != part:
                target.writestr(item.filename, source.read(item))
    return buffer.getvalue()


def test_a_formula_that_no_engine_knows_is_named(run, tmp_path):
    import xlsxwriter

    path = tmp_path / "odd.xlsx"
    with xlsxwriter.Workbook(path) as book:
        book.add_worksheet("A").write_formula("B2", "=NOSUCHFUNCTION(1)", value=3)
    done = run("docs", "recalc", str(path))
    assert done.code == 2
    assert f"{path}, A!B2: " in done.err
    assert "[unknown_formula]" in done.err
