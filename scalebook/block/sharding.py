"""Split a block over devices by tensor, sequence, context and expert parallelism; each returns a new block.

>>> [c.kind for c in GPT.then(tensor_parallel, sequence_parallel).collectives]
['all_gather', 'reduce_scatter', 'all_gather', 'reduce_scatter']
"""

from dataclasses import replace

from scalebook.block.listing import Block
from scalebook.block.models import GPT, LLAMA, MOE  # noqa: F401  (for the examples)
from scalebook.block.operations import RULES, TOKENS, Op, Tensor, base, ways
from scalebook.block.transformations import attention_core, core_kernels
from scalebook.language.notation import nearest, symbol

__all__ = [
    "context_exchanged", "context_parallel", "expert_parallel", "expert_tensor_parallel", "sequence_parallel", "shard",
    "tensor_parallel",
]  # fmt: skip


WIDTHS = (  # dimensions that tensor parallelism splits, besides the widths of experts
    "heads", "kv_heads", "ffn", "shared_ffn", "vocab", "linear_key_heads", "linear_value_heads", "channels",
    "output_groups",
)  # fmt: skip


def _split(index: str, way: str) -> str:
    """Split an index `way` ways. Splits are written in a fixed order, so that equal indices are equal strings."""
    return "/".join([index.split("/")[0], *sorted([*index.split("/")[1:], way])])


def _map(tensor: Tensor, names: tuple[str, ...], way: str) -> Tensor:
    return replace(tensor, indices=tuple(_split(i, way) if base(i) in names else i for i in tensor.indices))


def shard(block: Block, way: str, *names: str) -> Block:
    """Split the named dimensions of a block's tensors over devices; a sum over one of them ends in an all-reduce.

    `way` names the number of devices, such as "tp". Raises LookupError for a dimension that the block lacks and
    ValueError for one that a function needs whole (a norm, a softmax) or that is already split this way.

    >>> from scalebook.block.listing import parse
    >>> print(shard(parse("y[batch seq hidden] = z[batch seq ffn] W[ffn hidden]"), "tp", "ffn")["y"])
    y[batch seq hidden] = all_reduce(y_partial[batch seq hidden]) over tp
    """
    symbol(way)  # an unknown letter is named before anything else
    for name in names:
        if name not in block.indices:
            raise LookupError(f"the block has no index {name!r}; {nearest(name, block.indices)}")
    ops = []
    for op in block.ops:
        if any(base(i) in names and way in ways(i) for t in op.args for i in t.indices):
            raise ValueError(f"{', '.join(names)} cannot be split over {way} twice: {op}")
        if op.function and RULES[op.function].whole and base(op.args[0].indices[-1]) in names:
            raise ValueError(f"{op.args[0].indices[-1]} cannot be split: {op.function} needs all of it in {op}")
        new = op.mapped(lambda tensor: _map(tensor, names, way))
        summed = {base(i) for t in op.args for i in t.indices} - {base(i) for i in op.outs[0].indices}
        if not op.function and summed & set(names):
            partial = Tensor(f"{op.name}_partial", new.outs[0].indices)
            ops += [replace(new, outs=(partial,)), Op(new.outs, ((partial,),), "all_reduce", way, again=op.again)]
        else:
            ops.append(new)
    return Block(tuple(ops))


def tensor_parallel(block: Block, way: str = "tp") -> Block:
    """Split heads and feed-forward widths (Shoeybi et al. 2019). The sum after each half of the block is all-reduced.

    >>> print(tensor_parallel(LLAMA)["up"])
    up[batch seq ffn/tp] = h2[batch seq hidden] Wup[hidden ffn/tp]
    """
    return shard(block, way, *(name for name in (*WIDTHS, "expert_ffn") if name in block.indices))


def sequence_parallel(block: Block, way: str = "tp") -> Block:
    """Split the tokens of operations that tensor parallelism leaves whole, such as norms (Korthikanti et al. 2022 §4).

    Each all-reduce becomes a reduce-scatter, and an all-gather is added before the next split contraction.

    >>> print(LLAMA.then(tensor_parallel, sequence_parallel)["x2"])
    x2[batch seq/tp hidden] = add(x[batch seq/tp hidden], attended[batch seq/tp hidden])
    """
    if not any(way in ways(i) for op in block.ops for t in (*op.outs, *op.args) for i in t.indices):
        raise ValueError(f"nothing in the block is split over {way}; apply tensor_parallel first")
    partial = {op.args[0].name for op in block.ops if op.function == "all_reduce" and op.over == way}

    def is_split(tensor):
        return tensor.name in partial or any(way in ways(i) for i in tensor.indices)

    ops, gathered = [], {}
    for op in block.ops:
        if op.function == "all_reduce" and op.over == way:
            ops.append(replace(op, outs=(_map(op.outs[0], TOKENS, way),), function="reduce_scatter"))
        elif any(map(is_split, (*op.outs, *op.args))):
            ops.append(_gather(block, op, ops, gathered, way, lambda t: not is_split(t)))
        else:
            ops.append(op.mapped(lambda t: t if t.is_weight else _map(t, TOKENS, way)))
    return Block(tuple(ops))


def _gather(block: Block, op: Op, ops: list[Op], gathered: dict, way: str, wanted) -> Op:
    """Let `op` read its wanted operands whole, and add the gathers that this needs to `ops` once."""

    def read(tensor):
        if tensor.is_weight or not wanted(tensor) or not any(base(i) in TOKENS for i in tensor.indices):
            return tensor
        whole = gathered.get(tensor.name)
        if whole is None:
            name = f"{tensor.name}_all"
            name += f"_{way}" if name in block.makers else ""
            whole = gathered[tensor.name] = Tensor(name, tensor.indices)
            ops.append(Op((whole,), ((_map(tensor, TOKENS, way),),), "all_gather", way, again=op.again))
        return replace(whole, indices=tensor.indices)

    return op.reading(read)


def context_parallel(block: Block, way: str = "cp") -> Block:
    """Split the sequence. Keys and values are all-gathered before attention (Llama 3 report §3.3.2).

    The gathered copies are not saved. Data parallelism sums the weight gradients over the context-parallel devices too.

    >>> print(context_parallel(LLAMA)["v_all"])
    v_all[batch context kv_heads head_dim] = all_gather(v[batch context/cp kv_heads head_dim]) over cp
    """
    ops, gathered = [], {}
    for op in block.ops:
        attended = {t.name for t in op.args if block.is_attended(t)}
        if op.function == "append":
            raise ValueError("a block with a cache decodes; its context cannot be split")
        new = _gather(block, op, ops, gathered, way, lambda t, attended=attended: t.name in attended)
        kept = {t.name for t in gathered.values()}

        def split(tensor, kept=kept):
            return tensor if tensor.is_weight or tensor.name in kept else _map(tensor, ("seq", "expert_tokens"), way)

        ops.append(new.mapped(split))
    return Block(tuple(ops))


def _copies_attended(block: Block) -> list[str]:
    """Return the copies of keys and values that eager attention makes: it casts and repeats them after an exchange."""
    return [op.name for op in block.ops if op.function in ("cast", "repeat") and "context" in op.outs[0].indices]


def context_exchanged(block: Block, way: str = "cp") -> Block:
    """Split the sequence outside attention and the heads inside it (DeepSpeed-Ulysses), by all-to-alls.

    >>> [c.kind for c in context_exchanged(LLAMA).collectives]
    ['all_to_all', 'all_to_all', 'all_to_all', 'all_to_all']
    """
    attended = core_kernels(block).get("flash", ())
    core, ops, moved = {*attention_core(block), *attended, *_copies_attended(block)}, [], {}
    tokens, heads = ("seq", "expert_tokens"), ("heads", "kv_heads")

    def exchange(tensor, name, start, end):
        if tensor.name not in moved:
            made = block.made(tensor)
            if not any(base(i) in heads for i in made.indices):
                raise ValueError(f"{tensor.name} has no heads to split; gather the context instead: context_parallel")
            moved[tensor.name] = replace(_map(made, end, way), name=name)
            ops.append(Op((moved[tensor.name],), ((_map(made, start, way),),), "all_to_all", way))
        return replace(_map(tensor, end, way), name=name)

    for op in block.ops:
        inside = op.name in core

        def read(tensor, inside=inside):
            if tensor.is_weight:
                return tensor
            if inside and block.makers.get(tensor.name) and block.makers[tensor.name].name not in core:
                return exchange(tensor, f"{tensor.name}_heads", tokens, heads)
            if not inside and tensor.name in block.makers and block.makers[tensor.name].name in core:
                return exchange(tensor, f"{tensor.name}_tokens", heads, tokens)
            return _map(tensor, heads if inside else tokens, way)

        outs = tuple(_map(t, heads if inside else tokens, way) for t in op.outs)
        ops.append(replace(op.reading(read), outs=outs))
    return Block(tuple(ops))


def expert_parallel(block: Block, way: str = "ep") -> Block:
    """Spread the routed experts over devices that hold different tokens, with an all-to-all before and after them.

    Each device then runs 1/ep of the experts on the tokens that all ep devices send it, assumed to be an even share.

    >>> expert_parallel(MOE).collectives[0].elements
    batch*hidden*seq*top_k
    """
    if not any(op.function == "dispatch" for op in block.ops):
        raise ValueError("the block has no 'dispatch' line, hence no routed experts to spread")

    def spread(tensor):
        marks = {"experts": lambda i: _split(i, way), "expert_tokens": lambda i: i.replace("tokens", f"tokens*{way}")}
        return replace(tensor, indices=tuple(marks[base(i)](i) if base(i) in marks else i for i in tensor.indices))

    ops = []
    for op in block.ops:
        if op.function == "dispatch":
            sent = replace(op.outs[0], name=f"{op.name}_sent")
            ops += [replace(op, outs=(sent,)), Op((spread(op.outs[0]),), ((sent,),), "all_to_all", way, again=op.again)]
        elif op.function == "combine":
            back = replace(op.args[0], name=f"{op.args[0].name}_back")
            ops += [
                Op((back,), ((spread(op.args[0]),),), "all_to_all", way, again=op.again),
                replace(op, terms=((back, *op.args[1:]),)),
            ]
        elif any(base(i) == "expert_tokens" for t in op.args for i in t.indices):
            ops.append(op.mapped(spread))
        else:
            ops.append(op)
    return Block(tuple(ops))


def expert_tensor_parallel(block: Block, way: str = "etp", of: str = "tp") -> Block:
    """Split the experts' widths over `way` devices while the rest of the block is split over `of` devices.

    The gather before the experts and the sum after them run only over the devices that share an expert's width.

    >>> spread = MOE.then(tensor_parallel, sequence_parallel, expert_parallel)
    >>> print(expert_tensor_parallel(spread)["sent_all"].outs[0])
    sent_all[experts/ep expert_tokens*ep*etp/tp hidden]
    """

    def marked(index):
        name, *marks = index.split("/")
        if base(index) == "expert_ffn":
            return "/".join([name, *sorted(way if x == of else x for x in marks)])
        if base(index) == "expert_tokens" and of not in marks:  # gathered
            return "/".join([f"{name}*{way}", *sorted([*marks, of])])
        return index

    def split(tensor):
        is_routed = any(base(i) in ("expert_tokens", "expert_ffn") for i in tensor.indices)
        return replace(tensor, indices=tuple(map(marked, tensor.indices))) if is_routed else tensor

    def over(op):
        return way if op.over == of and any(base(i) == "expert_tokens" for t in op.args for i in t.indices) else op.over

    return Block(tuple(replace(op.mapped(split), over=over(op)) for op in block.ops))
