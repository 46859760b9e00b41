"""The loop's rules without an engine: account, capacity, bound, filter, buffer, order, concurrency."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from journeyman.errors import InputError
from journeyman.train.loop.admission import AdmissionSpec, capacity
from journeyman.train.loop.bound import can_step, is_late
from journeyman.train.loop.concurrency import (
    COOLDOWN_POLLS,
    QUEUE_POLLS,
    Concurrency,
    EnginePoll,
)
from journeyman.train.loop.gate import PATIENCE_STEPS, Gate, GateSpec
from journeyman.train.loop.ledger import Ledger, WrongTransition
from journeyman.train.loop.order import TaskOrder
from journeyman.train.loop.protocol import FinishedTrial, GroupOrder
from journeyman.train.loop.settling import GroupRule, SettledGroup, rows_of, settle
from journeyman.train.switches import LengthPenalty, Switches


def trial(position: int, sample: int, reward: float | None, *, version: int = 0, sampled: int = 3) -> FinishedTrial:
    mask = np.array([0, 0] + [1] * sampled, dtype=np.uint8)
    return FinishedTrial(
        position=position,
        sample=sample,
        ids=np.arange(len(mask), dtype=np.int32),
        mask=mask,
        logprobs=np.where(mask, -1.0, 0.0).astype(np.float32),
        versions=np.where(mask, version, -1).astype(np.int32),
        reward=reward,
        passed=None if reward is None else reward == 1,
        cause="none" if reward is not None else "sandbox_failed",
    )


def group(position: int, *, version: int = 0, rewards: tuple[float | None, ...] = (0.0, 1.0)) -> SettledGroup:
    order = GroupOrder(position, position % 5, len(rewards), version)
    trials = [trial(position, i, reward, version=version) for i, reward in enumerate(rewards)]
    return settle(order, trials, GroupRule())


@pytest.mark.parametrize(
    ("version", "accepted", "expected"),
    [(0, 0, 64), (100, 0, 1664), (100, 100 * 16, 64)],
)
def test_capacity_has_the_reference_values(version, accepted, expected):
    spec = AdmissionSpec(groups_per_step=16, staleness=3, max_running=10_000)
    assert capacity(spec, version=version, accepted=accepted, running=0) == expected


def test_capacity_is_bounded_by_what_may_run_at_once_and_counts_what_runs():
    spec = AdmissionSpec(groups_per_step=16, staleness=3, max_running=10)
    assert capacity(spec, version=0, accepted=0, running=4) == 6
    assert capacity(AdmissionSpec(16, 3, 10_000), version=0, accepted=10, running=50) == 4
    with pytest.raises(InputError, match="staleness"):
        AdmissionSpec(16, -1, 10)


def test_a_group_moved_from_where_it_is_not_is_a_bug_that_is_named():
    ledger = Ledger()
    ledger.submit(0)
    with pytest.raises(WrongTransition, match="group 0 is running, not queued"):
        ledger.take(0)
    with pytest.raises(WrongTransition, match="submitted twice"):
        ledger.submit(0)
    ledger.trained += 1
    with pytest.raises(WrongTransition, match="is not the sum of its parts"):
        ledger.check()


def test_a_group_dropped_after_it_was_accepted_gives_its_place_back():
    ledger = Ledger()
    for position in range(3):
        ledger.submit(position)
        ledger.queue(position)
    assert ledger.accepted == 3
    ledger.drop(1, "stale")
    assert ledger.accepted == 2 and ledger.dropped == Counter(stale=1)


def test_hold_waits_before_two_old_groups_are_due_in_one_step():
    # b and c began at version 0 with S = 2 and B = 1: both would be due at version 2 if another went first at 1
    assert can_step([0, 0], version=0, limit=2, groups_per_step=1)
    assert not can_step([0, 0], version=1, limit=2, groups_per_step=1)
    assert can_step([0], version=1, limit=2, groups_per_step=1)
    assert not is_late(3, 0, 3) and is_late(4, 0, 3)


def test_an_errored_trial_enters_no_baseline_as_zero():
    mixed = group(0, rewards=(1.0, 0.0, None, 1.0))
    rows = rows_of([mixed], "grpo_nostd")
    assert [round(float(row.advantage), 3) for row in rows] == [0.333, -0.667, 0.333]
    assert mixed.errors == Counter(sandbox_failed=1)


def test_a_group_is_filtered_with_its_reason():
    assert group(0, rewards=(1.0, 1.0)).reason == "zero_variance"
    assert group(0, rewards=(1.0, None, None, None)).reason == "too_few_valid"
    assert group(0, rewards=(1.0, 0.0, None, None)).reason == ""
    order = GroupOrder(0, 0, 2, 0)
    silent = [trial(0, 0, 1.0, sampled=0), trial(0, 1, 0.0, sampled=0)]
    assert settle(order, silent, GroupRule()).reason == "nothing_sampled"
    with pytest.raises(InputError, match="each once"):
        settle(order, silent[:1], GroupRule())


def test_an_error_storm_makes_no_reward_of_zero():
    storm = [group(p, rewards=tuple([None] * 15 + [1.0])) for p in range(20)]
    assert {g.reason for g in storm} == {"too_few_valid"}
    assert not rows_of([g for g in storm if not g.reason], "grpo")


def test_overlong_trials_leave_after_the_baseline_and_length_costs_reward():
    found = group(0, rewards=(1.0, 0.0, 1.0, 0.0))
    cut = FinishedTrial(**{**found.trials[0].__dict__, "facts": {"stop_reason": "limit.tokens"}})
    cut_group = SettledGroup(**{**found.__dict__, "trials": (cut, *found.trials[1:])})
    rows = rows_of([cut_group], "grpo_nostd", Switches(overlong="filter"))
    assert len(rows) == 3 and float(rows[0].advantage) == -0.5
    longer = trial(0, 0, 1.0, sampled=30)
    long_group = SettledGroup(**{**found.__dict__, "trials": (longer, *found.trials[1:])})
    penalty = LengthPenalty(generated=1.0, budget_tokens=100)
    paid = rows_of([long_group], "grpo_nostd", Switches(length_penalty=penalty))
    assert float(paid[0].advantage) < float(paid[2].advantage)


def test_the_oldest_token_decides_how_old_a_group_is():
    old = trial(0, 0, 1.0, version=5)
    versions = old.versions.copy()
    versions[2] = 3
    mixed = FinishedTrial(**{**old.__dict__, "versions": versions})
    settled = settle(GroupOrder(0, 0, 2, 2), [mixed, trial(0, 1, 0.0, version=7)], GroupRule())
    assert (settled.oldest, settled.newest) == (3, 7)


def test_the_task_order_is_endless_seeded_and_resumes_by_its_count():
    order = TaskOrder(5, seed=1, name="rl")
    first = [order.next() for _ in range(12)]
    assert sorted(first[:5]) == list(range(5)) and sorted(first[5:10]) == list(range(5)) and first[:5] != first[5:10]
    other = TaskOrder(5, seed=1, name="rl")
    for _ in range(7):
        other.next()
    again = TaskOrder(5, seed=1, name="rl")
    again.load(other.state())
    assert [again.next() for _ in range(5)] == first[7:12]
    again.again(3)
    drawn = again.drawn
    assert again.next() == 3 and again.drawn == drawn


def test_the_filter_cannot_make_the_trainer_wait_for_ever():
    gate = Gate(GateSpec(AdmissionSpec(2, 1, 100), policy="hold"))
    position = 0
    gate.submit(GroupOrder(position, 0, 2, 0))
    gate.finish(group(position))
    for _ in range(PATIENCE_STEPS * 2):
        position += 1
        assert gate.room() > 0
        gate.submit(GroupOrder(position, 0, 2, 0))
        gate.finish(group(position, rewards=(1.0, 1.0)))
    take = gate.take()
    assert take.is_partial and len(take.groups) == 1
    gate.step_done()
    for _ in range(PATIENCE_STEPS * 2):
        position += 1
        gate.submit(GroupOrder(position, 0, 2, 1))
        gate.finish(group(position, version=1, rewards=(1.0, 1.0)))
    assert gate.take().waits_for == "nothing"


def test_a_balanced_buffer_lets_only_a_window_of_groups_overtake_a_slow_one():
    spec = GateSpec(AdmissionSpec(2, 3, 100), policy="accept", order="balanced", window=2)
    gate = Gate(spec)
    for position in range(8):
        gate.submit(GroupOrder(position, 0, 2, 0))
    for position in (3, 4, 5, 1, 2):
        gate.finish(group(position))
    assert [g.order.position for g in gate.take().groups] == [1, 2]
    gate.step_done()
    assert gate.take().waits_for == "groups"  # 3, 4 and 5 are beyond the window behind group 0
    gate.finish(group(0))
    assert [g.order.position for g in gate.take().groups] == [0, 3]


def test_what_is_accepted_past_the_bound_is_counted():
    gate = Gate(GateSpec(AdmissionSpec(1, 0, 10), policy="accept"))
    gate.submit(GroupOrder(0, 0, 2, 0))
    gate.version = 4
    gate.finish(group(0))
    assert gate.take().groups and gate.waived == 1


def test_requeue_and_drop_give_up_what_is_late_wherever_it_is():
    told: list[tuple[int, str]] = []
    gate = Gate(
        GateSpec(AdmissionSpec(1, 1, 10), policy="requeue"), lambda order, g, reason: told.append((order.task, reason))
    )
    for position in range(3):
        gate.submit(GroupOrder(position, position, 2, 0))
    gate.finish(group(0))
    gate.version = 2
    late = gate.sweep()
    assert [g.order.position for g in late.dropped] == [0] and [o.position for o in late.cancelled] == [1, 2]
    assert told == [(0, "requeued"), (1, "requeued"), (2, "requeued")]
    assert gate.ledger.in_flight == 0 and gate.room() > 0


class GateMachine(RuleBasedStateMachine):
    """Random events on a gate: the account adds up, nothing older than the bound is trained, nothing deadlocks."""

    policy = "hold"

    def __init__(self) -> None:
        super().__init__()
        self.spec = AdmissionSpec(groups_per_step=2, staleness=2, max_running=12)
        self.gate = Gate(GateSpec(self.spec, policy=self.policy))  # type: ignore[arg-type]
        self.position = 0
        self.trained_ages: list[int] = []

    @rule(count=st.integers(1, 6))
    def submit(self, count: int) -> None:
        for _ in range(min(count, self.gate.room())):
            self.gate.submit(GroupOrder(self.position, self.position % 7, 2, self.gate.version))
            self.position += 1

    @precondition(lambda self: self.gate.running)
    @rule(data=st.data(), fate=st.sampled_from(["ready", "ready", "ready", "uniform", "broken"]))
    def finish(self, data: st.DataObject, fate: str) -> None:
        position = data.draw(st.sampled_from(sorted(self.gate.running)))
        order = self.gate.running[position]
        rewards = {"ready": (0.0, 1.0), "uniform": (1.0, 1.0), "broken": (None, None)}[fate]
        newer = data.draw(st.integers(order.version, self.gate.version))
        trials = [trial(position, 0, rewards[0], version=newer), trial(position, 1, rewards[1], version=newer)]
        self.gate.finish(settle(order, trials, GroupRule()))

    @rule()
    def step(self) -> None:
        self.gate.sweep()
        take = self.gate.take()
        if take.groups:
            self.trained_ages += [self.gate.version - g.oldest for g in take.groups]
            self.gate.step_done()

    @rule()
    def lose_a_batch(self) -> None:
        self.gate.sweep()
        if self.gate.take().groups:
            self.gate.quarantine()

    @invariant()
    def the_account_adds_up(self) -> None:
        self.gate.ledger.check()
        assert len(self.gate.buffer) + len(self.gate.running) == self.gate.ledger.in_flight

    @invariant()
    def nothing_older_than_the_bound_is_trained(self) -> None:
        if self.policy != "accept":
            assert all(age <= self.spec.staleness for age in self.trained_ages)

    @invariant()
    def never_more_in_flight_than_the_bound_allows(self) -> None:
        assert self.gate.ledger.in_flight <= self.spec.most_in_flight

    @invariant()
    def something_can_always_happen(self) -> None:
        can_submit, can_finish = self.gate.room() > 0, bool(self.gate.running)
        if not can_submit and not can_finish:
            self.gate.sweep()
            take = self.gate.take()
            assert take.groups or self.gate.room() > 0, take
            if take.groups:
                self.gate.step_done()

    @invariant()
    def hold_loses_nothing_to_the_bound(self) -> None:
        if self.policy == "hold":
            assert set(self.gate.ledger.dropped) <= {"quarantined"}


class DropMachine(GateMachine):
    policy = "drop"


class RequeueMachine(GateMachine):
    policy = "requeue"


class AcceptMachine(GateMachine):
    policy = "accept"


@pytest.mark.parametrize("machine", [GateMachine, DropMachine, RequeueMachine, AcceptMachine], ids=lambda m: m.policy)
def test_any_order_of_events_keeps_the_account_the_bound_and_the_way_out(machine):
    from hypothesis.stateful import run_state_machine_as_test

    run_state_machine_as_test(machine, settings=settings(max_examples=25, stateful_step_count=40, deadline=None))


@given(
    drops=st.lists(st.booleans(), min_size=200, max_size=200),
    staleness=st.integers(0, 3),
    batch=st.integers(1, 4),
)
@settings(max_examples=25, deadline=None)
def test_a_run_with_half_its_groups_dropped_never_deadlocks(drops, staleness, batch):
    gate = Gate(GateSpec(AdmissionSpec(batch, staleness, 64), policy="drop"))
    position = 0
    for is_dropped in drops:
        for _ in range(gate.room()):
            gate.submit(GroupOrder(position, 0, 2, gate.version))
            position += 1
        first = min(gate.running)
        gate.finish(group(first, version=gate.running[first].version, rewards=(1.0, 1.0 if is_dropped else 0.0)))
        gate.sweep()
        if gate.take().groups:
            gate.step_done()
    assert gate.version >= (len(drops) - sum(drops)) // batch - staleness - 1 - gate.ledger.dropped.total()
    assert gate.ledger.submitted > 0 and gate.room() >= 0


def test_a_saved_gate_goes_on_where_it_stood_with_its_step_under_way_queued_again():
    gate = Gate(GateSpec(AdmissionSpec(1, 2, 10)))
    for position in range(3):
        gate.submit(GroupOrder(position, 0, 2, 0))
    gate.finish(group(0))
    gate.take()
    gate.step_done()
    gate.finish(group(1))
    other = Gate(gate.spec)
    other.restore(gate.state(), list(gate.running.values()), gate.buffer.groups())
    assert other.state() == gate.state() and other.room() == gate.room()
    taken = gate.take()
    assert len(taken.groups) == 1
    assert Ledger.from_state(gate.ledger.state()).phase == {1: "queued", 2: "running"}


def poll(at: float, share: float, in_flight: int = 100, **more: int) -> EnginePoll:
    return EnginePoll(at, in_flight, share, **more)


def test_concurrency_grows_by_a_quarter_per_turnover_only_while_it_binds():
    cap = Concurrency(100)
    cap.observe(poll(0.0, 0.3))
    while cap.turnovers < 1:
        cap.completed(tokens=10, in_flight=cap.cap - 1, at_s=1.0)
    assert math.isclose(cap.cap, 125, abs_tol=1)
    idle = Concurrency(100)
    idle.observe(poll(0.0, 0.3))
    for _ in range(100):
        idle.completed(tokens=10, in_flight=40, at_s=1.0)
    assert idle.cap == 100


def test_a_small_cap_can_grow_and_errors_stalled_metrics_and_full_caches_cannot_grow_one():
    small = Concurrency(4)
    small.observe(poll(0.0, 0.1, in_flight=4))
    for _ in range(4):
        small.completed(tokens=5, in_flight=3, at_s=1.0)
    assert small.cap == 5
    for facts in ({"tokens": 0, "at_s": 1.0}, {"tokens": 5, "at_s": 99.0}):
        cap = Concurrency(10)
        cap.observe(poll(0.0, 0.1, in_flight=10))
        for _ in range(100):
            cap.completed(in_flight=9, **facts)
        assert cap.cap == 10
    for share, more in ((0.65, {}), (0.3, {"waiting": 1})):
        cap = Concurrency(10)
        cap.observe(poll(0.0, share, in_flight=10, **more))
        cap.completed(tokens=5, in_flight=9, at_s=1.0)
        assert cap.cap == 10


def test_a_soft_cut_lets_trials_drain_and_a_hard_one_ends_the_youngest():
    cap = Concurrency(100)
    assert cap.observe(poll(0.0, 0.84)) == 83 and cap.signal == "soft" and cap.excess == 0
    hard = Concurrency(100)
    hard.observe(poll(0.0, 0.95))
    assert hard.signal == "hard" and hard.cap == 73 and hard.excess == 27
    hard.observe(poll(1.0, 0.95))
    assert hard.excess == 0, "the youngest are ended once per cut"
    late = Concurrency(100)
    late.observe(poll(0.0, 0.84))
    late.observe(poll(1.0, 0.92))
    assert late.excess == 17, "a soft cut that turns hard while it drains ends the youngest after all"


def test_one_cut_per_drain_so_the_cap_does_not_halve_with_every_poll():
    cap = Concurrency(1000)
    cap.observe(poll(0.0, 0.85, in_flight=1000))
    after = cap.cap
    for at in range(1, 30):
        cap.observe(poll(float(at), 0.85, in_flight=1000))
    assert cap.cap == after
    for at in range(30, 33):
        cap.observe(poll(float(at), 0.5, in_flight=after))
    cap.observe(poll(40.0, 0.85, in_flight=after))
    assert cap.cap < after


def test_a_crowded_queue_cuts_after_six_polls_and_again_harder_right_after_the_drain():
    cap = Concurrency(100)
    for at in range(QUEUE_POLLS - 1):
        cap.observe(poll(float(at), 0.2, waiting=60, running=100))
    assert cap.cap == 100
    cap.observe(poll(9.0, 0.2, waiting=60, running=100))
    assert cap.cap == 90
    for at in range(10, 10 + COOLDOWN_POLLS):
        cap.observe(poll(float(at), 0.2, in_flight=90, waiting=0, running=90))
    cap.observe(poll(20.0, 0.2, in_flight=90, preemptions=1, running=90))
    assert cap.cap == 45, "overload within six polls after a drain halves"
    preempted = Concurrency(100)
    preempted.observe(poll(0.0, 0.2, preemptions=2, running=100))
    assert preempted.cap == 80


def test_the_cap_stays_within_its_bounds_and_a_cut_never_raises_it():
    cap = Concurrency(10, lowest=8, highest=12)
    cap.observe(poll(0.0, 0.99, in_flight=9))
    assert cap.cap == 8
    grown = Concurrency(10, highest=12)
    grown.observe(poll(0.0, 0.1, in_flight=10))
    for _ in range(200):
        grown.completed(tokens=1, in_flight=11, at_s=0.5)
    assert grown.cap == 12
    low = Concurrency(10)
    low.observe(poll(0.0, 0.81, in_flight=500))
    assert low.cap == 10
