"""A turn as vLLM's two routes spell it: bodies of requests, and what their answers say. Pure."""

from __future__ import annotations

import base64
import binascii
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from journeyman.engines.errors import EngineError
from journeyman.engines.experts import Experts, narrowed
from journeyman.engines.protocol import Sampling, TopLogprobs, WeightSpan

LABEL = "v"
"""A version's label on the server: this letter and its number."""
SEED_BITS = 63
"""vLLM hands the seed to a torch generator, which takes a signed 64-bit integer."""
_GOLDEN = 0x9E3779B97F4A7C15


@dataclass(frozen=True)
class Answer:
    """What a server sampled in one request.

    Attributes:
        ids, logprobs: int list [n] and float32 [n].
        finish: ``abort`` when it was ended early; the ids are what it had by then.
        spans: version of each token; empty where the route does not tell.
        top_logprobs: when asked for.
        routed_experts: [tokens, layers, k] of the context from the row asked for to the last token fed, where the
            server tells; the last token sampled was not fed.
        cached: prompt tokens found in the prefix cache; None where the server does not tell.
    """

    ids: list[int]
    logprobs: npt.NDArray[np.float32]
    finish: Literal["stop", "length", "abort"]
    spans: tuple[WeightSpan, ...]
    top_logprobs: TopLogprobs | None
    routed_experts: Experts | None
    cached: int | None


def label_of(version: int) -> str:
    """Label of a version on the server."""
    return f"{LABEL}{version}"


def version_of(label: str | None) -> int | None:
    """Number of a label of ours; None for another's, such as vLLM's own ``default``."""
    text = (label or "").removeprefix(LABEL)
    return int(text) if label and label.startswith(LABEL) and text.isdecimal() else None


def seed_of(key: int, offset: int) -> int:
    """Seed of a request; a turn continued at an offset does not repeat the noise of its beginning."""
    return (key ^ (offset * _GOLDEN)) & ((1 << SEED_BITS) - 1)


def sampling_params(sampling: Sampling, seed: int, experts_from: int | None = None) -> dict[str, Any]:
    """Every parameter that changes the distribution is written out: servers have defaults of their own.

    Args:
        experts_from: first token of the context whose experts are wanted; None for a server that knows none.
    """
    experts = {} if experts_from is None else {"routed_experts_prompt_start": experts_from}
    return {
        **experts,
        "max_tokens": sampling.max_new_tokens,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "top_k": sampling.top_k or -1,
        "min_p": 0.0,
        "repetition_penalty": 1.0,
        "presence_penalty": 0.0,
        "frequency_penalty": 0.0,
        "seed": seed,
        "stop_token_ids": sorted(sampling.stop_ids),
        "ignore_eos": True,
        "logprobs": sampling.top_logprobs,
    }


def tokens_body(
    model: str,
    ids: Sequence[int],
    sampling: Sampling,
    seed: int,
    salt: str | None,
    request_id: str,
    experts_from: int | None = None,
) -> dict[str, Any]:
    """Body for ``/inference/v1/generate``."""
    params = {**sampling_params(sampling, seed, experts_from), "detokenize": False}
    body: dict[str, Any] = {"model": model, "token_ids": list(ids), "sampling_params": params, "request_id": request_id}
    return body | ({"cache_salt": salt} if salt else {})


def completions_body(
    model: str, ids: Sequence[int], sampling: Sampling, seed: int, salt: str | None, experts_from: int | None = None
) -> dict[str, Any]:
    """Body for ``/v1/completions``."""
    body: dict[str, Any] = {
        "model": model,
        "prompt": list(ids),
        **sampling_params(sampling, seed, experts_from),
        "return_token_ids": True,
        "return_tokens_as_token_ids": True,
        "include_stop_str_in_output": True,
        "skip_special_tokens": False,
    }
    return body | ({"cache_salt": salt} if salt else {})


class ForeignWeights(EngineError):
    """A server sampled with weights that carry no label of ours: it was started anew, or somebody else pushed."""


def parse_tokens(reply: Mapping[str, Any], top: int, unlabelled: int | None) -> Answer:
    """Answer of ``/inference/v1/generate``.

    Args:
        top: how many most probable tokens were asked for.
        unlabelled: version meant by a label that is not ours; None: there can be none.

    Raises:
        ForeignWeights: there is one all the same. EngineError: the answer is none.
    """
    choice = _choice(reply)
    ids = list(choice.get("token_ids") or [])
    content = (choice.get("logprobs") or {}).get("content") or []
    logprobs = np.asarray([entry["logprob"] for entry in content], dtype=np.float32)
    spans = tuple(
        WeightSpan(_known(span["version"], unlabelled), span["start"], span["end"])
        for span in choice.get("weight_versions") or []
        if span["end"] > span["start"]
    )
    ranked = [[(item["token_id"], item["logprob"]) for item in entry.get("top_logprobs") or []] for entry in content]
    return _answer(reply, choice, ids, logprobs, spans, ranked, top)


def _known(label: str | None, unlabelled: int | None) -> int:
    version = version_of(label)
    version = unlabelled if version is None else version
    if version is None:
        raise ForeignWeights(f"the server sampled with weights labelled {label!r}, which nobody here pushed")
    return version


def parse_completions(reply: Mapping[str, Any], top: int) -> Answer:
    """Answer of ``/v1/completions``: no spans."""
    choice = _choice(reply)
    if choice.get("token_ids") is None:
        raise EngineError("the server returned text without token ids: vLLM 0.10.2 or newer returns them")
    reported = choice.get("logprobs") or {}
    logprobs = np.asarray(reported.get("token_logprobs") or [], dtype=np.float32)
    ranked = [
        [(int(name.removeprefix("token_id:")), value) for name, value in (entry or {}).items()]
        for entry in reported.get("top_logprobs") or []
    ]
    return _answer(reply, choice, list(choice["token_ids"]), logprobs, (), ranked, top)


def _choice(reply: Mapping[str, Any]) -> Mapping[str, Any]:
    choices = reply.get("choices")
    if not isinstance(choices, list) or len(choices) != 1:
        raise EngineError("the server's answer holds no single choice")
    choice: Mapping[str, Any] = choices[0]
    return choice


def _answer(
    reply: Mapping[str, Any],
    choice: Mapping[str, Any],
    ids: list[int],
    logprobs: npt.NDArray[np.float32],
    spans: tuple[WeightSpan, ...],
    ranked: Sequence[Sequence[tuple[int, float]]],
    top: int,
) -> Answer:
    if logprobs.shape != (len(ids),):
        raise EngineError(f"the server returned {len(ids)} ids with {logprobs.size} logprobs")
    reason = choice.get("finish_reason")
    if reason not in ("stop", "length", "abort"):
        raise EngineError(f"the server ended a turn with {reason!r}")
    details = (reply.get("usage") or {}).get("prompt_tokens_details") or {}
    return Answer(
        ids,
        np.minimum(logprobs, 0),
        reason,
        spans,
        _top(ranked, top) if top else None,
        _experts(choice.get("routed_experts")),
        details.get("cached_tokens"),
    )


def _top(ranked: Sequence[Sequence[tuple[int, float]]], top: int) -> TopLogprobs:
    """The ``top`` most probable of each position: servers put the sampled token first, whatever its rank."""
    ids = np.zeros((len(ranked), top), dtype=np.int32)
    values = np.full((len(ranked), top), -np.inf, dtype=np.float32)
    for row, entries in enumerate(ranked):
        best = sorted(dict(entries).items(), key=lambda entry: (-entry[1], entry[0]))[:top]
        for column, (token, value) in enumerate(best):
            ids[row, column], values[row, column] = token, value
    return TopLogprobs(ids, values)


def _experts(text: str | None) -> Experts | None:
    """``routed_experts``: base64 of a ``.npy``."""
    if text is None:
        return None
    try:
        return narrowed(np.load(io.BytesIO(base64.b64decode(text, validate=True)), allow_pickle=False))
    except (binascii.Error, EOFError, ValueError) as error:
        raise EngineError(f"the server's routed experts cannot be read: {error}") from error
