"""How a conversation is framed: system line, tool results and final verb, as data, and the ids that follow from it.

Both framings are ChatML with Hermes calls in compact JSON. Special tokens in a framing are placed by id; the
instruction, file names and tool results are ordinary text whatever they spell. The results only ever extend a context:
no function here decodes or re-encodes what was sampled.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from journeyman.tokens.tokenizer import SPECIAL_TOKENS, Tokenizer, split_special

STOP = "<|im_end|>"
_OPEN = "<|im_start|>system\n{system}<|im_end|>\n<|im_start|>user\n{user}<|im_end|>\n<|im_start|>assistant\n"


@dataclass(frozen=True)
class Framing:
    """One way to frame a conversation.

    Attributes:
        name: key in ``FRAMINGS``.
        system: text of the system turn.
        tool_result: what follows a finished turn, special tokens spelled out, ``{result}`` where the text goes; it ends
            with the next generation prompt.
        final_verb: tool that ends the trial.
        final_argument: its only argument, a string.
        max_turns: sampled turns allowed.
    """

    name: str
    system: str
    tool_result: str
    final_verb: str
    final_argument: str
    max_turns: int


FRAMINGS = {
    "toolbelt": Framing(
        name="toolbelt",
        system="tools: lookup calc submit",
        tool_result="\n<|im_start|>user\n<tool_response>{result}</tool_response><|im_end|>\n<|im_start|>assistant\n",
        final_verb="submit",
        final_argument="answer",
        max_turns=6,
    ),
    "react": Framing(
        name="react",
        system="functions: answer calc lookup",
        tool_result="\n<|im_start|>tool\n{result}<|im_end|>\n<|im_start|>assistant\n",
        final_verb="answer",
        final_argument="value",
        max_turns=8,
    ),
}


def open_context(tokenizer: Tokenizer, framing: Framing, instruction: str, files: Sequence[str]) -> list[int]:
    """Ids of the prompt: system turn, user turn with the instruction and file names, generation prompt."""
    user = f"{instruction}\nfiles: {' '.join(files)}"
    return _fill(tokenizer, _OPEN, {"{system}": framing.system, "{user}": user})


def observation_ids(tokenizer: Tokenizer, framing: Framing, text: str) -> list[int]:
    """Ids that follow a closed turn: the tool result in this framing and the next generation prompt."""
    return _fill(tokenizer, framing.tool_result, {"{result}": text})


def close_ids(tokenizer: Tokenizer, sampled: Sequence[int]) -> list[int]:
    """The forced stop token if a sampled turn was cut at its length, else nothing."""
    stop = tokenizer.special(STOP)
    return [] if sampled and sampled[-1] == stop else [stop]


def call_ids(tokenizer: Tokenizer, name: str, arguments: Mapping[str, object]) -> list[int]:
    """Ids of one demonstrated turn: a call in compact JSON, its tags by id, and the stop token."""
    body = json.dumps({"name": name, "arguments": dict(arguments)}, separators=(",", ":"), ensure_ascii=False)
    return _fill(tokenizer, "<tool_call>{body}</tool_call><|im_end|>", {"{body}": body})


def _fill(tokenizer: Tokenizer, template: str, values: Mapping[str, str]) -> list[int]:
    """Encode a template run by run between its special tokens; values are put in after the cut, as ordinary text.

    A run is encoded whole, as a tokenizer that renders the same text would, so ids equal those of the chat template.
    """
    ids: list[int] = []
    for piece, is_special in split_special(template, SPECIAL_TOKENS):
        if is_special:
            ids.append(tokenizer.special(piece))
            continue
        for slot, value in values.items():
            if slot in piece:
                piece = piece.replace(slot, value, 1)
                break
        ids += tokenizer.encode(piece)
    return ids
