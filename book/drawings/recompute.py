"""A drawing of the activations that a block saves or recomputes, with lengths in proportion to their bytes."""

from scalebook.book.drawings.schematic import Scene

from scalebook.block import GPT, backward, full, selective
from scalebook.block.work import phase_of
from scalebook.language import Row, symbol

__all__ = ["kept_and_run_again"]

PARTS = {
    "input": ("x",), "queries, keys, values": ("h1", "q", "k", "v"), "scores, softmax": ("probs", "mask1", "dropped"),
    "attended": ("mix", "mask2", "x2"), "feed-forward": ("h2", "up", "active", "mask3"),
}  # fmt: skip


def kept_and_run_again(model: Row, seq: float) -> Scene:
    """Draw a GPT block's saved tensors under no, selective and full recomputation, and the share of FLOPs recomputed.

    Bytes are per token and unit of width, in 16-bit precision.

    >>> from scalebook.tables import models
    >>> drawn = kept_and_run_again(models.gpt3_175b, seq=2048)
    >>> [x in drawn.description for x in ("114 B", "34 B", "2 B", "+0.9 %", "+33.3 %")]
    [True, True, True, True, True]
    """
    known = {symbol(x): model[x] for x in ("hidden", "heads", "kv_heads", "head_dim", "ffn")}
    known |= {symbol(x): seq for x in ("seq", "context")}
    known |= {symbol("activation_bits"): 16, symbol("mask_bits"): 8, symbol("batch"): 1}

    def a_token(bytes_):
        return float(bytes_.subs(known)) / (seq * model.hidden)

    size = {part: sum(a_token(GPT.saved_tensors[x]) for x in names) for part, names in PARTS.items()}
    scene = Scene(
        f"A block of {model.name}, {seq:,.0f} tokens: kept, and run again",
        "Green is kept until the backward pass, as long as it is large; what is dashed is dropped and run again. "
        "Below: bytes a token and unit of width, and what running again adds to the arithmetic of a block.",
    )
    for k, part in enumerate(PARTS):
        scene.note((0, 44 + 26 * k), part)
    for column, (name, block) in enumerate({"none": GPT, "selective": selective(GPT), "full": full(GPT)}.items()):
        x, kept = 142 + 68 * column, block.saved_tensors
        scene.note((x, 14), name, bold=True)
        for k, (part, names) in enumerate(PARTS.items()):
            scene.tensor(
                (x, 32 + 26 * k), (0.8 * (names[-1] in kept),), "memory", (60 * size[part] / max(size.values()), 16)
            )
        again = sum(kernel.flops for kernel in backward(block).kernels if phase_of(kernel) == "again")
        more = float((again / (3 * GPT.flops)).subs(known)) if again else 0
        scene.note((x, 182), f"{sum(map(a_token, kept.values())):.3g} B\n+{more:.1%}".replace("%", " %"))
    return scene
