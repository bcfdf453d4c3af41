"""Arithmetic of attention: scores and values, compared with the projections and the feed-forward layer of a block.

>>> from scalebook.tables import models
>>> round(attention_share(models.llama3_8b, batch=1, seq=8192), 3), round(layer_crossover(models.llama3_8b))
(0.235, 26624)
"""

from scalebook.attention.assumptions import prefill_context
from scalebook.language import Sheet, formulas_of
from scalebook.language.defaults import equations

_OWN = equations(__name__)  # those of arithmetic.toml

layer_work = Sheet(
    "layer_work", prefill_context, _OWN.causal_pairs, _OWN.pair_width_grouped, _OWN.projection_flops,
    _OWN.attention_flops, _OWN.ffn_flops, _OWN.layer_flops, _OWN.attention_share, _OWN.doubling_growth,
    doc="The arithmetic of one block over a whole causal sequence, part by part.",
)  # fmt: skip

__all__ = [*formulas_of(__name__), "layer_work"]
