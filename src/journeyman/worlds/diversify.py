"""Other words for the same text, by any OpenAI-compatible endpoint: optional, cached, and no fact may change.

Numbers, dates and names are masked as ``{{0}}``, ``{{1}}``, ... before a model sees the text and put back afterwards. A
paraphrase counts only when every slot survives exactly once and no new number or capitalised name appears. The cache is
keyed by the masked text, the prompt's version and the model, so a build is reproducible offline from it.

Of an instruction only paragraphs of prose are put into other words; lists, tables and headings say what is asked to the
letter, and stay.
"""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from journeyman.digest import sha256_json
from journeyman.durable import write_json
from journeyman.errors import SystemFault
from journeyman.worlds.template import Bound

PROMPT_VERSION = 1
PROMPT = (
    "Rewrite the text in other words. Keep its meaning, its order and every placeholder such as {{3}} exactly once."
    " Add no number, no name and no fact. Answer with the text alone."
)
FACT = re.compile(r"`[^`]+`|\d[\d.,:%/-]*\w*|\b[A-Z][\w&'-]+(?: (?:[A-Z][\w&'-]+|of|and|&))* ?[A-Z]?\w*|\b[A-Z]{2,}\b")
SLOT = re.compile(r"\{\{(\d+)\}\}")

TRIES = 3
MIN_CHARS = 40
"""Shorter paragraphs stay as they are."""

AS_THEY_ARE = ("-", "*", "|", "#", "`", ">", "1.")
"""How paragraphs begin that are no prose."""

Paraphraser = Callable[[str], tuple[str, int]]
"""Masked text in; masked text and the tokens it took out. Raises ``WordingFailed``."""


class WordingFailed(SystemFault):
    """The endpoint gave no answer; the build stops, and goes on from there when it is started again."""


@dataclass(frozen=True)
class Paraphrase:
    """What became of a text.

    Attributes:
        text: the new text, or the old one when the paraphrase was refused.
        refused: why it was; empty when it was taken.
        is_cached: no model was asked.
    """

    text: str
    refused: str = ""
    is_cached: bool = False


def masked(text: str, keep: Sequence[str] = ()) -> tuple[str, list[str]]:
    """The text with slots for its facts, and the facts in order.

    Args:
        keep: texts that are facts wherever they stand, e.g. the name of a deliverable.
    """
    facts: list[str] = []
    pattern = re.compile("|".join([*(re.escape(one) for one in sorted(keep, key=len, reverse=True)), FACT.pattern]))

    def slot(match: re.Match[str]) -> str:
        facts.append(match[0])
        return f"{{{{{len(facts) - 1}}}}}"

    return pattern.sub(slot, text), facts


def restored(text: str, facts: Sequence[str]) -> tuple[str, str]:
    """The text with its facts, and why it cannot be taken (empty when it can)."""
    count = Counter(int(match) for match in SLOT.findall(text))
    wrong = [f"slot {i} stands there {count[i]} times" for i in range(len(facts)) if count[i] != 1]
    wrong += [f"slot {i} does not exist" for i in count if i >= len(facts)]
    rest = SLOT.sub(" ", text)
    if re.search(r"\d", rest):
        wrong.append("a new number")
    new_names = [one for one in re.findall(r"(?<=[a-z,;] )[A-Z][\w-]+", rest) if one != "I"]
    if new_names:
        wrong.append(f"a new name: {new_names[0]}")
    if wrong:
        return "", wrong[0]
    return SLOT.sub(lambda match: facts[int(match[1])], text), ""


def diversified(
    text: str, model: str, paraphrase: Paraphraser | None, cache: Path, keep: Sequence[str] = ()
) -> Paraphrase:
    """Another wording of a text.

    Args:
        model: id of the model, part of the cache's key.
        paraphrase: asks it; None uses the cache only, and keeps the text where that has nothing.
        cache: directory of kept paraphrases.
        keep: see ``masked``.
    """
    hidden, facts = masked(text, keep)
    path = cache / f"{sha256_json([hidden, PROMPT_VERSION, model])}.json"
    is_cached = path.is_file()
    if is_cached:
        answer = str(json.loads(path.read_text())["text"])
    elif paraphrase is None:
        return Paraphrase(text, "nothing in the cache and no endpoint")
    else:
        answer, tokens = paraphrase(hidden)
        write_json(path, {"text": answer, "model": model, "prompt_version": PROMPT_VERSION, "tokens": tokens})
    new, refused = restored(answer, facts)
    return Paraphrase(text if refused else new, refused, is_cached)


@dataclass(frozen=True)
class Wording:
    """Who words instructions anew, and where the answers are kept.

    Attributes:
        model: id of the model; with the cache it decides what comes out.
        cache: directory of kept paraphrases.
        base_url: endpoint up to and with ``/v1``; empty uses the cache only.
        key: secret of the endpoint, empty for none.
    """

    model: str
    cache: Path
    base_url: str = ""
    key: str = ""

    def worded(self, bound: Bound) -> tuple[Bound, list[Paraphrase]]:
        """The task with its prose in other words, and what became of each paragraph.

        Raises:
            WordingFailed: the endpoint does not answer.
        """
        ask = openai_paraphraser(self.base_url, self.model, self.key) if self.base_url else None
        keep = sorted({*bound.deliverables, *_texts(bound.ask)})
        made: list[str] = []
        found: list[Paraphrase] = []
        for paragraph in bound.instruction.split("\n\n"):
            if len(paragraph) < MIN_CHARS or paragraph.lstrip().startswith(AS_THEY_ARE) or "\n- " in paragraph:
                made.append(paragraph)
                continue
            words = paragraph.strip()
            found.append(diversified(words, self.model, ask, self.cache, [one for one in keep if one in words]))
            made.append(paragraph.replace(words, found[-1].text))
        return replace(bound, instruction="\n\n".join(made)), found


def copy_paraphrases(source: Path, target: Path) -> None:
    """Put what one cache has and another lacks into the other. Raises OSError."""
    for path in sorted(source.glob("*.json")):
        if not (target / path.name).exists():
            write_json(target / path.name, json.loads(path.read_text()))


def tokens_of(cache: Path) -> int:
    """Tokens that the paraphrases of a cache took."""
    return sum(int(json.loads(path.read_text()).get("tokens", 0)) for path in cache.glob("*.json"))


def _texts(value: Any) -> Iterator[str]:
    """Texts of what is asked that must stand in the instruction to the letter."""
    if isinstance(value, dict):
        for one in value.values():
            yield from _texts(one)
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _texts(one)
    elif isinstance(value, str) and len(value) > 2:
        yield value


def openai_paraphraser(base_url: str, model: str, key: str = "", *, timeout_s: float = 60.0) -> Paraphraser:
    """Asks a chat endpoint that follows OpenAI's protocol, ``TRIES`` times at most."""

    def ask(text: str) -> tuple[str, int]:
        import httpx

        messages = [{"role": "system", "content": PROMPT}, {"role": "user", "content": text}]
        body = {"model": model, "messages": messages, "temperature": 0.9}
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        url, problem = f"{base_url.rstrip('/')}/chat/completions", ""
        for turn in range(TRIES):
            time.sleep(turn)
            try:
                answer = httpx.post(url, json=body, headers=headers, timeout=timeout_s)
                answer.raise_for_status()
                value = answer.json()
                tokens = int((value.get("usage") or {}).get("total_tokens") or 0)
                return str(value["choices"][0]["message"]["content"]).strip(), tokens
            except (httpx.HTTPError, ValueError, LookupError, TypeError) as error:
                problem = f"{type(error).__name__}: {str(error)[:200]}"
        raise WordingFailed(f"{url} gave no other words in {TRIES} tries: {problem}")

    return ask
