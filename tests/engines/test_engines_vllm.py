"""vLLM's adapter when servers break, lie or die: nothing hangs or is lost, no weights serve under a wrong name."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from engines_fake_vllm import FakeVllm, routing, serving

from journeyman.engines import EngineError, Sampling, TurnRequest, TurnResult
from journeyman.engines.experts import unpacked
from journeyman.engines.vllm import Prove, VllmEngine
from journeyman.engines.vllm.replica import read_metrics
from journeyman.engines.vllm.wire import seed_of, version_of
from journeyman.errors import EnvironmentMissing, InputError

pytestmark = pytest.mark.thorough

STOP = 2


def turn(trial: str, append: list[int] | None = None, *, key: int = 1, limit: int = 12) -> TurnRequest:
    return TurnRequest(trial, append or [4, 5, 6], key, Sampling(limit, 1.0, frozenset()))


@contextmanager
def fleet(*fakes: FakeVllm, **options: Any) -> Iterator[VllmEngine]:
    with ExitStack() as stack:
        for fake in fakes:
            stack.enter_context(serving(fake))
        yield stack.enter_context(closing(VllmEngine([fake.url for fake in fakes], **options)))


def land(engine: VllmEngine, count: int) -> dict[str, TurnResult]:
    found: dict[str, TurnResult] = {}
    until = time.monotonic() + 30
    while len(found) < count and time.monotonic() < until:
        found |= {result.trial: result for result in engine.step(2.0)}
    assert len(found) == count
    return found


@pytest.fixture(scope="module")
def moved(model: Any) -> Any:
    """The model after training moved it."""
    other = deepcopy(model)
    torch.manual_seed(3)
    with torch.no_grad():
        for name, parameter in other.named_parameters():
            if "norm" not in name:
                parameter.add_(torch.randn_like(parameter) * 0.05)
    return other.eval()


@pytest.fixture
def prove(reference: Callable[..., Any], model: Any) -> Prove:
    """The trainer's side of a proof: the transformers forward under the weights pushed."""

    def logprobs(source: Any, prompt: Any, ids: Any) -> Any:
        trained = deepcopy(model)
        trained.load_state_dict(source)
        table = reference(trained, [*prompt, *ids])
        return table[np.arange(len(prompt) - 1, len(prompt) + len(ids) - 1), list(ids)]

    return logprobs


def gaps(reference: Callable[..., Any], model: Any, prompt: list[int], result: TurnResult, part: slice) -> Any:
    table = reference(model, prompt + result.ids)
    rows = np.arange(len(prompt) - 1, len(prompt) + len(result.ids) - 1)
    return np.abs(table[rows, result.ids] - result.logprobs)[part]


def test_logprobs_are_those_of_the_forward(model: Any, reference: Callable[..., Any]) -> None:
    with fleet(FakeVllm(model)) as engine:
        results = engine.generate([turn(f"t{n}", [4, 5, 6 + n], key=n) for n in range(8)])
        for n, result in enumerate(results):
            assert gaps(reference, model, [4, 5, 6 + n], result, slice(None)).max() < 1e-4


def test_an_update_under_way_loses_no_turn_and_its_boundary_is_exact(
    model: Any, moved: Any, reference: Callable[..., Any], prove: Prove
) -> None:
    with fleet(FakeVllm(model, token_s=0.02), prove=prove) as engine:
        for n in range(4):
            engine.submit(turn(f"t{n}", [4, 5, 6 + n], key=n, limit=40))
        time.sleep(0.3)
        engine.update_weights(moved.state_dict(), 1, kv="recompute")
        results = land(engine, 4)
        for n in range(4):
            result = results[f"t{n}"]
            assert [span.version for span in result.spans] == [0, 1]
            cut = result.spans[0].end
            assert gaps(reference, model, [4, 5, 6 + n], result, slice(0, cut)).max() < 1e-4
            assert gaps(reference, moved, [4, 5, 6 + n], result, slice(cut, None)).max() < 1e-4
            assert gaps(reference, model, [4, 5, 6 + n], result, slice(cut, None)).mean() > 1e-2
        (push,) = engine.pushes
        assert (push.proof.by, push.kv) == ("trainer", "recompute")
        assert push.proof.gap_mean < 1e-4


def test_without_spans_an_update_waits_so_that_no_turn_has_two_versions(model: Any, moved: Any) -> None:
    with fleet(FakeVllm(model, token_s=0.01, missing={"/inference/v1/generate"})) as engine:
        assert engine.capabilities.isdisjoint({"spans", "inflight_update"})
        engine.submit(turn("before"))
        engine.update_weights(moved.state_dict(), 1)
        engine.submit(turn("after"))
        results = land(engine, 2)
        assert [results[name].version for name in ("before", "after")] == [0, 1]


def test_every_push_carries_the_tied_head(model: Any, moved: Any, tmp_path: Path) -> None:
    from safetensors import safe_open

    with fleet(FakeVllm(model), push_dir=tmp_path) as engine:
        state = {name: tensor for name, tensor in moved.state_dict().items() if name != "lm_head.weight"}
        engine.update_weights(state, 1)
        with safe_open(tmp_path / "v1.safetensors", "pt") as file:
            assert torch.equal(file.get_tensor("lm_head.weight"), state["model.embed_tokens.weight"])


def test_a_server_that_keeps_its_old_head_is_found_by_logprobs_and_gets_no_more_turns(
    model: Any, moved: Any, prove: Prove
) -> None:
    fake = FakeVllm(model)
    with fleet(fake, prove=prove) as engine:
        fake.stale_head = True
        with pytest.raises(EngineError, match="does not serve version 1: its logprobs"):
            engine.update_weights(moved.state_dict(), 1)
        with pytest.raises(EngineError, match="no vLLM server is left"):
            engine.generate([turn("t")])


def test_a_push_that_changes_nothing_is_said_to_be_unproved(model: Any, caplog: pytest.LogCaptureFixture) -> None:
    with fleet(FakeVllm(model)) as engine, caplog.at_level(logging.WARNING):
        engine.update_weights(model.state_dict(), 1)
        assert engine.pushes[-1].proof.by == "none"
    assert "what it sampled before" in caplog.text


@pytest.mark.parametrize("route", ["/start_weight_update", "/update_weights", "/finish_weight_update"])
def test_a_push_that_fails_on_one_of_two_servers_leaves_the_old_weights_on_both(
    model: Any, moved: Any, route: str, reference: Callable[..., Any]
) -> None:
    first, second = FakeVllm(model), FakeVllm(model)
    with fleet(first, second) as engine:
        engine.update_weights(model.state_dict(), 1)
        second.faults[route] = "500"
        original = second.seen[:]
        with pytest.raises(EngineError, match="the push of version 2 failed"):
            second_recovers(second, route, len(original), engine, moved)
        assert engine.version == 1
        results = engine.generate([turn(f"t{n}", [4, 5, 6], key=n) for n in range(4)])
        assert {result.version for result in results} == {1}
        assert max(gaps(reference, model, [4, 5, 6], result, slice(None)).max() for result in results) < 1e-4


def second_recovers(fake: FakeVllm, route: str, seen: int, engine: VllmEngine, moved: Any) -> None:
    """Push while ``route`` fails exactly once."""
    import threading

    def heal() -> None:
        while not any(path == route for path, _, _ in fake.seen[seen:]):
            time.sleep(0.001)
        time.sleep(0.02)
        fake.faults.pop(route)

    thread = threading.Thread(target=heal)
    thread.start()
    try:
        engine.update_weights(moved.state_dict(), 2)
    finally:
        thread.join(10)


def test_a_server_that_cannot_be_brought_back_serves_no_turn_under_either_name(model: Any, moved: Any) -> None:
    fake = FakeVllm(model)
    with fleet(fake) as engine:
        fake.faults["/finish_weight_update"] = "500"
        with pytest.raises(EngineError, match="failed"):
            engine.update_weights(moved.state_dict(), 1)
        with pytest.raises(EngineError, match="no vLLM server is left"):
            engine.generate([turn("t")])


def test_a_file_cut_short_is_refused_by_its_digest_and_the_old_weights_serve(
    model: Any, moved: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from journeyman.engines.vllm import export

    honest = export.sha256_file
    monkeypatch.setattr(export, "sha256_file", lambda path: (honest(path), os.truncate(path, 500))[0])
    with fleet(FakeVllm(model)) as engine:
        with pytest.raises(EngineError, match="another digest"):
            engine.update_weights(moved.state_dict(), 1)
        assert engine.generate([turn("t")])[0].version == 0


@pytest.mark.parametrize("fault", ["missing", "shape", "no head"])
def test_incomplete_weights_are_refused_before_a_byte_is_sent(model: Any, fault: str) -> None:
    fake = FakeVllm(model)
    with fleet(fake) as engine:
        engine.update_weights(model.state_dict(), 1)
        state, sent = dict(model.state_dict()), len(fake.seen)
        name = "model.norm.weight"
        if fault == "missing":
            del state[name]
        elif fault == "shape":
            state[name] = torch.zeros(7)
        else:
            del state["lm_head.weight"], state["model.embed_tokens.weight"]
        with pytest.raises(EngineError, match="lm_head" if fault == "no head" else name):
            engine.update_weights(state, 2)
        assert len(fake.seen) == sent
        with pytest.raises(EngineError, match="lower than 1"):
            engine.update_weights(model.state_dict(), 0)


def test_a_hanging_pause_ends_by_its_deadline(model: Any) -> None:
    fake = FakeVllm(model)
    with fleet(fake) as engine:
        fake.faults["/pause"] = "hang"
        started = time.monotonic()
        with pytest.raises(EngineError, match=r"/pause did not answer within 0\."):
            engine.pause("keep", deadline_s=0.3)
        assert time.monotonic() - started < 2
        assert not engine.paused


def test_a_hanging_turn_ends_by_its_deadline(model: Any) -> None:
    fake = FakeVllm(model)
    with fleet(fake, turn_s=0.2) as engine:
        fake.faults["/inference/v1/generate"] = "hang"
        with pytest.raises(EngineError, match=r"did not answer within 0\.2"):
            engine.generate([turn("t")])


def test_a_step_without_an_ended_turn_comes_back_by_its_deadline(model: Any) -> None:
    with fleet(FakeVllm(model, token_s=0.2)) as engine:
        engine.submit(turn("t", limit=50))
        started = time.monotonic()
        assert engine.step(0.2) == []
        assert 0.15 < time.monotonic() - started < 1


def test_an_answer_without_logprobs_is_refused(model: Any) -> None:
    fake = FakeVllm(model)
    with fleet(fake) as engine:
        fake.faults["/inference/v1/generate"] = "broken"
        with pytest.raises(EngineError, match="2 ids with 0 logprobs"):
            engine.generate([turn("t")])


def test_trials_stay_on_their_server_and_move_when_it_dies(model: Any) -> None:
    first, second = FakeVllm(model), FakeVllm(model)
    with fleet(first, second) as engine, closing(VllmEngine([second.url])) as alone:
        trials = [f"t{n}" for n in range(6)]
        engine.generate([turn(trial, key=n) for n, trial in enumerate(trials)])
        counts = [sum(path == "/inference/v1/generate" for path, _, _ in fake.seen) for fake in (first, second)]
        assert [count - probes for count, probes in zip(counts, (1, 2), strict=True)] == [3, 3]
        before = first.count["hits"] + second.count["hits"]
        results = engine.generate([turn(trial, [7], key=n) for n, trial in enumerate(trials)])
        assert first.count["hits"] + second.count["hits"] - before >= 6 * 10  # prefixes were found where they lay
        first.faults = dict.fromkeys(("/inference/v1/generate", "/health"), "500")
        moved_on = engine.generate([turn(trial, [8], key=n) for n, trial in enumerate(trials)])
        alone.generate([turn(trial, key=n) for n, trial in enumerate(trials)])
        again = alone.generate([turn(trial, [7], key=n) for n, trial in enumerate(trials)])
        last = alone.generate([turn(trial, [8], key=n) for n, trial in enumerate(trials)])
        assert [r.ids for r in again] == [r.ids for r in results]
        assert [r.ids for r in last] == [r.ids for r in moved_on]


def test_fresh_never_reuses_a_prefix_of_older_weights_and_its_cost_is_counted(
    model: Any, moved: Any, reference: Callable[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    found = {}
    for prefix in ("fresh", "keep"):
        with caplog.at_level(logging.INFO), fleet(FakeVllm(model), prefix=prefix) as engine:
            (first,) = engine.generate([turn("t", list(range(3, 33)))])
            engine.update_weights(moved.state_dict(), 1)
            context = [*range(3, 33), *first.ids, 7]
            (second,) = engine.generate([turn("t", [7], key=2)])
            found[prefix] = gaps(reference, moved, context, second, slice(None)).mean()
            push = engine.pushes[-1]
            assert push.reprefilled_tokens == (42 if prefix == "fresh" else 0)
    assert found["fresh"] < 1e-4
    assert found["keep"] > 1e-2  # the same test without the salt: trap T2 is real
    assert "42 tokens prefilled again" in caplog.text


def test_missing_routes_are_named_with_what_to_do(model: Any) -> None:
    with fleet(FakeVllm(model, missing={"/pause", "/update_weights"})) as engine:
        assert engine.generate([turn("t")])
        assert "inflight_update" not in engine.capabilities
        with pytest.raises(EngineError, match=r"lacks /pause, /update_weights; start .* VLLM_SERVER_DEV_MODE"):
            engine.update_weights(model.state_dict(), 1)
    nothing = FakeVllm(model, missing={"/inference/v1/generate", "/v1/completions"})
    with serving(nothing), pytest.raises(EnvironmentMissing, match=r"neither .* --enable-scale-out"):
        VllmEngine([nothing.url])


def test_a_server_that_is_not_there_is_said_to_be_not_there() -> None:
    with pytest.raises(EnvironmentMissing, match="is it up"):
        VllmEngine(["http://127.0.0.1:9"], connect_s=5)


def test_a_server_found_paused_gets_no_turn_before_the_next_push(model: Any, moved: Any) -> None:
    fake = FakeVllm(model)
    fake.pause_mode = "keep"
    with fleet(fake) as engine:
        with pytest.raises(EngineError, match="no vLLM server is left"):
            engine.generate([turn("t")])
        engine.update_weights(moved.state_dict(), 5)
        assert engine.generate([turn("t")])[0].version == 5


def test_a_server_that_was_started_anew_gets_no_turn_before_the_next_push(model: Any, moved: Any) -> None:
    fake = FakeVllm(model)
    with fleet(fake) as engine:
        engine.update_weights(moved.state_dict(), 1)
        fake.label = "default"  # as after a start from its checkpoint
        with pytest.raises(EngineError, match="labelled 'default', which nobody here pushed"):
            engine.generate([turn("t")])
        with pytest.raises(EngineError, match="no vLLM server is left"):
            engine.generate([turn("t")])
        engine.update_weights(moved.state_dict(), 2)
        assert engine.generate([turn("t")])[0].version == 2


def test_a_server_that_died_comes_back_with_the_next_push(model: Any, moved: Any) -> None:
    first, second = FakeVllm(model), FakeVllm(model)
    with fleet(first, second) as engine:
        first.faults = dict.fromkeys(("/inference/v1/generate", "/health"), "500")
        engine.generate([turn(f"t{n}") for n in range(4)])
        first.faults = {}
        engine.update_weights(moved.state_dict(), 1)
        sent = len(first.seen)
        results = engine.generate([turn(f"u{n}") for n in range(8)])
        assert {result.version for result in results} == {1}
        assert any(path == "/inference/v1/generate" for path, _, _ in first.seen[sent:])


def test_every_pause_names_its_mode_and_its_cache(model: Any, moved: Any) -> None:
    fake = FakeVllm(model)
    with fleet(fake) as engine:
        engine.update_weights(moved.state_dict(), 1)
        engine.update_weights(model.state_dict(), 2, kv="recompute")
    pauses = [params for path, params, _ in fake.seen if path == "/pause"]
    assert pauses == [{"mode": "keep", "clear_cache": "false"}, {"mode": "keep", "clear_cache": "true"}]


def test_abort_and_go_on_equals_keep_when_greedy(model: Any) -> None:
    with fleet(FakeVllm(model, token_s=0.01)) as engine:
        greedy = Sampling(30, 0.0, frozenset())
        (whole,) = engine.generate([TurnRequest("whole", [4, 5, 6], 1, greedy)])
        engine.submit(TurnRequest("cut", [4, 5, 6], 1, greedy))
        time.sleep(0.1)
        (part,) = engine.pause("abort")
        engine.resume()
        rest = Sampling(30 - len(part.ids), 0.0, frozenset())
        (more,) = engine.generate([TurnRequest("cut", [], 1, rest, offset=len(part.ids))])
        assert 0 < len(part.ids) < 30
        assert part.ids + more.ids == whole.ids


def test_a_released_turn_ends_on_the_server(model: Any) -> None:
    fake = FakeVllm(model, token_s=0.02)
    with fleet(fake) as engine:
        engine.submit(turn("t", limit=50))
        time.sleep(0.2)
        assert len(fake.rows) == 1
        engine.release("t")
        until = time.monotonic() + 5
        while fake.rows and time.monotonic() < until:
            time.sleep(0.02)
        assert not fake.rows
        assert engine.step(0.1) == []


def test_top_logprobs_are_ranked_and_hold_the_sampled_token_only_when_it_is_among_them(model: Any) -> None:
    with fleet(FakeVllm(model)) as engine:
        (result,) = engine.generate([TurnRequest("t", [4, 5, 6], 1, Sampling(12, 1.0, frozenset(), top_logprobs=3))])
        assert result.top_logprobs is not None
        assert result.top_logprobs.ids.shape == (12, 3)
        assert (np.diff(result.top_logprobs.logprobs, axis=1) <= 0).all()
        for at, token in enumerate(result.ids):
            if token in result.top_logprobs.ids[at]:
                column = list(result.top_logprobs.ids[at]).index(token)
                assert result.top_logprobs.logprobs[at, column] == pytest.approx(result.logprobs[at])


def test_labels_that_are_not_ours_have_no_number_and_seeds_differ_by_offset() -> None:
    assert [version_of(label) for label in ("v12", "default", "v", None, "v1b")] == [12, None, None, None, None]
    assert seed_of(2**64 - 1, 0) == 2**63 - 1
    assert len({seed_of(7, offset) for offset in range(100)}) == 100


def test_counters_are_read_from_the_text_format() -> None:
    text = 'vllm:a_total{engine="0"} 2.0\nvllm:a_total{engine="1"} 3.0\n# HELP vllm:b\n'
    text += 'vllm:cache_config_info{block_size="128",num_gpu_blocks="8192",x="None"} 1.0\n'
    assert read_metrics(text)["vllm:a_total"] == 5
    assert read_metrics(text)["kv_capacity"] == 1_048_576


@pytest.mark.parametrize("missing", [set(), {"/inference/v1/generate"}])
def test_the_experts_of_a_mixture_are_told_once_per_token_of_the_context(model: Any, missing: set[str]) -> None:
    fake = FakeVllm(model, token_s=0.002, missing=missing)
    fake.tells_experts = True
    sampling = Sampling(8, 1.0, frozenset(), routed_experts=True)
    with fleet(fake) as engine:
        assert "routed_experts" in engine.capabilities
        context: list[int] = []
        rows = []
        for appended in ([4, 5, 6], [7], [8, 9]):
            (result,) = engine.generate([TurnRequest("t", appended, len(context), sampling)])
            context += [*appended, *result.ids]
            assert result.routed_experts is not None
            rows.append(unpacked(result.routed_experts))
        whole = np.concatenate(rows)
        assert whole.dtype == np.uint16
        assert np.array_equal(whole, routing(context[:-1]))
        (plain,) = engine.generate([turn("other")])
        assert plain.routed_experts is None
        _, _, body = fake.seen[-1]
        sent = body.get("sampling_params", body)
        assert sent["routed_experts_prompt_start"] == 3  # nothing of the prompt travels for a turn that did not ask


def test_experts_of_a_turn_that_was_cut_go_on_where_it_ended(model: Any) -> None:
    fake = FakeVllm(model, token_s=0.02)
    fake.tells_experts = True
    sampling = Sampling(40, 1.0, frozenset(), routed_experts=True)
    with fleet(fake) as engine:
        engine.submit(TurnRequest("t", [4, 5, 6], 1, sampling))
        time.sleep(0.3)
        part = engine.cancel("t")
        assert part is not None and part.routed_experts is not None and 0 < len(part.ids) < 40
        (rest,) = engine.generate([TurnRequest("t", [], 1, Sampling(4, 1.0, frozenset(), routed_experts=True), 9)])
        assert rest.routed_experts is not None
        whole = np.concatenate([unpacked(part.routed_experts), unpacked(rest.routed_experts)])
        assert np.array_equal(whole, routing([4, 5, 6, *part.ids, *rest.ids][:-1]))


def test_experts_that_no_server_reports_are_refused_with_what_to_do(model: Any) -> None:
    with fleet(FakeVllm(model)) as engine:
        asked = TurnRequest("t", [4, 5, 6], 1, Sampling(4, 1.0, frozenset(), routed_experts=True))
        with pytest.raises(InputError, match="--enable-return-routed-experts"):
            engine.submit(asked)
