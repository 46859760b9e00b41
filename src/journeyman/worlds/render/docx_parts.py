"""The parts of a Word package around its body: types, relationships, styles, properties, margins."""

from __future__ import annotations

from xml.sax.saxutils import escape

from journeyman.worlds.render.places import Style

W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
NAMESPACES = (
    f'xmlns:w="{W}" xmlns:r="{OFFICE}" xmlns:w14="http://schemas.microsoft.com/office/word/2010/wordml"'
    ' xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006" mc:Ignorable="w14"'
)
WORD = "application/vnd.openxmlformats-officedocument.wordprocessingml"
FACES = {"Helvetica": "Arial", "Times": "Times New Roman", "Courier": "Courier New"}
PAPER = {"A4": (11906, 16838), "Letter": (12240, 15840)}
RELATED = ("styles", "footnotes", "comments", "settings", "header", "footer")


def package_parts(title: str, style: Style, *, header: str, footer: str, body: str) -> dict[str, bytes]:
    """All parts but notes and comments."""
    width, height = PAPER[style.page]
    margin = round(style.margin * 20)
    section = (
        '<w:sectPr><w:headerReference w:type="default" r:id="rId5"/><w:footerReference w:type="default" r:id="rId6"/>'
        f'<w:pgSz w:w="{width}" w:h="{height}"/><w:pgMar w:top="{margin}" w:right="{margin}" w:bottom="{margin}"'
        f' w:left="{margin}" w:header="500" w:footer="500" w:gutter="0"/></w:sectPr>'
    )
    texts = {
        "[Content_Types].xml": _types(),
        "_rels/.rels": _relations(
            ("officeDocument", f"{OFFICE}/officeDocument", "word/document.xml"),
            ("core", f"{PACKAGE}/relationships/metadata/core-properties", "docProps/core.xml"),
        ),
        "word/_rels/document.xml.rels": _relations(*((one, f"{OFFICE}/{one}", f"{one}.xml") for one in RELATED)),
        "word/document.xml": f"<w:document {NAMESPACES}><w:body>{body}{section}</w:body></w:document>",
        "word/styles.xml": _styles(style),
        "word/settings.xml": f"<w:settings {NAMESPACES}/>",
        "word/footnotes.xml": f"<w:footnotes {NAMESPACES}/>",
        "word/comments.xml": f"<w:comments {NAMESPACES}/>",
        "word/header.xml": f"<w:hdr {NAMESPACES}>{_line(header)}</w:hdr>",
        "word/footer.xml": f"<w:ftr {NAMESPACES}>{_line(footer)}</w:ftr>",
        "docProps/core.xml": _properties(title, style),
    }
    head = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
    return {name: (head + text).encode() for name, text in texts.items()}


def _line(text: str) -> str:
    return f'<w:p><w:r><w:t xml:space="preserve">{escape(text)}</w:t></w:r></w:p>'


def _types() -> str:
    kinds = {"document": "document.main", **{one: one for one in RELATED}}
    parts = "".join(
        f'<Override PartName="/word/{name}.xml" ContentType="{WORD}.{kind}+xml"/>' for name, kind in kinds.items()
    )
    return (
        f'<Types xmlns="{PACKAGE}/content-types">'
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        '<Default Extension="xml" ContentType="application/xml"/>'
        f'{parts}<Override PartName="/docProps/core.xml"'
        ' ContentType="application/vnd.openxmlformats-package.core-properties+xml"/></Types>'
    )


def _relations(*rows: tuple[str, str, str]) -> str:
    made = "".join(
        f'<Relationship Id="rId{number}" Type="{kind}" Target="{target}"/>'
        for number, (_, kind, target) in enumerate(rows, start=1)
    )
    return f'<Relationships xmlns="{PACKAGE}/relationships">{made}</Relationships>'


def _properties(title: str, style: Style) -> str:
    when = style.created.strftime("%Y-%m-%dT%H:%M:%SZ")
    return (
        f'<cp:coreProperties xmlns:cp="{PACKAGE}/metadata/core-properties" xmlns:dc="http://purl.org/dc/elements/1.1/"'
        ' xmlns:dcterms="http://purl.org/dc/terms/" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">'
        f"<dc:title>{escape(title)}</dc:title>"
        f'<dcterms:created xsi:type="dcterms:W3CDTF">{when}</dcterms:created>'
        f'<dcterms:modified xsi:type="dcterms:W3CDTF">{when}</dcterms:modified></cp:coreProperties>'
    )


def _styles(style: Style) -> str:
    size = round(style.size * 2)
    face = FACES[style.font]

    def one(name: str, label: str, size_factor: float = 1.0, extra: str = "", paragraph: str = "") -> str:
        run = f'<w:rPr>{extra}<w:sz w:val="{round(size * size_factor)}"/></w:rPr>'
        based = "" if name == "Normal" else '<w:basedOn w:val="Normal"/>'
        default = ' w:default="1"' if name == "Normal" else ""
        return (
            f'<w:style w:type="paragraph"{default} w:styleId="{name}"><w:name w:val="{label}"/>{based}'
            f"<w:pPr>{paragraph}</w:pPr>{run}</w:style>"
        )

    bold = "<w:b/>"
    made = [
        one("Normal", "Normal", paragraph='<w:spacing w:after="120"/>'),
        one("Title", "Title", 1.9, bold),
        *(
            one(f"Heading{n}", f"heading {n}", f, bold, f'<w:outlineLvl w:val="{n - 1}"/>')
            for n, f in ((1, 1.3), (2, 1.1), (3, 1.0))
        ),
        one("ListBullet", "List Bullet", paragraph='<w:ind w:left="360"/>'),
        one("Quote", "Quote", 1.0, "<w:i/>", '<w:ind w:left="720"/>'),
        one("Small", "Small", 0.85),
        one("Caption", "caption", 0.95, bold),
        one("TableText", "Table Text", 0.92, paragraph='<w:spacing w:after="0"/>'),
    ]
    borders = "".join(
        f'<w:{side} w:val="single" w:sz="4" w:space="0" w:color="auto"/>'
        for side in ("top", "left", "bottom", "right", "insideH", "insideV")
    )
    table = (
        '<w:style w:type="table" w:styleId="TableGrid"><w:name w:val="Table Grid"/>'
        f"<w:tblPr><w:tblBorders>{borders}</w:tblBorders></w:tblPr></w:style>"
    )
    return (
        f'<w:styles {NAMESPACES}><w:docDefaults><w:rPrDefault><w:rPr><w:rFonts w:ascii="{face}" w:hAnsi="{face}"/>'
        f"</w:rPr></w:rPrDefault></w:docDefaults>{''.join(made)}{table}</w:styles>"
    )
