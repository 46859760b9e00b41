"""Clauses and values in words."""

from __future__ import annotations

from typing import Any

from journeyman.worlds.data import pack
from journeyman.worlds.draft import Draft
from journeyman.worlds.simulate.setting import Setting

NUMBERS = {
    5: "five", 6: "six", 7: "seven", 10: "ten", 12: "twelve", 14: "fourteen", 15: "fifteen", 18: "eighteen",
    20: "twenty", 21: "twenty-one", 24: "twenty-four", 30: "thirty", 36: "thirty-six", 45: "forty-five",
    48: "forty-eight", 60: "sixty", 75: "seventy-five", 90: "ninety", 120: "one hundred and twenty",
    180: "one hundred and eighty", 2: "two", 3: "three",
}  # fmt: skip
CHOICES = {
    "change_of_control": {"consent": "prior written consent", "notice": "notice", "termination": "terminat",
                          "none": "ownership"},
    "exclusivity": {"exclusive": "exclusive", "non-exclusive": "non-exclusive"},
}  # fmt: skip
"""Type -> value -> a word that every wording of it holds."""


def value_in_words(setting: Setting, params: dict[str, Any]) -> str:
    """``60 days``, ``EUR 500.000``, ``3,5%``."""
    value, unit = params["value"], params["unit"]
    if unit == "currency":
        return setting.money(value, params.get("currency", ""))
    if unit == "percent":
        return f"{setting.number(value, 1)} per cent"
    if unit == "business days":
        return f"{value} Business Days"
    return f"{value} {unit}" if isinstance(value, int | float) else str(value)


def clause_text(draft: Draft, contract: dict[str, Any], clause: dict[str, Any], we: str, fact_id: str) -> str:
    """The text of a clause, its operative value marked as the fact."""
    params = clause["params_json"]
    kind = pack("clauses")["types"][clause["type"]]
    value = params["value"]
    texts = kind.get(f"texts_{value}") or (kind.get("texts_none") if value == 0 else None) or kind["texts"]
    text: str = texts[params["wording"] % len(texts)]
    shown = value_in_words(draft.setting, params)
    facts = {"unit": params["unit"] if params["unit"] != "choice" else "text", "subject": f"contract:{contract['id']}",
             "predicate": clause["type"], "currency": params.get("currency", ""), "known": contract["date"],
             "rows": (f"clause:{clause['id']}",), "as_of": contract["date"]}  # fmt: skip
    words = {"we": we, "they": contract["counterparty"], "days": f"{params.get('days', 0)} days"}
    if "days" in params:
        day_facts = {**facts, "predicate": f"{clause['type']}_days", "unit": "days"}
        words["days"] = draft.fact(f"{fact_id}:days", words["days"], params["days"], **day_facts)
    if "{value}" in text:
        return text.format(value=draft.fact(fact_id, shown, value, **facts), **words)
    filled = text.format(**words)
    return (
        draft.fact(fact_id, filled, value, **facts)
        if "days" not in params
        else _marked_choice(draft, filled, fact_id, clause["type"], value, facts)
    )


def _marked_choice(draft: Draft, text: str, fact_id: str, clause: str, value: Any, facts: dict[str, Any]) -> str:
    """The telling word of a choice is the surface of its fact."""
    word = CHOICES[clause][value]
    before, found, after = text.partition(word)
    assert found, f"{word!r} is not in {text!r}"
    return before + draft.fact(fact_id, word, value, **facts) + after
