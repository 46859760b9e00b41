"""Cell styles changed by adding to ``styles.xml``; no existing style is touched."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from ..errors import BadEdit
from .package import child, children, local
from .styles import BUILT_IN

FONT = {
    "bold": "b",
    "italic": "i",
    "strike": "strike",
    "underline": "u",
    "size": "sz",
    "font": "name",
    "color": "color",
}
FONT_ORDER = ("b", "i", "strike", "condense", "extend", "outline", "shadow", "u", "vertAlign", "sz", "color", "name",
              "family", "charset", "scheme")  # fmt: skip
ALIGNMENT = {"align": "horizontal", "valign": "vertical", "wrap": "wrapText", "indent": "indent",
             "rotation": "textRotation", "shrink": "shrinkToFit"}  # fmt: skip
BORDERS = ("border_left", "border_right", "border_top", "border_bottom")
SIDES = {"left": 0, "right": 1, "top": 2, "bottom": 3}
KEYS = ("number_format", "fill", "unlocked", *FONT, *ALIGNMENT, *BORDERS)
"""What can be changed; the words are those that reading gives."""


def restyled(root: Any, base: int, wanted: Mapping[str, Any], name: str, place: str) -> int:
    """Index of a style equal to ``base`` but for the wanted keys; None or False removes one. Raises BadEdit."""
    unknown = [key for key in wanted if key not in KEYS]
    if unknown:
        raise BadEdit(name, f"no style key {unknown[0]!r}", place=place, remedy=f"keys: {', '.join(KEYS)}")
    rows = child(root, "cellXfs")
    old = rows[base] if base < len(rows) else rows[0]
    new = deepcopy(old)
    try:
        _apply(root, old, new, wanted)
    except (TypeError, ValueError) as error:
        raise BadEdit(name, f"style {dict(wanted)!r:.200}: {error}", place=place) from error
    for index, row in enumerate(rows):
        if row.attrib == new.attrib and [_same(x) for x in row] == [_same(x) for x in new]:
            return index
    rows.append(new)
    rows.set("count", str(len(rows)))
    return len(rows) - 1


def _same(element: Any) -> tuple[str, Any]:
    return local(element), sorted(element.attrib.items())


def _apply(root: Any, old: Any, new: Any, wanted: Mapping[str, Any]) -> None:
    if "number_format" in wanted:
        new.set("numFmtId", str(_number_format(root, str(wanted["number_format"] or "General"))))
        new.set("applyNumberFormat", "1")
    if any(key in wanted for key in FONT):
        new.set("fontId", str(_font(root, int(old.get("fontId") or 0), wanted)))
        new.set("applyFont", "1")
    if "fill" in wanted:
        new.set("fillId", str(_fill(root, wanted["fill"])))
        new.set("applyFill", "1")
    if any(key in wanted for key in BORDERS):
        new.set("borderId", str(_border(root, int(old.get("borderId") or 0), wanted)))
        new.set("applyBorder", "1")
    if any(key in wanted for key in ALIGNMENT):
        _alignment(new, wanted)
    if "unlocked" in wanted:
        protection = child(new, "protection")
        if protection is None:
            protection = _add(new, "protection")
        protection.set("locked", "0" if wanted["unlocked"] else "1")
        new.set("applyProtection", "1")


def _add(parent: Any, word: str, **attributes: str) -> Any:
    from lxml import etree

    return etree.SubElement(parent, f"{parent.tag.rpartition('}')[0]}}}{word}", **attributes)


def _listed(parent: Any, element: Any) -> int:
    """The index of an equal child, or of the element appended."""
    from lxml import etree

    text = etree.tostring(element)
    for index, one in enumerate(parent):
        if etree.tostring(one) == text:
            return index
    parent.append(element)
    parent.set("count", str(len(parent)))
    return len(parent) - 1


def _number_format(root: Any, code: str) -> int:
    built_in = next((number for number, text in BUILT_IN.items() if text == code), None)
    if built_in is not None:
        return built_in
    formats = child(root, "numFmts")
    if formats is None:
        formats = _add(root, "numFmts", count="0")
        root.insert(0, formats)
    for one in formats:
        if one.get("formatCode") == code:
            return int(one.get("numFmtId"))
    number = max([163, *(int(one.get("numFmtId")) for one in formats)]) + 1
    _add(formats, "numFmt", numFmtId=str(number), formatCode=code)
    formats.set("count", str(len(formats)))
    return number


def _font(root: Any, index: int, wanted: Mapping[str, Any]) -> int:
    fonts = child(root, "fonts")
    font = deepcopy(fonts[index])
    for key, word in FONT.items():
        if key not in wanted:
            continue
        for one in children(font, word):
            font.remove(one)
        value = wanted[key]
        if value in (None, False, ""):
            continue
        if key == "color":
            _add(font, word, rgb=_argb(value))
        elif value is True:
            _add(font, word)
        else:
            _add(font, word, val=f"{float(value):g}" if key == "size" else str(value))
        if key == "font":
            for one in children(font, "scheme"):
                font.remove(one)
    rank = {word: n for n, word in enumerate(FONT_ORDER)}
    font[:] = sorted(font, key=lambda one: rank.get(local(one), 99))
    return _listed(fonts, font)


def _argb(value: Any) -> str:
    text = str(value).lstrip("#").upper()
    if len(text) != 6 or any(letter not in "0123456789ABCDEF" for letter in text):
        raise ValueError(f"{value!r} is no colour; write #RRGGBB")
    return f"FF{text}"


def _fill(root: Any, value: Any) -> int:
    fills = child(root, "fills")
    if not value:
        return 0
    fill = _add(fills, "fill")
    fills.remove(fill)
    pattern = _add(fill, "patternFill", patternType="solid")
    _add(pattern, "fgColor", rgb=_argb(value))
    _add(pattern, "bgColor", indexed="64")
    return _listed(fills, fill)


def _border(root: Any, index: int, wanted: Mapping[str, Any]) -> int:
    borders = child(root, "borders")
    border = deepcopy(borders[index])
    for key in BORDERS:
        if key not in wanted:
            continue
        word = key.removeprefix("border_")
        side = child(border, word)
        if side is None:
            side = _add(border, word)
            border[:] = sorted(border, key=lambda one: SIDES.get(local(one), 9))
        side[:] = []
        side.attrib.clear()
        if wanted[key]:
            kind, _, color = str(wanted[key]).partition(" ")
            side.set("style", kind)
            _add(side, "color", **({"rgb": _argb(color)} if color else {"auto": "1"}))
    return _listed(borders, border)


def _alignment(new: Any, wanted: Mapping[str, Any]) -> None:
    alignment = child(new, "alignment")
    if alignment is None:
        alignment = _add(new, "alignment")
        new.remove(alignment)
        new.insert(0, alignment)
    for key, word in ALIGNMENT.items():
        if key not in wanted:
            continue
        value = wanted[key]
        if value in (None, False):
            alignment.attrib.pop(word, None)
        else:
            alignment.set(word, "1" if value is True else str(value))
    new.set("applyAlignment", "1")
