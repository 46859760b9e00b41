"""The files one call works on: paths as agents write them, reads, writes that are all or nothing, and what changed."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from .kinds import need_parsers

SPILL = "tool_outputs"
"""Directory below the temporary one with texts that were too long for an answer."""

MAX_FILE_BYTES = 64_000_000
"""Larger files are refused, as ``officedocs`` does."""

MAX_NAMES = 5_000
"""Files that are looked at for the nearest name."""

PREFIXES = ("/filesystem/", "/ws/")
"""How else agents name the top of the world."""


class Refused(Exception):
    """The call cannot be served; the text says why and what to do. It is an answer, not a fault."""


class Workspace:
    """The world of one call.

    Args:
        root: directory of the world's files.
        apps: directory of the state of mail, chat and calendar.
        temporary: directory for spilled texts and drawn images.
    """

    def __init__(self, root: str, apps: str = "", temporary: str = "/tmp") -> None:
        self.root = Path(root).resolve()
        self.temporary = Path(temporary)
        self.apps = Path(apps) if apps else self._found_apps()
        self.changed: list[str] = []

    def _found_apps(self) -> Path:
        for path in (self.root.parent / "apps_data", Path("/apps_data")):
            if path.is_dir():
                return path
        return self.temporary / "apps_data"  # where no state was given, and the top of the sandbox cannot be written

    def path(self, name: str) -> Path:
        """Where an agent's path points; it need not exist. Raises Refused outside the world."""
        if not isinstance(name, str) or "\0" in name:
            raise Refused(f"{name!r} is not a path")
        spilled = self.temporary / SPILL
        if Path(name).is_relative_to(spilled):
            target = Path(name).resolve()
            if target.is_relative_to(spilled.resolve()):
                return target
        text = name.strip()
        for prefix in (*PREFIXES, f"{self.root}/"):
            if text.startswith(prefix) or text == prefix.rstrip("/"):
                text = text[len(prefix) :]
                break
        target = (self.root / text.lstrip("/")).resolve()
        if target != self.root and self.root not in target.parents:
            raise Refused(f"{name} lies outside the world; give a path below /")
        return target

    def shown(self, path: Path) -> str:
        """A path as agents see it."""
        if path == self.root:
            return "/"
        return f"/{path.relative_to(self.root)}" if path.is_relative_to(self.root) else str(path)

    def file(self, name: str) -> Path:
        """An existing file. Raises Refused with the nearest names."""
        path = self.path(name)
        if path.is_dir():
            raise Refused(f"{name} is a directory; give a file, filesystem_list_files shows what it holds")
        if not path.is_file():
            raise Refused(f"no file {name}{self._near(path)}")
        return path

    def directory(self, name: str) -> Path:
        """An existing directory. Raises Refused with the nearest names."""
        path = self.path(name)
        if path.is_file():
            raise Refused(f"{name} is a file; give a directory")
        if not path.is_dir():
            raise Refused(f"no directory {name}{self._near(path)}")
        return path

    def _near(self, path: Path) -> str:
        known = [self.shown(one) for one in self.files()]
        same = [one for one in known if one.rpartition("/")[2].lower() == path.name.lower()]
        near = same[:3] or get_close_matches(self.shown(path), known, n=3, cutoff=0.5)
        return f"; did you mean {', '.join(near)}?" if near else "; filesystem_get_directory_tree shows the files"

    def files(self, below: Path | None = None) -> list[Path]:
        """Regular files below a directory in order of their paths, at most ``MAX_NAMES``; links are not followed."""
        return [Path(name) for name in self.names(below)]

    def names(self, below: Path | None = None) -> list[str]:
        """The same as texts, for those who look at many and open few."""
        found: list[str] = []
        waiting = [str(below or self.root)]
        while waiting and len(found) < MAX_NAMES:
            folders = []
            with contextlib.suppress(OSError), os.scandir(waiting.pop()) as entries:
                for entry in sorted(entries, key=lambda one: one.name):
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
                    elif not entry.is_symlink():
                        found.append(entry.path)
            waiting += reversed(folders)
        return found[:MAX_NAMES]

    def read(self, name: str) -> tuple[bytes, str]:
        """Bytes and base name of a file. Raises Refused."""
        path = self.file(name)
        try:
            size = path.stat().st_size
            if size > MAX_FILE_BYTES:
                raise Refused(f"{name} has {size} bytes, more than the {MAX_FILE_BYTES} that are read")
            return path.read_bytes(), path.name
        except OSError as error:
            raise Refused(f"{name} cannot be read: {error.strerror or error}") from error

    def write(self, path: Path, data: bytes) -> None:
        """Replace a file as a whole, with its missing directories. Raises Refused when it cannot be written."""
        temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            temporary.write_bytes(data)
            temporary.replace(path)
        except OSError as error:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise Refused(f"{self.shown(path)} cannot be written: {error.strerror or error}") from error
        self.mark(path)

    def remove(self, path: Path) -> None:
        """Delete a file. Raises Refused."""
        try:
            path.unlink()
        except OSError as error:
            raise Refused(f"{self.shown(path)} cannot be deleted: {error.strerror or error}") from error
        self.mark(path)

    def mark(self, path: Path) -> None:
        """Remember that a file changed."""
        if str(path) not in self.changed:
            self.changed.append(str(path))

    def new_file(self, directory: str, file_name: str, suffix: str) -> Path:
        """Where a new file of this kind is to lie. Raises Refused for a name that is no name."""
        name = file_name.strip()
        if not name or "/" in name or name in (".", ".."):
            raise Refused(f"{file_name!r} is not a file name; the directory is an argument of its own")
        if not name.lower().endswith(suffix):
            name += suffix
        path = self.path(f"{directory.rstrip('/')}/{name}")
        if path.is_dir():
            raise Refused(f"{self.shown(path)} is a directory")
        return path

    def keep_image(self, data: bytes, name: str) -> dict[str, Any]:
        """Facts about an image and the file in the sandbox where it now lies. Raises Refused when it is none."""
        need_parsers()
        from io import BytesIO

        from PIL import Image

        try:
            with Image.open(BytesIO(data)) as image:
                facts: dict[str, Any] = {
                    "format": image.format,
                    "width": image.width,
                    "height": image.height,
                    "mode": image.mode,
                }
                image.thumbnail((1, 1))
                facts["mean_color"] = image.convert("RGB").tobytes()[:3].hex().upper()
        except Exception as error:  # Pillow raises its own zoo
            raise Refused(f"{name} is no image that can be read: {image_problem(error)}") from error
        path = self.temporary / SPILL / f"{hashlib.sha256(data).hexdigest()[:16]}.{str(facts['format']).lower()}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return {**facts, "size_bytes": len(data), "saved_as": str(path)}


def as_text(value: Any) -> str:
    """An answer's value as the text that the policy sees."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=1, default=str)


def image_problem(error: Exception) -> str:
    """What Pillow has against an image; its own words for an unknown format show the address of a buffer."""
    return "its format is not known" if type(error).__name__ == "UnidentifiedImageError" else str(error)
