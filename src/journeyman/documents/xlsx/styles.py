"""Cell styles as plain mappings that name only what differs from the workbook's default cell."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from .package import child, children, local

Style = dict[str, Any]

BUILT_IN = {
    0: "General", 1: "0", 2: "0.00", 3: "#,##0", 4: "#,##0.00", 5: '"$"#,##0_);("$"#,##0)',
    6: '"$"#,##0_);[Red]("$"#,##0)', 7: '"$"#,##0.00_);("$"#,##0.00)', 8: '"$"#,##0.00_);[Red]("$"#,##0.00)',
    9: "0%", 10: "0.00%", 11: "0.00E+00", 12: "# ?/?", 13: "# ??/??", 14: "m/d/yyyy", 15: "d-mmm-yy", 16: "d-mmm",
    17: "mmm-yy", 18: "h:mm AM/PM", 19: "h:mm:ss AM/PM", 20: "h:mm", 21: "h:mm:ss", 22: "m/d/yyyy h:mm",
    37: "#,##0_);(#,##0)", 38: "#,##0_);[Red](#,##0)", 39: "#,##0.00_);(#,##0.00)", 40: "#,##0.00_);[Red](#,##0.00)",
    41: '_(* #,##0_);_(* (#,##0);_(* "-"_);_(@_)', 42: '_("$"* #,##0_);_("$"* (#,##0);_("$"* "-"_);_(@_)',
    43: '_(* #,##0.00_);_(* (#,##0.00);_(* "-"??_);_(@_)',
    44: '_("$"* #,##0.00_);_("$"* (#,##0.00);_("$"* "-"??_);_(@_)',
    45: "mm:ss", 46: "[h]:mm:ss", 47: "mmss.0", 48: "##0.0E+0", 49: "@",
}  # fmt: skip
"""Number formats that files name by id only (ECMA-376 part 1, 18.8.30)."""

SAME = {"mm-dd-yy": "m/d/yyyy", "m/d/yy h:mm": "m/d/yyyy h:mm", "GENERAL": "General", "general": "General"}
"""Codes that writers spell out for a built-in id -> our spelling."""

_NOT_DATE = re.compile(r'"[^"]*"|\\.|_.|\*.|\[(?!h+\]|m+\]|s+\])[^\]]*\]', re.IGNORECASE)
_GENERAL = re.compile("general", re.IGNORECASE)


@cache
def is_date(number_format: str) -> bool:
    """Whether numbers of this format are shown as a date or a time of day."""
    code = _GENERAL.sub("", _NOT_DATE.sub("", number_format.partition(";")[0]))
    return bool(re.search(r"[dmyhs]", code, re.IGNORECASE)) and not re.search(r"[0#?]", re.sub(r"s\.0+", "s", code))


def read_styles(root: Any) -> tuple[list[Style], dict[str, Any]]:
    """Styles by index of ``cellXfs``, and the default font; from the root of ``styles.xml``."""
    formats = dict(BUILT_IN)
    for one in children(child(root, "numFmts"), "numFmt"):
        code = one.get("formatCode", "General")
        code = code.replace("\\(", "(").replace("\\)", ")")  # parentheses mean themselves either way
        formats[int(one.get("numFmtId", 0))] = SAME.get(code, code)
    fonts = [_font(one) for one in children(child(root, "fonts"), "font")]
    fills = [_fill(one) for one in children(child(root, "fills"), "fill")]
    borders = [_border(one) for one in children(child(root, "borders"), "border")]
    rows = children(child(root, "cellXfs"), "xf")
    default = _at(fonts, rows[0].get("fontId")) if rows else {}
    return [_style(row, formats, fonts, fills, borders, default) for row in rows], default


def _style(
    row: Any, formats: dict[int, str], fonts: list[Style], fills: list[Style], borders: list[Style], default: Style
) -> Style:
    style: Style = {}
    code = formats.get(int(row.get("numFmtId") or 0), "General")
    if code != "General":
        style["number_format"] = code
    font = _at(fonts, row.get("fontId"))
    style.update({key: value for key, value in font.items() if default.get(key) != value})
    style.update({f"no_{key}": True for key in default if key not in font and key not in ("color", "name", "size")})
    style.update(_at(fills, row.get("fillId")))
    style.update(_at(borders, row.get("borderId")))
    style.update(_alignment(child(row, "alignment")))
    style.update(_protection(child(row, "protection")))
    return style


def _at(rows: list[Style], index: str | None) -> Style:
    position = int(index or 0)
    return rows[position] if 0 <= position < len(rows) else {}


def _font(element: Any) -> Style:
    found: Style = {}
    for one in element:
        word, value = local(one), one.get("val")
        if word in ("b", "i", "strike", "outline", "shadow") and value not in ("0", "false"):
            found[{"b": "bold", "i": "italic"}.get(word, word)] = True
        elif word == "u" and value != "none":
            found["underline"] = value or "single"
        elif word == "sz":
            found["size"] = float(value or 11)
        elif word in ("name", "rFont"):
            found["name"] = value
        elif word == "vertAlign" and value != "baseline":
            found["script"] = value
        elif word == "color" and (name := color(one)):
            found["color"] = name
    return {"font" if key == "name" else key: value for key, value in found.items()}


def color(element: Any) -> str:
    """``#RRGGBB``, ``theme:N``, ``indexed:N``, each with ``:tint`` where given; empty for automatic."""
    if element is None:
        return ""
    tint = element.get("tint")
    tail = f":{float(tint):.3g}" if tint and float(tint) else ""
    if rgb := element.get("rgb"):
        return f"#{rgb[-6:].upper()}{tail}"
    if (theme := element.get("theme")) is not None:
        return "" if theme == "1" and not tail else f"theme:{theme}{tail}"
    if (index := element.get("indexed")) is not None:
        return "" if index in ("64", "65", "8") else f"indexed:{index}{tail}"
    return ""


def _fill(element: Any) -> Style:
    pattern = child(element, "patternFill")
    if pattern is None:
        gradient = child(element, "gradientFill")
        stops = [color(child(stop, "color")) for stop in children(gradient, "stop")]
        return {"fill": f"gradient {' '.join(stops)}"} if gradient is not None else {}
    kind = pattern.get("patternType", "none")
    if kind == "none":
        return {}
    front, back = color(child(pattern, "fgColor")), color(child(pattern, "bgColor"))
    if kind == "solid":
        return {"fill": front or "#000000"}
    return {"fill": f"{kind} {front} {back}".strip()}


def _border(element: Any) -> Style:
    found = {}
    for one in element:
        if (
            local(one) in ("left", "right", "top", "bottom", "diagonal", "start", "end")
            and one.get("style", "none") != "none"
        ):
            side = {"start": "left", "end": "right"}.get(local(one), local(one))
            found[f"border_{side}"] = f"{one.get('style')} {color(child(one, 'color'))}".strip()
    return found


def _alignment(element: Any) -> Style:
    if element is None:
        return {}
    found: Style = {}
    if (across := element.get("horizontal", "general")) != "general":
        found["align"] = across
    if (down := element.get("vertical", "bottom")) != "bottom":
        found["valign"] = down
    if element.get("wrapText") in ("1", "true"):
        found["wrap"] = True
    if element.get("shrinkToFit") in ("1", "true"):
        found["shrink"] = True
    for word in ("indent", "textRotation"):
        if element.get(word, "0") != "0":
            found["rotation" if word == "textRotation" else word] = int(float(element.get(word)))
    return found


def _protection(element: Any) -> Style:
    found: Style = {}
    if element is not None and element.get("locked") in ("0", "false"):
        found["unlocked"] = True
    if element is not None and element.get("hidden") in ("1", "true"):
        found["formula_hidden"] = True
    return found
