"""Records and sinks, what the bound cost and whom, which checkpoints stay, and recipes that do not fit together."""

from __future__ import annotations

import json
import math
import sys
import types
from pathlib import Path

import pytest

from journeyman.config import load
from journeyman.errors import ConfigError, EnvironmentMissing, InputError
from journeyman.train.loop.checkpoints import keep, keep_best
from journeyman.train.loop.spec import Retention
from journeyman.train.metrics.lost import Fate, lost_report
from journeyman.train.metrics.sinks import JsonLines, Sinks
from journeyman.train.recipe import OverfitRecipe, RlRecipe, SftRecipe


def test_the_report_warns_where_the_longest_tenth_is_lost_and_counts_cancelled_groups_with_their_task():
    fates = []
    for task in range(100):
        length = 100.0 + task
        fates.append(Fate(task, "trained", 800, length, task / 100))
        is_slow = task >= 95
        fates.append(Fate(task, "stale" if is_slow else "trained", 400, math.nan if is_slow else length, math.nan))
    report = lost_report(fates)
    assert report.lost_groups == 5 and report.lost_tasks == 0 and report.lost_tokens == 2000
    assert [d.lost_groups for d in report.by_length] == [0] * 9 + [5]
    assert report.by_length[-1].share == 0.25
    assert len(report.warnings) == 2 and report.warnings[0].startswith("the longest tenth of the groups lost 25.0%")
    assert report.as_json()["by_length"][-1]["share"] == 0.25


def test_nothing_is_warned_of_when_little_is_lost_and_groups_without_variance_are_not_lost():
    fates = [Fate(t, "trained" if t % 50 else "zero_variance", 10, float(t), 0.5) for t in range(200)]
    report = lost_report(fates)
    assert report.lost_groups == 0 and not report.warnings
    assert lost_report([]).lines() == ["lost 0 of 0 groups, 0 of 0 tokens; 0 of 0 tasks lost every group"]


def test_a_resumed_run_cuts_the_lines_it_redoes_and_a_torn_line(tmp_path):
    lines = JsonLines(tmp_path / "metrics.jsonl")
    for step in (1, 2, 3):
        lines.write(step, {"x": float("nan") if step == 2 else step})
    lines.close()
    with (tmp_path / "metrics.jsonl").open("a") as file:
        file.write('{"step": 4, "x"')
    JsonLines(tmp_path / "metrics.jsonl", after=2).close()
    rows = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert rows == [{"step": 1, "x": 1}, {"step": 2, "x": None}]


def test_a_sink_that_breaks_is_switched_off_and_the_lines_go_on(tmp_path, monkeypatch, caplog):
    calls: list[int] = []

    def log(values, step):
        calls.append(step)
        raise ConnectionError("no route")

    fake = types.ModuleType("trackio")
    fake.init, fake.log, fake.finish = lambda **facts: None, log, lambda: None
    monkeypatch.setitem(sys.modules, "trackio", fake)
    sinks = Sinks(tmp_path, ("trackio",), {"a": 1})
    for step in (1, 2):
        sinks.write(step, {"reward/mean": 0.5, "alarms": []})
    sinks.close()
    assert calls == [1] and (tmp_path / "metrics.jsonl").read_text().count("\n") == 2


def test_tensorboard_gets_the_numbers_of_a_record(tmp_path):
    pytest.importorskip("tensorboard", reason="needs the extra metrics")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    sinks = Sinks(tmp_path, ("tensorboard",))
    for step in (1, 2):
        sinks.write(step, {"reward/mean": 0.25 * step, "alarms": [], "policy/gap_mean": None})
    sinks.close()
    events = EventAccumulator(str(tmp_path / "tensorboard"))
    events.Reload()
    assert [(e.step, e.value) for e in events.Scalars("reward/mean")] == [(1, 0.25), (2, 0.5)]
    assert events.Tags()["scalars"] == ["reward/mean"]


def test_an_unknown_sink_and_a_missing_library_are_refused_by_name(tmp_path, monkeypatch):
    with pytest.raises(InputError, match="did you mean wandb"):
        Sinks(tmp_path, ("wandbb",))
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(EnvironmentMissing, match=r"sink wandb needs: pip install journeyman\[metrics\]"):
        Sinks(tmp_path, ("wandb",))


def checkpoint(root: Path, step: int) -> Path:
    directory = root / "checkpoints" / f"step-{step:08d}"
    directory.mkdir(parents=True)
    (directory / "model.safetensors").write_bytes(b"w%d" % step)
    return directory


def test_the_last_k_every_nth_and_the_best_checkpoint_stay_without_a_copy(tmp_path):
    for step in range(1, 11):
        made = checkpoint(tmp_path, step)
        keep(tmp_path, made, step, Retention(last=3, every=4))
        if step == 5:
            best = keep_best(tmp_path, made)
    kept = sorted(path.name for path in (tmp_path / "kept").iterdir())
    assert kept == ["best", "step-00000004", "step-00000008", "step-00000009", "step-00000010"]
    assert (best / "model.safetensors").read_bytes() == b"w5"
    inside = tmp_path / "checkpoints" / "step-00000005" / "model.safetensors"
    assert (best / "model.safetensors").stat().st_ino == inside.stat().st_ino


def words(tmp_path: Path, **more: str) -> list[str]:
    base = {"policy.model": str(tmp_path), "tasks.train": str(tmp_path), **more}
    return [word for key, value in base.items() for word in (f"--{key}", value)]


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"loss.name": "ppo"}, "does not look at the rollout's probabilities"),
        ({"loss.name": "dppo_tw"}, "dppo_tv"),
        ({"loss.reduction": "drgrpo"}, "needs max_length"),
        ({"evaluation.every": "2"}, "tasks.dev is empty"),
        ({"rollout.engine_process": "false"}, "nobody may wait"),
        ({"backend.name": "tinker"}, "lacks"),
        ({"evaluation.samples": "2"}, "k is 4"),
    ],
)
def test_what_does_not_fit_together_is_refused_before_anything_starts(tmp_path, more, says):
    with pytest.raises(ConfigError, match=says):
        load(RlRecipe, words(tmp_path, **more), {})


def test_recipes_load_with_their_defaults(tmp_path):
    assert load(RlRecipe, words(tmp_path), {}).model.loop.bound == "hold"
    assert load(OverfitRecipe, words(tmp_path), {}).model.rollout.executor == "inline"
    found = load(SftRecipe, ["--policy.model", str(tmp_path), "--data.runs", str(tmp_path)], {}).model
    assert found.data.runs == (tmp_path,)
    with pytest.raises(ConfigError, match="neither runs nor samples"):
        load(SftRecipe, ["--policy.model", str(tmp_path)], {})
