"""sum2: add two cells of one file."""

from __future__ import annotations

import random

from journeyman.worlds.mini.protocol import BoundTask
from journeyman.worlds.mini.templates.cells import draw_cells, draw_files
from journeyman.worlds.mini.templates.sums import bind_sum
from journeyman.worlds.mini.world import World


class Sum2:
    """``add {a} {q} and {b} {q2} from {t1}``: two lookups and a sum."""

    family = "sum2"

    def bind(self, world: World, rng: random.Random) -> BoundTask:
        """Two different entities of one file."""
        file = draw_files(world, rng, 1)[0]
        left, right = draw_cells(world, rng, [file, file])
        instruction = f"add {left.entity} {left.quarter} and {right.entity} {right.quarter} from {file}"
        return bind_sum(world, self.family, instruction, left, right)


SUM2 = Sum2()
