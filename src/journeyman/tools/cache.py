"""Trees of documents by the sha256 of their bytes, read once by a sandboxed reader and kept in memory and on disk.

On disk: ``<sha256>.json``, canonical JSON, so the directory can be mounted read-only as ``/cache``,
and ``manifest.json`` with the digest of the reader's environment and of every tree. Trees are written without a sync;
the manifest is written durably after them and believed only where a tree still has the digest it names, so a crash
costs at most a second reading. Trees of another reader environment are not used.
"""

from __future__ import annotations

import json
import os
from collections.abc import Generator, Iterator, Mapping
from contextlib import ExitStack, closing
from pathlib import Path
from queue import SimpleQueue
from typing import Any, ClassVar

from journeyman import durable
from journeyman.cores import usable_cores
from journeyman.digest import canonical_json, sha256
from journeyman.documents.tree import Tree
from journeyman.errors import InputError, StorageError, SystemFault
from journeyman.sandbox.errors import CallKilled, CallRaised, CallTimedOut
from journeyman.sandbox.protocol import AgentEnvironment, Provider, Sandbox, SandboxSpec
from journeyman.tools.agent_environment import READER_ENTRY

MANIFEST = "manifest.json"
READ_DEADLINE_S = 60.0
"""Per request of the reader, queueing on a loaded machine included."""

DOCUMENTS_PER_BATCH = 20
BYTES_PER_BATCH = 8_000_000
"""A request ends at either bound: small enough to redo one by one, large enough to save most forks."""

READER_MEMORY_MB = 512

MAX_READERS = 4
BATCHES_PER_READER = 5
"""Fewer are not worth the start of another sandbox."""

MOST_NAMED = 8
"""Unreadable documents that an error names."""


class ReadMissing(SystemFault):
    """A tool asked for a document that the cache was never filled with.

    Args:
        file_sha256: of the document.
    """

    cause: ClassVar[str] = "tool_host_failed"

    def __init__(self, file_sha256: str) -> None:
        self.file_sha256 = file_sha256
        super().__init__(f"document {file_sha256} was never read; fill the cache before the trial")


class ReaderBroke(SystemFault):
    """The reader failed on a document in another way than calling it unreadable.

    Args:
        name: of the document.
        detail: what the sandbox said.
    """

    cause: ClassVar[str] = "tool_host_failed"

    def __init__(self, name: str, detail: str) -> None:
        self.name, self.detail = name, detail
        super().__init__(f"the reader broke on {name}: {detail}")


class ReadCache:
    """Trees by file digest.

    Args:
        directory: where trees lie; created when missing.
        provider: starts the reader's sandbox.
        environment: what the reader is; its digest keys the cache.
        label: owner of the sandbox.
        waive: limits that may stay unenforced.
    """

    def __init__(
        self,
        directory: Path,
        provider: Provider,
        environment: AgentEnvironment,
        label: str,
        *,
        waive: frozenset[str] = frozenset(),
    ) -> None:
        self.directory, self.provider, self.environment, self.label = directory, provider, environment, label
        self.waive = waive
        self._trees: dict[str, Tree | None] = {}
        self._problems: dict[str, str] = {}
        self._digests: dict[str, str] = {}
        directory.mkdir(parents=True, exist_ok=True)
        self._load_manifest()

    def tree(self, file_sha256: str) -> Tree | None:
        """The tree of a document, None if the document is unreadable. Raises ReadMissing."""
        if file_sha256 not in self._trees and not self._load(file_sha256):
            raise ReadMissing(file_sha256)
        return self._trees[file_sha256]

    def fill(self, files: Mapping[str, tuple[str, bytes]]) -> int:
        """Read what is not in the cache yet, all in one go, and make it durable.

        Args:
            files: hex sha256 -> (name or path for messages, bytes). Only the base name reaches the reader.

        Returns:
            how many documents were read now.

        Raises:
            InputError: documents of ``files`` are unreadable, the first of them named; the others are in the cache.
            ReaderBroke, SandboxFault: the machinery failed; what was read until then is in the cache.
            StorageError: the directory cannot be written.
        """
        wanted = {key: file for key, file in sorted(files.items()) if key not in self._trees and not self._load(key)}
        if wanted:
            try:
                with closing(self._read_all(list(_batches(wanted)))) as batches:
                    for answers in batches:
                        for key, answer in answers.items():
                            self._keep(key, answer)
            finally:
                self._write_manifest()
        unreadable = [f"{files[key][0]}: {self._problems[key]}" for key in sorted(files) if key in self._problems]
        if unreadable:
            more = f"; and {len(unreadable) - MOST_NAMED} more" if len(unreadable) > MOST_NAMED else ""
            raise InputError(
                f"{len(unreadable)} unreadable document{'s' if len(unreadable) != 1 else ''}",
                "; ".join(unreadable[:MOST_NAMED]) + more,
            )
        return len(wanted)

    def _read_all(self, batches: list[dict[str, tuple[str, bytes]]]) -> Generator[dict[str, Tree]]:
        """Every batch's answers in order, as soon as they are there; where there is much, by a reader per core."""
        from concurrent.futures import ThreadPoolExecutor  # with logging; attempts only look up what is there

        n_readers = max(1, min(usable_cores(), MAX_READERS, len(batches) // BATCHES_PER_READER))
        with ExitStack() as stack:
            free: SimpleQueue[Sandbox] = SimpleQueue()
            for _ in range(n_readers):
                sandbox = self.provider.create(self._spec())
                stack.callback(sandbox.destroy)
                free.put(sandbox)
            pool = stack.enter_context(ThreadPoolExecutor(n_readers, thread_name_prefix="reader"))
            stack.callback(pool.shutdown, wait=False, cancel_futures=True)

            def read(batch: dict[str, tuple[str, bytes]]) -> dict[str, Tree]:
                reader = free.get()
                try:
                    return self._read(reader, batch)
                finally:
                    free.put(reader)

            yield from pool.map(read, batches)

    def _spec(self) -> SandboxSpec:
        return SandboxSpec(
            label=self.label,
            environment=self.environment,
            entry=READER_ENTRY,
            memory_mb=READER_MEMORY_MB,
            waive=self.waive,
        )

    def _read(self, sandbox: Sandbox, batch: Mapping[str, tuple[str, bytes]]) -> dict[str, Tree]:
        """The reader's answers, ``{"unreadable": reason}`` among them; a batch that breaks is read one by one."""
        header = canonical_json([[Path(name).name, len(data)] for name, data in batch.values()])
        payload = b"\n".join([header, b"".join(data for _, data in batch.values())])
        try:
            answers = json.loads(sandbox.call(payload, deadline_s=READ_DEADLINE_S))
        except (CallRaised, CallTimedOut, CallKilled) as error:
            if len(batch) == 1:
                raise ReaderBroke(next(iter(batch.values()))[0], str(error)) from error
            return {k: answer for key, file in batch.items() for k, answer in self._read(sandbox, {key: file}).items()}
        return dict(zip(batch, answers, strict=True))

    def _keep(self, file_sha256: str, tree: Tree) -> None:
        answer = canonical_json(tree)
        path = self.directory / f"{file_sha256}.json"
        temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        try:
            temporary.write_bytes(answer)
            temporary.replace(path)
        except OSError as error:
            temporary.unlink(missing_ok=True)
            raise StorageError(str(path), f"cannot be written: {error.strerror or error}") from error
        self._digests[file_sha256] = sha256(answer)
        self._remember(file_sha256, tree)

    def _remember(self, file_sha256: str, answer: dict[str, Any]) -> None:
        if "unreadable" in answer:
            self._problems[file_sha256] = str(answer["unreadable"])
            self._trees[file_sha256] = None
        else:
            self._trees[file_sha256] = answer

    def _load(self, file_sha256: str) -> bool:
        """Take a tree from disk into memory if the manifest names it and its bytes are still those."""
        expected = self._digests.get(file_sha256)
        if expected is None:
            return False
        try:
            answer = (self.directory / f"{file_sha256}.json").read_bytes()
        except OSError:
            return False
        if sha256(answer) != expected:
            return False
        self._remember(file_sha256, json.loads(answer))
        return True

    def _load_manifest(self) -> None:
        try:
            manifest = json.loads((self.directory / MANIFEST).read_bytes())
        except (OSError, ValueError):
            return
        if isinstance(manifest, dict) and manifest.get("reader_sha256") == self.environment.digest:
            self._digests = {str(key): str(value) for key, value in manifest["trees"].items()}

    def _write_manifest(self) -> None:
        manifest = {"reader_sha256": self.environment.digest, "trees": self._digests}
        durable.write_bytes(self.directory / MANIFEST, canonical_json(manifest))


def _batches(files: Mapping[str, tuple[str, bytes]]) -> Iterator[dict[str, tuple[str, bytes]]]:
    batch: dict[str, tuple[str, bytes]] = {}
    size = 0
    for key, (name, data) in files.items():
        if batch and (len(batch) == DOCUMENTS_PER_BATCH or size + len(data) > BYTES_PER_BATCH):
            yield batch
            batch, size = {}, 0
        batch[key] = (name, data)
        size += len(data)
    if batch:
        yield batch
