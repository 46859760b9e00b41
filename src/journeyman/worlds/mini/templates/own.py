"""own: from a person to a client to a cell, over two files."""

from __future__ import annotations

import random

from journeyman.worlds.mini import pools
from journeyman.worlds.mini.protocol import BoundTask, Step
from journeyman.worlds.mini.templates.cells import cell_at, draw_files, first_wrong, standing_controls, swapped
from journeyman.worlds.mini.world import World


class Own:
    """``report client of {p} {q} from {t1}``: the mail names the client, the table the value."""

    family = "own"

    def bind(self, world: World, rng: random.Random) -> BoundTask:
        """Wrong answers: another person's client, another quarter, another file, the client's name."""
        (file,) = draw_files(world, rng, 1)
        person = rng.choice(sorted(world.clients))
        entity = world.clients[person]
        target = cell_at(world, file, entity, rng.choice(world.table(file).quarters))
        instruction = f"report client of {person} {target.quarter} from {file}"
        controls = [
            control
            for part, name in (("entity", "other-person"), ("quarter", "other-quarter"), ("file", "other-file"))
            for control in first_wrong(name, [c.text for c in swapped(world, target, part)], target.text, "field-1")
        ]
        controls += first_wrong("client-only", [entity], target.text, "field-1")
        return BoundTask(
            self.family,
            world.id,
            instruction,
            plan=(Step("lookup", {"path": pools.OWNERS_FILE, "row": person}), target.lookup),
            answer=target.text,
            controls=(*controls, *standing_controls(instruction, target.text)),
            script=(
                f"client=$(lookup {pools.OWNERS_FILE} {person})",
                f'answer "$(lookup {file} "$client" {target.quarter})"',
            ),
            params={"p": person, "a": entity, "q": target.quarter, "t1": file},
        )


OWN = Own()
