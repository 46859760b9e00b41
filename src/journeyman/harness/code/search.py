"""glob and grep with what every image has: find, stat, grep. Newest files first, bounded, absolute paths."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from fnmatch import translate

from journeyman.harness.code.refusal import Refusal, absolute
from journeyman.harness.code.schemas import MAX_LINE_CHARS, MAX_MATCHES
from journeyman.sandbox.protocol import ExecResult, Sandbox

LISTING_BYTES = 8_000_000
"""Of names or matching lines that are looked at; more are cut, and the answer says so."""

MAX_ALTERNATIVES = 1_000
INNER_SHARE = 0.8
"""Of a deadline; then the search is ended inside, and the sandbox lives on."""

_BOUNDED = 'n=$1; shift; command -v timeout >/dev/null 2>&1 && exec timeout -k 1 "$n" "$@"; exec "$@"'
_FIND = 'find "$1" -name .git -prune -o -type f -exec stat -c "%Y %n" {} +'
_MATCH = re.compile(r"(?P<path>.*?):(?P<line>\d+):(?P<text>.*)")


def glob(sandbox: Sandbox, root: str, pattern: str, path: str | None, deadline_s: float) -> str:
    """Files whose path below ``path`` fits the pattern, newest first. Raises Refusal."""
    base = absolute(root, path or root)
    fits = glob_matcher(pattern)
    done = _run(sandbox, ["/bin/sh", "-c", _FIND, "sh", base], deadline_s)
    if done.return_code and not done.stdout:
        raise Refusal(f"no directory {base}")
    found = []
    for line in done.stdout.decode(errors="surrogateescape").splitlines():
        changed_at, _, name = line.partition(" ")
        if changed_at.isdigit() and fits(name.removeprefix(base).lstrip("/")):
            found.append((-int(changed_at), name))
    if not found:
        return "No files found"
    names = [name for _, name in sorted(found)[:MAX_MATCHES]]
    is_cut = len(found) > MAX_MATCHES or done.omitted_bytes > 0
    note = [f"\n(Showing {len(names)} files; there are more. Use a narrower path or pattern.)"] if is_cut else []
    return _printable("\n".join([*names, *note]))


def grep(
    sandbox: Sandbox, root: str, pattern: str, path: str | None, include: str | None, deadline_s: float
) -> str:  # fmt: skip
    """Lines that fit a regular expression, grouped by file, newest file first. Raises Refusal."""
    base = absolute(root, path or root)
    names = [f"--include={name}" for name in braces(include)] if include else []
    for dialect in ("-P", "-E"):  # Perl's dialect where grep has it: nearest to what ripgrep reads
        words = ["grep", "-rnHI", dialect, "--exclude-dir=.git", *names, "-e", pattern, base]
        done = _run(sandbox, words, deadline_s)
        if done.return_code < 2 or done.stdout:
            break
    else:
        raise Refusal(f"grep: {done.stderr.decode(errors='replace').strip()[:500]}")
    matches = [m for m in map(_MATCH.fullmatch, done.stdout.decode(errors="surrogateescape").splitlines()) if m]
    if not matches:
        return "No files found"
    files = dict.fromkeys(match["path"] for match in matches)
    order = {name: rank for rank, name in enumerate(_newest_first(sandbox, list(files), deadline_s))}
    matches.sort(key=lambda match: order.get(match["path"], len(order)))
    is_cut = len(matches) > MAX_MATCHES or done.omitted_bytes > 0
    lines = [f"Found {len(matches)} matches"]
    last = ""
    for match in matches[:MAX_MATCHES]:
        if match["path"] != last:
            last = match["path"]
            lines.append(f"{last}:" if len(lines) == 1 else f"\n{last}:")
        text = match["text"]
        lines.append(f"  Line {match['line']}: {text[:MAX_LINE_CHARS]}{'...' if len(text) > MAX_LINE_CHARS else ''}")
    if is_cut:
        lines.append(f"\n(Showing the first {MAX_MATCHES}. Use a narrower path, pattern or include.)")
    return _printable("\n".join(lines))


def braces(pattern: str) -> list[str]:
    """``*.{csv,txt}`` as ``*.csv`` and ``*.txt``. Raises Refusal for more than ``MAX_ALTERNATIVES``."""
    found = [pattern]
    while match := next(filter(None, (re.search(r"\{([^{}]*)\}", word) for word in found)), None):
        group = match.group()
        found = [word.replace(group, choice, 1) for word in found for choice in match[1].split(",")]
        found = list(dict.fromkeys(found))
        if len(found) > MAX_ALTERNATIVES:
            raise Refusal(f"pattern {pattern!r} means more than {MAX_ALTERNATIVES} patterns")
    return found


def glob_matcher(pattern: str) -> Callable[[str], bool]:
    """A pattern as ripgrep reads it: ``*`` within a name, ``**`` across directories, no slash means any directory.

    Takes time linear in names and pattern, whatever the policy writes. Raises Refusal for an empty pattern.
    """
    if not pattern:
        raise Refusal("pattern is empty")
    choices = []
    for word in braces(pattern):
        names = word.strip("/").split("/")
        names = names if "/" in word else ["**", *names]
        names = [*names, "*"] if names[-1] == "**" else names
        choices.append([None if name == "**" else re.compile(translate(name)) for name in names])
    return lambda path: any(_fits(names, path.split("/")) for names in choices)


def _fits(pattern: Sequence[re.Pattern[str] | None], names: Sequence[str]) -> bool:
    """Whether the names of a path fit; None stands for any number of directories."""
    reached = {0}
    for name in names:
        following = set()
        for at in reached:
            skipped = at
            while skipped < len(pattern) and pattern[skipped] is None:
                following.add(skipped)
                skipped += 1
            matcher = pattern[skipped] if skipped < len(pattern) else None
            if matcher is not None and matcher.match(name):
                following.add(skipped + 1)
        reached = following
        if not reached:
            return False
    return len(pattern) in reached


def _newest_first(sandbox: Sandbox, paths: Sequence[str], deadline_s: float) -> list[str]:
    some = list(paths)[: 10 * MAX_MATCHES]
    done = _run(sandbox, ["stat", "-c", "%Y %n", *some], deadline_s)
    stamped = [line.partition(" ") for line in done.stdout.decode(errors="surrogateescape").splitlines()]
    return [name for _, name in sorted((-int(at), name) for at, _, name in stamped if at.isdigit())]


def _run(sandbox: Sandbox, argv: Sequence[str], deadline_s: float) -> ExecResult:
    """Run a search that ends by itself before the deadline: a slow pattern is the policy's affair. Raises Refusal."""
    if any("\0" in word for word in argv):
        raise Refusal("an argument holds a NUL byte")
    limit_s = INNER_SHARE * deadline_s
    bounded = ["/bin/sh", "-c", _BOUNDED, "sh", f"{limit_s:g}", *argv]
    done = sandbox.exec(bounded, deadline_s=deadline_s, max_output_bytes=LISTING_BYTES)
    if done.return_code in (124, 137) and done.elapsed_s >= limit_s:
        raise Refusal(f"the search did not end within {limit_s:g} s; use a simpler pattern or a narrower path")
    return done


def _printable(text: str) -> str:
    """Names that are no UTF-8 with replacement characters."""
    return text.encode(errors="surrogateescape").decode(errors="replace")
