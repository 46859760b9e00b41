"""What a tool is, what it may use, and what comes back. A refusal is text for the policy, a broken machine an error."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from journeyman.documents.tree import Tree
from journeyman.tools.cache import ReadCache

MAX_OBSERVATION_CHARS = 4000
"""Longer texts are cut and say how much was left out."""


class ToolRefusal(Exception):
    """The call cannot be served for a reason the policy can act on; the text follows ``error: ``."""


class UnreadableFile(ToolRefusal):
    """A file of the trial is damaged or no document."""

    def __init__(self) -> None:
        super().__init__("unreadable file")


@dataclass(frozen=True)
class Observation:
    """What the policy sees after a call.

    Attributes:
        text: at most ``MAX_OBSERVATION_CHARS`` characters and a note about the rest.
        is_error: the call was malformed or refused.
        injected: the kind of fault that was injected into this call, None for a real answer.
        spill: path inside the sandbox of a file with the whole text, when ``text`` was cut.
        elapsed_s: wall-clock of the call, 0 when nobody measured.
    """

    text: str
    is_error: bool = False
    injected: str | None = None
    spill: str | None = None
    elapsed_s: float = 0.0


@dataclass(frozen=True)
class ToolContext:
    """What the tools of one trial may use. They hold no state, so trials over the same files may share one.

    Attributes:
        files: name -> hex sha256 of each file of the world, without directories.
        reads: trees of documents by sha256.
    """

    files: Mapping[str, str]
    reads: ReadCache

    def tree(self, path: str) -> Tree:
        """The document behind a path; directories in it are ignored.

        Raises:
            ToolRefusal: no such file, or it cannot be read.
            ReadMissing: the cache was never filled with it.
        """
        name = path.replace("\\", "/").rpartition("/")[2]
        if name not in self.files:
            raise ToolRefusal("no such file")
        tree = self.reads.tree(self.files[name])
        if tree is None:
            raise UnreadableFile
        return tree


@dataclass(frozen=True)
class Tool:
    """One function that a policy can call.

    Attributes:
        name: key in ``TOOLS``.
        function: called with the context and the arguments by name; returns text or raises ToolRefusal.
        schema: JSON schema of the arguments: an object of strings, nothing else allowed.
        contract: ``pure`` = same files and arguments, same text, and nothing changes.
        description: one sentence for prompts that list tools.
    """

    name: str
    function: Callable[..., str]
    schema: Mapping[str, Any]
    contract: Literal["pure", "idempotent", "probe", "unsafe"]
    description: str


def text_arguments(required: Mapping[str, str], optional: Mapping[str, str] | None = None) -> dict[str, Any]:
    """The JSON schema of named text arguments; the values describe them."""
    described = {**required, **(optional or {})}
    return {
        "type": "object",
        "properties": {name: {"type": "string", "description": text} for name, text in described.items()},
        "required": list(required),
        "additionalProperties": False,
    }
