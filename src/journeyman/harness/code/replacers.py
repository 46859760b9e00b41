"""Finding the text an edit means: exactly, then by ever looser forms. The first form that finds it once decides.

Each finder yields passages that really stand in the content; what is replaced is always such a passage.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from difflib import SequenceMatcher

Finder = Callable[[str, str], Iterator[str]]

MIN_ANCHORED = 0.3
"""Similarity of the lines between two anchors, where several blocks have the same anchors."""


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


def _blocks(content: str, size: int) -> Iterator[list[str]]:
    lines = content.split("\n")
    for start in range(len(lines) - size + 1):
        yield lines[start : start + size]


def _lines_of(old: str) -> list[str]:
    lines = old.split("\n")
    return lines[:-1] if len(lines) > 1 and not lines[-1] else lines


def _line_trimmed(content: str, old: str) -> Iterator[str]:
    """Every line equal but for the white space around it."""
    wanted = [line.strip() for line in _lines_of(old)]
    for block in _blocks(content, len(wanted)):
        if [line.strip() for line in block] == wanted:
            yield "\n".join(block)


def _block_anchor(content: str, old: str) -> Iterator[str]:
    """First and last line equal; of several such blocks the one whose middle is most alike."""
    wanted = [line.strip() for line in _lines_of(old)]
    if len(wanted) < 3:
        return
    lines = content.split("\n")
    bare = [line.strip() for line in lines]
    found: list[tuple[int, int]] = []
    for start, line in enumerate(bare):
        if line == wanted[0]:
            end = next((at for at in range(start + 2, len(bare)) if bare[at] == wanted[-1]), None)
            if end is not None:
                found.append((start, end))
    if not found:
        return
    scored = [(_alike(bare[start + 1 : end], wanted[1:-1]), start, end) for start, end in found]
    score, start, end = max(scored, key=lambda entry: entry[0])
    if len(found) == 1 or score >= MIN_ANCHORED:
        yield "\n".join(lines[start : end + 1])


def _alike(left: list[str], right: list[str]) -> float:
    """Mean similarity of the lines both have, 1 when there is none to compare."""
    ratios = [SequenceMatcher(None, a, b, autojunk=False).ratio() for a, b in zip(left, right, strict=False)]
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
    for block in _blocks(content, len(wanted)):
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
    wanted = [line.strip() for line in _lines_of(old)]
    if len(wanted) < 3:
        return
    middle = [line for line in wanted[1:-1] if line]
    for block in _blocks(content, len(wanted)):
        bare = [line.strip() for line in block]
        if (bare[0], bare[-1]) != (wanted[0], wanted[-1]):
            continue
        equal = sum(a == b for a, b in zip(bare[1:-1], wanted[1:-1], strict=True) if b)
        if 2 * equal >= len(middle):
            yield "\n".join(block)


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
