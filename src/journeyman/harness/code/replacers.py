"""Finding the text an edit means: exactly, then by ever looser forms. The first form that finds it once decides.

Each finder yields passages that really stand in the content; what is replaced is always such a passage.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator
from difflib import SequenceMatcher

Finder = Callable[[str, str], Iterator[str]]

MIN_ANCHORED = 0.3
"""Similarity of the lines between two anchors, where several blocks have the same anchors."""


MAX_ANCHORED = 200
"""Blocks with the same anchors that are compared."""

MAX_COMPARED = 500
"""Lines of a block, and characters of a line, that are compared."""


class NoMatch(ValueError):
    """Nothing in the content is what was meant."""

    def __init__(self) -> None:
        super().__init__("oldString not found in content")


class AmbiguousMatch(ValueError):
    """More than one passage could be meant."""

    def __init__(self) -> None:
        super().__init__(
            "Found multiple matches for oldString. Provide more surrounding lines in oldString to identify the one "
            "you mean, or set replaceAll."
        )


def replaced(content: str, old: str, new: str, *, every: bool) -> tuple[str, str]:
    """The content with ``old`` replaced by ``new``, and the name of the finder that found it.

    Raises:
        NoMatch, AmbiguousMatch: see there.
    """
    is_found = False
    for name, finder in FINDERS.items():
        for passage in finder(content, old):
            at = content.find(passage)
            if at < 0 or not passage:
                continue
            is_found = True
            if every:
                return content.replace(passage, new), name
            if content.rfind(passage) == at:
                return content[:at] + new + content[at + len(passage) :], name
    raise AmbiguousMatch if is_found else NoMatch


def _exact(content: str, old: str) -> Iterator[str]:
    yield old


def _lines_of(old: str) -> list[str]:
    lines = old.split("\n")
    return lines[:-1] if len(lines) > 1 and not lines[-1] else lines


def _stripped(lines: list[str]) -> list[str]:
    return [line.strip() for line in lines]


def _equal_blocks(content: str, wanted: list[str]) -> Iterator[list[str]]:
    """Blocks of whole lines that are equal to ``wanted`` but for the white space around each line."""
    lines = content.split("\n")
    bare, target = _stripped(lines), _stripped(wanted)
    for start in range(len(lines) - len(wanted) + 1):
        if bare[start] == target[0] and bare[start : start + len(target)] == target:
            yield lines[start : start + len(target)]


def _line_trimmed(content: str, old: str) -> Iterator[str]:
    """Every line equal but for the white space around it."""
    yield from ("\n".join(block) for block in _equal_blocks(content, _lines_of(old)))


def _block_anchor(content: str, old: str) -> Iterator[str]:
    """First and last line equal; of several such blocks the one whose middle is most alike."""
    wanted = _stripped(_lines_of(old))
    if len(wanted) < 3:
        return
    lines = content.split("\n")
    bare = _stripped(lines)
    ends = [at for at, line in enumerate(bare) if line == wanted[-1]]
    found: list[tuple[int, int]] = []
    for start, line in enumerate(bare):
        place = bisect_left(ends, start + 2)
        if line == wanted[0] and place < len(ends) and len(found) < MAX_ANCHORED:
            found.append((start, ends[place]))
    if not found:
        return
    scored = [(_alike(bare[start + 1 : end], wanted[1:-1]), start, end) for start, end in found]
    score, start, end = max(scored, key=lambda entry: entry[0])
    if len(found) == 1 or score >= MIN_ANCHORED:
        yield "\n".join(lines[start : end + 1])


def _alike(left: list[str], right: list[str]) -> float:
    """Mean similarity of the lines both have, 1 when there is none to compare."""
    pairs = zip(left[:MAX_COMPARED], right[:MAX_COMPARED], strict=False)
    ratios = [SequenceMatcher(None, a[:MAX_COMPARED], b[:MAX_COMPARED], autojunk=False).ratio() for a, b in pairs]
    return sum(ratios) / len(ratios) if ratios else 1.0


def _whitespace_normalised(content: str, old: str) -> Iterator[str]:
    """Any white space counts as one blank, also across lines."""
    words = old.split()
    if words:
        pattern = r"\s+".join(re.escape(word) for word in words)
        yield from (match.group() for match in re.finditer(pattern, content))


def _indentation_flexible(content: str, old: str) -> Iterator[str]:
    """Equal once the smallest indentation is taken from both."""
    wanted = _undented(old.split("\n"))
    for block in _equal_blocks(content, wanted):
        if _undented(block) == wanted:
            yield "\n".join(block)


def _undented(lines: list[str]) -> list[str]:
    depths = [len(line) - len(line.lstrip()) for line in lines if line.strip()]
    depth = min(depths, default=0)
    return [line[depth:] if line.strip() else line for line in lines]


_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "'": "'", '"': '"', "`": "`", "\\": "\\", "\n": "\n", "$": "$"}


def _escape_normalised(content: str, old: str) -> Iterator[str]:
    r"""Escapes such as ``\n`` written out count as what they mean."""
    meant = re.sub(r"\\([ntr'\"`\\\n$])", lambda match: _ESCAPES[match[1]], old)
    if meant != old:
        yield meant


def _trimmed_boundary(content: str, old: str) -> Iterator[str]:
    """Without the white space at both ends."""
    bare = old.strip()
    if bare != old:
        yield bare


def _context_aware(content: str, old: str) -> Iterator[str]:
    """As many lines, the same first and last, and at least half of the others equal."""
    wanted = _stripped(_lines_of(old))
    if len(wanted) < 3:
        return
    lines = content.split("\n")
    bare = _stripped(lines)
    num_filled = sum(map(bool, wanted[1:-1]))
    for start in range(len(lines) - len(wanted) + 1):
        end = start + len(wanted)
        if (bare[start], bare[end - 1]) != (wanted[0], wanted[-1]):
            continue
        equal = sum(a == b for a, b in zip(bare[start + 1 : end - 1], wanted[1:-1], strict=True) if b)
        if 2 * equal >= num_filled:
            yield "\n".join(lines[start:end])


FINDERS: dict[str, Finder] = {
    "exact": _exact,
    "line-trimmed": _line_trimmed,
    "block-anchor": _block_anchor,
    "whitespace-normalised": _whitespace_normalised,
    "indentation-flexible": _indentation_flexible,
    "escape-normalised": _escape_normalised,
    "trimmed-boundary": _trimmed_boundary,
    "context-aware": _context_aware,
}
"""Name -> finder, from strict to loose."""
