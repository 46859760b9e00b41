"""One reading interface over all layouts: batches of the inline executor, hot directories and Parquet parts."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from store_trials import columns_of, record_of, store_hot

from journeyman.errors import InputError
from journeyman.trials.store import open_run
from journeyman.trials.store.columns import DTYPES, equal
from journeyman.trials.store.pack import pack_run
from journeyman.trials.store.retention import Rules, carry_out, plan_removal


def store_batch(directory: Path, trial_ids: list[str]) -> None:
    """A batch as ``write_batch`` leaves it, made from ids alone."""
    directory.mkdir(parents=True)
    columns = [columns_of(trial_id) for trial_id in trial_ids]
    offsets = np.cumsum([0, *(len(c.ids) for c in columns)], dtype=np.int64)
    flat = {name: np.concatenate([getattr(c, name) for c in columns]) for name in DTYPES}
    np.savez(directory / "tokens.npz", offsets=offsets, **flat)  # type: ignore[arg-type]
    lines = [
        json.dumps({"trial_id": t, "attempt": 1, **record_of(t), "n_tokens": len(c.ids)})
        for t, c in zip(trial_ids, columns, strict=True)
    ]
    (directory / "trials.jsonl").write_text("\n".join(lines) + "\n")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Two batches that share a trial id, one discarded batch, one hot trial, one packed trial."""
    root = tmp_path / "run"
    store_hot(root, "cold/0")
    pack_run(root)
    carry_out(root, plan_removal(root, Rules()))
    store_hot(root, "hot/0")
    store_batch(root / "rl" / "step-0000", ["rl/0/a/0", "rl/0/a/1"])
    store_batch(root / "evaluations" / "greedy", ["eval/a/0"])
    store_batch(root / "evaluations" / "sampled", ["eval/a/0"])
    store_batch(root / "rl" / "discarded-1-step-0000", ["rl/0/a/0"])
    return root


def test_every_layout_is_listed_and_read_through_one_interface(run: Path) -> None:
    with open_run(run) as reading:
        rows = reading.trials()
        assert [(row.key, row.layout) for row in rows] == [
            ("cold/0#1", "cold"),
            ("evaluations/greedy::eval/a/0#1", "batch"),
            ("evaluations/sampled::eval/a/0#1", "batch"),
            ("hot/0#1", "hot"),
            ("rl/step-0000::rl/0/a/0#1", "batch"),
            ("rl/step-0000::rl/0/a/1#1", "batch"),
        ]
        for row in rows:
            assert equal(reading.trajectory(row.key), columns_of(row.trial_id))
            assert reading.record(row.key)["trial_id"] == row.trial_id
            assert row.n_tokens == len(columns_of(row.trial_id).ids)
        assert equal(reading.trajectory("rl/0/a/1"), columns_of("rl/0/a/1"))


def test_an_id_of_several_batches_needs_its_key(run: Path) -> None:
    with open_run(run) as reading, pytest.raises(InputError, match=r"occurs in 2 batches; allowed: a key, e\.g\. eval"):
        reading.trajectory("eval/a/0")


def test_batches_are_packed_too_and_stay_where_the_ladder_needs_them(run: Path) -> None:
    assert pack_run(run).n_trials == 5
    with open_run(run) as reading:
        rows = reading.trials()
        assert {row.layout for row in rows} == {"cold"}
        assert len(rows) == 6
        for row in rows:
            assert equal(reading.trajectory(row.key), columns_of(row.trial_id))
    assert (run / "rl" / "step-0000" / "tokens.npz").is_file()
    plan = plan_removal(run, Rules(discarded=True))
    assert [r.directory for r in plan.removals if r.files == ("tokens.npz",)] == ["rl/discarded-1-step-0000"]


def test_a_damaged_record_of_a_batch_is_named(run: Path) -> None:
    path = run / "rl" / "step-0000" / "trials.jsonl"
    path.write_text(path.read_text()[:-30])
    with pytest.raises(InputError, match=r"trials\.jsonl: is damaged"):
        open_run(run).trials()
