"""The trajectory store on the corpus of the reference measurements: sizes, random reads, scans, and the index.

    python benchmarks/store.py [--trials N] [--index-trials N] [--encodings] [--keep DIR] [--json FILE]

The corpus has 2,000 trajectories, 66.0 M tokens, 21.6 % of them sampled, prompts shared by eight trials each, text made
of repeated phrases. Its make is calibrated on two rows of the reference table: Parquet with zstd-3, no dictionary on
lists and byte-split logprobs takes 126.6 MB there with row groups of 16 and 170.9 MB with row groups of 1;
``--encodings`` measures these two and other encodings on the first 160 trajectories, scaled to the whole.

- ``cold``: what ``journeyman pack`` writes. Gate: at most 140 MB, read back bit for bit.
- ``random read``: one trajectory with float32 logprobs, from a part that is open. Gate: median at most 10 ms. A second
  figure opens the file for every read.
- ``scan``: every token id, mask and logprob once, by pyarrow and DuckDB (one thread) and Polars (its own).
- ``index``: a row per trial made anew from 10^5 hot directories. Gate: 120 s.
- ``turns``: bytes per token of a trial of 300 turns, hot, cold and as ATIF with its full prompts.

Wall times are gated; CPU times are beside them, for machines that do something else meanwhile. Exit code 1 when a gate
is missed. The index needs 4 x 10^5 small files of disk for a while.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from journeyman.tokens.context import Columns, Source
from journeyman.trials.store import HotTrial, open_run
from journeyman.trials.store.atif import atif_document
from journeyman.trials.store.cold_schema import ROWS_PER_PART, writer_options
from journeyman.trials.store.columns import calls_of, equal
from journeyman.trials.store.hot import place_of
from journeyman.trials.store.index import FILE, Index
from journeyman.trials.store.listing import indexed_rows
from journeyman.trials.store.pack import PackedTrial, manifest_of, pack_run, write_part
from journeyman.trials.store.place import LocalPlace
from journeyman.trials.store.rows import row_of

TOKENS, TRIALS, GROUP, SAMPLED_SHARE = 66_000_000, 2000, 8, 0.213
VOCABULARY, PHRASES = 151_936, 200_000
SHARED_BY_ALL, SHARED_BY_GROUP = 3000, 8000
SIZE_GATE_MB, READ_GATE_MS, INDEX_GATE_S = 140.0, 10.0, 120.0

Ids = npt.NDArray[np.int32]


class Text:
    """Token ids like those of text: phrases of 1 to 6 tokens, frequent ones often, frequent tokens with low ids."""

    def __init__(self) -> None:
        rng = np.random.default_rng(5)
        self._words = _drawn(rng, _law(VOCABULARY, 1.05, 2.7), 4 * PHRASES)
        self._lengths = rng.integers(1, 7, PHRASES)
        self._starts = np.concatenate([[0], np.cumsum(self._lengths)[:-1]]) % (3 * PHRASES)
        self._phrases = _law(PHRASES, 0.9, 10.0)

    def draw(self, rng: np.random.Generator, n: int) -> Ids:
        picked = _drawn(rng, self._phrases, n // 2 + 50)
        lengths = self._lengths[picked]
        ends = np.cumsum(lengths)
        places = np.repeat(self._starts[picked] - (ends - lengths), lengths) + np.arange(ends[-1])
        ids: Ids = self._words[places[:n]]
        return ids


def _law(size: int, exponent: float, shift: float) -> npt.NDArray[np.float64]:
    """Cumulative probabilities of ranks under a Zipf-Mandelbrot law."""
    weights = np.cumsum((np.arange(1, size + 1) + shift) ** -exponent)
    return weights / weights[-1]


def _drawn(rng: np.random.Generator, law: npt.NDArray[np.float64], n: int) -> Ids:
    return np.searchsorted(law, rng.random(n)).astype(np.int32)


def corpus(n_trials: int, text: Text) -> Iterator[Columns]:
    """The trajectories, in the order of their groups; lengths are lognormal and add up to the corpus' tokens."""
    rng = np.random.default_rng(0)
    spread = np.clip(np.random.default_rng(1).lognormal(-0.08, 0.4, TRIALS), 0.45, 3)
    lengths = np.round(spread * TOKENS / spread.sum()).astype(int)
    everybody = text.draw(rng, SHARED_BY_ALL)
    for trial in range(n_trials):
        if trial % GROUP == 0:
            prompt = np.concatenate([everybody, text.draw(rng, SHARED_BY_GROUP)])
        yield trajectory(rng, text, prompt, int(lengths[trial]), version=trial // 80)


def trajectory(rng: np.random.Generator, text: Text, prompt: Ids, length: int, version: int) -> Columns:
    """One trial: a shared prompt, then turns of 100 to 400 sampled tokens, each followed by its observation."""
    share = min(SAMPLED_SHARE * length / (length - len(prompt)), 0.9)
    ids, sampled, left = [prompt], [False], length - len(prompt)
    while left > 0:
        turn = min(int(rng.integers(100, 400)), left)
        seen = min(int(turn / share * (1 - share)), left - turn)
        ids += [text.draw(rng, turn), text.draw(rng, seen)] if seen else [text.draw(rng, turn)]
        sampled += [True, False] if seen else [True]
        left -= turn + seen
    sizes = np.array([len(part) for part in ids])
    mask = np.repeat(np.array(sampled, dtype=np.uint8), sizes)
    turns = np.repeat(np.cumsum(sampled), sizes).astype(np.int32)
    logprob = np.zeros(length, dtype=np.float32)
    logprob[mask == 1] = -np.exp(rng.normal(-2.5, 2.2, int(mask.sum()))).astype(np.float32)
    source = np.where(mask == 1, Source.SAMPLED, np.where(turns == 0, Source.PROMPT, Source.OBSERVATION))
    versions = np.where(mask == 1, version, -1).astype(np.int32)
    return Columns(np.concatenate(ids), mask, logprob, source.astype(np.uint8), versions, turns)


def packed(number: int, columns: Columns) -> PackedTrial:
    """A trajectory with the record of a short trial."""
    trial_id = f"rl/{number // 80}/task-{number // GROUP}/{number % GROUP}"
    facts: dict[str, Any] = {
        "trial_id": trial_id,
        "task_id": f"task-{number // GROUP}",
        "harness": "toolbelt",
        "outcome": "solved",
        "reward": float(number % 2),
        "n_tokens": len(columns.ids),
        "n_sampled": int(columns.mask.sum()),
        "n_calls": int(columns.turn.max()),
    }
    return PackedTrial(row_of(facts, "hot", ""), columns, facts, "")


def measure_cold(root: Path, n_trials: int, text: Text) -> dict[str, Any]:
    """Write the corpus as ``pack`` does, part by part; sizes in MB of 10^6 bytes."""
    (root / "cold").mkdir(parents=True)
    source = enumerate(corpus(n_trials, text))
    parts, n_tokens, n_sampled, making_s = [], 0, 0, 0.0
    start = time.perf_counter()
    for first in range(0, n_trials, ROWS_PER_PART):
        made = time.perf_counter()
        trials = [packed(*next(source)) for _ in range(min(ROWS_PER_PART, n_trials - first))]
        making_s += time.perf_counter() - made
        n_tokens += sum(trial.row.n_tokens for trial in trials)
        n_sampled += sum(trial.row.n_sampled for trial in trials)
        path = root / "cold" / f"part-{first:06d}.parquet"
        keys = write_part(path, trials)
        parts.append({"file": path.name, "bytes": path.stat().st_size, "sha256": "", "keys": keys})
    name, manifest = manifest_of(parts, "")
    (root / "cold" / name).write_bytes(manifest)
    size = sum(part["bytes"] for part in parts) / 1e6
    return {
        "trials": n_trials,
        "tokens": n_tokens,
        "sampled_share": n_sampled / n_tokens,
        "raw_mb": n_tokens * 9 / 1e6,
        "mb": size,
        "mb_of_the_corpus": size * TOKENS / n_tokens,
        "write_s": time.perf_counter() - start - making_s,
    }


def measure_reads(root: Path, n_trials: int, text: Text, reads: int = 200) -> dict[str, Any]:
    """Random trajectories from open parts, and with the file opened anew; every read is compared on a few."""
    wanted = np.random.default_rng(3).integers(0, n_trials, reads).tolist()
    times, cpu_times, fresh = [], [], []
    with open_run(root) as run:
        keys = [packed_key(number) for number in range(n_trials)]
        run.trials()
        for key in keys[:: ROWS_PER_PART // 2]:
            run.trajectory(key)
        for number in wanted:
            start, cpu = time.perf_counter(), time.process_time()
            run.trajectory(keys[number])
            times.append((time.perf_counter() - start) * 1e3)
            cpu_times.append((time.process_time() - cpu) * 1e3)
        same = all(equal(run.trajectory(keys[n]), columns) for n, columns in enumerate(corpus(24, text)))
    for number in wanted[:20]:
        with open_run(root) as run:
            run.row(keys[number])
            start = time.perf_counter()
            run.trajectory(keys[number])
            fresh.append((time.perf_counter() - start) * 1e3)
    q = np.percentile(times, [50, 90, 100])
    return {
        "median_ms": q[0],
        "q90_ms": q[1],
        "max_ms": q[2],
        "median_cpu_ms": np.median(cpu_times),
        "opening_median_ms": np.median(fresh),
        "equal": same,
    }


def packed_key(number: int) -> str:
    return f"rl/{number // 80}/task-{number // GROUP}/{number % GROUP}#1"


def measure_scans(root: Path) -> dict[str, float]:
    """Wall and CPU seconds for one pass over every id, mask and logprob, one thread where the library can be told."""
    import duckdb
    import polars
    import pyarrow.parquet as pq

    files = sorted(str(path) for path in (root / "cold").glob("*.parquet"))
    names = ["token_ids", "loss_mask", "logprobs"]
    db = duckdb.connect(config={"threads": 1})

    def by_arrow() -> None:
        for file in files:
            for batch in pq.ParquetFile(file).iter_batches(64, columns=names, use_threads=False):
                for column in batch.columns:
                    column.values.to_numpy(zero_copy_only=False).sum()

    def by_duckdb() -> None:
        sums = ", ".join(f"sum(list_sum({name}))" for name in names)
        db.sql(f"SELECT {sums} FROM '{root}/cold/*.parquet'").fetchall()

    def by_polars() -> None:
        polars.scan_parquet(files).select([polars.col(name).list.sum().sum() for name in names]).collect()

    def metadata() -> None:
        db.sql(f"SELECT outcome, avg(reward) FROM '{root}/cold/*.parquet' GROUP BY 1").fetchall()

    scans: dict[str, Callable[[], None]] = {
        "pyarrow_s": by_arrow,
        "duckdb_s": by_duckdb,
        "polars_s": by_polars,
        "duckdb_mean_reward_s": metadata,
    }
    figures = {}
    for name, scan in scans.items():
        cpu = time.process_time()
        figures[name] = _seconds(scan)
        figures[name.replace("_s", "_cpu_s")] = time.process_time() - cpu
    return figures


def measure_index(root: Path, n_trials: int) -> dict[str, float]:
    """Make hot directories (not synced: they are no results), then the index from them."""
    call = calls_of(trajectory(np.random.default_rng(0), Text(), np.arange(40, dtype=np.int32), 240, 0))[0]
    record = {"task_id": "task", "outcome": "solved", "reward": 1.0, "turns": [{"n_sampled": 9, "calls": []}] * 5}
    start = time.perf_counter()
    with HotTrial(root, "first", durable=False) as hot:
        hot.append_call(call)
        first = hot.close(record)
    content = {path.name: path.read_bytes() for path in first.iterdir()}
    closed = json.loads(content.pop("trial.json"))
    for number in range(1, n_trials):
        closed["trial_id"] = f"rl/{number // 256}/task-{number % 64}/{number}"
        directory = root / place_of(closed["trial_id"], 1)
        directory.mkdir(parents=True)
        for name, data in content.items():
            (directory / name).write_bytes(data)
        (directory / "trial.json").write_text(json.dumps(closed))
    made, cpu = time.perf_counter(), time.process_time()
    with Index(root / FILE) as index:
        rows = index.replace_all(indexed_rows(LocalPlace(root)))
    assert rows == n_trials
    rebuilt, cpu_s = time.perf_counter(), time.process_time() - cpu
    listed = len(open_run(root).trials())
    assert listed == n_trials
    return {
        "trials": n_trials,
        "write_s": made - start,
        "rebuild_s": rebuilt - made,
        "rebuild_cpu_s": cpu_s,
        "list_s": time.perf_counter() - rebuilt,
    }


def measure_turns(root: Path, text: Text) -> dict[str, float]:
    """Bytes per token of one long trial in three formats."""
    columns = trajectory(np.random.default_rng(0), text, text.draw(np.random.default_rng(1), 1000), 400_000, 0)
    calls = calls_of(columns)[:300]
    n_tokens = sum(len(call.ids) for call in calls)
    start = time.perf_counter()
    with HotTrial(root, "long", durable=False) as hot:
        for call in calls:
            hot.append_call(call)
        directory = hot.close({})
    append_ms = (time.perf_counter() - start) * 1e3 / len(calls)
    hot_bytes = sum(path.stat().st_size for path in directory.iterdir())
    document = atif_document("long", "run", {}, open_run(root).trajectory("long"))
    return {
        "turns": len(calls),
        "tokens": n_tokens,
        "hot": hot_bytes / n_tokens,
        "cold": pack_run(root).bytes / n_tokens,
        "atif": len(json.dumps(document)) / n_tokens,
        "append_ms_per_call": append_ms,
    }


def measure_encodings(root: Path, text: Text, n_trials: int = 160) -> dict[str, float]:
    """MB of the corpus under other encodings, from its first trajectories."""
    import pyarrow.parquet as pq

    trials = [packed(number, columns) for number, columns in enumerate(corpus(n_trials, text))]
    scale = TOKENS / sum(trial.row.n_tokens for trial in trials)
    ours = writer_options()
    logprobs, ids = "logprobs.list.element", "token_ids.list.element"
    split = {**ours, "column_encoding": {logprobs: "BYTE_STREAM_SPLIT"}}
    plain = {**ours, "use_dictionary": True, "column_encoding": None}
    delta = {**split, "column_encoding": {logprobs: "BYTE_STREAM_SPLIT", ids: "DELTA_BINARY_PACKED"}}
    kinds = {"ours, groups of 4": (ours, 4), "ids plain, 4": (split, 4), "ids plain, 16": (split, 16)}
    kinds |= {"ids plain, 1": (split, 1), "ids delta, 4": (delta, 4), "library defaults, 16": (plain, 16)}
    sizes = {}
    write_part(root / "all.parquet", trials)
    table = pq.read_table(root / "all.parquet")
    for name, (options, rows) in kinds.items():
        pq.write_table(table, root / "one.parquet", row_group_size=rows, **options)
        sizes[name] = (root / "one.parquet").stat().st_size * scale / 1e6
    return sizes


def _seconds(work: Callable[[], None]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=TRIALS, help="trajectories of the corpus; 0 leaves it out")
    parser.add_argument("--index-trials", type=int, default=100_000, help="hot directories; 0 leaves them out")
    parser.add_argument("--encodings", action="store_true", help="also sizes under other encodings")
    parser.add_argument("--keep", type=Path, help="leave the files there")
    parser.add_argument("--json", type=Path, help="also write the figures there")
    options = parser.parse_args()
    text, passed = Text(), True
    figures: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as temporary:
        root = options.keep or Path(temporary)
        figures["turns"] = measure_turns(root / "turns", text)
        if options.encodings:
            figures["encodings_mb"] = measure_encodings(root, text)
        if options.trials:
            cold = figures["cold"] = measure_cold(root / "corpus", options.trials, text)
            reads = figures["random_read"] = measure_reads(root / "corpus", options.trials, text)
            figures["scan"] = measure_scans(root / "corpus")
            passed &= cold["mb_of_the_corpus"] <= SIZE_GATE_MB
            passed &= bool(reads["equal"]) and reads["median_ms"] <= READ_GATE_MS
        if options.index_trials:
            index = figures["index"] = measure_index(root / "index", options.index_trials)
            passed &= index["rebuild_s"] <= INDEX_GATE_S
    for name, values in figures.items():
        print(name)
        for label, value in values.items():
            print(f"  {label:<24} {value:>14,.3f}" if isinstance(value, float) else f"  {label:<24} {value:>14}")
    print("gates:", "passed" if passed else "MISSED")
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1, default=float) + "\n")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
