"""A small Llama-like transformer made to be timed: forward, backward, optimizer and decode steps.

Code uses a library's own functions (`xp` is numpy, torch or jax.numpy), and `xp.matmul` for every matrix product. `w`
holds the weights, `i` is a block's number, and `turn` is the result of `turns`. A block follows the listing
`scalebook.block.LLAMA` line by line; gradients are derived by hand.
"""

from dataclasses import dataclass

from scalebook.language import Row
from scalebook.tables import models

__all__ = ["Shape", "adam", "attend", "backward", "decode", "forward", "logits", "train", "turns"]

TINY = 1e-5  # added to a mean of squares, so that no norm divides by zero


@dataclass(frozen=True)
class Shape:
    """The shape of a small model: heads of equal width, a gated feed-forward layer, one shared embedding."""

    layers: int
    hidden: int
    heads: int
    ffn: int
    vocab: int

    def row(self, context: int = 4096) -> Row:
        """Return the model's row, as formulas take it, for sequences of up to `context` tokens."""
        config = dict(
            model_type="llama", num_hidden_layers=self.layers, hidden_size=self.hidden, num_attention_heads=self.heads,
            num_key_value_heads=self.heads, intermediate_size=self.ffn, vocab_size=self.vocab,
            max_position_embeddings=context, tie_word_embeddings=True,
        )  # fmt: skip
        return models.read(config, name=f"a small Llama of {self.layers} blocks, {self.hidden} wide")

    def weights(self, made) -> dict:
        """Return the weights by name, each created by `made(*size)`; weights that read the same tensor are joined."""
        sizes = {"embedding": (self.vocab, self.hidden), "gain": (self.hidden,)}
        block = {
            "gain1": (self.hidden,),
            "qkv": (self.hidden, 3 * self.hidden),
            "out": (self.hidden, self.hidden),
            "gain2": (self.hidden,),
            "up_gate": (self.hidden, 2 * self.ffn),
            "down": (self.ffn, self.hidden),
        }
        sizes |= {f"{name}{i}": size for i in range(self.layers) for name, size in block.items()}
        return {name: made(*size) for name, size in sizes.items()}


def turns(xp, seq: int, head_dim: int, first: int = 0):
    """Return cosines and sines of rotary positions, each [seq, head_dim / 2]."""
    places = xp.arange(first, first + seq)[:, None]
    angles = places * 10_000.0 ** (-xp.arange(head_dim // 2)[None, :] / (head_dim // 2))
    return xp.cos(angles), xp.sin(angles)


def _turned(xp, x, cos, sin):
    """Rotate pairs of values by their position's angle; with -sin, back."""
    half = x.shape[-1] // 2
    a, b = x[..., :half], x[..., half:]
    return xp.concatenate([a * cos - b * sin, a * sin + b * cos], -1)


def _norm(xp, x, gain):
    scale = 1 / xp.sqrt((x * x).mean(-1)[..., None] + TINY)
    return x * scale * gain, scale


def _norm_back(d_h, x, gain, scale):
    d_gain = (d_h * x * scale).sum(0)
    d_h = d_h * gain
    mean = (d_h * x).mean(-1)[..., None]
    return scale * (d_h - x * (scale * scale * mean)), d_gain


def _softmax(xp, scores):
    scores -= xp.amax(scores, -1)[..., None]
    scores = xp.exp(scores)
    scores /= scores.sum(-1)[..., None]
    return scores


def attend(xp, q, k, v):
    """Return the result of causal attention on [batch, heads, seq, head_dim], and the probabilities."""
    scores = xp.matmul(q, xp.swapaxes(k, -1, -2))
    scores *= q.shape[-1] ** -0.5
    if q.shape[-2] > 1:
        scores -= xp.triu(xp.ones_like(scores[0, 0]), 1) * 1e4
    probs = _softmax(xp, scores)
    return xp.matmul(probs, v), probs


def _heads(xp, qkv, batch, heads):
    rows, width = qkv.shape
    parts = qkv.reshape(batch, rows // batch, 3, heads, width // (3 * heads))
    return (xp.swapaxes(parts[:, :, i], 1, 2) for i in range(3))


def _rows(xp, x):
    batch, heads, seq, head_dim = x.shape
    return xp.swapaxes(x, 1, 2).reshape(batch * seq, heads * head_dim)


def forward(xp, x, w, i, batch, heads, turn):
    """Return a block's result and the tensors its backward pass needs; x is [tokens, hidden]."""
    (q, k, v), h1, scale1 = _asked(xp, x, w, i, batch, heads, turn)
    mix, probs = attend(xp, q, k, v)
    mix = _rows(xp, mix)
    x2 = x + xp.matmul(mix, w[f"out{i}"])
    y, fed = _fed(xp, x2, w, i)
    return y, (x, h1, scale1, q, k, v, probs, mix, x2, *fed)


def _asked(xp, x, w, i, batch, heads, turn):
    h, scale = _norm(xp, x, w[f"gain1{i}"])
    q, k, v = _heads(xp, xp.matmul(h, w[f"qkv{i}"]), batch, heads)
    return (_turned(xp, q, *turn), _turned(xp, k, *turn), v), h, scale


def _fed(xp, x, w, i):
    h, scale = _norm(xp, x, w[f"gain2{i}"])
    both = xp.matmul(h, w[f"up_gate{i}"])
    up, gate = both[:, : both.shape[1] // 2], both[:, both.shape[1] // 2 :]
    sigmoid = 1 / (1 + xp.exp(-gate))
    active = up * gate * sigmoid
    return x + xp.matmul(active, w[f"down{i}"]), (h, scale, up, gate, sigmoid, active)


def backward(xp, d_y, saved, w, i, batch, heads, turn, gradients):
    """Return the gradient of a block's input; gradients of its weights are added to `gradients`."""
    x, h1, scale1, q, k, v, probs, mix, x2, h2, scale2, up, gate, sigmoid, active = saved
    gradients[f"down{i}"] = xp.matmul(active.T, d_y)
    d_active = xp.matmul(d_y, w[f"down{i}"].T)
    silu = gate * sigmoid
    d_both = xp.concatenate([d_active * silu, d_active * up * (sigmoid + silu * (1 - sigmoid))], -1)
    gradients[f"up_gate{i}"] = xp.matmul(h2.T, d_both)
    d_x2, gradients[f"gain2{i}"] = _norm_back(xp.matmul(d_both, w[f"up_gate{i}"].T), x2, w[f"gain2{i}"], scale2)
    d_x2 += d_y
    gradients[f"out{i}"] = xp.matmul(mix.T, d_x2)
    d_mix = xp.matmul(d_x2, w[f"out{i}"].T)
    d_mix = xp.swapaxes(d_mix.reshape(batch, -1, heads, q.shape[-1]), 1, 2)
    d_v = xp.matmul(xp.swapaxes(probs, -1, -2), d_mix)
    d_probs = xp.matmul(d_mix, xp.swapaxes(v, -1, -2))
    d_scores = probs * (d_probs - (d_probs * probs).sum(-1)[..., None])
    d_scores *= q.shape[-1] ** -0.5
    d_q, d_k = xp.matmul(d_scores, k), xp.matmul(xp.swapaxes(d_scores, -1, -2), q)
    cos, sin = turn
    d_q, d_k = _turned(xp, d_q, cos, -sin), _turned(xp, d_k, cos, -sin)
    d_qkv = xp.concatenate([_rows(xp, d_q), _rows(xp, d_k), _rows(xp, d_v)], -1)
    gradients[f"qkv{i}"] = xp.matmul(h1.T, d_qkv)
    d_x, gradients[f"gain1{i}"] = _norm_back(xp.matmul(d_qkv, w[f"qkv{i}"].T), x, w[f"gain1{i}"], scale1)
    d_x += d_x2
    return d_x


def logits(xp, x, w):
    """Return the logits of each token, with the normed input and scale of the last norm."""
    h, scale = _norm(xp, x, w["gain"])
    return xp.matmul(h, w["embedding"].T), h, scale


def train(xp, w, tokens, hot, heads, batch=1, turn=None, on_block=lambda *_: None):
    """Return the loss of a batch and the gradients of all weights.

    `tokens` are indices, each at most once, so that their gradients can be added row by row. `hot` has a row for each
    token, with a 1 at the next word. `on_block` is called with "forward" or "backward" when all blocks begin or end.

    >>> import numpy as np
    >>> weights = Shape(1, 8, 2, 12, 6).weights(lambda *size: np.full(size, 0.1))
    >>> loss, gradients = train(np, weights, np.arange(4), np.eye(6)[:4], heads=2)
    >>> bool(abs(loss - np.log(6)) < 1e-9), gradients["embedding"].shape
    (True, (6, 8))
    """
    layers = sum(name.startswith("qkv") for name in w)
    x, kept, gradients = w["embedding"][tokens], [], {}
    if turn is None:
        turn = turns(xp, x.shape[0] // batch, x.shape[1] // heads)
    on_block("forward")
    for i in range(layers):
        x, saved = forward(xp, x, w, i, batch, heads, turn)
        kept.append(saved)
    on_block("")
    scores, h, scale = logits(xp, x, w)
    probs = _softmax(xp, scores)
    loss = -xp.log((probs * hot).sum(-1)).mean()
    d_logits = (probs - hot) / x.shape[0]
    gradients["embedding"] = xp.matmul(d_logits.T, h)
    d_x, gradients["gain"] = _norm_back(xp.matmul(d_logits, w["embedding"]), x, w["gain"], scale)
    on_block("backward")
    for i in reversed(range(layers)):
        d_x = backward(xp, d_x, kept.pop(), w, i, batch, heads, turn, gradients)
    on_block("")
    if hasattr(d_x, "at"):  # JAX arrays cannot be changed in place
        gradients["embedding"] = gradients["embedding"].at[tokens].add(d_x)
    else:
        gradients["embedding"][tokens] += d_x
    return loss, gradients


def adam(xp, w, gradients, first, second, rate=1e-3):
    """Return new weights and both moments after a step of Adam, changed in place if the library can."""
    for name, g in gradients.items():
        m, v, weight = first[name], second[name], w[name]
        m *= 0.9
        m += 0.1 * g
        v *= 0.999
        v += 0.001 * (g * g)
        weight -= rate * m / (xp.sqrt(v) + 1e-8)
        first[name], second[name], w[name] = m, v, weight
    return w, first, second


def decode(xp, w, keys, values, tokens, heads, turn):
    """Return the logits of the next word after one more token of each sequence.

    `keys` and `values` hold each block's cache [batch, heads, context, head_dim]; the last place is for new tokens.
    """
    x = w["embedding"][tokens]
    for i in range(len(keys)):
        (q, k, v), *_ = _asked(xp, x, w, i, len(tokens), heads, turn)
        kept = [_placed(cache[i], new) for cache, new in ((keys, k), (values, v))]
        x = x + xp.matmul(_rows(xp, attend(xp, q, *kept)[0]), w[f"out{i}"])
        x, _ = _fed(xp, x, w, i)
    return logits(xp, x, w)[0]


def _placed(cache, new):
    if hasattr(cache, "at"):
        return cache.at[:, :, -1:].set(new)
    cache[:, :, -1:] = new
    return cache
