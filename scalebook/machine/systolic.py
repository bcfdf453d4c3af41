"""Systolic arrays: a square of multipliers through which a product flows, and the cost of filling and padding it.

Each multiplier keeps one weight. Rows of the other factor enter from the left, and sums leave at the bottom.
"""

from sympy import Max, ceiling

from scalebook.language import Sheet, formula, formulas_of, same
from scalebook.language.defaults import equations
from scalebook.language.renamed import renamed

_OWN = equations(__name__)  # those of systolic.toml


load_by_rows = same(
    "load_by_rows", "load_cycles", "array_side", "samajdar2020",
    "Cycles to load a tile of weights that enters at the top, one row per cycle.",
)  # fmt: skip


@formula("array_cycles", "kung1982", given=[_OWN.array_tiles, load_by_rows])
def array_cycles(rows, array_tiles, load_cycles, array_side):
    """Cycles of a product if the next tile's weights load while the current tile is in use.

    >>> array_cycles(rows=1024, inner=128, columns=128, array_side=128)
    1406.0
    """
    between = Max(rows, load_cycles, evaluate=False)
    return load_cycles + (array_tiles - 1) * between + rows + 2 * array_side - 2


@formula("array_efficiency", "samajdar2020", given=[array_cycles])
def array_efficiency(rows, inner, columns, array_cycles, array_side):
    """Useful multiplications of a product, divided by its cycles times the multipliers of the array.

    >>> round(array_efficiency(rows=8, inner=4096, columns=4096, array_side=256), 4)
    0.031
    """
    return rows * inner * columns / (array_side**2 * array_cycles)


def _fill(width, array_side):
    """Return the share of an array's width that is used, since a partial array is padded with zeros."""
    return width / (array_side * ceiling(width / array_side))


@formula("attention_efficiency", "kung1982", "jax-tpu-info")
def attention_efficiency_arrays(attention_whole, head_dim, array_side):
    """Efficiency of fused attention with keys and values in an array; heads narrower than it are padded.

    >>> attention_efficiency_arrays(attention_whole=0.7, head_dim=128, array_side=256)
    0.35
    """
    return attention_whole * _fill(head_dim, array_side)


@formula("attention_efficiency", "kung1982", "jax-tpu-info")
def attention_efficiency_arrays_latent(attention_whole, nope_dim, rope_dim, v_dim, array_side):
    """Share of peak of latent attention on a TPU's systolic array, with key and value widths padded to its side.

    >>> known = dict(attention_whole=0.7, nope_dim=128, rope_dim=64, v_dim=128)
    >>> round(attention_efficiency_arrays_latent(known, array_side=256), 4)
    0.4375
    """
    key_dim = nope_dim + rope_dim
    taken = key_dim / _fill(key_dim, array_side) + v_dim / _fill(v_dim, array_side)
    return attention_whole * (key_dim + v_dim) / taken


@formula("grouped_efficiency", "kung1982", "jax-tpu-info")
def grouped_efficiency_arrays(grouped_whole, hidden, expert_ffn, etp, array_side):
    """Share of peak of expert products on a TPU's systolic array, with sides padded to multiples of its side.

    >>> known = dict(grouped_whole=0.3, hidden=2880, expert_ffn=2880, array_side=256)
    >>> [grouped_efficiency_arrays(known, etp=x).__round__(4) for x in (1, 16)]
    [0.2637, 0.1978]
    """
    return grouped_whole * _fill(hidden, array_side) * _fill(expert_ffn / etp, array_side)


systolic = Sheet(
    "systolic array", _OWN.array_tiles, load_by_rows, array_cycles, array_efficiency,
    doc="A product on one systolic array that loads the next weights during computation.",
)  # fmt: skip


__all__ = [*formulas_of(__name__), "systolic"]

__getattr__ = renamed(__name__)
