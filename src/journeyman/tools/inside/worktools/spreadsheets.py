"""spreadsheets: workbooks read by address, edited part by part, their formulas computed after each change."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from .book_edits import apply_operations
from .book_views import Grid, grid_of, letters, passes, sheets_of, shown_grid
from .workspace import Refused, Workspace

READABLE = ("xlsx", "xlsm", "xltx", "xltm", "xls", "xlsb")


def _open(workspace: Workspace, file_path: str) -> tuple[bytes, str, Any]:
    """Bytes, name and tree of a workbook. Raises Refused for other files, an officedocs error for damaged ones."""
    from officedocs import open_document

    data, name = workspace.read(file_path)
    suffix = name.rpartition(".")[2].lower()
    if suffix in ("csv", "tsv"):
        raise Refused(f"{file_path} is a text file; use spreadsheets_read_csv")
    if suffix not in READABLE:
        raise Refused(f"{file_path} is no workbook; readable are {', '.join(READABLE)}")
    return data, name, open_document(data, name)


def _tab(document: Any, tab_index: int, file_path: str) -> Any:
    tabs = sheets_of(document)
    if not 0 <= tab_index < len(tabs):
        names = ", ".join(f"{at}: {tab.attributes['name']}" for at, tab in enumerate(tabs))
        raise Refused(f"{file_path} has no tab {tab_index}; there are {names}")
    return tabs[tab_index]


def create_spreadsheet(workspace: Workspace, directory: str, file_name: str, sheets: Sequence[dict[str, Any]]) -> str:
    """A new workbook with computed formulas; the answer shows each tab as it was saved."""
    from .book_edits import new_workbook, recalculated

    path = workspace.new_file(directory, file_name, ".xlsx")
    data, warnings = recalculated(new_workbook(sheets), path.name)
    workspace.write(path, data)
    return _readback(workspace, workspace.shown(path), warnings)


def _readback(workspace: Workspace, file_path: str, warnings: Sequence[str] = (), only: str = "") -> str:
    """What a saved workbook holds, the first rows of each tab."""
    _, _, document = _open(workspace, file_path)
    parts = [json.dumps({"file": file_path, "tabs": [tab.attributes["name"] for tab in sheets_of(document)]})]
    for tab in sheets_of(document):
        if not only or tab.attributes["name"] == only:
            parts.append(shown_grid(grid_of(tab), tab.attributes["name"], formulas=True, max_rows=30, max_cols=30))
    return "\n".join([*parts, *(f"warning: {one}" for one in warnings)])


def delete_spreadsheet(workspace: Workspace, file_path: str) -> dict[str, Any]:
    """Remove the file."""
    path = workspace.file(file_path)
    if path.suffix.lower().lstrip(".") not in (*READABLE, "csv", "tsv"):
        raise Refused(f"{file_path} is no workbook or csv file; it was left")
    workspace.remove(path)
    return {"deleted": workspace.shown(path), "exists": path.exists()}


def read_tab(
    workspace: Workspace,
    file_path: str,
    tab_index: int = 0,
    cell_range: str | None = None,
    include_formulas: bool = False,
    max_rows: int = 200,
    max_cols: int = 50,
    compact: bool = False,
) -> str:
    """Cells of a range or of the used part, with row numbers and column letters."""
    _, _, document = _open(workspace, file_path)
    tab = _tab(document, tab_index, file_path)
    text = shown_grid(
        grid_of(tab, cell_range),
        tab.attributes["name"],
        formulas=include_formulas,
        max_rows=max_rows,
        max_cols=max_cols,
        compact=compact,
    )
    floating = [one for one in tab.children if one.kind in ("chart", "image", "shape", "comment")]
    notes = [json.dumps({one.kind: one.address, "text": one.text, **one.attributes}, default=str) for one in floating]
    warnings = [f"warning: {one}" for one in document.warnings[:10]]
    return "\n".join([text, *notes[:40], *warnings])


def read_csv(
    workspace: Workspace,
    file_path: str,
    delimiter: str | None = None,
    encoding: str | None = None,
    has_header: bool = True,
    row_limit: int = 200,
    compact: bool = False,
) -> str:
    """Rows of a delimited file; encoding and delimiter are found out unless given."""
    import csv
    from io import StringIO

    from officedocs import open_document

    data, name = workspace.read(file_path)
    if not name.lower().endswith((".csv", ".tsv", ".txt")):
        raise Refused(f"{file_path} is no csv or tsv file; workbooks are read by spreadsheets_read_tab")
    if delimiter is None and encoding is None:
        document = open_document(data, name if name.lower().endswith((".csv", ".tsv")) else f"{name}.csv")
        rows: list[list[Any]] = [[cell.text for cell in row.children] for row in document.nodes]
    else:
        try:
            text = data.decode(encoding or "utf-8-sig")
        except (LookupError, UnicodeDecodeError) as error:
            raise Refused(f"{file_path} is not {encoding or 'utf-8'}: {error}; try cp1252 or latin-1") from error
        if delimiter is not None and len(delimiter.replace("\\t", "\t")) != 1:
            raise Refused(f"the delimiter must be one character, got {delimiter!r}")
        reader = csv.reader(StringIO(text), delimiter=(delimiter or ",").replace("\\t", "\t"))
        rows = list(reader)
    header, body = (rows[0], rows[1:]) if has_header and rows else ([], rows)
    facts = {"file": name, "header": header, "rows": len(body), "shown": min(row_limit, len(body))}
    first = 2 if header else 1
    lines = [
        "\t".join(map(str, row)) if compact else f"{first + at}: {json.dumps(row, ensure_ascii=False)}"
        for at, row in enumerate(body[:row_limit])
    ]
    more = [f"[{len(body) - row_limit} more rows; raise row_limit]"] if len(body) > row_limit else []
    return "\n".join([json.dumps(facts, ensure_ascii=False), *lines, *more])


def list_tabs_in_spreadsheet(workspace: Workspace, file_path: str) -> dict[str, Any]:
    """Name, position, used range and visibility of each tab; names and warnings of the workbook."""
    _, _, document = _open(workspace, file_path)
    names = [{"name": one.address, **one.attributes} for one in document.nodes if one.kind != "sheet"]
    tabs = [{"tab_index": at, **tab.attributes} for at, tab in enumerate(sheets_of(document))]
    return {"tabs": tabs, "names": names, "warnings": list(document.warnings)}


def add_tab(workspace: Workspace, file_path: str, tab_name: str, sheet_data: dict[str, Any] | None = None) -> str:
    """A new last tab with rows."""
    rows = [list(sheet_data["headers"])] if sheet_data and sheet_data.get("headers") else []
    rows += [list(row) for row in (sheet_data or {}).get("rows") or []]
    operations: list[dict[str, Any]] = [{"type": "add_tab", "sheet": tab_name}]
    if rows:
        operations.append({"type": "append_rows", "sheet": tab_name, "rows": rows})
    return _edited(workspace, file_path, operations, only=tab_name)


def delete_tab(workspace: Workspace, file_path: str, tab_index: int) -> str:
    """Remove a tab; formulas that read it become errors, which the answer names."""
    _, _, document = _open(workspace, file_path)
    if len(sheets_of(document)) == 1:
        raise Refused("a workbook keeps at least one tab; spreadsheets_delete_spreadsheet removes the file")
    name = _tab(document, tab_index, file_path).attributes["name"]
    return _edited(workspace, file_path, [{"type": "delete_tab", "sheet": name}])


def _edited(
    workspace: Workspace, file_path: str, operations: Sequence[dict[str, Any]], only: str = "", shows: bool = True
) -> str:
    """Apply operations, save, answer with what changed and, if wanted, what the tabs hold."""
    data, name, document = _open(workspace, file_path)
    if name.rpartition(".")[2].lower() in ("xls", "xlsb"):
        raise Refused(f"{file_path} is of a legacy format that is read only; make an xlsx with create_spreadsheet")
    done = apply_operations(data, name, document, operations, workspace)
    workspace.write(workspace.file(file_path), done.data)
    lines = [json.dumps(report, ensure_ascii=False, default=str) for report in done.reports]
    text = "\n".join(["saved; read back:", *lines, *(f"warning: {one}" for one in done.warnings)])
    return f"{text}\n{_readback(workspace, file_path, only=only)}" if shows else text


def edit_spreadsheet(workspace: Workspace, file_path: str, operations: Sequence[dict[str, Any]]) -> str:
    """All operations or none; one line each with the state read back."""
    return _edited(workspace, file_path, operations, shows=False)


def _one_cell(workspace: Workspace, file_path: str, tab_index: int, cell: str, value: Any) -> str:
    _, _, document = _open(workspace, file_path)
    sheet = _tab(document, tab_index, file_path).attributes["name"]
    operation = {"type": "set_cell", "sheet": sheet, "cell": cell, "value": value}
    return _edited(workspace, file_path, [operation], shows=False)


def add_content_text(workspace: Workspace, file_path: str, tab_index: int, cell: str, value: Any) -> str:
    """Write one cell."""
    return _one_cell(workspace, file_path, tab_index, cell, value)


def delete_content_cell(workspace: Workspace, file_path: str, tab_index: int, cell: str) -> str:
    """Empty one cell."""
    return _one_cell(workspace, file_path, tab_index, cell, None)


def create_chart(
    workspace: Workspace,
    file_path: str,
    sheet: str,
    data_range: str,
    chart_type: str,
    title: str | None = None,
    position: str | None = None,
    categories_column: int | None = None,
    include_header: bool = True,
) -> str:
    """A chart beside its data; the answer is the chart as the saved file has it."""
    operation = {
        "type": "create_chart",
        "sheet": sheet,
        "range": data_range,
        "chart_type": chart_type,
        "title": title,
        "position": position,
        "categories_column": categories_column,
        "include_header": include_header,
    }
    return _edited(workspace, file_path, [operation], shows=False)


def filter_tab(
    workspace: Workspace,
    file_path: str,
    tab_index: int,
    filters: Sequence[dict[str, Any]],
    cell_range: str | None = None,
    match_all: bool = True,
    use_headers: bool = True,
    include_diagnostics: bool = False,
    compact: bool = False,
) -> str:
    """The rows that pass, with their numbers in the tab."""
    _, _, document = _open(workspace, file_path)
    tab = _tab(document, tab_index, file_path)
    grid = grid_of(tab, cell_range)
    header = [str(one if one is not None else "") for one in grid.rows[0]] if use_headers and grid.rows else []
    body = list(enumerate(grid.rows))[1 if header else 0 :]
    tests = [(_column(str(one["column"]), header, grid), one) for one in filters]
    verdicts = {at: [passes(row[column], one) for column, one in tests] for at, row in body}
    decide = all if match_all else any
    kept = [at for at, found in verdicts.items() if not found or decide(found)]
    facts: dict[str, Any] = {"tab": tab.attributes["name"], "rows": len(body), "match": len(kept), "header": header}
    if include_diagnostics:
        facts["passed_by_filter"] = [sum(found[n] for found in verdicts.values()) for n in range(len(tests))]
    lines = [
        "\t".join("" if one is None else str(one) for one in grid.rows[at])
        if compact
        else f"{grid.first_row + at}: {json.dumps(grid.rows[at], ensure_ascii=False)}"
        for at in kept
    ]
    return "\n".join([json.dumps(facts, ensure_ascii=False), *lines])


def _column(word: str, header: Sequence[str], grid: Grid) -> int:
    """Index in the grid of a column named by its header or its letter. Raises Refused with those there are."""
    folded = [one.strip().lower() for one in header]
    if word.strip().lower() in folded:
        return folded.index(word.strip().lower())
    names = [letters(grid.first_column + at) for at in range(grid.num_columns)]
    if word.upper() in names:
        return names.index(word.upper())
    known = ", ".join(one for one in header if one) or ", ".join(names[:1] + names[-1:])
    raise Refused(f"no column {word!r}; there are {known}")


TOOLS: dict[str, Callable[..., Any]] = {
    "create_spreadsheet": create_spreadsheet,
    "delete_spreadsheet": delete_spreadsheet,
    "read_tab": read_tab,
    "read_csv": read_csv,
    "list_tabs_in_spreadsheet": list_tabs_in_spreadsheet,
    "add_tab": add_tab,
    "delete_tab": delete_tab,
    "edit_spreadsheet": edit_spreadsheet,
    "add_content_text": add_content_text,
    "delete_content_cell": delete_content_cell,
    "create_chart": create_chart,
    "filter_tab": filter_tab,
}
