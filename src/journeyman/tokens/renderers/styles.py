"""The ways in which families write calls, and the reader of each."""

from __future__ import annotations

from collections.abc import Callable

from journeyman.tokens.calls_glm import GLM
from journeyman.tokens.calls_harmony import parse_harmony
from journeyman.tokens.calls_llama import parse_llama
from journeyman.tokens.calls_xml import XML
from journeyman.tokens.malformed import ParsedTurn
from journeyman.tokens.renderers.family import CallStyle
from journeyman.tokens.spans import HERMES, Schemas, TagStyle, Think, parse_tagged
from journeyman.tokens.turn import Turn

Reader = Callable[[Turn, Schemas, bool, Think, bool], ParsedTurn]
"""(turn, schemas, truncated, tags of thinking, whether the prompt opened it) -> what the turn says."""


def _tagged(style: TagStyle) -> Reader:
    def read(turn: Turn, schemas: Schemas, truncated: bool, think: Think, opened: bool) -> ParsedTurn:
        return parse_tagged(turn, style, schemas, truncated, think, opened)

    return read


STYLES: dict[CallStyle, Reader] = {
    "hermes": _tagged(HERMES),
    "xml": _tagged(XML),
    "glm": _tagged(GLM),
    "llama": parse_llama,
    "harmony": parse_harmony,
}
