"""How many tasks a build would have, template by template and trap by trap: bound only, nothing written or graded.

What a gate would refuse is not known here, so a count is the most that can be published; worlds are counted apart, and
parts of a build add up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from journeyman.errors import InputError
from journeyman.worlds.binding import Refusals, candidates, places_of
from journeyman.worlds.dedupe import Sketch, sketch_of, twins
from journeyman.worlds.office import make_office
from journeyman.worlds.splits import office_worlds


@dataclass
class Count:
    """What some worlds of a build would have. State: the sums.

    Attributes:
        worlds: how many were counted.
        tasks: (split, template) -> tasks.
        traps: trap -> tasks in which it is active.
        empty: places for which no template fits.
        refused: (template, reason) -> how often it was passed over.
    """

    worlds: int = 0
    tasks: Counter[tuple[str, str]] = field(default_factory=Counter)
    traps: Counter[str] = field(default_factory=Counter)
    empty: int = 0
    refused: Counter[tuple[str, str]] = field(default_factory=Counter)

    def by_template(self) -> dict[str, int]:
        """Template -> tasks over all splits, fewest first."""
        sums: Counter[str] = Counter()
        for (_, name), count in self.tasks.items():
            sums[name] += count
        return dict(sorted(sums.items(), key=lambda row: (row[1], row[0])))

    def as_json(self) -> dict[str, Any]:
        """A JSON value."""
        splits = sorted({split for split, _ in self.tasks})
        return {
            "worlds": self.worlds,
            "tasks": self.tasks.total(),
            "empty_places": self.empty,
            "templates": self.by_template(),
            "splits": {split: {name: n for (at, name), n in sorted(self.tasks.items()) if at == split}
                       for split in splits},
            "traps": dict(sorted(self.traps.items(), key=lambda row: (row[1], row[0]))),
            "passed_over": {f"{name}: {why}": n for (name, why), n in self.refused.most_common()},
        }  # fmt: skip


def count_tasks(
    seed: int,
    worlds: int,
    tasks: int,
    *,
    split: str = "",
    only: Iterable[int] | None = None,
    progress: Callable[[int, int, str], None] = lambda done, total, what: None,
) -> Count:
    """Bind what a build would bind.

    Args:
        seed, worlds, tasks, split: as in a build.
        only: positions of the worlds to count; None for all.
        progress: told (worlds counted, worlds, world) after each.

    Raises:
        InputError: an impossible order, or no such world.
    """
    from journeyman.worlds.templates import TEMPLATES

    plan = office_worlds(worlds, split)
    chosen = list(range(worlds) if only is None else only)
    if any(not 0 <= at < worlds for at in chosen):
        raise InputError("worlds", "some are not in the build", allowed=f"0 to {worlds - 1}")
    found = Count()
    for at in chosen:
        name, index = plan[at]
        office = make_office(seed, name, index)
        refusals, seen, sketches = Refusals(), set[str](), list[Sketch]()
        for place in places_of(plan, tasks, at):
            for task_id, template, bound in candidates(seed, office, place, TEMPLATES, refusals, seen):
                sketch = sketch_of(task_id, bound)
                if task_id in twins([*sketches, sketch]):
                    refusals.note(template.id, "G10: a twin")
                    continue
                seen.add(bound.instruction)
                sketches.append(sketch)
                found.tasks[name, template.id] += 1
                found.traps.update(set(bound.traps))
                break
            else:
                found.empty += 1
        found.refused.update(refusals.counts)
        found.worlds += 1
        progress(found.worlds, len(chosen), office.id)
    return found
