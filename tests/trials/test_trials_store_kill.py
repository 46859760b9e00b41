"""Four writers, one of them killed again and again: nothing acknowledged is lost, and the index can be made anew."""

from __future__ import annotations

import os
import queue
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from store_trials import columns_of, store_hot

from journeyman.errors import InputError
from journeyman.trials.store import Owner, open_run
from journeyman.trials.store.columns import calls_of, cut, equal, joined
from journeyman.trials.store.index import FILE, read_index

WRITER = Path(__file__).with_name("store_writer.py")
LIMIT_S = 30.0


@contextmanager
def writer(run: Path, name: str, first: int, said: queue.Queue[list[str]]) -> Iterator[subprocess.Popen[str]]:
    """A writer whose lines arrive in ``said``; killed at the end, and all it said before is there."""
    process = subprocess.Popen(
        [sys.executable, str(WRITER), str(run), name, str(first)], stdout=subprocess.PIPE, text=True
    )

    def listen() -> None:
        assert process.stdout is not None
        for line in process.stdout:
            if line.endswith("\n"):
                said.put(line.split())

    listener = threading.Thread(target=listen)
    listener.start()
    try:
        yield process
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait(timeout=LIMIT_S)
        listener.join(timeout=LIMIT_S)
        assert process.stdout is not None
        process.stdout.close()


def kill_one_of_four(run: Path, kills: int, seed: int) -> tuple[dict[str, int], set[str]]:
    """Calls acknowledged per trial, and the trials that the owner acknowledged."""
    rng = random.Random(seed)
    calls: dict[str, int] = {}
    admitted: set[str] = set()
    said: queue.Queue[list[str]] = queue.Queue()
    with Owner(run) as owner:

        def take_in(until: float) -> None:
            while (left := until - time.monotonic()) > 0:
                try:
                    kind, trial_id, value = said.get(timeout=left)
                except queue.Empty:
                    return
                if kind == "call":
                    calls[trial_id] = int(value) + 1
                else:
                    owner.admit(Path(value))
                    admitted.add(trial_id)

        with (
            writer(run, "1", 0, said),
            writer(run, "2", 0, said),
            writer(run, "3", 0, said),
        ):
            for kill in range(kills):
                with writer(run, "0", kill * 10_000, said):
                    first = f"writer-0/task-{kill * 10_000 % 3}/{kill * 10_000}"
                    deadline = time.monotonic() + LIMIT_S
                    while first not in calls and time.monotonic() < deadline:
                        take_in(time.monotonic() + 0.05)
                    take_in(time.monotonic() + rng.uniform(0, 0.08))
        take_in(time.monotonic() + 0.5)
    return calls, admitted


def check(run: Path, calls: dict[str, int], admitted: set[str]) -> None:
    grown = list(read_index(run / FILE) or ())
    assert admitted <= {row.trial_id for row in grown}
    reading = open_run(run)
    stored = {row.trial_id: row for row in reading.trials(include_open=True)}
    for trial_id, acknowledged in calls.items():
        columns, whole = reading.trajectory(trial_id), columns_of(trial_id)
        least = joined(calls_of(whole)[:acknowledged])
        assert equal(cut(columns, 0, len(least.ids)), least), trial_id
        assert equal(columns, cut(whole, 0, len(columns.ids))), trial_id
        assert stored[trial_id].is_done or trial_id not in admitted
    with Owner(run) as owner:
        taken_in = list(read_index(run / FILE) or ())  # a new owner first takes in what nobody acknowledged
        owner.rebuild()
    assert list(read_index(run / FILE) or ()) == taken_in
    assert [row for row in taken_in if row.trial_id in admitted] == [r for r in grown if r.trial_id in admitted]


@pytest.mark.thorough
def test_no_acknowledged_call_or_trial_is_lost_when_one_of_four_writers_is_killed(tmp_path: Path) -> None:
    calls, admitted = kill_one_of_four(tmp_path, kills=3, seed=1)
    assert len({trial_id.split("/")[0] for trial_id in calls}) == 4
    assert len(admitted) > 20
    check(tmp_path, calls, admitted)


@pytest.mark.slow
def test_no_acknowledged_call_or_trial_is_lost_in_fifty_kills(tmp_path: Path) -> None:
    calls, admitted = kill_one_of_four(tmp_path, kills=50, seed=2)
    torn = sum(1 for trial_id in calls if trial_id not in admitted)
    print(f"{len(calls)} trials, {len(admitted)} acknowledged, {torn} never closed or not acknowledged")
    assert sum(trial_id.startswith("writer-0/") for trial_id in calls) >= 50
    check(tmp_path, calls, admitted)


def test_the_check_finds_a_lost_call(tmp_path: Path) -> None:
    with Owner(tmp_path) as owner:
        directory = store_hot(tmp_path, "t")
        owner.admit(directory)
    check(tmp_path, {"t": 5}, {"t"})
    tokens = directory / "tokens.arrows"
    tokens.write_bytes(tokens.read_bytes()[:-200])
    with pytest.raises(InputError, match=r"is damaged: \d+ of \d+ tokens can be read"):
        check(tmp_path, {"t": 5}, {"t"})
    store_hot(tmp_path, "u", turns=4)
    with pytest.raises(AssertionError):
        check(tmp_path, {"u": 5}, set())
