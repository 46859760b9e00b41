"""The places that a task allows to change."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from ..errors import NoSuchAddress
from ..xlsx.address import Area, parse


class Region:
    """Addresses and ranges that may change; a ``*`` in one stands for any text.

    ``Data!A1:C9`` allows every cell inside and what hangs on it (``Data!B2/comment``); ``sheet:Data`` the whole sheet;
    any other address itself and what begins with it followed by ``/``.
    """

    def __init__(self, allowed: Sequence[str]) -> None:
        self._texts = tuple(allowed)
        self._areas = tuple(area for text in allowed if (area := _area(text)) is not None)
        self._sheets = {text.removeprefix("sheet:").lower() for text in allowed if text.startswith("sheet:")}

    def covers(self, address: str) -> bool:
        """Whether the whole of the address lies inside."""
        if any(address == text or address.startswith(f"{text}/") or fnmatchcase(address, text) for text in self._texts):
            return True
        sheet, mark, rest = address.rpartition("!")
        area = _area(f"{sheet}!{rest.partition('/')[0]}") if mark else None
        if area is None:
            own = address.removeprefix("sheet:") if address.startswith("sheet:") else sheet.strip("'") if mark else ""
            return bool(own) and own.lower() in self._sheets
        return area.sheet.lower() in self._sheets or any(one.covers(area) for one in self._areas)


def _area(text: str) -> Area | None:
    try:
        return parse(text, "")
    except NoSuchAddress:
        return None
