"""Shapes of models: size and aspect say the same as width and depth, and the tables' shapes make their sizes."""

import numpy as np
import pytest

from scalebook.tables import models
from scalebook.training import shapes

POSTERS = [key for key in models if key.startswith("poster")]


@pytest.mark.parametrize("key", POSTERS)
def test_the_posters_shapes_are_their_generators(key):
    """Its rule (`calculon-huge`): of the widths in steps of 1,024 the one nearest to the line of aspects."""
    row = models[key]
    hidden = np.arange(24, 193) * 1024
    aspect = 192 + (row.layers - 128) / 3
    assert row.hidden == hidden[np.abs(hidden / row.layers / aspect - 1).argmin()]
    assert (row.heads, row.kv_heads, row.ffn) == (row.layers, row.layers, 4 * row.hidden)
    assert row.head_dim == round(row.hidden / row.layers) and row.max_context == 8192
    head = round(row.hidden / row.layers / 32) * 32  # of this size when it counts parameters
    counted = row.layers * (8 * row.hidden**2 + 4 * row.hidden * row.heads * head)
    assert row.params == (1e12 if key == "poster_1t" else round(counted / 1e12) * 1e12)  # 1T: it prints 928G
    assert shapes.params_of_shape(row) == pytest.approx(counted, rel=0.022)
    assert shapes.params_of_shape(row) == pytest.approx(row.params, rel=0.075)
