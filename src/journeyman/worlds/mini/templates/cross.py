"""cross: add two cells of two files."""

from __future__ import annotations

import random

from journeyman.worlds.mini.protocol import BoundTask
from journeyman.worlds.mini.templates.cells import draw_cells, draw_files
from journeyman.worlds.mini.templates.sums import bind_sum
from journeyman.worlds.mini.world import World


class Cross:
    """``add {a} {q} from {t1} and {b} {q2} from {t2}``: two lookups in different files and a sum."""

    family = "cross"

    def bind(self, world: World, rng: random.Random) -> BoundTask:
        """Two different entities of two different files."""
        left, right = draw_cells(world, rng, draw_files(world, rng, 2))
        instruction = (
            f"add {left.entity} {left.quarter} from {left.file} and {right.entity} {right.quarter} from {right.file}"
        )
        return bind_sum(world, self.family, instruction, left, right)


CROSS = Cross()
