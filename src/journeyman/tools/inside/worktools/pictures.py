"""Images turned, mirrored, brightened; the same for Word files and slides."""

from __future__ import annotations

from io import BytesIO
from typing import Any

from .workspace import Refused, image_problem


def changed(data: bytes, operation: str, values: dict[str, Any]) -> bytes:
    """The image after an operation, in its own format. Raises Refused."""
    from PIL import Image, ImageEnhance, ImageOps

    needed = {"rotate": "rotation", "flip": "flip", "brightness": "brightness", "contrast": "contrast"}[operation]
    if values.get(needed) is None:
        raise Refused(f"operation {operation} needs {needed}")
    try:
        with Image.open(BytesIO(data)) as opened:
            kind = opened.format or "PNG"
            image: Any = opened.convert("RGBA" if kind == "PNG" else "RGB")
    except Exception as error:  # Pillow raises its own zoo
        raise Refused(f"the image cannot be read: {image_problem(error)}") from error
    if operation == "rotate":
        image = image.rotate(-float(values["rotation"]), expand=True)
    elif operation == "flip":
        image = ImageOps.mirror(image) if values["flip"] == "horizontal" else ImageOps.flip(image)
    elif operation == "brightness":
        image = ImageEnhance.Brightness(image).enhance(float(values["brightness"]))
    else:
        image = ImageEnhance.Contrast(image).enhance(float(values["contrast"]))
    buffer = BytesIO()
    image.save(buffer, format=kind)
    return buffer.getvalue()
