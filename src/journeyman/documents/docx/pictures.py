"""Drawings in a paragraph: images with their part, and text boxes with their paragraphs."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Any

from ..node import Node
from .names import A, R, local, w

if TYPE_CHECKING:
    from .blocks import Story

EMU_PER_POINT = 12700
VML = "urn:schemas-microsoft-com:vml"


def pictures_of(story: Story, drawings: list[Any], address: str) -> list[Node]:
    """Images as ``<paragraph>/image1``, text boxes as ``<paragraph>/box1``, in order."""
    nodes: list[Node] = []
    num_images = num_boxes = 0
    for drawing in drawings:
        for box in _topmost(drawing, "txbxContent"):
            num_boxes += 1
            place = story.walk.note(f"{address}/box{num_boxes}", story.part, box)
            nodes.append(Node("textbox", place, "", {}, story.blocks(box, place)))
        for element, relationship in _images(drawing):
            num_images += 1
            place = story.walk.note(f"{address}/image{num_images}", story.part, element)
            nodes.append(Node("image", place, "", _facts(story, drawing, relationship)))
    return nodes


def _images(drawing: Any) -> list[tuple[Any, str]]:
    found = [(one, one.get(f"{{{R}}}embed") or one.get(f"{{{R}}}link")) for one in drawing.iter(f"{{{A}}}blip")]
    found += [(one, one.get(f"{{{R}}}id")) for one in drawing.iter(f"{{{VML}}}imagedata")]
    inside = {id(one) for box in drawing.iter(w("txbxContent")) for one in box.iter()}
    return [(one, target) for one, target in found if target and id(one) not in inside]


def _facts(story: Story, drawing: Any, relationship: str) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    for element in drawing.iter():
        if local(element) == "docPr":
            facts.update({key: element.get(source) for key, source in (("name", "name"), ("alt", "descr"))})
        elif local(element) == "extent" and (element.get("cx") or "").isdigit() and (element.get("cy") or "").isdigit():
            facts["width_pt"] = round(int(element.get("cx")) / EMU_PER_POINT, 2)
            facts["height_pt"] = round(int(element.get("cy")) / EMU_PER_POINT, 2)
    target = story.walk.package.relationships(story.part).get(relationship)
    if target is not None:
        facts["target"] = target.target
        part = None if target.external else story.walk.package.part_name(target.target)
        if part is not None:
            facts["sha256"] = sha256(story.walk.package.parts[part]).hexdigest()
    return {key: value for key, value in facts.items() if value}


def _topmost(element: Any, name: str) -> list[Any]:
    """Descendants of this name that lie in no other of it, without the fallbacks for older programs."""
    found: list[Any] = []
    for child in element:
        if local(child) == name:
            found.append(child)
        elif local(child) == "AlternateContent":
            from .inline import chosen

            found.extend(_topmost(chosen(child), name))
        else:
            found.extend(_topmost(child, name))
    return found
