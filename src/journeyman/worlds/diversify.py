"""Other words for the same text, by any OpenAI-compatible endpoint: optional, cached, and no fact may change.

Numbers, dates and names are masked as ``{{0}}``, ``{{1}}``, ... before a model sees the text and put back afterwards. A
paraphrase counts only when every slot survives exactly once and no new number or capitalised name appears. The cache is
keyed by the masked text, the prompt's version and the model, so a build is reproducible offline from it.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from journeyman.digest import sha256_json
from journeyman.durable import write_json

PROMPT_VERSION = 1
PROMPT = (
    "Rewrite the text in other words. Keep its meaning, its order and every placeholder such as {{3}} exactly once."
    " Add no number, no name and no fact. Answer with the text alone."
)
FACT = re.compile(r"`[^`]+`|\d[\d.,:%/-]*\w*|\b[A-Z][\w&'-]+(?: (?:[A-Z][\w&'-]+|of|and|&))* ?[A-Z]?\w*|\b[A-Z]{2,}\b")
SLOT = re.compile(r"\{\{(\d+)\}\}")

Paraphraser = Callable[[str], str]
"""Masked text in, masked text out; may raise whatever its connection raises."""


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
        answer = paraphrase(hidden)
        write_json(path, {"text": answer, "model": model, "prompt_version": PROMPT_VERSION})
    new, refused = restored(answer, facts)
    return Paraphrase(text if refused else new, refused, is_cached)


def openai_paraphraser(base_url: str, model: str, key: str = "", *, timeout_s: float = 60.0) -> Paraphraser:
    """Asks a chat endpoint that follows OpenAI's protocol."""

    def ask(text: str) -> str:
        import httpx

        messages = [{"role": "system", "content": PROMPT}, {"role": "user", "content": text}]
        body = {"model": model, "messages": messages, "temperature": 0.9}
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        answer = httpx.post(f"{base_url.rstrip('/')}/chat/completions", json=body, headers=headers, timeout=timeout_s)
        answer.raise_for_status()
        return str(answer.json()["choices"][0]["message"]["content"]).strip()

    return ask
