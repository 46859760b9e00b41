"""Zip archives of strangers, unpacked: names that leave, links, doubled names and bombs are refused before any use."""

from __future__ import annotations

import stat
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from journeyman.errors import InputError

CHUNK = 1 << 20


@dataclass(frozen=True)
class ZipLimits:
    """What an archive may become.

    Attributes:
        files: members.
        total_bytes: all of them together, unpacked.
        ratio: growth of the archive as a whole, and of any member above 10 MB; deflate reaches 1,032.
    """

    files: int = 100_000
    total_bytes: int = 8_000_000_000
    ratio: float = 200.0


RATIO_MATTERS_FROM = 10_000_000


def unpack(archive: Path, target: Path, limits: ZipLimits | None = None) -> list[str]:
    """Unpack ``archive`` below ``target``; returns the names of its files.

    Every name is checked before the first byte is written, and what is written is counted: a header that lies about a
    size gains nothing.

    Raises:
        InputError: no zip archive; a name that is absolute, leaves the target, holds a backslash or occurs twice; a
            link or another special file; an encrypted member; more files, bytes or growth than ``limits`` allow.
    """
    limits = limits or ZipLimits()
    try:
        with zipfile.ZipFile(archive) as opened:
            members = _checked(archive, opened.infolist(), limits)
            written = 0
            for name, member in members.items():
                path = target / name
                path.parent.mkdir(parents=True, exist_ok=True)
                written += _copy(archive, opened, member, path, limits.total_bytes - written)
            return list(members)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError) as error:
        raise InputError(str(archive), f"is no readable zip archive: {error}") from error
    except FileNotFoundError as error:
        raise InputError(str(archive), "is missing") from error


def _checked(archive: Path, infos: list[zipfile.ZipInfo], limits: ZipLimits) -> dict[str, zipfile.ZipInfo]:
    """The files among the members, by name."""
    where = str(archive)
    if len(infos) > limits.files:
        raise InputError(where, f"has {len(infos)} members", allowed=f"at most {limits.files}")
    found: dict[str, zipfile.ZipInfo] = {}
    for info in infos:
        name = info.filename
        kind = stat.S_IFMT(info.external_attr >> 16)
        if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
            raise InputError(where, f"{name!r} is a link or a special file")
        path = PurePosixPath(name)
        drive = len(name) > 1 and name[1] == ":"
        if (
            path.is_absolute()
            or ".." in path.parts
            or "\\" in info.orig_filename
            or "\0" in info.orig_filename
            or drive
        ):
            raise InputError(where, f"{name!r} leaves the place it is unpacked in")
        if info.is_dir():
            continue
        if info.flag_bits & 1:
            raise InputError(where, f"{name!r} is encrypted")
        if not path.parts or path.as_posix() in found:
            raise InputError(where, f"{name!r} occurs twice")
        if info.file_size > RATIO_MATTERS_FROM and info.file_size > limits.ratio * max(info.compress_size, 1):
            raise InputError(where, f"{name!r} claims to grow {info.file_size / max(info.compress_size, 1):.0f} times")
        found[path.as_posix()] = info
    total = sum(info.file_size for info in found.values())
    growth = total / max(archive.stat().st_size, 1)
    if total > limits.total_bytes or (total > RATIO_MATTERS_FROM and growth > limits.ratio):
        raise InputError(where, f"claims to unpack to {total} bytes, {growth:.0f} times its size")
    return found


def _copy(archive: Path, opened: zipfile.ZipFile, member: zipfile.ZipInfo, path: Path, room: int) -> int:
    """Write one member; returns its bytes."""
    written = 0
    with opened.open(member) as source, path.open("wb") as sink:
        while chunk := source.read(CHUNK):
            written += len(chunk)
            if written > min(room, member.file_size):
                raise InputError(str(archive), f"{member.filename!r} is longer than it says")
            sink.write(chunk)
    return written
