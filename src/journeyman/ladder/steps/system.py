"""Step 3, system: how many trials run at once, and how rows become micro-batches.

Every choice follows from counts (KV-cache bytes, staleness, lengths), never from a stopwatch, so that the same recipe
makes the same choices on every machine; speed is measured beside them and printed.
"""

from __future__ import annotations

import numpy as np

from journeyman.clock import Stopwatch
from journeyman.harness import HARNESSES
from journeyman.ladder import judgement
from journeyman.ladder.bench import Bench
from journeyman.ladder.report.figures import Column, Table
from journeyman.ladder.report.model import Step
from journeyman.train.layout import layout_of
from journeyman.train.packing import grouped_batches
from journeyman.trials.record import TrialRequest
from journeyman.trials.store import read_tokens

STALENESS = 0
PROBE_PARTS = (8, 2)
"""Speed is measured at these fractions of the concurrency: an eighth and a half."""


def run_step(bench: Bench) -> Step:
    """Derive concurrency and micro-batches; measure what they give here."""
    recipe = bench.recipe
    model, engine, rl = recipe.model, recipe.engine, recipe.rl
    row_bytes = 2 * 4 * model.layers * model.kv_heads * model.head_dim * engine.max_context
    by_memory = (engine.kv_memory_mb << 20) // row_bytes
    wanted = (STALENESS + 1) * rl.tasks_per_step * rl.trials_per_task
    concurrency = min(by_memory, engine.rows, wanted)
    place = next(p for p in sorted(bench.run.path("dry-run").iterdir()) if p.name.startswith("dry-run-"))
    rows = list(read_tokens(place))[:wanted]
    lengths = [len(row.ids) for row in rows]
    groups = [i // rl.trials_per_task for i in range(len(rows))]
    batches = grouped_batches(lengths, groups, rl.micro_batch_tokens)
    layouts = [layout_of([rows[i].ids for i in b], [rows[i].mask for i in b], share_prefixes=True) for b in batches]
    computed = sum(len(layout.ids) for layout in layouts)
    over_cap = sum(sum(lengths[i] for i in b) > rl.micro_batch_tokens and len(b) > 1 for b in batches)
    probes = [_probe(bench, max(1, concurrency // part)) for part in PROBE_PARTS]
    judged = judgement.system(by_memory, row_bytes, wanted, over_cap, rl.micro_batch_tokens, len(batches))
    table = Table(
        title="Decoding speed by concurrency, warm-started policy",
        columns=(
            Column(name="trials at once"),
            Column(name="sampled tokens"),
            Column(name="wall", unit="s", measures_time=True),
            Column(name="tokens per second", unit="tokens/s", measures_time=True),
        ),
        rows=tuple((n, tokens, wall, tokens / wall) for n, tokens, wall in probes),
        note="measured for information: no choice depends on it",
    )
    bench.say(f"concurrency {concurrency}: {by_memory} rows fit the KV memory, {wanted} are wanted")
    return Step(
        number=3,
        name="system",
        status=judged.status,
        gate=judged.gate,
        checks=judged.checks,
        summary=f"synchronous, staleness {STALENESS}: {concurrency} trials at once, {len(batches)} micro-batches",
        evidence={
            "rows_by_kv_memory": by_memory,
            "rows_by_staleness": wanted,
            "concurrency": concurrency,
            "bytes_per_row": row_bytes,
            "mean_tokens_per_trial": float(np.mean(lengths)),
            "micro_batches": len(batches),
            "tokens_of_a_step": sum(lengths),
            "tokens_computed_after_sharing_prefixes": computed,
        },
        tables=(table,),
    )


def _probe(bench: Bench, n_trials: int) -> tuple[int, int, float]:
    tasks = bench.workshop.tasks("train")
    bench.hold("warm_start")
    requests = [
        TrialRequest(tasks[i % len(tasks)], HARNESSES["toolbelt"], ("probe", n_trials, i), i) for i in range(n_trials)
    ]
    watch = Stopwatch()
    trials = bench.rollouts.run(requests)
    return n_trials, sum(int(t.tokens.mask.sum()) for t in trials), watch.elapsed_s
