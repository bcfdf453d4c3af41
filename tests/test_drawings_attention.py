"""The drawing of attention: as every drawing is, and with the numbers that NumPy finds."""

import numpy as np
import pytest
from scalebook.book.drawings.attention import KEYS, QUERIES, VALUES, WORDS, attention_weights, result_of, weights_of

from .test_schematics import (  # noqa: F401 (run here too)
    test_it_has_the_colours_of_the_vocabulary_in_both_schemes,
    test_it_is_well_formed_and_says_what_it_shows,
    test_its_text_stays_on_it_and_is_large_enough_on_a_phone,
)


@pytest.fixture
def scene():
    return attention_weights()


def test_its_numbers_are_those_of_attention(scene):
    weights = np.exp(np.array(QUERIES) @ np.array(KEYS).T / np.sqrt(2)) * np.tri(len(WORDS))
    weights /= weights.sum(1, keepdims=True)
    for row, made, word in zip(weights, weights @ np.array(VALUES), WORDS, strict=True):
        assert np.allclose(row[row > 0], list(weights_of(word).values())) and np.allclose(made, result_of(word))
        assert " ".join(f"{x:.1f}" for x in made) in scene.svg


def test_it_is_the_same_every_time(scene):
    assert scene._repr_html_() == attention_weights()._repr_html_()
