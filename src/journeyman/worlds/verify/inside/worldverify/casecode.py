"""The program that runs delivered code, case by case: sources come first, then one case at a time, each in a child.

Its text is given to a fresh interpreter (``programs.py``), so neither it nor the children have the grader's memory,
environment or open files. It loads the usual standard modules that the sources import, once; each case is a fork of it
in which nothing has run yet. It imports only what every interpreter has loaded at its start, or in its binary, since a
start is paid for every deliverable; it is never imported for its names.

Input: 4 bytes big-endian length and a marshalled dict, first ``{"files": name -> text}``, then per case ``{"files",
"entry", "args", "stdin", "limit_s", "most"}``. Answer per case: status as text (empty for a case that did not end in
time), a space, the sizes of output and errors, a line end, then both.
"""

import builtins
import io
import marshal
import os
import sys
import time
from importlib.machinery import ModuleSpec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import ModuleType
    from typing import Any, NoReturn

USUAL = {
    *("argparse", "bisect", "collections", "copy", "csv", "dataclasses", "datetime", "decimal", "enum", "fractions"),
    *("functools", "heapq", "io", "itertools", "json", "math", "operator", "os", "pathlib", "re", "statistics"),
    *("string", "sys", "textwrap", "typing", "unicodedata"),
}
KILL = 9
PATIENCE = 3.0


class Memory:
    """Finds and loads modules among texts; enough of a finder and a loader for the import statement."""

    def __init__(self, files: "Mapping[str, str]") -> None:
        self.files = files

    def find_spec(self, name: str, path: object = None, target: object = None) -> "ModuleSpec | None":
        """A module or a package of that name."""
        base = name.replace(".", "/")
        for file, is_package in ((base + ".py", False), (base + "/__init__.py", True)):
            if file in self.files:
                return ModuleSpec(name, self, origin=file, is_package=is_package)  # type: ignore[arg-type]
        return None

    def create_module(self, spec: ModuleSpec) -> None:
        """As usual."""

    def exec_module(self, module: "ModuleType") -> None:
        """Run its text."""
        assert module.__spec__ is not None
        text = self.files[str(module.__spec__.origin)]
        exec(compile(text, module.__name__, "exec"), module.__dict__)


def opening(files: "Mapping[str, str]", plain: "Callable[..., Any]") -> "Callable[..., Any]":
    """An ``open`` that reads the texts as if they lay in the working directory."""

    def opened(file: "Any", mode: str = "r", *args: "Any", **kwargs: "Any") -> "Any":
        name = str(file)
        if name in files and not set(mode) & set("wax+"):
            text = files[name]
            return io.BytesIO(text.encode()) if "b" in mode else io.StringIO(text, newline=kwargs.get("newline"))
        return plain(file, mode, *args, **kwargs)

    return opened


def load_usual(sources: "Mapping[str, str]") -> None:
    """Import what the sources will import anyway, before the first fork."""
    lines = [line.replace(",", " ").split() for text in sources.values() for line in text.splitlines()]
    named = {line[1] for line in lines if len(line) > 1 and line[0] in ("import", "from")}
    own = {name.partition("/")[0].removesuffix(".py") for name in sources}
    for name in sorted((named & USUAL) - own):
        __import__(name)


def run(case: "Mapping[str, Any]", sources: "Mapping[str, str]") -> "NoReturn":
    """In the child: be the program."""
    files = {**sources, **case["files"]}
    sys.meta_path.insert(0, Memory(files))
    builtins.open = io.open = opening(files, io.open)
    sys.argv = [case["entry"], *case["args"]]
    scope = {"__name__": "__main__", "__file__": case["entry"]}
    status = 0
    try:
        exec(compile(files[case["entry"]], case["entry"], "exec"), scope)
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
        if status and not isinstance(end.code, int):
            sys.stderr.write(f"{end.code}\n")
    except BaseException as error:
        sys.excepthook(type(error), error, error.__traceback__)
        status = 1
    try:
        if "threading" in sys.modules:
            sys.modules["threading"]._shutdown()
        if "atexit" in sys.modules:
            sys.modules["atexit"]._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:
        status = status or 1
    finally:
        os._exit(status & 0xFF)


def be_child(case: "Mapping[str, Any]", sources: "Mapping[str, str]", ends: "Sequence[int]") -> "NoReturn":
    """In the child: a session of its own, pipes as its standard streams, then the program."""
    os.setsid()
    for descriptor, end in enumerate(ends):
        os.dup2(end, descriptor)
    os.closerange(3, 64)
    sys.stdin, sys.stdout = stream(0, "r", "surrogateescape"), stream(1, "w", "surrogateescape")
    sys.stderr = stream(2, "w", "backslashreplace")
    run(case, sources)


def stream(descriptor: int, mode: str, errors: str) -> "Any":
    """A standard stream of the program."""
    return open(descriptor, mode, encoding="utf-8", errors=errors, closefd=False)


def watched(pid: int, given: bytes, into: int, outs: "Sequence[int]", case: "Mapping[str, Any]") -> bytes:
    """Feed a child, keep the beginning of what it says, see that it ends in time; the answer."""
    kept = {end: bytearray() for end in outs}
    started_at, status = time.monotonic(), None
    for end in (into, *outs):
        os.set_blocking(end, False)
    live = set(outs)
    pause = 0.0005
    while True:
        if into >= 0:
            given = given[written(into, given[:65536]) :] if given else given
            if not given:
                os.close(into)
                into = -1
        moved = False
        for end in tuple(live):
            data = taken(end)
            if data:
                moved = True
                kept[end] += data[: max(0, case["most"] - len(kept[end]))]
            elif data is not None:
                live.discard(end)
        if status is None:
            found, code = os.waitpid(pid, os.WNOHANG)
            status = os.waitstatus_to_exitcode(code) if found else None
        if (status is not None and not live) or is_over(pid, time.monotonic() - started_at, case["limit_s"]):
            break
        if not moved:
            time.sleep(pause)
            pause = min(0.01, pause * 1.5)
    for end in (*outs, *([into] if into >= 0 else [])):
        os.close(end)
    ended(pid, status is None)
    words = "" if status is None or live else str(status)
    out, err = (bytes(kept[end]) for end in outs)
    return b"%s %d %d\n%s%s" % (words.encode(), len(out), len(err), out, err)


def is_over(pid: int, wall_s: float, limit_s: float) -> bool:
    """Whether a case has had its time: on a busy machine a program gets up to ``PATIENCE`` times as long.

    So that the load of the grader's machine does not decide, what counts is the time it ran; who sleeps has none.
    """
    if wall_s <= limit_s:
        return False
    if wall_s > PATIENCE * limit_s:
        return True
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return True
    ran_s = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return fields[0] == b"S" or ran_s >= 0.8 * limit_s


def written(end: int, data: bytes) -> int:
    """Bytes that a pipe took; all of them where nobody reads."""
    try:
        return os.write(end, data)
    except BlockingIOError:
        return 0
    except BrokenPipeError:
        return len(data)


def taken(end: int) -> "bytes | None":
    """What a pipe holds; None for nothing yet, empty at its end."""
    try:
        return os.read(end, 1 << 16)
    except BlockingIOError:
        return None


def ended(pid: int, is_running: bool) -> None:
    """Kill what a case left, itself included."""
    for kill in (os.killpg, os.kill):
        try:  # noqa: SIM105 (contextlib takes as long to load as the whole interpreter)
            kill(pid, KILL)
        except (ProcessLookupError, PermissionError):
            pass
    if is_running:
        os.waitpid(pid, 0)


def received() -> "Any":
    """The next value of the input; None at its end."""
    head = sys.stdin.buffer.read(4)
    return marshal.loads(sys.stdin.buffer.read(int.from_bytes(head, "big"))) if len(head) == 4 else None


def main() -> None:
    """Take the sources, then serve cases until the input ends."""
    sources = received()["files"]
    load_usual(sources)
    while (case := received()) is not None:
        pipes = [os.pipe() for _ in range(3)]
        inner, outer = (pipes[0][0], pipes[1][1], pipes[2][1]), (pipes[0][1], pipes[1][0], pipes[2][0])
        pid = os.fork()
        if pid == 0:
            for end in outer:
                os.close(end)
            be_child(case, sources, inner)
        for end in inner:
            os.close(end)
        sys.stdout.buffer.write(watched(pid, case["stdin"].encode(), outer[0], outer[1:], case))
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
