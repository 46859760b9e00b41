"""Formatting, headers, footers, margins and orientation of Word files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from .word_blocks import append_blocks
from .word_views import Opened
from .workspace import Refused, Workspace

SIDES = ("top", "bottom", "left", "right")


def apply_formatting(
    workspace: Workspace,
    file_path: str,
    identifier: str,
    bold: bool | None = None,
    italic: bool | None = None,
    underline: bool | None = None,
    strikethrough: bool | None = None,
    font_size: float | None = None,
    font_color: str | None = None,
) -> str:
    """Format every run at an address; the answer is the formats of the runs as saved."""
    from docx.shared import Pt, RGBColor

    wanted = {"bold": bold, "italic": italic, "underline": underline, "strike": strikethrough}
    if all(one is None for one in (*wanted.values(), font_size, font_color)):
        raise Refused(
            "apply_formatting needs at least one of bold, italic, underline, strikethrough, font_size, font_color"
        )
    file = Opened(workspace, file_path)
    for paragraph in file.paragraphs(identifier):
        for run in paragraph.runs:
            for key, flag in wanted.items():
                if flag is not None:
                    setattr(run.font, key, flag)
            if font_size is not None:
                run.font.size = Pt(font_size)
            if font_color is not None:
                try:
                    run.font.color.rgb = RGBColor.from_string(font_color.lstrip("#").upper())
                except ValueError as error:
                    raise Refused(f"{font_color!r} is no colour; write RRGGBB") from error
    file.save()
    after = Opened(workspace, file_path)
    runs = [
        {
            "text": run.text,
            **{key: getattr(run.font, key) for key in wanted},
            "font_size": run.font.size.pt if run.font.size else None,
            "font_color": str(run.font.color.rgb) if run.font.color and run.font.color.rgb else None,
        }
        for paragraph in after.paragraphs(identifier)
        for run in paragraph.runs
    ]
    lines = [json.dumps({k: v for k, v in run.items() if v is not None}, ensure_ascii=False) for run in runs]
    return "\n".join([f"saved {file_path}; runs of {identifier}:", *(lines or ["(no text to format)"])])


def _section(file: Opened, section_index: int) -> Any:
    sections = file.file.sections
    if not 0 <= section_index < len(sections):
        raise Refused(f"{file.file_path} has {len(sections)} sections; section_index counts from 0")
    return sections[section_index]


def header_footer(
    workspace: Workspace,
    file_path: str,
    action: str,
    area: str,
    section_index: int = 0,
    content: Sequence[dict[str, Any]] | None = None,
    link_to_previous: bool | None = None,
) -> dict[str, Any]:
    """Read or change a header or footer; the answer is what it holds now."""
    file = Opened(workspace, file_path)
    margin = getattr(_section(file, section_index), area)
    if action in ("set", "append") and not content:
        raise Refused(f"header_footer with action {action} needs content")
    if action == "link" and link_to_previous is None:
        raise Refused("header_footer with action link needs link_to_previous")
    if action in ("set", "clear"):
        margin.is_linked_to_previous = False
        for child in list(margin._element):
            margin._element.remove(child)
    if action in ("set", "append"):
        margin.is_linked_to_previous = False
        append_blocks(margin, content or ())
    if action == "clear" or (action == "set" and not margin.paragraphs):
        margin.add_paragraph("")
    if action == "link":
        margin.is_linked_to_previous = bool(link_to_previous)
    if action != "read":
        file.save()
        margin = getattr(_section(Opened(workspace, file_path), section_index), area)
    return {
        "file": file_path,
        "area": area,
        "section_index": section_index,
        "linked_to_previous": margin.is_linked_to_previous,
        "paragraphs": [one.text for one in margin.paragraphs],
        "tables": [[[cell.text for cell in row.cells] for row in table.rows] for table in margin.tables],
    }


def page_margins(
    workspace: Workspace,
    file_path: str,
    action: str,
    section_index: int = 0,
    top: float | None = None,
    bottom: float | None = None,
    left: float | None = None,
    right: float | None = None,
) -> dict[str, Any]:
    """Margins in inches, after the change if there is one."""
    from docx.shared import Inches

    file = Opened(workspace, file_path)
    section = _section(file, section_index)
    wanted = {"top": top, "bottom": bottom, "left": left, "right": right}
    if action == "set":
        if all(one is None for one in wanted.values()):
            raise Refused("page_margins with action set needs top, bottom, left or right")
        for side, inches in wanted.items():
            if inches is not None:
                setattr(section, f"{side}_margin", Inches(inches))
        file.save()
        section = _section(Opened(workspace, file_path), section_index)
    margins = {side: getattr(section, f"{side}_margin") for side in SIDES}
    shown = {side: None if one is None else round(one.inches, 3) for side, one in margins.items()}
    return {"file": file_path, "section_index": section_index, "margins_inches": shown}


def page_orientation(
    workspace: Workspace, file_path: str, action: str, section_index: int = 0, orientation: str | None = None
) -> dict[str, Any]:
    """Orientation and size of a section's pages, after the change if there is one."""
    from docx.enum.section import WD_ORIENT

    file = Opened(workspace, file_path)
    section = _section(file, section_index)
    if action == "set":
        if orientation is None:
            raise Refused("page_orientation with action set needs orientation")
        wide = orientation == "landscape"
        section.orientation = WD_ORIENT.LANDSCAPE if wide else WD_ORIENT.PORTRAIT
        if section.page_width and section.page_height and (section.page_width > section.page_height) != wide:
            section.page_width, section.page_height = section.page_height, section.page_width
        file.save()
        section = _section(Opened(workspace, file_path), section_index)
    return {
        "file": file_path,
        "section_index": section_index,
        "orientation": "landscape" if section.orientation == WD_ORIENT.LANDSCAPE else "portrait",
        "width_inches": round(section.page_width.inches, 3) if section.page_width else None,
        "height_inches": round(section.page_height.inches, 3) if section.page_height else None,
    }
