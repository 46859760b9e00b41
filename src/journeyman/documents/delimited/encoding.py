"""From bytes to text and back: a byte-order mark, else UTF-8, else the likeliest of the encodings in use."""

from __future__ import annotations

from typing import NamedTuple

from ..errors import UnreadableDocument

MARKS = (
    (b"\xef\xbb\xbf", "utf-8"),
    (b"\xff\xfe\x00\x00", "utf-32-le"),
    (b"\x00\x00\xfe\xff", "utf-32-be"),
    (b"\xff\xfe", "utf-16-le"),
    (b"\xfe\xff", "utf-16-be"),
)
"""Byte-order mark -> encoding; the longer first where one begins with another."""

CANDIDATES = [
    "cp1252", "cp1250", "cp1251", "cp1253", "cp932", "gb18030", "big5", "euc_kr", "iso8859_15", "koi8_r", "mac_roman",
]  # fmt: skip
"""Encodings that office programs write without a mark."""

SIGNS = frozenset({0x80, 0x85, 0x91, 0x92, 0x93, 0x94, 0x96, 0x97, 0xA0, 0xA3, 0xA7, 0xB0, 0xB2, 0xBD})
"""Euro, dots, quotes, dashes, pound, paragraph, degree, square and half in Windows-1252."""

SAMPLE_BYTES = 200_000


class Encoding(NamedTuple):
    """How the text was stored; ``is_guessed`` when neither a mark nor UTF-8 settled it."""

    name: str
    mark: bytes = b""
    is_guessed: bool = False


def decode(data: bytes, name: str) -> tuple[str, Encoding]:
    """The text, and how to store it again. Raises UnreadableDocument for what is no text."""
    for mark, encoding in MARKS:
        if data.startswith(mark):
            try:
                return data[len(mark) :].decode(encoding), Encoding(encoding, mark)
            except UnicodeDecodeError as error:
                raise UnreadableDocument(
                    name, f"marked as {encoding}, but not decodable: {error.reason}", place=f"byte {error.start}"
                ) from error
    if _zeros(data):
        encoding = "utf-16-le" if data[1:2] == b"\0" else "utf-16-be"
        try:
            text = data.decode(encoding)
        except UnicodeDecodeError:
            text = "\0"
        if not any(letter < " " and letter not in "\t\r\n" for letter in text):
            return text, Encoding(encoding, b"", True)
        raise UnreadableDocument(name, "binary data, not delimited text", remedy="check the file's kind")
    try:
        return data.decode("utf-8"), Encoding("utf-8")
    except UnicodeDecodeError:
        return _guess(data, name)


def _zeros(data: bytes) -> bool:
    return b"\0" in data[:4096]


def _guess(data: bytes, name: str) -> tuple[str, Encoding]:
    from charset_normalizer import from_bytes

    found = from_bytes(data[:SAMPLE_BYTES], cp_isolation=CANDIDATES).best()
    order = [found.encoding, *CANDIDATES] if found is not None else CANDIDATES
    if _is_western(data):
        order = ["cp1252", *order]
    for encoding in order:
        try:
            return data.decode(encoding), Encoding(encoding, b"", True)
        except UnicodeDecodeError:
            continue
    raise UnreadableDocument(name, "no encoding decodes it", remedy="save it as UTF-8")


def _is_western(data: bytes) -> bool:
    """Few bytes above ASCII, all of them accents or signs of Windows-1252: too little text for statistics."""
    high = [byte for byte in data[:SAMPLE_BYTES] if byte >= 0x80]
    return len(high) * 4 < len(data[:SAMPLE_BYTES]) and all(byte >= 0xC0 or byte in SIGNS for byte in high)


def encode(text: str, encoding: Encoding) -> bytes:
    """The inverse of ``decode``. Raises UnicodeEncodeError."""
    return encoding.mark + text.encode(encoding.name)
