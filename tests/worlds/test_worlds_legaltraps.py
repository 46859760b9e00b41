"""Traps in legal papers: what misleads and what disarms it lie in the files; only who looks at both is right."""

from __future__ import annotations

import random

import pytest
from verifier_here import graded, office

from journeyman.documents import open_document
from journeyman.worlds.curriculum import Knobs
from journeyman.worlds.office import Office, make_office
from journeyman.worlds.template import Bound
from journeyman.worlds.templates import TEMPLATES


@pytest.fixture(scope="module")
def corrected() -> Office:
    return make_office(7, "train", 1)


def text_of(world: Office, path: str) -> str:
    return " ".join(node.text for node in open_document(world.files[path], path).walk() if node.text)


def bound_of(world: Office, name: str) -> Bound:
    return TEMPLATES[name].bind(world, random.Random(3), Knobs(fan_out=2))


def victim_of(world: Office, name: str, trap: str) -> tuple[Bound, dict[str, float]]:
    """A task and the scores of whoever falls for one of its traps."""
    bound = bound_of(world, name)
    wrong = next(one for one in bound.wrong if one.trap == trap)
    made = TEMPLATES[name].write(bound, wrong.answer, world.files)
    return bound, {check["id"]: check["score"] for check in graded(bound.checks, made)["checks"]}


def test_a_register_of_contracts_misstates_one_contract_of_each_kind_and_says_that_contracts_count():
    world = office()
    (register,) = world.of_kind("contract_register")
    words = text_of(world, register.path)
    assert "Where this register and a signed contract differ, the contract and its signed amendments count." in words
    sites = [one for one in world.planted if one.site.startswith("consents:")]
    kinds = {row["id"]: row["kind"] for row in world.truth.rows("SELECT id, kind FROM contract")}
    assert len({kinds[one.site.partition(":")[2]] for one in sites}) >= 4
    bound, scores = victim_of(world, "CL2", "T12")
    assert bound.traps.count("T12") == 1
    assert scores["deadlines"] == 0.0


def test_extracts_hide_a_contradiction_and_invent_another_and_say_that_minutes_count():
    world = office()
    papers = world.of_kind("minutes_extract")
    assert papers
    for paper in papers:
        assert "Where an extract and the minutes differ, the signed minutes count." in text_of(world, paper.path)
        assert world.of_kind("minutes", paper.subject)
    bound, scores = victim_of(world, "CL9", "T12")
    assert scores["contradictions"] == 0.0
    assert bound.trap_blind["contradictions"] != bound.answer["contradictions"]


def test_an_unsigned_draft_gives_another_time_for_objections_and_another_last_day():
    world = office()
    planted = world.trap("T1", "statement:")
    assert planted
    paper = world.documents[planted.bait[0][0]]
    assert "Not signed" in text_of(world, paper.path)
    bound, scores = victim_of(world, "CL5", "T1")
    assert bound.answer["deadline"] == planted.right["due"] != planted.wrong["due"]
    assert scores["last day"] == scores["no other day"] == scores["grounds"] == 0.0


def test_a_statement_that_its_sender_voids_counts_from_the_mail_in_its_place(corrected: Office):
    planted = corrected.trap("T18", "statement:")
    assert planted
    mailbox = " ".join(corrected.apps["mail/mailbox.mbox"].decode().split())
    assert "is void" in mailbox
    assert "runs anew from the day on which you receive this mail" in mailbox
    bound, scores = victim_of(corrected, "CL5", "T18")
    assert (bound.answer["deadline"], bound.answer["balance"]) == (planted.right["due"], planted.right["balance"])
    assert str(planted.wrong["due"]) < bound.answer["deadline"]
    assert scores["recipients"] == 1.0
    assert scores["last day"] == scores["grounds"] == 0.0
