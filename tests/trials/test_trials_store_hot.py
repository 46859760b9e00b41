"""The hot layout, its index and its versions: what was acknowledged is there, whatever happened after."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from store_trials import columns_of, record_of, store_hot

from journeyman.errors import InputError
from journeyman.tokens.context import Context, Source
from journeyman.trials.store import HotTrial, Owner, TrialRow, open_run
from journeyman.trials.store.columns import calls_of, cut, equal, from_spans, joined, spans_of
from journeyman.trials.store.events import read_events
from journeyman.trials.store.hot import DONE, EVENTS, RECORD, TOKENS, place_of
from journeyman.trials.store.index import FILE, Index, filesystem_of, read_index, refuse_shared
from journeyman.trials.store.stream import read_stream
from journeyman.trials.store.transfer import bundle


def dump(run: Path) -> list[TrialRow]:
    return list(read_index(run / FILE) or ())


def test_a_trial_reads_back_bit_for_bit_with_its_record_and_events(tmp_path: Path) -> None:
    directory = store_hot(tmp_path, "rl/3/task-1/0")
    run = open_run(tmp_path)
    (row,) = run.trials()
    assert equal(run.trajectory("rl/3/task-1/0"), columns_of("rl/3/task-1/0"))
    assert (row.key, row.n_calls, row.layout, row.reward, row.is_done) == ("rl/3/task-1/0#1", 5, "hot", 1.0, True)
    assert [event["number"] for event in run.events(row.key)] == [0, 1, 2, 3, 4]
    record = run.record(row.key)
    assert {**record, **record_of("rl/3/task-1/0")} == record
    assert (record["version_min"], record["version_max"]) == (0, 2)
    assert sorted(path.name for path in directory.iterdir()) == [DONE, EVENTS, TOKENS, RECORD]


def test_a_growing_context_stores_each_token_once(tmp_path: Path) -> None:
    context = Context()
    with HotTrial(tmp_path, "t", durable=False) as hot:
        context.append_prompt([1, 2, 3])
        hot.append_context(context)
        context.append_sampled([4, 5], [-0.5, -0.25], version=0)
        context.append_observation([6])
        hot.append_context(context)
        hot.append_context(context)
        hot.close({})
    assert open_run(tmp_path).trajectory("t").ids.tolist() == [1, 2, 3, 4, 5, 6]
    content = read_stream((tmp_path / place_of("t", 1) / TOKENS).read_bytes(), "t")
    assert [len(call.ids) for call in content.calls] == [3, 3]


def test_a_token_stream_cut_at_any_byte_gives_every_earlier_call_and_says_how_much_is_torn(tmp_path: Path) -> None:
    directory = store_hot(tmp_path, "t", turns=3)
    data = (directory / TOKENS).read_bytes()
    whole = read_stream(data, "t")
    assert (len(whole.calls), whole.torn_bytes, whole.trial_id) == (3, 0, "t")
    ends = [read_stream(data[:at], "t").good_bytes for at in range(len(data) + 1)]
    assert len(set(ends) - {0}) == 4  # the head and three calls
    for at in range(len(data) + 1):
        torn = read_stream(data[:at], "t")
        assert torn.good_bytes <= at
        assert torn.torn_bytes == (0 if at == len(data) else at - torn.good_bytes)
        assert all(equal(a, b) for a, b in zip(torn.calls, whole.calls, strict=False))
        assert len(torn.calls) == sum(end <= at for end in sorted(set(ends) - {0})[1:])


def test_an_event_log_cut_at_any_byte_or_changed_ends_where_the_chain_does(tmp_path: Path) -> None:
    data = (store_hot(tmp_path, "t", turns=3) / EVENTS).read_bytes()
    lines = data.splitlines(keepends=True)
    for at in range(len(data) + 1):
        content = read_events(data[:at])
        assert len(content.events) == sum(at >= len(b"".join(lines[: n + 1])) for n in range(3))
        assert content.good_bytes + content.torn_bytes == at
    assert len(read_events(data.replace(b'"number": 0', b'"number": 9')).events) == 1
    assert len(read_events(lines[0] + lines[2]).events) == 1


def test_a_killed_trial_is_listed_as_open_and_can_be_continued_after_its_last_whole_call(tmp_path: Path) -> None:
    calls = calls_of(columns_of("t", 4))
    with HotTrial(tmp_path, "t", durable=False) as hot:
        for call in calls[:3]:
            hot.append_call(call)
            hot.event("call")
    for name in (TOKENS, EVENTS):
        path = hot.directory / name
        path.write_bytes(path.read_bytes()[:-5])
    run = open_run(tmp_path)
    assert run.trials() == []
    (row,) = run.trials(include_open=True)
    assert (row.trial_id, row.is_done, row.n_tokens) == ("t", False, sum(len(c.ids) for c in calls[:2]))
    assert equal(run.trajectory("t"), joined(calls[:2]))
    with HotTrial(tmp_path, "t", durable=False) as hot:
        assert hot.n_tokens == row.n_tokens
        for call in calls[2:]:
            hot.append_call(call)
        hot.event("resumed")
        hot.close({})
    assert equal(open_run(tmp_path).trajectory("t"), columns_of("t", 4))
    assert [event["type"] for event in open_run(tmp_path).events("t")] == ["call", "call", "resumed"]


def test_a_closed_trial_is_immutable_and_a_retry_is_a_new_attempt(tmp_path: Path) -> None:
    store_hot(tmp_path, "t")
    with pytest.raises(InputError, match=r"attempt 1 of 't' is closed; retry as a new"):
        HotTrial(tmp_path, "t")
    store_hot(tmp_path, "t", attempt=2, reward=0.0)
    run = open_run(tmp_path)
    assert [row.key for row in run.trials()] == ["t#1", "t#2"]
    assert run.row("t").attempt == 2
    assert run.row("t", attempt=1).reward == 1.0


def test_the_index_rebuilt_from_the_files_equals_the_one_that_grew(tmp_path: Path) -> None:
    with Owner(tmp_path) as owner:
        keys = [owner.admit(store_hot(tmp_path, f"rl/0/task/{n}", reward=n % 2)) for n in range(20)]
    grown = dump(tmp_path)
    assert sorted(keys) == [row.key for row in grown]
    with Owner(tmp_path) as owner:
        assert owner.rebuild() == 20
    assert dump(tmp_path) == grown
    (tmp_path / FILE).unlink()
    with Owner(tmp_path):
        pass
    assert dump(tmp_path) == grown
    assert open_run(tmp_path).trials() == grown


def test_a_trial_closed_but_not_yet_indexed_is_listed_and_taken_in_by_the_next_owner(tmp_path: Path) -> None:
    with Owner(tmp_path) as owner:
        owner.admit(store_hot(tmp_path, "a"))
    store_hot(tmp_path, "b")
    assert [row.key for row in open_run(tmp_path).trials()] == ["a#1", "b#1"]
    with Owner(tmp_path):
        assert [row.key for row in dump(tmp_path)] == ["a#1", "b#1"]


def test_a_run_has_one_owner(tmp_path: Path) -> None:
    with Owner(tmp_path), pytest.raises(InputError, match="being written by another process; one owner per run"):
        Owner(tmp_path)
    with Owner(tmp_path):
        pass


def test_an_index_on_a_shared_filesystem_is_refused(tmp_path: Path) -> None:
    here = filesystem_of(tmp_path)
    assert here
    refuse_shared(tmp_path / FILE)
    with pytest.raises(InputError, match=f"lies on {here}, where SQLite is not safe; give the index a directory on"):
        refuse_shared(tmp_path / "absent" / FILE, shared=("nfs", here))


def test_an_index_of_another_version_is_made_anew(tmp_path: Path) -> None:
    store_hot(tmp_path, "a")
    db = sqlite3.connect(tmp_path / FILE)
    db.execute("CREATE TABLE trials (old TEXT)")
    db.execute("PRAGMA user_version=1")
    db.commit()
    db.close()
    assert read_index(tmp_path / FILE) is None
    with Owner(tmp_path):
        assert [row.key for row in dump(tmp_path)] == ["a#1"]


def test_a_bundle_reaches_the_owner_whole_and_twice_is_once(tmp_path: Path) -> None:
    data = bundle(store_hot(tmp_path / "node", "t"))
    with Owner(tmp_path / "run") as owner:
        assert owner.receive(data) == owner.receive(data) == "t#1"
        with pytest.raises(InputError, match=r"differs from its digests: tokens\.arrows"):
            owner.receive(data.replace(b"ARROW", b"arrow") if b"ARROW" in data else _flipped(data))
        other = bundle(store_hot(tmp_path / "other", "t", reward=0.0))
        with pytest.raises(InputError, match="stored with another content; a retry is a new attempt"):
            owner.receive(other)
        with pytest.raises(InputError, match="is not a closed trial"):
            owner.receive(data[:700])
    assert equal(open_run(tmp_path / "run").trajectory("t"), columns_of("t"))


def test_an_open_trial_cannot_be_handed_on(tmp_path: Path) -> None:
    with HotTrial(tmp_path, "t", durable=False) as hot, pytest.raises(InputError, match="not a closed trial"):
        bundle(hot.directory)


def test_version_1_is_lifted_and_a_newer_version_is_refused(tmp_path: Path) -> None:
    write_version_1(tmp_path, "old/1")
    run = open_run(tmp_path)
    (row,) = run.trials()
    assert (row.outcome, row.reward, row.n_calls, run.record("old/1")["verdict"]) == ("solved", 0.5, 2, {"kind": "ok"})
    columns = run.trajectory("old/1")
    assert columns.ids.tolist() == [1, 2, 3, 4, 5, 6]
    assert columns.mask.tolist() == [0, 0, 1, 0, 1, 1]
    assert columns.source.tolist() == [Source.PROMPT] * 2 + [Source.SAMPLED, Source.OBSERVATION] + [Source.SAMPLED] * 2
    assert columns.turn.tolist() == [0, 0, 1, 1, 2, 2]
    assert columns.version.tolist() == [-1, -1, 8, -1, 9, 9]
    assert columns.logprob.tolist() == [0, 0, -0.5, 0, -0.25, -1.0]
    record = tmp_path / place_of("old/1", 1) / RECORD
    record.write_text(json.dumps({**json.loads(record.read_text()), "schema_version": 4}))
    with pytest.raises(InputError, match="schema version 4: written by a newer journeyman; allowed: 1 to 3"):
        open_run(tmp_path).trials()


def test_spans_give_the_columns_back() -> None:
    columns = columns_of("t", 9)
    spans = spans_of(columns)
    assert len(spans) < 30
    assert equal(from_spans(columns.ids, columns.mask, columns.logprob, spans), columns)
    assert spans_of(cut(columns, 0, 0)).shape == (0, 5)


def test_an_unknown_trial_is_named_with_its_nearest(tmp_path: Path) -> None:
    store_hot(tmp_path, "rl/3/task-1/0")
    with pytest.raises(InputError, match=r"no trial 'rl/3/task-1/9'; nearest: rl/3/task-1/0#1"):
        open_run(tmp_path).trajectory("rl/3/task-1/9")
    with pytest.raises(InputError, match="is not a directory"):
        open_run(tmp_path / "absent")


def test_a_second_writer_of_the_index_file_itself_is_refused(tmp_path: Path) -> None:
    with Index(tmp_path / FILE), pytest.raises(InputError, match="another process"):
        Index(tmp_path / FILE)


def _flipped(data: bytes) -> bytes:
    at = data.index(b"\xff\xff\xff\xff") + 600
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


def write_version_1(root: Path, trial_id: str) -> None:
    """A trial as schema version 1 stored it: one row per call with lists, no version in the record."""
    directory = root / place_of(trial_id, 1)
    directory.mkdir(parents=True)
    schema = pa.schema(
        [
            ("input_ids", pa.list_(pa.int32())),
            ("output_ids", pa.list_(pa.int32())),
            ("logprobs", pa.list_(pa.float32())),
            ("policy_version", pa.int32()),
        ]
    )
    rows = [
        {"input_ids": [1, 2], "output_ids": [3], "logprobs": [np.float32(-0.5)], "policy_version": 8},
        {"input_ids": [4], "output_ids": [5, 6], "logprobs": [np.float32(-0.25), np.float32(-1)], "policy_version": 9},
    ]
    with pa.OSFile(str(directory / TOKENS), "wb") as sink, pa.ipc.new_stream(sink, schema) as writer:
        for row in rows:
            writer.write_batch(pa.RecordBatch.from_pylist([row], schema=schema))
    record = {"trial_id": trial_id, "outcome_class": "solved", "score": 0.5, "verdict": {"status": "ok"}, "n_calls": 2}
    (directory / RECORD).write_text(json.dumps(record))
    (directory / EVENTS).write_text("")
    (directory / DONE).write_text(json.dumps({"schema_version": 1, "files": {}}))


def test_calls_of_every_size_read_back_bit_for_bit_whatever_their_codec(tmp_path: Path) -> None:
    from journeyman.trials.store.stream import LIGHT_TOKENS, PLAIN_TOKENS

    context = Context()
    with HotTrial(tmp_path, "t", durable=False) as hot:
        for size in (1, PLAIN_TOKENS - 1, PLAIN_TOKENS, LIGHT_TOKENS - 1, LIGHT_TOKENS, 3 * LIGHT_TOKENS):
            context.append_sampled([size] * size, np.full(size, -0.5, np.float32), version=1)
            hot.append_context(context)
        hot.close({})
    content = read_stream((tmp_path / place_of("t", 1) / TOKENS).read_bytes(), "t")
    assert content.torn_bytes == 0
    assert equal(joined(content.calls), context.arrays())
    assert len(content.calls) == 6


def test_a_small_call_is_stored_in_the_bytes_that_arrow_itself_would_write() -> None:
    from journeyman.trials.store.columns import DTYPES
    from journeyman.trials.store.stream import PLAIN_TOKENS, _batch, _plain

    for size in range(PLAIN_TOKENS):
        columns = [np.arange(k, size + k).astype(dtype) for k, dtype in enumerate(DTYPES.values())]
        assert _plain(size, columns) == _batch(size, columns).serialize().to_pybytes()
