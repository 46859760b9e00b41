"""What a document's styles and lists are called: style id -> name, list id and level -> format and label."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ..errors import UnreadableDocument
from ..opc import Package
from .names import local, value, w

MAX_STYLE_DEPTH = 20
"""Styles based on each other beyond this are a loop."""


@dataclass(frozen=True, slots=True)
class Level:
    """One level of a list.

    Attributes:
        format: ``bullet``, ``decimal``, ``lowerLetter``, ...
        text: label with ``%1`` for the number of level 1, or the bullet itself.
        start: first number.
    """

    format: str = ""
    text: str = ""
    start: int = 1


@dataclass(slots=True)
class Styles:
    """Names of styles and definitions of lists.

    Attributes:
        names: style id -> name.
        elements: style id -> element.
        levels: list id -> level (from 0) -> definition.
        counters: list id -> numbers counted so far, by level; filled while reading.
        inherited: style id -> what its paragraphs inherit; filled while reading.
    """

    names: dict[str, str] = field(default_factory=dict)
    elements: dict[str, Any] = field(default_factory=dict)
    levels: dict[str, dict[int, Level]] = field(default_factory=dict)
    counters: dict[str, dict[int, int]] = field(default_factory=dict)
    inherited: dict[str, tuple[str | None, str | None, str | None]] = field(default_factory=dict)

    def id_of(self, name: str) -> str | None:
        """Id of the style with this name or id."""
        if name in self.names:
            return name
        return next((key for key, known in self.names.items() if known.lower() == name.lower()), None)

    def list_of(self, properties: Any) -> dict[str, Any] | None:
        """List id, level from 0, format and label of a paragraph; None when it is in no list. Counts it."""
        list_id, level = self._numbering(properties)
        if list_id is None or list_id == "0":
            return None
        definition = self.levels.get(list_id, {}).get(level, Level())
        counts = self.counters.setdefault(list_id, {})
        counts[level] = counts.get(level, definition.start - 1) + 1
        for deeper in [one for one in counts if one > level]:
            del counts[deeper]
        found: dict[str, Any] = {"id": list_id, "level": level}
        if definition.format:
            found["format"] = definition.format
        label = self._label(list_id, definition, counts)
        return {**found, "label": label} if label else found

    def outline(self, properties: Any) -> int | None:
        """Heading level from 1, of the paragraph or its style."""
        found = value(properties, "outlineLvl") or self._inherited(properties)[0]
        return int(found) + 1 if found and found.isdigit() and int(found) < 9 else None

    def _numbering(self, properties: Any) -> tuple[str | None, int]:
        _, list_id, level = self._inherited(properties)
        list_id = value(properties, "numPr/numId") or list_id
        level = value(properties, "numPr/ilvl") or level
        return list_id, int(level) if level and level.isdigit() else 0

    def _inherited(self, properties: Any) -> tuple[str | None, str | None, str | None]:
        """Outline level, list and list level that the paragraph's style gives."""
        style_id = value(properties, "pStyle")
        if style_id is None:
            return None, None, None
        if style_id not in self.inherited:
            chain = self._chain(style_id)
            found = [
                next((text for style in chain if (text := value(style, f"pPr/{path}"))), None)
                for path in ("outlineLvl", "numPr/numId", "numPr/ilvl")
            ]
            self.inherited[style_id] = (found[0], found[1], found[2])
        return self.inherited[style_id]

    def _chain(self, style_id: str | None) -> list[Any]:
        found: list[Any] = []
        while style_id in self.elements and len(found) < MAX_STYLE_DEPTH:
            found.append(self.elements[style_id])
            style_id = value(found[-1], "basedOn")
        return found

    def _label(self, list_id: str, definition: Level, counts: dict[int, int]) -> str:
        if definition.format in ("bullet", "none", ""):
            return ""
        label = definition.text
        for level in range(9):
            if f"%{level + 1}" in label:
                shown = self.levels.get(list_id, {}).get(level, Level())
                label = label.replace(f"%{level + 1}", numeral(counts.get(level, shown.start), shown.format))
        return label


def numeral(number: int, form: str) -> str:
    """A number as lists write it; decimal for forms that are not known."""
    if form in ("lowerLetter", "upperLetter") and number > 0:
        letter = chr(ord("a") + (number - 1) % 26) * ((number - 1) // 26 + 1)
        return letter.upper() if form == "upperLetter" else letter
    if form in ("lowerRoman", "upperRoman") and 0 < number < 4000:
        text = ""
        for size, mark in ROMAN:
            text, number = text + mark * (number // size), number % size
        return text.upper() if form == "upperRoman" else text
    return f"{number:02d}" if form == "decimalZero" else str(number)


ROMAN = (
    *((1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"), (40, "xl")),
    *((10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i")),
)


def styles_of(package: Package, part: str, warnings: list[str]) -> Styles:
    """Styles and lists of the document part; a damaged part becomes a warning."""
    styles = Styles()
    for kind, read in (("styles", _read_styles), ("numbering", _read_numbering)):
        for name in package.related(part, kind)[:1]:
            try:
                read(package.xml(name), styles)
            except UnreadableDocument as error:
                warnings.append(f"{name} is not read: {error.what}")
    return styles


def _read_styles(root: Any, styles: Styles) -> None:
    for element in root.iter(w("style")):
        style_id = element.get(w("styleId"))
        if style_id:
            styles.elements[style_id] = element
            styles.names[style_id] = value(element, "name") or style_id


def _read_numbering(root: Any, styles: Styles) -> None:
    definitions: dict[str, dict[int, Level]] = {}
    for element in root.iter(w("abstractNum")):
        levels = {_level_number(one): _level(one) for one in element if local(one) == "lvl"}
        definitions[element.get(w("abstractNumId")) or ""] = levels
    for element in root.iter(w("num")):
        levels = dict(definitions.get(value(element, "abstractNumId") or "", {}))
        for override in element.iter(w("lvlOverride")):
            number, start = _level_number(override), value(override, "startOverride")
            if (own := override.find(w("lvl"))) is not None:
                levels[number] = _level(own)
            elif start and start.isdigit():
                known = levels.get(number, Level())
                levels[number] = Level(known.format, known.text, int(start))
        styles.levels[element.get(w("numId")) or ""] = levels


def _level_number(element: Any) -> int:
    number = element.get(w("ilvl")) or "0"
    return int(number) if number.isdigit() else 0


def _level(element: Any) -> Level:
    start = value(element, "start") or "1"
    return Level(value(element, "numFmt") or "", value(element, "lvlText") or "", int(start) if start.isdigit() else 1)
