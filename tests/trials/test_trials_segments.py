"""A context that was edited: its segments are in the record of every layout, and audits and exports go by them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_model import make_tokenizer

from journeyman.engines.scripted import ScriptedEngine
from journeyman.errors import InputError
from journeyman.harness import SPECS, Budget
from journeyman.ladder.workshop import Workshop
from journeyman.tokens.audit import retokenised
from journeyman.tokens.context import Context, Segment, Source, segment_columns
from journeyman.tokens.renderers import Demonstration, Renderer, ToolUse
from journeyman.tokens.segments import as_json, inferred, of_json
from journeyman.trials.executors import EXECUTORS
from journeyman.trials.executors.workplaces import task_place
from journeyman.trials.record import Trial, TrialRequest
from journeyman.trials.resume import close_orphans
from journeyman.trials.store import HotTrial, Owner, open_run
from journeyman.trials.store.atif_read import import_atif
from journeyman.trials.store.columns import calls_of
from journeyman.trials.store.events import segments_told
from journeyman.trials.store.export import export_run
from journeyman.trials.store.hot import RECORD
from journeyman.trials.store.pack import pack_run

REASONS = ["opening", "regenerated", "clear-and-retry"]


class Going(ScriptedEngine):
    """Goes on with its script where a context was edited, as a model would."""

    def release(self, trial: str) -> None:
        played = self._played.get(trial, 0)
        super().release(trial)
        self._played[trial] = played


@pytest.fixture(scope="module")
def renderer(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Renderer]:
    directory = tmp_path_factory.mktemp("model")
    return directory, make_tokenizer(directory)


@pytest.fixture(scope="module")
def edited(
    prepared: Workshop, renderer: tuple[Path, Renderer], tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Trial]:
    """A run with one trial: a turn is drawn again, a context is left, and the second one answers."""
    directory, write = renderer
    call = list(write.demonstrate(Demonstration(calls=(ToolUse("bash", {"command": "true", "description": "x"}),))))
    start, end, stop = (token for token in call if token in write.tokenizer.special_ids)
    broken = [start, *write.tokenizer.encode('{"name": "bash", "arguments": {"command": tru'), end, stop]
    turns = [broken, call, list(write.demonstrate(Demonstration(content="412")))]
    budget = Budget(context_tokens=20_000, max_new_tokens=500, calls_per_context=1)
    spec = replace(SPECS["code"], budget=budget, at_limit="clear-and-retry")
    request = TrialRequest(prepared.tasks("train")[0], spec, ("test", "edited", 0), 0)
    out = tmp_path_factory.mktemp("edited") / "run"
    place = task_place(
        label=prepared.label,
        provider=prepared.provider.name,
        environment=str(prepared.environment.path),
        digest=prepared.environment.digest,
        tokenizer=str(directory),
        waive=sorted(prepared.tier.waive),
    )
    engine = Going({request.trial_id: turns}, max_len=40_000)
    with (
        prepared.verifier() as verifier,
        Owner(out) as owner,
        EXECUTORS["process"]()(engine, place, seed=1, owner=owner) as running,
    ):
        (trial,) = running.run([request], verifier)
    return out, trial


def test_every_layout_tells_the_segments_of_an_edited_context(edited: tuple[Path, Trial], tmp_path: Path) -> None:
    out, trial = edited
    key = f"{trial.request.trial_id}#1"
    assert (trial.stop_reason, [segment["reason"] for segment in trial.segments]) == ("answered", REASONS)
    with open_run(out) as run:
        hot = run.segments(key)
        assert hot == of_json(trial.segments)
        assert segments_told(run.events(key)) == list(trial.segments)
        columns = run.trajectory(key)
    assert len(inferred(columns)) == 2  # a turn drawn again cannot be seen in the tokens
    pack_run(out, to=str(tmp_path / "cold"))
    with open_run(tmp_path / "cold") as packed:
        assert packed.segments(key) == hot
    import pyarrow.parquet as parquet

    (part,) = (tmp_path / "cold").glob("*.parquet")
    (cell,) = parquet.read_table(part, columns=["segments"]).column("segments").to_pylist()
    assert [(s["reason"], s["start"], [(p["start"], p["end"]) for p in s["shared"]]) for s in cell] == [
        (s.reason, s.start, list(s.shared)) for s in hot
    ]


def test_an_audit_counts_the_forks_that_were_stored_and_the_prompts_that_were_seen(
    edited: tuple[Path, Trial], renderer: tuple[Path, Renderer]
) -> None:
    out, trial = edited
    with open_run(out) as run:
        columns, segments = run.trajectory(trial.request.trial_id), run.segments(trial.request.trial_id)
    tokenizer = renderer[1].tokenizer
    report = retokenised([(columns, segments)], tokenizer)
    assert (report.forks, report.growth.calls) == (2, 3)
    rows = segment_columns(columns, segments)
    prompts = [
        int(np.flatnonzero((row.turn == number) & (row.source == Source.SAMPLED))[0])
        for number, row in enumerate(rows, start=1)
    ]
    assert (report.growth.sent, report.growth.longest) == (sum(prompts), max(prompts))
    assert report.growth.stored == len(columns.ids)
    assert retokenised([columns], tokenizer).forks == 1


def test_exports_show_each_turn_the_prompt_it_had_and_each_segment_as_a_row(
    edited: tuple[Path, Trial], tmp_path: Path
) -> None:
    out, trial = edited
    with open_run(out) as run:
        columns, segments = run.trajectory(trial.request.trial_id), run.segments(trial.request.trial_id)
    rows = segment_columns(columns, segments)
    export_run(out, "atif", tmp_path / "atif")
    (path,) = (tmp_path / "atif").iterdir()
    document = json.loads(path.read_text())
    steps = [step["metrics"] for step in document["steps"] if step["source"] == "agent"]
    seen = [[*step["prompt_token_ids"], *step["completion_token_ids"]] for step in steps]
    assert len(seen) == 3
    for whole, row in zip(seen, rows, strict=True):
        assert whole == row.ids.tolist()[: len(whole)]
    assert steps[0]["prompt_token_ids"] == steps[1]["prompt_token_ids"]  # drawn again from the same place
    assert document["extra"]["segments"] == list(trial.segments)
    import_atif([path], tmp_path / "again")
    with open_run(tmp_path / "again") as run:
        assert [(s.start, s.shared) for s in run.segments(trial.request.trial_id)][:2] == [
            (s.start, s.shared) for s in segments
        ][:2]
    export_run(out, "prime-rl", tmp_path / "samples")
    lines = [json.loads(line) for line in (tmp_path / "samples" / "samples-00000.jsonl").read_text().splitlines()]
    assert [line["token_ids"] for line in lines] == [row.ids.tolist() for row in rows if row.mask.any()]
    assert sum(map(sum, (line["mask"] for line in lines))) == int(columns.mask.sum())


def open_trial(root: Path, segments: Sequence[Segment] = ()) -> Context:
    context = Context()
    context.append_prompt([1, 2, 3])
    context.append_sampled([4, 5], [-0.5, -0.5], 0)
    context.open_segment(2, "compaction")
    context.append_prompt([7])
    context.append_sampled([8], [-1.0], 1)
    with HotTrial(root, "t/0") as hot:
        hot.event("started", task_id="t")
        for call in calls_of(context.arrays()):
            hot.append_call(call)
        if segments:
            hot.event("segments", segments=as_json(segments))
    return context


def test_a_trial_whose_owner_was_killed_tells_its_segments_before_and_after_it_is_closed(tmp_path: Path) -> None:
    made = Context()
    made.append_prompt([1, 2, 3, 4, 5])
    made.open_segment(2, "compaction")
    open_trial(tmp_path, made.segments)
    with open_run(tmp_path) as run:
        assert [s.reason for s in run.segments("t/0")] == ["opening", "compaction"]
    with Owner(tmp_path) as owner:
        close_orphans(owner)
    with open_run(tmp_path) as run:
        assert run.record("t/0")["outcome"] == "cancelled"
        assert [s.reason for s in run.segments("t/0")] == ["opening", "compaction"]


def rewritten(root: Path, **changes: Any) -> None:
    (path,) = root.rglob(RECORD)
    record = {**json.loads(path.read_text()), **changes}
    path.write_text(json.dumps({name: value for name, value in record.items() if value is not ...}))


@pytest.mark.parametrize(
    ("stored", "reasons"),
    [
        (..., ["opening", ""]),  # version 2 without them: inferred
        ([], ["opening"]),  # version 2 of an executor that told that there were none
        ([{"reason": "opening", "start": 0, "shared": []}], ["opening"]),
    ],
)
def test_a_record_of_version_2_is_read_with_what_it_knows(stored: Any, reasons: list[str], tmp_path: Path) -> None:
    context = open_trial(tmp_path)
    with HotTrial(tmp_path, "t/0") as hot:
        hot.close({"segments": as_json(context.segments)})
    with open_run(tmp_path) as run:
        assert run.segments("t/0") == context.segments
    rewritten(tmp_path, schema_version=2, segments=stored)
    with open_run(tmp_path) as run:
        assert [segment.reason for segment in run.segments("t/0")] == reasons
        assert run.record("t/0")["schema_version"] == 3
        assert run.trajectory("t/0").ids.tolist() == [1, 2, 3, 4, 5, 7, 8]


BAD: dict[str, Any] = {
    "no list": 7,
    "no object": ["opening"],
    "no start": [{"reason": "opening"}],
    "it begins late": [{"reason": "opening", "start": 3, "shared": []}],
    "out of order": [{"start": 0}, {"start": 5}, {"start": 4}],
    "shares what comes later": [{"start": 0}, {"start": 5, "shared": [[0, 6]]}],
    "an opening that shares": [{"start": 0, "shared": [[0, 0]]}],
}


@pytest.mark.parametrize("name", BAD)
def test_segments_that_are_none_are_refused_by_the_trial(name: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="segment"):
        of_json(BAD[name])
    with HotTrial(tmp_path, "t/0") as hot:
        hot.close({})
    rewritten(tmp_path, segments=BAD[name])
    with open_run(tmp_path) as run, pytest.raises(InputError, match="is damaged"):
        run.segments("t/0")
