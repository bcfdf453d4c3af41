"""Shapes of models: size and aspect say the same as width and depth, and the tables' shapes make their sizes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalebook.tables import models
from scalebook.training import shapes

POSTERS = [key for key in models if key.startswith("poster")]


@given(st.floats(1e6, 1e15), st.floats(1, 1e4))
def test_size_and_aspect_are_width_and_depth(params, aspect):
    row = shapes.shape(params=params, aspect=aspect, seq=8192)
    assert shapes.params_of_shape(row) == pytest.approx(params)
    assert shapes.aspect_of_shape(hidden=row.hidden, layers=row.layers) == pytest.approx(aspect)
    assert row.layers * row.block_params == pytest.approx(params)


@pytest.mark.parametrize("key", POSTERS)
def test_the_posters_line(key):
    row = models[key]
    assert abs(row.layers * (150 + row.layers / 3) - row.hidden) < 512
    assert shapes.params_of_shape(row) == pytest.approx(row.params, rel=0.075)
