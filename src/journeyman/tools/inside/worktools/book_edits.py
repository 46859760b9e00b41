"""Operations on a workbook: by officedocs where it has the op, else by openpyxl with a word about what that drops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any

from .book_features import FEATURES, describe
from .book_views import corners, grid_of, letters, sheets_of
from .workspace import Refused, Workspace

FONT_KEYS = {
    "font_name": "font",
    "font_size": "size",
    "font_bold": "bold",
    "font_italic": "italic",
    "font_underline": "underline",
    "font_color": "color",
    "fill_color": "fill",
    "horizontal_alignment": "align",
    "vertical_alignment": "valign",
    "wrap_text": "wrap",
}
"""Field of ``format_cells`` -> style key of officedocs."""


@dataclass
class Edited:
    """A workbook after its operations.

    Attributes:
        data: the whole file.
        reports: one for each operation, with the state that was read back.
        warnings: what else must be known.
    """

    data: bytes
    reports: list[dict[str, Any]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def apply_operations(
    data: bytes, name: str, document: Any, operations: Sequence[dict[str, Any]], workspace: Workspace
) -> Edited:
    """All operations in order, or an error that names the first that cannot be done and leaves the file as it was."""
    from officedocs import edit, open_document

    done = Edited(data)
    for at, operation in enumerate(operations):
        kind = operation["type"]
        try:
            operation = _with_sheet(operation, document)
            if kind in FEATURES:
                done.data = _by_openpyxl(done, name, operation, workspace)
            else:
                edited = edit(done.data, name, _changes(operation, document))
                done.data = edited.data
                done.warnings += edited.warnings
                done.reports += [{"operation": kind, **one.as_json()} for one in edited.changed]
                if operation.get("border_color") or operation.get("fill_pattern"):
                    done.data = _by_openpyxl(done, name, {**operation, "type": "look"}, workspace)
        except Refused as error:
            raise Refused(f"operation {at} ({kind}): {error}; nothing was saved") from error
        if at + 1 < len(operations):
            document = open_document(done.data, name)
    done.warnings = list(dict.fromkeys(done.warnings))
    return done


def _with_sheet(operation: dict[str, Any], document: Any) -> dict[str, Any]:
    names = [tab.attributes["name"] for tab in sheets_of(document)]
    sheet = operation.get("sheet")
    if sheet is None:
        return {**operation, "sheet": names[0]} if operation["type"] != "delete_named_range" else operation
    if operation["type"] != "add_tab" and sheet not in names:
        same = [one for one in names if one.lower() == str(sheet).lower()]
        hint = f"did you mean {same[0]}?" if same else f"there are {', '.join(names)}"
        raise Refused(f"no tab {sheet!r}; {hint}")
    return operation


def address(sheet: str, place: str) -> str:
    """An officedocs address."""
    word = sheet if sheet.isidentifier() and sheet.isascii() else "'{}'".format(sheet.replace("'", "''"))
    return f"{word}!{place}"


def _changes(operation: dict[str, Any], document: Any) -> list[dict[str, Any]]:
    """An operation as officedocs' changes. Raises Refused."""
    kind, sheet = operation["type"], str(operation.get("sheet", ""))
    place = str(operation.get("range") or operation.get("cell") or "").replace("$", "").upper()
    if place:
        corners(place)
    if kind == "set_cell":
        value = operation["value"]
        key = "formula" if isinstance(value, str) and value.startswith("=") and len(value) > 1 else "value"
        return [{"op": "set", "address": address(sheet, place), key: value}]
    if kind == "append_rows":
        return [_appended(operation, document)]
    if kind == "rename_sheet":
        return [{"op": "rename_sheet", "address": f"sheet:{sheet}", "name": operation["new_name"]}]
    if kind in ("merge_cells", "unmerge_cells"):
        return [{"op": kind.partition("_")[0], "address": address(sheet, place)}]
    if kind == "format_cells":
        return [{"op": "format", "address": address(sheet, place), "style": _style(operation)}]
    if kind == "set_number_format":
        return [{"op": "format", "address": address(sheet, place), "number_format": operation["format"]}]
    if kind == "add_named_range":
        top, left, bottom, right = corners(place)
        target = f"${letters(left)}${top}:${letters(right)}${bottom}"
        return [{"op": "define_name", "address": f"name:{operation['name']}", "formula": f"={address(sheet, target)}"}]
    if kind == "delete_named_range":
        return [{"op": "delete_name", "address": f"name:{operation['name']}"}]
    if kind == "add_tab":
        return [{"op": "add_sheet", "address": f"sheet:{sheet}"}]
    if kind == "delete_tab":
        return [{"op": "delete_sheet", "address": f"sheet:{sheet}"}]
    raise Refused(f"no operation {kind!r}")


def _appended(operation: dict[str, Any], document: Any) -> dict[str, Any]:
    rows = [list(row) for row in operation["rows"]]
    width = max((len(row) for row in rows), default=0)
    if not width:
        raise Refused("append_rows needs at least one cell")
    tab = next((one for one in sheets_of(document) if one.attributes["name"] == operation["sheet"]), None)
    grid = grid_of(tab) if tab is not None else None
    first = 1 if grid is None or not grid.rows else grid.first_row + len(grid.rows)
    left = 1 if grid is None or not grid.rows else grid.first_column
    place = f"{letters(left)}{first}:{letters(left + width - 1)}{first + len(rows) - 1}"
    values = [[*row, *[None] * (width - len(row))] for row in rows]
    return {"op": "set", "address": address(operation["sheet"], place), "values": values}


def _style(operation: dict[str, Any]) -> dict[str, Any]:
    style = {ours: operation[key] for key, ours in FONT_KEYS.items() if operation.get(key) is not None}
    for key in ("color", "fill"):
        if key in style:
            style[key] = str(style[key]).lstrip("#").upper()
    if operation.get("border_style"):
        for side in operation.get("border_sides") or ("left", "right", "top", "bottom"):
            if side not in ("left", "right", "top", "bottom"):
                raise Refused(f"no border side {side!r}; sides are left, right, top, bottom")
            style[f"border_{side}"] = operation["border_style"]
    if not style:
        raise Refused("format_cells needs at least one of font_*, fill_color, *_alignment, wrap_text, border_style")
    return style


def _by_openpyxl(done: Edited, name: str, operation: dict[str, Any], workspace: Workspace) -> bytes:
    """One operation through openpyxl, formulas computed afterwards, with a warning for the parts it does not keep."""
    from openpyxl import load_workbook

    book = load_workbook(BytesIO(done.data), keep_vba=name.lower().endswith("m"), rich_text=True)
    try:
        FEATURES[operation["type"]](book, book[str(operation["sheet"])], operation, workspace)
    except (ValueError, TypeError, KeyError) as error:
        raise Refused(f"{error}") from error
    buffer = BytesIO()
    book.save(buffer)
    lost = _lost(done.data, buffer.getvalue())
    if lost:
        done.warnings.append(f"{operation['type']} rewrote the workbook and did not keep {', '.join(lost)}")
    data, warnings = recalculated(buffer.getvalue(), name)
    done.warnings += warnings
    saved = load_workbook(BytesIO(data))
    state = describe(saved[str(operation["sheet"])], operation)
    done.reports.append({"operation": operation["type"], "sheet": operation["sheet"], "after": state})
    return data


def _lost(before: bytes, after: bytes) -> list[str]:
    """Kinds of parts of a package that were there and are not."""
    from collections import Counter
    from zipfile import ZipFile

    kinds = []
    for data in (before, after):
        names = ZipFile(BytesIO(data)).namelist()
        kinds.append(Counter(one.split("/")[1] for one in names if one.startswith("xl/") and one.count("/") > 1))
    return [kind for kind, count in sorted(kinds[0].items()) if kinds[1][kind] < count and not kind.startswith("_")]


def new_workbook(sheets: Sequence[dict[str, Any]]) -> bytes:
    """A workbook of named tabs with rows; texts that begin with = are formulas. Raises Refused."""
    from openpyxl import Workbook
    from openpyxl.utils.exceptions import IllegalCharacterError

    book = Workbook()
    for tab in book.worksheets:
        book.remove(tab)
    seen: set[str] = set()
    for sheet in sheets:
        name = str(sheet["name"])
        if not name or len(name) > 31 or any(one in name for one in "[]:*?/\\") or name.lower() in seen:
            raise Refused(f"{name!r} cannot name a tab: 1 to 31 characters, none of []:*?/\\, no name twice")
        seen.add(name.lower())
        tab = book.create_sheet(name)
        try:
            for row in [*([sheet["headers"]] if sheet.get("headers") else []), *sheet["rows"]]:
                tab.append(list(row))
        except (IllegalCharacterError, ValueError) as error:
            raise Refused(f"tab {name!r}: a text holds characters that a workbook cannot: {error!r:.120}") from error
    buffer = BytesIO()
    book.save(buffer)
    return buffer.getvalue()


def recalculated(data: bytes, name: str) -> tuple[bytes, list[str]]:
    """The workbook with the values of all its formulas, and what is wrong with some of them."""
    from officedocs.xlsx.recalculation import recalculate

    try:
        result = recalculate(data, name, on_unknown="keep", check=None)
    except Exception as error:  # the file is saved all the same; its formulas have no values then
        return data, [f"formulas were not computed: {error}"]
    unknown = list(result.unknown)
    return result.data, [f"{len(unknown)} formulas no engine knows, first {unknown[0]}"] if unknown else []
