"""Percentiles of the times that a turn of a session takes: to its first token, per token after it, and end to end.

Each time is a sum of independent parts, so Fourier transforms of their distributions give the distribution of the sum.
"""

import numpy as np

from scalebook.language.row import Cell

__all__: list[str] = []

_LOST = "caches of more than 1 % of the turns are lost"
_PART = "answers of different lengths part sessions with equal pauses"
_SHARES = (0.5, 0.95, 0.99)
_CELLS = 1 << 11
_BELOW = 1 << 8  # cells below zero, for what a transform wraps around


def length_nodes(spread: float) -> tuple[np.ndarray, np.ndarray]:
    """Return standard normal deviates and the chance of each, or only the middle one if nothing is spread."""
    z = np.linspace(-4, 5, 37) if spread else np.zeros(1)
    chances = np.exp(-(z**2) / 2)
    return z, chances / chances.sum()


def _wait_for_a_place(row) -> float:
    """Return the wait for other turns to end, if the engine is full: then it reads and decodes at a constant rate."""
    place = row.queue_time - row.met_time / 2 - row.bunch_time
    return place if place > row.met_time else 0.0


def _waiting(loop, row) -> tuple[float, float, np.ndarray]:
    """Return the fixed part of the time to first token, and the width of a cell and the chances of the rest.

    The wait for other turns has the distribution of a queue with one server, whose service times are the turns' reading
    times (found or lost). A part of a step and the turn's own reading are added.
    """
    times, weights = loop.turns_read.of_all(row.found_turns)
    load = min(row.prompt_load, 0.98)
    mean = times @ weights
    if place := _wait_for_a_place(row):
        ahead, pausing = row.turn_rate * place * ((times - mean) ** 2 @ weights), row.pause_mean / row.turn_rate
        late = (ahead + pausing) ** 0.5
        z = (np.arange(_CELLS) + 0.5) * 12 / _CELLS - 6
        return row.ttft - 6 * late, 12 * late / _CELLS, np.exp(-(z**2) / 2) / np.exp(-(z**2) / 2).sum()
    wait = row.turn_rate * (times**2 @ weights) / 2 / (1 - load)
    width = (12 * wait + 3 * times.max() + 2 * row.tpot) / _CELLS
    own = np.bincount((times / width).astype(int), weights, _CELLS)
    rest = (1 - np.cumsum(own)) * width / mean
    rest[0] = rest[0] or 1.0  # all turns are read within one cell
    step = np.maximum(0, np.minimum(1, row.tpot / width - np.arange(_CELLS))) * width / row.tpot
    shift = row.first_overhead + row.fetch_time + row.queue_time - row.met_time / 2 + row.tpot * (1 - load)
    longer = max(1.0, (row.ttft - shift - mean - row.tpot / 2) / wait)  # turns of one step end together
    queue = np.cumsum(np.fft.irfft((1 - load) / (1 - load * np.fft.rfft(rest / rest.sum())), _CELLS))
    queue = np.diff(np.interp(np.arange(_CELLS) / longer, np.arange(_CELLS), queue), prepend=0)
    parts = (np.fft.rfft(x) for x in (queue, own, step / step.sum()))
    return shift, width, np.fft.irfft(np.prod([*parts], 0), _CELLS)


def _decoding(loop, row, longest: float) -> tuple:
    """Return a cell's width, frequencies, and transforms of the time after the first token by answer, with chances.

    Lost turns that are read meanwhile come at random. Other turns that are read or decode come from a closed loop, in
    which a turn that decodes is not asked again: their number varies by the share of time that a session pauses. As
    all of them delay each other, each second of delay brings more of them (`gain`).
    """
    x, mean = loop.known, (row.output - 1) * row.tpot
    z, chances = length_nodes(x["answer_spread"])
    answers = np.exp(x["answer_spread"] * z - x["answer_spread"] ** 2 / 2)  # over their mean
    varied_share = 0 if _wait_for_a_place(row) else 1  # of the reads that a turn decodes beside
    lost_share = (1 - row.found_turns) * (row.turns - 1) / row.turns
    pauses = row.pause_mean / (row.pause_mean + mean)
    spare = 1 - row.prompt_load - row.turn_rate * (row.output - 1) * row.added_time
    gain = 1 / (1 - min(1 - spare, 0.98) * pauses)
    jumps, weights = loop.turns_read.of_lost()
    number, jumps = varied_share * row.turn_rate * mean * lost_share, gain * jumps
    reads = varied_share * row.turn_rate * mean * (1 - lost_share) * x["found_spread"] * row.found_time**2
    others = ((row.output - 1) * row.added_time) ** 2 * row.reserved_sessions
    varied = gain**2 * pauses * (reads * answers + others * answers**2)
    most = mean * min(answers[-1], 20) + 8 * varied.max() ** 0.5 + 3 * jumps.max() + longest
    width = most / (_CELLS - _BELOW)
    waves = 2 * np.pi * np.fft.rfftfreq(_CELLS, width)
    leaps = np.fft.rfft(np.bincount(np.minimum(jumps / width, _CELLS - 1).astype(int), weights, _CELLS)) - 1
    fixed = mean - number * (jumps @ weights)
    shift, spread = fixed * answers + _BELOW * width, varied + width**2
    log = np.outer(answers * number, leaps) - 1j * np.outer(shift, waves) - np.outer(spread, waves**2 / 2)
    return width, waves, np.exp(log), answers, chances


def percentile_cells(loop, row) -> dict[str, Cell]:
    """Return the 50th, 95th and 99th percentiles of a turn's times, by letter, at the working point of a row.

    Eight in ten simulated percentiles lie between `low` and `high`. The two are farther apart if a percentile rests on
    few lost turns, if turns wait for a place, or if answers of different lengths split a bunch of sessions.
    """
    would_bunch = 2.5 * loop.known["pause_deviation"] < row.prompt_load * (row.pause_mean + row.decoding_time)
    is_parting = would_bunch and loop.known["answer_spread"] > 0
    why = _LOST if row.found_turns < 0.99 else _PART if is_parting else ""
    why = "turns wait for a place" if _wait_for_a_place(row) else why
    low, high = (0.9, 1.7) if why else (0.85, 1.2)
    note = f"simulated turns: {low:g} to {high:g} times as long" + (why and f", because {why}")
    said = "sums of independent parts, by Fourier transforms; waits by Pollaczek and Khinchine", "kleinrock1975", note
    return {n: Cell(x, *said, low=low * x, high=high * x) for n, x in _percentiles(loop, row).items()}


def _percentiles(loop, row) -> dict[str, float]:
    shift, width, late = _waiting(loop, row)
    chances = np.cumsum(late)
    bunch = 0 if _wait_for_a_place(row) else row.bunch_time
    first = shift + bunch * (2 * np.array(_SHARES) - 1) + (np.searchsorted(chances, _SHARES) + 0.5) * width
    cell, waves, parts, answers, weights = _decoding(loop, row, np.searchsorted(chances, 0.9999) * width)
    # A turn of a bunch waits for 0 to all others. The later it is read, the fewer prompts it decodes beside, so its end
    # does not depend on its place.
    tokens = np.cumsum(np.fft.irfft(parts * np.sinc(waves * bunch / np.pi), _CELLS), 1)
    grid, steps = np.arange(_CELLS), row.output - 1
    under = sum(w * np.interp(grid * a + _BELOW, grid, x) for w, a, x in zip(weights, answers, tokens, strict=True))
    started = np.bincount((np.arange(_CELLS) * width / cell).astype(int), late, _CELLS)[:_CELLS]
    ended = np.cumsum(np.fft.irfft((weights @ parts) * np.fft.rfft(started), _CELLS))
    whole = shift + np.interp(_SHARES, np.maximum.accumulate(ended), (grid + 1 - _BELOW) * cell)
    per = np.interp(_SHARES, np.maximum.accumulate(under), (grid + 1) * cell / steps)
    times = {"ttft": first, "tpot": per, "end_to_end": whole}
    return {f"{n}_p{share * 100:.0f}": float(x) for n, y in times.items() for share, x in zip(_SHARES, y, strict=True)}
