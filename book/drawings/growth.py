"""Drawings of what grows with the tokens of a text, and of what grows with the users of a step.

>>> from scalebook.tables import models
>>> linear_and_quadratic(models.llama3_8b, 8192).title
'A block of Llama 3.1 8B: twice the tokens'
"""

from collections.abc import Sequence

from scalebook.book.drawings.schematic import Scene

from scalebook.attention import attention_flops, ffn_flops, pair_width_grouped, projection_flops
from scalebook.language import Row, show
from scalebook.memory import kv_cache

__all__ = ["linear_and_quadratic", "weights_once"]

FULL = 0.85  # shade of a bar


def linear_and_quadratic(model: Row, seq: int) -> Scene:
    """Draw what doubles and what grows fourfold when a text doubles: arithmetic above, memory below.

    >>> from scalebook.tables import models
    >>> "4.295 GB" in linear_and_quadratic(models.llama3_8b, 8192).description
    True
    """
    scene = Scene(
        f"A block of {model.name}: twice the tokens",
        f"Each pair of bars is for {seq:,} and for {2 * seq:,} tokens. Left, what every token brings once doubles; "
        "right, what every pair of tokens brings grows fourfold, in arithmetic and, if the scores are kept, in memory. "
        "All pairs count here: a causal mask halves the scores' arithmetic.",
    )
    for column, title in enumerate(("each token: twice", "each pair: four times")):
        scene.note((2 + 172 * column, 14), title, bold=True)
    for row, kind in enumerate(("arithmetic", "memory")):
        for column in (0, 1):
            x, top = 2 + 172 * column, 36 + 92 * row
            name, unit, amounts = _amounts(model, seq)[row][column]
            scene.note((x, top), name)
            for k, amount in enumerate(amounts):
                wide = 74 * amount / amounts[1]
                bar = scene.tensor((x, top + 8 + 26 * k), (FULL,), kind, (wide, 18))
                scene.note((bar.x + bar.width + 4, bar.y + 13), show(amount, unit))
    return scene


def _amounts(model, seq):
    """Return for arithmetic and memory what is linear and what is quadratic: a name, a unit, and two amounts."""
    lengths = (seq, 2 * seq)
    pairs = [attention_flops(batch=1, pairs=n * n, pair_width=pair_width_grouped(model)) for n in lengths]
    alone = [projection_flops(model, batch=1, seq=n) + ffn_flops(model, batch=1, seq=n) for n in lengths]
    kept = [kv_cache(model, batch=1, context=n, kv_bits=16) / model.layers for n in lengths]
    scores = [model.heads * n * n * 2 for n in lengths]  # 2 bytes for each pair and head
    return (
        (("arithmetic: matrices", "FLOP", alone), ("arithmetic: scores", "FLOP", pairs)),
        (("memory: keys, values", "B", kept), ("memory: scores, if kept", "B", scores)),
    )


def weights_once(model: Row, context: int, users: Sequence[int] = (1, 8, 64), bits: int = 8) -> Scene:
    """Draw what a step of decoding reads for some users: the weights once, and each user's own cache.

    >>> from scalebook.tables import models
    >>> weights_once(models.llama3_70b, 8192).title
    'What a step of Llama 3.1 70B reads'
    """
    weights = model.params * bits / 8
    cache = kv_cache(model, batch=1, context=context, kv_bits=bits)
    long = 170 / (weights + users[-1] * cache)
    scene = Scene(
        f"What a step of {model.name} reads",
        f"Dark, the weights: read once, whoever shares the step. Pale, a cache of {context:,} tokens for each user. "
        "So more users divide the reading of the weights, and none divides that of the caches.",
    )
    scene.note((2, 14), "users", bold=True)
    scene.note((48, 14), "read in a step", bold=True)
    scene.note((338, 14), "for each token", "end", bold=True)
    for k, count in enumerate(users):
        y = 24 + 30 * k
        scene.note((30, y + 14), f"{count:,}", "end")
        scene.tensor((48, y), (FULL,), "memory", (long * weights, 20), name=f"weights, {show(weights, 'B')}")
        scene.tensor(
            (48 + long * weights, y),
            (0.35,),
            "memory",
            (long * count * cache, 20),
            name=f"caches, {show(count * cache, 'B')}",
        )
        scene.note((338, y + 14), show((weights + count * cache) / count, "B"), "end")
    return scene
