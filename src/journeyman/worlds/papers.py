"""Word deliverables as templates write them: blocks as the tool ``documents_create_document`` takes them, and as bytes.

One layout serves the oracle from the truth and the oracle from the files.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any
from xml.sax.saxutils import escape

from journeyman.worlds.drafting import CREATED
from journeyman.worlds.render.canonical import canonical_zip
from journeyman.worlds.template import FOLDER, ToolCall

Block = dict[str, Any]

TEXT_WIDTH = 9026
"""Between the margins, in twentieths of a point."""

OPEN = "http://schemas.openxmlformats.org"
MAIN = f"{OPEN}/wordprocessingml/2006/main"
WORD = "application/vnd.openxmlformats-officedocument.wordprocessingml"
XML = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>'
HEAD = f'{XML}<w:document xmlns:w="{MAIN}"><w:body>'
TAIL = (
    '<w:sectPr><w:pgSz w:w="11906" w:h="16838"/><w:pgMar w:top="1440" w:right="1440" w:bottom="1440" w:left="1440"'
    ' w:header="720" w:footer="720" w:gutter="0"/></w:sectPr></w:body></w:document>'
)


def heading(text: str, level: int = 1) -> Block:
    """A heading."""
    return {"type": "heading", "text": text, "level": level}


def paragraph(text: str) -> Block:
    """A paragraph."""
    return {"type": "paragraph", "text": text}


def table(headers: Sequence[str], rows: Iterable[Sequence[Any]]) -> Block:
    """A table, its header first; nothing is an empty cell."""
    lines = [list(headers), *(list(row) for row in rows)]
    return {"type": "table", "rows": [["" if one is None else one for one in line] for line in lines], "header": True}


def docx_bytes(blocks: Sequence[Mapping[str, Any]]) -> bytes:
    """A Word file of these blocks, with the styles that they use and no other part. Same blocks, same bytes."""
    body = "".join(_written(block) for block in blocks)
    return canonical_zip({**_parts(), "word/document.xml": f"{HEAD}{body}{TAIL}".encode()})


@cache
def _parts() -> dict[str, bytes]:
    """Everything but the body."""
    kind, relations = "application/vnd.openxmlformats-", f"{OPEN}/officeDocument/2006/relationships"
    texts = {
        "[Content_Types].xml": f'<Types xmlns="{OPEN}/package/2006/content-types"><Default Extension="rels" '
        f'ContentType="{kind}package.relationships+xml"/><Default Extension="xml" ContentType="application/xml"/>'
        f'<Override PartName="/word/document.xml" ContentType="{WORD}.document.main+xml"/>'
        f'<Override PartName="/word/styles.xml" ContentType="{WORD}.styles+xml"/>'
        f'<Override PartName="/docProps/core.xml" ContentType="{kind}package.core-properties+xml"/></Types>',
        "_rels/.rels": _relations(
            (f"{relations}/officeDocument", "word/document.xml"),
            (f"{OPEN}/package/2006/relationships/metadata/core-properties", "docProps/core.xml"),
        ),
        "word/_rels/document.xml.rels": _relations((f"{relations}/styles", "styles.xml")),
        "word/styles.xml": f'<w:styles xmlns:w="{MAIN}"><w:style w:type="paragraph" w:default="1" w:styleId="Normal">'
        f'<w:name w:val="Normal"/></w:style>{"".join(_heading_style(level) for level in (1, 2, 3))}</w:styles>',
        "docProps/core.xml": f'<cp:coreProperties xmlns:cp="{OPEN}/package/2006/metadata/core-properties" '
        'xmlns:dcterms="http://purl.org/dc/terms/" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">'
        "<dcterms:created xsi:type="
        f'"dcterms:W3CDTF">{CREATED.isoformat()}Z</dcterms:created></cp:coreProperties>',
    }
    return {name: f"{XML}{text}".encode() for name, text in texts.items()}


def _relations(*rows: tuple[str, str]) -> str:
    made = (f'<Relationship Id="r{n}" Type="{kind}" Target="{to}"/>' for n, (kind, to) in enumerate(rows, 1))
    return f'<Relationships xmlns="{OPEN}/package/2006/relationships">{"".join(made)}</Relationships>'


def _heading_style(level: int) -> str:
    return (
        f'<w:style w:type="paragraph" w:styleId="Heading{level}"><w:name w:val="heading {level}"/><w:basedOn w:val='
        f'"Normal"/><w:next w:val="Normal"/><w:pPr><w:outlineLvl w:val="{level - 1}"/></w:pPr><w:rPr><w:b/></w:rPr>'
        "</w:style>"
    )


def _written(block: Mapping[str, Any]) -> str:
    if block["type"] == "heading":
        return _paragraph(str(block["text"]), f'<w:pPr><w:pStyle w:val="Heading{block["level"]}"/></w:pPr>')
    if block["type"] != "table":
        return _paragraph(str(block["text"]))
    width = TEXT_WIDTH // len(block["rows"][0])
    cell = f'<w:tc><w:tcPr><w:tcW w:type="dxa" w:w="{width}"/></w:tcPr>'
    rows = ("".join(f"{cell}{_paragraph(str(value))}</w:tc>" for value in line) for line in block["rows"])
    grid = f'<w:gridCol w:w="{width}"/>' * len(block["rows"][0])
    return (
        '<w:tbl><w:tblPr><w:tblW w:type="auto" w:w="0"/></w:tblPr>'
        f"<w:tblGrid>{grid}</w:tblGrid>{''.join(f'<w:tr>{row}</w:tr>' for row in rows)}</w:tbl>"
    )


def _paragraph(text: str, properties: str = "") -> str:
    lines = "<w:br/>".join(
        "<w:tab/>".join(f'<w:t xml:space="preserve">{escape(one)}</w:t>' if one else "" for one in line.split("\t"))
        for line in text.split("\n")
    )
    return f"<w:p>{properties}{f'<w:r>{lines}</w:r>' if lines else ''}</w:p>"


def save_document(name: str, blocks: Sequence[Mapping[str, Any]]) -> ToolCall:
    """The call that writes a Word file to the place of deliverables."""
    arguments = {"directory": f"/{FOLDER}", "file_name": name, "content": [dict(one) for one in blocks]}
    return ToolCall("documents_create_document", arguments)
