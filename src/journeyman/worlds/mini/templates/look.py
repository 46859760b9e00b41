"""look: report one cell."""

from __future__ import annotations

import random

from journeyman.worlds.mini.protocol import BoundTask
from journeyman.worlds.mini.templates.cells import draw_cells, draw_files, first_wrong, standing_controls, swapped
from journeyman.worlds.mini.world import World


class Look:
    """``report {a} {q} from {t1}``: one lookup."""

    family = "look"

    def bind(self, world: World, rng: random.Random) -> BoundTask:
        """Wrong answers: the cell of another entity, another quarter, another file."""
        (target,) = draw_cells(world, rng, draw_files(world, rng, 1))
        instruction = f"report {target.entity} {target.quarter} from {target.file}"
        controls = [
            control
            for part in ("entity", "quarter", "file")
            for control in first_wrong(
                f"other-{part}", [c.text for c in swapped(world, target, part)], target.text, "field-1"
            )
        ]
        return BoundTask(
            self.family,
            world.id,
            instruction,
            plan=(target.lookup,),
            answer=target.text,
            controls=(*controls, *standing_controls(instruction, target.text)),
            script=(f'answer "$({target.command})"',),
            params={"a": target.entity, "q": target.quarter, "t1": target.file},
        )


LOOK = Look()
