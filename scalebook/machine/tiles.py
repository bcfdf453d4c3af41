"""Efficient shapes: losses of a matrix product from partial tiles, partial waves and uneven sharding.

>>> from scalebook.tables import accelerators
>>> row = shapes(accelerators.h100, rows=4096, weight_columns=8192, tp=1, copies=1, tile_rows=128, tile_columns=256)
>>> row.tiles, row.waves, round(row.fill, 3)
(1024.0, 8.0, 0.97)
"""

from sympy import Eq, Min, Mod, Piecewise, Rational, ceiling

from scalebook.language import Sheet, formula, formulas_of

from .kernels import one_core, tiles, waves

_WHOLE = {"columns that each device has as many of": lambda weight_columns, tp: Eq(Mod(weight_columns, tp), 0)}


@formula("columns", "narayanan2021 §2.3", domain=_WHOLE)
def sharded_columns(weight_columns, tp):
    """Columns of a weight on each device if tensor parallelism splits it by columns.

    >>> sharded_columns(weight_columns=28672, tp=8)
    3584.0
    """
    return weight_columns / tp


@formula("padded_vocab", "narayanan2021 §5")
def padded_vocab(vocab, pad_multiple, tp):
    """Vocabulary padded with unused entries until each device has a multiple of `pad_multiple` (here GPT-2, Megatron).

    >>> padded_vocab(vocab=50257, pad_multiple=128, tp=8)
    51200.0
    """
    return pad_multiple * tp * ceiling(vocab / (pad_multiple * tp))


@formula("tile_efficiency", "nvidia-matmul-guide §3.1", given=[tiles])
def tile_efficiency(rows, columns, copies, tiles, tile_rows, tile_columns):
    """Share of the arithmetic in a product's tiles that is part of the result; the rest is padding of partial tiles.

    >>> tile_efficiency(rows=257, columns=256, tile_rows=256, tile_columns=128)
    0.501953125
    """
    return copies * rows * columns / (tiles * tile_rows * tile_columns)


@formula("wave_efficiency", "nvidia-matmul-guide §3.2", given=[tiles, waves])
def wave_efficiency(tiles, waves, cores):
    """Share of the tile slots in all waves that hold a tile.

    >>> wave_efficiency(tiles=109, cores=108)
    0.5046296296296297
    """
    return tiles / (cores * waves)


@formula("wave_efficiency", "nvidia-matmul-guide §3.2")
def least_wave_efficiency(waves):
    """Worst wave efficiency with this many waves, in the limit of many cores: the last wave has a single tile.

    >>> least_wave_efficiency(waves=8)
    0.875
    """
    return 1 - 1 / waves


@formula("fill", "nvidia-matmul-guide §3", given=[tile_efficiency, wave_efficiency])
def fill(tile_efficiency, wave_efficiency):
    """Share of all cores' arithmetic, over all waves of a product, that is part of the result.

    >>> fill(rows=4096, columns=4864, copies=1, tile_rows=256, tile_columns=256, cores=304)
    1.0
    """
    return tile_efficiency * wave_efficiency


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


@formula("columns", "nvidia-matmul-guide §3.2")
def whole_waves_columns(waves, cores, rows, tile_rows, tile_columns):
    """Columns of a product whose tiles fill `waves` waves, if the number of tiles in a column divides `waves * cores`.

    >>> whole_waves_columns(waves=8, cores=132, rows=4096, tile_rows=128, tile_columns=256)
    8448.0
    """
    return waves * cores * tile_columns / ceiling(rows / tile_rows)


shapes = Sheet(
    "shape of a product", sharded_columns, one_core, tiles, waves, tile_efficiency, wave_efficiency, fill,
    doc="Efficiency of a device's cores with whole tiles and whole waves, for a weight split by columns.",
)  # fmt: skip

__all__ = [*formulas_of(__name__), "shapes"]
