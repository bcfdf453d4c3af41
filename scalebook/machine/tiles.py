"""Efficient shapes: losses of a matrix product from partial tiles, partial waves and uneven sharding.

>>> from scalebook.tables import accelerators
>>> row = shapes(accelerators.h100, rows=4096, weight_columns=8192, tp=1, copies=1, tile_rows=128, tile_columns=256)
>>> row.tiles, row.waves, round(row.fill, 3)
(1024.0, 8.0, 0.97)
"""

from sympy import Eq, Min, Mod, Piecewise, Rational

from scalebook.language import Sheet, formula, formulas_of
from scalebook.language.defaults import equations

from .kernels import one_core, tiles, waves

_WHOLE = {"columns that each device has as many of": lambda weight_columns, tp: Eq(Mod(weight_columns, tp), 0)}


@formula("columns", "narayanan2021 §2.3", domain=_WHOLE)
def sharded_columns(weight_columns, tp):
    """Columns of a weight on each device if tensor parallelism splits it by columns.

    >>> sharded_columns(weight_columns=28672, tp=8)
    3584.0
    """
    return weight_columns / tp


_OWN = equations(__name__)  # those of tiles.toml


def _loaded(size):
    """Return the relative load rate of rows of `size` 16-bit numbers, by their alignment: 16, 4 or 8, or 2 bytes."""
    even = Piecewise((Rational(64, 100), Eq(Mod(size, 2), 0)), (Rational(29, 100), True))
    return Piecewise((1, Eq(Mod(size, 8), 0)), (even, True))


@formula("aligned_share", "anthony2024 §3", "nvidia-ptx cp.async")
def aligned_share(columns, inner):
    """Share of the rate that a product reaches if its rows of 16-bit numbers are not aligned to 16 bytes.

    The values are the A100's, fitted on even rows of `gemm_eleuther`. The V100 reaches 0.7 with even sizes.

    >>> aligned_share(columns=50304, inner=768), aligned_share(columns=50257, inner=768)
    (1.0, 0.29)
    """
    return Min(_loaded(columns), _loaded(inner), evaluate=False)


shapes = Sheet(
    "shape of a product", sharded_columns, one_core, tiles, waves, _OWN.tile_efficiency, _OWN.wave_efficiency,
    _OWN.fill,
    doc="Efficiency of a device's cores with whole tiles and whole waves, for a weight split by columns.",
)  # fmt: skip

__all__ = [*formulas_of(__name__), "shapes"]
