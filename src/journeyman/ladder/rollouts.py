"""Sampling with grading: the inline executor, and one fresh verifier sandbox per batch."""

from __future__ import annotations

from collections.abc import Sequence

from journeyman.engines.protocol import Engine
from journeyman.ladder.workshop import Workshop
from journeyman.trials.inline import InlineExecutor
from journeyman.trials.record import Trial, TrialRequest


class Rollouts:
    """Runs trial requests on one engine and grades them.

    Attributes:
        engine: whose weights act.
        seed: root of the sampling noise.
    """

    def __init__(self, workshop: Workshop, engine: Engine) -> None:
        self.engine, self.seed = engine, workshop.recipe.seed
        self._workshop = workshop
        self._executor = InlineExecutor(
            engine,
            workshop.tokenizer,
            workshop.tools_of_task,
            max_context=workshop.recipe.engine.max_context,
            seed=self.seed,
        )

    def run(self, requests: Sequence[TrialRequest]) -> list[Trial]:
        """Every attempt of every request, graded in one fresh verifier sandbox."""
        with self._workshop.verifier() as verifier:
            return self._executor.run(requests, verifier)
