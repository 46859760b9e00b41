"""Canonical zip: the same parts give the same bytes, whatever wrote them."""

from __future__ import annotations

from collections.abc import Mapping
from io import BytesIO
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

FIRST = "[Content_Types].xml"
MEMBER_TIME = (1980, 1, 1, 0, 0, 0)


def canonical_zip(parts: Mapping[str, bytes]) -> bytes:
    """Entries sorted by name behind ``[Content_Types].xml``, fixed times and permissions, one compression level."""
    buffer = BytesIO()
    with ZipFile(buffer, "w") as container:
        for name in sorted(parts, key=lambda name: (name != FIRST, name)):
            info = ZipInfo(name, MEMBER_TIME)
            info.compress_type, info.external_attr, info.create_system = ZIP_DEFLATED, 0o600 << 16, 3
            container.writestr(info, parts[name], compresslevel=6)
    return buffer.getvalue()


def unzip(data: bytes) -> dict[str, bytes]:
    """All members of a zip by name."""
    with ZipFile(BytesIO(data)) as container:
        return {name: container.read(name) for name in container.namelist()}


def rezip(data: bytes) -> bytes:
    """A zip written again canonically."""
    return canonical_zip(unzip(data))
