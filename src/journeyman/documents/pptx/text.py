"""Text of shapes, cells and notes: paragraphs by line feeds, line breaks within one as vertical tabs.

Edits replace by character position, so each character keeps the format of the run it stands in.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from .names import a, local

BREAK = "\v"
TEXT_RUNS = ("r", "fld")


def pieces_of(paragraph: Any) -> list[tuple[int, int, Any]]:
    """Start, end and element (``a:r``, ``a:fld``, ``a:br``) of a paragraph's text, in order."""
    found, at = [], 0
    for child in paragraph:
        name = local(child)
        if name in TEXT_RUNS:
            text = child.findtext(a("t")) or ""
        elif name == "br":
            text = BREAK
        else:
            continue
        found.append((at, at + len(text), child))
        at += len(text)
    return found


def paragraph_text(paragraph: Any) -> str:
    """Text of one ``a:p``."""
    pieces = pieces_of(paragraph)
    return "".join(BREAK if local(one) == "br" else one.findtext(a("t")) or "" for _, _, one in pieces)


def body_text(body: Any) -> str:
    """Text of a ``txBody``, one paragraph per line; empty without one."""
    return "" if body is None else "\n".join(paragraph_text(one) for one in body.findall(a("p")))


def paragraphs_of(body: Any) -> list[dict[str, Any]]:
    """Paragraphs with level and runs, empty when there is nothing but plain text."""
    found = []
    for paragraph in body.findall(a("p")):
        entry: dict[str, Any] = {"text": paragraph_text(paragraph)}
        level = paragraph.find(a("pPr")).get("lvl") if paragraph.find(a("pPr")) is not None else None
        if level and level != "0":
            entry["level"] = int(level) if level.isdigit() else 0
        runs = [(one.findtext(a("t")) or "", formats_of(one)) for one in paragraph if local(one) in TEXT_RUNS]
        if any(formats for _, formats in runs):
            entry["runs"] = [{"text": text, **formats} for text, formats in runs if text]
        found.append(entry)
    return found if any(set(entry) - {"text"} for entry in found) else []


def formats_of(run: Any) -> dict[str, Any]:
    """Direct formats of a run as JSON values; what is inherited is left out."""
    properties = run.find(a("rPr"))
    found: dict[str, Any] = {"field": run.get("type")} if local(run) == "fld" else {}
    if properties is None:
        return found
    for name, key in (("bold", "b"), ("italic", "i")):
        if properties.get(key) in ("1", "true"):
            found[name] = True
    if properties.get("u", "none") != "none":
        found["underline"] = properties.get("u")
    if properties.get("strike", "noStrike") != "noStrike":
        found["strike"] = True
    if (size := properties.get("sz")) and size.isdigit():
        found["size_pt"] = int(size) / 100
    color = properties.find(f"{a('solidFill')}/{a('srgbClr')}")
    if color is not None and color.get("val"):
        found["color"] = color.get("val")
    font = properties.find(a("latin"))
    if font is not None and font.get("typeface"):
        found["font"] = font.get("typeface")
    return found


def set_body(body: Any, text: str) -> None:
    """Make ``text`` the text of a ``txBody``; lines that are added look like the last one there was."""
    from lxml import etree

    paragraphs = body.findall(a("p")) or [etree.SubElement(body, a("p"))]
    lines = text.split("\n")
    for surplus in paragraphs[len(lines) :]:
        body.remove(surplus)
    for paragraph, line in zip(paragraphs, lines, strict=False):
        set_paragraph(paragraph, line)
    for line in lines[len(paragraphs) :]:
        added = deepcopy(paragraphs[-1])
        set_paragraph(added, line)
        paragraphs[-1].addnext(added)
        paragraphs.append(added)


def set_paragraph(paragraph: Any, text: str) -> None:
    """Make ``text`` a paragraph's text; what is the same at the beginning and at the end keeps its runs."""
    old = paragraph_text(paragraph)
    short = min(len(old), len(text))
    start = next((at for at in range(short) if old[at] != text[at]), short)
    tail = next((at for at in range(short - start) if old[-1 - at] != text[-1 - at]), short - start)
    splice(paragraph, start, len(old) - tail, text[start : len(text) - tail])


def replace_text(paragraph: Any, old: str, new: str, limit: int) -> int:
    """Replace up to ``limit`` occurrences from the start; returns how many there were."""
    text, at = paragraph_text(paragraph), 0
    places: list[int] = []
    while (at := text.find(old, at)) >= 0 and len(places) < limit:
        places.append(at)
        at += len(old)
    for start in reversed(places):
        splice(paragraph, start, start + len(old), new)
    return len(places)


def splice(paragraph: Any, start: int, end: int, new: str) -> None:
    """Replace the characters ``start:end``; the new text takes the format of the first of them."""
    pieces = pieces_of(paragraph)
    covered = [one for one in pieces if one[0] < end and one[1] > start]
    if not covered and new:
        covered = [one for one in pieces if one[1] == start][-1:] or [one for one in pieces if one[0] == start][:1]
    if not covered:
        for run in reversed(_runs(new, None)):
            _append_run(paragraph, run)
        return
    for number, (first, last, element) in enumerate(covered):
        text = BREAK if local(element) == "br" else element.findtext(a("t")) or ""
        kept = text[: max(0, start - first)], text[max(0, end - first) :] if end < last else ""
        _rewrite(element, text, kept[0] + (new if number == 0 else "") + kept[1])


def _rewrite(element: Any, old: str, text: str) -> None:
    if text == old:
        return
    parent, at = element.getparent(), element.getparent().index(element)
    target = element.find(a("t"))
    if local(element) in TEXT_RUNS and text and BREAK not in text and target is not None:
        target.text = text
        return
    parent.remove(element)
    for offset, run in enumerate(_runs(text, element.find(a("rPr")))):
        parent.insert(at + offset, run)


def _runs(text: str, properties: Any) -> list[Any]:
    from lxml import etree

    runs = []
    for number, part in enumerate(text.split(BREAK)):
        for name, content in ((("br", None),) if number else ()) + ((("r", part),) if part else ()):
            run = etree.Element(a(name))
            if properties is not None:
                run.append(deepcopy(properties))
            if content is not None:
                etree.SubElement(run, a("t")).text = content
            runs.append(run)
    return runs


def _append_run(paragraph: Any, run: Any) -> None:
    """Put a run first in a paragraph without text, in the format that its end has."""
    end = paragraph.find(a("endParaRPr"))
    if end is not None and run.find(a("rPr")) is None:
        properties = deepcopy(end)
        properties.tag, properties.tail = a("rPr"), None
        run.insert(0, properties)
    paragraph.insert(1 if paragraph.find(a("pPr")) is not None else 0, run)
