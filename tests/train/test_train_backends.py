"""Back-ends by name, the stock forward, adapters, mixtures with replayed routing, Hugging Face directories."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from backend_cases import Keeper

from journeyman.engines.embedded.engine import EmbeddedEngine
from journeyman.errors import InputError
from journeyman.train.agreement.routing import routing_gap
from journeyman.train.backends.batch import spread
from journeyman.train.backends.hub import INDEX_FILE, read_policy, write_policy
from journeyman.train.backends.lora import ADAPTER_CONFIG
from journeyman.train.backends.spec import BackendSpec, LayoutSpec, LoraSpec
from journeyman.train.backends.stock import StockPolicy, padded, target_logprobs
from journeyman.train.backends.table import BACKENDS, CAPABILITIES, check_spec, make_trainer
from journeyman.train.backends.torch import TorchTrainer
from journeyman.train.model import rate_scale, save_model
from journeyman.train.optimizer import OptimizerSpec
from journeyman.train.update import UpdateSpec, row_weights, update_policy

RATE = OptimizerSpec(lr=1e-3)
PAGE = Path(__file__).parents[2] / "docs" / "backends.md"
TARGETS = ("q_proj", "down_proj")


@pytest.fixture
def directory(small_model, tmp_path):
    save_model(small_model, tmp_path / "model")
    return tmp_path / "model"


@pytest.fixture
def mixture_directory(tmp_path):
    config = transformers.Qwen3MoeConfig(
        vocab_size=61, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, head_dim=16,
        intermediate_size=48, moe_intermediate_size=24, num_experts=8, num_experts_per_tok=2, norm_topk_prob=True,
        max_position_embeddings=128,
    )  # fmt: skip
    torch.manual_seed(3)
    model = transformers.Qwen3MoeForCausalLM(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    model.save_pretrained(tmp_path / "mixture")
    return tmp_path / "mixture"


def gradient(trainer, rows):
    spec = UpdateSpec()
    metrics = trainer.forward_backward(rows, row_weights(rows, spec), spec.loss)
    grads = {n: p.grad.clone() for n, p in trainer.model.named_parameters() if p.grad is not None}
    trainer.model.zero_grad()
    return metrics, grads


def test_every_capability_a_back_end_claims_is_a_known_word_and_every_opener_exists():
    for name, backend in BACKENDS.items():
        assert backend.supports <= CAPABILITIES.keys(), name
        module, _, function = backend.opener.partition(":")
        assert callable(getattr(import_module(module), function)), name
        assert f"| `{name}` | {backend.about} |" in PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("spec", "optimizer", "word"),
    [
        (BackendSpec(name="torhc"), RATE, "torch"),
        (BackendSpec(layout=LayoutSpec(ranks=2)), RATE, "ranks"),
        (BackendSpec(name="fsdp2", layout=LayoutSpec(ranks=2, tp=2)), RATE, "model_parallel"),
        (BackendSpec(name="tinker"), RATE, "full_param"),
        (BackendSpec(name="megatron", lora=LoraSpec()), RATE, "lora"),
        (BackendSpec(name="megatron", layout=LayoutSpec(ranks=6, tp=4)), RATE, "multiple of 4"),
        (BackendSpec(name="megatron", layout=LayoutSpec(ranks=4, ep=3)), RATE, "divisor of 4"),
        (BackendSpec(lora=LoraSpec()), OptimizerSpec(lr=1e-3, muon_lr=1e-2), "muon_lr"),
    ],
)
def test_a_recipe_that_its_back_end_cannot_carry_out_is_refused_by_name_before_anything_starts(spec, optimizer, word):
    with pytest.raises(InputError) as refused:
        check_spec(spec, optimizer)
    assert word in str(refused.value)


def test_the_stock_forward_gives_the_logprobs_and_gradients_of_the_faster_one(directory, make_rows):
    rows = make_rows(6)
    fast = make_trainer(BackendSpec(), directory, RATE)
    stock = make_trainer(BackendSpec(stock_forward=True, tokens_per_micro_batch=60), directory, RATE)
    for a, b in zip(fast.forward_logprobs(rows), stock.forward_logprobs(rows), strict=True):
        assert np.abs(a - b).max() < 1e-5
    (expected, wanted), (found, got) = gradient(fast, rows), gradient(stock, rows)
    assert found.loss == pytest.approx(expected.loss, abs=1e-5)
    for name, tensor in wanted.items():
        assert torch.allclose(got[name], tensor, atol=3e-6, rtol=1e-3), name


def test_chunks_of_the_head_and_recomputed_layers_change_no_gradient(directory, make_rows):
    rows = make_rows(7)
    _, wanted = gradient(make_trainer(BackendSpec(stock_forward=True), directory, RATE), rows)
    _, got = gradient(make_trainer(BackendSpec(stock_forward=True, checkpoint_layers=True), directory, RATE), rows)
    for name, tensor in wanted.items():
        assert torch.allclose(got[name], tensor, atol=1e-6, rtol=1e-4), name
    head, states = torch.nn.Linear(8, 30, bias=False), torch.randn(25, 8, requires_grad=True)
    targets = torch.arange(25)
    results = []
    for chunk in (25, 7):
        logprobs = target_logprobs(head, states, targets, chunk)
        results.append((logprobs.detach(), *torch.autograd.grad(logprobs.square().sum(), [states, head.weight])))
    for a, b in zip(*results, strict=True):
        assert torch.allclose(a, b, atol=1e-5)


def test_an_adapter_is_trained_alone_and_an_engine_gets_the_sum(directory, make_rows, small_model):
    rows = make_rows(8)
    trainer = make_trainer(BackendSpec(lora=LoraSpec(rank=4, targets=TARGETS)), directory, RATE)
    plain = make_trainer(BackendSpec(), directory, RATE).forward_logprobs(rows)
    assert all(np.abs(a - b).max() < 1e-5 for a, b in zip(trainer.forward_logprobs(rows), plain, strict=True))
    for _ in range(3):
        update_policy(trainer, rows)
    trained = trainer.forward_logprobs(rows)
    assert max(np.abs(a - b).max() for a, b in zip(trained, plain, strict=True)) > 1e-2
    keeper = Keeper()
    trainer.push_weights(keeper, 5)
    before = dict(small_model.state_dict())
    changed = {name for name, tensor in keeper.state.items() if not torch.equal(tensor, before[name])}
    assert changed == {n for n in keeper.state if n.endswith(tuple(f"{target}.weight" for target in TARGETS))}
    engine = EmbeddedEngine.from_directory(directory, max_len=128)
    trainer.push_weights(engine, 5)
    for row, values in zip(rows, trained, strict=True):
        seen = engine.forward_logprobs([row.ids.tolist()])[0] * row.mask
        assert np.abs(seen - values).max() < 1e-4


@pytest.mark.filterwarnings("ignore:.is_gradient_checkpointing.:FutureWarning")  # peft asks transformers by an old name
def test_an_adapter_checkpoint_loads_in_peft_and_in_an_engine_and_goes_on_to_the_bit(directory, make_rows, tmp_path):
    from peft import PeftModel

    spec = BackendSpec(lora=LoraSpec(rank=4, targets=TARGETS))
    trainer, rows = make_trainer(spec, directory, RATE), make_rows(9)
    update_policy(trainer, rows)
    saved = trainer.save_state(tmp_path / "states", {"note": 1})
    assert (saved / ADAPTER_CONFIG).is_file()
    assert not (saved / "model.safetensors").exists()
    update_policy(trainer, rows)
    other = make_trainer(spec, directory, RATE)
    assert other.load_state(saved) == {"note": 1}
    assert other.steps == 1
    trained = other.forward_logprobs(rows)
    update_policy(other, rows)
    wanted, got = (dict(t.model.named_parameters()) for t in (trainer, other))
    assert all(torch.equal(wanted[name], got[name]) for name in wanted)

    row = rows[0]
    peft = PeftModel.from_pretrained(read_policy(directory), str(saved))
    ids = torch.from_numpy(row.ids.astype(np.int64))
    with torch.no_grad():
        seen = peft(input_ids=ids[None]).logits[0, :-1].log_softmax(-1).gather(1, ids[1:, None])[:, 0].numpy()
    assert np.abs(seen * row.mask[1:] - trained[0][1:]).max() < 1e-5
    engine = EmbeddedEngine.from_directory(directory, max_len=128)
    engine.load_adapter(saved, 1)
    assert np.abs(engine.forward_logprobs([row.ids.tolist()])[0] * row.mask - trained[0]).max() < 1e-4


def test_an_adapter_for_matrices_the_model_lacks_is_refused(directory):
    with pytest.raises(InputError, match="w_pack"):
        make_trainer(BackendSpec(lora=LoraSpec(targets=("w_pack",))), directory, RATE)


@pytest.mark.parametrize("family", ["Qwen2", "Mistral", "Gemma2"])
def test_any_family_of_transformers_trains_saves_and_goes_on(family, tmp_path, make_rows):
    config = getattr(transformers, f"{family}Config")(
        vocab_size=61, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, head_dim=8,
        intermediate_size=48, max_position_embeddings=128, pad_token_id=0, bos_token_id=1, eos_token_id=2,
    )  # fmt: skip
    torch.manual_seed(4)
    getattr(transformers, f"{family}ForCausalLM")(config).save_pretrained(tmp_path / "model")
    (tmp_path / "model" / "tokenizer.json").write_text("{}")
    trainer, rows = make_trainer(BackendSpec(), tmp_path / "model", RATE), make_rows(10)
    metrics = update_policy(trainer, rows)
    assert metrics.grad_norm > 0
    saved = trainer.save_state(tmp_path / "states")
    assert (saved / "tokenizer.json").read_text() == "{}"
    update_policy(trainer, rows)
    other = make_trainer(BackendSpec(), tmp_path / "model", RATE)
    other.load_state(saved)
    reloaded = transformers.AutoModelForCausalLM.from_pretrained(saved)
    assert all(torch.equal(a, b) for a, b in zip(reloaded.parameters(), other.model.parameters(), strict=True))
    update_policy(other, rows)
    assert all(torch.equal(a, b) for a, b in zip(trainer.model.parameters(), other.model.parameters(), strict=True))


def test_a_changed_file_of_a_checkpoint_is_found_before_it_is_used(directory, make_rows, tmp_path):
    trainer = make_trainer(BackendSpec(stock_forward=True), directory, RATE)
    saved = trainer.save_state(tmp_path / "states")
    file = saved / "model.safetensors"
    data = bytearray(file.read_bytes())
    data[-3] ^= 1
    file.write_bytes(data)
    with pytest.raises(InputError, match=r"model\.safetensors"):
        trainer.load_state(saved)


def test_weights_in_several_files_come_in_and_go_out(directory, tmp_path):
    model = read_policy(directory)
    path = write_policy(model, model.state_dict(), tmp_path / "out", companions_of=directory, shard_bytes=8_000)
    assert (path / INDEX_FILE).is_file()
    assert len(list(path.glob("*.safetensors"))) > 3
    again = read_policy(path)
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), again.parameters(), strict=True))
    engine = EmbeddedEngine.from_directory(path, max_len=64)
    assert np.isfinite(engine.forward_logprobs([[1, 2, 3]])[0]).all()


def test_a_directory_without_a_tensor_is_refused(directory, tmp_path):
    from safetensors.torch import load_file, save_file

    state = load_file(directory / "model.safetensors")
    del state["model.layers.1.mlp.up_proj.weight"]
    save_file(state, directory / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(InputError, match=r"up_proj"):
        read_policy(directory)
    with pytest.raises(InputError, match=r"config\.json"):
        read_policy(tmp_path)


def test_only_a_model_made_here_has_the_rates_of_its_initialisation(small_shape, small_model):
    assert rate_scale(small_model) == pytest.approx(32**0.5)
    fields = {**small_shape.config_fields(), "tie_word_embeddings": True}
    assert rate_scale(transformers.Qwen3ForCausalLM(transformers.Qwen3Config(**fields))) == 1.0


def routed(model, rows):
    """The rows with the experts that the model itself chooses for each token."""
    chosen = []
    hooks = [
        layer.mlp.gate.register_forward_hook(lambda _, __, out: chosen.append(out[2].numpy().copy()))
        for layer in model.model.layers
    ]
    results = []
    for row in rows:
        chosen.clear()
        with torch.no_grad():
            model(input_ids=torch.from_numpy(row.ids.astype(np.int64))[None])
        results.append(replace(row, routed_experts=np.stack(chosen, 1).astype(np.uint8)))
    for hook in hooks:
        hook.remove()
    return results


def test_replayed_routing_takes_the_gap_away_that_other_experts_make(mixture_directory, make_rows):
    sampled_by = transformers.AutoModelForCausalLM.from_pretrained(mixture_directory, dtype=torch.float32).eval()
    with torch.no_grad():  # an engine whose gates round otherwise: near ties fall to other experts
        for layer in sampled_by.model.layers:
            layer.mlp.gate.weight.add_(0.01 * torch.randn_like(layer.mlp.gate.weight))
    rows = routed(sampled_by, make_rows(11))
    engine, batch = StockPolicy(sampled_by), padded(rows)
    with torch.no_grad():
        mu = spread(rows, engine(batch.ids, batch.at, batch.targets).numpy())
    rows = [replace(row, logprobs=values) for row, values in zip(rows, mu, strict=True)]
    found = routing_gap(BackendSpec(), mixture_directory, rows)
    assert found.replayed.n == sum(int(row.mask.sum()) for row in rows)
    assert found.replayed.mean < found.recomputed.mean / 2
    assert found.replayed.max < found.recomputed.max / 2
    assert "replayed" in str(found)


def test_own_choices_replayed_change_neither_logprobs_nor_gradient(mixture_directory, make_rows):
    rows = routed(read_policy(mixture_directory), make_rows(12))
    free = make_trainer(BackendSpec(), mixture_directory, RATE)
    bound = make_trainer(BackendSpec(replay_routing=True, checkpoint_layers=True), mixture_directory, RATE)
    (expected, wanted), (found, got) = gradient(free, rows), gradient(bound, rows)
    assert found.loss == pytest.approx(expected.loss, abs=1e-6)
    for name, tensor in wanted.items():
        assert torch.allclose(got[name], tensor, atol=1e-6, rtol=1e-3), name


def test_replay_without_recorded_experts_or_without_a_mixture_is_refused(mixture_directory, directory, make_rows):
    trainer = make_trainer(BackendSpec(replay_routing=True), mixture_directory, RATE)
    rows = make_rows(13)
    with pytest.raises(InputError, match="routed_experts"):
        update_policy(trainer, rows)
    some = [replace(rows[0], routed_experts=np.zeros((len(rows[0].ids), 2, 2), np.uint8)), *rows[1:]]
    with pytest.raises(InputError, match="routed_experts"):
        trainer.forward_logprobs(some)
    assert len(trainer.forward_logprobs(rows)) == len(rows), "none has any: as computed"
    with pytest.raises(InputError, match="replay_routing"):
        make_trainer(BackendSpec(replay_routing=True), directory, RATE)


def test_a_mixture_goes_to_engines_under_the_names_of_its_checkpoint(mixture_directory):
    from safetensors.torch import load_file

    trainer = make_trainer(BackendSpec(), mixture_directory, RATE)
    assert isinstance(trainer, TorchTrainer)
    keeper = Keeper()
    trainer.push_weights(keeper, 1)
    stored = load_file(mixture_directory / "model.safetensors")
    assert keeper.state.keys() == stored.keys()
    assert any(".experts.7." in name for name in stored)
    assert all(torch.equal(tensor, stored[name]) for name, tensor in keeper.state.items())
