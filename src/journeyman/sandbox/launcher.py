"""Starts processes from one thread that lives as long as the program.

Two reasons. ``PR_SET_PDEATHSIG``, by which a sandbox dies with its owner, fires when the *thread* that started it ends.
And a cgroup-v1 thread may place itself in a group for a moment, so that the child is born there: no wrapper program and
no migration of a running process, which would take a kernel-wide lock.
"""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from typing import Any, TypeVar, cast

T = TypeVar("T")

_Answer = tuple[Any, BaseException | None]
_Job = tuple[Callable[[], Any], SimpleQueue[_Answer]]
_lock = threading.Lock()
_queue: SimpleQueue[_Job] | None = None
_is_alone = False


def _forget() -> None:
    global _queue, _lock, _is_alone
    _queue, _lock, _is_alone = None, threading.Lock(), False  # a forked child has no threads of its parent


def start_here() -> None:
    """From now on this process starts programs in its main thread, which needs no other one for it.

    For small processes whose main thread is their only one, such as that of an attempt: the memory of all threads
    counts for a moment towards the group in which a program is born.
    """
    global _is_alone
    _is_alone = True


os.register_at_fork(after_in_child=_forget)


def _serve(queue: SimpleQueue[_Job]) -> None:
    while True:
        work, answers = queue.get()
        try:
            answers.put((work(), None))
        except BaseException as error:
            answers.put((None, error))
        del work, answers  # else the last job's objects live until the next one


def on_launcher(work: Callable[[], T]) -> T:
    """Run ``work`` on the launcher thread, after whatever it is doing, and return its result (see ``start_here``).

    The thread is a daemon and no pool's worker: a pool ends its workers when the main thread is done, while other
    threads may still use their sandboxes.
    """
    global _queue
    if _is_alone and threading.current_thread() is threading.main_thread():
        return work()
    with _lock:
        if _queue is None:
            _queue = SimpleQueue()
            threading.Thread(target=_serve, args=(_queue,), name="sandbox-launcher", daemon=True).start()
    answers: SimpleQueue[_Answer] = SimpleQueue()
    _queue.put((work, answers))
    value, error = answers.get()
    if error is not None:
        raise error
    return cast("T", value)


def _write(path: str, text: bytes) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(handle, text)
    finally:
        os.close(handle)


def launch(
    argv: Sequence[str],
    *,
    executable: str,
    stdin: int,
    stdout: int,
    stderr: int,
    pass_fds: Sequence[int] = (),
    env: dict[str, str] | None = None,
    cwd: str | None = None,
    born_in: Sequence[str] = (),
    return_to: Sequence[str] = (),
    new_session: bool = False,
) -> subprocess.Popen[bytes]:
    """Start a program from the launcher thread.

    Args:
        argv: ``argv[0]`` may differ from ``executable``.
        executable: absolute path.
        stdin: file descriptor; likewise stdout and stderr.
        pass_fds: kept open under the same numbers; everything else is closed.
        env: the whole environment; empty by default.
        cwd: working directory of the program.
        born_in: cgroup-v1 ``tasks`` files of the groups the program starts in.
        return_to: ``tasks`` files of the groups that the launcher thread goes back to.
        new_session: detach from the controlling terminal.

    Raises:
        OSError: the program or a group is not there.
    """

    def start() -> subprocess.Popen[bytes]:
        try:
            for tasks in born_in:
                _write(tasks, b"0")
            return subprocess.Popen(
                list(argv),
                executable=executable,
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                pass_fds=tuple(pass_fds),
                env=env or {},
                cwd=cwd,
                start_new_session=new_session,
            )
        finally:
            if born_in:
                for tasks in return_to:
                    _write(tasks, b"0")

    return on_launcher(start)
