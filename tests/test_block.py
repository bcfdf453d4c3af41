"""Blocks against the literature: what Korthikanti, Narayanan, Dao and DeepSeek print follows from the listings."""

import tomllib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sympy import Add, Rational, expand, factor_terms

import scalebook
from scalebook.block import models as blocks
from scalebook.block.backward import backward
from scalebook.block.listing import parse
from scalebook.block.models import GPT, HEAD, LLAMA, MLA, MOE, block, blocks_of, model_active_params, model_params
from scalebook.block.sharding import context_parallel, expert_parallel, sequence_parallel, shard, tensor_parallel
from scalebook.block.transformations import cached, flash, full, recompute, selective, unbiased
from scalebook.language.notation import symbol
from scalebook.tables import models, shapes
from scalebook.tables.shapes import used_params

from .every import every
from .support import cases, each_case

BLOCKS = cases("blocks", globals())
every_block = pytest.mark.parametrize("name", BLOCKS)

b, s, h, a, L, p, m, V, t = map(symbol, ["batch", "seq", "hidden", "heads", "layers", "pp", "chunks", "vocab", "tp"])
BITS = {
    symbol("activation_bits"): 16, symbol("weight_bits"): 16, symbol("gradient_bits"): 16, symbol("kv_bits"): 16,
    symbol("mask_bits"): 8, symbol("fp32_bits"): 32,
}  # fmt: skip


def megatron(expr):
    """In the letters of Megatron's papers: as many key-value heads as heads, d = h/a, f = 4h, 16 bit, byte masks."""
    expr = expr.subs({symbol("kv_heads"): a, symbol("ffn"): 4 * h, symbol("context"): s} | BITS)
    return expand(expr.subs(symbol("head_dim"), h / a))


# Korthikanti et al. 2022 (arXiv:2205.05198): equations 1, 2 and 4, and section 5 with and without splitting.
@each_case("what blocks save, as published", "transformations, published", globals())
def test_saved_activations(transformations, published):
    assert megatron(GPT.then(*transformations).saved) == expand(published)


def test_first_stage_of_a_pipeline():
    """Equations 5 and 6: p micro-batches in flight of L/p blocks; what interleaving adds; and the two ends (§4.3)."""
    in_flight, interleaved = p * L / p, L * (1 + (p - 1) / (p * m))
    split = GPT.then(tensor_parallel, sequence_parallel)
    per_block, kept = megatron(split.saved), megatron(selective(split).saved)
    assert expand(in_flight * per_block - s * b * h * L / t * (34 + 5 * a * s / h)) == 0
    assert expand(in_flight * kept - 34 * s * b * h * L / t) == 0
    assert expand(interleaved * per_block - s * b * h * L / t * (1 + (p - 1) / (p * m)) * (34 + 5 * a * s / h)) == 0
    assert expand(p * megatron(shard(blocks.EMBEDDING, "tp", "seq").saved) - s * b * h * p / t) == 0
    assert expand(megatron(HEAD.then(tensor_parallel, sequence_parallel).saved) - 4 * s * b * h / t * (1 + V / h)) == 0


def test_flops_of_an_iteration():
    """Narayanan et al. 2021 (arXiv:2104.04473), appendix: forward, and a step with and without full recomputation."""
    forward = megatron(GPT.flops)
    assert forward == expand(24 * b * s * h**2 + 4 * b * s**2 * h)
    head = megatron(HEAD.flops + backward(HEAD).flops)
    step = L * (forward + megatron(backward(GPT).flops)) + head
    assert expand(step - 72 * b * L * s * h**2 * (1 + s / (6 * h) + V / (12 * L * h))) == 0
    step = L * (forward + megatron(backward(full(GPT)).flops)) + head
    assert expand(step - 96 * b * L * s * h**2 * (1 + s / (6 * h) + V / (16 * L * h))) == 0


PLANS = cases("transformations of a block", globals())


@every((name, plan) for name in BLOCKS for plan in PLANS)
def test_the_backward_pass_reads_what_was_saved(name, plan):
    """Two derivations agree: the tensors a block says it saves are those its backward listing takes from outside."""
    changed = BLOCKS[name].then(*PLANS[plan])
    read = {x.name for x in backward(changed).inputs} - {f"d_{changed.ops[-1].name}"}
    assert read == set(changed.saved_tensors)


def test_what_enters_a_group_is_saved():
    """As a checkpoint does, even where the backward pass of the group happens not to need it."""
    assert {"x2", "down"} <= set(recompute(LLAMA, "y").saved_tensors)
    assert "x2" not in recompute(LLAMA, "x2", "h2").saved_tensors


def recomputation(block):
    """The lines of the backward pass that repeat lines of the forward pass."""
    return [op for op in backward(block).ops if not any(t.is_gradient for t in op.outs)]


@every(BLOCKS)
def test_what_terms_share_stands_in_front(name):
    """As SymPy has it, and not only an equal sum: the order of multiplications decides last digits."""
    changed = BLOCKS[name].then(*PLANS["split, selective"])
    assert changed.saved == factor_terms(Add(*changed.saved_tensors.values()))
    assert changed.flops == factor_terms(Add(*(op.flops for op in changed.ops)))
    assert changed.params == factor_terms(Add(*(t.elements for t in changed.weights)))
    assert changed.traffic == factor_terms(Add(*(k.traffic for k in changed.kernels)))


@every_block
def test_backward_is_twice_forward(name):
    plain = BLOCKS[name]
    assert expand(backward(plain).flops - 2 * plain.flops) == 0
    for extra in (full, selective, flash):
        changed = extra(plain)
        again = sum(op.flops for op in recomputation(changed))
        assert expand(backward(changed).flops - 2 * plain.flops - again) == 0
    assert expand(sum(op.flops for op in recomputation(full(plain))) - plain.flops) == 0


@every_block
def test_every_weight_and_the_input_have_a_gradient_of_their_shape(name):
    splits = [(), (tensor_parallel, sequence_parallel, flash), (tensor_parallel, full), (context_parallel, selective)]
    for split in splits:
        changed = BLOCKS[name].then(*split)
        made = {x.name: x for op in backward(changed).ops for x in op.outs}
        for weight in changed.weights:
            assert made[f"d_{weight.name}"].indices == weight.indices
        assert made["d_x"].indices == changed.inputs[0].indices


def test_flash_makes_the_scores_again():
    """Five products going back for two going forward (Dao 2023, FlashAttention-2: 2.5 times)."""
    core = block("grouped", "gated").then(flash)
    forward = next(k for k in core.kernels if k.name == "flash")
    back = next(k for k in backward(core).kernels if k.name == "flash_backward")
    assert expand(back.flops - Rational(5, 2) * forward.flops) == 0
    quadratic = expand(forward.traffic.subs(symbol("context"), s)).coeff(s, 2)
    assert quadratic == 0 and expand(back.traffic.subs(symbol("context"), s)).coeff(s, 2) == 0


def kinds(changed):
    return [c.kind for c in changed.collectives]


@pytest.mark.parametrize("name", ["GPT", "LLAMA", "plain"])
def test_tensor_parallelism_reduces_twice_a_pass(name):
    """Shoeybi et al. 2019: one all-reduce of batch x seq x hidden after attention, one after the feed-forward layer."""
    split = tensor_parallel(BLOCKS[name])
    assert kinds(split) == ["all_reduce"] * 2
    assert all(c.elements == b * s * h and c.ways == t for c in split.collectives)
    assert backward(split).collectives == split.collectives


WHOLE = {
    "Gain1", "Gain2", "Shift1", "Shift2", "Bo", "Bdown", "Wrouter", "Wkv_down", "Wq_down", "Wk_rope", "Gain_kv",
    "Gain_q",
}  # fmt: skip


@every_block
def test_tensor_parallelism_splits_every_other_weight(name):
    plain, split = BLOCKS[name], tensor_parallel(BLOCKS[name])
    whole = {w.name: w.elements for w in plain.weights if w.name in WHOLE}
    assert expand(t * split.params - plain.params - (t - 1) * sum(whole.values())) == 0
    assert expand(t * tensor_parallel(HEAD).flops - HEAD.flops) == 0


def test_a_replicated_latent_sums_its_gradient():
    """Every device computes MLA's latents whole, and the gradient of each from its own heads: those are all-reduced
    instead of the gradient of the attention's input."""
    split = tensor_parallel(MLA)
    assert [c.elements for c in split.collectives] == [b * s * h] * 2
    widths = [expand(c.elements.subs(symbol("context"), s) / (b * s)) for c in backward(split).collectives]
    assert sorted(map(str, widths)) == ["hidden", "kv_rank", "q_rank", "rope_dim"]


def test_sequence_parallelism_gathers_and_scatters():
    split = GPT.then(tensor_parallel, sequence_parallel)
    assert kinds(split) == ["all_gather", "reduce_scatter"] * 2
    assert all(c.elements == b * s * h for c in split.collectives)
    # Back: a gather for each scatter, a scatter for each gather, and each gather again for the weights' gradients.
    assert sorted(kinds(backward(split))) == ["all_gather"] * 4 + ["reduce_scatter"] * 2


def test_expert_parallelism_exchanges_tokens():
    ep, k = symbol("ep"), symbol("top_k")
    split = expert_parallel(MOE)
    assert kinds(split) == ["all_to_all"] * 2 == kinds(backward(split))
    assert all(expand(c.elements - b * s * k * h) == 0 for c in split.collectives)
    assert expand(split.flops - MOE.flops) == 0  # as many tokens come as leave
    routed = sum(w.elements for w in MOE.weights if w.is_routed)
    assert expand(MOE.params - split.params - routed * (1 - 1 / ep)) == 0
    assert expand(routed - 3 * symbol("experts") * h * symbol("expert_ffn")) == 0


@pytest.mark.parametrize("name", ["MOE", "MLA_MOE", "plain experts"])
def test_transformations_commute(name):
    """The order in which a block is split does not matter to its costs."""
    one = BLOCKS[name].then(tensor_parallel, sequence_parallel, expert_parallel, flash)
    other = BLOCKS[name].then(flash, expert_parallel, tensor_parallel, sequence_parallel)
    for cost in ("flops", "vector_flops", "params", "active_params", "traffic", "saved"):
        assert expand(getattr(one, cost) - getattr(other, cost)) == 0, cost
    assert sorted(map(str, one.collectives)) == sorted(map(str, other.collectives))


def test_context_parallelism_gathers_keys_and_values():
    split = context_parallel(LLAMA)
    assert kinds(split) == ["all_gather"] * 2
    kv = b * symbol("context") * symbol("kv_heads") * symbol("head_dim")
    assert all(c.elements == kv for c in split.collectives)
    assert sorted(kinds(backward(split))) == ["all_gather"] * 2 + ["reduce_scatter"] * 2
    assert expand(split.flops * symbol("cp") - LLAMA.flops) == 0
    assert split.params == LLAMA.params


# --- Calculon, operation by operation

CALCULON = cases("operations as Calculon costs them", globals())
SHAPE = dict(batch=1, seq=2048, context=2048, hidden=12288, heads=96, kv_heads=96, head_dim=128, ffn=49152, tp=8)
GPT3_175B = {symbol(name): value for name, value in SHAPE.items()} | BITS


@pytest.mark.parametrize("name", CALCULON)
def test_each_operation_costs_what_calculon_says(name):
    op = GPT.then(unbiased, tensor_parallel)[name]
    assert ((op.flops + op.vector_flops).subs(GPT3_175B), op.traffic.subs(GPT3_175B)) == CALCULON[name]


def test_calculon_lists_the_same_operations_and_memory():
    split = GPT.then(unbiased, tensor_parallel)
    assert [k.name for k in split.kernels if not k.ops[0].is_collective] == list(CALCULON)
    assert split.saved.subs(GPT3_175B) == 578813952  # its block_act_storage_space without recomputation
    assert (split.params * 2).subs(GPT3_175B) == 453083136  # its block_weight_space
    assert sequence_parallel(split).saved.subs(GPT3_175B) == 358612992  # with seq_par_ag_redo
    assert full(split).saved.subs(GPT3_175B) == 50331648


# --- Decoding


@pytest.mark.parametrize("expanded, absorbed", [("MLA", "MLA_ABSORBED"), ("MLA_MOE", "MLA_MOE_ABSORBED")])
def test_absorbing_changes_the_work_but_not_the_model(expanded, absorbed):
    assert expand(BLOCKS[expanded].params - BLOCKS[absorbed].params) == 0
    latent = symbol("kv_rank") + symbol("rope_dim")
    per_token = BLOCKS[absorbed].then(cached).cache / (b * symbol("context")) * 8 / symbol("kv_bits")
    assert expand(per_token - latent) == 0  # DeepSeek-V2 §2.1.4: (d_c + d_h^R) elements a token and layer


def test_multi_query_attention_splits_the_queries():
    """One key-value head on every device: its gradient, summed over the devices' queries, is all-reduced."""
    split = shard(LLAMA, "tp", "group_size", "ffn")
    assert split["k"].outs[0].elements == b * s * symbol("kv_heads") * symbol("head_dim")
    kv = b * symbol("context") * symbol("kv_heads") * symbol("head_dim")
    assert [c.elements for c in backward(split).collectives].count(kv) == 2


# --- Parameters of published models

MODELS = {
    key: {letter: cell["value"] if isinstance(cell, dict) else cell for letter, cell in row.items()}
    for key, row in tomllib.loads((Path(scalebook.__file__).parent / "tables/models.toml").read_text()).items()
}
ROUNDED = "the publisher rounds"
SIZE_IN_NAME = "the poster names sizes after a count with heads of multiples of 32, rounded"
R_MATRIX = "relative positions (Transformer-XL): one more hidden x hidden matrix a layer"
# By more than 0.5 %, and how far at most.
DIFFER = cases("parameters that differ from what is published", globals())
DIFFER |= {key: (0.072, SIZE_IN_NAME) for key in MODELS if key.startswith("poster_")}
COUNTED = [key for key, row in MODELS.items() if "embeddings" in row]  # not of Switch-C, nor of rows like another


# Counts of the released checkpoints, as their pages on Hugging Face state them.
EXACT = cases("parameters to the last one", {})


@every(COUNTED)
def test_parameters_as_published(key):
    row = MODELS[key]
    assert model_params(row) == EXACT.get(key, model_params(row))
    error = abs(model_params(row) / row["params"] - 1)
    limit, reason = DIFFER.get(key, (0.005, ""))
    assert error < limit, f"{error:.3%} {reason}"


@pytest.mark.parametrize("key", ["chinchilla_70b", "gopher_280b"])
def test_relative_positions_explain_the_rest(key):
    row = MODELS[key]
    assert model_params(row) + row["layers"] * row["hidden"] ** 2 == pytest.approx(row["params"], rel=0.0015)


GATES = "the published count includes the gates of the dense blocks"
ACTIVE_DIFFER = {"kimi_k2": (0.03, ROUNDED), "glam": (0.09, GATES)}


@pytest.mark.parametrize("key", [key for key in COUNTED if MODELS[key].get("experts")])
def test_active_parameters_as_published(key):
    row = MODELS[key]
    limit, reason = ACTIVE_DIFFER.get(key, (0.02, ""))
    assert abs(model_active_params(row) / row["active_params"] - 1) < limit, reason


USED_DIFFER = cases("parameters used that differ from the shape", globals())


@every(COUNTED)
def test_used_parameters_leave_the_input_embedding_out_once(key):
    """What the formula makes of the row is what the shape has without the matrix that a token only looks up."""
    shape = model_active_params(MODELS[key] | {"embeddings": 1})
    limit, reason = USED_DIFFER.get(key, (0.035, ""))
    assert abs(used_params(models[key]) / shape - 1) < limit, reason


DERIVED = [key for key in COUNTED if models[key].cells["active_params"].note.startswith("derived from the shape")]


@pytest.mark.parametrize("key", DERIVED)
def test_active_parameters_derived_from_the_shape(key):
    assert models[key].active_params == pytest.approx(model_active_params(models[key]), rel=2e-4)


@pytest.mark.parametrize("key, beside", [("qwen3_5_397b", 17e9), ("glm_5", 40e9), ("minimax_m2_5", 10e9)])
def test_active_parameters_as_named_leave_embeddings_out(key, beside):
    """What a publisher rounds lies between the count without either embedding and that with both."""
    row = models[key]
    assert row.active_params - 2 * row.vocab * row.hidden < beside * 1.025 and beside < row.active_params


def test_linear_attention_is_listed_where_it_serves_and_where_it_trains():
    dense, moe = blocks.served_blocks(models.qwen3_5_397b)
    assert dense is None and {"linear_key_heads", "kv_heads"} <= {*moe.indices}
    assert blocks.blocks_of(models.qwen3_5_397b) == (dense, moe)


def values(expr, row):
    return float(expr.subs({x: row[x.name] for x in expr.free_symbols if x.name in row}))


@each_case("listed attention", "key, kind, plain, f", globals())
def test_listed_attention_has_the_parameters_of_its_formula(key, kind, plain, f):
    """Beside the feed-forward layer and two gains, and beside latent attention where an indexer is added to it."""
    row = models[key]
    listed = block(kind, "gated").params - (block(plain, "gated").params if plain else 0)
    if not plain:
        listed -= 3 * symbol("hidden") * symbol("ffn") + 2 * symbol("hidden")
    assert values(listed, row) == f(row)


def test_a_state_takes_three_products_a_token():
    row = dict(models.qwen3_5_397b)
    linear = block("linear", "gated")
    core = sum(linear[x].flops for x in blocks.state_core(linear))
    each = values(core, row | {"batch": 1, "seq": 1})
    assert each == 6 * row["linear_value_heads"] * row["linear_key_dim"] * row["linear_value_dim"]


def test_blocks_of_a_hybrid_are_counted_by_kind():
    """All its blocks linear, or none: what the listing has is exchanged for what the formula has."""
    row = dict(models.qwen3_5_397b)
    none = model_params(row | {"linear_layers": 0})
    attention = 2 * row["hidden"] * row["head_dim"] * (row["heads"] + row["kv_heads"])
    gated = attention + row["hidden"] * row["heads"] * row["head_dim"]
    each = shapes.linear_params(models.qwen3_5_397b) - gated
    assert model_params(row) - none == pytest.approx(45 * each, rel=1e-9)
    assert none - model_params(row | {"linear_layers": 0, "output_gate": 0}) == 60 * (gated - attention)


# --- Properties over random sizes

SIZED = """batch seq kv_heads head_dim ffn hidden tp cp q_rank kv_rank rope_dim nope_dim v_dim top_k expert_ffn
    shared_experts shared_ffn"""
SIZES = st.fixed_dictionaries({name: st.integers(1, 9) for name in SIZED.split()})


def number(expr, sizes):
    sizes = dict(sizes, heads=sizes["kv_heads"] * 2, context=sizes["seq"], experts=16, visited_experts=16)
    values = {symbol(name): value for name, value in sizes.items()} | BITS
    found = expr.subs(values)
    assert found.is_Rational and found >= 0
    return found


@settings(max_examples=15)
@given(st.sampled_from(sorted(BLOCKS)), SIZES)
def test_devices_share_the_work(name, sizes):
    """Split over tp devices, each token and head is worked on once: no FLOP is lost or done twice."""
    plain = BLOCKS[name]
    tp, cp = sizes["tp"], sizes["cp"]
    split = plain.then(tensor_parallel, sequence_parallel, context_parallel)
    assert number(split.flops, sizes) * tp * cp == number(plain.flops, sizes)
    assert number(split.saved, sizes) * tp * cp == number(plain.saved, sizes)
    assert number(backward(split).flops, sizes) * tp * cp == 2 * number(plain.flops, sizes)


@settings(max_examples=15)
@given(st.sampled_from(sorted(BLOCKS)), SIZES)
def test_recomputing_more_saves_less(name, sizes):
    plain = BLOCKS[name]
    kept = [number(f(plain).saved, sizes) for f in (lambda x: x, selective, full)]
    assert kept[0] >= kept[1] >= kept[2] == 2 * sizes["batch"] * sizes["seq"] * sizes["hidden"]
    assert number(flash(plain).traffic, sizes) < number(plain.traffic, sizes)
    assert sum(number(op.traffic, sizes) for op in plain.ops) == number(plain.traffic, sizes)


@settings(max_examples=10)
@given(st.sampled_from(sorted(BLOCKS)), SIZES)
def test_decoding_token_by_token_is_prefill(name, sizes):
    """The limit of one new token: its contractions do 1/seq of the work of seq of them."""
    decode = cached(BLOCKS[name])
    assert number(decode.flops, sizes) == sizes["seq"] * number(decode.flops.subs(s, 1), sizes)
    assert number(decode.flops, sizes) == number(BLOCKS[name].flops, sizes)


@every_block
def test_a_listing_reads_back(name):
    for changed in (BLOCKS[name], BLOCKS[name].then(tensor_parallel, sequence_parallel, context_parallel)):
        assert parse(str(changed)) == changed
        assert parse(str(backward(changed))) == backward(changed)


@each_case("blocks of a model", "key, found", globals())
def test_blocks_of_a_model(key, found):
    assert blocks_of(MODELS[key]) == found
