"""The zip container of an office file: members, part names and XML, read within limits.

Promises: a container that is damaged, encrypted, too large or of another kind is a typed error before its content is
used. XML never resolves an entity, declares a type or opens a connection.
"""

from __future__ import annotations

from posixpath import dirname, join, normpath
from typing import TYPE_CHECKING, Any

from .errors import Encrypted, TooLarge, UnreadableDocument, WrongKind

if TYPE_CHECKING:
    from zipfile import ZipFile, ZipInfo

MAX_MEMBERS = 20_000
MAX_UNPACKED_BYTES = 512_000_000
"""A container that unpacks to more is refused: it is a bomb or no office file."""
MAX_RATIO, RATIO_COUNTS_FROM_BYTES = 400, 20_000_000
"""Members above the size that shrink by more than the ratio are bombs."""
MAX_XML_BYTES = 64_000_000


def members_of(data: bytes, name: str) -> list[tuple[str, bytes, ZipInfo]]:
    """Part name without leading slash, bytes and zip entry of each member, in the container's order.

    A member whose check sum is wrong has no bytes: one damaged picture is no reason not to read the text, and XML that
    is damaged is reported where it is needed.

    Raises:
        Encrypted, WrongKind, TooLarge or UnreadableDocument.
    """
    from io import BytesIO
    from zipfile import BadZipFile, ZipFile
    from zlib import error as ZlibError

    _check_kind(data, name)
    try:
        with ZipFile(BytesIO(data)) as container:
            members = [member for member in container.infolist() if not member.is_dir()]
            _check_size(members, name)
            if any(member.flag_bits & 1 for member in members):
                raise Encrypted(name, "the members of the container are encrypted", remedy="save it without a password")
            return [(part_of(member), _unpacked(container, member), member) for member in members]
    except (BadZipFile, ZlibError, OSError, ValueError, NotImplementedError, EOFError, RuntimeError) as error:
        raise UnreadableDocument(name, f"damaged container: {str(error)[:120]}", remedy="get the file again") from error


def part_of(member: ZipInfo) -> str:
    """Name of the part that a zip entry holds."""
    return member.filename.replace("\\", "/").lstrip("/")


def relationships_part(part: str) -> str:
    """Name of the part that holds a part's relationships; the container's own for ``""``."""
    folder, _, base = part.rpartition("/")
    return f"{folder}/_rels/{base}.rels".lstrip("/")


def resolved(part: str, target: str) -> str:
    """Name of the part that a relationship of ``part`` means by its target."""
    target = target.replace("\\", "/")
    path = target.lstrip("/") if target.startswith("/") else join(dirname(part), target)
    return normpath(path).lstrip("/")


def parse_xml(data: bytes, name: str, part: str) -> Any:
    """Root element of a part. Raises TooLarge, or UnreadableDocument with the part as place."""
    from lxml import etree

    if not data:
        raise UnreadableDocument(name, "the part is empty or damaged", place=part, remedy="get the file again")
    if len(data) > MAX_XML_BYTES:
        raise TooLarge(name, f"{len(data)} bytes of XML", place=part)
    what = "a document type declaration, which office files may not have"
    if b"<!DOCTYPE" in data[:4096]:
        raise UnreadableDocument(name, what, place=part)
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False)
    try:
        root = etree.fromstring(data, parser)
    except (etree.XMLSyntaxError, ValueError) as error:
        what = f"no well-formed XML: {str(error)[:120]}"
        raise UnreadableDocument(name, what, place=part, remedy="save the file again") from error
    if root.getroottree().docinfo.internalDTD is not None:
        raise UnreadableDocument(name, what, place=part)
    return root


def _unpacked(container: ZipFile, member: ZipInfo) -> bytes:
    from zipfile import BadZipFile
    from zlib import error as ZlibError

    try:
        return container.read(member)
    except (BadZipFile, ZlibError, EOFError):
        return b""


def _check_kind(data: bytes, name: str) -> None:
    if not data:
        raise UnreadableDocument(name, "the file is empty", remedy="get the file again")
    if data.startswith(b"\xd0\xcf\x11\xe0"):
        if "EncryptedPackage".encode("utf-16-le") in data:
            raise Encrypted(name, "protected by a password", remedy="save it without a password")
        raise WrongKind(name, "a file of the formats before 2007", remedy="save it in the current format")
    if not data.startswith(b"PK"):
        raise WrongKind(name, "no office container", remedy="check the file's extension")


def _check_size(members: list[ZipInfo], name: str) -> None:
    unpacked = sum(member.file_size for member in members)
    if len(members) > MAX_MEMBERS or unpacked > MAX_UNPACKED_BYTES:
        raise TooLarge(name, f"unpacks to {unpacked} bytes in {len(members)} parts, {MAX_UNPACKED_BYTES} are allowed")
    for member in members:
        if member.file_size > RATIO_COUNTS_FROM_BYTES and member.file_size > MAX_RATIO * member.compress_size:
            raise TooLarge(name, f"a part unpacks to {member.file_size} bytes: a bomb", place=member.filename)
