"""Demonstrations: a plan executed with the agent's own tools, written in the agent's own tokens.

The loss mask is 1 on what the policy would have to sample (each call and its stop token) and 0 on the prompt and on
what tools returned. Every batch is a function of (seed, step), so a resumed run sees the same data.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import numpy as np

from journeyman.harness import HARNESSES, Harness
from journeyman.seeds import stream
from journeyman.tokens.framing import call_ids, observation_ids, open_context
from journeyman.tokens.tokenizer import Tokenizer
from journeyman.tools import ToolContext, call
from journeyman.worlds.mini.demonstrator import flawed
from journeyman.worlds.mini.templates import TEMPLATES, BoundTask, Step
from journeyman.worlds.mini.world import World

Trace = tuple[np.ndarray, np.ndarray]
"""Token ids int32 [T] and loss mask uint8 [T]."""

ToolsOfWorld = Callable[[World], ToolContext]


def trace(
    tokenizer: Tokenizer, harness: Harness, bound: BoundTask, plan: Sequence[Step], answer: str, tools: ToolContext
) -> Trace:
    """One demonstration: ``plan`` executed through ``tools``, then the final call with ``answer``."""
    framing = harness.framing
    ids = open_context(tokenizer, framing, bound.instruction, bound.inputs)
    mask = [0] * len(ids)

    def act(name: str, arguments: dict[str, str]) -> None:
        sampled = call_ids(tokenizer, name, arguments)
        ids.extend(sampled)
        mask.extend([1] * len(sampled))

    for step in plan:
        act(step.tool, dict(step.arguments))
        observed = observation_ids(tokenizer, framing, call(step.tool, step.arguments, tools).text)
        ids.extend(observed)
        mask.extend([0] * len(observed))
    act(framing.final_verb, {framing.final_argument: answer})
    return np.asarray(ids, np.int32), np.asarray(mask, np.uint8)


def draw_task(worlds: Sequence[World], rng: random.Random, family: str | None = None) -> tuple[World, BoundTask]:
    """A fresh task in one of ``worlds``: instructions are unlimited, the tables are fixed."""
    world = worlds[rng.randrange(len(worlds))]
    name = family or sorted(TEMPLATES)[rng.randrange(len(TEMPLATES))]
    return world, TEMPLATES[name].bind(world, rng)


class Demonstrator:
    """Batches of demonstrations over fixed worlds.

    Args:
        tokenizer: the policy's.
        worlds: what tasks are drawn from.
        tools_of: a world's tool context.
        seed: root of the draw.
        good_share: probability that a demonstration is the oracle's; the rest follow the imperfect demonstrator.
    """

    def __init__(
        self, tokenizer: Tokenizer, worlds: Sequence[World], tools_of: ToolsOfWorld, seed: int, good_share: float = 1.0
    ) -> None:
        self.tokenizer, self.worlds, self.tools_of = tokenizer, worlds, tools_of
        self.seed, self.good_share = seed, good_share
        self.harnesses = [HARNESSES[name] for name in sorted(HARNESSES)]

    def batch(self, name: str, step: int, size: int) -> list[Trace]:
        """The ``size`` demonstrations of one step, half of them in each harness's framing."""
        rng = stream(self.seed, "demonstrations", name, step)
        return [self._one(rng, self.harnesses[(step + i) % len(self.harnesses)]) for i in range(size)]

    def _one(self, rng: random.Random, harness: Harness) -> Trace:
        world, bound = draw_task(self.worlds, rng)
        plan, answer = bound.plan, bound.answer
        if rng.random() >= self.good_share:
            plan, answer = flawed(bound, world, rng)
        return trace(self.tokenizer, harness, bound, plan, answer, self.tools_of(world))


def tokenizer_corpus(worlds: Sequence[World], seed: int, n_tasks: int = 200) -> list[tuple[World, BoundTask]]:
    """The tasks whose traces the tokenizer is trained on."""
    rng = stream(seed, "tokenizer")
    return [draw_task(worlds, rng) for _ in range(n_tasks)]
