"""Columns for the tests of losses: the page's reference batch, single tokens, and random ragged batches."""

from __future__ import annotations

import torch

from journeyman.train.losses import LOSSES, policy_loss
from journeyman.train.reductions import token_weights

MU = [[0.5, 0.9, 0.05, 0.30], [0.6, 0.01], [0.2, 0.7, 0.4]]
OLD = [[0.52, 0.92, 0.15, 0.45], [0.5, 0.004], [0.18, 0.7, 0.41]]
PI = [[0.55, 0.95, 0.30, 0.52], [0.35, 0.002], [0.10, 0.72, 0.40]]
A = [1.0, -1.0, 0.5]
SEQUENCE_OF = [0, 0, 0, 0, 1, 1, 2, 2, 2]
PROMPT_OF = torch.tensor([0, 0, 1])


def flat(rows, dtype=torch.float64):
    return torch.tensor([p for row in rows for p in row], dtype=dtype).log()


def page_inputs(reduction, dtype=torch.float64):
    sequence_of = torch.tensor(SEQUENCE_OF)
    mask = torch.ones(9, dtype=torch.bool)
    return {
        "logp_rollout": flat(MU, dtype),
        "logp_old": flat(OLD, dtype),
        "logp_new": flat(PI, dtype).requires_grad_(),
        "advantages": torch.tensor(A, dtype=dtype)[sequence_of],
        "mask": mask,
        "weights": token_weights(reduction, mask=mask, sequence_of=sequence_of, prompt_of=PROMPT_OF, max_length=16),
        "sequence_of": sequence_of,
    }


def gradient(name, inputs, **params):
    output = policy_loss(name, **inputs, **params)
    (grad,) = torch.autograd.grad(output.loss, inputs["logp_new"])
    return output, grad


def single(mu, pi, advantage, weight=1.0):
    column = lambda p: torch.tensor([p], dtype=torch.float64).log()  # noqa: E731
    ones = torch.ones(1, dtype=torch.float64)
    return {
        "logp_rollout": column(mu),
        "logp_old": column(mu),
        "logp_new": column(pi).requires_grad_(),
        "advantages": ones * advantage,
        "mask": torch.ones(1, dtype=torch.bool),
        "weights": ones * weight,
        "sequence_of": torch.zeros(1, dtype=torch.int64),
    }


def random_inputs(name, seed, sequences=5, dtype=torch.float64):
    """Ragged sequences with holes in the mask, and whatever further columns the loss takes; no weights yet."""
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.randint(1, 7, (sequences,), generator=generator)
    sequence_of = torch.repeat_interleave(torch.arange(sequences), lengths)
    n = len(sequence_of)
    draw = lambda: -3 * torch.rand(n, generator=generator, dtype=dtype) - 0.01  # noqa: E731
    mask = torch.rand(n, generator=generator) < 0.7
    mask[0] = True
    rollout = draw()
    near = lambda: (rollout + 0.6 * torch.randn(n, generator=generator, dtype=dtype)).clamp(max=-0.005)  # noqa: E731
    columns = {
        "logp_rollout": rollout,
        "logp_old": near(),
        "logp_new": near().requires_grad_(),
        "advantages": torch.randn(sequences, generator=generator, dtype=dtype)[sequence_of],
        "mask": mask,
        "sequence_of": sequence_of,
    }
    scores = torch.randn(n, 6, generator=generator, dtype=dtype)
    moved = scores + 0.8 * torch.randn(n, 6, generator=generator, dtype=dtype)
    likeliest = scores.argsort(-1, descending=True)[:, :3]
    tops = [s.log_softmax(-1).gather(1, likeliest) for s in (scores, moved)]
    return {**columns, **dict(zip(LOSSES[name].extra_columns, tops, strict=False))}


def weigh(inputs, reduction):
    prompt_of = torch.arange(int(inputs["sequence_of"].max()) + 1) // 2
    kwargs = {"mask": inputs["mask"], "sequence_of": inputs["sequence_of"], "prompt_of": prompt_of}
    return {**inputs, "weights": token_weights(reduction, **kwargs, max_length=9)}


def part_of(inputs, where):
    return {key: column[where] for key, column in inputs.items()}
