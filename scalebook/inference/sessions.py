"""Sessions of agents: turns that each append to one context, with pauses in which the context's cache may be lost.

A closed loop of sessions shares an engine. Caches are evicted least recently used first, so a cache is kept for about
the same time everywhere (`kept_time`, Che's approximation), and the share of turns that find theirs follows from the
room and the law of the pauses. The wait for a place is part of the gap between two turns, which makes a cliff: the more
caches are lost, the longer all turns wait, and the more caches are lost.
"""

from sympy import Max, exp, log, pi, sqrt

from scalebook.inference import session_pauses, tiers
from scalebook.language import Sheet, formula, formulas_of
from scalebook.language.defaults import equations
from scalebook.language.notation import quoted

_OWN = equations(__name__)  # those of sessions.toml


# An engine that reads turns and decodes


@formula("bunched_share", "scalebook", given=[_OWN.prompt_load_turns, _OWN.decoding_time_turns])
def bunched_share_of_pauses(pause_deviation, answer_spread, prompt_load, pause_mean, decoding_time):
    """Share of sessions that keep step with each other: 1 for constant pauses, 0 for pauses that differ enough.

    Turns that are read one after another decode together and end together. So sessions whose pauses differ by less than
    all of them take to read come back as one bunch. Normal pauses are taken to come at their peak rate. Answers of
    different lengths part the sessions too.

    >>> known = dict(prompt_load=0.4, answer_spread=0, pause_mean="10 s", decoding_time="10 s")
    >>> [round(bunched_share_of_pauses(known, pause_deviation=x), 2) for x in (0, 1, 4)]
    [1.0, 0.69, 0.0]
    """
    deviation = sqrt(pause_deviation**2 + (exp(answer_spread**2) - 1) * decoding_time**2)
    return Max(0, 1 - sqrt(2 * pi) * deviation / (prompt_load * (pause_mean + decoding_time)), evaluate=False)


@formula("bunch_time", "scalebook", given=[_OWN.prompt_load_turns, bunched_share_of_pauses, _OWN.bunched_time_of_loop])
def bunch_time_half(bunched_share, prompt_load, bunched_time):
    """Mean wait for the other turns of a bunch: half of the time that it takes to read them.

    >>> bunch_time_half(bunched_share=1, prompt_load=0.2, bunched_time="22 s")
    2.2
    """
    return bunched_share * prompt_load * bunched_time / 2


@formula("tpot", "little1961", given=[_OWN.prompt_load_turns, _OWN.decoding_time_turns, bunched_share_of_pauses])
def tpot_turns(decoding_time, bunched_share, bunched_time, pause_mean, output, prompt_load):
    """Mean time per output token of a turn. Some turns come at random, and bunched turns all decode together.

    >>> known = dict(bunched_time="22 s", pause_mean="10 s", output=351, prompt_load=0.2)
    >>> [round(tpot_turns(known, decoding_time="7 s", bunched_share=x) * 1e3, 1) for x in (0, 1)]
    [20.0, 28.0]
    """
    bunched = bunched_time * (1 - prompt_load / 2) - pause_mean
    return ((1 - bunched_share) * decoding_time + bunched_share * bunched) / (output - 1)


@formula(
    "room_tokens", "fricker2012", given=[session_pauses.pause_mean_exponential, _OWN.own_tokens],
    domain={"a share below 1": lambda found_turns: found_turns < 1},
)  # fmt: skip
def room_for_share(
    found_turns, prefix, reserved_sessions, own_tokens, turn_rate, turns, queue_time, pause_mean, appended, output
):  # fmt: skip
    """Tokens of cache that let a given share of turns find their caches, for exponential pauses.

    >>> known = dict(prefix=12_000, reserved_sessions=56, turn_rate=4, turns=33, appended=1891, output=351)
    >>> known |= dict(queue_time="0.1 s", pause_mean="10 s")
    >>> [round(room_for_share(known, found_turns=x) / 1e6, 2) for x in (0.5, 0.9, 0.99)]
    [2.94, 3.66, 4.0]
    """
    kept_time = queue_time - pause_mean * log(1 - found_turns)
    return _OWN.cached_room_turns.of(kept_time=kept_time, pause_kept=pause_mean * found_turns)


_COMMON = (
    _OWN.session_inputs, _OWN.own_tokens, _OWN.hit_share_session, _OWN.read_tokens_turn, _OWN.reading_time_turn,
    _OWN.prompt_load_turns, tpot_turns, _OWN.decoding_time_turns, bunched_share_of_pauses, _OWN.bunched_time_of_loop,
    bunch_time_half, _OWN.met_time, _OWN.root_mean_square_reading, _OWN.queue_time_turns,
    session_pauses.kept_time_of_pause, _OWN.request_rate_turns, _OWN.ttft_turns, _OWN.reserved_sessions,
    _OWN.sessions_in_loop, _OWN.cached_room_turns, _OWN.edge_of_cliff, _OWN.half_deviation, tiers.session_cost,
    tiers.read_cost, tiers.written_cost, tiers.found_cost_rented, tiers.break_even_of_lost, tiers.keep_pause_memory,
    _OWN.pool_ratio_turns,
)  # fmt: skip
_OF_PAUSES = ("pause_mean", "pause_deviation", "found_turns", "pause_kept")  # each law has a formula of each


def _sheet(law: str) -> Sheet:
    own = (getattr(session_pauses, f"{x}_{law}") for x in _OF_PAUSES)
    return Sheet(f"sessions_{law}", *own, *_COMMON, doc=f"Sessions of agents with {law} pauses on one engine.")


_SHEETS = {law: _sheet(law) for law in ("lognormal", "exponential")}


def session_sheet(pauses: str = "lognormal") -> Sheet:
    """Return the sheet of sessions whose pauses follow a law: "lognormal" (constant if the spread is 0), "exponential".

    >>> "room_tokens" in session_sheet("exponential").formulas
    True
    """
    if not isinstance(pauses, str) or pauses not in _SHEETS:
        raise ValueError(f"pauses is 'lognormal' or 'exponential', not {quoted(pauses)}")
    return _SHEETS[pauses]


__all__ = [*formulas_of(__name__), "session_sheet"]
