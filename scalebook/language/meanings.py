r"""Meanings of the parts of sums and maxima: arithmetic, memory, network or waiting, with a short word for each.

Bars, figures and equations take their colours from here, so a part has the same colour everywhere.  Its kind sets the
hue, and the part itself sets the shade.  A term of several letters has the kind of these letters, if they agree.

>>> PARTS["optimizer_time"]
Part(word='optimizer', kind='memory', shade=0)
>>> meaning(["kv_cache", "cache_ways"])
Part(word='cache', kind='memory', shade=1)
>>> meaning(["kv_cache", "queue_time"]), meaning(["layers"])
(None, None)
"""

from collections.abc import Iterable
from functools import cache, lru_cache
from typing import NamedTuple

import sympy

from .colours import LIGHT, away

__all__ = ["PARTS", "SHADES", "Part", "coloured_terms", "ink_of", "meaning"]

# What bars fill and curves draw on a light page: 3.2 from it, so that no part needs an outline to be seen.  Found by a
# search for shades that stay apart in one bar, also for the colour-blind (tests/test_meanings.py says how far).
SHADES = {
    "arithmetic": ("#0072B2", "#398FFB", "#7A81CF", "#014171", "#1F8BAB", "#2C469E"),
    "memory": ("#009E73", "#426D28", "#4B9042", "#0D4E23", "#195F02", "#597A63"),
    "network": ("#D55E00", "#AC5700", "#AB7C52", "#523808", "#7C5325", "#916F55"),
    "waiting": ("#7A7F87", "#514F59", "#353A41"),
}


@cache
def ink_of(shade: str) -> str:
    """Return the text colour for a shade: the shade, darkened until its contrast with the page is at least 4.5.

    >>> ink_of("#0072B2"), ink_of("#009E73")
    ('#0072B2', '#00865D')
    """
    return away(shade, LIGHT, 4.5).upper()


class Part(NamedTuple):
    """The meaning of a letter as a part of a whole.  `shade` indexes `SHADES` of its kind."""

    word: str
    kind: str
    shade: int

    @property
    def fill(self) -> str:
        return SHADES[self.kind][self.shade]

    @property
    def ink(self) -> str:
        return ink_of(self.fill)


# A letter, its shade, its word.  A term with several of these letters takes the first.
_TABLE = {
    "arithmetic": """
        compute_time 0 arithmetic
        step_forward 0 forward
        step_backward 1 backward
        step_again 2 run again
        orthogonal_time 5 Newton-Schulz
        step_head 3 embeddings and logits
        forward_compute 0 forward
        input_gradient_compute 4 input gradient
        again_compute 2 run again
        weight_gradient_compute 3 weight gradient
        forward_time 0 forward
        input_gradient_time 4 input gradient
        weight_gradient_time 3 weight gradient
        attention_flops 1 attention
        projection_flops 3 projections
        ffn_flops 0 feed-forward
        products_time 0 products
        reading_time 1 attention to prompts
        prompt_time 0 reading the prompt
        block_flops 0 arithmetic
        flops 0 arithmetic
        peak_flops 0 arithmetic
        index_peak 0 arithmetic
        dp_window 0 passes
        computing_share 0 arithmetic
    """,
    "memory": """
        memory_time 0 memory
        optimizer_time 0 optimizer
        weight_memory 2 weights
        gradient_memory 0 gradients
        optimizer_memory 1 optimizer state
        activation_memory 3 activations
        logits_memory 4 logits
        buffer_memory 5 buffers
        weight_away 2 weights
        gradient_away 0 gradients
        optimizer_away 1 optimizer state
        activation_away 3 activations
        first_memory 0 first stage
        last_memory 1 last stage
        held_weights 2 weights
        kv_cache 1 cache
        workspace 4 work space
        weights_time 2 weights read
        cache_time 1 caches read
        experts_time 0 experts
        streams_time 3 norms and streams
        latency_floor 2 weights read
        read_params 2 weights
        working_activations 3 activations
        block_input 5 inputs of blocks
        block_weights 2 weights
        block_states 1 optimizer state
        saved_activations 3 activations
        reading_share 0 memory
        traffic 0 memory
        append_traffic 0 memory
        hbm_bandwidth 0 memory
        weight_bits 2 weights
        gradient_bits 0 gradients
        optimizer_bits 1 optimizer state
        moment_bits 3 one moment
        kv_bits 1 cache
        activation_bits 3 activations
    """,
    "network": """
        tp_exposed 0 tensor parallel
        cp_exposed 1 context parallel
        ep_exposed 2 expert parallel
        pp_exposed 3 pipeline transfers
        dp_exposed 4 data parallel
        offload_exposed 5 offload
        tp_forward 0 tensor parallel
        cp_forward 1 context parallel
        ep_forward 2 expert parallel
        tp_backward 0 tensor parallel
        cp_backward 1 context parallel
        ep_backward 2 expert parallel
        tp_async 0 tensor parallel
        orthogonal_exchange 2 matrices
        exchange_time 0 messages
        way_time 0 messages
        doubling_time 0 messages
        handover_time 0 handing over
        transfer_time 0 transfers
        forward_wait 0 forward pass waits
        backward_wait 1 backward pass waits
        site_bytes 0 transfer
        site_latency 1 latency
        collective_bytes 0 transfer
        near_latency 1 latency
        far_latency 3 latency far away
        link_latency 1 latency
        chunk_time 1 latency
        dp_unhidden 4 data parallel
        dp_reduce 4 data parallel
        dp_gather 4 data parallel
        dp_contention 5 contention
        link_bandwidth 0 transfer
        link_achieved 0 transfer
    """,
    "waiting": """
        bubble_time 0 bubble
        host_exposed 1 host
        launches_time 0 launches
        engine_time 1 engine
        routing_time 2 routing
        queue_time 0 queue
        first_overhead 1 engine
        step_overhead 1 engine
        layer_overhead 1 engine
        block_overhead 1 engine
        kernel_launch 0 launch
        launch_time 0 launch
        collective_launch 0 launch
    """,
}
PARTS = {
    line.split()[0]: Part(line.split(maxsplit=2)[2], kind, int(line.split()[1]))
    for kind, lines in _TABLE.items()
    for line in lines.strip().splitlines()
}
_RATES = [
    "peak_flops",
    "index_peak",
    "hbm_bandwidth",
    "link_bandwidth",
    "link_achieved",
]  # for example, bytes over a link bandwidth are a network time
_PLACES = {name: i for i, name in enumerate(PARTS)}


def meaning(letters: Iterable[str]) -> Part | None:
    """Return the part that a term of these letters is, or None if its letters have different kinds.

    A rate such as `peak_flops` decides the kind; without one, all letters must agree.
    """
    names = sorted(filter(PARTS.get, letters), key=_PLACES.get)
    kinds = {PARTS[x].kind for x in names if x in _RATES} or {PARTS[x].kind for x in names}
    return next(PARTS[x] for x in names if PARTS[x].kind in kinds) if len(kinds) == 1 else None


@lru_cache(1024)
def coloured_terms(expr: sympy.Expr) -> dict[sympy.Expr, str]:
    r"""Map the terms of sums and maxima to their colours.

    Terms are left out if a whole expression would have one colour.

    >>> from scalebook.inference.tokens import token_time
    >>> sorted((x.name, ink) for x, ink in coloured_terms(token_time.rhs).items())
    [('compute_time', '#0072B2'), ('memory_time', '#00865D')]
    """
    found: dict[sympy.Expr, str] = {}
    for whole in sorted(
        expr.atoms(sympy.Add, sympy.Max), key=lambda x: (sympy.count_ops(x), str(x))
    ):  # inner expressions come first
        terms = [-x if x.could_extract_minus_sign() else x for x in whole.args]  # the term as printed, without its sign
        # Other terms already have several colours.
        plain = [x for x in terms if x in found or not any(x.has(y) for y in found)]
        parts = {x: part.ink for x in plain if (part := meaning(y.name for y in x.free_symbols))}
        within = {ink for term, ink in found.items() if whole.has(term)}
        if len(within.union(parts.values())) > 1:
            found |= parts
    return found
