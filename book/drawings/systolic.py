"""A product executed on a systolic array, multiplier by multiplier, to draw it and to check `array_cycles`."""

import numpy as np

__all__ = ["execute"]


def _cut(left, weight, side):
    """Return both factors padded to whole tiles, the tiles of the weight, and their places."""
    inner, columns = weight.shape
    deep, wide = -(-inner // side), -(-columns // side)
    left = np.pad(left, ((0, 0), (0, deep * side - inner)))
    weight = np.pad(weight, ((0, deep * side - inner), (0, wide * side - columns)))
    places = [(k * side, j * side) for k in range(deep) for j in range(wide)]
    return left, np.array([weight[k : k + side, j : j + side] for k, j in places]), np.array(places)


def execute(left, weight, side: int, load: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Run a product on an array of `side` x `side` multipliers, cycle by cycle.

    Returns the product and, for every cycle, a mask of the busy multipliers.

    >>> left, weight = np.arange(6).reshape(3, 2), np.arange(4).reshape(2, 2)
    >>> product, busy = execute(left, weight, side=2)
    >>> bool((product == left @ weight).all()), len(busy)
    (True, 7)
    """
    rows, load, here = len(left), side if load is None else load, np.arange(side)
    padded, held, places = _cut(left, weight, side)
    starts = load + np.arange(len(held)) * max(rows, load)
    product = np.zeros((rows, places[-1][1] + side), np.result_type(left, weight))
    values, sums = np.zeros((2, side, side), product.dtype)
    tile, line = np.full((2, side, side), -1)  # tile and row of the number in each multiplier; -1 if it has none
    busy = [tile >= 0] * load
    for now in range(load, starts[-1] + rows + 2 * side - 2):
        values, tile, line = (np.roll(x, 1, axis=1) for x in (values, tile, line))
        coming = now - starts[:, None] - here  # row of each tile entering at the left; lower lines lag
        on = (coming >= 0) & (coming < rows)
        tile[:, 0], line[:, 0] = np.where(on.any(0), on.argmax(0), -1), np.where(on, coming, 0).sum(0)
        values[:, 0] = padded[line[:, 0], places[tile[:, 0], 0] + here]
        above = np.vstack([np.zeros((1, side), sums.dtype), sums[:-1]])
        sums = np.where(tile >= 0, above + values * held[tile, here[:, None], here], 0)
        done = tile[-1] >= 0
        np.add.at(product, (line[-1, done], (places[tile[-1], 1] + here)[done]), sums[-1, done])
        busy.append(tile >= 0)
    return product[:, : weight.shape[1]], np.array(busy)
