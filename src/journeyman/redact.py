"""Keeps secrets out of what is written and shown: the values of named variables, and text that is shaped like a key.

What the policy sampled is never touched: tokens are the truth. What is redacted is text about it: events, errors,
prompts on a page, reports. A replacement says what stood there, ``[secret OPENAI_API_KEY]`` or ``[secret sk-...]``.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any
from urllib.parse import quote

#: Words in a variable's name that make its value a secret.
SECRET_NAME = re.compile(
    r"(API_?KEY|ACCESS_?KEY|SECRET|TOKEN|PASSWORD|PASSWD|CREDENTIAL|PRIVATE_?KEY|CONNECTION_STRING)s?(_\w+)?$",
    re.IGNORECASE,
)
#: A shorter value is no secret, and replacing it would tear ordinary text.
MIN_SECRET_CHARS = 8

#: Shapes of keys: what each is replaced by, and its pattern. Prefixes are public; no other text has them by accident.
SHAPES: dict[str, re.Pattern[str]] = {
    "sk-...": re.compile(r"\bsk-[A-Za-z0-9_-]{16,}"),
    "hf_...": re.compile(r"\bhf_[A-Za-z0-9]{16,}"),
    "github token": re.compile(r"\b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,})"),
    "AWS key id": re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"),
    "Google key": re.compile(r"\bAIza[A-Za-z0-9_-]{30,}"),
    "Slack token": re.compile(r"\bxox[abprs]-[A-Za-z0-9-]{10,}"),
    "JWT": re.compile(r"\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}"),
    "private key": re.compile(
        r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL
    ),
    "bearer": re.compile(r"(?<=[Bb]earer )[A-Za-z0-9._~+/=-]{12,}"),
    "password in a URL": re.compile(r"(?<=://)[^/\s:@]+:[^/\s:@]+(?=@)"),
}

#: What every text that has one of the shapes holds: most texts have none, and one look is cheaper than one for each.
_HINT = re.compile(r"sk-|hf_|gh[pousr]_|github_pat_|A[KS]IA|AIza|xox|eyJ|PRIVATE KEY|earer |://")


def secrets_of(environment: Mapping[str, str] | None = None, names: Iterable[str] = ()) -> dict[str, str]:
    """Secret value -> its name: of variables that are named, or whose name says so.

    Args:
        environment: by default the process's own.
        names: further variables, whatever they are called.
    """
    given = os.environ if environment is None else environment
    wanted = set(names)
    return {
        value: name
        for name, value in given.items()
        if len(value) >= MIN_SECRET_CHARS and (name in wanted or SECRET_NAME.search(name))
    }


class Redactor:
    """Replaces secrets in texts. Immutable; safe to share between threads.

    Args:
        secrets: values, or value -> name.
        shapes: also replace what is shaped like a key.
    """

    def __init__(self, secrets: Mapping[str, str] | Iterable[str] = (), *, shapes: bool = True) -> None:
        named = dict(secrets) if isinstance(secrets, Mapping) else dict.fromkeys(secrets, "given")
        forms: dict[str, str] = {}
        for value, name in named.items():
            if len(value) >= MIN_SECRET_CHARS:
                for form in _forms(value):
                    forms.setdefault(form, name)
        self._names = forms
        longest_first = sorted(forms, key=len, reverse=True)  # one value may be a part of another
        self._values = re.compile("|".join(map(re.escape, longest_first))) if forms else None
        self._shapes = SHAPES if shapes else {}

    @classmethod
    def of_environment(cls, names: Iterable[str] = ()) -> Redactor:
        """For the secrets that this process holds now."""
        return cls(secrets_of(names=names))

    def __call__(self, text: str) -> str:
        """``text`` without secrets."""
        if self._values is not None:
            text = self._values.sub(lambda found: f"[secret {self._names[found.group(0)]}]", text)
        if self._shapes and _HINT.search(text):
            for name, pattern in self._shapes.items():
                text = pattern.sub(f"[secret {name}]", text)
        return text

    def pieces(self, texts: Sequence[str]) -> list[str]:
        """Texts that are shown one after the other, e.g. of tokens: a secret that spans several is replaced too.

        The first piece that a secret touches carries its replacement, the others lose their part of it.
        """
        whole = "".join(texts)
        spans = self._spans(whole)
        found, start = [], 0
        for text in texts:
            end, kept, at = start + len(text), "", start
            for first, last, instead in spans:
                if last <= start or first >= end:
                    continue
                kept += whole[at : max(at, first)] + (instead if first >= start else "")
                at = min(last, end)
            found.append(kept + whole[at:end])
            start = end
        return found

    def _spans(self, text: str) -> list[tuple[int, int, str]]:
        """Where secrets stand: start, end, replacement; in order, none in another."""
        patterns = [(self._values, "")] if self._values is not None else []
        patterns += [(pattern, name) for name, pattern in self._shapes.items()]
        spans = []
        for pattern, name in patterns:
            for hit in pattern.finditer(text):
                if hit.end() > hit.start():
                    spans.append((hit.start(), hit.end(), f"[secret {name or self._names[hit.group(0)]}]"))
        apart: list[tuple[int, int, str]] = []
        for first, last, instead in sorted(spans, key=lambda span: (span[0], -span[1])):
            if apart and first < apart[-1][1]:
                apart[-1] = (apart[-1][0], max(last, apart[-1][1]), apart[-1][2])
            else:
                apart.append((first, last, instead))
        return apart

    def data(self, value: Any) -> Any:
        """JSON-able ``value`` with every text in it redacted, keys of objects too; everything else as it is.

        Most values hold no secret: one look at all their texts together says so, and they are returned themselves.
        """
        texts: list[str] = []
        if _gather(value, texts) and not self._may_change("\0".join(texts)):
            return value
        return self._cleaned(value)

    def _may_change(self, text: str) -> bool:
        has_value = self._values is not None and self._values.search(text) is not None
        return has_value or (bool(self._shapes) and _HINT.search(text) is not None)

    def _cleaned(self, value: Any) -> Any:
        if isinstance(value, str):
            return self(value)
        if isinstance(value, Mapping):
            return {self(str(key)): self._cleaned(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self._cleaned(item) for item in value]
        return value


def _gather(value: Any, texts: list[str]) -> bool:
    """Take every text in a JSON value; False where something is in it that JSON does not know."""
    kind = type(value)
    if kind is str:
        texts.append(value)
        return True
    if kind is dict:
        return all(type(key) is str and _gather(key, texts) and _gather(item, texts) for key, item in value.items())
    if kind is list:
        return all(_gather(item, texts) for item in value)
    return value is None or kind in _NUMBERS


_NUMBERS = frozenset({int, float, bool})


def process_redactor() -> Redactor:
    """The redactor for the secrets that this process holds now; made anew only when they have changed."""
    global _last
    now = getattr(os.environ, "_data", None) or dict(os.environ)  # compared as it is: decoding it costs 100 times more
    variables, redactor = _last
    if variables != now:
        redactor = _made(tuple(sorted(secrets_of().items())))
        _last = (dict(now), redactor)
    return redactor


@lru_cache(maxsize=4)
def _made(secrets: tuple[tuple[str, str], ...]) -> Redactor:
    return Redactor(dict(secrets))


_last: tuple[dict[Any, Any], Redactor] = ({}, Redactor())


#: Parts of a trial's record that are the policy's own work: graded as they are, so they stay as they are.
WORK = frozenset({"deliverables"})


def clean_record(record: Mapping[str, Any]) -> dict[str, Any]:
    """A trial's record or event for a file: texts without this process's secrets, but for the policy's own work."""
    redact = process_redactor()
    told = {key: value for key, value in record.items() if key not in WORK}
    cleaned = dict(zip(told, redact.data(list(told.values())), strict=True))
    return {key: cleaned.get(key, value) for key, value in record.items()}


def _forms(value: str) -> Iterable[str]:
    """How a value may stand in a file: as it is, in JSON, in a URL."""
    yield value
    yield json.dumps(value)[1:-1]
    yield json.dumps(value, ensure_ascii=False)[1:-1]
    yield quote(value, safe="")
