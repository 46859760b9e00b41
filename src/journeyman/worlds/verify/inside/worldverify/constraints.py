"""Constraints that a text was to be written under, each checked to the letter."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from .bundle import Bundle
from .comparing import normal
from .outcome import Outcome
from .tables import full_text
from .writings import is_heading

Section = tuple[str, list[str]]
"""A heading and the paragraphs below it, up to the next heading."""

NUMBER_WORDS = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty", "twenty-one"),
    *("twenty-two", "twenty-three", "twenty-four", "twenty-five", "twenty-six", "twenty-seven", "twenty-eight"),
)


def rules(bundle: Bundle, params: dict[str, Any]) -> Outcome:
    """Constraints on the wording and the layout of a text document.

    Params: ``file``; ``rules``: list of objects with ``rule`` (a key of ``RULES``), ``section``? (a heading; the whole
    document where it is left out) and what the rule needs; ``credit``: ``all`` or ``share``.
    """
    read = sections(bundle.document(params["file"]))
    findings = []
    for rule in params["rules"]:
        if "section" in rule and not any(normal(head) == normal(rule["section"]) for head, _ in read):
            findings.append(f"{rule['rule']}: there is no heading {rule['section']!r}")
        elif problem := RULES[rule["rule"]](read, rule):
            findings.append(f"{rule['rule']}: {problem}")
    total = len(params["rules"])
    right = total - len(findings)
    score = 1.0 if not findings else right / total if params.get("credit") == "share" else 0.0
    return Outcome.of(score, f"{params['file']}: {right} of {total} constraints", findings)


def sections(document: Any) -> list[Section]:
    """The document by headings; what stands before the first one is under the heading ``""``."""
    found: list[Section] = [("", [])]
    for node in document.walk():
        text = " ".join(full_text(node).split()) if node.kind in ("paragraph", "heading", "title") else ""
        if text and is_heading(node):
            found.append((text, []))
        elif text:
            found[-1][1].append(text)
    return found if found[0][1] else found[1:]


def _paragraphs(read: Sequence[Section], rule: dict[str, Any]) -> list[str]:
    wanted = normal(rule["section"]) if "section" in rule else None
    return [one for head, texts in read for one in texts if wanted is None or normal(head) == wanted]


def _whole(read: Sequence[Section], rule: dict[str, Any]) -> str:
    if "section" in rule:
        return "\n".join(_paragraphs(read, rule))
    return "\n".join(line for head, texts in read for line in (head, *texts) if line)


def sentences_of(text: str) -> list[str]:
    """Sentences: what ends with a full stop, a question mark or an exclamation mark."""
    return [one for one in re.split(r"(?<=[.!?])\s+", text) if one.strip()]


def _headings(read: Sequence[Section], rule: dict[str, Any]) -> str:
    given = [head for head, _ in read if head]
    same = [normal(one) for one in given] == [normal(one) for one in rule["headings"]]
    return (
        "" if same and len(given) == len(read) else f"the document has {len(given)} headings: {', '.join(given)[:80]}"
    )


def _between(what: str, count: int, rule: dict[str, Any]) -> str:
    least, most = rule.get("least", 0), rule.get("most", 10**9)
    return "" if least <= count <= most else f"{count} {what}, {least} to {most} were asked for"


def _number(rule: dict[str, Any]) -> dict[str, Any]:
    return {"least": rule["count"], "most": rule["count"]}


def _every(read: Sequence[Section], rule: dict[str, Any]) -> str:
    found = (_between("words", len(one.split()), rule) for one in _paragraphs(read, rule))
    return next((one for one in found if one), "")


def _starts(read: Sequence[Section], rule: dict[str, Any]) -> str:
    given = (_paragraphs(read, rule) or [""])[0]
    return "" if given.startswith(rule["text"]) else f"begins with {given[:40]!r}"


def _ends(read: Sequence[Section], rule: dict[str, Any]) -> str:
    given = (_paragraphs(read, rule) or [""])[-1]
    return "" if given.endswith(rule["text"]) else f"ends with {given[-40:]!r}"


def _initials(read: Sequence[Section], rule: dict[str, Any]) -> str:
    given = "".join(one[0] for one in _paragraphs(read, rule))
    return "" if given.casefold() == rule["letters"].casefold() else f"the first letters are {given[:20]!r}"


def _order(read: Sequence[Section], rule: dict[str, Any]) -> str:
    """Paragraph by paragraph one of the texts, in this order, and no paragraph more."""
    given = _paragraphs(read, rule)
    if len(given) != len(rule["texts"]):
        return f"{len(given)} paragraphs, {len(rule['texts'])} were asked for"
    pairs = enumerate(zip(given, rule["texts"], strict=True), 1)
    return next((f"paragraph {n} is out of place" for n, (one, text) in pairs if not _holds(one, text)), "")


def _has_line(read: Sequence[Section], rule: dict[str, Any]) -> str:
    given = [normal(one) for one in _paragraphs(read, rule)]
    count = given.count(normal(rule["line"]))
    return "" if count == 1 else f"one line that was asked for stands there {count} times"


def _form(read: Sequence[Section], rule: dict[str, Any]) -> str:
    bad = [one for one in _paragraphs(read, rule) if not re.fullmatch(rule["pattern"], one)]
    return f"{bad[0][:60]!r} has another form" if bad else "" if _paragraphs(read, rule) else "no paragraph"


def _occurs(read: Sequence[Section], rule: dict[str, Any]) -> str:
    words = rf"(?<!\w){re.escape(normal(rule['text']))}(?!\w)"
    return _between(f"times {rule['text']!r}", len(re.findall(words, normal(_whole(read, rule)))), _number(rule))


def _lacks(read: Sequence[Section], rule: dict[str, Any]) -> str:
    text = _whole(read, rule)
    bad = [one for one in rule.get("texts", ()) if _holds(text, one)]
    bad += [one for one in rule.get("characters", "") if one in text]
    return f"says {bad[0]!r}" if bad else ""


def _holds(text: str, words: str) -> bool:
    return bool(re.search(rf"(?<!\w){re.escape(normal(words))}(?!\w)", normal(text)))


def _count_word(read: Sequence[Section], rule: dict[str, Any]) -> str:
    """The only number word is this one."""
    known = "|".join(sorted(NUMBER_WORDS, key=len, reverse=True))
    given = set(re.findall(rf"(?<![\w-])(?:{known})(?![\w-])", normal(_whole(read, rule))))
    return "" if given == {rule["word"]} else f"the number words are {', '.join(sorted(given)) or 'none'}"


RULES: dict[str, Callable[[Sequence[Section], dict[str, Any]], str]] = {
    "headings": _headings,
    "paragraphs": lambda read, rule: _between("paragraphs", len(_paragraphs(read, rule)), _number(rule)),
    "sentences": lambda read, rule: _between("sentences", len(sentences_of(_whole(read, rule))), _number(rule)),
    "words": lambda read, rule: _between("words", len(_whole(read, rule).split()), rule),
    "words of each paragraph": _every,
    "starts": _starts,
    "ends": _ends,
    "initials": _initials,
    "order": _order,
    "line": _has_line,
    "form": _form,
    "occurs": _occurs,
    "lacks": _lacks,
    "number word": _count_word,
}
"""Name of a rule -> function of the sections and the rule; what is wrong, empty for nothing."""
