"""Images of Word files: looked at, added, changed."""

from __future__ import annotations

from io import BytesIO
from typing import Any

from .pictures import changed
from .word_views import Opened, opened, overview
from .workspace import Refused, Workspace


def _images(file: Opened) -> list[tuple[Any, str]]:
    """(part, relationship id) of each image in the body, in document order."""
    found = []
    for element in file.file.element.body.iter():
        if str(element.tag).endswith("}blip"):
            link = next((value for key, value in element.attrib.items() if key.endswith("}embed")), None)
            if link in file.file.part.rels:
                found.append((file.file.part.rels[link].target_part, str(link)))
    return found


def _at(file: Opened, index: int) -> Any:
    images = _images(file)
    if not 0 <= index < len(images):
        raise Refused(f"{file.file_path} has {len(images)} images; they count from 0")
    return images[index][0]


def read_image(workspace: Workspace, file_path: str, annotation: str) -> dict[str, Any]:
    """Facts and a copy of an image, named ``image<n>`` from 0 or by its address."""
    file = Opened(workspace, file_path)
    named = overview(file.document)["images"]
    for at, one in enumerate(named):
        if annotation in (one["annotation"], one["address"]):
            return {"image": one["address"], **workspace.keep_image(_at(file, at).blob, annotation)}
    known = ", ".join(one["annotation"] for one in named) or "none"
    raise Refused(f"{file_path} has no image {annotation!r}; there are {known}")


def add_image(
    workspace: Workspace,
    file_path: str,
    image_path: str,
    identifier: str,
    position: str = "end",
    width: float | None = None,
    height: float | None = None,
) -> dict[str, Any]:
    """Put an image in or beside a paragraph; the answer lists the images there are now."""
    from docx.shared import Inches
    from docx.text.paragraph import Paragraph

    data, name = workspace.read(image_path)
    workspace.keep_image(data, name)
    file = Opened(workspace, file_path)
    paragraph = file.paragraphs(identifier)[0]
    if position == "before":
        paragraph = paragraph.insert_paragraph_before("")
    elif position == "after":
        element = paragraph._p.getparent().makeelement(paragraph._p.tag, {})
        paragraph._p.addnext(element)
        paragraph = Paragraph(element, file.file._body)
    run = paragraph.add_run()
    if position == "start" and len(paragraph._p) > 1:
        first = next((one for one in paragraph._p if str(one.tag).endswith("}r")), None)
        if first is not None and first is not run._r:
            first.addprevious(run._r)
    run.add_picture(BytesIO(data), Inches(width) if width else None, Inches(height) if height else None)
    file.save()
    return {"file": file_path, "images": overview(opened(workspace, file_path)[2])["images"]}


def modify_image(
    workspace: Workspace,
    file_path: str,
    image_index: int,
    operation: str,
    rotation: float | None = None,
    flip: str | None = None,
    brightness: float | None = None,
    contrast: float | None = None,
) -> dict[str, Any]:
    """Change an image's pixels; the answer is the image as the saved file has it."""
    values = {"rotation": rotation, "flip": flip, "brightness": brightness, "contrast": contrast}
    file = Opened(workspace, file_path)
    part = _at(file, image_index)
    part._blob = changed(part.blob, operation, values)
    file.save()
    after = _at(Opened(workspace, file_path), image_index)
    return {"image_index": image_index, "operation": operation, **workspace.keep_image(after.blob, file_path)}
