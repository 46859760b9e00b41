"""A presentation opened for changes, and what goes into a slide's placeholders."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from io import BytesIO
from typing import Any

from .deck_views import opened, shown_slides
from .workspace import Refused, Workspace

LAYOUTS = {
    "title": 0,
    "title_and_content": 1,
    "section_header": 2,
    "two_content": 3,
    "title_only": 5,
    "blank": 6,
}
"""Word for a layout -> its position in python-pptx's default template."""

LAYOUT_NAMES = {
    "title": "title slide",
    "title_and_content": "title and content",
    "section_header": "section header",
    "two_content": "two content",
    "title_only": "title only",
    "blank": "blank",
}


class Deck:
    """A presentation in python-pptx.

    Args:
        workspace: of the call.
        file_path: as the agent wrote it.
    """

    def __init__(self, workspace: Workspace, file_path: str) -> None:
        from pptx import Presentation

        self.workspace, self.file_path = workspace, file_path
        data, _, _ = opened(workspace, file_path)  # checks the container before python-pptx unpacks it
        self.file = Presentation(BytesIO(data))

    def slide(self, index: int) -> Any:
        """A slide from 0. Raises Refused."""
        count = len(self.file.slides)
        if not 0 <= index < count:
            raise Refused(f"{self.file_path} has {count} slides, 0 to {count - 1}; no slide {index}")
        return self.file.slides[index]

    def layout(self, word: str) -> Any:
        """A layout by its name in this file, else by the position it has in the default template."""
        layouts = list(self.file.slide_layouts)
        named = next((one for one in layouts if one.name.lower() == LAYOUT_NAMES[word]), None)
        return named if named is not None else layouts[min(LAYOUTS[word], len(layouts) - 1)]

    def move(self, start: int, end: int) -> None:
        """Put the slide at ``start`` at ``end``."""
        ids = self.file.slides._sldIdLst
        element = list(ids)[start]
        ids.remove(element)
        ids.insert(end, element)

    def delete(self, index: int) -> None:
        """Remove a slide and its part."""
        self.slide(index)
        ids = self.file.slides._sldIdLst
        element = list(ids)[index]
        self.file.part.drop_rel(element.rId)
        ids.remove(element)

    def duplicate(self, index: int) -> int:
        """Copy a slide to the end; returns its index. Charts keep their part, shared with the original."""
        source = self.slide(index)
        made = self.file.slides.add_slide(source.slide_layout)
        for shape in list(made.shapes):
            shape._element.getparent().remove(shape._element)
        links = {}
        for key, relation in source.part.rels.items():
            if "slideLayout" in relation.reltype or "notesSlide" in relation.reltype:
                continue
            if relation.is_external:
                links[key] = made.part.relate_to(relation.target_ref, relation.reltype, is_external=True)
            else:
                links[key] = made.part.relate_to(relation.target_part, relation.reltype)
        for shape in source.shapes:
            element = copy.deepcopy(shape._element)
            for one in element.iter():
                for name, value in one.attrib.items():
                    if "relationships}" in name and value in links:
                        one.set(name, links[value])
            made.shapes._spTree.append(element)
        if source.has_notes_slide:
            made.notes_slide.notes_text_frame.text = source.notes_slide.notes_text_frame.text
        return len(self.file.slides) - 1

    def save(self) -> None:
        """Write the file back."""
        buffer = BytesIO()
        self.file.save(buffer)
        self.workspace.write(self.workspace.file(self.file_path), buffer.getvalue())

    def saved(self, index: int) -> str:
        """Save, and the slide as the file now has it."""
        self.save()
        document = opened(self.workspace, self.file_path)[2]
        return f"saved; read back:\n{shown_slides(document, [index], is_full=True)}"


def placeholder(slide: Any, word: str) -> Any:
    """The placeholder called title, subtitle, body, left or right. Raises Refused with those there are."""
    if word == "title":
        if slide.shapes.title is None:
            raise Refused("this slide has no title placeholder")
        return slide.shapes.title
    bodies = [one for one in slide.placeholders if one.placeholder_format.idx != 0 and one.has_text_frame]
    bodies = [one for one in bodies if one.placeholder_format.idx < 10]  # 10 and above are date, footer and number
    at = {"body": 0, "subtitle": 0, "left": 0, "right": 1}[word]
    if at >= len(bodies):
        raise Refused(f"this slide has no {word} placeholder; it has {len(bodies)} besides the title")
    return bodies[at]


def set_lines(shape: Any, items: Sequence[str], *, appended: bool = False) -> None:
    """Paragraphs of a placeholder, one an item."""
    frame = shape.text_frame
    if not appended:
        frame.clear()
    is_first = not appended or not frame.text
    for item in items:
        paragraph = frame.paragraphs[0] if is_first else frame.add_paragraph()
        paragraph.text = item
        is_first = False


def fill_slide(slide: Any, values: dict[str, Any]) -> None:
    """Title, subtitle, bullets, columns, table and notes of a new slide. Raises Refused for what has no place."""
    from .deck_things import put_table

    if values.get("title") is not None:
        placeholder(slide, "title").text_frame.text = values["title"]
    if values.get("subtitle") is not None:
        placeholder(slide, "subtitle").text_frame.text = values["subtitle"]
    if values.get("bullets"):
        set_lines(placeholder(slide, "body"), values["bullets"]["items"])
    for side in ("left", "right"):
        items = (values.get("columns") or {}).get(side)
        if items:
            set_lines(placeholder(slide, side), items)
    if values.get("table"):
        put_table(slide, values["table"]["rows"], bool(values["table"].get("header", True)), (0.5, 1.8, 9.0, 4.0))
    if values.get("notes") is not None:
        slide.notes_slide.notes_text_frame.text = values["notes"]
