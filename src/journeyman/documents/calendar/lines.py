"""The lines of an iCalendar file and the components they form, each with the bytes it takes.

Reading and editing share this map, so an edit replaces the lines it names and leaves every other byte.
Source of the format: RFC 5545, sections 3.1 and 3.2.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from ..errors import TooLarge, UnreadableDocument, WrongKind

LINE = re.compile(rb"[^\n]*(?:\n[ \t][^\n]*)*(?:\n|\Z)")
PARAMETER = re.compile(r';([A-Za-z0-9-]+)=((?:"[^"]*"|[^";:,]*)(?:,(?:"[^"]*"|[^";:,]*))*)')
MAX_DEPTH, MAX_COMPONENTS = 10, 200_000
WIDTH = 75
"""Bytes of a line before it is folded."""


@dataclass(frozen=True, slots=True)
class Line:
    """One property.

    Attributes:
        name: in upper case.
        parameters: by upper-case name, without quotes.
        value: as written, unfolded, escapes kept.
        start, end: bytes of the line, line end included.
    """

    name: str
    parameters: Mapping[str, str]
    value: str
    start: int
    end: int


@dataclass(slots=True)
class Component:
    """What stands between BEGIN and END.

    Attributes:
        kind: in lower case, e.g. ``vevent``.
        start, end: bytes, from BEGIN to the line after END.
        inner_end: where END begins.
        lines: its own properties.
        children: components in it.
    """

    kind: str
    start: int
    end: int = 0
    inner_end: int = 0
    lines: list[Line] = field(default_factory=list)
    children: list[Component] = field(default_factory=list)

    def all(self, name: str) -> list[Line]:
        """Its properties of this name."""
        return [line for line in self.lines if line.name == name]

    def first(self, name: str) -> Line | None:
        """Its first property of this name."""
        return next((line for line in self.lines if line.name == name), None)

    def text(self, name: str) -> str:
        """Text of the first property of this name, empty without one."""
        line = self.first(name)
        return "" if line is None else unescaped(line.value)


def components_of(data: bytes, name: str, warnings: list[str]) -> list[Component]:
    """The calendars in a file. Raises WrongKind, TooLarge or UnreadableDocument."""
    if not data.strip():
        raise UnreadableDocument(name, "the file is empty", remedy="export the calendar again")
    top: list[Component] = []
    stack: list[Component] = []
    count = 0
    for line in _lines(data, warnings):
        if line.name == "BEGIN":
            count += 1
            if len(stack) >= MAX_DEPTH or count > MAX_COMPONENTS:
                raise TooLarge(name, "too many components or too deeply nested", place=f"byte {line.start}")
            component = Component(line.value.strip().lower(), line.start)
            (stack[-1].children if stack else top).append(component)
            stack.append(component)
        elif line.name == "END":
            while stack:
                closed = stack.pop()
                closed.inner_end, closed.end = line.start, line.end
                if closed.kind == line.value.strip().lower():
                    break
                warnings.append(f"{closed.kind} is not closed")
        elif stack:
            stack[-1].lines.append(line)
    for component in stack:
        warnings.append(f"{component.kind} is not closed, the file may be cut off")
        component.inner_end = component.end = len(data)
    calendars = [component for component in top if component.kind == "vcalendar"]
    if not calendars:
        raise WrongKind(name, "no calendar in the file", remedy="check the file's extension")
    return calendars


def _lines(data: bytes, warnings: list[str]) -> Iterator[Line]:
    at = 3 if data.startswith(b"\xef\xbb\xbf") else 0
    broken = 0
    while at < len(data):
        match = LINE.match(data, at)
        end = len(data) if match is None else match.end()
        raw = re.sub(rb"\r?\n[ \t]", b"", data[at:end]).strip(b"\r\n")
        text = _decoded(raw)
        head = re.match(r"[A-Za-z0-9-]+", text)
        parameters, position = {}, 0 if head is None else head.end()
        while head is not None and (parameter := PARAMETER.match(text, position)) is not None:
            parameters[parameter[1].upper()] = parameter[2].replace('"', "")
            position = parameter.end()
        if head is not None and text[position : position + 1] == ":":
            yield Line(head[0].upper(), parameters, text[position + 1 :], at, end)
        elif text.strip():
            broken += 1
        at = end
    if broken:
        warnings.append(f"{broken} lines are no properties and were left out")


def _decoded(raw: bytes) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeError:
        return raw.decode("cp1252", "replace")


def folded(name: str, parameters: Mapping[str, str], value: str, end: bytes) -> bytes:
    """The bytes of a property, folded at 75 bytes between characters. Raises ValueError for control characters."""
    if re.search(r"[\x00-\x08\x0a-\x1f\x7f]", name + value + "".join(parameters.values())):
        raise ValueError("control characters cannot be written")
    text = name
    for key, one in parameters.items():
        text += f";{key}=" + (f'"{one}"' if re.search(r"[;:,]", one) else one.replace('"', "'"))
    lines: list[str] = []
    line = ""
    for character in f"{text}:{value}":
        if len((line + character).encode("utf-8")) > WIDTH - (1 if lines else 0):
            lines.append(line)
            line = ""
        line += character
    return (end + b" ").join(one.encode("utf-8") for one in [*lines, line]) + end


def escaped(text: str) -> str:
    """Text as a property value."""
    text = text.replace("\\", "\\\\").replace(";", "\\;").replace(",", "\\,")
    return text.replace("\r\n", "\n").replace("\n", "\\n")


def unescaped(value: str) -> str:
    """The text of a property value."""
    return re.sub(r"\\(.)", lambda match: "\n" if match[1] in "nN" else match[1], value)
