"""From text to the bytes of a message: header values with folds and encoded words, bodies in a transfer encoding."""

from __future__ import annotations

import binascii
import re
from base64 import b64encode

from .charsets import ALIASES, is_known

ADDRESS_HEADERS = {"from", "to", "cc", "bcc", "reply-to", "sender"}
LINE = 76
WORD_BYTES = 42
"""Bytes of UTF-8 per encoded word: with base64 and its frame at most 75 characters."""
MAX_LINE = 998


def header_bytes(name: str, text: str, end: bytes) -> bytes:
    """One header field with its line end.

    Args:
        name: of the header.
        text: its value; addresses with names in any alphabet, other values any text.
        end: ``\\r\\n`` or ``\\n``.

    Raises:
        ValueError: the text holds a line end or a control character, or the name is none.
    """
    if re.search(r"[\x00-\x08\x0a-\x1f\x7f]", text):
        raise ValueError("a header is one line without control characters")
    if not re.fullmatch(r"[!-9;-~]+", name):
        raise ValueError(f"{name!r} is no header name")
    text = text.strip()
    needs_words = not text.isascii() or "=?" in text
    words = [text] if not needs_words else _address_words(text) if name.lower() in ADDRESS_HEADERS else _words(text)
    lines = [f"{name}:"]
    for word in words:
        for piece in re.findall(r"\s*\S+", f" {word}"):
            if len(lines[-1]) + len(piece) > LINE and lines[-1] != f"{name}:":
                lines.append(piece)
            else:
                lines[-1] += piece
    return end.join(line.encode("ascii") for line in lines) + end


def body_bytes(text: str, charset: str, encoding: str, end: bytes) -> tuple[bytes, str, str]:
    """A text body: its bytes, the character set and the transfer encoding that it needs.

    Args:
        text: with line feeds.
        charset: that the part declares; UTF-8 takes its place where it cannot express the text.
        encoding: that the part declares; quoted-printable takes its place where it cannot carry the bytes.
        end: line end of the message.
    """
    declared = charset if charset and is_known(charset) else "us-ascii"
    codec = "ascii" if declared.lower() == "us-ascii" else ALIASES.get(declared.lower(), declared)
    try:
        raw = text.encode(codec)
    except UnicodeError:
        declared, raw = "utf-8", text.encode("utf-8")
    lines = raw.replace(b"\n", end) if b"\r" not in raw else raw
    if encoding == "base64":
        return base64_lines(lines, end), declared, encoding
    fits = max((len(line) for line in lines.split(b"\n")), default=0) <= MAX_LINE and b"\r" not in raw
    if (fits and encoding in ("8bit", "binary", "8-bit")) or (
        fits and raw.isascii() and encoding in ("", "7bit", "7-bit")
    ):
        return lines, declared, encoding
    return _quoted_printable(raw, end), declared, "quoted-printable"


def _words(text: str) -> list[str]:
    out, part = [], ""
    for character in [*text, ""]:
        if part and (not character or len((part + character).encode("utf-8")) > WORD_BYTES):
            out.append(f"=?utf-8?b?{b64encode(part.encode('utf-8')).decode('ascii')}?=")
            part = ""
        part += character
    return out


def _address_words(text: str) -> list[str]:
    from email.utils import formataddr, getaddresses

    pairs = getaddresses([text])
    shown = ", ".join(formataddr((name, mail), "utf-8") for name, mail in pairs if mail)
    if not shown or not shown.isascii():
        raise ValueError("this is no list of mail addresses")
    return [shown]


def base64_lines(data: bytes, end: bytes) -> bytes:
    encoded = b64encode(data)
    return b"".join(encoded[at : at + LINE] + end for at in range(0, len(encoded), LINE))


def _quoted_printable(raw: bytes, end: bytes) -> bytes:
    lines = [binascii.b2a_qp(line, istext=False) for line in raw.split(b"\n")]
    return end.join(line.replace(b"\n", end) for line in lines)
