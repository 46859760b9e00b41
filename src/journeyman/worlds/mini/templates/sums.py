"""What sum2 and cross share: two cells, their sum, and the ways to get a sum wrong."""

from __future__ import annotations

from journeyman.worlds.mini.protocol import BoundTask, Step
from journeyman.worlds.mini.templates.cells import Cell, first_wrong, standing_controls, swapped
from journeyman.worlds.mini.world import World


def bind_sum(world: World, family: str, instruction: str, left: Cell, right: Cell) -> BoundTask:
    """The task of adding two cells. Wrong answers: one cell confused, one left out, the two not added."""
    answer = str(left.value + right.value)
    controls = [
        control
        for part in ("entity", "quarter", "file")
        for control in first_wrong(
            f"other-{part}", [str(c.value + right.value) for c in swapped(world, left, part)], answer, "field-1"
        )
    ]
    controls += first_wrong("partial", [left.text], answer, "field-1")
    controls += first_wrong("unsummed", [f"{left.text}+{right.text}"], answer, "field-1")
    return BoundTask(
        family,
        world.id,
        instruction,
        plan=(left.lookup, right.lookup, Step("calc", {"expr": f"{left.text}+{right.text}"})),
        answer=answer,
        controls=(*controls, *standing_controls(instruction, answer)),
        script=(
            f"left=$({left.command})",
            f"right=$({right.command})",
            'answer "$(calc "$left+$right")"',
        ),
        params={
            "a": left.entity,
            "q": left.quarter,
            "t1": left.file,
            "b": right.entity,
            "q2": right.quarter,
            "t2": right.file,
        },
    )
