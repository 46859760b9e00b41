"""The head in chunks: the numbers of the plain log-softmax, and no block of logits above the bound."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch.utils._python_dispatch import TorchDispatchMode

from journeyman.train.backends.head import LOGITS_AT_ONCE, head_logprobs

STATES, WIDTH, VOCABULARY, TOKENS = 23, 8, 101, 40


def columns(seed=0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    hidden = torch.randn(STATES, WIDTH, generator=generator, dtype=dtype).requires_grad_()
    weight = torch.randn(VOCABULARY, WIDTH, generator=generator, dtype=dtype).requires_grad_()
    predictor_of = torch.randint(0, STATES, (TOKENS,), generator=generator)  # some states predict several, some none
    targets = torch.randint(0, VOCABULARY, (TOKENS,), generator=generator)
    return hidden, weight, predictor_of, targets


def plain(hidden, weight, predictor_of, targets):
    logprobs = F.linear(hidden, weight).log_softmax(-1).flatten()
    return logprobs.gather(0, predictor_of * VOCABULARY + targets)


def gradients(values, hidden, weight):
    return torch.autograd.grad(
        (values * torch.linspace(-1, 1, values.numel()).view(values.shape)).sum(), (hidden, weight)
    )


@pytest.mark.parametrize("at_once", [1, VOCABULARY * 5, VOCABULARY * 22, LOGITS_AT_ONCE])
def test_chunks_change_neither_values_nor_gradients(at_once):
    hidden, weight, predictor_of, targets = columns()
    ours = head_logprobs(hidden, weight, predictor_of, targets, at_once=at_once)
    expected = plain(hidden, weight, predictor_of, targets)
    assert torch.allclose(ours, expected, atol=1e-12, rtol=0)
    for got, wanted in zip(gradients(ours, hidden, weight), gradients(expected, hidden, weight), strict=True):
        assert torch.allclose(got, wanted, atol=1e-12, rtol=0)


def test_one_chunk_gives_the_bits_of_the_plain_log_softmax():
    hidden, weight, predictor_of, targets = columns(1, torch.float32)
    ours, expected = head_logprobs(hidden, weight, predictor_of, targets), plain(hidden, weight, predictor_of, targets)
    assert torch.equal(ours, expected)
    for got, wanted in zip(gradients(ours, hidden, weight), gradients(expected, hidden, weight), strict=True):
        assert torch.equal(got, wanted)


@pytest.mark.parametrize("at_once", [VOCABULARY * 5, LOGITS_AT_ONCE])
def test_several_ids_may_be_asked_of_one_state(at_once):
    hidden, weight, predictor_of, targets = columns(2)
    asked = torch.stack([targets, (targets + 1) % VOCABULARY, targets.flip(0)], 1)
    ours = head_logprobs(hidden, weight, predictor_of, asked, at_once=at_once)
    expected = torch.stack([plain(hidden, weight, predictor_of, asked[:, j]) for j in range(3)], 1)
    assert torch.allclose(ours, expected, atol=1e-12, rtol=0)
    for got, wanted in zip(gradients(ours, hidden, weight), gradients(expected, hidden, weight), strict=True):
        assert torch.allclose(got, wanted, atol=1e-12, rtol=0)


def test_no_trained_token_is_a_differentiable_nothing():
    hidden, weight, predictor_of, targets = columns()
    values = head_logprobs(hidden[:0], weight, predictor_of[:0], targets[:0])
    values.sum().backward()
    assert torch.count_nonzero(weight.grad) == 0


class LargestTensor(TorchDispatchMode):
    """Remembers the most numbers any tensor made by an operation holds."""

    def __init__(self):
        super().__init__()
        self.numbers = 0

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        result = operation(*args, **(kwargs or {}))
        for out in result if isinstance(result, list | tuple) else [result]:
            if isinstance(out, torch.Tensor):
                self.numbers = max(self.numbers, out.untyped_storage().nbytes() // out.element_size())
        return result


def largest(values_of):
    hidden, weight, predictor_of, targets = columns()
    with LargestTensor() as seen:
        values = values_of(hidden, weight, predictor_of, targets)
        torch.autograd.grad(values.sum(), (hidden, weight))
    return seen.numbers


def test_neither_pass_ever_holds_the_logits_of_the_batch():
    bound = 5 * VOCABULARY
    chunked = largest(lambda *args: head_logprobs(*args, at_once=bound))
    assert chunked <= max(bound, VOCABULARY * WIDTH)  # the head's own gradient is of the head's size
    assert largest(plain) == STATES * VOCABULARY  # the watcher sees them where they do exist
