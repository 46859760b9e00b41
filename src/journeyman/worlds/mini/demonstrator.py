"""An imperfect demonstrator: well-formed calls, wrong workflow. It scores below 0.05 on average.

It makes the low start that reinforcement learning then repairs, so every report that uses it must say so. Modes of
equal weight (quickstart.md section 7): ``guess`` answers at once with a random number; ``skip`` leaves out the last
step of the plan; ``wrongfile`` reads some whole file and answers with a number seen there; ``wrongrow`` follows the
plan with the labels of other rows.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from journeyman.worlds.mini import pools
from journeyman.worlds.mini.protocol import FIELD_SEPARATOR, BoundTask, Step
from journeyman.worlds.mini.world import World

Flawed = tuple[tuple[Step, ...], str]
"""Tool calls and the answer given after them."""


def flawed(bound: BoundTask, world: World, rng: random.Random) -> Flawed:
    """One flawed demonstration of ``bound``, in a mode drawn with equal weight."""
    mode = MODES[rng.choice(sorted(MODES))]
    return mode(bound, world, rng)


def guess(bound: BoundTask, world: World, rng: random.Random) -> Flawed:
    """No call; random numbers."""
    return (), FIELD_SEPARATOR.join(_number(rng) for _ in _fields(bound))


def skip(bound: BoundTask, world: World, rng: random.Random) -> Flawed:
    """The plan without its last step, and a number seen on the way in place of the result (random if none was)."""
    plan = bound.plan[:-1]
    seen = [value for step in plan if (value := _observed(step, world)).isdigit()]
    last = rng.choice(seen) if seen else _number(rng)
    return plan, FIELD_SEPARATOR.join([*(_number(rng) for _ in _fields(bound)[1:]), last])


def wrongfile(bound: BoundTask, world: World, rng: random.Random) -> Flawed:
    """A random file read whole, and numbers from it (random ones if it has none)."""
    file = rng.choice(sorted(world.files))
    numbers = [str(v) for v in world.table(file).values.values()] if file != pools.OWNERS_FILE else []
    answer = [rng.choice(numbers) if numbers else _number(rng) for _ in _fields(bound)]
    return (Step("read_file", {"path": file}),), FIELD_SEPARATOR.join(answer)


def wrongrow(bound: BoundTask, world: World, rng: random.Random) -> Flawed:
    """The plan over other rows (for ``own``: of another person), really looked up, and the answer they lead to."""
    plan: list[Step] = []
    found: list[str] = []
    for step in bound.plan:
        if step.tool == "calc":
            plan.append(Step("calc", {"expr": "+".join(found)}))
            return tuple(plan), str(sum(int(value) for value in found))
        plan.append(_elsewhere(step, world, rng, client=found[-1] if found and not found[-1].isdigit() else None))
        found.append(_observed(plan[-1], world))
    return tuple(plan), FIELD_SEPARATOR.join(value for value in found if value.isdigit())


MODES: dict[str, Callable[[BoundTask, World, random.Random], Flawed]] = {
    "guess": guess,
    "skip": skip,
    "wrongfile": wrongfile,
    "wrongrow": wrongrow,
}


def _elsewhere(step: Step, world: World, rng: random.Random, client: str | None) -> Step:
    """The same lookup in another row; ``client`` is the row that a person found before leads to."""
    rows = world.clients if step.arguments["path"] == pools.OWNERS_FILE else world.entities
    row = client or rng.choice([row for row in sorted(rows) if row != step.arguments["row"]])
    return Step(step.tool, {**step.arguments, "row": row})


def _observed(step: Step, world: World) -> str:
    """What a lookup of an existing cell returns."""
    path, row = step.arguments["path"], step.arguments["row"]
    if path == pools.OWNERS_FILE:
        return world.clients[row]
    return str(world.table(path).values[row, step.arguments["col"]])


def _fields(bound: BoundTask) -> list[str]:
    return bound.answer.split(FIELD_SEPARATOR)


def _number(rng: random.Random) -> str:
    return str(rng.randint(pools.LOWEST, pools.HIGHEST))
