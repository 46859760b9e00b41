"""From bytes of a message to text: character sets as mail names them, encoded words, transfer encodings.

Nothing here fails: what cannot be decoded as declared is decoded as the most likely, and that is said.
"""

from __future__ import annotations

import binascii
import codecs
import re

ALIASES = {
    "ks_c_5601-1987": "cp949",
    "ks_c_5601": "cp949",
    "euc-kr": "cp949",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "shift_jis": "cp932",
    "shift-jis": "cp932",
    "x-sjis": "cp932",
    "iso-2022-jp": "iso2022_jp_2",
    "iso-8859-8-i": "iso-8859-8",
    "iso-8859-1": "cp1252",
    "us-ascii": "utf-8",
    "ascii": "utf-8",
    "ansi_x3.4-1968": "utf-8",
    "unicode-1-1-utf-7": "utf-7",
    "utf8": "utf-8",
    "x-unknown": "utf-8",
    "unknown-8bit": "utf-8",
    "utf-8mb4": "utf-8",
}
"""Names that mail uses -> Python codecs that read all of what is sent under them."""

WORD = re.compile(r"=\?([^?*\s]+)(?:\*[^?]*)?\?([bBqQ])\?([^?]*)\?=")
BETWEEN_WORDS = re.compile(r"(\?=)[ \t\r\n]+(?==\?[^?\s]+\?[bBqQ]\?)")


def decoded(data: bytes, charset: str) -> tuple[str, str]:
    """Text and, where the declared character set did not do, what was assumed instead; empty when it did."""
    declared = charset.strip("'\" ").lower() or "us-ascii"
    codec = ALIASES.get(declared, declared)
    try:
        return data.decode(codec), ""
    except (LookupError, UnicodeError, ValueError):
        pass
    for guess in ("utf-8", "cp1252", "latin-1"):
        try:
            return data.decode(guess), f"not {declared} as declared, read as {guess}"
        except UnicodeError:
            continue
    return data.decode("utf-8", "replace"), f"not {declared} as declared"


def header_text(raw: bytes) -> str:
    """The text of a raw header value: unfolded, encoded words decoded, stray bytes as UTF-8 or Windows-1252."""
    unfolded = re.sub(rb"\r?\n(?=[ \t])", b"", raw).strip()
    text, _ = decoded(unfolded, "utf-8")
    text = BETWEEN_WORDS.sub(r"\1", text)
    pieces: list[tuple[str, bytes]] = []
    out, at = "", 0
    for word in WORD.finditer(text):
        if word.start() > at:
            out, pieces = out + _joined(pieces), []
            out += text[at : word.start()]
        pieces.append((word[1].lower(), _word_bytes(word[2].lower(), word[3])))
        at = word.end()
    return re.sub(r"[\r\n\0]+", " ", out + _joined(pieces) + text[at:])


def payload(data: bytes, encoding: str) -> tuple[bytes, str]:
    """The bytes behind a transfer encoding, and a problem in words, empty without one."""
    if encoding == "base64":
        clean = re.sub(rb"[^A-Za-z0-9+/]", b"", data.split(b"=\n--")[0])
        try:
            return binascii.a2b_base64(clean + b"=" * (-len(clean) % 4)), ""
        except binascii.Error:
            usable = clean[: len(clean) - len(clean) % 4]
            return binascii.a2b_base64(usable), "damaged base64"
    if encoding in ("quoted-printable", "quoted"):
        return binascii.a2b_qp(data), ""
    if encoding in ("x-uuencode", "uuencode", "x-uue", "uue"):
        return _uudecoded(data), ""
    known = ("", "7bit", "8bit", "binary", "7-bit", "8-bit")
    return data, "" if encoding in known else f"unknown transfer encoding {encoding!r}, taken as it stands"


def _joined(pieces: list[tuple[str, bytes]]) -> str:
    """Adjacent words of one character set are one text: senders cut characters in the middle."""
    text, at = "", 0
    while at < len(pieces):
        charset, data = pieces[at]
        at += 1
        while at < len(pieces) and pieces[at][0] == charset and not _is_whole(data, charset):
            data += pieces[at][1]
            at += 1
        text += decoded(data, charset)[0]
    return text


def _is_whole(data: bytes, charset: str) -> bool:
    try:
        data.decode(ALIASES.get(charset, charset))
    except (LookupError, UnicodeError):
        return False
    return True


def _word_bytes(kind: str, text: str) -> bytes:
    raw = text.encode("utf-8")
    if kind == "b":
        return payload(raw, "base64")[0]
    return binascii.a2b_qp(raw, header=True)


def _uudecoded(data: bytes) -> bytes:
    out = b""
    for line in data.splitlines():
        if line.startswith(b"begin ") or line.strip() in (b"end", b"`", b""):
            continue
        try:
            out += binascii.a2b_uu(line)
        except binascii.Error:
            out += binascii.a2b_uu(line[: (((line[0] - 32) & 63) * 4 + 5) // 3])
    return out


def is_known(charset: str) -> bool:
    """Whether text can be encoded in this character set."""
    try:
        codecs.lookup(ALIASES.get(charset.lower(), charset))
    except LookupError:
        return False
    return True
