"""Default values of serving steps that no data sheet states. Each is a formula that can be replaced or given.

The kernel figures were fitted to published times of single kernels (sets `attention_decode`, `attention_mla_decode`,
`attention_prefill` and `moe_layer`), never to a step or a service. A device's own values replace them.
"""

import itertools
from collections.abc import Mapping

from scalebook.attention import assumptions as attended
from scalebook.attention.sparse import sparse_efficiency, tiled_heads
from scalebook.language import Row
from scalebook.language.arguments import checked
from scalebook.language.defaults import stated
from scalebook.language.notation import either, quoted
from scalebook.language.row import Cell, quantity

_DEFAULTS = stated(__name__)  # those of assumptions.toml
globals().update(_DEFAULTS)

__all__ = [
    "ASSUMED", "GROUPED", "INDEXED", "LATENT", "LINEAR", "READ_CELLS", "kind_read", "read_by", *_DEFAULTS,
]  # fmt: skip


@checked
def kind_read(model: Mapping) -> str:
    """Return which kind of cache a model has, "latent" or "grouped": devices have efficiencies for reading each.

    >>> kind_read({"kv_rank": 512})
    'latent'
    """
    return "latent" if "kv_rank" in model else "grouped"


def _default(*names: str) -> list:
    return [_DEFAULTS[x] for x in names]


GROUPED = _default("read_launch_grouped", "read_efficiency_grouped", "read_item_grouped")
LATENT = _default("read_launch_latent", "read_efficiency_latent", "read_item_latent")
INDEXED = (
    *LATENT, attended.dense_tokens_picked, attended.index_bits_block, attended.head_tile_hopper, tiled_heads,
    sparse_efficiency,
)  # fmt: skip
LINEAR = (*GROUPED, attended.delta_chunk, attended.linear_bits_wide)
# For each kind of cache: the cells of a device's row that describe its own kernels, and the default of each cell.
READ_CELLS = {
    kind: {f"{f.letter}_{kind}": f for f in formulas} for kind, formulas in (("grouped", GROUPED), ("latent", LATENT))
}
ASSUMED = (
    *_default("prompt_launch", "prompt_efficiency", "score_arithmetic", "one_tile", "routing_time_least"),
    *_default("assigned_passes", "result_bits", "expert_peak_same", "expert_efficiency_same", "expert_ways_left"),
    *_default("no_step_overhead", "no_layer_overhead", "no_scale_kernels", "no_norm_sums", "sum_launch_collective"),
    *_default("sum_latency_near"),
)  # fmt: skip


@checked
def read_by(kind: str, *rows: Mapping) -> Row:
    """Return a row with the table's figures for reading this kind of cache, under the names that a step uses.

    >>> from scalebook.tables import accelerators
    >>> read_by("grouped", accelerators.b200).read_efficiency, len(read_by("grouped", accelerators.h100))
    (0.85, 0)
    """
    found = {}
    if kind not in READ_CELLS:
        raise LookupError(f"a cache is {either(READ_CELLS)}, not {quoted(kind)}")
    if stray := [x for x in rows if not isinstance(x, Mapping)]:
        raise TypeError(f"the cells are read from rows of devices, not from {quoted(stray[0])}")
    for row, (name, f) in itertools.product(rows, READ_CELLS[kind].items()):
        if name in row:
            found[f.letter] = row.cells[name] if isinstance(row, Row) else Cell(quantity(name, row[name]))
    return Row("kernels that read caches", found)
