"""What texts give away: missing modules and programs, answers that are no answers, verifiers that stumbled.

Programs and interpreters report such things only in words, so here, and nowhere else, words are read. Each function
returns what it found and the line that says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from journeyman.documents.commands import COMMANDS
from journeyman.tools.workbench import WORKBENCH_MODULES

MAX_EVIDENCE = 240
"""Characters of a quoted line."""

_MODULE = re.compile(r"(?:ModuleNotFoundError: )?No module named ['\"]?(?P<name>[\w.]+)")
_PROGRAM = re.compile(
    r"(?:\b(?:ba|da|z)?sh|\.sh): (?:(?:line )?\d+: )?(?P<name>[\w./+-]+): (?:command )?not found\b"
    r"|env: ['\"‘]?(?P<env>[\w.+-]+)['\"’]?: No such file or directory"
    r"|exec(?:vp)?: ['\"]?(?P<exec>[\w./+-]+)['\"]?: (?:not found|No such file or directory)",
    re.MULTILINE,
)
_LIBRARY = re.compile(r"error while loading shared libraries: (?P<name>[\w.+-]+)")

_USUAL = (
    "awk basename cat cp cut date diff dirname echo env find grep gunzip gzip head ls mkdir mv printf pwd python "
    "python3 rm sed sh sort tail tar tee test touch tr uniq unzip wc xargs zip"
)
EXPECTED_PROGRAMS = frozenset(_USUAL.split()) | frozenset(COMMANDS)
"""Programs whose absence is the environment's fault whoever asks; any other name may be a policy's invention."""

_WORTHLESS = frozenset({"None", "null", "undefined", "nil", "NaN", "[object Object]", "{}", "[]"})
_OBJECT = re.compile(r"<[\w.]+ object at 0x[0-9a-fA-F]+>")
_BROKEN = re.compile(
    r"Traceback \(most recent call last\)|panicked at |Segmentation fault|core dumped|[Ii]nternal (?:server )?error"
    r"|NotImplementedError|\bunhandled exception\b"
)
_MAX_NO_TEXT_SHARE = 0.1
"""Control and replacement characters above this share of an answer: it is no text."""

_STUMBLED = re.compile(
    r"Traceback \(most recent call last\)|\b\w*(?:Error|Exception)\b(?:\(|: )|timed out|truth\.json|"
    r"judge (?:failed|error|unavailable)|could not be (?:read|parsed) by the (?:check|verifier)"
)


@dataclass(frozen=True)
class Symptom:
    """One thing found in a text.

    Attributes:
        subject: what it speaks of.
        evidence: the line that says so, cut to ``MAX_EVIDENCE`` characters.
    """

    subject: str
    evidence: str


def missing_dependency(text: str, *, invented: bool) -> Symptom | None:
    """A module, program or shared library that is not there.

    Args:
        text: output of programs.
        invented: names may be a policy's invention: then only modules and programs that agents can expect count.
    """
    for found in _MODULE.finditer(text):
        name = found["name"]
        if not invented or name.partition(".")[0] in WORKBENCH_MODULES:
            return Symptom(f"module {name}", quoted(text, found.start()))
    for found in _PROGRAM.finditer(text):
        name = next(group for group in found.groups() if group)
        if name.isdigit() or (invented and name not in EXPECTED_PROGRAMS):
            continue
        return Symptom(f"program {name}", quoted(text, found.start("name") if found["name"] else found.start()))
    library = _LIBRARY.search(text)
    return Symptom(f"library {library['name']}", quoted(text, library.start())) if library else None


def worthless_answer(text: str) -> Symptom | None:
    """A tool's answer that says nothing to anybody: nothing at all, ``None``, an address, a traceback, no text."""
    stripped = text.strip()
    if not stripped:
        return Symptom("an empty answer", "the answer is empty")
    if stripped in _WORTHLESS:
        return Symptom(f"the answer {stripped}", f"the whole answer is {stripped!r}")
    found = _OBJECT.search(text)
    if found:
        return Symptom("the address of an object", quoted(text, found.start()))
    found = _BROKEN.search(text)
    if found:
        return Symptom("an error of its own code", quoted(text, found.start()))
    odd = sum(1 for char in text if char == "\ufffd" or (ord(char) < 32 and char not in "\t\n\r\f"))
    if odd > _MAX_NO_TEXT_SHARE * len(text):
        return Symptom("bytes that are no text", repr(text[:80]))
    return None


def stumbled_check(explanations: Iterable[tuple[str, str]]) -> Symptom | None:
    """A check whose explanation tells of an error in the check itself; ``explanations`` are pairs (id, text)."""
    for name, text in explanations:
        found = _STUMBLED.search(text)
        if found:
            return Symptom(f"check {name}", quoted(text, found.start()))
    return None


def quoted(text: str, position: int) -> str:
    """The line around a position, cut."""
    start = text.rfind("\n", 0, position) + 1
    end = text.find("\n", position)
    line = text[start : end if end >= 0 else len(text)].strip()
    if line.startswith("Traceback"):
        rest = [part.strip() for part in text[position:].splitlines() if part.strip()]
        line = f"{line} ... {rest[-1]}"
    return line if len(line) <= MAX_EVIDENCE else f"{line[:MAX_EVIDENCE]}..."
