"""Updates of reinforcement learning simulated step by step: what judges the closed forms of `rollouts`."""

from heapq import heapify, heapreplace

import numpy as np

from scalebook.rl.update import Lengths

__all__ = ["simulate_rollout", "simulate_staleness"]


def simulate_rollout(pass_base, pass_answer, pass_token, prompt, lengths) -> float:
    """Return the time of an engine that begins answers of these `lengths` together, decode step by decode step.

    >>> simulate_rollout(pass_base=1.0, pass_answer=0.5, pass_token=0.0, prompt=0, lengths=[1, 3])  # 2 + 1.5 + 1.5
    5.0
    """
    lengths = np.sort(np.asarray(lengths))
    steps = np.arange(lengths[-1])
    alive = len(lengths) - np.searchsorted(lengths, steps, side="right")
    return float((pass_base + alive * (pass_answer + pass_token * (prompt + steps))).sum())


def simulate_staleness(lengths: Lengths, in_flight: int, responses: int, updates: int = 400, seed: int = 0):
    """Return the ages in updates of all answers that are learnt from, of engines that keep `in_flight` answers going.

    An update learns from the next `responses` answers that end. The first quarter of the updates is left out.

    >>> round(float(simulate_staleness(Lengths(2000, 0.8, 8192), in_flight=512, responses=256).mean()), 1)
    2.0
    """
    rng, ages = np.random.default_rng(seed), []
    drawn = np.ceil(lengths.law(rng.standard_normal(in_flight + updates * responses)))
    going = [(x * rng.random(), 0, i) for i, x in enumerate(drawn[:in_flight])]
    heapify(going)
    for ended in range(updates * responses):
        now, version, _ = going[0]
        ages.append(ended // responses - version)
        heapreplace(going, (now + drawn[in_flight + ended], (ended + 1) // responses, in_flight + ended))
    return np.array(ages[updates * responses // 4 :])
