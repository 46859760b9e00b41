"""Each guard on simulated streams with realistic noise: a planted fault alarms within five steps."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pytest

from journeyman.train.guards import Alarm, Guards, GuardSpec, StepFigures
from journeyman.train.guards.quarantine import keep_batch, offending_rows
from journeyman.train.protocol import TrainRow

SEEDS = range(12)
FAULT_AT = 60
"""Step at which a fault is planted: the baseline is known, and learning is under way."""


def healthy(seed: int, steps: int = 200) -> Iterator[StepFigures]:
    """A run that learns: reward rises, entropy falls by two thirds, trials grow by half, all with the noise of a small
    batch; evaluations every fourth step."""
    rng = random.Random(seed)
    for step in range(1, steps + 1):
        t = step / steps
        true_reward = 0.2 + 0.5 * (1 - math.exp(-3 * t))
        dip = 0.04 if 5 <= step <= 15 else 0.0  # quick tasks first: pass@1 dips early and recovers
        reward = min(1.0, max(0.0, true_reward + rng.gauss(0, 0.03)))
        evaluates = step % 4 == 0
        pass_1 = true_reward - dip + rng.gauss(0, 0.02)
        yield StepFigures(
            step=step,
            reward=reward,
            entropy=max(0.05, (1.2 - 0.8 * t) * math.exp(rng.gauss(0, 0.05))),
            gap_mean=0.008 * math.exp(rng.gauss(0, 0.1)),
            gap_q99=0.06 * math.exp(rng.gauss(0, 0.15)),
            grad_norm=0.4 * math.exp(rng.gauss(0, 0.35)),
            length=400 * (1 + 0.5 * t) * math.exp(rng.gauss(0, 0.05)),
            defects=min(1.0, max(0.0, 0.06 + rng.gauss(0, 0.02))),
            proxy=pass_1 if evaluates else None,
            pass_k=min(1.0, true_reward + 0.15 + rng.gauss(0, 0.025)) if evaluates else None,
            pass_k_error=0.025 if evaluates else None,
            pass_1=pass_1 if evaluates else None,
        )


def hacked(seed: int, change: Callable[[StepFigures, int], StepFigures]) -> Iterator[StepFigures]:
    for figures in healthy(seed):
        after = figures.step - FAULT_AT
        yield change(figures, after) if after >= 0 else figures


def alarms_of(stream: Iterator[StepFigures], spec: GuardSpec | None = None) -> list[Alarm]:
    guards = Guards(spec or GuardSpec())
    return [alarm for figures in stream for alarm in guards.observe(figures)]


def longer(f: StepFigures, after: int) -> StepFigures:
    """The policy finds that padding pays: 12 % more tokens with each step."""
    return replace(f, length=f.length * 1.12 ** (after + 1), reward=min(1.0, f.reward + 0.01 * after))


def broken_format(f: StepFigures, after: int) -> StepFigures:
    """More and more rewarded trials are malformed."""
    return replace(f, defects=min(1.0, (f.defects or 0.0) + 0.08 * (after + 1)))


def verifier_only(f: StepFigures, after: int) -> StepFigures:
    """The verifier pays, dev does not move: measured with every step here."""
    return replace(f, reward=min(1.0, f.reward + 0.06 * (after + 1)))


def wrong_weights(f: StepFigures, after: int) -> StepFigures:
    return replace(f, gap_mean=0.05, gap_q99=0.4)


def creeping_gap(f: StepFigures, after: int) -> StepFigures:
    """0.008 to 0.02 in five steps, all below the limit."""
    return replace(f, gap_mean=(f.gap_mean or 0.0) * (1 + 0.3 * (after + 1)))


def exploding(f: StepFigures, after: int) -> StepFigures:
    return replace(f, grad_norm=f.grad_norm * 8) if after >= 1 else f


def collapsing(f: StepFigures, after: int) -> StepFigures:
    """Entropy and pass@k fall together; dev is measured with every step."""
    factor = 0.75 ** (after + 1)
    measured = {"pass_k": 0.6 * factor, "pass_k_error": 0.025, "pass_1": 0.4 * factor}
    return replace(f, entropy=f.entropy * factor, **measured)


def with_proxy_each_step(seed: int) -> Iterator[StepFigures]:
    rng = random.Random(1000 + seed)
    for f in healthy(seed):
        yield replace(f, proxy=f.reward + rng.gauss(0, 0.02))


FAULTS = {
    "length": longer,
    "format": broken_format,
    "gap": wrong_weights,
    "gradient": exploding,
    "collapse": collapsing,
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_alarms_within_five_steps_in_every_run(name):
    for seed in SEEDS:
        found = [a.step for a in alarms_of(hacked(seed, FAULTS[name])) if a.guard == name and a.step >= FAULT_AT]
        assert found and found[0] < FAULT_AT + 5, (seed, found[:3])


def test_gains_that_only_the_verifier_sees_alarm_within_five_steps():
    for seed in SEEDS:
        stream = (verifier_only(f, f.step - FAULT_AT) if f.step >= FAULT_AT else f for f in with_proxy_each_step(seed))
        found = [a.step for a in alarms_of(stream) if a.guard == "proxy" and a.step >= FAULT_AT]
        assert found and found[0] < FAULT_AT + 5, (seed, found[:3])


def test_a_gap_that_creeps_up_below_the_limit_alarms_within_five_steps():
    for seed in SEEDS:
        found = [a for a in alarms_of(hacked(seed, creeping_gap)) if a.guard == "gap" and a.step >= FAULT_AT]
        assert found and found[0].step < FAULT_AT + 5 and "rises" in found[0].text, seed


@pytest.mark.parametrize("name", [*FAULTS, "proxy"])
def test_200_clean_steps_give_at_most_one_false_alarm(name):
    for seed in SEEDS:
        stream = with_proxy_each_step(seed) if name == "proxy" else healthy(seed)
        found = [alarm for alarm in alarms_of(stream) if alarm.guard == name]
        assert len(found) <= 1, (seed, [str(alarm) for alarm in found])


def test_neither_falling_entropy_nor_falling_pass_at_k_alone_is_a_collapse():
    def sure(f: StepFigures, after: int) -> StepFigures:
        return replace(f, entropy=f.entropy * 0.85 ** min(after, 12))

    def dip(f: StepFigures, after: int) -> StepFigures:
        fallen = 0.5 if after < 12 else 1.0
        return replace(f, pass_k=None if f.pass_k is None else f.pass_k * fallen)

    for change in (sure, dip):
        for seed in SEEDS:
            assert not [a for a in alarms_of(hacked(seed, change)) if a.guard == "collapse"]


def test_an_alarm_says_what_was_seen_and_a_collapse_shows_the_share_of_short_easy_tasks():
    stream = (replace(f, short_share=0.7) for f in hacked(1, collapsing))
    found = next(a for a in alarms_of(stream) if a.guard == "collapse")
    assert "pass@k on dev fell from" in found.text and "short, easy share of the buffer 70%" in found.text
    assert str(found).startswith(f"step {found.step}: collapse: ")


def test_a_gap_that_is_no_number_alarms_and_one_that_could_not_be_measured_does_not():
    one = next(healthy(0))
    assert [a.guard for a in Guards(GuardSpec()).observe(replace(one, gap_mean=math.nan))] == ["gap"]
    assert not Guards(GuardSpec()).observe(replace(one, gap_mean=None, gap_q99=None))


def test_a_guard_that_is_off_says_nothing_and_stop_is_told_from_warn():
    spec = GuardSpec(on_gap="off", on_length="stop")
    assert not [a for a in alarms_of(hacked(0, wrong_weights), spec) if a.guard == "gap"]
    guards = Guards(spec)
    assert guards.stops(Alarm("length", 1, "")) and not guards.stops(Alarm("format", 1, ""))


def test_guards_resume_from_their_state_and_say_the_same():
    stream = list(hacked(3, longer))
    whole = alarms_of(iter(stream))
    first, second = Guards(GuardSpec()), Guards(GuardSpec())
    found = [a for f in stream[:61] for a in first.observe(f)]
    second.load(json.loads(json.dumps(first.state())))
    found += [a for f in stream[61:] for a in second.observe(f)]
    assert found == whole


def row(logprobs: list[float], advantage: float = 1.0) -> TrainRow:
    n = len(logprobs) + 1
    mask = np.array([0] + [1] * (n - 1), dtype=np.uint8)
    values = np.array([0.0, *logprobs], dtype=np.float32)
    return TrainRow(np.arange(n, dtype=np.int32), mask, values, advantage, 0)


def test_a_batch_that_is_not_finite_is_found_row_by_row_and_kept_whole(tmp_path):
    rows = [row([-1.0, -2.0]), row([-1.0, math.nan]), row([-1.0], advantage=math.inf), row([0.5])]
    found = offending_rows(rows)
    assert sorted(found) == [1, 2, 3] and "not finite" in found[1] and "no probability" in found[3]
    assert not offending_rows(rows[:1])
    kept = keep_batch(tmp_path / "step-1", rows, {"reason": found[1]})
    with np.load(kept / "rows.npz") as data:
        assert data["offsets"].tolist() == [0, 3, 6, 8, 10] and np.isnan(data["logprobs"][5])
    assert json.loads((kept / "why.json").read_text())["reason"] == found[1]
