"""The backward pass of a block, derived operation by operation from its forward pass."""

from dataclasses import replace
from functools import cache

from scalebook.block.listing import Block
from scalebook.block.operations import Op, Tensor, ways

__all__ = ["backward", "read_and_unread"]

# Each collective and the collective of its gradient (identity: the gradient passes unchanged).
DUAL = {"all_gather": "reduce_scatter", "reduce_scatter": "all_gather", "all_to_all": "all_to_all", "all_reduce": ""}
PASS = ("add", "all_reduce")


def backward(block: Block) -> Block:
    """Return the backward pass of a block: operations for the gradient `d_x` of each tensor and for recomputed tensors.

    Gradients of a tensor that is used several times are summed. A gradient that sums over a split index is all-reduced,
    or reduce-scattered if the forward pass gathered that tensor. Weight gradients are sums over this device's tokens
    only: the data-parallel step reduces them. Raises ValueError for a block that decodes.

    >>> from scalebook.block.listing import parse
    >>> print(backward(parse("y[batch seq ffn] = x[batch seq hidden] W[hidden ffn]")))
    d_W[hidden ffn] = d_y[batch seq ffn] x[batch seq hidden]
    d_x[batch seq hidden] = d_y[batch seq ffn] W[hidden ffn]
    """
    return _Pass(block).run()


@cache
def read_and_unread(back: Block) -> tuple[Block, Block]:
    """Split a backward pass in two: operations whose results are used, and recomputed ones whose results are not.

    If a whole block is recomputed, its last product and its last residual sum are unused: the next block has saved the
    sum as its input. Compilers skip both, and so do libraries that stop recomputing once every saved tensor is rebuilt.

    >>> from scalebook.block import LLAMA, full
    >>> print([op.name for op in read_and_unread(backward(full(LLAMA)))[1].ops])
    ['down_again', 'y_again']
    """
    read, parts = set(), ([], [])
    for op in reversed(back.ops):
        is_read = any(t.is_gradient or t.name in read for t in op.outs)
        parts[not is_read].insert(0, op)
        if is_read:
            read |= {t.name for t in op.args}
    return tuple(Block(tuple(part)) for part in parts)


class _Pass:
    """The state of one derivation: lines so far, gradients still to be summed, and recomputed tensors."""

    def __init__(self, block: Block):
        if cache := next((op for op in block.ops if op.function == "append"), None):
            raise ValueError(f"a block that decodes has no backward pass: {cache}")
        self.block, self.ops, self.again = block, [], {}
        self.values: dict[str, list[Tensor]] = {}  # gradients that are ready
        self.terms: dict[str, dict[tuple, list]] = {}  # products to sum, by kernel and ways they are partial over

    def run(self) -> Block:
        result = self.block.ops[-1].outs[0]
        self.values[result.name] = [replace(result, name=f"d_{result.name}")]
        for op in reversed(self.block.ops):
            if op.function == "topk" and op.name not in self.block.users:  # an indexer has a loss of its own
                self.values[op.name] = [replace(op.outs[0], name=f"d_{op.name}")]
            gradients = [self.gradient(out) for out in op.outs]
            if any(gradients):
                kernel = op.kernel and f"{op.kernel}_backward"
                if op.function:
                    self.function(op, gradients, kernel)
                else:
                    self.contraction(op, gradients[0], kernel)
        for tensor in self.block.inputs:
            self.gradient(tensor)
        return Block(tuple(self.ops))

    def contraction(self, op: Op, d_out: Tensor, kernel: str):
        for term in op.terms:
            if len(term) == 1:
                self.emit((replace(term[0], name=f"d_{term[0].name}"),), ((d_out,),), "sum", kernel)
                continue
            for tensor, other in (term, term[::-1]):
                product = (d_out, self.at_hand(other, kernel))
                if tensor.is_weight:
                    self.emit((replace(tensor, name=f"d_{tensor.name}"),), (product,), "", kernel)
                else:
                    summed = {i for t in product for i in t.indices} - set(tensor.indices)
                    partial = tuple(sorted({way for i in summed for way in ways(i)}))
                    self.terms.setdefault(tensor.name, {}).setdefault((kernel, partial), []).append((tensor, product))

    def function(self, op: Op, gradients: list[Tensor | None], kernel: str):
        d_out, args = gradients[0], op.args
        if op.function in PASS:
            for tensor in args:
                if tensor.is_weight:
                    self.emit((replace(tensor, name=f"d_{tensor.name}"),), ((d_out,),), "sum", kernel)
                else:
                    self.values.setdefault(tensor.name, []).append(d_out)
            return
        shared = {t.name for t in args if len(self.block.users[t.name]) > 1}
        d_args = tuple(
            replace(t, name=self.fresh(f"d_{t.name}_part" if t.name in shared else f"d_{t.name}")) for t in args
        )
        if op.function in DUAL:
            self.ops.append(Op(d_args, ((d_out,),), DUAL[op.function], op.over))
        else:
            kept = (*(self.at_hand(t, kernel) for t in op.keeps), *(t for t in args if t.is_weight))
            self.emit(d_args, ((d_out, *kept),), f"{op.function}_backward", kernel)
        for tensor, d_tensor in zip(args, d_args, strict=True):
            if not tensor.is_weight:
                self.values.setdefault(tensor.name, []).append(d_tensor)

    def gradient(self, tensor: Tensor) -> Tensor | None:
        """Sum the gradients that reached a tensor. A mask, a statistic or an unused result receives none."""
        parts = self.values.pop(tensor.name, [])
        gathers = self.gathers(tensor)
        groups = self.terms.pop(tensor.name, {})
        alone = len(parts) + len(groups) == 1
        for (kernel, partial), terms in groups.items():
            name = self.fresh(f"d_{tensor.name}") if alone else self.fresh(f"d_{tensor.name}_part")
            left = [way for way in partial if way not in gathers]
            d_tensor = replace(terms[0][0], name=f"{name}_partial" if left else name)
            self.emit((d_tensor,), tuple(product for _, product in terms), "", kernel)
            for number, way in enumerate(left, 1):
                summed = replace(d_tensor, name=name if number == len(left) else f"{name}_{way}")
                self.ops.append(Op((summed,), ((d_tensor,),), "all_reduce", way))
                d_tensor = summed
            parts.append(d_tensor)
        if len(parts) > 1:
            total = replace(tensor, name=self.fresh(f"d_{tensor.name}"))
            self.emit((total,), (tuple(parts),), "add", "")
            return total
        return replace(parts[0], indices=tensor.indices) if parts else None

    def gathers(self, tensor: Tensor) -> set[str]:
        """Return the ways over which a tensor was gathered. Its gradient's reduce-scatters sum over them."""
        maker = self.block.makers.get(tensor.name)
        if maker is None or maker.function != "all_gather":
            return set()
        return {maker.over} | self.gathers(maker.args[0])

    def at_hand(self, tensor: Tensor, kernel: str) -> Tensor:
        block = self.block
        if tensor.is_weight or not block.is_rebuilt(tensor):
            return tensor
        maker = block.makers[tensor.name]
        inside = block.is_inner(tensor, "kernel")
        key = (tensor.name, inside)
        if key not in self.again:
            if inside or not maker.again:
                self.rebuild(maker, kernel if inside else "", inside)
            else:
                for op in block.ops:
                    if op.again == maker.again and (op.name, False) not in self.again:
                        self.rebuild(op, op.kernel, False)
        return replace(self.again[key], indices=tensor.indices)

    def rebuild(self, op: Op, kernel: str, inside: bool):
        """Repeat a line of the forward pass. Inside a fused kernel's backward pass, repeat its inner operands too."""

        def read(tensor):
            in_group = op.again and not inside and self.again.get((tensor.name, False))
            return replace(in_group, indices=tensor.indices) if in_group else self.at_hand(tensor, kernel)

        repeated = op.reading(read)
        outs = tuple(replace(t, name=f"{t.name}_{'inner' if inside else 'again'}") for t in op.outs)
        if inside:
            outs = outs[:1]
        self.again.update({(old.name, inside): new for old, new in zip(op.outs, outs, strict=False)})
        self.ops.append(replace(repeated, outs=outs, kernel=kernel, again=""))

    def emit(self, outs, terms, function, kernel):
        self.ops.append(Op(outs, terms, function, kernel=kernel))

    def fresh(self, name: str) -> str:
        taken = {t.name for op in self.ops for t in op.outs}
        number, found = 2, name
        while found in taken or f"{found}_partial" in taken:
            found, number = f"{name}_{number}", number + 1
        return found
