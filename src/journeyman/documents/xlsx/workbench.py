"""A workbook opened for editing: parsed parts that are written back only when they were changed."""

from __future__ import annotations

from typing import Any

from ..errors import BadEdit, NoSuchAddress
from ..node import nearest_of
from .address import Area, cell_address, letters, parse
from .book import workbook_part
from .caches import number_text
from .cells import moved_formula
from .package import Package, child, children, local, rel_id


class Workbench:
    """State: the container, the roots of parts that were opened, and which of them were changed."""

    def __init__(self, data: bytes, name: str) -> None:
        self.name = name
        self.package = Package(data, name)
        self.main = workbook_part(self.package)
        self._roots: dict[str, Any] = {}
        self._changed: set[str] = set()
        self._rows: dict[str, dict[int, Any]] = {}

    def root(self, part: str) -> Any:
        """The parsed part."""
        if part not in self._roots:
            self._roots[part] = self.package.xml(part)
        return self._roots[part]

    def touch(self, part: str) -> None:
        """Say that the parsed part was changed."""
        self._changed.add(part)

    def to_bytes(self) -> bytes:
        """The file; the list of formulas in calculation order is dropped, since programs make it anew."""
        for part in sorted(self._changed):
            self.package.replace_xml(part, self._roots[part])
        if self._changed:
            self._drop_calculation_chain()
        return self.package.to_bytes()

    def _drop_calculation_chain(self) -> None:
        from ..container import relationships_part

        path = relationships_part(self.main)
        for relation in self.package.relations(self.main):
            if relation.kind == "calcChain":
                root = self.package.xml(path)
                for one in list(root):
                    if one.get("Id") == relation.id:
                        root.remove(one)
                self.package.replace_xml(path, root)
                self.package.remove(relation.target)
                return

    def sheets(self) -> list[tuple[str, str]]:
        """Names and parts, in order."""
        links = {one.id: one.target for one in self.package.relations(self.main)}
        return [(row.get("name", ""), links.get(rel_id(row), "")) for row in self.sheet_rows()]

    def sheet_rows(self) -> list[Any]:
        """The workbook's elements for its sheets."""
        return children(child(self.root(self.main), "sheets"), "sheet")

    def sheet(self, name: str, place: str) -> tuple[str, str]:
        """Name as written and part of a sheet, found in any case. Raises NoSuchAddress."""
        for found, part in self.sheets():
            if found.lower() == name.lower():
                return found, part
        known = [found for found, _ in self.sheets()]
        near = nearest_of(name, known)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise NoSuchAddress(self.name, f"no sheet {name!r}", place=place, remedy=f"{hint}sheets: {', '.join(known)}")

    def area(self, address: str) -> tuple[Area, str]:
        """An address of cells with the sheet's own spelling, and the sheet's part. Raises NoSuchAddress."""
        area = parse(address, self.name)
        name, part = self.sheet(area.sheet, address)
        if local(self.root(part)) != "worksheet":
            raise BadEdit(self.name, f"{name!r} has no cells", place=address)
        return Area(name, area.top, area.left, area.bottom, area.right), part

    def rows(self, part: str) -> dict[int, Any]:
        """Row elements of a sheet by number; missing numbers are filled in."""
        if part not in self._rows:
            data = child(self.root(part), "sheetData")
            found: dict[int, Any] = {}
            number = 0
            for row in children(data, "row"):
                number = int(row.get("r") or number + 1)
                row.set("r", str(number))
                column = 0
                for cell in row:
                    if not cell.get("r"):
                        cell.set("r", f"{letters(column + 1)}{number}")
                    from .address import cell_of

                    column = cell_of(cell.get("r"))[1]
                found[number] = row
            self._rows[part] = found
        return self._rows[part]

    def forget_rows(self, part: str) -> None:
        """After rows were renumbered."""
        self._rows.pop(part, None)

    def cell(self, part: str, row: int, column: int, *, is_new: bool = True) -> Any:
        """The element of one cell, made in its place when there is none and ``is_new``; else None."""
        from .address import cell_of

        rows = self.rows(part)
        line = rows.get(row)
        if line is None:
            if not is_new:
                return None
            line = self._insert(child(self.root(part), "sheetData"), "row", row, lambda one: int(one.get("r")))
            line.set("r", str(row))
            rows[row] = line
        reference = f"{letters(column)}{row}"
        for one in line:
            if one.get("r") == reference:
                return one
        if not is_new:
            return None
        found = self._insert(line, "c", column, lambda one: cell_of(one.get("r"))[1])
        found.set("r", reference)
        return found

    def _insert(self, parent: Any, word: str, position: int, key: Any) -> Any:
        from lxml import etree

        made = etree.Element(f"{parent.tag.rpartition('}')[0]}}}{word}")
        index = len(parent)
        while index and key(parent[index - 1]) > position:
            index -= 1
        parent.insert(index, made)
        return made

    def expand_shared(self, part: str) -> None:
        """Write shared formulas out, so that one of them can change alone."""
        from .address import cell_of

        shared: dict[str, tuple[int, int, str]] = {}
        for cell in child(self.root(part), "sheetData").iter():
            if local(cell) != "c":
                continue
            formula = child(cell, "f")
            if formula is None or formula.get("t") != "shared":
                continue
            row, column = cell_of(cell.get("r"))
            index = formula.get("si", "")
            if formula.text:
                shared[index] = (row, column, formula.text)
            elif index in shared:
                top, left, first = shared[index]
                formula.text = moved_formula(first, row - top, column - left)
            for key in ("t", "si", "ref"):
                formula.attrib.pop(key, None)
            self.touch(part)

    def write(self, cell: Any, value: Any, formula: str | None, place: str) -> None:
        """Store a value or a formula (without ``=``) in a cell element; its style stays."""
        from lxml import etree

        space = f"{cell.tag.rpartition('}')[0]}}}"
        for one in list(cell):
            cell.remove(one)
        cell.attrib.pop("t", None)
        cell.attrib.pop("cm", None)
        cell.attrib.pop("vm", None)
        if formula is not None:
            etree.SubElement(cell, f"{space}f").text = formula
        elif isinstance(value, bool):
            cell.set("t", "b")
            etree.SubElement(cell, f"{space}v").text = "1" if value else "0"
        elif isinstance(value, int | float):
            if value != value or value in (float("inf"), float("-inf")):
                raise BadEdit(self.name, f"{value!r} is no number that a cell can hold", place=place)
            etree.SubElement(cell, f"{space}v").text = number_text(float(value))
        elif isinstance(value, str):
            if len(value) > 32_767:
                raise BadEdit(self.name, f"{len(value)} characters, a cell holds 32767", place=place)
            cell.set("t", "inlineStr")
            text = etree.SubElement(etree.SubElement(cell, f"{space}is"), f"{space}t")
            try:
                text.text = value
            except ValueError as error:
                raise BadEdit(self.name, f"text that XML cannot hold: {error}", place=place) from error
            if value != value.strip() or "\n" in value:
                text.set("{http://www.w3.org/XML/1998/namespace}space", "preserve")
        elif value is not None:
            raise BadEdit(
                self.name,
                f"{value!r:.80} is no value of a cell",
                place=place,
                remedy="number, text, true, false or null",
            )

    def widen_dimension(self, part: str) -> None:
        """Make the sheet's stated extent true."""
        from .address import cell_of

        dimension = child(self.root(part), "dimension")
        if dimension is None:
            return
        places = [cell_of(one.get("r")) for row in self.rows(part).values() for one in row]
        if places:
            top, bottom = min(r for r, _ in places), max(r for r, _ in places)
            left, right = min(c for _, c in places), max(c for _, c in places)
            dimension.set("ref", Area("", top, left, bottom, right).local())

    def address_of(self, area: Area, row: int, column: int) -> str:
        """The address of a cell of an area's sheet."""
        return cell_address(area.sheet, row, column)
