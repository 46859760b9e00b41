"""read, write and edit: whole text files of the sandbox, and the rule that what is changed must have been read."""

from __future__ import annotations

import posixpath
from hashlib import sha256

from journeyman.harness.code.refusal import Refusal, absolute
from journeyman.harness.code.replacers import AmbiguousMatch, NoMatch, replaced
from journeyman.harness.code.schemas import MAX_FILE_BYTES, MAX_LINE_CHARS, MAX_OUTPUT_BYTES, MAX_READ_LINES
from journeyman.sandbox.errors import TransferFailed
from journeyman.sandbox.protocol import Sandbox

BINARY_SUFFIXES = (
    *(".zip", ".tar", ".gz", ".7z", ".jar", ".war", ".exe", ".dll", ".so", ".o", ".a", ".lib", ".obj", ".class"),
    *(".doc", ".docx", ".xls", ".xlsx", ".ppt", ".pptx", ".odt", ".ods", ".odp", ".pdf", ".bin", ".dat", ".wasm"),
    *(".pyc", ".pyo", ".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp"),
)
SAMPLE_BYTES = 4096
MAX_UNPRINTABLE = 0.3
SUGGESTIONS = 3

_KIND = 'if [ -d "$1" ]; then echo directory; elif [ -f "$1" ]; then echo file; elif [ -e "$1" ]; then echo other; fi'
_LIST = 'cd "$1" && for f in * .*; do [ "$f" = . ] || [ "$f" = .. ] || { [ -e "$f" ] || [ -L "$f" ]; } || continue; ' \
    'case "$f" in .|..) continue;; esac; if [ -d "$f" ]; then echo "$f/"; else echo "$f"; fi; done'  # fmt: skip


class Files:
    """The files of one sandbox as the policy knows them. State: the digest of what it read last of each."""

    def __init__(self, sandbox: Sandbox, root: str) -> None:
        self._sandbox, self._root = sandbox, root
        self._seen: dict[str, str] = {}

    def forget(self) -> None:
        """Nothing counts as read any more."""
        self._seen = {}

    def read(
        self, filePath: str, offset: int | None = None, limit: int | None = None, *, deadline_s: float
    ) -> str:  # fmt: skip
        """A file with numbered lines, or a directory. Raises Refusal."""
        path = absolute(self._root, filePath)
        first, most = 1 if offset is None else offset, MAX_READ_LINES if limit is None else limit
        if first < 1 or most < 1:
            raise Refusal("offset and limit count from 1")
        kind = self._kind(path, deadline_s)
        if kind == "directory":
            return self._directory(path, first, most, deadline_s)
        if kind != "file":
            raise Refusal(self._not_found(path, deadline_s))
        data = self._content(path, deadline_s)
        if _is_binary(path, data):
            raise Refusal(f"cannot read binary file {path}; a tool for its format can")
        self._seen[path] = _digest(data)
        return _numbered(path, data.decode(errors="replace"), first, most)

    def write(self, content: str, filePath: str, *, deadline_s: float) -> str:
        """Write a whole file. Raises Refusal."""
        path = absolute(self._root, filePath)
        kind = self._kind(path, deadline_s)
        if kind == "directory":
            raise Refusal(f"{path} is a directory")
        if kind:
            self._check_read(path, self._content(path, deadline_s))
        self._store(path, content, deadline_s)
        lines = content.count("\n") + (not content.endswith("\n") and bool(content))
        return f"{'Replaced' if kind else 'Wrote'} {path}: {lines} lines, {len(content.encode())} bytes."

    def edit(
        self, filePath: str, oldString: str, newString: str, replaceAll: bool = False, *, deadline_s: float
    ) -> str:  # fmt: skip
        """Replace text in a file that was read; an empty oldString writes the whole file. Raises Refusal."""
        path = absolute(self._root, filePath)
        if oldString == newString:
            raise Refusal("oldString and newString are the same: nothing to change")
        kind = self._kind(path, deadline_s)
        if kind == "directory":
            raise Refusal(f"{path} is a directory")
        if not oldString:
            self.write(newString, path, deadline_s=deadline_s)
            return "Edit applied successfully."
        if not kind:
            raise Refusal(self._not_found(path, deadline_s))
        data = self._content(path, deadline_s)
        self._check_read(path, data)
        try:
            text = data.decode()
        except UnicodeDecodeError:
            raise Refusal(f"{path} is no UTF-8 text") from None
        ending = "\r\n" if "\r\n" in text else "\n"
        old, new = (word.replace("\r\n", "\n").replace("\n", ending) for word in (oldString, newString))
        try:
            changed, how = replaced(text, old, new, every=replaceAll)
        except (NoMatch, AmbiguousMatch) as error:
            raise Refusal(str(error)) from None
        self._store(path, changed, deadline_s)
        note = "" if how == "exact" else f" The text was found by its {how} form, not exactly as given."
        return f"Edit applied successfully.{note}"

    def _check_read(self, path: str, data: bytes) -> None:
        if path not in self._seen:
            raise Refusal(f"you must read {path} before you change it")
        if self._seen[path] != _digest(data):
            raise Refusal(f"{path} was changed since you read it; read it again")

    def _store(self, path: str, text: str, deadline_s: float) -> None:
        data = text.encode(errors="replace")
        try:
            self._sandbox.upload(data, path, deadline_s=deadline_s)
        except TransferFailed as error:
            raise Refusal(f"{path} cannot be written: {error.reason}") from None
        self._seen[path] = _digest(data)

    def _content(self, path: str, deadline_s: float) -> bytes:
        try:
            return self._sandbox.download(path, deadline_s=deadline_s, max_bytes=MAX_FILE_BYTES)
        except TransferFailed as error:
            raise Refusal(f"{path} cannot be read: {error.reason}; use bash or grep for a part of it") from None

    def _kind(self, path: str, deadline_s: float) -> str:
        done = self._sandbox.exec(["/bin/sh", "-c", _KIND, "sh", path], deadline_s=deadline_s)
        return done.stdout.decode().strip()

    def _entries(self, path: str, deadline_s: float) -> list[str]:
        done = self._sandbox.exec(["/bin/sh", "-c", _LIST, "sh", path], deadline_s=deadline_s)
        return sorted(set(done.stdout.decode(errors="replace").splitlines()))

    def _directory(self, path: str, first: int, most: int, deadline_s: float) -> str:
        entries = self._entries(path, deadline_s)
        shown = entries[first - 1 : first - 1 + most]
        next_one = first + len(shown)
        note = f"({len(entries)} entries)"
        if next_one <= len(entries):
            note = f"(Showing {len(shown)} of {len(entries)} entries. Use offset={next_one} to continue.)"
        body = "\n".join([*shown, note])
        return f"<path>{path}</path>\n<type>directory</type>\n<entries>\n{body}\n</entries>"

    def _not_found(self, path: str, deadline_s: float) -> str:
        name = posixpath.basename(path).lower()
        folder = posixpath.dirname(path)
        entries = [entry.rstrip("/") for entry in self._entries(folder, deadline_s)]
        near = [entry for entry in entries if name in entry.lower() or entry.lower() in name][:SUGGESTIONS]
        if not near:
            return f"file not found: {path}"
        listed = "\n".join(posixpath.join(folder, entry) for entry in near)
        return f"file not found: {path}\n\nDid you mean one of these?\n{listed}"


def _digest(data: bytes) -> str:
    return sha256(data).hexdigest()


def _is_binary(path: str, data: bytes) -> bool:
    if posixpath.splitext(path)[1].lower() in BINARY_SUFFIXES:
        return True
    sample = data[:SAMPLE_BYTES]
    if not sample:
        return False
    odd = sum(byte < 9 or 13 < byte < 32 for byte in sample)
    return 0 in sample or odd / len(sample) > MAX_UNPRINTABLE


def _numbered(path: str, text: str, first: int, most: int) -> str:
    """Lines from ``first`` on, within the limits on lines, characters of a line, and bytes."""
    lines = text.replace("\r\n", "\n").split("\n")
    if lines and not lines[-1]:
        lines.pop()
    if first > max(1, len(lines)):
        raise Refusal(f"offset {first} is beyond the end of {path} ({len(lines)} lines)")
    shown: list[str] = []
    size = 0
    for number, line in enumerate(lines[first - 1 : first - 1 + most], start=first):
        short = (
            line if len(line) <= MAX_LINE_CHARS else f"{line[:MAX_LINE_CHARS]}... (line cut at {MAX_LINE_CHARS} chars)"
        )
        size += len(short.encode(errors="replace")) + 1
        if size > MAX_OUTPUT_BYTES:
            break
        shown.append(f"{number}: {short}")
    last = first + len(shown) - 1
    note = f"(End of file - total {len(lines)} lines)"
    if last < len(lines):
        capped = f"Output capped at {MAX_OUTPUT_BYTES // 1024} KiB. " if size > MAX_OUTPUT_BYTES else ""
        note = f"({capped}Showing lines {first}-{last} of {len(lines)}. Use offset={last + 1} to continue.)"
    body = "\n".join(shown)
    return f"<path>{path}</path>\n<type>file</type>\n<content>\n{body}\n\n{note}\n</content>"
