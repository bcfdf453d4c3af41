"""Measured values that a training step needs and no data sheet states. Each is a formula that you can replace.

A device's own table cell, or a value given in a call, takes precedence over these.
"""

from collections.abc import Mapping
from functools import cache

import numpy as np
from sympy import Max, Min, ceiling

from scalebook.attention.arithmetic import causal_pairs, chunk_pairs, window_pairs
from scalebook.language import Formula, formula, symbol
from scalebook.language.defaults import stated
from scalebook.language.stanzas import tables_of
from scalebook.machine import systolic
from scalebook.machine.collective_rates import FABRIC
from scalebook.machine.kernels import grouped_hidden

_DEFAULTS = stated(__name__)  # those of assumptions.toml
globals().update(_DEFAULTS)

__all__ = [
    "MEASURED", "attended_chunks", "attended_picked", "attended_tiles_chunks", "attended_tiles_windows",
    "attended_windows", "counted_chunks", "counted_windows", "measured", *_DEFAULTS,
]  # fmt: skip


@formula("picked_share", "deepseek2025-v32 §2.1")
def attended_picked(seq, index_tokens):
    """Share of query-key pairs that attention computes if an indexer picks at most `index_tokens` keys for a token.

    >>> attended_picked(seq=4096, index_tokens=2048).__round__(4), attended_picked(seq=65536, index_tokens=2048)
    (0.3751, 0.030761...)
    """
    return window_pairs.of(seq=seq, window=index_tokens) / seq**2


def _mean_share(pairs, seq, layers, window_layers):
    whole = causal_pairs.of(seq=seq, context=seq)
    return ((layers - window_layers) * whole + window_layers * pairs) / (layers * seq**2)


@formula("attended_share", "beltagy2020 §3.1", "dao2022 §3.1")
def attended_windows(seq, layers, window_layers, window):
    """Share of query-key pairs that attention computes, averaged over all blocks, if some have a sliding window.

    >>> attended_windows(seq=8192, layers=36, window_layers=18, window=128).__round__(3)
    0.258
    """
    return _mean_share(window_pairs.of(seq=seq, window=window), seq, layers, window_layers)


@formula("attended_share", "jax-splash", "beltagy2020 §3.1")
def attended_tiles_windows(seq, layers, window_layers, window, attention_tile):
    """Share of query-key pairs that large tiles compute if some blocks have a sliding window: edge tiles count whole.

    >>> attended_tiles_windows(seq=8192, layers=36, window_layers=18, window=128, attention_tile=1024).__round__(3)
    0.398
    """
    tiles = seq / Min(seq, attention_tile, evaluate=False)
    reach = 1 + ceiling((window - 1) / attention_tile, evaluate=False)
    return _mean_share(window_pairs.of(seq=tiles, window=reach), tiles, layers, window_layers)


@formula("attended_share", "jax-splash", "huggingface-configs meta-llama/Llama-4-Scout-17B-16E")
def attended_tiles_chunks(seq, layers, window_layers, window, attention_tile):
    """Share of query-key pairs that large tiles compute if some blocks attend within chunks: edge tiles count whole.

    >>> attended_tiles_chunks(seq=32768, layers=48, window_layers=36, window=8192, attention_tile=2048)
    0.25
    """
    tiles = seq / Min(seq, attention_tile, evaluate=False)
    chunk = Max(1, window / attention_tile, evaluate=False)
    return _mean_share(chunk_pairs.of(seq=tiles, window=chunk), tiles, layers, window_layers)


@formula("attended_share", "huggingface-configs meta-llama/Llama-4-Scout-17B-16E", "dao2022 §3.1")
def attended_chunks(seq, layers, window_layers, window):
    """Share of query-key pairs that attention computes if some blocks attend within chunks, half a chunk on average.

    >>> attended_chunks(seq=32768, layers=48, window_layers=36, window=8192).__round__(3)
    0.219
    """
    return _mean_share(chunk_pairs.of(seq=seq, window=window), seq, layers, window_layers)


def _counted(attended: Formula) -> Formula:
    """Return the formula for the pairs that model FLOPs count, as a share of a causal mask's."""
    sources = *attended.sources, "chowdhery2022 appendix B"
    doc = "Share of a causal mask's query-key pairs that model FLOPs count: none outside a window or chunk."
    name = attended.name.replace("attended", "counted")
    return Formula(name, "counted_share", lambda: attended.rhs / attended.of(window_layers=0), sources, doc)


counted_windows, counted_chunks = _counted(attended_windows), _counted(attended_chunks)

_MEASURED = tables_of(__package__, "defaults.toml")["measured"]["formulas"]
MEASURED = (*(_DEFAULTS[x] for x in _MEASURED), grouped_hidden, _DEFAULTS["grouped_efficiency_same"], *FABRIC)


def _attended(model: Mapping, letters: Mapping, is_tiled: bool) -> tuple[Formula, Formula]:
    """Return the formulas of the shares of query-key pairs that attention computes and that model FLOPs count."""
    own, words = _DEFAULTS, getattr(model, "words", model)
    sliding = "window" in {*model, *letters} and letters.get("window_layers", model.get("window_layers", 0))
    if "blocks" in words or not np.any(np.asarray(sliding)):  # kinds say their windows
        return own["attended_tiles" if is_tiled else "attended_half"], own["counted_whole"]
    if words.get("windows") == "chunked":
        return attended_tiles_chunks if is_tiled else attended_chunks, counted_chunks
    return attended_tiles_windows if is_tiled else attended_windows, counted_windows


def measured(model: Mapping, letters: Mapping, known: set[str]) -> list[Formula]:
    """Return the measured assumptions of a step; for systolic arrays, the formulas of how full the arrays are."""
    by_device = {f.letter: f for f in _attended(model, letters, "attention_tile" in known)}
    if {"attention_whole", "array_side"} <= known:
        is_latent = "kv_rank" in model
        by_device["attention_efficiency"] = (
            systolic.attention_efficiency_arrays_latent if is_latent else systolic.attention_efficiency_arrays
        )
    if {"grouped_whole", "array_side"} <= known:
        by_device["grouped_efficiency"] = systolic.grouped_efficiency_arrays
    if "capacity_factor" in known:
        by_device["grouped_efficiency"] = _DEFAULTS["grouped_efficiency_padded"]
    going_back = _going_back(by_device["attended_share"]) if "attention_tile_back" in known else []
    return [by_device.get(f.letter, f) for f in MEASURED] + going_back


@cache
def _going_back(attended: Formula) -> list[Formula]:
    """Return the formulas for attention's backward rate if its backward kernels have tiles of their own."""
    rhs = attended.rhs.xreplace({symbol("attention_tile"): symbol("attention_tile_back")})
    own = Formula(f"{attended.name}_back", "attended_back", rhs, attended.sources, attended.__doc__)
    return [own, _DEFAULTS["backward_reached_tiles"]]
