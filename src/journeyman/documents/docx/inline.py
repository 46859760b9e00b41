"""What a paragraph holds: pieces of text in order, each with the run it stands in and the tracked change it is part of.

A piece is one text-bearing element, so an edit by character position knows which element to change. Deleted text is a
piece too; the views choose.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from .names import DELETED, INSERTED, MC, VALUE, R, is_set, local, w

FIXED = {"tab": "\t", "ptab": "\t", "cr": "\n", "noBreakHyphen": "\u2011", "softHyphen": "\u00ad"}
"""Elements of a run that stand for one character."""

TRANSPARENT = {"smartTag", "sdt", "sdtContent", "customXml", "dir", "bdo", "subDoc", "Choice"}
"""Wrappers whose content belongs to the paragraph as if they were not there."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Text of one element.

    Attributes:
        text: as read; one character for elements such as a tab.
        element: ``w:t``, ``w:delText``, ``w:tab``, ...
        run: the ``w:r`` around it, None in a formula.
        inserted, deleted: the tracked changes around it, None where there are none.
        link: target of the hyperlink around it, empty without.
    """

    text: str
    element: Any
    run: Any = None
    inserted: Any = None
    deleted: Any = None
    link: str = ""


@dataclass(slots=True)
class Content:
    """Everything found in one paragraph, in reading order.

    Attributes:
        pieces: text.
        changes: elements of tracked changes.
        fields: ``[code, result]`` of fields that begin here.
        drawings: elements that may hold images or text boxes.
        notes: addresses of footnotes and endnotes referred to.
        comments: comment id -> quoted text so far, for ranges that are open or closed here.
        closed: ids of comments whose range ends here.
        bookmarks: names.
    """

    pieces: list[Piece] = field(default_factory=list)
    changes: list[Any] = field(default_factory=list)
    fields: list[list[str]] = field(default_factory=list)
    drawings: list[Any] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    comments: dict[str, list[str]] = field(default_factory=dict)
    bookmarks: list[str] = field(default_factory=list)

    def accepted(self) -> str:
        """The text with every tracked change accepted."""
        return "".join(piece.text for piece in self.pieces if piece.deleted is None)

    def original(self) -> str:
        """The text with every tracked change rejected."""
        return "".join(piece.text for piece in self.pieces if piece.inserted is None)

    def marked(self) -> str:
        """The text with insertions as ``[+...+]`` and deletions as ``[-...-]``."""
        out, state = [], ""
        for piece in self.pieces:
            now = "-" if piece.deleted is not None else "+" if piece.inserted is not None else ""
            if now != state:
                out.append((f"{state}]" if state else "") + (f"[{now}" if now else ""))
                state = now
            out.append(piece.text)
        return "".join(out) + (f"{state}]" if state else "")


@dataclass(slots=True)
class FieldState:
    """Complex fields that are open; they may span paragraphs, so the state belongs to the story.

    Attributes:
        open: for each open field its ``[code, result]`` and whether its result has begun.
        ranges: ids of comments whose range is open.
    """

    open: list[tuple[list[str], list[bool]]] = field(default_factory=list)
    ranges: set[str] = field(default_factory=set)

    def in_code(self) -> bool:
        """Whether text read now belongs to a field's code."""
        return any(not begun[0] for _, begun in self.open)


@dataclass(slots=True)
class _Walk:
    content: Content
    state: FieldState
    links: dict[str, str]

    def paragraph(self, element: Any, inserted: Any = None, deleted: Any = None, link: str = "") -> None:
        for child in element:
            name = local(child)
            if name == "r":
                self.run(child, inserted, deleted, link)
            elif name in INSERTED:
                self.content.changes.append(child)
                self.paragraph(child, child, deleted, link)
            elif name in DELETED:
                self.content.changes.append(child)
                self.paragraph(child, inserted, child, link)
            elif name == "hyperlink":
                target = self.links.get(child.get(f"{{{R}}}id") or "", "")
                anchor = child.get(w("anchor"))
                self.paragraph(child, inserted, deleted, target + (f"#{anchor}" if anchor else ""))
            elif name == "fldSimple":
                entry = [(child.get(w("instr")) or "").strip(), ""]
                self.content.fields.append(entry)
                self.state.open.append((entry, [True]))
                self.paragraph(child, inserted, deleted, link)
                self.state.open.pop()
            elif name == "AlternateContent":
                self.paragraph(chosen(child), inserted, deleted, link)
            elif name in TRANSPARENT:
                self.paragraph(child, inserted, deleted, link)
            elif name in ("oMath", "oMathPara"):
                text = "".join(one.text or "" for one in child.iter() if local(one) == "t")
                self.add(Piece(text, child, None, inserted, deleted, link))
            else:
                self.mark(child, name)

    def mark(self, element: Any, name: str) -> None:
        if name == "commentRangeStart":
            self.state.ranges.add(element.get(w("id")) or "")
            self.content.comments.setdefault(element.get(w("id")) or "", [])
        elif name == "commentRangeEnd":
            self.state.ranges.discard(element.get(w("id")) or "")
        elif name == "bookmarkStart" and element.get(w("name")) not in (None, "_GoBack"):
            self.content.bookmarks.append(element.get(w("name")))
        elif name == "pPr":
            mark = element.find(w("rPr"))
            owners = [element] if mark is None else [element, mark]
            for owner in owners:
                self.content.changes.extend(one for one in owner if local(one) in CHANGES_OF_PROPERTIES)

    def run(self, run: Any, inserted: Any, deleted: Any, link: str) -> None:
        for child in run:
            name = local(child)
            if name in ("t", "delText"):
                self.add(Piece(child.text or "", child, run, inserted, deleted, link))
            elif name in FIXED:
                self.add(Piece(FIXED[name], child, run, inserted, deleted, link))
            elif name == "br":
                is_page = child.get(w("type")) in ("page", "column")
                self.add(Piece("\f" if is_page else "\n", child, run, inserted, deleted, link))
            elif name == "sym":
                self.add(Piece(_symbol(child), child, run, inserted, deleted, link))
            elif name == "rPr":
                self.content.changes.extend(one for one in child if local(one) == "rPrChange")
            elif name == "fldChar":
                self.field(child.get(w("fldCharType")))
            elif name == "instrText" and self.state.open:
                self.state.open[-1][0][0] += child.text or ""
            elif name in ("footnoteReference", "endnoteReference"):
                self.content.notes.append(f"{name.removesuffix('Reference')}:{child.get(w('id'))}")
            elif name == "commentReference":
                self.content.comments.setdefault(child.get(w("id")) or "", [])
            elif name in ("drawing", "pict", "object"):
                self.content.drawings.append(child)
            elif name == "AlternateContent":
                self.run(chosen(child), inserted, deleted, link)

    def field(self, kind: str | None) -> None:
        if kind == "begin":
            entry = ["", ""]
            self.content.fields.append(entry)
            self.state.open.append((entry, [False]))
        elif kind == "separate" and self.state.open:
            self.state.open[-1][1][0] = True
        elif kind == "end" and self.state.open:
            self.state.open.pop()

    def add(self, piece: Piece) -> None:
        if self.state.in_code():
            return
        self.content.pieces.append(piece)
        if piece.deleted is None:
            for entry, begun in self.state.open:
                if begun[0]:
                    entry[1] += piece.text
            for comment in self.state.ranges:
                self.content.comments.setdefault(comment, []).append(piece.text)


CHANGES_OF_PROPERTIES = {"ins", "del", "moveFrom", "moveTo", "rPrChange", "pPrChange", "sectPrChange"}
"""Records of tracked changes that stand in a paragraph's properties."""


def content_of(paragraph: Any, links: dict[str, str], state: FieldState | None = None) -> Content:
    """Everything in one ``w:p``.

    Args:
        paragraph: the element.
        links: relationship id -> external target, of the part it stands in.
        state: of the story, when fields and comment ranges may have begun in an earlier paragraph.
    """
    walk = _Walk(Content(), state or FieldState(), links)
    for comment in walk.state.ranges:
        walk.content.comments[comment] = []
    walk.paragraph(paragraph)
    for entry in walk.content.fields:
        entry[0] = " ".join(entry[0].split())
    return walk.content


def chosen(alternate: Any) -> Any:
    """Of alternatives for older and newer programs the first choice, else the fallback; an empty list without both."""
    found = alternate.find(f"{{{MC}}}Choice")
    found = alternate.find(f"{{{MC}}}Fallback") if found is None else found
    return [] if found is None else found


TOGGLES = {
    "b": "bold",
    "i": "italic",
    "strike": "strike",
    "caps": "caps",
    "smallCaps": "small_caps",
    "vanish": "hidden",
}
TEXTS = {"rStyle": "style", "color": "color", "highlight": "highlight", "vertAlign": "position"}
"""Property of a run -> its name in the tree."""


def formats_of(run: Any) -> dict[str, Any]:
    """The direct formats of a run that differ from the default, as JSON values; sizes in points."""
    properties = run.find(w("rPr")) if run is not None else None
    found: dict[str, Any] = {}
    for one in properties if properties is not None else ():
        name = local(one)
        text = one.get(VALUE)
        if name in TOGGLES:
            found.update({TOGGLES[name]: True} if is_set(text) else {})
        elif name in TEXTS:
            found.update({TEXTS[name]: text} if text is not None else {})
        elif name == "u":
            found.update({"underline": text or "single"} if is_set(text) else {})
        elif name == "sz" and text is not None and text.isdigit():
            found["size_pt"] = int(text) / 2
        elif name == "rFonts" and one.get(w("ascii")) is not None:
            found["font"] = one.get(w("ascii"))
    return found


def runs_of(content: Content) -> Iterator[tuple[str, dict[str, Any]]]:
    """The accepted text in stretches of one format, a hyperlink counting as one."""
    text, last = "", None
    for piece in content.pieces:
        if piece.deleted is not None or not piece.text:
            continue
        now = formats_of(piece.run) | ({"link": piece.link} if piece.link else {})
        if now != last and last is not None:
            yield text, last
            text = ""
        text, last = text + piece.text, now
    if last is not None:
        yield text, last


def _symbol(element: Any) -> str:
    code = element.get(w("char")) or ""
    try:
        number = int(code, 16)
        # symbol fonts lie in the private area at F000 plus the code of the character
        return chr(number - 0xF000 if 0xF020 <= number <= 0xF0FF else number)
    except ValueError:
        return ""
