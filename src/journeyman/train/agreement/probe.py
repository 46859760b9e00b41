"""Make an engine sample, push weights to it between turns and within one, and ask the trainer about the same ids.

Three legs: ``as opened`` (several turns under the first weights), ``after a push`` (the weights move, trials that were
under way go on and fresh ones open with prompts the engine has seen), ``pushed within a turn`` (the weights move while
tokens are being sampled). Every token is compared under the weights of its own version.
"""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from journeyman.clock import Stopwatch
from journeyman.deadline import Deadline
from journeyman.engines.protocol import Engine, KvMode, Sampling, TurnRequest, TurnResult
from journeyman.errors import SystemFault
from journeyman.seeds import key64, stream
from journeyman.tokens.context import Source
from journeyman.train.agreement.gate import IN_FLIGHT, LEGS, OPENED, PUSHED
from journeyman.train.agreement.measure import Sampled
from journeyman.train.protocol import Trainer, TrainRow

LOG = logging.getLogger(__name__)
GLANCE_S = 0.05
"""How long a remote engine runs at most between two looks while a push within a turn is being waited for."""


@dataclass(frozen=True)
class Plan:
    """How much is sampled.

    Attributes:
        vocab: ids 0 to vocab - 1 are drawn from for prompts and tool results.
        trials, turns: of each leg.
        prompt_tokens, append_tokens, new_tokens: of a prompt, of what follows a turn, sampled in a turn at most.
        temperature: of sampling; the trainer is asked at temperature 1, so anything else must be found.
        deadline_s: for each push and each wait.
    """

    vocab: int
    seed: int = 0
    trials: int = 16
    turns: int = 3
    prompt_tokens: int = 48
    append_tokens: int = 16
    new_tokens: int = 24
    temperature: float = 1.0
    deadline_s: float = 300.0


@dataclass
class _Trial:
    """A context as it grows: one column entry per token."""

    leg: str
    legs: list[int] = field(default_factory=list)
    ids: list[int] = field(default_factory=list)
    mask: list[int] = field(default_factory=list)
    logprob: list[float] = field(default_factory=list)
    version: list[int] = field(default_factory=list)
    source: list[int] = field(default_factory=list)

    def give(self, ids: Sequence[int], source: int, version: int) -> None:
        self._extend(ids, 0, [0.0] * len(ids), [version] * len(ids), source)

    def take(self, result: TurnResult) -> None:
        versions = [span.version for span in result.spans for _ in range(span.start, span.end)]
        self._extend(result.ids, 1, result.logprobs.tolist(), versions, Source.SAMPLED)

    def _extend(
        self, ids: Sequence[int], mask: int, logprob: Sequence[float], version: Sequence[int], source: int
    ) -> None:
        self.ids += ids
        self.mask += [mask] * len(ids)
        self.logprob += logprob
        self.version += version
        self.source += [source] * len(ids)
        self.legs += [LEGS.index(self.leg)] * len(ids)


class Probe:
    """One measurement.

    Args:
        engine: serves the trainer's weights; its trials must be none. At the end it is given them again, under the
            version after the last one pushed.
        trainer: keeps its weights: they are restored at the end.
        move: changes the trainer's weights a little, every tensor of them; called twice.
        plan: how much.
    """

    def __init__(self, engine: Engine, trainer: Trainer, move: Callable[[], None], plan: Plan) -> None:
        self._engine, self._trainer, self._move, self._plan = engine, trainer, move, plan
        self._trials: dict[str, _Trial] = {}
        self._states: dict[int, Path] = {}
        self._kept = "kv_recompute" not in engine.capabilities
        self._turn_s = 0.0

    def run(self) -> list[Sampled]:
        """Sample all legs, then compare. Raises what engine and trainer raise."""
        with tempfile.TemporaryDirectory(prefix="agreement-") as folder:
            self._folder = Path(folder)
            self._states[self._engine.version] = self._trainer.save_state(self._folder / "0")
            try:
                self._sample()
                return self._compare()
            finally:
                for name in self._trials:
                    self._engine.release(name)
                self._trainer.load_state(next(iter(self._states.values())))
                if len(self._states) > 1:
                    self._give_back()

    def _sample(self) -> None:
        names = [self._open(OPENED, number) for number in range(self._plan.trials)]
        for turn in range(self._plan.turns):
            self._turn(names, turn)
        self._push()
        for name in names:  # goes on after a prefix of the old weights
            self._trials[name].leg = PUSHED
        late = [self._open(PUSHED, number) for number in range(self._plan.trials)]  # prompts seen before
        self._turn(names, self._plan.turns)
        for turn in range(self._plan.turns):
            self._turn(late, turn)
        if "inflight_update" in self._engine.capabilities:
            flying = [self._open(IN_FLIGHT, self._plan.trials + number) for number in range(self._plan.trials)]
            version = self._move_on()
            long = self._plan.new_tokens * (self._plan.turns + 1)  # so that the push finds the turns under way
            self._turn(flying, 0, new_tokens=long, meanwhile=lambda: self._send(version))

    def _open(self, leg: str, number: int) -> str:
        name = f"{leg} {number}"
        self._trials[name] = _Trial(leg)
        return name

    def _turn(
        self,
        names: Sequence[str],
        turn: int,
        *,
        new_tokens: int | None = None,
        meanwhile: Callable[[], None] | None = None,
    ) -> None:
        plan = self._plan
        for name in names:
            number = int(name.rpartition(" ")[2])
            length, source = (plan.append_tokens, Source.OBSERVATION) if turn else (plan.prompt_tokens, Source.PROMPT)
            draw = stream(plan.seed, "agreement", number, turn)
            ids = [draw.randrange(plan.vocab) for _ in range(draw.randint((length + 1) // 2, length))]
            sampling = Sampling(new_tokens or plan.new_tokens, plan.temperature, frozenset())
            key = key64(plan.seed, "agreement", name, turn)
            self._engine.submit(TurnRequest(name, ids, key, sampling))
            self._trials[name].give(ids, source, self._engine.version)
        waiting, watch = set(names), Stopwatch()
        if meanwhile:
            glance_s = min(GLANCE_S, self._turn_s / plan.new_tokens)  # about a token's time on a remote engine
            for _ in range(plan.new_tokens // 3):  # an engine of this process samples a token a step
                waiting -= self._collect(glance_s)
            meanwhile()
        deadline = Deadline.after(plan.deadline_s, "a turn of the probe")
        while waiting:
            deadline.check()
            waiting -= self._collect(plan.deadline_s)
        self._turn_s = watch.elapsed_s

    def _collect(self, deadline_s: float) -> set[str]:
        ended = self._engine.step(deadline_s)
        for result in ended:
            self._trials[result.trial].take(result)
        return {result.trial for result in ended}

    def _push(self) -> None:
        self._send(self._move_on())

    def _move_on(self) -> int:
        """Move the trainer's weights and remember them; the version under which they are to be pushed."""
        self._move()
        version = self._engine.version + 1
        self._states[version] = self._trainer.save_state(self._folder / str(version))
        return version

    def _send(self, version: int) -> None:
        self._trainer.push_weights(_Receiver(self._engine, None if self._kept else "recompute", self._plan), version)

    def _give_back(self) -> None:
        """The trainer's own weights to the engine: a server outlives the probe and should not serve moved ones."""
        version = max(self._engine.version, *self._states) + 1
        try:
            self._trainer.push_weights(_Receiver(self._engine, None, self._plan), version)
        except SystemFault as error:
            LOG.warning("the engine was not given its weights back and serves moved ones: %s", error)

    def _compare(self) -> list[Sampled]:
        rows = [TrainRow(*_columns(trial), 0.0, 0) for trial in self._trials.values()]
        versions = [np.array(trial.version, np.int32) for trial in self._trials.values()]
        trainer = [np.zeros(len(row.ids), np.float32) for row in rows]
        for version, state in self._states.items():
            self._trainer.load_state(state)
            chosen = [n for n, column in enumerate(versions) if np.any((column == version) & (rows[n].mask == 1))]
            for n, values in zip(chosen, self._trainer.forward_logprobs([rows[n] for n in chosen]), strict=True):
                trainer[n] = np.where(versions[n] == version, values, trainer[n])
        return [
            Sampled(row.mask, row.logprobs, pi, v, np.array(t.source, np.uint8), np.array(t.legs, np.uint8), self._kept)
            for row, pi, v, t in zip(rows, trainer, versions, self._trials.values(), strict=True)
        ]


@dataclass(frozen=True)
class _Receiver:
    """The engine as a trainer sees it, with this probe's wishes for a push."""

    engine: Engine
    kv: KvMode | None
    plan: Plan

    def update_weights(self, state: Any, version: int) -> None:
        self.engine.update_weights(state, version, kv=self.kv, deadline_s=self.plan.deadline_s)


def _columns(trial: _Trial) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return np.array(trial.ids, np.int32), np.array(trial.mask, np.uint8), np.array(trial.logprob, np.float32)
