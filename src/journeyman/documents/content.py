"""What the bytes are, whatever the name says; containers are measured before anything is unpacked."""

from __future__ import annotations

from .errors import Encrypted, MissingPart, TooLarge, UnreadableDocument, WrongKind
from .formats import OLE, TEXT, ZIP, Format
from .ole import top_streams
from .tree import brief

TYPE_CHECKING = False
if TYPE_CHECKING:
    from zipfile import ZipFile

MAX_UNPACKED_BYTES = 256_000_000
"""A container that claims to unpack to more is refused: it is a bomb or no office file."""

MAX_MEMBERS = 20_000
"""A container of more members is refused."""

MAX_RATIO = 2_000
"""A member of more than a megabyte that claims to grow by more is a bomb: deflate reaches 1,032."""

PDF_HEADER_WITHIN = 1024
"""Bytes before ``%PDF-`` that viewers accept."""

NAMES = {
    "pdf": "a PDF",
    "xlsx": "an Excel workbook (xlsx)",
    "xlsb": "a binary Excel workbook (xlsb)",
    "xls": "a legacy Excel workbook (xls)",
    "docx": "a Word document (docx)",
    "doc": "a legacy Word document (doc)",
    "pptx": "a PowerPoint presentation (pptx)",
    "ppt": "a legacy PowerPoint presentation (ppt)",
    "msg": "an Outlook message (msg)",
    "odf": "an OpenDocument file",
    "zip": "a zip container without an office document",
    "ole": "a legacy Office container of unknown content",
    "text": "text",
    "binary": "binary data of unknown kind",
}
"""What ``detect`` can say -> words for people."""

_MAIN_PARTS = {
    b"spreadsheetml.sheet.main": "xlsx",
    b"spreadsheetml.template.main": "xlsx",
    b"ms-excel.sheet.macroEnabled.main": "xlsx",
    b"ms-excel.template.macroEnabled.main": "xlsx",
    b"ms-excel.addin.macroEnabled.main": "xlsx",
    b"ms-excel.sheet.binary.macroEnabled.main": "xlsb",
    b"wordprocessingml.document.main": "docx",
    b"wordprocessingml.template.main": "docx",
    b"ms-word.document.macroEnabled.main": "docx",
    b"ms-word.template.macroEnabledTemplate.main": "docx",
    b"presentationml.presentation.main": "pptx",
    b"presentationml.slideshow.main": "pptx",
    b"presentationml.template.main": "pptx",
    b"ms-powerpoint.presentation.macroEnabled.main": "pptx",
    b"ms-powerpoint.slideshow.macroEnabled.main": "pptx",
    b"ms-powerpoint.template.macroEnabled.main": "pptx",
}
_KNOWN_MEMBERS = {
    "xl/workbook.xml": "xlsx",
    "xl/workbook.bin": "xlsb",
    "word/document.xml": "docx",
    "ppt/presentation.xml": "pptx",
}
_STREAMS = {
    "EncryptedPackage": "encrypted",
    "__properties_version1.0": "msg",
    "WordDocument": "doc",
    "Workbook": "xls",
    "Book": "xls",
    "PowerPoint Document": "ppt",
}


def detect(data: bytes) -> str:
    """A key of ``NAMES``, or ``encrypted`` for an Office file under a password."""
    if data.startswith(b"PK\x03\x04"):
        from io import BytesIO
        from zipfile import BadZipFile, ZipFile

        try:
            with ZipFile(BytesIO(data)) as container:
                return _detect_in_zip(container)
        except (BadZipFile, OSError, ValueError, NotImplementedError, EOFError):
            return "zip"
    if data.startswith(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"):
        top = top_streams(data)
        kinds = (kind for name, kind in _STREAMS.items() if (name.lower() in top if top else _entry(name) in data))
        kind = next(kinds, "ole")
        return "encrypted" if kind == "xls" and _has_file_pass(data) else kind
    if b"%PDF-" in data[: PDF_HEADER_WITHIN + 5]:
        return "pdf"
    return "text" if _is_text(data) else "binary"


def check(data: bytes, name: str, row: Format) -> None:
    """Refuse what is not of the row's kind before its reader sees it.

    Raises:
        WrongKind: the content is of another format, which is named.
        Encrypted: an Office file under a password.
        TooLarge: a container that claims to unpack to too much.
        UnreadableDocument: the container is damaged.
    """
    if row.container == ZIP and data.startswith(b"PK\x03\x04"):
        _measure(data, name)
    found = detect(data)
    if found == "encrypted":
        raise Encrypted(name, "protected by a password", remedy="save it without a password")
    if found == row.content or (row.container == TEXT and found == "binary"):
        return  # text readers say themselves which encoding they miss
    if row.container == OLE and found == "ole":
        return
    if row.container == ZIP and found == "zip":
        raise MissingPart(name, f"no {row.content} document in the container", remedy="the file may be incomplete")
    said = name.rpartition(".")[2].lower()
    raise WrongKind(name, f"the name says {said}, the content is {NAMES[found]}", remedy=_remedy(found))


def _measure(data: bytes, name: str) -> None:
    from io import BytesIO
    from zipfile import BadZipFile, ZipFile

    try:
        members = ZipFile(BytesIO(data)).infolist()
    except (BadZipFile, OSError, ValueError, NotImplementedError, EOFError) as error:
        raise UnreadableDocument(name, f"damaged container: {brief(error)}", remedy="fetch the file again") from error
    if len(members) > MAX_MEMBERS:
        raise TooLarge(name, f"{len(members)} members in the container, {MAX_MEMBERS} are allowed")
    unpacked = sum(member.file_size for member in members)
    if unpacked > MAX_UNPACKED_BYTES:
        raise TooLarge(name, f"claims to unpack to {unpacked} bytes, {MAX_UNPACKED_BYTES} are allowed")
    for member in members:
        if member.file_size > 1_000_000 and member.file_size > MAX_RATIO * max(member.compress_size, 1):
            raise TooLarge(
                name, f"grows {member.file_size // max(member.compress_size, 1)} fold", place=member.filename
            )
    if any(member.flag_bits & 1 for member in members):
        raise Encrypted(name, "the zip container is protected by a password", remedy="save it without a password")


def _detect_in_zip(container: ZipFile) -> str:
    members = {member.filename: member for member in container.infolist()}
    types = members.get("[Content_Types].xml")
    if types is not None and types.file_size < 4_000_000:
        text = container.read(types)
        kinds = {kind for mark, kind in _MAIN_PARTS.items() if mark in text}
        if len(kinds) == 1:
            return kinds.pop()
    known = next((kind for part, kind in _KNOWN_MEMBERS.items() if part in members), None)
    if known is None:
        return "odf" if "mimetype" in members else "zip"
    return known


def _entry(name: str) -> bytes:
    """How a stream's name stands in the directory of an OLE container: UTF-16, closed by a zero."""
    return name.encode("utf-16-le") + b"\0\0"


def _has_file_pass(data: bytes) -> bool:
    """Whether one of the first records of a legacy workbook says that the others are encrypted.

    Records are a type and a length of 16 bits each, little-endian, and a body; [MS-XLS] 2.4.21 (BOF) and 2.4.117
    (FilePass, type 0x2F, before anything that is encrypted).
    """
    for first in (b"\x09\x08\x10\x00\x00\x06\x05\x00", b"\x09\x08\x08\x00\x00\x05\x05\x00"):
        at = data.find(first)
        for _ in range(8 if at >= 0 else 0):
            kind, length = data[at : at + 2], int.from_bytes(data[at + 2 : at + 4], "little")
            if kind == b"\x2f\x00":
                return True
            at += 4 + length
    return False


def _is_text(data: bytes) -> bool:
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return True
    return b"\0" not in data[:65536]


def _remedy(found: str) -> str:
    return f"rename it to .{found}" if found in ("pdf", "xlsx", "xlsb", "xls", "docx", "pptx", "msg") else ""
