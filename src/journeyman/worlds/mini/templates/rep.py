"""rep: report two cells of one file, the only family with partial credit."""

from __future__ import annotations

import random

from journeyman.worlds.mini.protocol import FIELD_SEPARATOR, BoundTask, Control
from journeyman.worlds.mini.templates.cells import draw_cells, draw_files, first_wrong, standing_controls, swapped
from journeyman.worlds.mini.world import World


class Rep:
    """``report {a} {q} and {b} {q2} from {t1}``: two lookups, answer ``x;y``; each field counts half."""

    family = "rep"

    def bind(self, world: World, rng: random.Random) -> BoundTask:
        """Wrong answers: one cell confused (half credit), the order swapped, one field missing, the two added."""
        file = draw_files(world, rng, 1)[0]
        first, second = draw_cells(world, rng, [file, file])
        answer = FIELD_SEPARATOR.join((first.text, second.text))
        instruction = f"report {first.entity} {first.quarter} and {second.entity} {second.quarter} from {file}"
        other = [c.text + FIELD_SEPARATOR + second.text for c in swapped(world, first, "entity")]
        controls = first_wrong("other-entity", other, answer, "field-1")
        other = [first.text + FIELD_SEPARATOR + c.text for c in swapped(world, second, "quarter")]
        controls += first_wrong("other-quarter", other, answer, "field-2")
        controls += first_wrong("swapped-order", [second.text + FIELD_SEPARATOR + first.text], answer, "field-1")
        controls.append(Control("partial", first.text, "fields"))
        controls.append(Control("summed", str(first.value + second.value), "fields"))
        return BoundTask(
            self.family,
            world.id,
            instruction,
            plan=(first.lookup, second.lookup),
            answer=answer,
            controls=(*controls, *standing_controls(instruction, answer)),
            script=(
                f"first=$({first.command})",
                f"second=$({second.command})",
                'answer "$first;$second"',
            ),
            params={"a": first.entity, "q": first.quarter, "b": second.entity, "q2": second.quarter, "t1": file},
        )


REP = Rep()
