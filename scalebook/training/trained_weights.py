"""Which weights are trained: all of them, or low-rank adapters added to frozen weights (LoRA)."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from sympy import Expr, S

from scalebook.block import Block
from scalebook.block.work import stream, tensors_of, trained
from scalebook.language import Formula, formula, symbol
from scalebook.language.words import Named

__all__ = ["TRAINED", "Trained", "model_flops_frozen", "trained_share_adapters"]

# Matrices that have adapters, by their names in a block's listing.
_ATTENTION = ("Wq", "Wk", "Wv", "Wo")


@formula("trained_share", "hu2022-lora §4.2")
def trained_share_adapters(adapter_params, block_params, block_routed_params):
    """Parameters of adapters over all parameters of their blocks.

    >>> trained_share_adapters(adapter_params=1e6, block_params=1e9, block_routed_params=0)
    0.001
    """
    return adapter_params / (block_params + block_routed_params)


@formula("model_flops", "hu2022-lora §4.2", "chowdhery2022 appendix B")
def model_flops_frozen(global_batch, batch, tp, cp, layers, block_flops, block_matrix_flops, head_flops):
    """Model FLOPs of a step with frozen weights, which are multiplied twice: forward, and for the gradient of inputs.

    >>> model_flops_frozen(global_batch=1, batch=1, tp=1, cp=1, layers=2, block_flops="3 TFLOP",
    ...                    block_matrix_flops="2 TFLOP", head_flops="1 TFLOP") / 1e12
    16.0
    """
    return global_batch / batch * tp * cp * (layers * (3 * block_flops - block_matrix_flops) + 2 * head_flops)


@dataclass(frozen=True, eq=False, repr=False)
class Trained(Named):
    """A choice of the weights to train: all of them, or adapters. `beside` names the frozen matrices that get one."""

    name: str
    source: str
    beside: tuple[str, ...] = ()

    @property
    def is_frozen(self) -> bool:
        return bool(self.beside)

    def _adapted(self, block: Block) -> list:
        return [op for op in block.ops if not op.function and {t.name for t in op.args} & set(self.beside)]

    def saved(self, block: Block) -> dict[str, Expr]:
        """Return the bytes that a block saves for its backward pass, by tensor. What adapters save is not included."""
        if not self.is_frozen:
            return block.saved_tensors
        adapted = self._adapted(block)
        return block.kept(lambda op: () if not op.function and _weights(op) and op not in adapted else op.keeps)

    def adapters(self, block: Block) -> dict[str, Expr]:
        """Return a block's adapter parameters on a device, and the seconds of its kernels, by phase."""
        params, forward, inputs, weights = [S.Zero] * 4
        for op in self._adapted(block):
            rows, columns, inner, copies = op.products[0]
            params += copies * symbol("lora_rank") * (inner + columns)
            width = rows * copies * symbol("activation_bits") / 8
            forward += _streamed(op, width * (inner + 2 * columns))
            inputs += _streamed(op, width * (2 * inner + columns))
            weights += _streamed(op, width * (inner + columns))
        return {"params": params, "forward": forward, "input_gradient": inputs, "weight_gradient": weights}

    def of(self, f: Formula, is_gathered: bool) -> Formula:
        """Rewrite a formula of state or its exchange for adapters; all weights are gathered if `is_gathered`."""
        if not self.is_frozen or f.letter == "reduce_bits":
            return f
        widths = {"gradient_bits", "optimizer_bits", "moment_bits", "reduce_bits"} & {*f.inputs}
        if "weight_bits" in f.inputs and (
            f.letter == "optimizer_time" or (f.letter.startswith("dp_") and not is_gathered)
        ):
            widths |= {"weight_bits"}
        if not widths:
            return f
        rhs = _shared(f.rhs, frozenset(widths))
        return Formula(f"{f.name}_{self.name}", f.letter, rhs, (*f.sources, self.source), f.__doc__, domain=f.domain)


TRAINED = Trained.known  # by name, the default first


@cache
def _shared(rhs: Expr, widths: frozenset[str]) -> Expr:
    return rhs.xreplace({symbol(x): symbol("trained_share") * symbol(x) for x in widths})


def _weights(op) -> Iterable:
    return [t for t in op.args if t.is_weight]


def _streamed(op, traffic: Expr) -> Expr:
    return stream(trained(traffic, tensors_of([op])))


Trained("all", "chowdhery2022 appendix B")
Trained("lora", "hu2022-lora §4.2", _ATTENTION)
