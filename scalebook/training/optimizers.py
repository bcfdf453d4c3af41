"""Optimizers: what each keeps per parameter, and how it updates a matrix that several devices share. One object each.

Muon leaves embeddings, the head, norms and biases to Adam. All keep a master copy of narrow weights.

>>> OPTIMIZERS["sgd"].state(symbol("params") * symbol("optimizer_bits"))
params*(-moment_bits + optimizer_bits)
"""

from dataclasses import dataclass

from sympy import Expr

from scalebook.language import symbol
from scalebook.language.words import Named

__all__ = ["OPTIMIZERS", "Optimizer"]


@dataclass(frozen=True, eq=False, repr=False)
class Optimizer(Named):
    """An optimizer, such as Adam or Muon. Creating one enters it in `OPTIMIZERS`.

    `moments` counts the moments that it keeps of each parameter, 1 or 2; with a `mode`, 1 is of matrices only. `mode`
    says how devices that hold parts of one matrix orthogonalize it; it is empty if there is nothing to orthogonalize.

    - "duplicated": they gather the matrix, and each orthogonalizes all of it.
    - "distributed": each multiplies its own part, and they sum the small matrix X X^T in every iteration.
    - "layer_sharded": each gets whole matrices of its own, orthogonalizes them, and sends the parts back.
    - "blockwise": each orthogonalizes its own part as if it were a matrix, so the update differs.
    """

    name: str
    source: str
    moments: int = 2
    mode: str = ""

    def state(self, held: Expr) -> Expr:
        """Return the bytes of this optimizer's state, given the bytes `held` that an optimizer with two moments has."""
        x = symbol
        if self.moments == 2:
            return held
        if not self.mode:
            return held.xreplace({x("optimizer_bits"): x("optimizer_bits") - x("moment_bits")})
        less = x("moment_bits") / x("optimizer_bits")
        pairs = (("block_params", "block_matrices"), ("block_routed_params", "block_routed_matrices"))
        return held.xreplace({x(every): x(every) - less * x(matrices) for every, matrices in pairs})


OPTIMIZERS = Optimizer.known  # by name, the default first


Optimizer("adam", "kingma2014 algorithm 1")
Optimizer("sgd", "sutskever2013 §2", moments=1)
Optimizer("muon", "jordan2024-muon", moments=1, mode="duplicated")
Optimizer("muon_distributed", "emerging-optimizers", moments=1, mode="distributed")
Optimizer("muon_layer_sharded", "megatron-6676", moments=1, mode="layer_sharded")
Optimizer("muon_blockwise", "emerging-optimizers", moments=1, mode="blockwise")
