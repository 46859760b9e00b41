"""bash: one command in a process group of its own, both streams in one, the end of a long output and a file with all.

The output goes to a file inside from the start, so what a command wrote before its time ran out is never lost and no
output, however long, passes through this process.
"""

from __future__ import annotations

from itertools import count

from journeyman.harness.code.refusal import Refusal, absolute
from journeyman.harness.code.schemas import DEFAULT_TIMEOUT_MS, MAX_OUTPUT_BYTES, MAX_OUTPUT_LINES, MAX_TIMEOUT_MS
from journeyman.sandbox.errors import ExecTimeout
from journeyman.sandbox.protocol import Sandbox

KILL_AFTER_S = 0.2
"""Between SIGTERM and SIGKILL."""

GRACE_S = 5.0
"""Beyond a command's own limit; then the sandbox kills everything in it."""

LOOK_S = 30.0
"""For reading an output that lies there."""

# $1 file for all output, $2 seconds, $3 command. `timeout` leads a process group and ends the whole of it.
_RUN = f"""
mkdir -p "${{1%/*}}" || exit 125
shell=sh; command -v bash >/dev/null 2>&1 && shell=bash
exec >"$1" 2>&1 </dev/null
if command -v timeout >/dev/null 2>&1; then exec timeout -k {KILL_AFTER_S} "$2" "$shell" -c "$3"; fi
exec "$shell" -c "$3"
"""
# First line: bytes and lines of the file $1; then its last $2 bytes.
_LOOK = '[ -f "$1" ] || exit 1; wc -c <"$1"; wc -l <"$1"; tail -c "$2" "$1"'


class Bash:
    """Runs commands in one sandbox. State: how many outputs were kept."""

    def __init__(self, sandbox: Sandbox, root: str, spill_directory: str) -> None:
        self._sandbox, self._root, self._directory = sandbox, root, spill_directory
        self._number = count(1)

    def run(
        self, command: str, description: str = "", timeout: int | None = None, workdir: str | None = None,
        *, deadline_s: float,
    ) -> str:  # fmt: skip
        """The output of a command as OpenCode shows it.

        Args:
            timeout: milliseconds; never more than ``MAX_TIMEOUT_MS`` and ``deadline_s``.

        Raises:
            Refusal: the limit is not positive, or there is no such directory.
            SystemFault: the sandbox is gone, or the command could not be killed within its limit and ``GRACE_S``.
        """
        limit_ms = DEFAULT_TIMEOUT_MS if timeout is None else timeout
        if limit_ms <= 0:
            raise Refusal(f"timeout must be a positive number of milliseconds, got {limit_ms}")
        limit_s = min(limit_ms, MAX_TIMEOUT_MS, deadline_s * 1000) / 1000
        if "\0" in command:
            raise Refusal("a command holds no NUL bytes")
        where = absolute(self._root, workdir or self._root)
        file = f"{self._directory}/bash-{next(self._number):04d}.txt"
        argv = ["/bin/sh", "-c", f'cd "$4" || exit 126\n{_RUN}', "sh", file, f"{limit_s:g}", command, where]
        timed_out = False
        try:
            done = self._sandbox.exec(argv, deadline_s=limit_s + GRACE_S)
            status, elapsed_s = done.return_code, done.elapsed_s
            timed_out = status in (124, 137) and elapsed_s >= limit_s
        except ExecTimeout:  # a process that left its group
            timed_out, status = True, 124
        if status == 126 and not timed_out and self._is_missing(where):
            raise Refusal(f"no directory {where}")
        text = self._shown(file)
        if timed_out:
            return f"{text}\n\n(Command timed out after {limit_s * 1000:.0f} ms)"
        return f"{text}\n\n(exit status {status})" if status else text or "(no output)"

    def _is_missing(self, directory: str) -> bool:
        return self._sandbox.exec(["test", "-d", directory], deadline_s=LOOK_S).return_code != 0

    def _shown(self, file: str) -> str:
        """The end of an output within the limits, and what was left out."""
        look = ["/bin/sh", "-c", _LOOK, "sh", file, str(MAX_OUTPUT_BYTES)]
        found = self._sandbox.exec(look, deadline_s=LOOK_S, max_output_bytes=MAX_OUTPUT_BYTES + 200)
        size, _, rest = found.stdout.partition(b"\n")
        lines, _, body = rest.partition(b"\n")
        if not size.strip().isdigit() or not lines.strip().isdigit():
            return ""
        n_bytes, n_lines = int(size), int(lines)
        if n_bytes <= MAX_OUTPUT_BYTES and n_lines <= MAX_OUTPUT_LINES:
            return body.decode(errors="replace").rstrip("\n")
        text = body.decode("utf-8", "ignore")
        kept = text.split("\n")[-(MAX_OUTPUT_LINES + 1) :]
        if n_bytes > MAX_OUTPUT_BYTES and len(kept) > 1:
            kept = kept[1:]  # the first one was cut in its middle
        tail = "\n".join(kept).rstrip("\n")
        note = (
            f"(Output was cut: {n_lines} lines, {n_bytes} bytes in all; only the end is shown. All of it is in {file}: "
            "use grep on that file, or read with offset and limit.)"
        )
        return f"{note}\n\n{tail}"
