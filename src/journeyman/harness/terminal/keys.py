"""Keystrokes as the policy writes them, as bytes for a terminal; a string that is the whole name of a key is that key.

That is how tmux reads the arguments of send-keys, which the protocol is written for: ``C-c`` is an interrupt, while
``echo C-c`` is text.
"""

from __future__ import annotations

import re

NAMED: dict[str, bytes] = {
    "Enter": b"\r",
    "Tab": b"\t",
    "BTab": b"\x1b[Z",
    "Escape": b"\x1b",
    "Space": b" ",
    "BSpace": b"\x7f",
    "Up": b"\x1b[A",
    "Down": b"\x1b[B",
    "Right": b"\x1b[C",
    "Left": b"\x1b[D",
    "Home": b"\x1b[1~",
    "End": b"\x1b[4~",
    "IC": b"\x1b[2~",
    "Insert": b"\x1b[2~",
    "DC": b"\x1b[3~",
    "Delete": b"\x1b[3~",
    "PPage": b"\x1b[5~",
    "PageUp": b"\x1b[5~",
    "PgUp": b"\x1b[5~",
    "NPage": b"\x1b[6~",
    "PageDown": b"\x1b[6~",
    "PgDn": b"\x1b[6~",
    **{f"F{n}": code for n, code in enumerate((b"\x1bOP", b"\x1bOQ", b"\x1bOR", b"\x1bOS"), start=1)},
    **{f"F{n}": b"\x1b[%d~" % code for n, code in zip(range(5, 13), (15, 17, 18, 19, 20, 21, 23, 24), strict=True)},
}

_CONTROL = re.compile(r"(?:C-|\^)([A-Za-z@\[\\\]^_ ])")
_META = re.compile(r"M-(.)")


def key_bytes(keystrokes: str) -> bytes:
    """What is written to the terminal for one ``keystrokes``; text that is no name of a key goes verbatim."""
    if keystrokes in NAMED:
        return NAMED[keystrokes]
    control = _CONTROL.fullmatch(keystrokes)
    if control is not None:
        return bytes([ord(control[1].upper()) & 0x1F])
    meta = _META.fullmatch(keystrokes)
    if meta is not None:
        return b"\x1b" + meta[1].encode()
    return keystrokes.encode("utf-8", "replace")
