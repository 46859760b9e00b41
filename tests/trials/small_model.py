"""A model of a real family, small enough for any test: a vocabulary of bytes, random weights, its chat format."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from journeyman.tokens.renderers import FAMILIES, Renderer
from journeyman.tokens.tokenizer import Tokenizer, save_extended

FAMILY = "qwen3"
SIGNS = "<|im_start|> <tool_call> # Tools enable_thinking"
"""What a template has to spell for ``family_of`` to know the family; nobody renders it."""
CORPUS = ['{"name": "read", "arguments": {"filePath": "/ws/sales.csv"}}', "You do office work. The answer is 412."]


def make_tokenizer(directory: Path) -> Renderer:
    """Writes tokenizer and chat template to a directory; returns the renderer over them."""
    from tokenizers import Tokenizer as Definition
    from tokenizers import decoders, models, pre_tokenizers, trainers

    trained = Definition(models.BPE())
    trained.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    trained.decoder = decoders.ByteLevel()
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(vocab_size=320, initial_alphabet=alphabet, show_progress=False)
    trained.train_from_iterator(CORPUS * 3, trainer)
    directory.mkdir(parents=True, exist_ok=True)
    tokenizer: Tokenizer = save_extended(json.loads(trained.to_str()), FAMILIES[FAMILY].specials, directory)
    (directory / "chat_template.jinja").write_text(SIGNS)
    return Renderer(FAMILIES[FAMILY], tokenizer, thinking=False)


def renderer_in(directory: Path) -> Renderer:
    """The renderer over what ``make_tokenizer`` wrote."""
    return Renderer(FAMILIES[FAMILY], Tokenizer(directory), thinking=False)


def make_model(directory: Path, *, window: int = 16_384, **sizes: Any) -> Renderer:
    """The same with weights, as ``save_pretrained`` writes them."""
    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM

    renderer = make_tokenizer(directory)
    torch.manual_seed(5)
    config = Qwen3Config(
        vocab_size=renderer.tokenizer.vocab_size,
        max_position_embeddings=window,
        tie_word_embeddings=True,
        rope_parameters={"rope_type": "default", "rope_theta": 10_000.0},
        **{
            "hidden_size": 32,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "num_key_value_heads": 1,
            "head_dim": 16,
            "intermediate_size": 48,
            "initializer_range": 0.2,
            **sizes,
        },
    )
    Qwen3ForCausalLM(config).eval().save_pretrained(directory)
    return renderer
