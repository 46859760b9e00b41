"""Figures of agreement and their gate: what a mean hides is found by a quantile, a span, or the excess after a push."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from journeyman.tokens.context import SOURCES, Source
from journeyman.train.agreement.gate import LEGS, LIMITS, OPENED, PUSHED, findings
from journeyman.train.agreement.measure import Sampled, agreement, figures

NAMES = list(SOURCES)


def sampled(gaps, *, versions=None, leg=OPENED, kept=False, prompt=4):
    """A trial with a prompt and one turn whose tokens are off by ``gaps``."""
    n = len(gaps)
    trainer = np.linspace(-3, -1, n, dtype=np.float32)
    versions = [0] * n if versions is None else versions
    return Sampled(
        mask=np.array([0] * prompt + [1] * n, np.uint8),
        engine=np.concatenate([np.zeros(prompt), trainer + np.asarray(gaps)]).astype(np.float32),
        trainer=np.concatenate([np.zeros(prompt, np.float32), trainer]),
        version=np.array([versions[0]] * prompt + list(versions), np.int32),
        source=np.array([Source.PROMPT] * prompt + [Source.SAMPLED] * n, np.uint8),
        leg=np.full(prompt + n, LEGS.index(leg), np.uint8),
        kept=kept,
    )


def measured(*trials):
    return agreement(trials, NAMES, LEGS)


def conditions(found, dtype="float32"):
    return [finding.condition.partition(" (")[0] for finding in findings(found, LIMITS[dtype])]


def test_the_reference_vector_of_k1_and_k3():
    mu, pi = np.log([0.5, 0.2, 0.1]), np.log([0.4, 0.25, 0.1])
    found = figures(mu, pi)
    ratio = np.array([0.8, 1.25, 1.0])
    assert found.k1 == pytest.approx(np.mean(-np.log(ratio)))
    assert found.k3 == pytest.approx(np.mean(ratio - np.log(ratio) - 1))
    assert found.max == pytest.approx(math.log(1.25))


def test_equal_sides_agree_and_every_part_says_so():
    found = measured(sampled([0.0] * 40))
    assert found.whole.mean == 0 and found.whole.n == 40 and found.mixed.n == 0
    assert set(found.by_source) == {"prompt", "sampled"} and found.by_source["prompt"].n == 1
    assert sum(row.n for row in found.by_position.values()) == 40
    assert findings(found, LIMITS["float32"]) == ()


@given(st.lists(st.floats(0, 2e-5), min_size=1, max_size=60))
def test_rounding_never_trips_the_gate(gaps):
    assert findings(measured(sampled(gaps)), LIMITS["float32"]) == ()


def test_a_stale_head_that_passes_the_published_mean_is_found_by_what_the_push_added():
    found = measured(sampled([0.008] * 64), sampled([0.027] * 64, versions=[1] * 64, leg=PUSHED))
    assert found.whole.mean < 0.03
    assert conditions(found, "bfloat16") == ["gap after a push over the gap before it"]


def test_a_span_far_off_is_found_inside_a_mean_that_passes():
    found = measured(sampled([0.001] * 200), sampled([0.08] * 30, versions=[1] * 30))
    assert found.whole.mean < 0.03
    assert "mean gap of the worst span" in conditions(found, "bfloat16")
    assert found.worst_span(8).version == 1


def test_a_few_tokens_far_off_are_found_by_the_quantile():
    found = measured(sampled([0.0] * 190 + [0.9] * 4))
    assert found.whole.mean < 0.03
    assert "99 % quantile of the gap" in conditions(found, "bfloat16")


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_logprob_that_is_no_number_never_passes(value):
    gaps = [0.0] * 20
    gaps[7] = value
    assert "mean gap" in conditions(measured(sampled(gaps)))


def test_tokens_over_a_prefix_of_several_versions_are_reported_apart():
    versions = [0] * 10 + [1] * 10
    kept = measured(sampled([0.0] * 10 + [0.5] * 10, versions=versions, kept=True))
    assert (kept.whole.n, kept.mixed.n) == (10, 10)
    assert findings(kept, LIMITS["float32"]) == ()
    recomputed = measured(sampled([0.0] * 10 + [0.5] * 10, versions=versions, kept=False))
    assert recomputed.whole.n == 20
    assert "mean gap" in conditions(recomputed)
    assert [(span.version, span.start, span.end) for span in recomputed.spans] == [(0, 4, 14), (1, 14, 24)]


def test_agreement_over_nothing_is_refused():
    with pytest.raises(ValueError, match="nothing to compare"):
        measured(Sampled(*[np.zeros(3, np.uint8)] * 6))
    with pytest.raises(ValueError, match="unequal length"):
        measured(Sampled(np.ones(3, np.uint8), *[np.zeros(2, np.uint8)] * 5))
