"""What the embedded engine reports against the ``transformers`` forward, under everything that can disturb it."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
import torch

from journeyman.engines import Sampling, TurnRequest, TurnResult
from journeyman.engines.embedded import EmbeddedEngine

pytestmark = pytest.mark.thorough

VOCAB, STOP = 96, 2
Reference = Callable[..., Any]
MEAN, LARGEST = 1e-5, 1e-4


@pytest.fixture(scope="session")
def versions(model: Any) -> list[Any]:
    """The model and three that training moved on, far enough for a wrong one to be noticed."""
    found = [model]
    for seed in (1, 2, 3):
        moved = deepcopy(found[-1])
        torch.manual_seed(seed)
        with torch.no_grad():
            for name, parameter in moved.named_parameters():
                if "norm" not in name:
                    parameter.add_(torch.randn_like(parameter) * 0.02)
        found.append(moved.eval())
    return found


def engine_of(model: Any, **options: Any) -> EmbeddedEngine:
    return EmbeddedEngine(model.config.to_dict(), model.state_dict(), **{"rows": 16, "max_len": 200, **options})


@dataclass
class Told:
    """One turn with the context it was sampled in."""

    context: list[int]
    result: TurnResult


@dataclass
class Crowd:
    """Trials of ragged multi-turn conversations, stepped by hand so that things can happen between two tokens."""

    engine: EmbeddedEngine
    trials: int = 16
    turns: int = 4
    sampling: dict[str, Any] = field(default_factory=dict)
    told: list[Told] = field(default_factory=list)

    def run(self, between: Callable[[int], None] = lambda step: None) -> Crowd:
        self.contexts: dict[str, list[int]] = {f"t{n}": [] for n in range(self.trials)}
        self.rng_of = {trial: np.random.default_rng([5, n]) for n, trial in enumerate(self.contexts)}
        self.left = dict.fromkeys(self.contexts, self.turns)
        for trial in self.contexts:
            self._submit(trial)
        under_way, step = self.trials, 0
        while under_way:
            for result in self.engine.step():
                self.told.append(Told(list(self.contexts[result.trial]), result))
                self.contexts[result.trial] += result.ids
                self.left[result.trial] -= 1
                if self.left[result.trial]:
                    self._submit(result.trial)
                else:
                    self.engine.release(result.trial)
                    under_way -= 1
            step += 1
            between(step)
        return self

    def _submit(self, trial: str) -> None:
        rng = self.rng_of[trial]
        append = rng.integers(3, VOCAB, rng.integers(1, 20)).tolist()
        self.contexts[trial] += append
        sampling = Sampling(int(rng.integers(8, 24)), 1.0, frozenset({STOP}), **self.sampling)
        self.engine.submit(TurnRequest(trial, append, int(rng.integers(2**63)), sampling))


def gaps(told: list[Told], versions: list[Any], reference: Reference, shift: int = 0) -> Any:
    """|reported - forward| of every sampled token, each span under its version, its boundaries moved by ``shift``."""
    found: list[float] = []
    for one in told:
        count, spans = len(one.result.ids), one.result.spans
        tables = {v: reference(versions[v], one.context + one.result.ids) for v in {span.version for span in spans}}
        for at, token in enumerate(one.result.ids):
            version = next((s.version for s in spans if at < s.end + shift), spans[-1].version)
            row = len(one.context) + at - 1
            found.append(abs(tables[version][row, token] - float(one.result.logprobs[at])))
        assert len(one.result.logprobs) == count
    return np.array(found)


def assert_close(found: Any) -> None:
    print(f"{len(found)} tokens: mean {found.mean():.1e}, largest {found.max():.1e}")
    assert len(found) >= 768
    assert found.mean() <= MEAN
    assert found.max() <= LARGEST


def test_engine_logprobs_match_forward(any_model: Any, reference: Reference) -> None:
    crowd = Crowd(engine_of(any_model), trials=24, turns=5).run()
    assert_close(gaps(crowd.told, [any_model], reference))


def test_logprobs_match_after_preemption(model: Any, reference: Reference) -> None:
    engine = engine_of(model, rows=16, max_len=200, kv_tokens=400)
    crowd = Crowd(engine, trials=24, turns=5)
    largest = 0

    def watch(step: int) -> None:
        nonlocal largest
        largest = max(largest, engine.usage().tokens)

    crowd.run(watch)
    assert engine.usage().preemptions > 20
    assert largest <= 400 == engine.usage().capacity
    assert_close(gaps(crowd.told, [model], reference))


def test_a_memory_bound_changes_no_sampled_id(model: Any) -> None:
    free, bound = Crowd(engine_of(model)).run(), Crowd(engine_of(model, kv_tokens=300)).run()
    assert sorted((t.result.trial, *t.result.ids) for t in free.told) == sorted(
        (t.result.trial, *t.result.ids) for t in bound.told
    )


def push_often(engine: EmbeddedEngine, versions: list[Any], kv: Any) -> Callable[[int], None]:
    def between(step: int) -> None:
        if step % 17 == 0 and engine.version + 1 < len(versions):
            engine.update_weights(versions[engine.version + 1].state_dict(), engine.version + 1, kv=kv)

    return between


def test_each_span_of_a_turn_matches_the_forward_of_its_own_weights(versions: list[Any], reference: Reference) -> None:
    """With keys and values recomputed at every push, the plain forward of a span's version is what was sampled from."""
    engine = engine_of(versions[0])
    crowd = Crowd(engine, trials=24, turns=5).run(push_often(engine, versions, "recompute"))
    mixed = [told for told in crowd.told if len(told.result.spans) > 1]
    assert len(mixed) > 20
    assert {span.version for told in crowd.told for span in told.result.spans} == {0, 1, 2, 3}
    assert_close(gaps(crowd.told, versions, reference))


@pytest.mark.parametrize("shift", [-2, -1, 1, 2])
def test_a_span_boundary_that_is_off_by_a_token_is_found(versions: list[Any], reference: Reference, shift: int) -> None:
    engine = engine_of(versions[0])
    crowd = Crowd(engine, trials=24, turns=2).run(push_often(engine, versions, "recompute"))
    mixed = [told for told in crowd.told if len(told.result.spans) > 1]
    assert gaps(mixed, versions, reference).max() <= LARGEST
    assert gaps(mixed, versions, reference, shift).max() > 1e-2


def test_kept_keys_and_values_are_those_of_the_old_weights(versions: list[Any]) -> None:
    """``keep``: each token's keys and values stay of the weights that computed them; a cache of transformers says the
    same when the weights change between its tokens."""
    from transformers import DynamicCache

    engine, prompt = engine_of(versions[0]), [5, 9, 41, 17, 30, 8]
    engine.submit(TurnRequest("a", prompt, 1, Sampling(30, 1.0, frozenset())))
    for _ in range(10):
        assert engine.step() == []
    engine.update_weights(versions[1].state_dict(), 1, kv="keep")
    ended: list[TurnResult] = []
    while not ended:
        ended = engine.step()
    (result,) = ended
    boundary = result.spans[0].end
    assert [span.version for span in result.spans] == [0, 1]
    assert 0 < boundary < 30

    def mixed(boundary: int) -> float:
        cache, found = DynamicCache(), []
        ids = prompt + result.ids
        with torch.inference_mode():
            logits = versions[0](torch.tensor([prompt]), cache=cache, use_cache=True).logits[0, -1]
            for at, token in enumerate(result.ids):
                found.append(float(torch.log_softmax(logits.double(), -1)[token]))
                model = versions[0] if at + 1 < boundary else versions[1]
                step = torch.tensor([[ids[len(prompt) + at]]])
                logits = model(step, cache=cache, use_cache=True).logits[0, -1]
        return float(np.abs(np.array(found) - result.logprobs).max())

    assert mixed(boundary) < LARGEST
    assert min(mixed(boundary + shift) for shift in (-2, -1, 1, 2)) > 1e-2


def test_an_aborted_turn_submitted_again_goes_on_as_if_it_had_not_been(model: Any) -> None:
    sampling = Sampling(20, 1.0, frozenset({STOP}))
    whole = engine_of(model).generate([TurnRequest("a", [5, 9], 7, sampling)])[0]
    engine = engine_of(model)
    engine.submit(TurnRequest("a", [5, 9], 7, sampling))
    for _ in range(5):
        engine.step()
    (partial,) = engine.pause("abort")
    engine.resume()
    count = len(partial.ids)
    assert 0 < count < len(whole.ids)
    rest = TurnRequest("a", [], 7, Sampling(20 - count, 1.0, frozenset({STOP})), offset=count)
    (more,) = engine.generate([rest])
    assert partial.ids + more.ids == whole.ids


@pytest.mark.parametrize("filters", [{"top_k": 5}, {"top_p": 0.7}, {"top_k": 20, "top_p": 0.9}])
def test_filtered_logprobs_are_those_of_the_kept_set_renormalised(
    model: Any, reference: Reference, filters: dict[str, Any]
) -> None:
    crowd = Crowd(engine_of(model), trials=8, turns=3, sampling={**filters, "top_logprobs": 4}).run()
    for told in crowd.told:
        result, table = told.result, reference(model, told.context + told.result.ids)
        assert result.kept is not None and result.top_logprobs is not None
        for at, token in enumerate(result.ids):
            row = table[len(told.context) + at - 1]
            kept = result.kept.ids[result.kept.starts[at] : result.kept.starts[at + 1]]
            order = np.argsort(-row, kind="stable")[: filters.get("top_k", VOCAB)]
            weights = np.exp(row[order]) / np.exp(row[order]).sum()
            count = int(np.searchsorted(np.cumsum(weights), filters.get("top_p", 1.0))) + 1
            assert token in kept
            assert abs(len(kept) - min(count, len(order))) <= 1  # a sum on the border may round either way
            renormalised = row - np.log(np.exp(row[kept]).sum())
            assert abs(renormalised[token] - result.logprobs[at]) < LARGEST
            shown = min(4, len(kept))
            assert result.top_logprobs.ids[at][:shown].tolist() == kept[:shown].tolist()
            assert result.top_logprobs.logprobs[at][:shown] == pytest.approx(renormalised[kept[:shown]], abs=LARGEST)
            assert np.isneginf(result.top_logprobs.logprobs[at][shown:]).all()


def test_samples_follow_the_filtered_distribution(model: Any, reference: Reference) -> None:
    from scipy import stats

    prompt, draws, counts = [5, 9, 41, 17], 6_400, np.zeros(VOCAB)
    engine = engine_of(model, rows=256)
    sampling = Sampling(1, 0.8, frozenset({STOP}), top_k=12, top_p=0.85)
    for start in range(0, draws, 256):
        for result in engine.generate([TurnRequest(str(n), prompt, n, sampling) for n in range(start, start + 256)]):
            counts[result.ids[0]] += 1
            engine.release(result.trial)
    assert result.kept is not None
    row, kept = reference(model, prompt, 0.8)[-1], result.kept.ids
    expected = np.exp(row[kept]) / np.exp(row[kept]).sum() * draws
    assert counts.sum() == counts[kept].sum() == draws
    assert stats.chisquare(counts[kept], expected).pvalue > 1e-3
    unfiltered = np.exp(reference(model, prompt)[-1][kept])
    assert stats.chisquare(counts[kept], unfiltered / unfiltered.sum() * draws).pvalue < 1e-3


def test_top_logprobs_are_the_models_most_probable_tokens(model: Any, reference: Reference) -> None:
    (result,) = engine_of(model).generate([TurnRequest("a", [5, 9], 3, Sampling(6, 1.0, frozenset(), top_logprobs=5))])
    table = reference(model, [5, 9, *result.ids])
    assert result.kept is None
    assert result.top_logprobs is not None
    for at in range(6):
        order = np.argsort(-table[at + 1])[:5]
        assert result.top_logprobs.ids[at].tolist() == order.tolist()
        assert result.top_logprobs.logprobs[at] == pytest.approx(table[at + 1][order], abs=LARGEST)


def test_a_trial_of_300_turns_computes_each_token_once(model: Any) -> None:
    engine = engine_of(model, rows=2, max_len=2048)
    sampling, appended, sampled, turn = Sampling(3, 1.0, frozenset({STOP})), 0, 0, 0

    def respond(result: TurnResult) -> TurnRequest | None:
        nonlocal appended, sampled, turn
        turn += 1
        sampled += len(result.ids)
        if turn == 300:
            return None
        appended += 3
        return TurnRequest("a", [7, 8, 9], turn, sampling)

    engine.converse([TurnRequest("a", [7, 8, 9], 0, sampling)], respond)
    usage = engine.usage()
    assert usage.prefilled == appended + 3 + 299  # what was appended, and each turn's last sampled token
    assert usage.reused > 100_000
    assert usage.preemptions == 0
