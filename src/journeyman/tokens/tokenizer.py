"""The tokenizer: byte-level BPE whose special tokens are reached by name only, never by text.

Any Hugging Face ``tokenizer.json`` of the byte-level kind loads. ``train`` makes the small one of the quickstart:
single digits and white space are tokens of their own, so a name has one id in an instruction, in JSON and in a table,
and copying it is a copy of ids.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from journeyman import durable
from journeyman.errors import InputError, nearest
from journeyman.tokens.chat_template import CHAT_TEMPLATE

if TYPE_CHECKING:
    import tokenizers

SPECIAL_TOKENS = (
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<tool_call>",
    "</tool_call>",
    "<tool_response>",
    "</tool_response>",
)
"""The special tokens of a trained tokenizer, ids 0 to 6 in this order."""

PRE_SPLIT = r"[A-Za-z_]+|[0-9]|[^A-Za-z0-9_\s]+|\s+"


class Tokenizer:
    """Text to ids and back; special tokens only through ``special``.

    Args:
        source: a ``tokenizer.json``, a directory that holds one, or a ``tokenizers.Tokenizer``.

    Raises:
        InputError: the file is missing or is no byte-level tokenizer.
    """

    def __init__(self, source: Path | tokenizers.Tokenizer) -> None:
        self._where, definition = _read(source)
        self._added = {token["content"]: int(token["id"]) for token in definition.get("added_tokens", [])}
        self._encoder, pieces = _without_added_tokens(definition, self._where)
        self._special_ids = frozenset(self._added.values())
        self.vocab_size = max([*pieces.values(), *self._added.values()]) + 1
        self._bytes = _token_bytes(pieces, self._added, self.vocab_size)

    @property
    def special_ids(self) -> frozenset[int]:
        """Ids that no text can encode to."""
        return self._special_ids

    @property
    def special_names(self) -> frozenset[str]:
        """Spellings of the special tokens."""
        return frozenset(self._added)

    def special(self, name: str) -> int:
        """The id of a special token, looked up by its spelling.

        Raises:
            InputError: the vocabulary has no such token; names the nearest.
        """
        if name not in self._added:
            near = nearest(name, self._added)
            hint = f"did you mean {near}?" if near else None
            raise InputError(self._where, f"has no special token {name!r}", allowed=", ".join(self._added), hint=hint)
        return self._added[name]

    def encode(self, text: str) -> list[int]:
        """Ids of ordinary text. Special tokens are never parsed from it; lone surrogates become U+FFFD."""
        try:
            ids: list[int] = self._encoder.encode(text, add_special_tokens=False).ids
        except TypeError:  # what the library says to text that has no UTF-8 form
            sound = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
            if sound == text:
                raise
            return self.encode(sound)
        return ids

    def encode_marked(self, text: str) -> list[int]:
        """Ids of text WE wrote in which special tokens are spelled out. Never for text from tools, files or models."""
        ids: list[int] = []
        for piece, is_special in split_special(text, self._added):
            ids += [self._added[piece]] if is_special else self.encode(piece)
        return ids

    def token_bytes(self, token: int) -> bytes:
        """The UTF-8 bytes one id stands for, perhaps a part of a character. Raises IndexError beyond the vocabulary."""
        if token < 0:
            raise IndexError(f"token id {token} is negative")
        return self._bytes[token]

    def decode(self, ids: Iterable[int]) -> str:
        """Ids as text, special tokens spelled out, broken characters as U+FFFD. A view: never encode it again."""
        return b"".join(map(self.token_bytes, ids)).decode("utf-8", "replace")


def split_special(text: str, special: Iterable[str]) -> Iterator[tuple[str, bool]]:
    """Cut ``text`` at spelled-out special tokens; yields (piece, is_special), no empty pieces."""
    pattern = _any_of(frozenset(special))
    at = 0
    for match in pattern.finditer(text) if pattern else ():
        if match.start() > at:
            yield text[at : match.start()], False
        yield match.group(), True
        at = match.end()
    if at < len(text):
        yield text[at:], False


@lru_cache(maxsize=64)
def _any_of(names: frozenset[str]) -> re.Pattern[str] | None:
    """Matches the longest of ``names`` at a position; None without names."""
    return re.compile("|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))) if names else None


def train(corpus: Iterable[str], out_dir: Path, *, vocab_size: int = 2048) -> Tokenizer:
    """Train the byte-level BPE on ``corpus`` and save it so that ``transformers`` loads ``out_dir`` too.

    The same corpus in the same order gives the same bytes. Special tokens spelled in the corpus are cut out of it.

    Args:
        corpus: ordinary text, one document per item.
        out_dir: receives ``tokenizer.json`` and ``tokenizer_config.json`` (with the chat template).
        vocab_size: upper limit; a small corpus saturates below it.

    Raises:
        StorageError: ``out_dir`` cannot be written.
    """
    from tokenizers import Regex, decoders, models, pre_tokenizers, trainers
    from tokenizers import Tokenizer as Trained

    trained = Trained(models.BPE())
    trained.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(PRE_SPLIT), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    trained.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=list(SPECIAL_TOKENS),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    trained.train_from_iterator(_ordinary(corpus), trainer)
    durable.write_text(out_dir / "tokenizer.json", trained.to_str(pretty=True))
    durable.write_json(out_dir / "tokenizer_config.json", _CONFIG)
    return Tokenizer(out_dir)


_CONFIG: dict[str, Any] = {
    "tokenizer_class": "PreTrainedTokenizerFast",
    "eos_token": "<|im_end|>",
    "pad_token": "<|endoftext|>",
    "clean_up_tokenization_spaces": False,
    "chat_template": CHAT_TEMPLATE,
}


def save_extended(definition: Mapping[str, Any], special: Sequence[str], out_dir: Path) -> Tokenizer:
    """Save a byte-level tokenizer under ``special`` tokens of our choice, so that ``transformers`` loads it too.

    Args:
        definition: a ``tokenizer.json``; its own list of added tokens is replaced.
        special: spellings; one that the vocabulary holds keeps its id, the others get the next ids in this order.
        out_dir: receives ``tokenizer.json`` and ``tokenizer_config.json`` (with the chat template).

    Raises:
        InputError: the definition is no byte-level tokenizer.
        StorageError: ``out_dir`` cannot be written.
    """
    vocabulary = definition["model"]["vocab"]
    new = [name for name in special if name not in vocabulary]
    next_id = max(vocabulary.values()) + 1
    ids = {name: vocabulary[name] for name in special if name in vocabulary}
    ids |= {name: next_id + place for place, name in enumerate(new)}
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    added = [{"id": token, "content": name, **flags} for name, token in sorted(ids.items(), key=lambda pair: pair[1])]
    durable.write_json(out_dir / "tokenizer.json", {**definition, "added_tokens": added})
    durable.write_json(out_dir / "tokenizer_config.json", _CONFIG)
    return Tokenizer(out_dir)


def _ordinary(corpus: Iterable[str]) -> Iterator[str]:
    for text in corpus:
        yield from (piece for piece, is_special in split_special(text, SPECIAL_TOKENS) if not is_special)


def _read(source: Path | tokenizers.Tokenizer) -> tuple[str, dict[str, Any]]:
    """Name for messages, and the parsed ``tokenizer.json``."""
    if not isinstance(source, Path):
        return "tokenizer", json.loads(source.to_str())
    path = source / "tokenizer.json" if source.is_dir() else source
    try:
        definition = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise InputError(str(path), "does not exist", hint="a model directory needs its tokenizer.json") from error
    except (OSError, ValueError) as error:
        raise InputError(str(path), f"cannot be read as a tokenizer: {error}") from error
    if not isinstance(definition, dict) or not isinstance(definition.get("model"), dict):
        raise InputError(str(path), "is no tokenizer.json: the field model is missing")
    return str(path), definition


def _without_added_tokens(definition: dict[str, Any], where: str) -> tuple[tokenizers.Tokenizer, dict[str, int]]:
    """An encoder that knows no added token, so that none can be parsed from text, and its BPE pieces."""
    from tokenizers import Tokenizer as Encoder

    plain = {**definition, "added_tokens": [], "post_processor": None, "truncation": None, "padding": None}
    try:
        return Encoder.from_str(json.dumps(plain)), {str(k): int(v) for k, v in definition["model"]["vocab"].items()}
    except Exception as error:  # the library raises bare Exception for any malformed definition
        raise InputError(where, f"is no byte-level BPE tokenizer: {error}") from error


def _token_bytes(pieces: dict[str, int], added: dict[str, int], size: int) -> Sequence[bytes]:
    """Bytes of every id, by GPT-2's printable stand-ins for bytes (bytes_to_unicode of the GPT-2 release)."""
    keep = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    stand_in = {chr(byte): byte for byte in keep}
    others = (byte for byte in range(256) if byte not in set(keep))
    stand_in.update({chr(256 + n): byte for n, byte in enumerate(others)})
    table = [b""] * size
    for piece, token in pieces.items():
        if piece not in added:
            table[token] = b"".join(bytes([stand_in[c]]) if c in stand_in else c.encode() for c in piece)
    for name, token in added.items():
        table[token] = name.encode()
    return table
