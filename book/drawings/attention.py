"""Drawings of one attention head, with numbers small enough to check by hand, and of the blocks of a hybrid model.

>>> round(result_of("big")[0], 2), round(sum(weights_of("big").values()), 2)
(3.02, 1.0)
"""

from math import exp, sqrt

from scalebook.book.drawings.schematic import Scene

__all__ = ["attention_weights", "blocks_of_pattern"]

# Chosen by hand; a model learns the matrices that make such numbers of its tokens.
WORDS = ("ball", "glove", "too", "big")
QUERIES = ((1, 0), (1, 1), (0, 1), (2, 0))
KEYS = ((2, 0), (1, 0), (0, 1), (0, 1))
VALUES = ((4, 0), (0, 4), (1, 1), (1, 0))

# Models that chapters compare at a million tokens, each with its kind of attention.
KINDS = {
    "llama2_7b": "multi-head", "llama3_70b": "grouped", "deepseek_v3": "latent", "gemma4_31b": "windows",
    "minimax_m3": "sparse, grouped", "deepseek_v3_2": "sparse, latent", "glm_5_2": "sparse, shared picks",
    "deepseek_v4_pro": "compressed", "qwen3_5_397b": "gated delta", "kimi_k3": "Kimi delta",
    "nemotron3_super_120b": "Mamba-2", "minimax_text_01": "lightning",
}  # fmt: skip


def weights_of(word: str) -> dict[str, float]:
    """Return a token's attention weights for itself and each earlier token, by word: the softmax of its scores."""
    asks = WORDS.index(word)
    scores = [sum(q * k for q, k in zip(QUERIES[asks], key, strict=True)) / sqrt(2) for key in KEYS[: asks + 1]]
    total = sum(map(exp, scores))
    return {seen: exp(x) / total for seen, x in zip(WORDS, scores, strict=False)}


def result_of(word: str) -> tuple[float, ...]:
    """Return a token's attention output: the sum of the values of visible tokens, times their attention weights."""
    return tuple(
        sum(w * v for w, v in zip(weights_of(word).values(), column, strict=False))
        for column in zip(*VALUES, strict=True)
    )


def attention_weights() -> Scene:
    """Draw four tokens, the attention weights of each for the tokens that it sees, and each token's attention output.

    >>> "big sees ball 0.73, glove 0.18, too 0.04, big 0.04" in attention_weights().description
    True
    """
    scene = Scene(
        "What four tokens attend to",
        "A row is a token that asks. Its query times the key of a column, over √2, is a score; the softmax of a row's "
        "scores are its weights, which add up to 1 (the darker, the more). The result is the weights times the values. "
        "Dashed: tokens that come later, which none sees. Green is kept: it is the cache. While a model writes, only "
        "the last row is new.",
    )
    wide, left, top = 44, 92, 66
    scene.note((69, 56), "query", "middle", bold=True)
    scene.note((84, 36), "key", "end", bold=True)
    scene.note((304, 56), "result", "middle", bold=True)
    for k, word in enumerate(WORDS):
        scene.note((left + wide * (k + 0.5), 14), word, "middle", bold=True)
        for y, pair in ((22, KEYS[k]), (top + 118, VALUES[k])):
            scene.tensor((left + wide * k + 2, y), (0.6,), "memory", (wide - 4, 22), (_pair(pair),))
    scene.note((84, top + 118 + 15), "value", "end", bold=True)
    for r, word in enumerate(WORDS):
        y, weights = top + 28 * r, weights_of(word)
        scene.note((2, y + 16), word, bold=True)
        scene.tensor((50, y), (0.35,), "arithmetic", (38, 24), (_pair(QUERIES[r]),))
        shades = [weights.get(x, 0) for x in WORDS]
        said = ", ".join(f"{x} {w:.2f}" for x, w in weights.items())
        texts = [f"{w:.2f}" if w else "" for w in shades]
        scene.tensor((left, y), shades, "arithmetic", (4 * wide, 24), texts, name=f"{word} sees {said}")
        made = " ".join(f"{x:.1f}" for x in result_of(word))
        scene.tensor((left + 4 * wide + 6, y), (0.35,), "arithmetic", (60, 24), (made,))
    return scene


def _pair(numbers):
    return " ".join(map(str, numbers))


# How a letter of a pattern is drawn: kind, shade, and what the block keeps.
BLOCKS = {
    "*": ("memory", 0.9, "attention: keeps all keys and values"),
    "M": ("memory", 0.25, "Mamba-2: keeps a state of one size"),
    "E": ("arithmetic", 0.35, "experts: keep nothing"),
}


def blocks_of_pattern(pattern: str) -> Scene:
    """Draw the blocks of a model in order, 13 in a row: M a Mamba-2 block, * attention, E a layer of experts.

    >>> "2 of 7 are attention" in blocks_of_pattern("ME*EME*").description
    True
    """
    scene = Scene(
        "The blocks of a hybrid model, and what each keeps of a sequence",
        "Read the squares like text: each is a block. Only a dark green block keeps something for every token, so only "
        "these make the cache grow. A light green block updates a state, which stays as large as it is.",
    )
    rows = [pattern[x : x + 13] for x in range(0, len(pattern), 13)]
    for y, row in enumerate(rows):
        for x, letter in enumerate(row):
            kind, shade, _ = BLOCKS[letter]
            scene.tensor((4 + 25.5 * x, 6 + 26 * y), (shade,), kind, (23, 22), (letter,))
    for y, (letter, (kind, shade, keeps)) in enumerate(BLOCKS.items()):
        top = 16 + 26 * (len(rows) + y)
        said = f"{pattern.count(letter)} of {len(pattern)} are {keeps}"
        scene.tensor((4, top), (shade,), kind, (23, 22), (letter,), name=said)
        scene.note((34, top + 15), f"{pattern.count(letter)} × {keeps}")
    return scene
