"""Engines that are never out of requests: as many sequences as memory holds, and prompts read as answers end."""

import numpy as np

from scalebook.inference import decode_step, mixed_step, serve

from .priced import priced

__all__ = ["room_for", "step_of_load"]


def room_for(asked, tokens, share) -> np.ndarray:
    """Sequences of so many tokens whose caches fit beside the weights of a group, below 0 where these do not fit.

    `asked` are rows and letters of serve; a group's devices attend together.

    >>> from scalebook.tables import accelerators, models
    >>> llama, h200 = models.llama2_70b, accelerators.h200.at("fp8")
    >>> room_for([((llama, h200), dict(tp=n, users=1, prompt=1, output=1)) for n in (1, 2)], 441, 0.9).round().tolist()
    [784.0, 2511.0]
    """
    said = priced(serve, asked, "held_weights", "workspace", "token_cache")
    capacity = np.array([device.hbm_capacity for (_, device), _ in asked])
    room = share * capacity - said["held_weights"] - said["workspace"]
    return room / (tokens * said["token_cache"])


def step_of_load(asked, batch, prompt, output, chunk=8192) -> tuple[np.ndarray, np.ndarray]:
    """Seconds of a step in which sequences of a group decode, and what reading a prompt adds to it.

    Of each `output` steps of a sequence one is its last, so batch/output prompts come to a step.  They are read
    together, one at least and no more than fit into `chunk` tokens; longer ones in parts, a step each.
    `batch` has a line for each call.
    """
    decodes, mixes, counts = [], [], []
    for (rows, letters), b, p, o in zip(asked, batch, prompt, output, strict=True):
        steady, parts = letters | dict(batch=b, context=p + o / 2), np.ceil(p / chunk)
        together = np.clip(b / o, 1, max(1, chunk / p))
        counts.append(together / parts)
        decodes.append((rows, steady))
        mixes.append((rows, steady | dict(prompts=together, read_chunk=p / parts, past=(p - p / parts) / 2)))
    step = priced(decode_step, decodes, "pass_time")["pass_time"]
    mixed = priced(mixed_step, mixes, "pass_time")["pass_time"]
    return step, (mixed - step) / np.array(counts)
