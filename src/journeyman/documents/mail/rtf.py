"""Bodies that Outlook keeps as compressed rich text: decompressed and reduced to their text.

Source of the compression: the published specification MS-OXRTFCP, sections 2.1.3.1 and 3.1.
"""

from __future__ import annotations

import re
import struct

from .markup import text_of_html

COMPRESSED, PLAIN = 0x75465A4C, 0x414C454D
WINDOW = 4096
MAX_BYTES = 64_000_000
DICTIONARY = (
    b"{\\rtf1\\ansi\\mac\\deff0\\deftab720{\\fonttbl;}{\\f0\\fnil \\froman \\fswiss \\fmodern \\fscript "
    b"\\fdecor MS Sans SerifSymbolArialTimes New RomanCourier{\\colortbl\\red0\\green0\\blue0\r\n\\par "
    b"\\pard\\plain\\f0\\fs20\\b\\i\\u\\tab\\tx"
)
"""What the window holds before the first byte."""

TOKEN = re.compile(
    r"\\([a-z]{1,32})(-?\d{1,10})? ?|\\'([0-9a-fA-F]{2})|\\([^a-z])|([{}])|\r?\n|([^\\{}\r\n]+)", re.IGNORECASE
)
LINES = {"par": "\n", "line": "\n", "row": "\n", "tab": "\t", "cell": "\t", "emdash": "—", "endash": "–", "bullet": "•"}
LINES |= {"lquote": "‘", "rquote": "’", "ldblquote": "“", "rdblquote": "”"}
HIDDEN = {
    "fonttbl",
    "colortbl",
    "stylesheet",
    "info",
    "pict",
    "object",
    "generator",
    "listtable",
    "themedata",
    "datastore",
}


def text_of_rtf(compressed: bytes) -> tuple[str, str]:
    """The text of a compressed body, and a problem in words, empty without one."""
    try:
        rtf = decompressed(compressed)
    except (ValueError, struct.error) as error:
        return "", f"the rich text body is damaged: {error}"
    source = rtf.decode("latin-1")
    if "\\fromhtml" in source:
        return text_of_html(_text(source, keeps_markup=True)), ""
    return _text(source, keeps_markup=False).strip("\n"), ""


def decompressed(data: bytes) -> bytes:
    """The rich text behind the compression. Raises ValueError for other or damaged data."""
    size, raw_size, kind = struct.unpack("<III", data[:12])
    if kind == PLAIN:
        return data[16 : 16 + raw_size]
    if kind != COMPRESSED:
        raise ValueError("unknown compression")
    window = bytearray(DICTIONARY.ljust(WINDOW, b" "))
    at, write, out = 16, len(DICTIONARY), bytearray()
    end = min(len(data), size + 4)
    while at < end and len(out) <= MAX_BYTES:
        control = data[at]
        at += 1
        for bit in range(8):
            if at >= end:
                break
            if control >> bit & 1:
                if at + 1 >= end:
                    return bytes(out)
                token = data[at] << 8 | data[at + 1]
                at += 2
                read, length = token >> 4, (token & 15) + 2
                if read == write:
                    return bytes(out)
                chunk = bytearray()
                for offset in range(length):
                    byte = window[(read + offset) % WINDOW]
                    window[write] = byte
                    write = (write + 1) % WINDOW
                    chunk.append(byte)
                out += chunk
            else:
                window[write] = data[at]
                write = (write + 1) % WINDOW
                out.append(data[at])
                at += 1
    return bytes(out)


def _text(source: str, keeps_markup: bool) -> str:
    """Text of rich text; with ``keeps_markup`` the HTML that was wrapped in it."""
    out: list[str] = []
    stack: list[tuple[bool, int]] = []
    hidden, to_skip, skip = False, 1, 0
    page = "cp1252"
    if (found := re.search(r"\\ansicpg(\d+)", source)) is not None:
        page = f"cp{found[1]}"
    for match in TOKEN.finditer(source):
        word, number, code, symbol, brace, plain = match.groups()
        if brace == "{":
            stack.append((hidden, to_skip))
        elif brace == "}":
            hidden, to_skip = stack.pop() if stack else (False, 1)
        elif word is not None:
            hidden = _hides(word, number, hidden, keeps_markup)
            if word == "u" and number and not hidden:
                out.append(chr(int(number) % 65536) if not 0xD800 <= int(number) % 65536 < 0xE000 else "\ufffd")
                skip = to_skip
            elif word == "uc":
                to_skip = int(number or 1)
            elif not hidden and word in LINES:
                out.append(LINES[word])
        elif hidden:
            continue
        elif code is not None:
            if skip:
                skip -= 1
            else:
                out.append(_character(code, page))
        elif symbol is not None:
            out.append({"~": "\u00a0", "_": "-", "-": ""}.get(symbol, symbol if symbol in "\\{}" else ""))
        elif plain is not None:
            out.append(plain[skip:])
            skip = 0
    return "".join(out)


def _hides(word: str, number: str | None, hidden: bool, keeps_markup: bool) -> bool:
    if word in HIDDEN:
        return True
    if keeps_markup and word == "htmlrtf":
        return number != "0"
    if keeps_markup and word == "htmltag":
        return False
    return hidden


def _character(code: str, page: str) -> str:
    try:
        return bytes([int(code, 16)]).decode(page)
    except (UnicodeError, LookupError):
        return bytes([int(code, 16)]).decode("latin-1")
