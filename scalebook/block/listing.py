"""A transformer block as a listing of tensor operations, one a line. Every cost is a sum over the listing.

    h[batch seq hidden] = rmsnorm(x[batch seq hidden], Gain[hidden])             a function
    q[batch seq heads head_dim] = h[batch seq hidden] Wq[hidden heads head_dim]  a contraction with a weight
    u[batch seq ffn] = h[batch seq hidden] Wu[hidden ffn] + Bu[ffn]              a sum of them, a bias
    y[batch seq hidden] = all_reduce(z[batch seq hidden]) over tp                a collective

`kv_heads/tp` is an index split over tp devices, and `expert_tokens*ep` is one gathered from ep devices. `seq` counts
the new tokens and `context` the tokens attended to. Means and variances of norms, and routing tables, are left out
because they are small.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache, cached_property
from typing import NamedTuple

from sympy import Add, Expr, Mul, S, factor_terms

from scalebook.block.operations import COLLECTIVES, DERIVED, RULES, Kernel, Op, Tensor, base
from scalebook.language.arguments import checked
from scalebook.language.notation import NOTATION, nearest, quoted, symbol

__all__ = ["Block", "Collective", "factored", "parse"]


class Collective(NamedTuple):
    """A collective of a block: its kind, its whole buffer in elements and bytes, and the dimension (`tp`) it is over.

    The whole buffer is the input of an all-reduce, a reduce-scatter or an all-to-all, and the result of an all-gather.
    """

    kind: str
    elements: Expr
    bytes: Expr
    ways: Expr


@dataclass(frozen=True)
class Block:
    """A transformer block: tensor operations in order, and their costs on one device for one micro-batch.

    Costs are SymPy expressions, such as `params`, `flops`, `traffic` and `saved`.

    >>> parse("z[batch seq ffn] = gelu(u[batch seq ffn])").vector_flops
    8*batch*ffn*seq
    """

    ops: tuple[Op, ...]

    def __post_init__(self):
        _check(self)

    def __hash__(self):  # a few lines are enough to tell blocks apart, and every call of a step hashes its blocks
        return hash((len(self.ops), self.ops[:1], self.ops[-1:]))

    def __str__(self):
        return "\n".join(map(str, self.ops))

    def then(self, *transformations) -> "Block":
        """Apply transformations one after another: `GPT.then(tensor_parallel, sequence_parallel, flash)`."""
        block = self
        for transformation in transformations:
            block = transformation(block)
        return block

    def __getitem__(self, name: str) -> Op:
        if name not in self.makers:
            raise LookupError(f"no line of the block makes {name!r}; {nearest(name, self.makers)}")
        return self.makers[name]

    @cached_property
    def makers(self) -> dict[str, Op]:
        return {t.name: op for op in self.ops for t in op.outs}

    def made(self, tensor: Tensor) -> Tensor:
        """Return a tensor with the indices under which it is computed: keys are computed over `seq`, not `context`."""
        maker = self.makers.get(tensor.name)
        return next(t for t in maker.outs if t.name == tensor.name) if maker else tensor

    def is_attended(self, tensor: Tensor) -> bool:
        """Return True for keys and values: tensors made over the new tokens, but read over the whole context."""
        pairs = zip(self.made(tensor).indices, tensor.indices, strict=True)
        return any((base(i), base(j)) == ("seq", "context") for i, j in pairs)

    @cached_property
    def users(self) -> dict[str, tuple[Op, ...]]:
        found = {}
        for op in self.ops:
            for name in {t.name for t in op.args}:
                found[name] = (*found.get(name, ()), op)
        return found

    @cached_property
    def indices(self) -> tuple[str, ...]:
        """The names of the dimensions of the block's tensors, such as "hidden", without splits such as "/tp"."""
        return tuple(sorted({base(i) for op in self.ops for t in (*op.outs, *op.args) for i in t.indices}))

    @cached_property
    def weights(self) -> tuple[Tensor, ...]:
        """The weights that the block holds. A weight whose name ends in _elsewhere belongs to another block."""
        used = dict.fromkeys(t for op in self.ops for t in op.args if t.is_weight)
        return tuple(t for t in used if not t.name.endswith("_elsewhere"))

    @cached_property
    def inputs(self) -> tuple[Tensor, ...]:
        """The tensors that come from outside the block, without its weights."""
        outside = {t.name: t for op in self.ops for t in op.args if not t.is_weight and t.name not in self.makers}
        return tuple(outside.values())

    @cached_property
    def kernels(self) -> tuple[Kernel, ...]:
        """The kernels that a device launches: one for each fused group, and one for each other operation."""
        groups = {}
        for op in self.ops:
            groups.setdefault(op.kernel or op.name, []).append(op)
        inner = {t.name for op in self.ops for t in op.outs if self.is_inner(t, "kernel")}
        return tuple(Kernel(name, tuple(ops), frozenset(inner)) for name, ops in groups.items())

    def is_inner(self, tensor: Tensor, tag: str) -> bool:
        """Return True if a tensor never leaves its group of operations.

        With `tag` "kernel" the group is a fused kernel, and no other operation reads the tensor. With "again" the group
        is recomputed in the backward pass, and no other operation keeps the tensor for it.
        """
        group = getattr(self.makers[tensor.name], tag)
        if not group or (tag == "kernel" and (tensor.kind == "fp32" or tensor == self.ops[-1].outs[0])):
            return False
        outside = [op for op in self.users.get(tensor.name, ()) if getattr(op, tag) != group]
        return not any(tag == "kernel" or tensor.name in {t.name for t in op.keeps} for op in outside)

    def is_rebuilt(self, tensor: Tensor) -> bool:
        """Return True if the backward pass rebuilds a tensor instead of reading a saved copy."""
        maker = self.makers.get(tensor.name)
        return maker is not None and (
            (maker.function == "all_gather" and not maker.held)
            or maker.dropped
            or self.is_inner(tensor, "kernel")
            or self.is_inner(tensor, "again")
        )

    @cached_property
    def saved_tensors(self) -> dict[str, Expr]:
        """Bytes that the forward pass keeps for the backward pass, by tensor."""
        return self.kept(lambda op: op.keeps)

    def kept(self, reads: Callable[[Op], tuple[Tensor, ...]]) -> dict[str, Expr]:
        """Return bytes saved, by tensor, if each operation's backward pass needs the tensors that `reads` returns."""
        kept = {}

        def keep(tensor):
            if tensor.is_weight or tensor.name in kept:
                return
            if self.is_rebuilt(tensor):
                for arg in self.makers[tensor.name].args:
                    keep(arg)
            else:
                kept[tensor.name] = self.made(tensor).bytes

        for op in self.ops:
            entering = [t for t in op.args if t.name not in self.makers or self.makers[t.name].again != op.again]
            for tensor in (*reads(op), *(entering if op.again else ())):
                keep(tensor)
        return kept

    @cached_property
    def saved(self) -> Expr:
        """Bytes kept for the backward pass. A tensor that is used twice is counted once."""
        return factored(self.saved_tensors.values())

    @cached_property
    def flops(self) -> Expr:
        """FLOPs of contractions, scores above the diagonal included."""
        return factored(op.flops for op in self.ops)

    @cached_property
    def vector_flops(self) -> Expr:
        """FLOPs of element-wise operations, such as norms and activations."""
        return factored(op.vector_flops for op in self.ops)

    @cached_property
    def params(self) -> Expr:
        """Number of parameters that one device holds."""
        return factored(t.elements for t in self.weights)

    @cached_property
    def active_params(self) -> Expr:
        """Number of parameters that one token uses: of the routed experts only `top_k`."""
        return factored(t.visited("top_k") for t in self.weights)

    @cached_property
    def traffic(self) -> Expr:
        """Bytes moved to and from memory: each kernel reads its operands and writes its results once."""
        return factored(kernel.traffic for kernel in self.kernels)

    @cached_property
    def cache(self) -> Expr:
        """Bytes of the key-value cache that the block attends to."""
        return factored(t.bytes for op in self.ops for t in op.outs if op.function == "append")

    @cached_property
    def collectives(self) -> tuple[Collective, ...]:
        whole = [(op, op.outs[0] if op.function == "all_gather" else op.args[0]) for op in self.ops if op.is_collective]
        return tuple(Collective(op.function, t.elements, t.bytes, symbol(op.over)) for op, t in whole)


def factored(costs: Iterable[Expr]) -> Expr:
    """Return the sum of products of symbols with common factors in front. Faster than SymPy's factor_terms.

    >>> factored([symbol("batch") * symbol("seq") / 2, symbol("seq") * symbol("hidden")])
    seq*(batch + 2*hidden)/2
    """
    total = Add(*costs)
    content, whole = total.primitive()
    terms = Add.make_args(whole)
    powers = [dict(x.as_base_exp() for x in Mul.make_args(term) if not x.is_Number) for term in terms]
    shared = Mul(*(_shared(b, [x[b] for x in powers]) for b in powers[0] if all(b in x for x in powers)))
    if shared is S.One:  # a number alone may stand in the sum
        return factor_terms(total)
    return content * shared * Add(*(term / shared for term in terms))


def _shared(base, exponents):
    apart = {*exponents}  # mostly one, and SymPy compares numbers slowly
    return base ** min(apart, key=abs) if len({x > 0 for x in apart}) == 1 else S.One


@checked
def parse(listing: str) -> Block:
    """Read a block from text, one operation a line, as the module's docstring describes; `#` starts a comment.

    Raises ValueError for a malformed line and LookupError, with the nearest name, for an unknown dimension or function.

    >>> parse("y[batch seq] = x[batch hiden] W[hiden seq]")
    Traceback (most recent call last):
        ...
    LookupError: line 1: 'hiden' is no index; did you mean 'hidden', 'dp_unhidden' or 'hiding_tokens'?
    """
    ops = []
    for number, line in enumerate(listing.splitlines(), 1):
        if line := line.partition("#")[0].strip():
            try:
                ops.append(_read(line))
            except (ValueError, LookupError) as error:
                raise type(error)(f"line {number}: {error}") from None
    return Block(tuple(ops))


_TENSOR = r"\w+\s*\[[^\[\]]*\]"
_LINE = re.compile(
    rf"(?P<outs>{_TENSOR}(\s*,\s*{_TENSOR})*)\s*=\s*("
    rf"(?P<function>\w+)\s*\(\s*(?P<args>{_TENSOR}(\s*,\s*{_TENSOR})*)\s*\)(\s*over\s+(?P<over>\w+))?|"
    rf"(?P<terms>{_TENSOR}(\s+{_TENSOR})?(\s*\+\s*{_TENSOR}(\s+{_TENSOR})?)*))"
)


@cache  # blocks have many lines in common
def _read(line: str) -> Op:
    found = _LINE.fullmatch(line)
    if not found:
        raise ValueError(
            f"expected 'out[indices] = in[indices] In[indices]' or "
            f"'out[indices] = function(in[indices], ...)', not {quoted(line)}"
        )
    outs, function, over = _tensors(found["outs"]), found["function"] or "", found["over"] or ""
    terms = (_tensors(found["args"]),) if function else tuple(map(_tensors, found["terms"].split("+")))
    if function and (name := function.removesuffix("_backward")) not in RULES:
        raise LookupError(f"{quoted(function)} is no function; {nearest(name, RULES)}")
    if (function in COLLECTIVES) != bool(over):
        raise ValueError(
            f"{function or 'a contraction'} {'needs' if not over else 'takes no'} 'over <ways>': {quoted(line)}"
        )
    if over and over not in NOTATION:
        raise LookupError(f"{quoted(over)} is no letter to split over; {nearest(over, ['tp', 'cp', 'ep', 'dp'])}")
    return Op(outs, terms, function, over)


def _tensors(text: str) -> tuple[Tensor, ...]:
    found = tuple(Tensor(name, tuple(indices.split())) for name, indices in re.findall(r"(\w+)\s*\[([^\[\]]*)\]", text))
    for index in (i for t in found for i in t.indices):
        for word in re.split(r"[/*]", index):
            if word not in DERIVED and word not in NOTATION:
                raise LookupError(f"{quoted(word)} is no index; {nearest(word, [*NOTATION, *DERIVED])}")
    return found


def _check(block: Block):
    """Check that every tensor is made once and read as it was made, and that contractions add no index."""
    made = {}
    for op in block.ops:
        for t in op.args:
            first = made.setdefault(t.name, t)
            if str(first.indices).replace("context", "seq") != str(t.indices).replace("context", "seq"):
                raise ValueError(f"{t.name} is first {first} and then read as {t}")
        for t in op.outs:
            if t.name in made:
                raise ValueError(f"{t.name} is made twice, or read before it is made: {op}")
            made[t.name] = t
        for term in () if op.function else op.terms:
            if len(term) > 1 and (odd := set(op.outs[0].indices) - {i for t in term for i in t.indices}):
                raise ValueError(f"{sorted(odd)[0]!r} stands in the result but in no operand: {op}")
