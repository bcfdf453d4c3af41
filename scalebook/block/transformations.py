"""Changes to a block on one device: a key-value cache, fusion, recomputation, no biases; each returns a new block."""

from dataclasses import replace

from scalebook.block.listing import Block
from scalebook.block.models import GPT, LLAMA, state_core  # noqa: F401  (two for the examples)
from scalebook.block.operations import Op, Tensor, base
from scalebook.language.stanzas import tables_of

__all__ = [
    "MODULES", "attention_core", "cached", "core_kernels", "drop", "flash", "full", "fuse", "hold_gathered",
    "module_lines", "recompute", "recompute_module", "selective", "unbiased",
]  # fmt: skip


def cached(block: Block) -> Block:
    """Turn a block into its decode step: it attends to a cache of `context` tokens and appends the `seq` new ones.

    >>> cached(LLAMA).cache
    batch*context*head_dim*kv_bits*kv_heads/4
    """
    ops, caches = [], {}
    given = {t.name for t in block.inputs if "context" in t.indices}  # the cache of an earlier block
    for op in block.ops:
        if op.function == "compress":
            caches.update({t.name: replace(t, name=f"{t.name}_cache") for t in op.outs})
            ops.append(replace(op, outs=tuple(caches[t.name] for t in op.outs), function="append"))
            continue

        def read(tensor):
            if tensor.name in given:
                return replace(tensor, name=f"{tensor.name}_cache")
            if tensor.name not in caches and not block.is_attended(tensor):
                return tensor
            if tensor.name not in caches:
                caches[tensor.name] = Tensor(f"{tensor.name}_cache", tensor.indices)
                ops.append(Op((caches[tensor.name],), ((block.made(tensor),),), "append"))
            return replace(caches[tensor.name], indices=tensor.indices)

        ops.append(op.reading(read))
    if not caches and not given:
        raise ValueError("the block attends to nothing: no tensor made over 'seq' is read over 'context'")
    return Block(tuple(ops))


def _named(block: Block, names: tuple[str, ...]) -> set[str]:
    if not names:
        raise ValueError("name the lines of the group, each by a tensor it makes")
    return {block[name].name for name in names}


def fuse(block: Block, *names: str, kernel: str) -> Block:
    """Run the named operations as one kernel, which keeps tensors that only they use out of memory.

    The backward kernel recomputes these tensors, for which a softmax saves one fp32 number per row.

    >>> fuse(LLAMA, "up", "gate", "active", "down", kernel="feed_forward").kernels[-2].name
    'feed_forward'
    """
    group, ops = _named(block, names), []
    for op in block.ops:
        if op.name in group:
            outs = op.outs[:1]
            if op.function == "softmax":
                outs += (Tensor(f"fp32_rows_{op.name}", op.args[0].indices[:-1]),)
            op = replace(op, outs=outs, kernel=kernel)
        ops.append(op)
    return Block(tuple(ops))


def recompute(block: Block, *names: str) -> Block:
    """Recompute the named operations in the backward pass: it saves their inputs, but not the tensors between them.

    >>> "active" in recompute(LLAMA, "active", "down").saved_tensors
    False
    """
    group = _named(block, names)
    return Block(tuple(replace(op, again=min(group)) if op.name in group else op for op in block.ops))


def attention_core(block: Block) -> tuple[str, ...]:
    """Return the names of the operations from the scores to the weighted values, which FlashAttention fuses.

    >>> attention_core(GPT)
    ('scores', 'probs', 'dropped', 'mix')
    """
    softmax = [op for op in block.ops if op.function == "softmax"]
    if not softmax:
        raise ValueError("the block has no softmax, hence no attention")
    names = [*(t.name for t in softmax[0].args), softmax[0].name]
    while block[names[0]].function:  # unfused steps: a scale, a mask
        names.insert(0, block[names[0]].args[0].name)
    while block[names[-1]].function:
        names.append(block.users[names[-1]][0].name)
    return tuple(names)


_KEYS = {"context", "picked", "entries"}  # indices that count what queries attend to


def core_kernels(block: Block) -> dict[str, tuple[str, ...]]:
    """Return the operations that a fused kernel runs, by kernel.

    "flash" attends to keys, "entries" to a compressed cache, "index" is an indexer, and "state" updates and reads a
    state. A block has only some of them.

    >>> list(core_kernels(LLAMA))
    ['flash']
    """
    found, states = {}, state_core(block)
    for op in block.ops:
        indices = [{base(i) for i in t.indices} for t in (*op.outs, *op.args)]
        if op.name in states:
            found.setdefault("state", []).append(op.name)
        elif any("seq" in x and x & _KEYS for x in indices):
            kernel = "index" if op.name.startswith(("i_", "chosen")) else "flash"
            found.setdefault("entries" if op.name.startswith("c_") else kernel, []).append(op.name)
    return {kernel: tuple(names) for kernel, names in found.items()}


def flash(block: Block) -> Block:
    """FlashAttention (Dao et al. 2022): scores, softmax, dropout and the product with the values in one kernel.

    An indexer, attention to a compressed cache and the update of a state become one kernel each.

    >>> sorted(set(GPT.saved_tensors) - set(flash(GPT).saved_tensors))
    ['dropped', 'mask1', 'probs']
    """
    for kernel, names in core_kernels(block).items():
        block = fuse(block, *names, kernel=kernel)
    return block


def selective(block: Block) -> Block:
    """Recompute attention's scores, softmax and weighted values in the backward pass (Korthikanti et al. 2022 §5).

    >>> sorted(set(LLAMA.saved_tensors) - set(selective(LLAMA).saved_tensors))
    ['probs']
    """
    names = [x for kernel in core_kernels(block).values() for x in kernel]
    return recompute(block, *names) if names else block


def full(block: Block) -> Block:
    """Recompute the whole block in the backward pass. Only its input is saved.

    >>> full(LLAMA).saved_tensors
    {'x': activation_bits*batch*hidden*seq/8}
    """
    return recompute(block, *(op.name for op in block.ops))


def drop(block: Block, *names: str) -> Block:
    """Save none of the named results: the backward pass recomputes each wherever it needs it."""
    group = _named(block, names)
    return Block(tuple(replace(op, dropped=True) if op.name in group else op for op in block.ops))


MODULES = tables_of(__package__, "modules.toml")["lines"]


def module_lines(block: Block, module: str) -> list[str]:
    """Return the names of the operations of a block that belong to one of `MODULES`; none if the block lacks it.

    >>> module_lines(LLAMA, "layernorm"), module_lines(LLAMA, "moe_act")
    (['h1', 'h2'], [])
    """
    has_experts = any(op.function == "dispatch" for op in block.ops)
    if module == "core_attn":
        return [x for names in core_kernels(block).values() for x in names] if "probs" in block.makers else []
    if module in ("mlp", "moe"):
        if has_experts != (module == "moe") or "h2" not in block.makers:
            return []
        first = [op.name for op in block.ops].index("h2") + 1
        return [op.name for op in block.ops[first:-1] if op.function != "drop"]
    needed = dict(mla_up_proj=any("kv_rank" in t.indices for t in block.weights), moe_act=has_experts)
    return [x for x in MODULES[module] if x in block.makers and needed.get(module, True)]


def recompute_module(block: Block, module: str) -> Block:
    """Recompute a part of the block, such as "mlp", in the backward pass. A block without this part stays as it is."""
    names = module_lines(block, module)
    if not names or (module == "core_attn" and block["probs"].kernel):  # a fused kernel recomputes its own
        return block
    if module not in ("layernorm", "mla_up_proj", "moe_act"):
        return recompute(block, *names)
    block = drop(block, *names)
    if module != "moe_act":  # with it, Megatron-Core multiplies the router's weights into the activation
        return block
    return Block(tuple(replace(op, function="collect") if op.function == "combine" else op for op in block.ops))


def hold_gathered(block: Block, way: str = "tp") -> Block:
    """Save the tensors that tensor parallelism gathers, so that the backward pass need not gather them again."""
    return Block(tuple(replace(op, held=op.function == "all_gather" and op.over == way) for op in block.ops))


def unbiased(block: Block) -> Block:
    """Return a block without the biases of its matrix products.

    >>> print(unbiased(GPT)["up"])
    up[batch seq ffn] = h2[batch seq hidden] Wup[hidden ffn]
    """
    return Block(
        tuple(op if op.function else replace(op, terms=tuple(t for t in op.terms if len(t) > 1)) for op in block.ops)
    )
