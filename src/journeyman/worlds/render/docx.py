"""DOCX written part by part: paragraphs with stable ids, tables, footnotes, comments, tracked changes, margins.

The whole package is a dozen small parts; writing them directly keeps ids, revisions and bytes under control.
"""

from __future__ import annotations

from xml.sax.saxutils import escape
from zlib import crc32

from journeyman.worlds.content import Block, Heading, Paragraph, Prose, Revision, Table, unmarked
from journeyman.worlds.render.canonical import canonical_zip
from journeyman.worlds.render.docx_parts import NAMESPACES, package_parts
from journeyman.worlds.render.places import Places, Style


def render_docx(prose: Prose, style: Style, places: Places) -> bytes:
    """A Word document; facts lie at ``para:<id>`` and at cells, ``body/t1/r2c3``."""
    writer = _Writer(places, crc32(prose.title.encode()))
    body = "".join(writer.block(block) for block in prose.blocks)
    parts = package_parts(prose.title, style, header=prose.header, footer=prose.footer, body=body)
    if writer.notes:
        parts["word/footnotes.xml"] = _notes_part(writer.notes)
    if writer.comments:
        parts["word/comments.xml"] = f"<w:comments {NAMESPACES}>{''.join(writer.comments)}</w:comments>".encode()
    return canonical_zip(parts)


def _notes_part(notes: list[str]) -> bytes:
    rule = (
        '<w:footnote w:type="separator" w:id="-1"><w:p><w:r><w:separator/></w:r></w:p></w:footnote>'
        '<w:footnote w:type="continuationSeparator" w:id="0"><w:p><w:r><w:continuationSeparator/></w:r></w:p>'
        "</w:footnote>"
    )
    return f"<w:footnotes {NAMESPACES}>{rule}{''.join(notes)}</w:footnotes>".encode()


class _Writer:
    """The body while it is written: ids given out, notes, comments and changes so far."""

    def __init__(self, places: Places, base: int) -> None:
        self.places, self.base = places, base
        self.notes: list[str] = []
        self.comments: list[str] = []
        self.num_paragraphs = self.num_tables = self.num_changes = 0

    def block(self, block: Block) -> str:
        match block:
            case Heading():
                style = "Title" if block.level == 0 else f"Heading{block.level}"
                para_id = self._para_id()
                return _paragraph(para_id, style, _run(self.places.take(block.text, f"para:{para_id}")))
            case Paragraph():
                return self._paragraph(block)
            case Table():
                return self._table(block)
            case _:
                return '<w:p><w:r><w:br w:type="page"/></w:r></w:p>'

    def _para_id(self) -> str:
        self.num_paragraphs += 1
        return f"{(self.base + self.num_paragraphs * 0x10001) & 0x7FFFFFFF or 1:08X}"

    def _paragraph(self, block: Paragraph) -> str:
        para_id = self._para_id()
        style = {"bullet": "ListBullet", "quote": "Quote", "small": "Small"}.get(block.style, "Normal")
        text = self.places.take(block.text, f"para:{para_id}")
        runs = self._tracked(text, block.revisions)
        for note in block.notes:
            number = len(self.notes) + 1
            plain = self.places.take(note, f"footnote:{number}")
            self.notes.append(f'<w:footnote w:id="{number}"><w:p>{_run(plain)}</w:p></w:footnote>')
            runs += (
                f'<w:r><w:rPr><w:vertAlign w:val="superscript"/></w:rPr><w:footnoteReference w:id="{number}"/></w:r>'
            )
        if block.comment:
            number = len(self.comments)
            author, words = block.comment
            said = _run(self.places.take(words, f"comment:{number}"))
            self.comments.append(
                f'<w:comment w:id="{number}" w:author="{escape(author)}" w:initials="{escape(author[:1])}">'
                f"<w:p>{said}</w:p></w:comment>"
            )
            runs = (
                f'<w:commentRangeStart w:id="{number}"/>{runs}<w:commentRangeEnd w:id="{number}"/>'
                f'<w:r><w:commentReference w:id="{number}"/></w:r>'
            )
        return _paragraph(para_id, style, runs)

    def _tracked(self, text: str, revisions: tuple[Revision, ...]) -> str:
        made, rest = "", text
        for one in revisions:
            new = unmarked(one.new)[0]
            before, found, rest = rest.partition(new) if new else (rest, "", "")
            assert found or not new, f"{new!r} does not stand in {text!r}"
            made += _run(before) if before else ""
            facts = f'w:author="{escape(one.author)}" w:date="{one.date}T09:00:00Z"'
            if one.old:
                self.num_changes += 1
                old = f'<w:r><w:delText xml:space="preserve">{escape(unmarked(one.old)[0])}</w:delText></w:r>'
                made += f'<w:del w:id="{9000 + self.num_changes}" {facts}>{old}</w:del>'
            if new:
                self.num_changes += 1
                made += f'<w:ins w:id="{9000 + self.num_changes}" {facts}>{_run(new)}</w:ins>'
        return made + (_run(rest) if rest or not made else "")

    def _table(self, block: Table) -> str:
        self.num_tables += 1
        caption = _paragraph(self._para_id(), "Caption", _run(unmarked(block.caption)[0])) if block.caption else ""
        shares = block.widths or (1.0,) * len(block.rows[0])
        widths = [round(9000 * share / sum(shares)) for share in shares]
        rows = []
        for row, cells in enumerate(block.rows, start=1):
            is_head = row <= block.header_rows
            texts = [
                self.places.take(text, f"body/t{self.num_tables}/r{row}c{column}")
                for column, text in enumerate(cells, start=1)
            ]
            inner = "".join(
                f'<w:tc><w:tcPr><w:tcW w:w="{width}" w:type="dxa"/></w:tcPr>'
                f"{_paragraph(self._para_id(), 'TableText', _run(text, is_head))}</w:tc>"
                for text, width in zip(texts, widths, strict=True)
            )
            rows.append(f"<w:tr>{'<w:trPr><w:tblHeader/></w:trPr>' if is_head else ''}{inner}</w:tr>")
        grid = "".join(f'<w:gridCol w:w="{width}"/>' for width in widths)
        return (
            f'{caption}<w:tbl><w:tblPr><w:tblStyle w:val="TableGrid"/><w:tblW w:w="0" w:type="auto"/></w:tblPr>'
            f"<w:tblGrid>{grid}</w:tblGrid>{''.join(rows)}</w:tbl>"
            f"{_paragraph(self._para_id(), 'Normal', '')}"
        )


def _paragraph(para_id: str, style: str, runs: str) -> str:
    properties = "" if style == "Normal" else f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>'
    return f'<w:p w14:paraId="{para_id}" w14:textId="77777777">{properties}{runs}</w:p>'


def _run(text: str, is_bold: bool = False) -> str:
    bold = "<w:rPr><w:b/></w:rPr>" if is_bold else ""
    return f'<w:r>{bold}<w:t xml:space="preserve">{escape(text)}</w:t></w:r>' if text else ""
