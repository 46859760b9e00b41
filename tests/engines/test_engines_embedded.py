from __future__ import annotations

import hashlib
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats

from journeyman.engines import EngineError, Sampling, TurnRequest, TurnResult
from journeyman.engines.embedded import EmbeddedEngine
from journeyman.errors import InputError

VOCAB, STOP = 96, 2
Reference = Callable[..., Any]


def engine_of(model: Any, **options: Any) -> EmbeddedEngine:
    return EmbeddedEngine(model.config.to_dict(), model.state_dict(), **{"rows": 16, "max_len": 160, **options})


class Talk:
    """Random multi-turn conversations of ragged lengths; keeps every context with the logprobs of what was sampled."""

    def __init__(self, trials: int, turns: int, *, temperature: float = 1.0, seed: int = 0) -> None:
        self.rng_of = {f"t{n}": np.random.default_rng([seed, n]) for n in range(trials)}
        self.left = {trial: int(rng.integers(1, turns + 1)) for trial, rng in self.rng_of.items()}
        self.ids: dict[str, list[int]] = {trial: [] for trial in self.rng_of}
        self.logprobs: dict[str, dict[int, float]] = {trial: {} for trial in self.rng_of}
        self.temperature = temperature

    def request(self, trial: str) -> TurnRequest:
        rng = self.rng_of[trial]
        append = rng.integers(3, VOCAB, rng.integers(1, 20)).tolist()
        self.ids[trial] += append
        sampling = Sampling(int(rng.integers(1, 14)), self.temperature, frozenset({STOP}))
        return TurnRequest(trial, append, int(rng.integers(2**63)), sampling)

    def respond(self, result: TurnResult) -> TurnRequest | None:
        trial, start = result.trial, len(self.ids[result.trial])
        self.ids[trial] += result.ids
        self.logprobs[trial].update({start + n: float(lp) for n, lp in enumerate(result.logprobs)})
        self.left[trial] -= 1
        return self.request(trial) if self.left[trial] else None

    def run(self, engine: EmbeddedEngine) -> Talk:
        engine.converse([self.request(trial) for trial in self.ids], self.respond)
        return self


def largest_gap(talk: Talk, model: Any, reference: Reference) -> float:
    gaps = [0.0]
    for trial, ids in talk.ids.items():
        table = reference(model, ids, talk.temperature)
        gaps += [abs(table[at - 1, ids[at]] - lp) for at, lp in talk.logprobs[trial].items()]
    return max(gaps)


def test_sampled_logprobs_equal_the_official_forward_on_ragged_multi_turn_rows(
    any_model: Any, reference: Reference
) -> None:
    talk = Talk(24, 5).run(engine_of(any_model))
    assert sum(map(len, talk.logprobs.values())) > 300
    assert largest_gap(talk, any_model, reference) < 1e-4


def test_every_logit_of_prefill_and_step_equals_the_official_forward(any_model: Any) -> None:
    from journeyman.engines.embedded.ragged import ragged

    engine = engine_of(any_model)
    rng = np.random.default_rng(0)
    rows = [rng.integers(0, VOCAB, n).tolist() for n in (3, 11, 30, 7)]
    with torch.inference_mode():
        expected = [any_model(torch.tensor([ids])).logits[0] for ids in rows]
        decoder, cpu, slots = engine._decoder, torch.device("cpu"), list(range(4))
        found = [[] for _ in rows]
        first, second = [ids[: len(ids) // 3] for ids in rows], [ids[len(ids) // 3 : -2] for ids in rows]
        decoder.prefill(ragged(first, [0] * 4, slots, cpu))
        hidden = decoder.prefill(ragged(second, [len(f) for f in first], slots, cpu), every_position=True)
        for n, part in enumerate(decoder.logits(hidden).split([len(s) for s in second])):
            found[n].append(part)
        for back in (2, 1):
            at = torch.tensor([len(ids) - back for ids in rows])
            tokens = torch.tensor([ids[-back] for ids in rows])
            logits = decoder.logits(decoder.step(tokens, at, int(at.max()) + 1))
            for n in range(4):
                found[n].append(logits[n : n + 1])
    for n, ids in enumerate(rows):
        gap = (torch.cat(found[n]) - expected[n][len(ids) // 3 :]).abs().max()
        assert gap < 1e-4


def test_logprobs_at_another_temperature_are_those_of_the_tempered_distribution(
    model: Any, reference: Reference
) -> None:
    assert largest_gap(Talk(12, 3, temperature=0.6).run(engine_of(model)), model, reference) < 1e-4


def test_temperature_0_takes_the_most_probable_token_and_reports_the_models_own_logprob(
    model: Any, reference: Reference
) -> None:
    talk = Talk(8, 3, temperature=0.0).run(engine_of(model))
    for trial, ids in talk.ids.items():
        table = reference(model, ids)
        for at, logprob in talk.logprobs[trial].items():
            assert ids[at] == table[at - 1].argmax()
            assert abs(table[at - 1, ids[at]] - logprob) < 1e-4


def test_greedy_and_warm_rows_can_share_a_batch(model: Any, reference: Reference) -> None:
    stop = frozenset({STOP})
    mixed = [TurnRequest(f"t{n}", [5, 6, 7], n, Sampling(1, float(n % 2), stop)) for n in range(16)]
    table = reference(model, [5, 6, 7])[-1]
    results = engine_of(model).generate(mixed)
    assert {r.ids[0] for r in results[::2]} == {table.argmax()}
    assert len({r.ids[0] for r in results[1::2]}) > 1
    assert max(abs(table[r.ids[0]] - r.logprobs[0]) for r in results) < 1e-4


def test_samples_follow_the_softmax_of_the_official_logits(model: Any, reference: Reference) -> None:
    """Chi-square of 12,800 first tokens, fixed keys: p > 1e-3, while a distribution 10 % warmer is told apart."""
    prompt, draws = [5, 9, 41, 17], 12_800
    engine = engine_of(model, rows=256)
    sampling = Sampling(1, 1.0, frozenset({STOP}))
    counts = np.zeros(VOCAB)
    for start in range(0, draws, 256):
        requests = [TurnRequest(str(n), prompt, n, sampling) for n in range(start, start + 256)]
        for result in engine.generate(requests):
            counts[result.ids[0]] += 1
            engine.release(result.trial)

    def p_value(probabilities: Any) -> float:
        expected = probabilities * draws
        rare = expected < 5
        seen = np.append(counts[~rare], counts[rare].sum())
        return float(stats.chisquare(seen, np.append(expected[~rare], expected[rare].sum())).pvalue)

    table = reference(model, prompt)[-1]
    assert p_value(np.exp(table)) > 1e-3
    warmer = np.exp(table / 1.1)
    assert p_value(warmer / warmer.sum()) < 1e-3


def digest_of(talk: Talk) -> str:
    return hashlib.sha256(repr((talk.ids, talk.logprobs)).encode()).hexdigest()


@pytest.mark.thorough
def test_another_process_samples_the_same_bits(model: Any) -> None:
    program = (
        "import sys; sys.path.insert(0, sys.argv[1]); import torch; torch.set_num_threads(1);"
        "import conftest, test_engines_embedded as t;"
        "model = conftest.build('qwen3', tied=True, seed=1); filler = bytearray(12345);"
        "print(t.digest_of(t.Talk(12, 4).run(t.engine_of(model))))"
    )
    command = [sys.executable, "-c", program, str(Path(__file__).parent)]
    other = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120).stdout.strip()
    assert other == digest_of(Talk(12, 4).run(engine_of(model)))


def test_a_full_house_lets_waiting_trials_in_without_changing_what_is_sampled(model: Any) -> None:
    wide, narrow = Talk(24, 4).run(engine_of(model, rows=24)), Talk(24, 4).run(engine_of(model, rows=3))
    assert narrow.ids == wide.ids
    for trial, logprobs in wide.logprobs.items():
        assert narrow.logprobs[trial] == pytest.approx(logprobs, abs=1e-5)


def test_small_prefill_passes_change_nothing_but_rounding(model: Any) -> None:
    whole, parts = Talk(24, 4).run(engine_of(model)), Talk(24, 4).run(engine_of(model, prefill_tokens=1))
    assert parts.ids == whole.ids


def test_identical_prompts_are_shared_and_then_go_their_own_ways(model: Any, reference: Reference) -> None:
    engine = engine_of(model)
    talk = Talk(12, 4, seed=3)
    prompt = [7, 8, 9, 10]
    requests = []
    for trial in talk.ids:
        talk.ids[trial] = list(prompt)
        requests.append(TurnRequest(trial, prompt, int(trial[1:]), Sampling(8, 1.0, frozenset({STOP}))))
    engine.converse(requests, talk.respond)
    assert len({tuple(ids[:8]) for ids in talk.ids.values()}) > 6
    assert largest_gap(talk, model, reference) < 1e-4


def test_parked_trials_survive_the_coming_and_going_of_others(model: Any, reference: Reference) -> None:
    engine, rng = engine_of(model, rows=5), np.random.default_rng(4)
    sampling = Sampling(5, 1.0, frozenset({STOP}))
    contexts: dict[str, list[int]] = {}
    for step in range(60):
        trial = str(rng.integers(0, 6))
        if rng.random() < 0.3 or (trial not in contexts and len(contexts) == 4):
            engine.release(trial)
            contexts.pop(trial, None)
            continue
        if len(contexts.get(trial, [])) > 140:
            continue
        chosen = {trial, *list(contexts)[:1]}
        before = {name: [*contexts.get(name, []), *rng.integers(3, VOCAB, 3).tolist()] for name in chosen}
        if max(map(len, before.values())) > 150:
            continue
        requests = [TurnRequest(name, ids[-3:], step, sampling) for name, ids in before.items()]
        for result in engine.generate(requests):
            contexts[result.trial] = before[result.trial] + result.ids
            table = reference(model, contexts[result.trial])
            first = len(before[result.trial])
            expected = [table[first + n - 1, token] for n, token in enumerate(result.ids)]
            assert result.logprobs == pytest.approx(expected, abs=1e-4)


def test_a_pushed_update_changes_a_fixed_probe_and_the_tied_head_follows(model: Any, reference: Reference) -> None:
    from copy import deepcopy

    engine, probe = engine_of(model), [5, 9, 41, 17, 30]
    (before,) = engine.forward_logprobs([probe])
    trained = deepcopy(model)
    with torch.no_grad():
        trained.model.embed_tokens.weight.mul_(1.05)
    engine.update_weights(trained.state_dict(), 1)
    (after,) = engine.forward_logprobs([probe])
    assert engine.version == 1
    assert np.abs(after - before).max() > 1e-2
    assert largest_gap(Talk(8, 3).run(engine), trained, reference) < 1e-4
    table = reference(trained, probe)
    assert after[1:] == pytest.approx([table[n, token] for n, token in enumerate(probe[1:])], abs=1e-4)


@pytest.mark.parametrize("fault", ["missing", "shape", "nan", "stale head"])
def test_a_push_that_does_not_fit_leaves_the_old_weights_serving(model: Any, fault: str) -> None:
    engine, probe = engine_of(model), [[5, 9, 41]]
    before = engine.forward_logprobs(probe)[0]
    state = {name: tensor * 1.1 for name, tensor in model.state_dict().items()}
    name = "model.layers.2.mlp.down_proj.weight"
    if fault == "missing":
        del state[name]
    elif fault == "shape":
        state[name] = state[name][:-1]
    elif fault == "nan":
        state[name][0, 0] = float("nan")
    else:
        state["lm_head.weight"] = model.state_dict()["lm_head.weight"]
    with pytest.raises(EngineError, match="lm_head" if fault == "stale head" else name):
        engine.update_weights(state, 1)
    assert engine.version == 0
    assert (engine.forward_logprobs(probe)[0] == before).all()


def test_more_trials_than_rows_rest_without_their_rows_and_go_on(model: Any, reference: Reference) -> None:
    engine, sampling = engine_of(model, rows=2), Sampling(4, 1.0, frozenset({STOP}))
    firsts = engine.generate([TurnRequest(str(n), [5, 6 + n], n, sampling) for n in range(5)])
    seconds = engine.generate([TurnRequest(str(n), [9], n, sampling) for n in range(5)])
    assert engine.usage().preemptions > 0
    for n, (first, second) in enumerate(zip(firsts, seconds, strict=True)):
        context = [5, 6 + n, *first.ids, 9]
        table = reference(model, context + second.ids)
        expected = [table[len(context) - 1 + k, token] for k, token in enumerate(second.ids)]
        assert second.logprobs == pytest.approx(expected, abs=1e-4)


def test_weights_that_overflow_are_a_system_error_and_not_a_sample(model: Any) -> None:
    state = {name: tensor * (10 if "norm" not in name else 1) for name, tensor in model.state_dict().items()}
    state["model.norm.weight"] = state["model.norm.weight"] * 2e38
    engine = EmbeddedEngine(model.config.to_dict(), state, rows=2, max_len=32)
    with pytest.raises(EngineError, match="not finite"):
        engine.generate([TurnRequest("a", [5, 6], 0, Sampling(4, 1.0, frozenset({STOP})))])


def test_no_conversation_starts_inside_another_and_nothing_is_answered_after_close(model: Any) -> None:
    engine = engine_of(model, rows=2)
    request = TurnRequest("a", [5, 6], 0, Sampling(4, 1.0, frozenset({STOP})))

    def respond(result: TurnResult) -> TurnRequest | None:
        with pytest.raises(EngineError, match="inside a running call"):
            engine.generate([request])

    engine.converse([request], respond)
    engine.close()
    for attempt in (lambda: engine.generate([request]), lambda: engine.forward_logprobs([[5, 6]]), engine.step):
        with pytest.raises(EngineError, match="after close"):
            attempt()


def test_an_id_outside_the_vocabulary_is_refused(model: Any) -> None:
    for bad in (-1, VOCAB):
        with pytest.raises(EngineError, match="vocabulary"):
            engine_of(model).generate([TurnRequest("a", [bad], 0, Sampling(2, 1.0, frozenset({STOP})))])


def test_a_saved_model_directory_is_served(model: Any, tmp_path: Path) -> None:
    model.save_pretrained(tmp_path)
    served = EmbeddedEngine.from_directory(tmp_path, rows=2, max_len=32)
    assert (served.forward_logprobs([[5, 6]])[0] == engine_of(model).forward_logprobs([[5, 6]])[0]).all()


def test_a_directory_that_holds_no_model_is_an_input_error(model: Any, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"config\.json"):
        EmbeddedEngine.from_directory(tmp_path)
    model.config.save_pretrained(tmp_path)
    with pytest.raises(InputError, match="safetensors"):
        EmbeddedEngine.from_directory(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"no")
    with pytest.raises(InputError, match=r"model\.safetensors"):
        EmbeddedEngine.from_directory(tmp_path)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("model_type", "gpt2"),
        ("rope_parameters", {"rope_type": "yarn", "rope_theta": 1e4}),
        ("hidden_act", "gelu"),
        ("mlp_bias", True),
        ("use_sliding_window", True),
    ],
)
def test_a_model_that_would_be_decoded_wrongly_is_refused(model: Any, field: str, value: object) -> None:
    with pytest.raises(InputError, match="not decoded here"):
        EmbeddedEngine({**model.config.to_dict(), field: value}, model.state_dict())


def test_bfloat16_stays_close_to_the_float32_distribution(model: Any, reference: Reference) -> None:
    engine = engine_of(model, dtype=torch.bfloat16)
    talk = Talk(4, 2).run(engine)
    assert largest_gap(talk, model, reference) < 0.5
    with pytest.raises(AssertionError):
        assert largest_gap(talk, model, reference) < 1e-4


def test_a_large_vocabulary_is_sampled_from_the_forwards_distribution(reference: Reference) -> None:
    """Such a head is multiplied in a form of its own, and its draw sums the vocabulary in parts."""
    from transformers import Qwen3Config, Qwen3ForCausalLM

    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=16384,
        hidden_size=256,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=32,
        intermediate_size=64,
        initializer_range=0.1,
        tie_word_embeddings=True,
    )
    model = Qwen3ForCausalLM(config).eval()
    engine = engine_of(model, max_len=64)
    talked = [TurnRequest(str(n), [5, 9, 41 + n], n, Sampling(20, 0.9, frozenset())) for n in range(8)]
    for asked, result in zip(talked, engine.generate(talked), strict=True):
        table = reference(model, [*asked.append, *result.ids], 0.9)
        expected = [table[2 + n, token] for n, token in enumerate(result.ids)]
        assert result.logprobs == pytest.approx(expected, abs=1e-4)
    assert len({tuple(result.ids) for result in engine.generate([replace(r, append=[7]) for r in talked])}) == 8


def test_summing_a_large_vocabulary_in_parts_draws_the_same_tokens() -> None:
    from journeyman.engines.embedded import sampler

    torch.manual_seed(0)
    logits, uniform = torch.randn(64, 49152) * 3, torch.rand(64, 1, dtype=torch.float64)
    uniform[:2, 0] = torch.tensor([0.0, 1.0 - 2.0**-53], dtype=torch.float64)
    cumulative = torch.exp(logits - logits.amax(-1, keepdim=True)).cumsum(-1, dtype=torch.float64)
    expected = torch.searchsorted(cumulative, uniform * cumulative[:, -1:], right=True).clamp_(max=49151)[:, 0]
    drawn = sampler.draw(logits.clone(), None, uniform)
    assert (drawn.tokens == expected).sum() >= 62  # a number on the border of two tokens may fall on either side
    assert ((drawn.tokens - expected).abs() <= 1).all()
    exact = torch.log_softmax(logits.double(), -1).gather(1, drawn.tokens[:, None])[:, 0]
    assert (drawn.logprobs - exact).abs().max() < 2e-6
