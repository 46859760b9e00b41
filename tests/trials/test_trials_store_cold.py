"""The cold layout: Parquet that four libraries read, bit for bit, and the exports made of a run."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import numpy as np
import pandas
import polars
import pyarrow.parquet as pq
import pytest
from store_trials import columns_of, store_hot

from journeyman.errors import InputError
from journeyman.tokens.context import Columns
from journeyman.trials.store import Owner, TrialRow, open_run
from journeyman.trials.store.cold import read_manifests
from journeyman.trials.store.columns import equal
from journeyman.trials.store.export import export_run
from journeyman.trials.store.index import FILE, read_index
from journeyman.trials.store.pack import pack_run
from journeyman.trials.store.place import LocalPlace
from journeyman.trials.store.samples import groups_of

IDS = [f"rl/{step}/task-{task}/{sample}" for step in range(2) for task in range(3) for sample in range(2)]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run of twelve closed hot trials, one without a reward."""
    root = tmp_path / "run"
    with Owner(root) as owner:
        for number, trial_id in enumerate(IDS):
            owner.admit(store_hot(root, trial_id, reward=None if number == 0 else float(number % 2)))
    return root


def parts_of(run: Path) -> list[str]:
    return sorted(str(path) for path in (run / "cold").glob("*.parquet"))


def test_a_packed_run_reads_like_the_hot_one(run: Path) -> None:
    before = open_run(run)
    rows = before.trials()
    records = {row.key: before.record(row.key) for row in rows}
    events = {row.key: before.events(row.key) for row in rows}
    packed = pack_run(run)
    assert (packed.n_trials, packed.n_parts, packed.n_packed_before) == (12, 1, 0)
    with open_run(run) as after:
        for old, new in zip(rows, after.trials(), strict=True):
            assert new.layout == "cold"
            assert where_free(old) == where_free(new)
            assert equal(after.trajectory(new.key), columns_of(new.trial_id))
            assert after.record(new.key) == records[new.key]
            assert after.events(new.key) == events[new.key]


def where_free(row: TrialRow) -> tuple[object, ...]:
    return tuple(value for name, value in vars(row).items() if name not in ("layout", "place", "position"))


def test_packing_again_packs_what_is_new_and_the_index_can_be_made_from_the_parts_alone(run: Path) -> None:
    pack_run(run)
    store_hot(run, "rl/9/task-1/0")
    again = pack_run(run)
    assert (again.n_trials, again.n_packed_before, len(parts_of(run))) == (1, 12, 2)
    rows = list(read_index(run / FILE) or ())
    assert len(rows) == 13
    (run / FILE).unlink()
    (run / "trials").rename(run / "elsewhere")
    with open_run(run) as alone:
        assert alone.trials() == rows
        assert equal(alone.trajectory("rl/9/task-1/0"), columns_of("rl/9/task-1/0"))


def test_a_part_that_no_manifest_names_does_not_exist_and_packing_goes_on(run: Path) -> None:
    pack_run(run)
    (manifest,) = (run / "cold").glob("_manifest-*.json")
    manifest.unlink()  # as if the packer had been killed between the part and its manifest
    (run / FILE).unlink()
    assert {row.layout for row in open_run(run).trials()} == {"hot"}
    assert pack_run(run).n_trials == 12
    assert len(parts_of(run)) == 1  # the same content has the same name


def test_pandas_reads_the_parts(run: Path) -> None:
    pack_run(run)
    frame = pandas.read_parquet(run / "cold").set_index("trial_id")
    assert len(frame) == 12
    for trial_id in IDS:
        assert_same(frame.loc[trial_id], columns_of(trial_id))
    assert frame.reward.mean() == pytest.approx(6 / 11)


def test_duckdb_reads_the_parts(run: Path) -> None:
    pack_run(run)
    found = duckdb.sql(
        f"SELECT trial_id, token_ids, loss_mask, logprobs, reward_parts[1].name FROM '{run}/cold/*.parquet'"
    ).fetchall()
    assert len(found) == 12
    for trial_id, ids, mask, logprobs, part in found:
        assert_same({"token_ids": ids, "loss_mask": mask, "logprobs": logprobs}, columns_of(trial_id))
        assert part == "answer"
    total = duckdb.sql(f"SELECT sum(list_sum(loss_mask)) FROM '{run}/cold/*.parquet'").fetchall()
    assert total == [(sum(int(columns_of(trial_id).mask.sum()) for trial_id in IDS),)]


def test_polars_reads_the_parts(run: Path) -> None:
    pack_run(run)
    frame = polars.read_parquet(parts_of(run))
    assert len(frame) == 12
    for found in frame.iter_rows(named=True):
        assert_same(found, columns_of(found["trial_id"]))
    assert frame["turn_spans"].list.len().to_list() == [11] * 12


def test_hugging_face_datasets_reads_the_parts(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    import datasets

    pack_run(run)
    table = datasets.load_dataset("parquet", data_files=parts_of(run), split="train", cache_dir=str(tmp_path / "hf"))
    assert len(table) == 12
    for found in table:
        assert_same(found, columns_of(found["trial_id"]))


def assert_same(found: object, columns: Columns) -> None:
    """Ids, mask and logprobs of a library's row are the trial's, logprobs bit for bit."""
    for name, dtype, wanted in (
        ("token_ids", np.int32, columns.ids),
        ("loss_mask", np.uint8, columns.mask),
        ("logprobs", np.float32, columns.logprob),
    ):
        assert np.asarray(found[name], dtype=dtype).tobytes() == wanted.tobytes()  # type: ignore[index]


def test_ids_and_logprobs_are_stored_by_byte_and_names_as_dictionaries(run: Path) -> None:
    pack_run(run)
    group = pq.ParquetFile(parts_of(run)[0]).metadata.row_group(0)
    encodings = {group.column(i).path_in_schema: group.column(i).encodings for i in range(group.num_columns)}
    assert "BYTE_STREAM_SPLIT" in encodings["logprobs.list.element"]
    assert "BYTE_STREAM_SPLIT" in encodings["token_ids.list.element"]
    assert "RLE_DICTIONARY" in encodings["task_id"]
    assert group.num_rows == 4


def test_a_run_packed_to_another_directory_is_read_there_and_from_the_run(run: Path, tmp_path: Path) -> None:
    packed = pack_run(run, to=str(tmp_path / "away"))
    assert packed.where == str(tmp_path / "away")
    for place in (run, tmp_path / "away"):
        with open_run(place) as reading:
            assert [row.layout for row in reading.trials()] == ["cold"] * 12
            assert equal(reading.trajectory(IDS[3]), columns_of(IDS[3]))
    assert pack_run(run, to=str(tmp_path / "away")).n_trials == 0
    (part,) = read_manifests(LocalPlace(run), "cold")
    assert part.base == str(tmp_path / "away")


def test_a_damaged_trial_is_named_and_the_others_are_packed(run: Path) -> None:
    (tokens,) = run.glob("trials/*/rl-1-task-2-1-*/tokens.arrows")
    data = bytearray(tokens.read_bytes())
    data[-30] ^= 1
    tokens.write_bytes(bytes(data))
    packed = pack_run(run)
    assert (packed.n_trials, packed.unpackable) == (11, ("rl/1/task-2/1#1",))


def test_a_missing_part_is_named(run: Path) -> None:
    pack_run(run)
    Path(parts_of(run)[0]).unlink()
    with open_run(run) as reading, pytest.raises(InputError, match=r"part-\w+\.parquet: is missing; its manifest"):
        reading.trajectory(IDS[0])


def test_atif_documents_hold_what_the_format_asks_for_and_nothing_else(run: Path, tmp_path: Path) -> None:
    done = export_run(run, "atif", tmp_path / "atif", lambda ids: " ".join(map(str, ids)))
    files = sorted((tmp_path / "atif").glob("*.json"))
    assert (done.n_documents, len(files)) == (12, 12)
    for path in files:
        document = json.loads(path.read_text())
        check_atif(document)
        columns = columns_of(document["extra"]["trial_id"])
        agent = [step for step in document["steps"] if step["source"] == "agent"]
        assert len(agent) == 5
        for step in agent:
            metrics = step["metrics"]
            start, length = len(metrics["prompt_token_ids"]), len(metrics["completion_token_ids"])
            assert metrics["prompt_token_ids"] == columns.ids[:start].tolist()
            assert metrics["completion_token_ids"] == columns.ids[start : start + length].tolist()
            logprobs = np.array(metrics["logprobs"], dtype=np.float32)
            assert logprobs.tobytes() == columns.logprob[start : start + length].tobytes()
        assert agent[0]["tool_calls"][0]["function_name"] == "calc"
        assert agent[0]["observation"]["results"][0]["content"] == "2"


@pytest.mark.parametrize(
    "broken",
    [
        lambda d: d["steps"][1].update(reward=1.0),
        lambda d: d["steps"].pop(0),
        lambda d: d["agent"].pop("name"),
        lambda d: d["steps"][1]["metrics"].update(loss_mask=[1]),
    ],
)
def test_the_atif_check_finds_a_wrong_document(run: Path, tmp_path: Path, broken: object) -> None:
    export_run(run, "atif", tmp_path / "atif")
    document = json.loads(next((tmp_path / "atif").glob("*.json")).read_text())
    check_atif(document)
    broken(document)  # type: ignore[operator]
    with pytest.raises((AssertionError, KeyError)):
        check_atif(document)


ATIF = {
    "document": "schema_version session_id trajectory_id agent steps notes final_metrics extra subagent_trajectories "
    "continued_trajectory_ref",
    "agent": "name version model_name tool_definitions extra",
    "step": "step_id timestamp source model_name reasoning_effort message reasoning_content tool_calls observation "
    "metrics is_copied_context llm_call_count extra",
    "metrics": "prompt_tokens completion_tokens cached_tokens cost_usd prompt_token_ids completion_token_ids logprobs "
    "extra",
    "final": "total_prompt_tokens total_completion_tokens total_cached_tokens total_cost_usd total_steps extra",
    "call": "tool_call_id function_name arguments extra",
    "result": "source_call_id content subagent_trajectory_ref extra",
}
"""Fields of ATIF-v1.8; every model of it forbids others."""


def check_atif(document: dict[str, object]) -> None:
    """The rules of ATIF-v1.8 for the fields that are used here."""

    def only(value: dict[str, object], kind: str) -> None:
        assert set(value) <= set(ATIF[kind].split()), (kind, set(value))

    only(document, "document")
    assert document["schema_version"] == "ATIF-v1.8"
    agent, steps = document["agent"], document["steps"]
    only(agent, "agent")  # type: ignore[arg-type]
    assert agent["name"]  # type: ignore[index]
    assert agent["version"]  # type: ignore[index]
    only(document["final_metrics"], "final")  # type: ignore[arg-type]
    for number, step in enumerate(steps, start=1):  # type: ignore[arg-type, var-annotated]
        only(step, "step")
        assert step["step_id"] == number
        assert step["source"] in ("system", "user", "agent")
        assert isinstance(step["message"], str)
        only(step.get("metrics", {}), "metrics")
        calls = step.get("tool_calls", [])
        for call in calls:
            only(call, "call")
            assert isinstance(call["arguments"], dict)
        for result in step.get("observation", {"results": []})["results"]:
            only(result, "result")
            assert result.get("source_call_id") in (None, *(call["tool_call_id"] for call in calls))


def test_samples_have_aligned_arrays_and_leave_trials_without_a_reward_out(run: Path, tmp_path: Path) -> None:
    store_hot(run, "rl/0/task-0/1", attempt=2, reward=0.5)
    done = export_run(run, "prime-rl", tmp_path / "samples")
    samples = [json.loads(line) for line in (tmp_path / "samples" / "samples-00000.jsonl").read_text().splitlines()]
    assert done.n_documents == len(samples) == 11
    for sample in samples:
        assert {len(v) for v in sample.values() if isinstance(v, list)} == {len(sample["token_ids"])}
        assert [bool(a) for a in sample["advantages"]] == [m and any(sample["advantages"]) for m in sample["mask"]]
    assert sorted({a for s in samples for a in s["advantages"]}) == [-0.5, 0.0, 0.5]
    alone = next(s for s in samples if s["token_ids"] == columns_of("rl/0/task-0/1").ids.tolist())
    assert set(alone["advantages"]) == {0.0}  # its neighbour has no valid reward and is no part of the mean


def test_groups_hold_the_last_attempts(run: Path) -> None:
    store_hot(run, "rl/0/task-0/1", attempt=2, reward=0.5)
    groups = groups_of(open_run(run).trials())
    assert [len(group) for group in groups] == [2] * 6
    assert [row.attempt for row in groups[0]] == [1, 2]


def test_an_unknown_format_is_named_with_its_nearest(run: Path, tmp_path: Path) -> None:
    words = r"unknown format 'atiff'; allowed: atif, harbor, prime-rl; Did you mean atif\?"
    with pytest.raises(InputError, match=words):
        export_run(run, "atiff", tmp_path)


def test_a_trial_of_300_turns_stores_each_token_once_while_atif_repeats_every_prompt(tmp_path: Path) -> None:
    long, half = tmp_path / "long", tmp_path / "half"
    sizes = {}
    for root, turns in ((long, 300), (half, 150)):
        hot = sum(path.stat().st_size for path in store_hot(root, "t", turns=turns).iterdir())
        cold = pack_run(root).bytes
        atif = export_run(root, "atif", root / "atif").bytes
        n_tokens = len(columns_of("t", turns).ids)
        sizes[turns] = [size / n_tokens for size in (hot, cold, atif)]
    print("bytes per token, hot, cold, ATIF:", sizes)
    assert len(open_run(long).trajectory("t").ids) == len(columns_of("t", 300).ids)
    assert sizes[300][0] == pytest.approx(sizes[150][0], rel=0.1)
    assert sizes[300][2] > 1.8 * sizes[150][2]
    assert sizes[300][2] > 10 * sizes[300][0]
