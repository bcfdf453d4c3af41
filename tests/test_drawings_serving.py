"""Drawings of batches, caches, kernels and fetched weights: as every drawing, and with the package's numbers."""

import re

import pytest
from scalebook.book.drawings import serving as drawings

from scalebook.inference.step import decode_step
from scalebook.tables import accelerators, models
from tests.test_schematics import (  # noqa: F401 (what every drawing must be)
    test_it_has_the_colours_of_the_vocabulary_in_both_schemes,
    test_it_is_well_formed_and_says_what_it_shows,
    test_its_text_stays_on_it_and_is_large_enough_on_a_phone,
)

KNOWN = {
    "kernels_of_block": dict(model=models.llama3_70b, device=accelerators.h200.at("fp8")),
    "weights_fetched": dict(model=models.poster_96t, tp=64),
}


@pytest.fixture(params=drawings.__all__)
def scene(request):
    return getattr(drawings, request.param)(**KNOWN.get(request.param, {}))


def test_the_kernels_that_are_drawn_are_nearly_the_whole_step_of_one_user():
    model, device = KNOWN["kernels_of_block"].values()
    drawn = sum(sum(x.values()) for _, x in drawings.block_pieces(model, device, 8, 1, 4096)) * model.layers
    assert 0.93 < drawn / decode_step(model, device, tp=8, batch=1, context=4096).pass_time <= 1


@pytest.mark.parametrize("tp", [2, 4, 8])
def test_a_latent_is_not_divided_and_weights_are(tp):
    said = drawings.cache_holders(tp, heads=(1,)).description
    assert f"weights: 1/{tp} of them" in said and "a latent: all of it" in said


def test_a_bubble_grows_with_the_copies():
    said = drawings.copies_share_batch(pp=4, microbatches=32, copies=(1, 2, 8)).description
    shares = [int(x) for x in re.findall(r"bubble (\d+) %", said)]
    assert shares == sorted(shares) and shares[-1] == 75


def test_a_part_is_a_share_of_the_whole():
    said = drawings.weights_fetched(**KNOWN["weights_fetched"]).description
    whole, part = (float(x) for x in re.findall(r"([\d.]+) GB over", said))
    assert part == pytest.approx(whole / 4, rel=1e-3)
