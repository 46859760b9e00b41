"""Checks of instructions to the letter: exact passages, and constraints on a text, one by one."""

from __future__ import annotations

import pytest
from verifier_here import score

from journeyman.worlds.drafting import json_bytes
from journeyman.worlds.papers import docx_bytes, heading, paragraph
from journeyman.worlds.verify import Check
from journeyman.worlds.verify.inside.worldverify.constraints import RULES

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


FIRST = "In brief: this note covers twelve contracts of Alder. Nothing is open."
GOOD = [
    heading("R\u00e9sum\u00e9"),
    paragraph(FIRST),
    heading("Contrats"),
    paragraph("K007 | Redwing Holdings AG | 180 days"),
    paragraph("K003 | Dovecote Industries AG | 30 days"),
    heading("Suite"),
    paragraph("All papers stay where they are."),
    paragraph("Birch signs the list in writing."),
]
HOLD = [
    {"rule": "headings", "headings": ["R\u00e9sum\u00e9", "Contrats", "Suite"]},
    {"rule": "paragraphs", "section": "Contrats", "count": 2},
    {"rule": "sentences", "section": "R\u00e9sum\u00e9", "count": 2},
    {"rule": "words", "section": "R\u00e9sum\u00e9", "least": 10, "most": 12},
    {"rule": "words of each paragraph", "section": "Suite", "least": 6, "most": 6},
    {"rule": "starts", "section": "R\u00e9sum\u00e9", "text": "In brief:"},
    {"rule": "ends", "section": "Suite", "text": "in writing."},
    {"rule": "initials", "section": "Suite", "letters": "AB"},
    {"rule": "order", "section": "Contrats", "texts": ["K007", "K003"]},
    {"rule": "line", "section": "Contrats", "line": "K003 | Dovecote Industries AG | 30 days"},
    {"rule": "form", "section": "Contrats", "pattern": r"K\d{3} \| .+ \| \d+ days"},
    {"rule": "occurs", "text": "Alder", "count": 1},
    {"rule": "lacks", "section": "R\u00e9sum\u00e9", "characters": "0123456789"},
    {"rule": "number word", "section": "R\u00e9sum\u00e9", "word": "twelve"},
]
BROKEN = [
    {"rule": "headings", "headings": ["R\u00e9sum\u00e9", "Contrats"]},
    {"rule": "paragraphs", "section": "Contrats", "count": 3},
    {"rule": "sentences", "section": "R\u00e9sum\u00e9", "count": 3},
    {"rule": "words", "section": "R\u00e9sum\u00e9", "least": 13, "most": 20},
    {"rule": "words of each paragraph", "section": "Suite", "least": 1, "most": 5},
    {"rule": "starts", "section": "R\u00e9sum\u00e9", "text": "For the board:"},
    {"rule": "ends", "section": "Suite", "text": "by mail."},
    {"rule": "initials", "section": "Suite", "letters": "BA"},
    {"rule": "order", "section": "Contrats", "texts": ["K003", "K007"]},
    {"rule": "line", "section": "Contrats", "line": "K003 | Dovecote Industries AG | 45 days"},
    {"rule": "form", "section": "Contrats", "pattern": r"K\d{3}: .+"},
    {"rule": "occurs", "text": "Alder", "count": 2},
    {"rule": "lacks", "section": "Suite", "texts": ["the list"]},
    {"rule": "number word", "section": "R\u00e9sum\u00e9", "word": "two"},
    {"rule": "words", "section": "Anhang", "least": 0},
]


def kept(rules: list[dict[str, object]], credit: str = "all") -> float:
    check = Check("rules", "rules", {"file": "a.docx", "rules": rules, "credit": credit})
    return score(check, {"a.docx": docx_bytes(GOOD)})


def test_every_rule_has_a_text_that_keeps_it_and_one_that_breaks_it():
    assert {rule["rule"] for rule in HOLD} == {rule["rule"] for rule in BROKEN} == set(RULES)
    assert kept(HOLD) == 1.0


@pytest.mark.parametrize("rule", BROKEN, ids=lambda rule: str(rule["rule"]))
def test_a_constraint_that_is_broken_fails_by_itself(rule):
    assert kept([rule]) == 0.0
    assert kept([*HOLD, rule]) == 0.0


def test_constraints_can_be_counted_one_by_one():
    assert kept([HOLD[0], BROKEN[1]], "share") == 0.5
