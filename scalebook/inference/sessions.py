"""Sessions of agents: turns that each append to one context, with pauses in which the context's cache may be lost.

A closed loop of sessions shares an engine. Caches are evicted least recently used first, so a cache is kept for about
the same time everywhere (`kept_time`, Che's approximation), and the share of turns that find theirs follows from the
room and the law of the pauses. The wait for a place is part of the gap between two turns, which makes a cliff: the more
caches are lost, the longer all turns wait, and the more caches are lost.
"""

from sympy import Max, exp, log, pi, sqrt

from scalebook.inference import session_pauses, tiers
from scalebook.language import Sheet, constant, formula, formulas_of
from scalebook.language.defaults import equations
from scalebook.language.notation import quoted

_READS = {"turns that are read in less than all of the time": lambda prompt_load: prompt_load < 1}
_SPARE = {
    "time left for decode steps": lambda prompt_load, turn_rate, output, added_time: (
        prompt_load + turn_rate * (output - 1) * added_time < 1
    )
}


_OWN = equations(__name__)  # those of sessions.toml


# An engine that reads turns and decodes


@formula("reading_rms", "kleinrock1975")
def root_mean_square_reading(found_turns, found_time, found_spread, lost_time, lost_spread, turns):
    """Root mean square of the time to read a turn: lost turns count for most of it.

    >>> known = dict(found_time="0.1 s", found_spread=1, lost_time="1.9 s", lost_spread=1.3, turns=33)
    >>> round(root_mean_square_reading(known, found_turns=0.95), 2)
    0.49
    """
    lost = (1 - found_turns) * (turns - 1) / turns
    return sqrt((1 - lost) * found_spread * found_time**2 + lost * lost_spread * lost_time**2)


@formula(
    "decoding_time", "kleinrock1975", "little1961", given=[_OWN.prompt_load_turns, root_mean_square_reading],
    domain=_SPARE,
)  # fmt: skip
def decoding_time_turns(base_time, added_time, turn_rate, output, prompt_load, pause_mean, reading_rms):
    """Mean time that a turn's answer takes after its first token, if turns come at random.

    The fixed time of all steps, and the time to read the turns that wait when the answer begins, are divided by the
    share of time that nothing else takes. A turn is itself part of each step, so on average it meets the other sessions
    that much less.

    >>> known = dict(base_time="8 ms", added_time="0.3 ms", turn_rate=4, output=351, prompt_load=0.4, pause_mean="10 s")
    >>> [round(decoding_time_turns(known, reading_rms=x), 2) for x in (0.1, 0.3)]
    [15.97, 17.44]
    """
    steps = output - 1
    spare = 1 - prompt_load - turn_rate * steps * added_time
    waiting = turn_rate * reading_rms**2 / 2 / (1 - prompt_load)
    alone = (steps * base_time + waiting) / spare
    return alone + steps * added_time / spare * pause_mean / (pause_mean + alone)


@formula("bunched_share", "scalebook", given=[_OWN.prompt_load_turns, decoding_time_turns])
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


@formula("bunched_time", "little1961", given=[_OWN.prompt_load_turns], domain=_SPARE)
def bunched_time_of_loop(base_time, added_time, turn_rate, output, prompt_load, pause_mean):
    """Time from one turn of a session to the next if all sessions form one bunch, which is read and then decodes.

    >>> known = dict(base_time="8 ms", added_time="0.3 ms", turn_rate=2, output=351, prompt_load=0.2, pause_mean="10 s")
    >>> round(bunched_time_of_loop(known), 1)
    21.7
    """
    steps = output - 1
    return (pause_mean + steps * base_time) / (1 - prompt_load - turn_rate * steps * added_time)


@formula("bunch_time", "scalebook", given=[_OWN.prompt_load_turns, bunched_share_of_pauses, bunched_time_of_loop])
def bunch_time_half(bunched_share, prompt_load, bunched_time):
    """Mean wait for the other turns of a bunch: half of the time that it takes to read them.

    >>> bunch_time_half(bunched_share=1, prompt_load=0.2, bunched_time="22 s")
    2.2
    """
    return bunched_share * prompt_load * bunched_time / 2


@formula("tpot", "little1961", given=[_OWN.prompt_load_turns, decoding_time_turns, bunched_share_of_pauses])
def tpot_turns(decoding_time, bunched_share, bunched_time, pause_mean, output, prompt_load):
    """Mean time per output token of a turn. Some turns come at random, and bunched turns all decode together.

    >>> known = dict(bunched_time="22 s", pause_mean="10 s", output=351, prompt_load=0.2)
    >>> [round(tpot_turns(known, decoding_time="7 s", bunched_share=x) * 1e3, 1) for x in (0, 1)]
    [20.0, 28.0]
    """
    bunched = bunched_time * (1 - prompt_load / 2) - pause_mean
    return ((1 - bunched_share) * decoding_time + bunched_share * bunched) / (output - 1)


@formula("met_time", "kleinrock1975", given=[_OWN.prompt_load_turns, root_mean_square_reading], domain=_READS)
def met_time(tpot, turn_rate, reading_rms, prompt_load):
    """Mean length of the step that a new turn meets: long steps meet more turns than short ones.

    Turns that come during a step are read in the next one.

    >>> known = dict(tpot="50 ms", turn_rate=4, found_turns=1, found_time="0.1 s", lost_time="1.5 s", turns=33)
    >>> round(met_time(known, found_spread=1, lost_spread=1.3, prompt_load=0.4) * 1e3, 1)
    97.6
    """
    return tpot + turn_rate * reading_rms**2 / (1 - prompt_load**2)


@formula("ttft", "kleinrock1975", given=[_OWN.prompt_load_turns, _OWN.reading_time_turn])
def ttft_turns(
    first_overhead, queue_time, fetch_time, tpot, prompt_load, reading_time_turn, read_tokens, chunk_tokens, met_time
):
    """Mean time to first token of a turn: the wait, the fetch of its cache, and the step that reads it with others.

    A turn of more than `chunk_tokens` tokens takes several steps.

    >>> step = dict(tpot="50 ms", prompt_load=0.4, reading_time_turn="0.1 s", met_time="100 ms", chunk_tokens=8192)
    >>> ttft_turns(step, first_overhead=0, queue_time="50 ms", fetch_time=0, read_tokens=1891)
    0.22
    """
    steps = Max(1, read_tokens / chunk_tokens, evaluate=False)
    step = tpot * (1 - prompt_load) * steps + reading_time_turn + prompt_load * met_time
    return first_overhead + queue_time + fetch_time + step


# Room


@formula("room_tokens", "fricker2012", "little1961", given=[_OWN.own_tokens])
def cached_room_turns(
    prefix, reserved_sessions, own_tokens, turn_rate, turns, queue_time, pause_kept, kept_time, appended, output
):  # fmt: skip
    """Tokens of all caches that are kept: the prefix, running sequences, pausing sessions and ended sessions.

    After each turn but the last a cache waits for the pause and the wait, but no longer than it is kept. After the last
    it stays for as long as caches are kept.

    >>> known = dict(prefix=12_000, reserved_sessions=56, turn_rate=4, turns=33, appended=1891, output=351)
    >>> round(cached_room_turns(known, queue_time="0.1 s", pause_kept="7.8 s", kept_time="30 s") / 1e6, 2)
    3.55
    """
    kept = (appended + output) * turns * (turns - 1) / 2 * (queue_time + pause_kept)
    ended = (appended + output) * turns * kept_time
    return prefix + reserved_sessions * own_tokens + turn_rate / turns * (kept + ended)


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
    return cached_room_turns.of(kept_time=kept_time, pause_kept=pause_mean * found_turns)


half_deviation = constant(
    "half_deviation", "session_spread", "0.5", "scalebook",
    "Standard deviations of the live caches for which room is left: half of one.\n\n"
    "Calibrated by us: of seven services that were simulated for an hour, as many sessions lose half of the turn rate.",
)  # fmt: skip


@formula("sessions_most", "scalebook", given=[half_deviation])
def edge_of_cliff(sessions_lost, session_spread, replicas, attention_dp):
    """Most sessions that keep their caches, although the sum of their contexts varies.

    Sessions are in different turns, so their contexts differ by 1/√3 of the mean, and the sum of n contexts by that
    over √n in each attention group. With `sessions_lost` average sessions or more, lost caches stay lost.

    >>> round(edge_of_cliff(sessions_lost=154, replicas=1, attention_dp=1), 1)
    150.5
    """
    half = session_spread * sqrt(replicas * attention_dp / 12)
    return (sqrt(sessions_lost + half**2) - half) ** 2


_COMMON = (
    _OWN.session_inputs, _OWN.own_tokens, _OWN.hit_share_session, _OWN.read_tokens_turn, _OWN.reading_time_turn,
    _OWN.prompt_load_turns, tpot_turns, decoding_time_turns, bunched_share_of_pauses, bunched_time_of_loop,
    bunch_time_half, met_time, root_mean_square_reading, _OWN.queue_time_turns, session_pauses.kept_time_of_pause,
    _OWN.request_rate_turns, ttft_turns, _OWN.reserved_sessions, _OWN.sessions_in_loop, cached_room_turns,
    edge_of_cliff, half_deviation, tiers.session_cost, tiers.read_cost, tiers.written_cost, tiers.found_cost_rented,
    tiers.break_even_of_lost, tiers.keep_pause_memory, _OWN.pool_ratio_turns,
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
