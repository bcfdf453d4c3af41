"""Tensors, operations and kernels: the parts of a block, and what each costs.

>>> Tensor("q", ("batch", "seq", "heads/tp", "head_dim")).bytes
activation_bits*batch*head_dim*heads*seq/(8*tp)
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from typing import NamedTuple

from sympy import Add, Expr, Min, Mul, S, sympify

from scalebook.language.notation import symbol
from scalebook.language.rules import condition
from scalebook.language.stanzas import tables_of

__all__ = ["Kernel", "Op", "Tensor"]

FUNCTIONS = tables_of(__package__, "functions.toml")


DERIVED = FUNCTIONS["sizes"]  # dimensions whose lengths follow from others
TOKENS = ("seq", "context", "expert_tokens")  # indices that count tokens
COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all")


class Rule(NamedTuple):
    """What a function keeps for its backward pass ("inputs", "outputs", "mask" or "") and its vector FLOPs per element.

    If it is `whole`, one device must hold the whole last dimension of its operand.
    """

    keeps: str
    forward: int
    backward: int
    whole: bool = False


class Product(NamedTuple):
    """The size of `copies` matrix products, each of a rows x inner matrix and an inner x columns matrix."""

    rows: Expr
    columns: Expr
    inner: Expr
    copies: Expr


RULES = {name: Rule(**x) for name, x in FUNCTIONS["functions"].items()} | dict.fromkeys(COLLECTIVES, Rule("", 0, 0))


@cache
def derived(index: str) -> Expr:
    """Return the length of a dimension in DERIVED.  No import needs one: SymPy's first sum loads its tensors."""
    function = condition(DERIVED[index], Min=partial(Min, evaluate=False))
    return sympify(function(*map(symbol, function.__code__.co_varnames)))


@cache
def size(index: str) -> Expr:
    """Return the length of a tensor's dimension on one device, as an expression: heads/tp for "heads/tp"."""
    base, *marks = re.split(r"(?=[/*])", index)
    known = derived(base) if base in DERIVED else symbol(base)
    return Mul(known, *(symbol(m[1:]) if m[0] == "*" else 1 / symbol(m[1:]) for m in marks))


@cache
def base(index: str) -> str:
    """Return the name of a tensor's dimension without splits: "seq" for "seq/cp/tp"."""
    return re.split(r"[/*]", index)[0]


@cache
def ways(index: str) -> frozenset[str]:
    """Return the parallelism that splits a tensor's dimension: {"tp", "cp"} for "seq/cp/tp"."""
    return frozenset(re.findall(r"/(\w+)", index))


_BITS = {  # an activation's gradient is as wide as the activation
    "fp32": "fp32_bits", "weight": "weight_bits", "weight gradient": "gradient_bits", "cache": "kv_bits",
    "mask": "mask_bits",
}  # fmt: skip


@cache
def _bytes(indices: tuple[str, ...], kind: str) -> Expr:
    return Mul(*map(size, indices), symbol(_BITS.get(kind, "activation_bits")) / 8)


@dataclass(frozen=True)
class Tensor:
    """A tensor of a block: its name and its dimensions, such as "seq/tp", which is split over tp devices."""

    name: str
    indices: tuple[str, ...]

    def __str__(self):
        return f"{self.name}[{' '.join(self.indices)}]"

    @cached_property
    def kind(self) -> str:
        """The kind of tensor, such as "weight" or "gradient", which its name encodes.

        >>> [Tensor(x, ()).kind for x in ("Wq", "d_Wq", "d_q", "k_cache", "mask", "fp32_logits", "q")]
        ['weight', 'weight gradient', 'gradient', 'cache', 'mask', 'fp32', 'activation']
        """
        name = self.name
        kinds = (
            ("fp32", name.startswith("fp32_")),
            ("weight", name[0].isupper()),
            ("weight gradient", name.startswith("d_") and name[2:3].isupper()),
            ("gradient", name.startswith("d_")),
            ("cache", name.endswith("_cache")),
            ("mask", name.startswith("mask")),
        )
        return next((kind for kind, is_named_so in kinds if is_named_so), "activation")

    @property
    def is_weight(self) -> bool:
        return self.kind == "weight"

    @property
    def is_gradient(self) -> bool:
        return self.kind in ("gradient", "weight gradient")

    @property
    def is_fp32(self) -> bool:
        """True if the tensor is held in 32 bits; a gradient is held like the tensor that it belongs to."""
        return self.name.removeprefix("d_").startswith("fp32_")

    @cached_property
    def elements(self) -> Expr:
        return Mul(*map(size, self.indices))

    @property
    def width(self) -> Expr:
        """Bytes per element of the tensor."""
        return _bytes((), self.kind)

    @property
    def bytes(self) -> Expr:
        return _bytes(self.indices, self.kind)

    def visited(self, by: str) -> Expr:
        return self.elements.subs(symbol("experts"), symbol(by)) if self.is_routed else self.elements

    @property
    def is_routed(self) -> bool:
        """True for a weight of routed experts."""
        return self.is_weight and base(self.indices[0]) == "experts"

    @property
    def read(self) -> Expr:
        """Bytes that a kernel reads. It reads a routed expert only if tokens of the batch visit it."""
        return self.visited("visited_experts") * self.width if self.is_routed else self.bytes


# Costs depend on indices alone, and the lines of a pass often differ only in the names of their tensors.


@cache
def _sum(costs: tuple[Expr, ...]) -> Expr:
    return Add(*costs)


@cache
def _multiplied(operands: tuple[tuple[str, ...], ...]) -> Expr:
    """Return the FLOPs of a contraction of two tensors, given by their indices."""
    return Mul(2, *map(size, {i for indices in operands for i in indices}))


@cache
def _products(made: tuple[str, ...], terms: tuple) -> tuple[Product, ...]:
    """Return the matrix products of contractions into a tensor, all given by their indices."""
    first, second = terms[0]
    kept, left, right = ({base(i) for i in x} for x in (made, first, second))
    sizes = {base(i): size(i) for i in (*first, *second)}
    groups = kept & left - right, kept & right - left, kept & left & right
    rows, columns, copies = (Mul(*(sizes[i] for i in sorted(group))) for group in groups)
    summed = [{i for indices in term for i in indices if base(i) not in kept} for term in terms]
    return tuple(Product(rows, columns, Mul(*map(size, x)), copies) for x in summed)


@dataclass(frozen=True)
class Op:
    """One operation of a block: `outs = function(args) over ways`, or without a function a sum of contractions.

    `kernel` names the fused kernel it belongs to, and `again` the group that the backward pass recomputes. The result
    of a gather that is `held` is kept for the backward pass; otherwise the backward pass gathers again. The backward
    pass recomputes a result that is `dropped` wherever it needs it, although other operations would keep it.
    """

    outs: tuple[Tensor, ...]
    terms: tuple[tuple[Tensor, ...], ...]
    function: str = ""
    over: str = ""
    kernel: str = ""
    again: str = ""
    held: bool = False
    dropped: bool = False

    def __str__(self):
        right = " + ".join(" ".join(map(str, term)) for term in self.terms)
        if self.function:
            right = f"{self.function}({', '.join(map(str, self.args))})" + (f" over {self.over}" if self.over else "")
        return f"{', '.join(map(str, self.outs))} = {right}"

    @property
    def name(self) -> str:
        """The name of the operation: the name of its first result."""
        return self.outs[0].name

    @cached_property
    def args(self) -> tuple[Tensor, ...]:
        return tuple(tensor for term in self.terms for tensor in term)

    def reading(self, change: Callable[[Tensor], Tensor]) -> "Op":
        """Return the operation with `change` applied to each tensor that it reads."""
        return replace(self, terms=tuple(tuple(map(change, term)) for term in self.terms))

    def mapped(self, change: Callable[[Tensor], Tensor]) -> "Op":
        """Return the operation with `change` applied to each tensor that it reads or makes."""
        return replace(self.reading(change), outs=tuple(map(change, self.outs)))

    @property
    def is_collective(self) -> bool:
        return self.function in COLLECTIVES

    @property
    def flops(self) -> Expr:
        """FLOPs of its contractions: a multiply and an add for every combination of the indices."""
        return _sum(tuple(map(_multiplied, self._contracted)))

    @cached_property
    def products(self) -> tuple[Product, ...]:
        """The operation's contractions as matrix products; a function such as a norm has none.

        An index of the result counts copies if both operands have it, rows if only the first has it, and columns if
        only the second has it; all others are summed over. Further contractions into the same result share its rows,
        columns and copies.
        """
        return _products(self.outs[0].indices, self._contracted) if self._contracted else ()

    @cached_property
    def _contracted(self) -> tuple[tuple[tuple[str, ...], ...], ...]:
        """The indices of both tensors of each contraction. A function such as a norm contracts none."""
        return () if self.function else tuple(tuple(t.indices for t in x) for x in self.terms if len(x) > 1)

    @property
    def vector_flops(self) -> Expr:
        """FLOPs of an element-wise operation: a number per element of its first operand (backward: first result)."""
        if not self.function:
            return S.Zero
        name, back, _ = self.function.partition("_backward")
        return RULES[name].backward * self.outs[0].elements if back else RULES[name].forward * self.args[0].elements

    @property
    def keeps(self) -> tuple[Tensor, ...]:
        """The tensors that the operation's backward pass reads, without weights."""
        if not self.function:
            kept = [t for term in self.terms if len(term) > 1 for t in term]
        else:
            keeps = RULES[self.function].keeps
            kept = {"inputs": self.args, "outputs": self.outs, "mask": self.outs[1:], "": ()}[keeps]
        return tuple(t for t in kept if not t.is_weight)

    @property
    def traffic(self) -> Expr:
        """Bytes read and written if the operation is a kernel of its own."""
        return Kernel(self.name, (self,), frozenset()).traffic


class Kernel(NamedTuple):
    """Operations that run as one kernel, and the tensors that never leave it."""

    name: str
    ops: tuple[Op, ...]
    inner: frozenset[str]

    @property
    def flops(self) -> Expr:
        return _sum(tuple(op.flops for op in self.ops))

    @property
    def traffic(self) -> Expr:
        """Bytes moved: each operand from outside is read once, and each result that leaves is written once."""
        written = {
            t.name: t.bytes if op.function != "append" else op.args[0].elements * t.width
            for op in self.ops
            for t in op.outs
            if not op.is_collective and t.name not in self.inner
        }
        made = {t.name for op in self.ops for t in op.outs}
        read = {t.name: t.read for op in self.ops for t in op.args if not op.is_collective and t.name not in made}
        return _sum((*read.values(), *written.values()))
