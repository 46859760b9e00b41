"""Traps: planted often enough, each with a wrong answer that differs from the right one and a place that disarms it."""

from __future__ import annotations

import csv
from collections import Counter, defaultdict

import pytest
from verifier_here import graded

from journeyman.documents import edit, open_document
from journeyman.seeds import stream
from journeyman.worlds.content import Book, Delimited
from journeyman.worlds.curriculum import Knobs
from journeyman.worlds.office import Office, make_office
from journeyman.worlds.templates import TEMPLATES
from journeyman.worlds.traps.operator import discoverable, wrong_answer
from journeyman.worlds.traps.planting import OPERATORS, SHARE

SEED = 7


@pytest.fixture(scope="module")
def offices() -> list[Office]:
    return [make_office(SEED, "train", 1), make_office(SEED, "test", 0)]


def test_there_are_21_operators_and_falling_for_orders_is_a_gate():
    assert list(OPERATORS) == [f"T{n}" for n in range(1, 22)]
    assert [name for name, one in OPERATORS.items() if one.is_gate] == ["T20"]


def test_each_office_has_its_share_of_traps(offices):
    for office in offices:
        assert len({one.trap for one in office.planted}) == round(SHARE * len(OPERATORS))


def test_what_disarms_a_trap_can_be_read(offices):
    for office in offices:
        by_fact = defaultdict(list)
        for one in office.renderings:
            by_fact[one.fact_id].append(one)
        for planted in office.planted:
            assert planted.fact_ids, planted
            assert discoverable(planted, by_fact) == [], planted
            assert planted.locators


def test_a_trap_without_a_readable_place_is_found(offices):
    assert discoverable(offices[0].planted[0], {}) == list(offices[0].planted[0].fact_ids)


def test_falling_for_a_trap_gives_another_answer(offices):
    for office in offices:
        for planted in office.planted:
            wrong = wrong_answer(planted)
            assert wrong.keys() <= planted.right.keys(), planted
            assert any(wrong[name] != planted.right[name] for name in wrong), planted


def test_a_total_that_falls_for_duplicates_is_the_sum_of_the_file(offices):
    """The wrong answer of T14 is what a careless sum over the rendered file gives."""
    checked = 0
    for office in offices:
        planted = office.trap("T14", "invoices:")
        if planted:
            document = office.documents[planted.locators[0][0]]
            last = max(office.of_kind("invoice_register"), key=lambda one: one.subject)
            assert document.path == last.path
            assert isinstance(last.content, Delimited)
            tree = open_document(office.files[last.path], last.path)
            cells = {node.address: node.text for node in tree.walk()}
            total = sum(int(cells[f"r{row}c7"]) for row in range(2, len(last.content.rows) + 1))
            assert total == planted.wrong["net"]
            checked += 1
    assert checked


def test_a_restated_year_is_stated_in_both_ways(offices):
    checked = 0
    for office in offices:
        planted = office.trap("T2", "income:")
        if planted:
            first, again = office.facts[planted.bait_facts[0]], office.facts[planted.fact_ids[0]]
            assert again.supersedes == first.fact_id
            assert (first.value, again.value) == (planted.wrong["revenue"], planted.right["revenue"])
            assert office.where(first.fact_id)
            checked += 1
    assert checked


def test_models_compute_what_the_truth_says_or_what_the_trap_says(offices):
    """Formulas of the cash flow and debt models give the stored values, recalculated by the engines."""
    from journeyman.documents.opening import recalculate

    for office in offices:
        for kind in ("dcf_model", "debt_model", "cap_table", "trial_balance"):
            document = office.of_kind(kind)[0]
            assert isinstance(document.content, Book)
            fresh = open_document(recalculate(office.files[document.path], document.path).data, document.path)
            values = {node.address: node.attributes.get("value") for node in fresh.walk() if node.kind == "cell"}
            for sheet in document.content.sheets:
                for (row, column), cell in sheet.cells.items():
                    if cell.formula:
                        found = values[f"{sheet.name}!{'ABCDEFGHI'[column]}{row + 1}"]
                        assert found == pytest.approx(cell.value, rel=1e-9), (document.path, cell)


def test_a_declined_change_reads_one_way_accepted_and_the_right_way_rejected(offices):
    sites = set()
    for office in offices:
        for planted in (one for one in office.planted if one.trap == "T17"):
            proposed, right = office.where(planted.bait_facts[0])[0], office.where(planted.fact_ids[0])
            assert any(one.path.startswith("apps/") for one in right), planted
            address, data = proposed.locator, office.files[proposed.path]
            undone = edit(data, proposed.path, [{"op": "reject", "address": address}]).data
            before, after = (open_document(one, proposed.path).find(address).text for one in (undone, data))
            assert proposed.surface in after
            assert right[0].surface in before
            assert before == after.replace(proposed.surface, right[0].surface)
            sites.add(planted.site.partition(":")[0])
    assert sites == {"clause", "covenant", "security", "spa_draft"}


@pytest.mark.parametrize(
    ("name", "traps"),
    [
        ("IB7", {"T1", "T17"}), ("IB10", {"T1", "T17"}), ("CL3", {"T17"}), ("IB4", {"T14"}), ("IB9", {"T14"}),
        ("CL7", {"T14"}),
    ],
)  # fmt: skip
def test_who_falls_for_a_trap_in_what_a_template_reads_fails(offices, name, traps):
    for office in offices:
        template = TEMPLATES[name]
        bound = template.bind(office, stream(SEED, name, office.id), Knobs())
        assert traps <= set(bound.traps)
        originals = {path: office.files[path] for path in bound.originals}
        for wrong in (one for one in bound.wrong if one.trap in traps):
            found = graded(bound.checks, template.write(bound, wrong.answer, office.files), originals)
            assert not found["passed"], wrong.name
            assert found["reward"] <= 0.5, wrong.name


def test_an_entry_of_the_ledger_stands_there_twice_and_is_proposed_twice(offices):
    for office in offices:
        planted = office.trap("T14", "addback:")
        number = planted.site.partition(":")[2]
        journal = office.truth.value("SELECT journal_id FROM addback WHERE id = :i", i=number)
        text = office.files[office.of_kind("general_ledger")[0].path].decode()
        lines = [line for line in csv.reader(text.splitlines()) if line[2] == journal]
        assert sum(int(line[6]) for line in lines) == planted.wrong["amount"]
        assert sum(int(amount) for _, amount in {(line[0], line[6]) for line in lines}) == planted.right["amount"]
        proposed = office.of_kind("addbacks")[0]
        tree = open_document(office.files[proposed.path], proposed.path)
        assert tree.find(planted.bait[0][1]).attributes["value"] == planted.wrong["amount"]


def test_an_item_of_the_checklist_is_listed_once_more(offices):
    for office in offices:
        planted, listed = office.trap("T14", "checklist:"), office.of_kind("checklist")[0]
        numbers = [node.text for node in open_document(office.files[listed.path], listed.path).walk()]
        numbers = [text for text in numbers if text.startswith("CK")]
        assert (len(numbers), len(set(numbers))) == (planted.wrong["lines"], planted.right["lines"])
        assert numbers.count(planted.site.partition(":")[2]) == 2


def test_leases_are_those_of_the_note_and_an_item_without_support_stays_open(offices):
    restated, unsupported = (office.trap(*site) for office, site in zip(offices, (
        ("T2", "debt:"), ("T11", "addback:"),
    ), strict=True))  # fmt: skip
    bridge = TEMPLATES["IB4"].bind(offices[0], stream(SEED, "IB4"), Knobs())
    assert bridge.answer["leases"] == restated.right["leases"]
    assert {one.trap: one.answer["leases"] for one in bridge.wrong}["T2"] == restated.wrong["leases"]
    listed = TEMPLATES["IB9"].bind(offices[1], stream(SEED, "IB9"), Knobs()).answer["items"]
    item = next(one for one in listed if one["no"] == unsupported.site.partition(":")[2])
    assert (item["decision"], item["ask"]) == ("open", unsupported.right["whom"])
    assert all(one["ask"] == "none" for one in listed if one is not item)


@pytest.mark.slow
def test_every_trap_is_planted_at_least_fifteen_times_in_112_offices():
    counts: Counter[str] = Counter()
    for index in range(112):
        counts.update({one.trap for one in make_office(SEED, "train", index).planted})
    print(dict(counts))
    assert min(counts[name] for name in OPERATORS) >= 15
