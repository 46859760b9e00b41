"""Checks of instructions to the letter: exact passages, and constraints on a text, one by one."""

from __future__ import annotations

import pytest
from verifier_here import score

from journeyman.worlds.drafting import json_bytes
from journeyman.worlds.verify import Check

SENTENCE = "Notice of non-renewal is given at least 180 days before the current period ends."
WANTED = [
    {"no": 1, "text": SENTENCE, "places": [{"path": "legal/K007.pdf", "locator": "p3"}]},
    {"no": 2, "text": "Invoices fall due 30 days after receipt.", "places": [{"path": "b.docx", "locator": "para:A1"}]},
]
RIGHT = [
    {"no": 1, "file": "/legal/K007.pdf", "place": "page 3", "text": SENTENCE},
    {"no": 2, "file": "b.docx", "place": "para:A1", "text": "Invoices fall due 30 days after receipt."},
]


def quoted(**change: object) -> float:
    check = Check("spans", "spans", {"file": "a.json", "spans": WANTED})
    return score(check, {"a.json": json_bytes({"spans": [{**RIGHT[0], **change}, RIGHT[1]]})})


def test_a_passage_is_right_whatever_its_spaces_quotes_and_spelling_of_the_page():
    assert quoted() == 1.0
    assert quoted(text=SENTENCE.replace(" ", "\n ").replace("non-renewal", "non\u2011renewal"), place="p3") == 1.0


@pytest.mark.parametrize(
    "change",
    [
        {"text": SENTENCE.replace("180", "120")},
        {"text": SENTENCE + " After that this Agreement ends."},
        {"text": "180 days before the current period ends."},
        {"text": ""},
        {"text": None},
        {"place": "p2"},
        {"place": ""},
        {"file": "legal/K008.pdf"},
        {"no": 3},
        {"no": 2},
    ],
)
def test_another_number_more_or_less_text_or_another_place_is_no_citation(change):
    assert quoted(**change) == 0.0


def test_a_share_of_the_passages_counts_unless_others_were_added():
    check = Check("spans", "spans", {"file": "a.json", "spans": WANTED, "credit": "share"})
    assert score(check, {"a.json": json_bytes({"spans": RIGHT[:1]})}) == 0.5
    assert score(check, {"a.json": json_bytes({"spans": [*RIGHT[:1], {**RIGHT[1], "no": 9}]})}) == 0.0
