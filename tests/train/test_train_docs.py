"""The page on training names what the code holds, with the defaults the code has."""

from __future__ import annotations

import re
from pathlib import Path

from journeyman.train.criterion import UntilLearned
from journeyman.train.losses import CORRECTIONS, LOSSES
from journeyman.train.reductions import REDUCTIONS

PAGE = (Path(__file__).parents[2] / "docs" / "train.md").read_text()


def rows(heading):
    section = PAGE.split(f"## {heading}\n")[1].split("\n## ")[0]
    cells = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("|")]
    return {row[0].strip(" *`"): row for row in cells[2:]}


def test_every_loss_has_a_row_with_its_knobs():
    table = rows("Losses")
    assert sorted(table) == sorted(LOSSES)
    for name, knobs in LOSSES.items():
        assert set(re.findall(r"`(\w+)`", table[name][3])) == set(knobs.model_fields)
        assert set(re.findall(r"logp_\w+", table[name][2])) >= knobs().needs
    assert all(f"`{name}`" in PAGE for name in CORRECTIONS)


def test_every_reduction_has_a_row():
    assert sorted(rows("Reductions")) == sorted(REDUCTIONS)


def test_the_knobs_of_the_criterion_stand_with_their_defaults():
    plan, found = UntilLearned(), set()
    for row in rows("Supervised training").values():
        names, values = re.findall(r"`(\w+)`", row[0]), re.findall(r"[\d.]+", row[1])
        assert [float(v) for v in values] == [float(getattr(plan, name)) for name in names]
        found |= set(names)
    assert found == set(vars(plan))
