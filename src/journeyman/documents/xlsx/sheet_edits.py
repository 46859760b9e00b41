"""Sheets added, renamed, moved, deleted; names defined and deleted."""

from __future__ import annotations

import re
from typing import Any

from ..editing import Change
from ..errors import BadEdit, NoSuchAddress
from .address import quoted
from .formula import Place, renamed_sheet, rewritten
from .package import child, children, local
from .row_edits import FORMULAS
from .workbench import Workbench

Named = tuple[str, str]

HEAD = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
WORKSHEET = "application/vnd.openxmlformats-officedocument.spreadsheetml.worksheet+xml"
RELATION = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_FORBIDDEN = re.compile(r"[\[\]:*?/\\]|^'|'$|^$|.{32}")
_NAME = re.compile(r"[^\W\d][\w.\\?]{0,254}|\\[\w.\\?]*")


def _free(bench: Workbench, name: str, place: str) -> str:
    """A sheet name that may be used. Raises BadEdit."""
    if _FORBIDDEN.search(name):
        remedy = "1 to 31 characters without [ ] : * ? / \\, no ' at the ends"
        raise BadEdit(bench.name, f"{name!r} is no name for a sheet", place=place, remedy=remedy)
    if any(known.lower() == name.lower() for known, _ in bench.sheets()):
        raise BadEdit(bench.name, f"there is a sheet {name!r} already", place=place)
    return name


def _position(bench: Workbench, change: Change, default: int, last: int) -> int:
    position = change.values.get("position", default)
    if not isinstance(position, int) or isinstance(position, bool) or not 1 <= position <= last:
        raise BadEdit(bench.name, f"position {position!r}", place=change.address, remedy=f"1 to {last}")
    return position


def add_sheet(bench: Workbench, change: Change) -> list[Named]:
    """``add_sheet`` ``sheet:New`` at ``position``, by default last."""
    from lxml import etree

    name = _free(bench, change.address.removeprefix("sheet:"), change.address)
    root = bench.root(bench.main)
    sheets = child(root, "sheets")
    rows = bench.sheet_rows()
    position = _position(bench, change, len(rows) + 1, len(rows) + 1)
    number = next(n for n in range(1, len(rows) + 1000) if f"xl/worksheets/sheet{n}.xml" not in bench.package)
    part = f"xl/worksheets/sheet{number}.xml"
    space = root.tag.rpartition("}")[0].lstrip("{")
    bench.package.replace(part, f'{HEAD}<worksheet xmlns="{space}"><sheetData/></worksheet>'.encode())
    bench.package.declare(part, WORKSHEET)
    relation = bench.package.relate(bench.main, f"{RELATION}/worksheet", part)
    made = etree.Element(f"{{{space}}}sheet", name=name, sheetId=str(max(int(r.get("sheetId") or 0) for r in rows) + 1))
    made.set(f"{{{RELATION}}}id", relation)
    sheets.insert(position - 1, made)
    _renumber(bench, [*range(position - 1), None, *range(position - 1, len(rows))])
    bench.touch(bench.main)
    return [(f"sheet:{name}", "")]


def _renumber(bench: Workbench, order: list[int | None]) -> None:
    """Names and views count sheets: ``order`` gives the old position of each new one."""
    new = {old: position for position, old in enumerate(order) if old is not None}
    root = bench.root(bench.main)
    holder = child(root, "definedNames")
    for one in children(holder, "definedName"):
        if one.get("localSheetId"):
            position = new.get(int(one.get("localSheetId")))
            if position is None:
                holder.remove(one)
            else:
                one.set("localSheetId", str(position))
    if holder is not None and len(holder) == 0:
        root.remove(holder)
    for view in children(child(root, "bookViews"), "workbookView"):
        for key in ("activeTab", "firstSheet"):
            if view.get(key):
                view.set(key, str(new.get(int(view.get(key)), 0)))


def _everywhere(bench: Workbench, change_text: Any) -> None:
    """Apply a function to every formula of cells, rules, names and charts."""
    for _, part in bench.sheets():
        if part in bench.package:
            _in_part(bench, part, FORMULAS, change_text)
    _in_part(bench, bench.main, ("definedName",), change_text)
    for part in list(bench.package):
        if (
            part.endswith(".xml")
            and ("/charts/" in part or "/pivotCache/pivotCacheDefinition" in part)
            and "/_rels/" not in part
        ):
            _in_part(bench, part, ("f",), change_text)


def _in_part(bench: Workbench, part: str, words: tuple[str, ...], change_text: Any) -> None:
    for one in bench.root(part).iter():
        if local(one) in words and one.text:
            text = change_text(one.text)
            if text != one.text:
                one.text = text
                bench.touch(part)


def rename_sheet(bench: Workbench, change: Change) -> list[Named]:
    """``rename_sheet`` ``sheet:Old`` with ``name``; every reference follows."""
    old, _ = bench.sheet(change.address.removeprefix("sheet:"), change.address)
    new = change.text("name", bench.name)
    if new.lower() != old.lower():
        _free(bench, new, change.address)
    next(row for row in bench.sheet_rows() if row.get("name") == old).set("name", new)
    bench.touch(bench.main)
    _everywhere(bench, lambda text: renamed_sheet(text, old, new))
    for part in list(bench.package):
        if "/pivotCache/pivotCacheDefinition" in part and "/_rels/" not in part:
            for one in bench.root(part).iter():
                if local(one) == "worksheetSource" and one.get("sheet") == old:
                    one.set("sheet", new)
                    bench.touch(part)
    for _, part in bench.sheets():
        for one in bench.root(part).iter():
            if local(one) == "hyperlink" and one.get("location"):
                where = renamed_sheet(one.get("location"), old, new)
                if where != one.get("location"):
                    one.set("location", where)
                    bench.touch(part)
    return [(f"sheet:{new}", f"sheet:{old}")]


def move_sheet(bench: Workbench, change: Change) -> list[Named]:
    """``move_sheet`` ``sheet:Data`` to ``position``."""
    name, _ = bench.sheet(change.address.removeprefix("sheet:"), change.address)
    rows = bench.sheet_rows()
    position = _position(bench, change, 0, len(rows))
    old = next(n for n, row in enumerate(rows) if row.get("name") == name)
    order: list[int | None] = [n for n in range(len(rows)) if n != old]
    order.insert(position - 1, old)
    sheets = child(bench.root(bench.main), "sheets")
    sheets.remove(rows[old])
    sheets.insert(position - 1, rows[old])
    _renumber(bench, order)
    bench.touch(bench.main)
    return [(f"sheet:{name}", f"sheet:{name}")]


def delete_sheet(bench: Workbench, change: Change) -> list[Named]:
    """``delete_sheet`` ``sheet:Data``; what reads it becomes ``#REF!``."""
    name, part = bench.sheet(change.address.removeprefix("sheet:"), change.address)
    rows = bench.sheet_rows()
    visible = [row for row in rows if row.get("name") != name and row.get("state", "visible") == "visible"]
    if not visible:
        raise BadEdit(bench.name, "the only visible sheet cannot be deleted", place=change.address)
    old = next(n for n, row in enumerate(rows) if row.get("name") == name)
    child(bench.root(bench.main), "sheets").remove(rows[old])
    order: list[int | None] = [n for n in range(len(rows)) if n != old]
    _renumber(bench, order)

    def lost(place: Place) -> Place | None:
        return None if place.sheet.lower() == name.lower() else place

    _everywhere(bench, lambda text: rewritten(text, lost))
    _drop_part(bench, part)
    bench.touch(bench.main)
    return [("", f"sheet:{name}")]


def _drop_part(bench: Workbench, part: str) -> None:
    from ..container import relationships_part

    path = relationships_part(bench.main)
    links = bench.package.xml(path)
    ids = {one.id for one in bench.package.relations(bench.main) if one.target == part}
    for one in list(links):
        if one.get("Id") in ids:
            links.remove(one)
    bench.package.replace_xml(path, links)
    bench.package.remove(part)
    bench.package.remove(relationships_part(part))


def define_name(bench: Workbench, change: Change) -> list[Named]:
    """``define_name`` ``name:X`` or ``name:Sheet!X`` with ``formula``; an existing one is changed."""
    from lxml import etree

    scope, name = _scope(bench, change)
    formula = change.text("formula", bench.name)
    if not _NAME.fullmatch(name) or re.fullmatch(r"[A-Za-z]{1,3}\d+|[RrCc]", name):
        raise BadEdit(bench.name, f"{name!r} cannot be a name", place=change.address)
    if not formula.startswith("=") or len(formula) < 2:
        raise BadEdit(bench.name, f"{formula!r:.80} is no formula", place=change.address, remedy='write "=Data!$A$1"')
    root = bench.root(bench.main)
    holder = child(root, "definedNames")
    if holder is None:
        holder = etree.Element(f"{root.tag.rpartition('}')[0]}}}definedNames")
        before = [n for n, one in enumerate(root) if local(one) in ("sheets", "functionGroups", "externalReferences")]
        root.insert(max(before) + 1, holder)
    found = _find(holder, name, scope)
    where = change.address if scope is None else f"name:{quoted(bench.sheets()[scope][0])}!{name}"
    if found is None:
        found = etree.SubElement(holder, f"{root.tag.rpartition('}')[0]}}}definedName", name=name)
        if scope is not None:
            found.set("localSheetId", str(scope))
        holder[:] = sorted(holder, key=lambda one: one.get("name", "").lower())
    found.text = formula[1:]
    bench.touch(bench.main)
    return [(where, where)]


def _scope(bench: Workbench, change: Change) -> tuple[int | None, str]:
    from .address import unquoted

    sheet, mark, name = change.address.removeprefix("name:").rpartition("!")
    if not mark:
        return None, name
    known, _ = bench.sheet(unquoted(sheet), change.address)
    return [one for one, _ in bench.sheets()].index(known), name


def _find(holder: Any, name: str, scope: int | None) -> Any:
    wanted = None if scope is None else str(scope)
    for one in children(holder, "definedName"):
        if one.get("name", "").lower() == name.lower() and one.get("localSheetId") == wanted:
            return one
    return None


def delete_name(bench: Workbench, change: Change) -> list[Named]:
    """``delete_name`` ``name:X``."""
    scope, name = _scope(bench, change)
    root = bench.root(bench.main)
    holder = child(root, "definedNames")
    found = _find(holder, name, scope)
    if found is None:
        known = ", ".join(one.get("name", "") for one in children(holder, "definedName")) or "none"
        raise NoSuchAddress(bench.name, f"no name {name!r}", place=change.address, remedy=f"names: {known}")
    holder.remove(found)
    if len(holder) == 0:
        root.remove(holder)
    bench.touch(bench.main)
    return [("", change.address)]
