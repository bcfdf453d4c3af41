"""Shapes that fit: what whole tiles, whole waves of them and whole shares of devices leave of a matrix product.

The result is cut into tiles, one for a core at a time.  Tiles at the edge stick out over the result, and in the last
wave some cores have none: both are work, or time, that nobody asked for.  `machine.kernels` has the times.

>>> from scalebook.tables import accelerators
>>> row = shapes(accelerators.h100, rows=4096, weight_columns=8192, tp=1, copies=1, tile_rows=128, tile_columns=256)
>>> row.tiles, row.waves, round(row.fill, 3)
(1024.0, 8.0, 0.97)
"""

from sympy import Eq, Min, Mod, Piecewise, Rational, ceiling

from scalebook.language import Sheet, formula

from .kernels import one_core, tiles, waves

__all__ = [
    "aligned_share", "fill", "least_wave_efficiency", "padded_vocab", "shapes", "sharded_columns", "tile_efficiency",
    "wave_efficiency", "whole_waves_columns",
]  # fmt: skip

_WHOLE = {"columns that each device has as many of": lambda weight_columns, tp: Eq(Mod(weight_columns, tp), 0)}


@formula("columns", "narayanan2021 §2.3", domain=_WHOLE)
def sharded_columns(weight_columns, tp):
    """What tensor parallelism leaves each device of a weight that it splits by columns.

    >>> sharded_columns(weight_columns=28672, tp=8)
    3584.0
    """
    return weight_columns / tp


@formula("padded_vocab", "narayanan2021 §5")
def padded_vocab(vocab, pad_multiple, tp):
    """Words that nobody says are added, until each device has a multiple of `pad_multiple`.

    The vocabulary of GPT-2, as nanoGPT pads it for one device and Megatron for eight:

    >>> padded_vocab(vocab=50257, pad_multiple=64, tp=1), padded_vocab(vocab=50257, pad_multiple=128, tp=8)
    (50304.0, 51200.0)
    """
    return pad_multiple * tp * ceiling(vocab / (pad_multiple * tp))


@formula("tile_efficiency", "nvidia-matmul-guide §3.1", given=[tiles])
def tile_efficiency(rows, columns, copies, tiles, tile_rows, tile_columns):
    """What was asked for, over what whole tiles work out.

    >>> tile_efficiency(rows=257, columns=256, tile_rows=256, tile_columns=128)
    0.501953125
    """
    return copies * rows * columns / (tiles * tile_rows * tile_columns)


@formula("wave_efficiency", "nvidia-matmul-guide §3.2", given=[tiles, waves])
def wave_efficiency(tiles, waves, cores):
    """Tiles over what all cores could have worked on in as many waves.

    >>> wave_efficiency(tiles=109, cores=108)
    0.5046296296296297
    """
    return tiles / (cores * waves)


@formula("wave_efficiency", "nvidia-matmul-guide §3.2")
def least_wave_efficiency(waves):
    """The worst that so many waves can do, as nearly as there are many cores: the last of them has but one tile.

    >>> least_wave_efficiency(waves=8)
    0.875
    """
    return 1 - 1 / waves


@formula("fill", "nvidia-matmul-guide §3", given=[tile_efficiency, wave_efficiency])
def fill(tile_efficiency, wave_efficiency):
    """Both at once: what was asked for, over what all cores could have done in that time.

    >>> fill(rows=4096, columns=4864, copies=1, tile_rows=256, tile_columns=256, cores=304)
    1.0
    """
    return tile_efficiency * wave_efficiency


def _loaded(size):
    """What loads of 16, of 4 or 8, and of 2 bytes leave of the rate, of 16-bit numbers so many to a row."""
    even = Piecewise((Rational(64, 100), Eq(Mod(size, 2), 0)), (Rational(29, 100), True))
    return Piecewise((1, Eq(Mod(size, 8), 0)), (even, True))


@formula("aligned_share", "anthony2024 §3", "nvidia-ptx cp.async")
def aligned_share(columns, inner):
    """Rows of 16-bit numbers are loaded 16 bytes at a time where all begin at multiples of that, else 8 or 4; two bytes
    have no such copy at all, and go through registers.

    Of the A100: fitted on the even rows of the products in `gemm_eleuther` that have such sizes, of which even ones
    reach 0.54 to 0.73 by their shape: two thirds where rows to sum over are not aligned, and by the odd rows 0.54 where
    the columns are not.  The V100 reaches 0.7 with even sizes, and the MI250X does not care.

    >>> aligned_share(columns=50304, inner=768), aligned_share(columns=50257, inner=768)
    (1.0, 0.29)
    """
    return Min(_loaded(columns), _loaded(inner), evaluate=False)


@formula("columns", "nvidia-matmul-guide §3.2")
def whole_waves_columns(waves, cores, rows, tile_rows, tile_columns):
    """The columns at which rows of whole tiles need just so many waves, none of them short of a tile.

    It is a whole number of tiles where the tiles of a column of them divide the tiles of those waves.

    >>> whole_waves_columns(waves=8, cores=132, rows=4096, tile_rows=128, tile_columns=256)
    8448.0
    """
    return waves * cores * tile_columns / ceiling(rows / tile_rows)


shapes = Sheet(
    "shape of a product", sharded_columns, one_core, tiles, waves, tile_efficiency, wave_efficiency, fill,
    doc="What whole tiles and whole waves of them leave of a device's cores, for a weight split by columns.",
)  # fmt: skip
