"""What is known of one tool before it runs, and the few words in which schemas are written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Contract = Literal["pure", "idempotent", "probe", "unsafe"]
Schema = dict[str, Any]


@dataclass(frozen=True)
class Signature:
    """One tool.

    Attributes:
        description: what the policy is told.
        schema: JSON schema of the arguments: an object that allows nothing else.
        contract: ``pure``: the same files give the same answer and nothing changes; ``idempotent``: doing it twice is
            doing it once; ``probe``: changes nothing, and asks something that may answer otherwise next time;
            ``unsafe``: doing it twice differs.
        reads: name of the argument that names the one file on which a pure answer depends; "" when it is not one file.
    """

    description: str
    schema: Mapping[str, Any]
    contract: Contract
    reads: str = ""


def tool(
    description: str,
    contract: Contract,
    required: Mapping[str, Schema] | None = None,
    optional: Mapping[str, Schema] | None = None,
    reads: str = "",
) -> Signature:
    """A signature; the order of the arguments is that of ``required``, then ``optional``."""
    properties = {**(required or {}), **(optional or {})}
    return Signature(description, fields(properties, required or ()), contract, reads)


def fields(properties: Mapping[str, Schema], required: Sequence[str] | Mapping[str, Schema] = ()) -> Schema:
    """An object with these fields and no others."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(required),
        "additionalProperties": False,
    }


def text(description: str, **more: Any) -> Schema:
    """A string; ``more`` may hold ``default`` and ``enum``."""
    return {"type": "string", "description": description, **more}


def integer(description: str, **more: Any) -> Schema:
    """A whole number; ``more`` may hold ``default``, ``minimum`` and ``maximum``."""
    return {"type": "integer", "description": description, **more}


def number(description: str, **more: Any) -> Schema:
    """A number; ``more`` may hold ``default``, ``minimum`` and ``maximum``."""
    return {"type": "number", "description": description, **more}


def flag(description: str, **more: Any) -> Schema:
    """True or false; ``more`` may hold ``default``."""
    return {"type": "boolean", "description": description, **more}


def many(items: Schema, description: str, **more: Any) -> Schema:
    """A list; ``more`` may hold ``minItems``."""
    return {"type": "array", "items": items, "description": description, **more}


def value(description: str = "a text, number, truth value or null") -> Schema:
    """What a cell can hold."""
    return {"type": ["string", "number", "boolean", "null"], "description": description}


def words(description: str) -> Schema:
    """A list of texts."""
    return many({"type": "string"}, description)


def record(description: str) -> Schema:
    """An object of any fields."""
    return {"type": "object", "description": description}


def grid(description: str) -> Schema:
    """Rows of cells."""
    return many(many(value(), "one row"), description)


FILE: Schema = text("path of the file, from the top of the world, e.g. /reports/model.xlsx")
DIRECTORY: Schema = text("directory in which the file is made, e.g. /")
FILE_NAME: Schema = text("name of the new file; its suffix is added when missing")

COLOR: Schema = text("RRGGBB")
CHANGE_IMAGE: dict[str, Schema] = {
    "rotation": number("degrees clockwise, for rotate"),
    "flip": text("for flip", enum=["horizontal", "vertical"]),
    "brightness": number("factor, 1 leaves it", minimum=0, maximum=10),
    "contrast": number("factor, 1 leaves it", minimum=0, maximum=10),
}
