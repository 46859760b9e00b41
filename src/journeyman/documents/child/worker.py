"""The child: takes one request after the other from its standard input and answers each, within its limits."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Mapping
from typing import Any, BinaryIO

from ..errors import TooLarge, UnreadableDocument
from ..tree import brief
from .columns import columns_of, document_of
from .wire import MAX_HEADER_BYTES, pack, unpack

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    Answer: TypeAlias = tuple[Any, list[bytes]]

GRACE_S = 2
"""Seconds after a request's deadline at which the kernel ends a child whose parent did not."""

RECYCLE_SHARE = 0.6
"""A child whose memory once grew beyond this share of its limit is replaced after its answer."""


def main(memory_mb: int, follow_parent: bool) -> None:
    """Serve requests until standard input ends.

    Args:
        memory_mb: limit of private memory, 0 for none.
        follow_parent: ask the kernel for a signal at the parent's death; only when the parent's main thread, which
            lives as long as the parent, started this process.
    """
    requests, answers = _private_streams()
    _limit(memory_mb)
    if follow_parent:
        _die_with_parent()
    while True:
        try:
            header, blobs = unpack(lambda size: _exactly(requests, size))
        except EOFError:
            return
        signal.alarm(int(header["deadline_s"]) + GRACE_S)
        answer, parts = _answer(header, blobs)
        answer["recycle"] = answer.get("recycle", False) or _has_grown(memory_mb)
        try:
            frame = pack(answer, parts)
            if len(frame[1]) > MAX_HEADER_BYTES:
                raise ValueError(f"{len(frame[1])} bytes, {MAX_HEADER_BYTES} are allowed")
        except (TypeError, ValueError, MemoryError, RecursionError) as error:
            fault = TooLarge(header["names"][0], f"the answer cannot be sent: {brief(error)}")
            frame = pack({"error": _error(fault), "recycle": True})
        try:
            for piece in frame:
                answers.write(piece)
            answers.flush()
        except BrokenPipeError:
            return
        signal.alarm(0)


def _answer(header: Mapping[str, Any], blobs: list[bytes]) -> tuple[dict[str, Any], list[bytes]]:
    name = header["names"][0]
    try:
        value, parts = VERBS[header["verb"]](header, blobs)
    except UnreadableDocument as error:
        return {"error": _error(error), "recycle": _is_shaken(error)}, []
    except (MemoryError, RecursionError) as error:
        return {"error": _error(TooLarge(name, f"{type(error).__name__} in the reader")), "recycle": True}, []
    except BaseException as error:  # a panic of a Rust library is no Exception
        return {"error": _error(UnreadableDocument(name, f"damaged: {brief(error)}")), "recycle": True}, []
    return {"value": value}, parts


def _read(header: Mapping[str, Any], blobs: list[bytes]) -> Answer:
    from ..opening import open_document

    return columns_of(open_document(blobs[0], header["names"][0])), []


def _edit(header: Mapping[str, Any], blobs: list[bytes]) -> Answer:
    from ..opening import edit

    edited = edit(blobs[0], header["names"][0], header["options"]["changes"])
    return edited.as_json(), [edited.data]


def _write(header: Mapping[str, Any], blobs: list[bytes]) -> Answer:
    from ..opening import write

    return None, [write(document_of(header["options"]["document"]))]


def _diff(header: Mapping[str, Any], blobs: list[bytes]) -> Answer:
    from ..opening import diff

    name_a, name_b = header["names"]
    return diff(blobs[0], blobs[1], name_a, name_b, header["options"]["allowed"]).as_json(), []


def _recalculate(header: Mapping[str, Any], blobs: list[bytes]) -> Answer:
    from ..opening import recalculate

    done = recalculate(blobs[0], header["names"][0])
    return done.as_json(), [done.data]


VERBS: dict[str, Callable[[Mapping[str, Any], list[bytes]], Answer]] = {
    "diff": _diff,
    "edit": _edit,
    "read": _read,
    "recalculate": _recalculate,
    "write": _write,
}
"""What a child can be asked: JSON header and blobs in, JSON value and blobs out."""


def _error(error: UnreadableDocument) -> dict[str, str]:
    fields = {"name": error.name, "what": error.what, "place": error.place, "remedy": error.remedy}
    return {"kind": error.kind, **{key: _plain(text) for key, text in fields.items()}}


def _plain(text: object) -> str:
    return str(text).encode("utf-8", "replace").decode("utf-8")


def _is_shaken(error: BaseException | None) -> bool:
    """Whether a panic or a lack of memory lies behind an error: what it left behind is not trusted again."""
    while error is not None:
        if isinstance(error, MemoryError | RecursionError) or not isinstance(error, Exception):
            return True
        error = error.__cause__
    return False


def _private_streams() -> tuple[BinaryIO, BinaryIO]:
    """The pipes under numbers of their own, so that a library that prints cannot disturb them."""
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1):
        os.dup2(nothing, number)
    return requests, answers


def _exactly(stream: BinaryIO, size: int) -> bytes:
    data = stream.read(size)
    if len(data) < size:
        raise EOFError
    return data


def _limit(memory_mb: int) -> None:
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if memory_mb:
        kind = resource.RLIMIT_DATA if sys.platform == "linux" else resource.RLIMIT_AS
        limit = memory_mb << 20
        try:
            resource.setrlimit(kind, (limit, limit))
        except (ValueError, OSError):
            return  # macOS refuses; the deadline still holds


def _has_grown(memory_mb: int) -> bool:
    return bool(memory_mb) and _peak_bytes() > RECYCLE_SHARE * (memory_mb << 20)


def _peak_bytes() -> int:
    """Largest resident size since this program began. Linux's ``ru_maxrss`` will not do: it counts what the parent held
    when it forked, so every child of a large parent would look grown."""
    try:
        with open("/proc/self/status", encoding="ascii", errors="replace") as status:
            return next(int(line.split()[1]) << 10 for line in status if line.startswith("VmHWM:"))
    except (OSError, StopIteration, ValueError, IndexError):
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def _die_with_parent() -> None:
    parent = os.getppid()
    if sys.platform == "linux":
        import ctypes

        pr_set_pdeathsig = 1
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it died before the kernel was asked
        os._exit(0)
