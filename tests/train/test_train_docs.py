"""The page on training names what the code holds, with the defaults the code has."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from train_loss_columns import gradient, single

from journeyman.train.advantages import ADVANTAGES
from journeyman.train.criterion import UntilLearned
from journeyman.train.losses import CORRECTIONS, LOSSES
from journeyman.train.losses.dppo_topk import DELTAS
from journeyman.train.reductions import REDUCTIONS
from journeyman.train.switches import Switches

DOCS = Path(__file__).parents[2] / "docs"
KNOB = re.compile(r"`(\w+)`")


def rows(page, heading):
    section = (DOCS / page).read_text().split(f"## {heading}\n")[1].split("\n## ")[0]
    table = section.split("\n### ")[0]
    cells = [line.strip("|").split("|") for line in table.splitlines() if line.startswith("|")]
    return {row[0].strip(" *`"): [cell.strip() for cell in row] for row in cells[2:]}


def defaults_in(cell):
    """Knob -> its default, as the cell has them: `a`, `b` (0.2), `c` (none)."""
    found = {}
    for names, value in re.findall(r"((?:`\w+`(?:, )?)+) \(([\w.-]+)[^)]*\)", cell):
        found |= dict.fromkeys(KNOB.findall(names), None if value == "none" else value)
    return found


def same(found, default):
    return found is None if default is None else str(default) == found or float(default) == float(found)


def test_every_loss_has_a_row_with_its_needs_its_knobs_and_their_defaults():
    table = rows("losses.md", "Losses")
    assert sorted(table) == sorted(LOSSES)
    for name, knobs in LOSSES.items():
        assert set(KNOB.findall(table[name][2])) >= knobs().needs
        assert set(KNOB.findall(table[name][3])) == set(knobs.model_fields)
        values = defaults_in(table[name][3])
        assert set(values) == set(knobs.model_fields)
        wanted = {field: getattr(knobs(), field) for field in values}
        if name == "dppo_topk":
            assert {values.pop("delta_low"), values.pop("delta_high")} == {str(DELTAS["tv"])}
            assert f"{DELTAS['kl']} nats for kl" in table[name][3]
        assert all(same(value, wanted[field]) for field, value in values.items()), name


def test_every_correction_has_a_row_with_its_knobs_and_their_defaults():
    table = rows("losses.md", "Corrections")
    assert sorted(table) == sorted(CORRECTIONS)
    for name, (knobs, _) in CORRECTIONS.items():
        values = defaults_in(table[name][2])
        assert set(values) == set(knobs.model_fields)
        assert all(same(value, getattr(knobs(), field)) for field, value in values.items()), name


def test_every_reduction_advantage_and_switch_has_a_row():
    assert sorted(rows("losses.md", "Reductions")) == sorted(REDUCTIONS)
    assert sorted(rows("losses.md", "Advantages")) == sorted(ADVANTAGES)
    table = rows("losses.md", "Switches")
    assert sorted(table) == sorted(Switches.model_fields)
    for name, row in table.items():
        assert row[1] == str(getattr(Switches(), name)).lower(), name


def test_the_table_of_dropped_tokens_is_what_the_code_computes():
    page = (DOCS / "losses.md").read_text().split("### Which tokens a trust region drops")[1].split("\n## ")[0]
    lines = [line.strip("|").split("|") for line in page.splitlines() if line.startswith("|")][2:]
    assert len(lines) == 10
    narrow = {"delta_low": 0.15, "delta_high": 0.15}
    for line in lines:
        mu, pi, a, ratio, moved, *gradients = (float(cell) for cell in line)
        assert (ratio, moved) == pytest.approx((pi / mu, pi - mu), abs=6e-4)
        for (name, params), expected in zip(
            [("dppo_tv", {}), ("dppo_tv", narrow), ("glm5", {}), ("ppo", {})], gradients, strict=True
        ):
            assert gradient(name, single(mu, pi, a), **params)[1].item() == pytest.approx(expected, abs=6e-4)


def test_the_knobs_of_the_criterion_stand_with_their_defaults():
    plan, found = UntilLearned(), set()
    for row in rows("train.md", "Supervised training").values():
        names, values = KNOB.findall(row[0]), re.findall(r"[\d.]+", row[1])
        assert [float(v) for v in values] == [float(getattr(plan, name)) for name in names]
        found |= set(names)
    assert found == set(vars(plan))
