"""Attention: the formulas against the block, against counting by brute force, and against each other."""

import numpy as np
import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st

from scalebook import attention, calculator, confront
from scalebook.attention import kernels as attention_io
from scalebook.attention.arithmetic import attention_share, layer_flops
from scalebook.block import GPT, LLAMA, MLA, MLA_ABSORBED, blocks_of, cached, flash, unbiased
from scalebook.inference import assumptions
from scalebook.language import symbol
from scalebook.tables import accelerators, libraries, models

from .every import every
from .support import cases

NEEDED = ("hidden", "heads", "kv_heads", "head_dim", "ffn", "gating")
ALIKE = {x: row for x, row in models.items() if "linear_layers" not in row and "blocks" not in row.words}
DENSE = [key for key, row in ALIKE.items() if all(x in row for x in NEEDED)]
counts = st.integers(1, 40)


def letters(row):
    return {symbol(x): row[x] for x in NEEDED}


@every(DENSE)
def test_a_layer_is_the_sum_over_its_block(key):
    row = models[key]
    block = blocks_of(row)[0]
    known = {symbol("batch"): 3, symbol("seq"): 512, symbol("context"): 2048}
    expected = float(block.flops.subs(letters(row)).subs(known))
    assert layer_flops(row, batch=3, seq=512, context=2048) == pytest.approx(expected)


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


@every(DENSE)
def test_at_the_crossover_half_is_attention(key):
    row = models[key]
    tokens = attention.layer_crossover(row)
    assert attention_share(row, batch=1, seq=tokens) == pytest.approx(0.5)
    near = attention.projection_crossover(row)
    known = dict(batch=1, seq=near, context=near)
    pairs = attention.attention_flops(row, known)
    assert pairs == pytest.approx(attention.projection_flops(row, batch=1, seq=near))
    assert near < tokens


def test_decoding_step_by_step_is_the_prefill():
    n, i = symbol("context"), sympy.Symbol("i", integer=True, positive=True)
    step = sum(cached(LLAMA)[x].flops for x in ("scores", "mix")).subs({symbol("seq"): 1, n: i})
    whole = attention.attention_flops.compose(attention.pair_width_grouped, attention.causal_pairs)
    assert sympy.simplify(sympy.summation(step, (i, 1, n)) - whole.rhs.subs(symbol("seq"), n)) == 0


@given(tiles=st.integers(1, 30), tile=st.integers(1, 64), dim=counts, heads=counts)
def test_traffic_is_counted_by_tiles(tiles, tile, dim, heads):
    n, moved = tiles * tile, 0
    for _ in range(tiles):
        moved += tile * dim + tiles * 2 * tile * dim + tile * dim
    knowns = dict(batch=2, heads=heads, head_dim=dim, seq=n, context=n, query_tile=tile, activation_bits=16)
    assert attention_io.flash_traffic(knowns) == pytest.approx(2 * heads * moved * 2)


def test_unfused_traffic_is_that_of_the_listing():
    core = sum(k.traffic for k in LLAMA.kernels if k.name in ("scores", "probs", "mix"))
    assert sympy.simplify(core - attention_io.unfused_traffic.rhs) == 0


def test_a_tile_that_does_not_fit_is_warned_of():
    letters = dict(head_dim=128, activation_bits=16)
    tiles = [64, 128]
    warn = [("tile_memory", "sram_capacity", "{tile_memory} of {sram_capacity}")]
    found = calculator(
        attention_io.tile_memory, device=accelerators, query_tile=tiles, warn=warn,
        start=dict(device="mi300x", query_tile=64), **letters,
    )  # fmt: skip
    assert found.message == ""
    found = calculator(
        attention_io.tile_memory, device=accelerators, query_tile=tiles, warn=warn,
        start=dict(device="mi300x", query_tile=128), **letters,
    )  # fmt: skip
    assert found.message == "131.1 kB of 65.54 kB"


@pytest.mark.parametrize("key", ["h100", "h200", "mi300x", "mi325x", "gb200"])
def test_with_the_balanced_tile_memory_and_arithmetic_take_equally_long(key):
    device = accelerators[key]
    tile = attention_io.balanced_tile(device, activation_bits=16)
    shape = dict(batch=1, heads=8, kv_heads=8, head_dim=128, seq=1e8, activation_bits=16, query_tile=tile)
    row = attention_io.fused_attention(device, shape)
    assert row.memory_time == pytest.approx(row.compute_time, rel=1e-3)
    assert row.sharing_cores == 1
    cores = attention_io.sharing_cores(device, head_dim=128, activation_bits=16)
    assert cores == np.ceil(tile / attention_io.query_tile(device, head_dim=128, activation_bits=16))


def test_absorbed_attention_is_the_fused_kernel_of_its_listing():
    kernel = next(k for k in flash(cached(MLA_ABSORBED)).kernels if k.name == "flash")
    flops = attention.attention_flops.compose(attention.pair_width_absorbed, attention.full_pairs)
    assert sympy.simplify(kernel.flops - flops.rhs) == 0
    statistic = symbol("fp32_bits") / 8 * symbol("batch") * symbol("heads") * symbol("seq")
    sixteen = {symbol(x): 16 for x in ("activation_bits", "query_bits")}
    assert sympy.simplify((kernel.traffic - statistic - attention_io.absorbed_traffic.rhs).subs(sixteen)) == 0


PROMPT = dict(
    prompt_launch=assumptions.prompt_launch(), prompt_efficiency=assumptions.prompt_efficiency(),
    score_flops=assumptions.score_arithmetic(),
)  # fmt: skip
READ = {f"{f.letter}_latent": f() for f in assumptions.LATENT}
CELLS = [x for x in accelerators.b200 if x.startswith(("read_", "item_time"))]


def test_nothing_was_calibrated_on_what_is_called_unseen():
    for name in ("attention_prefill", "attention_decode", "attention_mla_decode"):
        result = confront(name)
        systems = {row["system"] for row, picked in zip(result.rows, result.fitted, strict=True) if picked}
        assert systems == {"h100_sxm"} | ({"b200_sxm"} if "decode" in name else set())
        assert not any("H100" in group for group in result.groups)


def test_unfused_attention_never_beats_its_traffic():
    result = confront("attention_unfused")
    assert (result.measured < result.roofline).all()


def test_a_prompt_by_hand(tmp_path):
    """One sequence of 16,384 tokens on a B200 in bf16: 64 heads of 128, tiles of 128."""
    header = "row_id,system,version,batch_size,isl,num_heads,num_key_value_heads,head_dim,window_size,attn_dtype,"
    line = "x,{},1,1,16384,64,64,128,0,bfloat16,bfloat16,0,9\n"
    file = tmp_path / "one.csv"
    file.write_text(header + "kv_cache_dtype,step,latency_ms\n" + line.format("b200_sxm") + line.format("l40s"))
    result = confront("attention_prefill", file)
    tiles = 128 * 129 / 2 * 128 * 128 * 64
    append = 16384 * 128 * 64 * (3 + 3) * 2 / (PROMPT["prompt_efficiency"] * 8e12)
    computed = tiles * (4 * 128 / 2.25e15 + PROMPT["score_flops"] / 75e12)
    assert result.predicted == pytest.approx([1e3 * (PROMPT["prompt_launch"] + append + computed)])
    assert result.left_out == {"on a device that is not in the table": 1}


def one_row(tmp_path, name, **row):
    file = tmp_path / "one.csv"
    file.write_text(",".join(row) + "\n" + ",".join(str(x) for x in row.values()) + "\n")
    [predicted] = confront(name, file).predicted
    return predicted


def test_a_prompt_of_latent_attention_by_hand(tmp_path):
    """16,384 tokens, 64 heads, 8-bit cache, on a B200: keys of 192, values of 128, quantized before they are used."""
    row = dict(
        row_id="x", system="b200_sxm", phase="context", mla_dtype="bfloat16", kv_cache_dtype="fp8", num_heads=64,
        batch_size=1, isl=16384, step=0, latency_ms=9,
    )  # fmt: skip
    each = 576 * (2 + 1) + 3 * 64 * 64 * 2 + 64 * (192 + 192 + 128) * (2 + 1)
    append = 16384 * each / (PROMPT["prompt_efficiency"] * 8e12)
    computed = 128 * 129 / 2 * 128 * 128 * 64 * (2 * 320 / 4.5e15 + PROMPT["score_flops"] / 75e12)
    predicted = one_row(tmp_path, "attention_mla", **row)
    assert predicted == pytest.approx(1e3 * (PROMPT["prompt_launch"] + append + computed))


@pytest.mark.parametrize("name", ["attention_mla", "attention_mla_decode"])
def test_a_token_of_latent_attention_by_hand(tmp_path, name):
    """64 sequences of 32,768 tokens in the cache, 16 heads, 16 bits, on an H200: the latents are read."""
    row = dict(
        row_id="x", system="h200_sxm", phase="generation", mla_dtype="bfloat16", kv_cache_dtype="bfloat16",
        num_heads=16, batch_size=64, isl=1, step=32767, latency_ms=1,
    )  # fmt: skip
    moved = 64 * 2 * (32768 * 576 + 16 * (576 + 512))
    expected = READ["read_launch_latent"] + moved / (READ["read_efficiency_latent"] * 4.8e12)
    assert one_row(tmp_path, name, **row) == pytest.approx(1e3 * expected)


PYTHON = libraries.kernels_from_python_h20
INFERSIM = cases("kernels on an H20 by hand", globals())


@pytest.mark.parametrize("case", INFERSIM)
def test_kernels_on_an_h20_by_hand(tmp_path, case):
    row, seconds = INFERSIM[case]
    whole = dict(
        row_id="x", gpu="H20", dtype="bf16", kv_dtype="bf16", batch_size="", kv_len="", seq_len="", latency_us=1
    )
    predicted = one_row(tmp_path, "attention_infersim", **whole | row)
    assert predicted == pytest.approx(1e6 * (PYTHON.read_launch_grouped + seconds))
