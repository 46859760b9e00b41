"""Routed experts of a mixture in the store: hot, handed on, packed, removed, and told turn by turn by an attempt."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from store_trials import columns_of, record_of

from journeyman.engines import TurnResult
from journeyman.engines.experts import packed
from journeyman.errors import InputError
from journeyman.tokens.context import Context
from journeyman.trials.executors.attempts import Attempt
from journeyman.trials.executors.wire import column_blobs
from journeyman.trials.store import HotTrial, Owner, open_run
from journeyman.trials.store.columns import calls_of, cut
from journeyman.trials.store.hot import EXPERTS
from journeyman.trials.store.pack import pack_run
from journeyman.trials.store.transfer import bundle

LAYERS, PER_TOKEN = 4, 2


def rows(count: int, seed: int = 1) -> Any:
    return np.random.default_rng(seed).integers(0, 300, (count, LAYERS, PER_TOKEN)).astype(np.uint16)


def stored(run: Path, trial_id: str, experts: Any) -> Path:
    """A closed trial whose experts were told in two turns; ``experts`` None: none were."""
    columns = columns_of(trial_id)
    with HotTrial(run, trial_id) as hot:
        for call in calls_of(columns):
            hot.append_call(call)
        if experts is not None:
            hot.add_experts(0, packed(experts[:9]))
            hot.add_experts(9, packed(experts[9:]))
        return hot.close(record_of(trial_id))


def test_they_come_back_from_every_layout_and_place(tmp_path: Path) -> None:
    told = rows(len(columns_of("a/1").ids) - 1)
    home = tmp_path / "home"
    with Owner(home) as owner:
        owner.receive(bundle(stored(tmp_path / "node", "a/1", told)))
        owner.receive(bundle(stored(tmp_path / "node", "b/1", None)))
    for packs in (False, True):
        if packs:
            pack_run(home)
        with open_run(home) as run:
            found = run.routed_experts("a/1")
            assert found is not None and found.dtype == np.uint16
            assert np.array_equal(found[:-1], told)
            assert not found[-1].any()
            assert run.routed_experts("b/1") is None
            assert len(found) == len(run.trajectory("a/1").ids)
    assert len(list(next((home / "trials").rglob(EXPERTS)).parent.iterdir())) <= 6


def test_a_changed_file_is_found_when_it_is_handed_on_and_when_it_is_read(tmp_path: Path) -> None:
    directory = stored(tmp_path, "a/1", rows(20))
    (directory / EXPERTS).write_bytes(b"something else")
    with Owner(tmp_path / "home") as owner, pytest.raises(InputError, match=EXPERTS):
        owner.receive(bundle(directory))
    with open_run(tmp_path) as run, pytest.raises(InputError, match="damaged"):
        run.routed_experts("a/1")


def test_rows_beyond_the_tokens_are_an_error_of_whoever_tells_them(tmp_path: Path) -> None:
    count = len(columns_of("a/1").ids)
    with pytest.raises(ValueError, match=f"of {count}"):
        stored(tmp_path, "a/1", rows(count + 1))


def test_gc_takes_them_with_the_tokens(tmp_path: Path) -> None:
    from journeyman.trials.store.retention import Rules, carry_out, plan_removal

    directory = stored(tmp_path, "a/1", rows(20))
    pack_run(tmp_path)
    for file in (directory, *directory.iterdir()):
        os.utime(file, (1, 1))
    carry_out(tmp_path, plan_removal(tmp_path, Rules()))
    assert not (directory / EXPERTS).exists()
    with open_run(tmp_path) as run:
        assert run.routed_experts("a/1") is not None


def test_an_attempt_keeps_each_token_once_also_when_its_context_is_edited(tmp_path: Path) -> None:
    """Engine's view against store's: rows of an edited context that stand for tokens stored before are left out."""
    hot = HotTrial(tmp_path, "t")
    attempt = Attempt(1, SimpleNamespace(request=SimpleNamespace(trial_id="t")), hot)  # type: ignore[arg-type]
    context, told = Context(), 0
    everything = rows(200)  # expert rows by stored position

    def turn(ids: list[int], asked: slice) -> None:
        """The engine answers; ``asked`` are the stored positions that its rows stand for."""
        nonlocal told
        columns = context.arrays()
        attempt.tell(column_blobs(cut(columns, told, len(columns.ids))))
        told = len(columns.ids)
        result = TurnResult(
            "t", ids, np.zeros(len(ids), np.float32), "stop", 0, routed_experts=packed(everything[asked])
        )
        assert attempt.keep_experts(result).routed_experts is None
        context.append_sampled(ids, [-0.5] * len(ids), 0)

    context.append_prompt([1, 2, 3, 4])
    turn([5, 6], slice(0, 5))
    context.append_observation([7])
    turn([8, 9], slice(5, 8))
    context.open_segment(4, "compaction")
    context.append_prompt([11, 12])
    attempt.begin_anew()
    everything[5:9] = 299  # what the engine tells of the shared prefix, in its own positions
    turn([13], slice(5, 11))
    attempt.tell(column_blobs(cut(context.arrays(), told, context.stored)))
    attempt.flush()
    with hot:
        hot.close(record_of("t"))
    with open_run(tmp_path) as run:
        found = run.routed_experts("t")
    assert found is not None and len(found) == context.stored == 12
    assert np.array_equal(found[9:11], everything[9:11])
    assert not found[8].any() and not found[11].any()  # sampled last, of the first segment and of the second
    assert not (found[:8] == 299).all(axis=(1, 2)).any()
