"""Attention: the formulas against the block, against counting by brute force, and against each other."""

import numpy as np
import sympy
from hypothesis import given
from hypothesis import strategies as st

from scalebook import attention, confront
from scalebook.attention import kernels as attention_io
from scalebook.block import GPT, LLAMA, MLA, unbiased

counts = st.integers(1, 40)


def test_the_parts_are_lines_of_the_listings():
    for block, gating in ((LLAMA, 1), (unbiased(GPT), 0)):
        lines = block["scores"].flops + block["mix"].flops
        stated = attention.attention_flops.compose(attention.pair_width_grouped, attention.full_pairs)
        assert sympy.simplify(lines - stated.rhs) == 0
        lines = sum(block[x].flops for x in ("q", "k", "v", "attended"))
        assert sympy.simplify(lines - attention.projection_flops.rhs) == 0
        rest = block.flops - stated.rhs - attention.projection_flops.rhs
        assert sympy.simplify(rest - attention.ffn_flops(gating=gating).rhs) == 0
    lines = MLA["scores"].flops + MLA["mix"].flops
    stated = attention.attention_flops.compose(attention.pair_width_latent, attention.full_pairs)
    assert sympy.simplify(lines - stated.rhs) == 0


@given(new=counts, past=st.integers(0, 40), window=counts, tile=st.integers(1, 12))
def test_pairs_are_counted(new, past, window, tile):
    query, key = np.mgrid[past : past + new, : past + new]
    seen = key <= query
    context = past + new
    assert attention.full_pairs(seq=new, context=context) == seen.size
    assert attention.causal_pairs(seq=new, context=context) == seen.sum()
    query, key = np.mgrid[:new, :new]
    near = (key <= query) & (key > query - window)
    assert attention.window_pairs(seq=new, window=window) == near.sum()
    whole = sum(
        tile * tile
        for a in range(0, new, tile)
        for b in range(0, new, tile)
        if np.any(np.arange(b, b + tile)[None, :] <= np.arange(a, a + tile)[:, None])
    )
    assert attention_io.tiled_pairs(seq=new, query_tile=tile) == whole


def test_nothing_was_calibrated_on_what_is_called_unseen():
    for name in ("attention_prefill", "attention_decode", "attention_mla_decode"):
        result = confront(name)
        systems = {row["system"] for row, picked in zip(result.rows, result.fitted, strict=True) if picked}
        assert systems == {"h100_sxm"} | ({"b200_sxm"} if "decode" in name else set())
        assert not any("H100" in group for group in result.groups)


def test_unfused_attention_never_beats_its_traffic():
    result = confront("attention_unfused")
    assert (result.measured < result.roofline).all()
