"""What both loops write down: a record and the guards' word for each step, evaluations, the fate of every Group."""

from __future__ import annotations

import json
import logging
import math
import time
from collections.abc import Sequence
from dataclasses import asdict, astuple, dataclass, field
from pathlib import Path
from typing import Any, Literal

from journeyman.durable import storage_error
from journeyman.train.guards.figures import Alarm
from journeyman.train.guards.table import Guards
from journeyman.train.loop.protocol import GroupOrder, Measured
from journeyman.train.loop.settling import SettledGroup
from journeyman.train.loop.spec import LoopSpec
from journeyman.train.metrics.live import figures_of
from journeyman.train.metrics.lost import Fate, LostReport, lost_report
from journeyman.train.metrics.prices import Spent
from journeyman.train.metrics.sinks import Sinks

LOG = logging.getLogger("journeyman.train.loop")

Status = Literal["done", "stopped", "nothing_to_learn", "interrupted"]


@dataclass
class LoopResult:
    """How a run ended.

    Attributes:
        status: ``done``; ``stopped`` by a guard or by quarantine; ``nothing_to_learn``: no Group has reward variance
            any more; ``interrupted``: it was asked to stop and can be resumed.
        steps: completed.
        records: of the steps of this session.
        alarms: of the guards in this session.
        counts: of the ledger.
        waived: Groups trained past the bound.
        lost: what the bound cost.
        checkpoint: the newest.
        evaluations: all that ended in this session.
    """

    status: Status
    steps: int
    records: list[dict[str, Any]]
    alarms: list[Alarm]
    counts: dict[str, int]
    waived: int
    lost: LostReport
    checkpoint: Path | None
    evaluations: list[Measured]

    def lines(self) -> list[str]:
        """As text, the bound's cost and every waiver included."""
        counts = ", ".join(f"{name.removeprefix('groups/')} {n}" for name, n in self.counts.items())
        found = [f"{self.status} after {self.steps} steps: {counts}"]
        if self.waived:
            found.append(f"bound waived: {self.waived} groups were trained although older than the bound (accept)")
        return found + self.lost.lines() + [f"alarm: {alarm}" for alarm in self.alarms]


@dataclass
class Totals:
    """Sums over a run that a checkpoint carries."""

    tokens_sampled: int = 0
    tokens_trained: int = 0
    usd: float = 0.0
    best: float = -math.inf
    quarantined_in_a_row: int = 0


@dataclass(frozen=True)
class Used:
    """Counters of a source at the record before."""

    sampled: int = 0
    prefilled: int = 0
    cpu_s: float = 0.0


class Books:
    """The books of one run.

    Args:
        root: of the run.
        spec: of the loop.
        sinks: where records go.
    """

    def __init__(self, root: Path, spec: LoopSpec, sinks: Sinks) -> None:
        self.root, self.spec, self.sinks = root, spec, sinks
        self.guards, self.totals = Guards(spec.guards), Totals()
        self.records: list[dict[str, Any]] = []
        self.alarms: list[Alarm] = []
        self.evaluations: list[Measured] = []
        self._news: Measured | None = None
        self._used, self._own_s = Used(), time.process_time()
        self._fates: dict[int, Fate] = dict(_read_fates(root / "fates.jsonl"))
        try:
            root.mkdir(parents=True, exist_ok=True)
            self._fates_file = (root / "fates.jsonl").open("a", encoding="utf-8")
        except OSError as error:
            raise storage_error(root / "fates.jsonl", error) from error

    def step(self, step: int, record: dict[str, Any], groups: Sequence[SettledGroup]) -> list[Alarm]:
        """Write the record of a step; what the guards say about it."""
        self.totals.tokens_sampled += int(record["tokens/sampled"])
        self.totals.tokens_trained += int(record["tokens/trained"])
        dollars = self.spec.prices.dollars(self._spent(record))
        record |= dollars
        self.totals.usd += float(record["usd/trials"]) + sum(dollars.values())
        self.totals.quarantined_in_a_row = 0
        record |= {"total/tokens_sampled": self.totals.tokens_sampled, "total/usd": self.totals.usd}
        figures = figures_of(step, record, groups, self._news)
        self._news = None
        alarms = self.guards.observe(figures)
        record["alarms"] = [str(alarm) for alarm in alarms]
        self.records.append({"step": step, **record})
        self.alarms += alarms
        self.sinks.write(step, record)
        for alarm in alarms:
            LOG.warning("%s", alarm)
        return alarms

    def _spent(self, record: dict[str, Any]) -> Spent:
        """What was used since the record before: the source's counters, and the cores of this process."""
        now = Used(
            int(record["rollout/sampled_tokens"]), int(record["rollout/prefilled_tokens"]), record["rollout/cpu_s"]
        )
        own_s = time.process_time()
        gone = Used(*(max(0, new - old) for new, old in zip(astuple(now), astuple(self._used), strict=True)))
        cpu_s, self._used, self._own_s = gone.cpu_s + own_s - self._own_s, now, own_s
        record["time/cpu_s"] = cpu_s
        return Spent(float(record["time/wall_s"]), gone.sampled, gone.prefilled, cpu_s)

    def measured(self, found: Measured) -> bool:
        """Take an evaluation in; True when it is the best so far."""
        self.evaluations.append(found)
        self._news = found
        self.sinks.write(found.version, {f"dev/{name}": value for name, value in asdict(found).items()})
        value = found.mean_reward
        if value is None or value <= self.totals.best:
            return False
        self.totals.best = value
        return True

    def settled(self, group: SettledGroup, fate: str) -> None:
        """Note what became of a finished Group."""
        trials = [trial for trial in group.trials if trial.num_sampled]
        length = sum(trial.num_sampled for trial in trials) / len(trials) if trials else math.nan
        tokens = sum(trial.num_sampled for trial in group.trials)
        self._note(group.order.position, Fate(group.order.task, fate, tokens, length, group.difficulty))

    def abandoned(self, order: GroupOrder, tokens: int, fate: str) -> None:
        """Note a Group that was given up while it ran."""
        self._note(order.position, Fate(order.task, fate, tokens, math.nan, math.nan))

    @property
    def lost(self) -> LostReport:
        """Of all Groups so far."""
        return lost_report(list(self._fates.values()))

    def state(self) -> dict[str, Any]:
        """Plain JSON that ``load`` takes back."""
        totals = asdict(self.totals)
        totals["best"] = None if math.isinf(self.totals.best) else self.totals.best
        return {"guards": self.guards.state(), "totals": totals}

    def load(self, state: dict[str, Any]) -> None:
        """Go on where another session stood."""
        self.guards.load(state["guards"])
        totals = dict(state["totals"])
        self.totals = Totals(**{**totals, "best": -math.inf if totals["best"] is None else totals["best"]})

    def close(self) -> None:
        """Flush everything. Idempotent."""
        self._fates_file.close()
        self.sinks.close()

    def _note(self, position: int, fate: Fate) -> None:
        self._fates[position] = fate
        values = {k: None if isinstance(v, float) and math.isnan(v) else v for k, v in asdict(fate).items()}
        self._fates_file.write(json.dumps({"position": position, **values}) + "\n")
        self._fates_file.flush()


def _read_fates(path: Path) -> list[tuple[int, Fate]]:
    """Of every Group, by position; the last word about one counts. A torn last line is ignored."""
    found: list[tuple[int, Fate]] = []
    if not path.is_file():
        return found
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            row = json.loads(line)
        except ValueError:
            continue
        position = int(row.pop("position"))
        values: dict[str, Any] = {k: math.nan if v is None else v for k, v in row.items()}
        found.append((position, Fate(**values)))
    return found


@dataclass(frozen=True)
class Stop:
    """Why a loop ends before its last step."""

    status: Status
    alarms: list[Alarm] = field(default_factory=list)
