"""What openpyxl does to a sheet: sizes, panes, validation, conditional formats, filters, images, charts."""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO
from typing import Any

from .book_views import corners, letters
from .workspace import Refused, Workspace


def _column_width(book: Any, sheet: Any, operation: dict[str, Any], workspace: Workspace) -> None:
    sheet.column_dimensions[str(operation["column"]).upper()].width = operation["width"]


def _row_height(book: Any, sheet: Any, operation: dict[str, Any], workspace: Workspace) -> None:
    sheet.row_dimensions[int(operation["row"])].height = operation["height"]


def _freeze(book: Any, sheet: Any, operation: dict[str, Any], workspace: Workspace) -> None:
    sheet.freeze_panes = operation.get("cell")


def _auto_filter(book: Any, sheet: Any, operation: dict[str, Any], workspace: Workspace) -> None:
    sheet.auto_filter.ref = operation.get("range") or sheet.dimensions


def _validation(book: Any, sheet: Any, operation: dict[str, Any], workspace: Workspace) -> None:
    from openpyxl.worksheet.datavalidation import DataValidation

    formula = operation.get("formula1")
    if formula is None:
        raise Refused("add_data_validation needs formula1")
    if operation["validation_type"] == "list" and "," in formula and not formula.startswith(('"', "=")):
        formula = f'"{formula}"'
    rule = DataValidation(
        type=operation["validation_type"],
        operator=operation.get("operator"),
        formula1=formula.removeprefix("="),
        formula2=operation.get("formula2"),
        allow_blank=operation.get("allow_blank", True),
        showErrorMessage=operation.get("show_error_message", True),
        errorTitle=operation.get("error_title"),
        error=operation.get("error_message"),
        showInputMessage=operation.get("show_input_message", False),
        promptTitle=operation.get("input_title"),
        prompt=operation.get("input_message"),
    )
    corners(operation["range"])
    rule.add(operation["range"])
    sheet.add_data_validation(rule)


def _conditional(book: Any, sheet: Any, operation: dict[str, Any], workspace: Workspace) -> None:
    from importlib import import_module

    from openpyxl.styles import Font, PatternFill
    from openpyxl.styles.differential import DifferentialStyle

    rules: Any = import_module("openpyxl.formatting.rule")  # without types
    corners(operation["range"])
    kind, formula = operation["rule_type"], str(operation.get("formula") or "").removeprefix("=")
    colors = [_color(one) for one in operation.get("color_scale_colors") or ()]
    font = Font(
        bold=operation.get("font_bold"), italic=operation.get("font_italic"), color=_color(operation.get("font_color"))
    )
    shade = _color(operation.get("fill_color"))
    fill = PatternFill("solid", bgColor=shade, fgColor=shade) if shade else None
    look = {"font": font, "fill": fill}
    if kind == "cellIs":
        bounds = [formula, *([str(operation["formula2"])] if operation.get("formula2") else [])]
        rule = rules.CellIsRule(operator=operation.get("operator") or "equal", formula=bounds, **look)
    elif kind == "formula":
        rule = rules.FormulaRule(formula=[formula], **look)
    elif kind == "colorScale":
        if len(colors) not in (2, 3):
            raise Refused("colorScale needs two or three color_scale_colors")
        middle = {"mid_type": "percentile", "mid_value": 50, "mid_color": colors[1]} if len(colors) == 3 else {}
        rule = rules.ColorScaleRule("min", None, colors[0], end_type="max", end_color=colors[-1], **middle)
    elif kind == "dataBar":
        rule = rules.DataBarRule("min", None, "max", None, color=_color(operation.get("data_bar_color")) or "638EC6")
    else:
        style = DifferentialStyle(font=font, fill=fill)
        top = f"{letters(corners(operation['range'])[1])}{corners(operation['range'])[0]}"
        more: dict[str, Any] = {
            "top10": {"rank": operation.get("rank") or 10, "percent": operation.get("percent")},
            "containsText": {
                "operator": "containsText",
                "text": operation.get("text"),
                "formula": [f'NOT(ISERROR(SEARCH("{operation.get("text") or ""}",{top})))'],
            },
            "duplicateValues": {},
        }[kind]
        rule = rules.Rule(type=kind, dxf=style, **more)
    sheet.conditional_formatting.add(operation["range"], rule)


def _color(word: Any) -> str | None:
    text = str(word or "").lstrip("#").upper()
    if not text:
        return None
    if len(text) != 6 or any(one not in "0123456789ABCDEF" for one in text):
        raise Refused(f"{word!r} is no colour; write RRGGBB")
    return text


def _image(book: Any, sheet: Any, operation: dict[str, Any], workspace: Workspace) -> None:
    from openpyxl.drawing.image import Image

    data, name = workspace.read(operation["image_path"])
    workspace.keep_image(data, name)
    image = Image(BytesIO(data))
    image.width = operation.get("width") or image.width
    image.height = operation.get("height") or image.height
    sheet.add_image(image, operation["cell"])


def _chart(book: Any, sheet: Any, operation: dict[str, Any], workspace: Workspace) -> None:
    from openpyxl.chart import BarChart, LineChart, PieChart, Reference

    top, left, bottom, right = corners(operation["range"])
    categories = operation.get("categories_column")
    if categories is None:
        categories = 0 if right > left else None
    if categories is not None and not 0 <= categories <= right - left:
        raise Refused(f"categories_column {categories} lies outside {operation['range']}")
    chart = {"bar": BarChart, "line": LineChart, "pie": PieChart}[operation["chart_type"]]()
    has_header = bool(operation.get("include_header", True))
    first = top + 1 if has_header else top
    if first > bottom:
        raise Refused(f"{operation['range']} has no row of data below its header")
    for column in range(left, right + 1):
        if categories is None or column != left + categories:
            chart.add_data(Reference(sheet, min_col=column, min_row=top, max_row=bottom), titles_from_data=has_header)
    if categories is not None:
        chart.set_categories(Reference(sheet, min_col=left + categories, min_row=first, max_row=bottom))
    chart.title = operation.get("title")
    sheet.add_chart(chart, operation.get("position") or f"{letters(right + 2)}{top}")


def _look(book: Any, sheet: Any, operation: dict[str, Any], workspace: Workspace) -> None:
    """The parts of ``format_cells`` that officedocs has no word for: colours of borders, patterns of fills."""
    from copy import copy

    from openpyxl.styles import PatternFill, Side

    color, pattern = _color(operation.get("border_color")), operation.get("fill_pattern")
    sides = operation.get("border_sides") or ("left", "right", "top", "bottom")
    for row in sheet[operation["range"]] if ":" in operation["range"] else ((sheet[operation["range"]],),):
        for cell in row:
            if color:
                border = copy(cell.border)
                for side in sides:
                    setattr(border, side, Side(style=operation.get("border_style") or "thin", color=color))
                cell.border = border
            if pattern:
                cell.fill = PatternFill(pattern, fgColor=_color(operation.get("fill_color")) or cell.fill.fgColor)


FEATURES: dict[str, Callable[[Any, Any, dict[str, Any], Workspace], None]] = {
    "set_column_width": _column_width,
    "set_row_height": _row_height,
    "freeze_panes": _freeze,
    "set_auto_filter": _auto_filter,
    "add_data_validation": _validation,
    "add_conditional_formatting": _conditional,
    "add_image": _image,
    "create_chart": _chart,
    "look": _look,
}
"""Type of an operation -> what does it."""


def describe(sheet: Any, operation: dict[str, Any]) -> Any:
    """What the reopened sheet holds of the thing that an operation changed."""
    kind = operation["type"]
    if kind == "set_column_width":
        return {"width": sheet.column_dimensions[str(operation["column"]).upper()].width}
    if kind == "set_row_height":
        return {"height": sheet.row_dimensions[int(operation["row"])].height}
    if kind == "freeze_panes":
        return {"freeze_panes": sheet.freeze_panes}
    if kind == "set_auto_filter":
        return {"auto_filter": sheet.auto_filter.ref}
    if kind == "add_data_validation":
        rules = [
            {"range": str(one.sqref), "type": one.type, "formula1": one.formula1, "formula2": one.formula2}
            for one in sheet.data_validations.dataValidation
        ]
        return {"data_validations": rules}
    if kind == "add_conditional_formatting":
        return {
            "conditional_formats": [
                {"range": str(one.sqref), "rules": [rule.type for rule in one.rules]}
                for one in sheet.conditional_formatting
            ]
        }
    if kind == "add_image":
        return {"images": [_anchor(one) for one in sheet._images]}
    if kind == "look":
        first = operation["range"].partition(":")[0]
        cell = sheet[first]
        facts = {side: getattr(cell.border, side) for side in ("left", "right", "top", "bottom")}
        lines = {
            side: {"style": one.style, "color": one.color.rgb if one.color else None} for side, one in facts.items()
        }
        return {"cell": first, "border": lines, "fill_pattern": cell.fill.fill_type}
    charts = [{"kind": type(one).__name__, "at": _anchor(one), "series": len(one.series)} for one in sheet._charts]
    return {"charts": charts}


def _anchor(drawing: Any) -> str:
    start = getattr(drawing.anchor, "_from", None)
    return f"{letters(start.col + 1)}{start.row + 1}" if start is not None else str(drawing.anchor)
