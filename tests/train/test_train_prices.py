"""Dollars of a step: what each price adds, and that counters of a source are counted once."""

from __future__ import annotations

import pytest

from journeyman.train.loop.admission import AdmissionSpec
from journeyman.train.loop.books import Books
from journeyman.train.loop.gate import GateSpec
from journeyman.train.loop.spec import LoopSpec
from journeyman.train.metrics.prices import Prices, Spent
from journeyman.train.metrics.sinks import Sinks


def test_each_price_makes_its_own_dollars():
    prices = Prices(2.0, 0.5, per_cpu_second=0.01, per_gpu_second=0.001, gpus=8, per_hour=36.0)
    found = prices.dollars(Spent(wall_s=100.0, sampled=1_000_000, prefilled=4_000_000, cpu_s=20.0))
    assert found == pytest.approx({"usd/tokens": 4.0, "usd/cpu": 0.2, "usd/gpu": 0.8, "usd/machines": 1.0})
    assert sum(Prices().dollars(Spent(9.0, 9, 9, 9.0)).values()) == 0


def test_a_step_pays_for_what_was_used_since_the_record_before(tmp_path):
    gate = GateSpec(AdmissionSpec(1, 0, 1), steps=3)
    spec = LoopSpec("prices", 0, 1, 2, gate, prices=Prices(per_million_sampled=1e6, per_cpu_second=1.0))
    books = Books(tmp_path, spec, Sinks(tmp_path))
    told = [(100, 3.0), (250, 7.0), (40, 7.5)]  # the last from a source that began anew
    records = []
    for step, (sampled, cpu_s) in enumerate(told, 1):
        record = {
            **dict.fromkeys(("tokens/sampled", "tokens/trained", "usd/trials", "time/wall_s"), 0),
            **dict.fromkeys(("reward/mean", "reward/finished", "policy/entropy", "policy/grad_norm"), 0.5),
            **dict.fromkeys(("policy/gap_mean", "policy/gap_q99")),
            "behaviour/tokens_per_trial": 9.0,
            "rollout/sampled_tokens": sampled,
            "rollout/prefilled_tokens": 0,
            "rollout/cpu_s": cpu_s,
        }
        books.step(step, record, [])
        records.append(record)
    books.close()
    assert [record["usd/tokens"] for record in records] == [100.0, 150.0, 0.0]
    own = [record["usd/cpu"] - told_s for record, told_s in zip(records, (3.0, 4.0, 0.5), strict=True)]
    assert all(0 <= seconds < 5 for seconds in own), "the trainer's own seconds beside the source's"
    assert records[-1]["total/usd"] == pytest.approx(sum(r["usd/tokens"] + r["usd/cpu"] for r in records))
