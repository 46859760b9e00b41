"""A pasted number or a sign in a trial balance, a debt schedule, the key figures: what is read, what a victim gets."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from verifier_here import graded, office

from journeyman.documents import open_document
from journeyman.seeds import stream
from journeyman.worlds.binding import draw_knobs
from journeyman.worlds.template import Bound, Lost
from journeyman.worlds.templates import TEMPLATES
from journeyman.worlds.templates.banking.ib11_repair import _odd

PAIRS = [("IB6", "T6"), ("IB6", "T13"), ("IB11", "T6"), ("IB11", "T13"), ("MC7", "T13")]


@cache
def bound(name: str) -> Bound:
    rng = stream(7, "pasted", name)
    return TEMPLATES[name].bind(office(), rng, draw_knobs(rng))


def rewards(name: str, answer: dict[str, object]) -> tuple[float, dict[str, float]]:
    made = TEMPLATES[name].write(bound(name), answer, office().files)
    found = graded(bound(name).checks, made, {path: office().files[path] for path in bound(name).originals})
    return found["reward"], {check["id"]: check["score"] for check in found["checks"]}


@pytest.mark.parametrize(("name", "trap"), PAIRS)
def test_whoever_falls_for_the_trap_fails_the_check_that_names_it(name: str, trap: str) -> None:
    assert trap in bound(name).traps
    assert rewards(name, dict(bound(name).answer))[0] == 1.0
    (fallen,) = [one for one in bound(name).wrong if one.trap == trap]
    reward, scores = rewards(name, dict(fallen.answer))
    assert reward <= 0.5
    assert scores[fallen.fails] < 1.0
    assert trap in next(check.trap_ids for check in bound(name).checks if check.id == fallen.fails)


def test_the_chart_of_the_slide_with_the_trap_weighs_more_than_all_other_checks() -> None:
    (fallen,) = [one for one in bound("MC7").wrong if one.trap == "T13"]
    weights = {check.id: check.weight for check in bound("MC7").checks if check.kind == "scored"}
    assert weights[fallen.fails] > 0.5 * sum(weights.values())


def cells_of(path: str) -> dict[str, Any]:
    """Address -> number, or text."""
    nodes = open_document(office().files[path], path).walk()
    return {node.address: node.attributes.get("value", node.text) for node in nodes}


def test_the_cells_of_a_trap_show_what_misleads_and_others_what_disarms() -> None:
    for planted in office().planted:
        if planted.trap == "T13" and planted.bait_facts:
            (path, cell), values = planted.bait[0], list(planted.wrong.values())
            nodes = {one.address: one.attributes for one in open_document(office().files[path], path).walk()}
            assert nodes[cell]["value"] in values
            assert not nodes[cell].get("formula")
            assert (path, cell) not in planted.locators


def test_every_balance_of_a_trial_balance_is_its_debit_less_its_credit() -> None:
    for entity, path in bound("IB6").ask["balances"].items():
        cells = cells_of(path)
        rows = {cells[f"TB!A{n}"]: (cells[f"TB!C{n}"], cells[f"TB!D{n}"]) for n in range(4, 50) if f"TB!C{n}" in cells}
        for row in bound("IB6").answer["completion"]:
            debit, credit = rows[row["account"]]
            assert debit - credit == row[entity]


def test_a_number_and_a_sign_among_the_formulas_of_other_years_are_found() -> None:
    rows = {
        4: ["Interest", "9 {=B2*Inputs!$B$6}", "8 {=C2*Inputs!$B$6}", 7, "6 {=E2*Inputs!$B$6}", "5 {=F2*Inputs!$B$6}"],
        5: ["Room", "1 {=Inputs!$B$4-B4}", "1 {=B6-C4}", "1 {=C6-D4}", "1 {=D6+E4}", "1 {=E6-F4}"],
        6: ["Cash", "1 {=B5}", "1 {=C5}", "1 {=D5}", "1 {=E5}", "1 {=F5}"],
        7: ["Input", 1, 2, 3, 4, 5],
    }
    assert _odd(rows) == [("D4", "=D2*Inputs!$B$6"), ("E5", "=D6-E4")]
    with pytest.raises(Lost, match="every year"):
        _odd({6: rows[6], 7: rows[7]})


def test_a_quarter_of_the_key_figures_is_the_mean_of_its_months() -> None:
    (book,) = office().of_kind("kpi_workbook")
    cells = cells_of(book.path)
    for row, name in enumerate(office().setting.trade["kpis"], start=4):
        for column, letters in zip("BCDEFG", ("BCD", "EFG", "HIJ", "KLM", "NOP", "QRS"), strict=True):
            mean = sum(cells[f"Months!{letter}{row}"] for letter in letters) / 3
            period = cells[f"KPI!{column}3"]
            sql = "SELECT value FROM kpi WHERE name = :n AND period = :p AND known_to IS NULL"
            assert mean == pytest.approx(office().truth.value(sql, n=name, p=period))
