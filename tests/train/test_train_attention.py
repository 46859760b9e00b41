"""The chunked attention against torch's, at every remainder of a chunk and beyond the longest row."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from journeyman.train.backends.attention import CHUNK, LONGEST, causal_attention


@pytest.mark.parametrize("places", [1, 2, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK + 5, LONGEST + 1])
@pytest.mark.parametrize(("heads", "kv_heads"), [(4, 2), (3, 3), (6, 1)])
def test_values_and_gradients_equal_torchs_attention(places, heads, kv_heads):
    generator = torch.Generator().manual_seed(places)
    q, k, v = (torch.randn(2, places, h, 8, generator=generator).requires_grad_() for h in (heads, kv_heads, kv_heads))
    ours = causal_attention(q, k, v)
    by_head = (x.transpose(1, 2) for x in (q, k, v))
    theirs = F.scaled_dot_product_attention(*by_head, is_causal=True, enable_gqa=True)
    theirs = theirs.transpose(1, 2).reshape(2 * places, heads * 8)
    assert torch.allclose(ours, theirs, atol=1e-5, rtol=0)
    weight = torch.randn(ours.shape, generator=generator)
    for got, expected in zip(*(torch.autograd.grad(out, (q, k, v), weight) for out in (ours, theirs)), strict=True):
        assert torch.allclose(got, expected, atol=2e-5, rtol=1e-4)
