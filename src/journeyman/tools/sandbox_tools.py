"""The default tools of a trial: everything in ``SURFACE``, run inside the trial's own sandbox."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from journeyman.digest import sha256
from journeyman.documents.node import nearest_of
from journeyman.sandbox.errors import TransferFailed
from journeyman.sandbox.protocol import Sandbox
from journeyman.tools.checking import fitted
from journeyman.tools.hosts import Died, FrameHost, ShellHost, ToolDeadline, ToolHost, ToolHostFailed
from journeyman.tools.observations import ObservationCache
from journeyman.tools.protocol import Observation
from journeyman.tools.shell_code import RAW_PYTHON, is_raw_python, run_shell
from journeyman.tools.surface import INSIDE_SERVERS, WEB_SERVERS, ToolSpec, specs_of
from journeyman.tools.toolset import ToolSet

MAX_CHARS = 20_000
"""Characters of an observation; of a longer text the beginning and the end are shown, the rest lies in a file."""

INSIDE_SHARE = 0.8
"""Part of a call's deadline after which the child inside gives up, so that a slow file is an answer and no fault."""

SPILL_DIRECTORY = "/tmp/tool_outputs"


class SandboxTools:
    """Implements ``ToolSet``. Not shared between threads.

    Args:
        sandbox: with the environment of ``workbench.tools_environment``, serving a shell or ``WORKTOOLS_ENTRY``.
        servers: which servers are offered, in the order of ``SURFACE``.
        reads: answers of pure tools that are already known; None keeps none.
        files: path from the top of the world -> sha256 of the world's files as they are mounted. With it, a known
            answer about a file is given without asking the sandbox, until the first call that may change something.
        web: serves the servers ``web`` and ``academic`` from outside the sandbox; needed when they are offered.
        shares_sandbox: others run code in this sandbox too (a terminal, a code harness). Then, as after the first
            ``code_exec``, no answer is kept for other trials, and a program that was broken is an answer and no
            fault: otherwise a policy could escape its grade by killing it.
        serves_frames: the sandbox answers ``call`` and not ``exec``.
        root: the world's directory inside.
        apps: directory inside with the state of mail, chat and calendar; "" for the usual places.
        max_chars: bound of an observation.

    Raises:
        InputError: a server does not exist. ValueError: ``web`` is missing.
    """

    def __init__(
        self,
        sandbox: Sandbox,
        servers: Sequence[str] = INSIDE_SERVERS,
        reads: ObservationCache | None = None,
        *,
        files: Mapping[str, str] | None = None,
        web: ToolSet | None = None,
        shares_sandbox: bool = False,
        serves_frames: bool = False,
        root: str = "/ws",
        apps: str = "",
        max_chars: int = MAX_CHARS,
    ) -> None:
        if web is None and any(server in WEB_SERVERS for server in servers):
            raise ValueError(f"servers {', '.join(WEB_SERVERS)} need web=, which visits pages from outside the sandbox")
        self.sandbox, self.reads, self.root, self.max_chars = sandbox, reads, root, max_chars
        self._specs = specs_of(servers)
        self._web = web
        self._serves_frames = serves_frames
        self._base = {"root": root, "apps": apps} if serves_frames else {}
        self._host: ToolHost = FrameHost(sandbox) if serves_frames else ShellHost(sandbox, root, apps)
        self._digests: dict[str, str] = {}  # path from the top of the world -> digest, while nothing has changed
        self._digests.update({_from_top(path): digest for path, digest in (files or {}).items()})
        self._known: dict[str, dict[str, str]] = {}  # tool and arguments -> digest -> key of a kept answer
        self._is_clean = not shares_sandbox

    @property
    def schemas(self) -> Mapping[str, Mapping[str, Any]]:
        """See ``ToolSet.schemas``."""
        return {name: spec.schema for name, spec in self._specs.items()}

    @property
    def descriptions(self) -> Mapping[str, str]:
        """See ``ToolSet.descriptions``."""
        return {name: spec.description for name, spec in self._specs.items()}

    @property
    def contracts(self) -> Mapping[str, str]:
        """Name -> contract, for whoever repeats calls."""
        return {name: spec.contract for name, spec in self._specs.items()}

    def call(self, name: str, arguments: Mapping[str, Any], *, deadline_s: float = 60.0) -> Observation:
        """See ``ToolSet.call``."""
        started = time.monotonic()
        spec = self._specs.get(name)
        if spec is None:
            return Observation(self._unknown(name), is_error=True)
        fit, problems = fitted(arguments, spec.schema)
        if problems:
            return Observation(f"error: {name}: {'; '.join(problems)}", is_error=True)
        text, is_error, spill = self._run(spec, fit, deadline_s)
        return Observation(text, is_error, spill=spill, elapsed_s=time.monotonic() - started)

    def close(self) -> None:
        """See ``ToolSet.close``. The sandbox belongs to whoever made it."""
        self._digests.clear()
        if self._web is not None:
            self._web.close()

    def _unknown(self, name: str) -> str:
        near = nearest_of(name, self._specs)
        hint = f"did you mean {', '.join(near)}?" if near else f"there are {', '.join(self._specs)}"
        return f"error: no tool {name!r}; {hint}"

    def _run(self, spec: ToolSpec, arguments: dict[str, Any], deadline_s: float) -> tuple[str, bool, str | None]:
        if spec.server in WEB_SERVERS and self._web is not None:
            seen = self._web.call(spec.name, arguments, deadline_s=deadline_s)
            return self._spilled(seen.text, seen.is_error, deadline_s)
        if spec.name == "code_exec":
            return self._code(arguments["code"], deadline_s)
        if spec.contract == "pure" and spec.reads and self.reads is not None:
            return self._read(spec, arguments, deadline_s, self.reads)
        answer = self._ask(spec, arguments, deadline_s)
        if answer["changed"]:
            self._digests.clear()
        return answer["content"], bool(answer["is_error"]), answer.get("spill")

    def _ask(self, spec: ToolSpec, arguments: Mapping[str, Any], deadline_s: float, **more: Any) -> dict[str, Any]:
        request = {
            "tool": spec.name,
            "arguments": dict(arguments),
            "max_chars": self.max_chars,
            "deadline_s": deadline_s * INSIDE_SHARE,
            **self._base,
            **more,
        }
        try:
            is_repeatable = spec.contract != "unsafe"
            answer = self._host.ask(request, deadline_s=deadline_s, is_repeatable=is_repeatable)
        except (ToolHostFailed, ToolDeadline) as error:
            if self._is_clean:
                raise
            return {
                "content": f"error: {error}; code that runs in the sandbox may have stopped it, which starts "
                "anew with the next call",
                "is_error": True,
                "changed": [],
            }
        if isinstance(answer, Died):
            self._digests.clear()
            return {"content": _obituary(spec.name, answer.reason, deadline_s), "is_error": True, "changed": []}
        answer.setdefault("is_error", False)
        answer.setdefault("changed", [])
        return answer

    def _read(
        self, spec: ToolSpec, arguments: dict[str, Any], deadline_s: float, cache: ObservationCache
    ) -> tuple[str, bool, str | None]:
        """A pure read of one file: from the cache when the file's digest is known to be that of a kept answer."""
        path = _from_top(str(arguments[spec.reads]))
        digest = self._digests.get(path)
        if digest is not None:
            kept = cache.get(cache.key(spec.name, arguments, digest, spec.reads))
            if kept is not None:
                return kept["content"], bool(kept["is_error"]), None
        probe = sha256(repr((spec.name, sorted(arguments.items(), key=str))).encode())
        known = self._known.setdefault(probe, {})
        answer = self._ask(spec, arguments, deadline_s, reads=spec.reads, known=sorted(known))
        if "same" in answer:
            self._digests[path] = answer["same"]
            kept = cache.get(known[answer["same"]])
            if kept is not None:
                return kept["content"], bool(kept["is_error"]), None
            answer = self._ask(spec, arguments, deadline_s, reads=spec.reads)
        found = str(answer.get("sha256", ""))
        if found:
            self._digests[path] = found
            key = cache.key(spec.name, arguments, found, spec.reads)
            known[found] = key
            if self._is_clean and not answer.get("spill") and "saved_as" not in answer["content"]:
                cache.put(key, {"content": answer["content"], "is_error": answer["is_error"]})
        return answer["content"], bool(answer["is_error"]), answer.get("spill")

    def _code(self, code: str, deadline_s: float) -> tuple[str, bool, str | None]:
        if is_raw_python(code):
            return RAW_PYTHON, True, None
        self._is_clean = False  # from here on, what the sandbox says may be what this code wants it to say
        self._digests.clear()
        if self._serves_frames:
            spec = self._specs["code_exec"]
            answer = self._ask(spec, {"code": code, "deadline_s": deadline_s * INSIDE_SHARE * 0.9}, deadline_s)
            return answer["content"], bool(answer["is_error"]), answer.get("spill")
        text, is_late = run_shell(self.sandbox, code, deadline_s=deadline_s, cwd=self.root)
        return self._spilled(text, is_late, deadline_s)

    def _spilled(self, text: str, is_error: bool, deadline_s: float) -> tuple[str, bool, str | None]:
        """A text of ours within its bound, its whole in a file inside."""
        if len(text) <= self.max_chars:
            return text, is_error, None
        path: str | None = f"{SPILL_DIRECTORY}/{sha256(text.encode())[:16]}.txt"
        rest = f"the whole text lies in {path}; read on with output_read_page or sed"
        try:
            if self._serves_frames:
                raise TransferFailed(str(path), "the sandbox takes no files")
            self.sandbox.upload(text.encode(), str(path), deadline_s=deadline_s)
        except TransferFailed:
            path, rest = None, "the whole text could not be kept; ask for less"
        head = self.max_chars * 3 // 4
        tail = self.max_chars - head
        omitted = len(text) - self.max_chars
        cut = f"{text[:head]}\n[... {omitted} characters left out of {len(text)}; {rest} ...]\n{text[-tail:]}"
        return cut, is_error, path


def _from_top(path: str) -> str:
    """A path as agents write it, from the top of the world and without a leading slash."""
    for prefix in ("/filesystem/", "/ws/", "/"):
        if path.startswith(prefix):
            return path[len(prefix) :]
    return path


def _obituary(name: str, reason: str, deadline_s: float) -> str:
    if reason == "SIGALRM":
        limit_s = deadline_s * INSIDE_SHARE
        return f"error: {name} took longer than {limit_s:.0f} s and was stopped; ask for less of the file"
    if "memory" in reason or "SIGKILL" in reason:
        return f"error: {name} needed more memory than there is; the file may be hostile, ask for less of it"
    return f"error: {name} broke on this file ({reason}); the file may be damaged"
