"""Imported once by the server that forks the graders: everything that checks need is loaded before the first fork.

A forked grader pays for each page that it is the first to write. So the server has graded deliverables of every kind
before: patterns are compiled, and Python has adapted its code to what it meets.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import zipfile

from . import scoring as scoring
from .bundle import Bundle

MODULES = (
    *("lxml.etree", "formualizer", "charset_normalizer", "email.parser", "email.policy", "decimal", "difflib"),
    *("officedocs.opening", "officedocs.errors", "officedocs.amounts", "officedocs.xlsx.reading", "officedocs.diff"),
    *("officedocs.xlsx.engines.embedded", "officedocs.xlsx.recalculation", "officedocs.diff.workbook"),
    *("officedocs.diff.trees", "officedocs.docx.reader", "officedocs.pptx.reader", "officedocs.delimited"),
    *("officedocs.mail", "officedocs.mail.reader", "officedocs.mail.markup", "html.parser"),
)

for _name in MODULES:
    with contextlib.suppress(ImportError):  # a check that needs what is not there says so itself
        importlib.import_module(_name)

TIMES = 8
"""Python adapts a function after some eight calls."""

_SPACE = "http://schemas.openxmlformats.org"
_WORDS = (
    ("client", "amount", "due", "share"),
    ("Acme & Sons Ltd", "1,200.50 USD", "2025-03-31", "12.5%"),
    ("Nörd GmbH", "(3.4m)", "1 April 2025", "7"),
)


def _package(kind: str, main: str, parts: dict[str, str], relations: str = "") -> bytes:
    """A zip as office programs write it, with as little in it as readers need."""
    space = f"{_SPACE}/package/2006"
    files = {
        "[Content_Types].xml": f'<Types xmlns="{space}/content-types"/>',
        "_rels/.rels": f'<Relationships xmlns="{space}/relationships"><Relationship Id="r1" Type="{_SPACE}'
        f'/officeDocument/2006/relationships/officeDocument" Target="{main}"/></Relationships>',
        **parts,
    }
    folder, _, name = main.rpartition("/")
    if relations:
        target = f'Type="{_SPACE}/officeDocument/2006/relationships/{kind}" Target="{relations}"'
        files[f"{folder}/_rels/{name}.rels"] = (
            f'<Relationships xmlns="{space}/relationships"><Relationship Id="r1" {target}/></Relationships>'
        )
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, text in files.items():
            archive.writestr(path, text)
    return made.getvalue()


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;")


def workbook() -> bytes:
    """One sheet with the words and a formula."""
    main = f"{_SPACE}/spreadsheetml/2006/main"
    rows = "".join(
        f'<row r="{y}">'
        + "".join(
            f'<c r="{"ABCD"[x]}{y}" t="inlineStr"><is><t>{_escaped(word)}</t></is></c>' for x, word in enumerate(line)
        )
        + "</row>"
        for y, line in enumerate(_WORDS, start=1)
    )
    rows += '<row r="5"><c r="D5"><f>SUM(B1:B3)+1</f><v>1</v></c></row>'
    sheets = f'<sheets><sheet name="A" sheetId="1" r:id="r1" xmlns:r="{_SPACE}/officeDocument/2006/relationships"/>'
    parts = {
        "xl/workbook.xml": f'<workbook xmlns="{main}">{sheets}</sheets></workbook>',
        "xl/worksheets/a.xml": f'<worksheet xmlns="{main}"><sheetData>{rows}</sheetData></worksheet>',
    }
    return _package("worksheet", "xl/workbook.xml", parts, "worksheets/a.xml")


def letter() -> bytes:
    """A text document: a heading, sentences, a table."""

    def paragraph(text: str, style: str = "") -> str:
        look = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
        return f"<w:p>{look}<w:r><w:t>{_escaped(text)}</w:t></w:r></w:p>"

    cells = "".join(
        "<w:tr>" + "".join(f"<w:tc>{paragraph(word)}</w:tc>" for word in line) + "</w:tr>" for line in _WORDS
    )
    text = "The price of 1,200 USD is due by 31 March 2025; 3.4 million of it, or 12.5%, is held back."
    body = paragraph("Payment terms", "Heading1") + paragraph(text) * 3 + f"<w:tbl>{cells}</w:tbl>"
    space = f"{_SPACE}/wordprocessingml/2006/main"
    document = f'<w:document xmlns:w="{space}"><w:body>{body}</w:body></w:document>'
    return _package("", "word/document.xml", {"word/document.xml": document})


def deck() -> bytes:
    """One slide with a title and a text."""
    names = f'xmlns:p="{_SPACE}/presentationml/2006/main" xmlns:a="{_SPACE}/drawingml/2006/main"'
    links = f'xmlns:r="{_SPACE}/officeDocument/2006/relationships"'

    def shape(number: int, text: str, kind: str) -> str:
        said = f"<p:txBody><a:bodyPr/><a:p><a:r><a:t>{_escaped(text)}</a:t></a:r></a:p></p:txBody>"
        head = f'<p:cNvPr id="{number}" name="s{number}"/><p:cNvSpPr/><p:nvPr>{kind}</p:nvPr>'
        return f"<p:sp><p:nvSpPr>{head}</p:nvSpPr><p:spPr/>{said}</p:sp>"

    shapes = shape(2, "Sales grew", '<p:ph type="title"/>') + shape(3, "Source: 1,200 USD in 2025", "")
    parts = {
        "ppt/presentation.xml": f'<p:presentation {names} {links}><p:sldIdLst><p:sldId id="256" r:id="r1"/>'
        "</p:sldIdLst></p:presentation>",
        "ppt/slides/slide1.xml": f"<p:sld {names}><p:cSld><p:spTree>{shapes}</p:spTree></p:cSld></p:sld>",
    }
    return _package("slide", "ppt/presentation.xml", parts, "slides/slide1.xml")


def mail() -> bytes:
    """A message."""
    head = "From: Ann <ann@a.example>\nTo: bob@b.example\nCc: eve@b.example\nSubject: Re: Notice of 31 March 2025\n"
    head += "Date: Mon, 31 Mar 2025 09:00:00 +0000\nIn-Reply-To: <1@a.example>\nMessage-ID: <2@a.example>\n"
    return f"{head}Content-Type: text/plain; charset=utf-8\n\nThe notice ends on 31 March 2025.\n".encode()


def listed() -> bytes:
    """The words as a csv file."""
    return "\n".join(",".join(f'"{word}"' for word in line) for line in _WORDS).encode()


def checks() -> list[dict[str, object]]:
    """Checks of every kind of file; most hold."""
    columns = [{"name": name} for name in _WORDS[0]]
    rows = [
        [
            "Acme & Sons Ltd",
            {"amount": "1200.5", "currency": "USD"},
            {"date": "2025-03-31"},
            {"amount": "0.125", "unit": "%"},
        ],
        ["Nörd GmbH", -3_400_000, {"date": "2025-04-01"}, 7],
    ]
    asked: list[tuple[str, dict[str, object]]] = [
        ("table", {"file": name, "columns": columns, "rows": rows}) for name in ("a.xlsx", "a.csv", "a.docx")
    ]
    asked += [
        ("present", {"files": ["a.xlsx", "a.docx", "a.csv", "a.json"]}),
        ("doc.headings", {"file": "a.docx", "headings": ["Payment terms"]}),
        ("doc.mentions", {"file": "a.docx", "facts": [{"value": {"amount": "1200"}, "near": ["price"]}]}),
        ("doc.known_numbers", {"file": "a.docx", "numbers": [1200, 3_400_000, 0.125]}),
        ("forbids", {"file": "a.docx", "texts": ["secret"], "numbers": [99]}),
        ("xlsx.no_errors", {"file": "a.xlsx"}),
        ("xlsx.follows", {"file": "a.xlsx", "trials": [{"set": {"A!B2": 7}, "expect": {"A!D5": 8}}]}),
        ("deck.titles", {"file": "a.pptx", "titles": ["Sales grew"]}),
        ("mail.headers", {"file": "a.eml", "to": ["bob@b.example"], "cc": ["eve@b.example"]}),
        ("doc.mentions", {"file": "a.eml", "facts": [{"value": {"date": "2025-03-31"}, "near": ["notice"]}]}),
        ("json.fields", {"file": "a.json", "fields": {"a": 1200, "b": "x"}}),
        ("members", {"file": "a.json", "path": "c", "items": ["p", "q"]}),
    ]
    return [{"id": f"{number}", "fn": name, "params": params} for number, (name, params) in enumerate(asked)]


def run_once() -> None:
    """Grade one deliverable of each kind."""
    files = {
        "a.xlsx": workbook(),
        "a.docx": letter(),
        "a.pptx": deck(),
        "a.eml": mail(),
        "a.csv": listed(),
        "a.json": b'{"a": "1,200", "b": "x", "c": ["p", "q"]}',
    }
    bundle = Bundle(files)
    for check in checks():
        with contextlib.suppress(Exception):  # it only saves time; what is wrong shows with the first deliverable
            scoring.run(bundle, check)
    bundle.close()


for _ in range(TIMES):
    run_once()
