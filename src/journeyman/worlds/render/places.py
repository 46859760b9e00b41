"""What a renderer gives back: the bytes, and the places where facts came to lie in them."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from journeyman.worlds.content import unmarked


@dataclass(frozen=True)
class Style:
    """What renderers need to know of a world: the layout pack, and the day that files carry as their date."""

    font: str
    page: str
    size: float
    margin: float
    heading: str
    created: datetime


@dataclass
class Places:
    """Facts and where they lie: (fact, surface, locator), in the order of writing."""

    found: list[tuple[str, str, str]] = field(default_factory=list)

    def take(self, text: str, locator: str) -> str:
        """The text without marks; what it states is recorded at ``locator``."""
        plain, pairs = unmarked(text)
        self.found += [(fact, surface, locator) for fact, surface in pairs]
        return plain
