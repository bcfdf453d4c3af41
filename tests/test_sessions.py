"""Sessions of agents: the closed forms against an engine that is simulated step by step, and against plain LRU."""

import inspect
import json

import numpy as np
import pytest
from scalebook.book.planner import planner

from scalebook.inference import Trace, decode_step, read_trace, serve, session_sheet, sessions_on, simulate_sessions
from scalebook.inference.session_pauses import normal_share
from scalebook.inference.simulation import simulate_serving  # noqa: F401  (of cases.csv)
from scalebook.inference.tiers import keep_pause_memory
from scalebook.measurements import confront
from scalebook.rl import rl_step  # noqa: F401  (of cases.csv)
from scalebook.search import search
from scalebook.tables import accelerators, models, tiers
from scalebook.tables import drafts as drafts_table

from .support import cases

H200 = accelerators.h200.at("fp8")
CODEX = dict(turns=33, prefix=12_000, appended=1891, output=351)
LAWS = cases("laws of pauses", globals())
SERVICES = cases("services of sessions", dict(globals(), models=models))
CASES = [("Llama 70B", x) for x in LAWS] + [(x, "lognormal") for x in list(SERVICES)[1:]]


def called(service, law, **more):
    model, device, ways = SERVICES[service]
    return (model, device), {**ways, **CODEX, **LAWS[law], "engine": "vllm", **more}


@pytest.fixture(scope="module", params=CASES, ids=" ".join)
def case(request):
    rows, letters = called(*request.param)
    loop = sessions_on(serve, *rows, **letters)
    return loop, lambda n: serve.sessions(*rows, **letters, sessions=n)


def test_the_closed_form_is_near_a_simulated_engine(case):
    """Away from the cliff: turn rate 3 %, time per token 10 %, first token 25 %, 95th percentiles 15 %."""
    loop, row_of = case
    errors, is_within = [], []
    for share in (0.3, 0.6, 0.8):
        row = row_of(round(share * loop.lost_from))
        run = simulate_sessions(loop, round(row.sessions), 1500.0 if loop.known["pause_mean"] < 60 else 5000.0)
        assert row.found_turns == pytest.approx(run.found_turns, abs=0.02)
        assert row.hit_share == pytest.approx(run.hit_share, abs=0.015)
        assert row.tpot == pytest.approx(run.tpot.mean(), rel=0.1)
        assert row.ttft - row.first_overhead == pytest.approx(run.ttft.mean(), rel=0.25)
        late = []
        for name, added in (("ttft", row.first_overhead), ("tpot", 0), ("end_to_end", row.first_overhead)):
            for n in (50, 95, 99):
                cell, simulated = row.cells[f"{name}_p{n}"], np.quantile(getattr(run, name), n / 100) + added
                late.append((cell.value - added) / (simulated - added) - 1)
                is_within.append(cell.low <= simulated <= cell.high)
        errors.append([row.turn_rate / run.turn_rate - 1, *late])
    rate, *late = np.median(np.abs(errors), axis=0)
    print([f"{x:+.0%}" for x in np.mean(errors, axis=0)])
    assert rate < 0.03 and max(late[1::3]) < 0.15  # 95th percentiles
    assert max(late) < 0.3 and np.median(late) < 0.1 and np.mean(is_within) >= 0.8


@pytest.mark.parametrize("spreads", [dict(answer_spread=0.5), dict(prompt_spread=0.7, answer_spread=1)], ids=str)
def test_answers_of_different_lengths_part_the_sessions_of_a_bunch(spreads):
    rows, letters = called("Llama 70B", "constant", **spreads)
    loop, row = sessions_on(serve, *rows, **letters), serve.sessions(*rows, **letters, sessions=90)
    run = simulate_sessions(loop, 90)
    assert row.turn_rate == pytest.approx(run.turn_rate, rel=0.05) and row.ttft < 3 and run.ttft.mean() < 3
    assert row.tpot == pytest.approx(run.tpot.mean(), rel=0.1)
    assert "answers of different lengths part sessions" in row.cells["ttft_p95"].note


def test_the_cliff_is_where_simulated_services_lose_half_of_their_turns(case):
    loop, row_of = case
    edge = row_of(10).sessions_most
    half = row_of(0.8 * edge).turn_rate / 2
    below, above = (simulate_sessions(loop, round(x * edge)).turn_rate for x in (0.94, 1.06))
    assert below > half > above


def test_a_simulation_that_is_too_short_for_a_turn_has_no_rate():
    brief = dict(turns=8, prefix=500, appended=200, output=50, pause=2, pause_spread=0.01)
    loop = sessions_on(serve, models.llama3_70b, accelerators.h200.at("fp8"), tp=8, **brief)
    assert simulate_sessions(loop, 8, seconds=2).turn_rate == 0


def test_beyond_the_cliff_all_caches_are_lost():
    rows, letters = called("Llama 70B", "lognormal")
    loop, row = sessions_on(serve, *rows, **letters), serve.sessions(*rows, **letters, sessions=240)
    run = simulate_sessions(loop, 240)
    assert row.caches == "lost" and row.found_turns < 0.01
    assert row.turn_rate == pytest.approx(run.turn_rate, rel=0.05)
    assert row.ttft == pytest.approx(run.ttft.mean(), rel=0.1)
    assert row.hit_share == pytest.approx(run.hit_share, abs=0.01)  # the shared prefix is found
    for name in ("ttft", "tpot", "end_to_end"):
        assert row[f"{name}_p95"] == pytest.approx(np.quantile(getattr(run, name), 0.95), rel=0.05)


def test_host_memory_takes_the_cliff_away_and_the_batch_is_then_the_limit():
    rows, letters = called("Llama 70B", "lognormal", tiers=["host_memory"])
    loop = sessions_on(serve, *rows, **letters)
    alone = serve.sessions(*rows, **letters | dict(tiers=()), sessions=150)
    for sessions in (150, 240, 400):
        row, run = serve.sessions(*rows, **letters, sessions=sessions), simulate_sessions(loop, sessions)
        assert row.turn_rate == pytest.approx(run.turn_rate, rel=0.03)
        assert row.tpot == pytest.approx(run.tpot.mean(), rel=0.1)
        assert row.ttft == pytest.approx(run.ttft.mean(), rel=0.15) and row.hit_share > 0.95
    assert row.sessions_most > 3 * alone.sessions_most


@pytest.mark.parametrize("law", ["lognormal", "exponential"])
def test_the_row_is_a_point_of_the_sheet_and_the_sheet_solves_it_both_ways(law):
    rows, letters = called("Llama 70B", law)
    row, loop = serve.sessions(*rows, **letters, sessions=140), sessions_on(serve, *rows, **letters)
    assert row.sessions == pytest.approx(140, rel=2e-3)
    assert row.room_tokens == pytest.approx(loop.rooms[0], rel=2e-3)
    sheet = session_sheet(letters.get("pauses", "lognormal"))
    inputs = {n: row[n] for n in (*sheet.inputs, "queue_time") if n in row}
    assert sheet(**inputs).room_tokens == pytest.approx(row.room_tokens, rel=1e-9)
    room = sheet.formula("room_tokens", keep=("reserved_sessions", "queue_time", "own_tokens"))
    known = {n: row[n] for n in room.inputs if n != "kept_pause"}
    pause = room(**known).solve("kept_pause")(room_tokens=row.room_tokens)
    assert pause == pytest.approx(row.kept_pause, rel=1e-6)


def test_the_exponential_room_is_elementary_in_the_share():
    from scalebook.inference.sessions import room_for_share

    rows, letters = called("Llama 70B", "exponential")
    row = serve.sessions(*rows, **letters, sessions=130)
    known = {n: row[n] for n in room_for_share.inputs}
    assert room_for_share(**known) == pytest.approx(row.room_tokens, rel=1e-3)


def test_more_sessions_tiers_and_room_do_what_they_should():
    rows, letters = called("Llama 70B", "lognormal")
    found = [serve.sessions(*rows, **letters, sessions=x) for x in (20, 60, 100, 140)]
    assert (np.diff([x.tpot for x in found]) > 0).all() and (np.diff([x.kept_time for x in found]) < 0).all()
    small = {**tiers.host_memory, "tier_capacity": "8 GB"}
    stacks = ((), [small], ["host_memory"], ["nvme_gen4"])
    *_, near, drive = kept = [serve.sessions(*rows, **letters, sessions=140, tiers=x) for x in stacks]
    assert (np.diff([x.sessions_most for x in kept[:3]]) > 0).all()
    assert drive.fetch_time > near.fetch_time > 0 and near.found_cost > 0 == found[0].found_cost
    assert near.keep_pause == keep_pause_memory(near) and near.break_even_bandwidth < tiers.nvme_gen4.tier_bandwidth


def test_copies_and_attention_groups_share_the_sessions():
    rows, letters = called("Llama 70B", "lognormal")
    one, two = (serve.sessions(*rows, **letters, sessions=60 * n, replicas=n) for n in (1, 2))
    for letter, times in (("turn_rate", 1), ("session_cost", 1), ("request_rate", 2)):
        assert two[letter] == pytest.approx(times * one[letter], rel=1e-6)


def test_the_logistic_curve_is_the_normal_distribution():
    from math import erf

    assert max(abs(float(normal_share(x)) - (1 + erf(x / 2**0.5)) / 2) for x in np.linspace(-4, 4, 81)) < 2e-4


@pytest.fixture(scope="module")
def trace():
    """Sessions that begin at random, with lognormal pauses, each turn of which asks for all blocks of its context."""
    rng, asked = np.random.default_rng(0), []
    for session, start in enumerate(np.cumsum(rng.exponential(0.5, 1800))):
        times = start + np.cumsum(3 * rng.lognormal(sigma=1.0, size=12))
        asked += [(t, [0, 1, 2, *(10 + 100 * session + i for i in range(3 * turn))]) for turn, t in enumerate(times, 1)]
    asked = [x for x in asked if 200 < x[0] < 800]  # while sessions come and go evenly
    times, blocks = zip(*sorted(asked), strict=True)
    return Trace(np.array(times), list(blocks))


@pytest.mark.parametrize("share", [0.01, 0.02, 0.03, 0.05, 0.08, 0.12, 0.2])
def test_the_gaps_of_a_trace_say_what_a_cache_finds(trace, share):
    room = share * 1800 * 36 * trace.block
    assert trace.found_in_closed_form(room) == pytest.approx(trace.found(room), abs=0.01)


def test_a_trace_is_read_from_json_lines_and_from_a_table(trace, tmp_path):
    lines = [dict(timestamp=1e3 * t, hash_ids=[*map(str, b)]) for t, b in zip(trace.times, trace.blocks, strict=True)]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, lines)))
    table = ["timestamp,hash_ids", *(f"{x['timestamp']},{' '.join(y for y in x['hash_ids'])}" for x in lines)]
    (tmp_path / "a.csv").write_text("\n".join(table))
    for name in ("a.jsonl", "a.csv"):
        assert read_trace(str(tmp_path / name)).found(10**6) == trace.found(10**6)
    (tmp_path / "b.jsonl").write_text('{"timestamp": 0}')
    with pytest.raises(ValueError, match="request 1 needs a timestamp in ms and a list of hash_ids"):
        read_trace(str(tmp_path / "b.jsonl"))


def test_published_sessions_and_traces_are_found_within_a_point_and_the_bill_within_an_eighth():
    found = confront("trace_share")
    assert len(found.rows) == 7 and np.abs(found.predicted - found.measured).max() < 0.01
    agents = confront("agents")
    for row, said, got in zip(agents.rows, agents.predicted, agents.measured, strict=True):
        assert said == pytest.approx(got, **dict(abs=0.01) if "found" in row["quantity"] else dict(rel=0.12))


@pytest.mark.parametrize("service", SERVICES)
@pytest.mark.parametrize("users", [1, 8, 32])
def test_drafts_move_the_time_of_a_token_and_all_that_rests_on_it(service, users):
    model, device, ways = SERVICES[service]
    known = dict(ways, users=users, prompt=4000, output=300, engine="vllm")
    plain = serve(model, device, **known)
    for drafts in (dict(drafted=3, acceptance=0.8, draft_cost=0.05), drafts_table.mtp_deepseek_v3):
        row = serve(model, device, **known, **drafts)
        assert row.step_tokens > 1 and row.pass_time > plain.pass_time  # a step checks more tokens
        gain = row.step_tokens / (1 + row.drafted * row.draft_cost)
        assert 1 < plain.token_time / row.token_time <= gain
        assert row.tpot < plain.tpot and row.million_cost < plain.million_cost
    none = serve(model, device, **known, drafted=3, acceptance=0)
    assert none.token_time > plain.token_time


def test_a_cache_is_read_once_for_all_drafts_so_long_contexts_gain_at_every_batch():
    times = []
    for context in (1000, 100_000):
        step = dict(tp=8, batch=30, context=context)
        plain, drafted = (decode_step(models.llama3_70b, H200, **step, **x) for x in ({}, dict(drafted=3)))
        assert drafted.cache_time == pytest.approx(plain.cache_time, rel=0.05)
        times.append(drafted.pass_time / plain.pass_time)
    assert times[1] < 1.1 < times[0]


def test_a_service_without_a_cliff_says_so():
    rows, letters = called("Llama 70B", "lognormal", pause="600 s")
    row = serve.sessions(*rows, **letters, sessions=100)
    assert row.sessions_most == "no sharp one: caches are lost little by little"
    assert "sessions_most" not in row.cells


def test_a_search_finds_the_cheapest_service_that_keeps_all_caches():
    known = CODEX | LAWS["lognormal"] | dict(sessions=300)
    devices = [H200, accelerators.h100.at("fp8")]
    found = search(
        serve.sessions, models.llama3_70b, devices, engine=["vllm", "sglang"], tp=[4, 8], ttft="2 s", best=30, **known
    )
    assert len({x["device"] for x in found.choices}) == 2 and all(x.caches == "kept" for x in found.best)
    assert all(x.ttft <= 2 and x.sessions == pytest.approx(300, rel=2e-3) for x in found.best)
    costs = [x.session_cost for x in found.best]
    assert costs == pytest.approx(sorted(costs), rel=0.02)  # the tiers' price is a per cent at most
    columns, said = found.to_dict(), repr(found)
    assert columns["cost"] == sorted(columns["cost"]) and columns["tp"] == [x.tp for x in found.best]
    assert f"{found.count} services keep all caches" in said and found.count > len(found.best) == 30
    assert said.splitlines()[0] == repr(found.first(1)).splitlines()[0]
    assert repr(found).count("H100") == 1 and "H100" in found._repr_html_()  # the best of each device
    few = search(serve.sessions, models.llama3_70b, [*devices, accelerators.tpu_v5e], tp=8, **known)
    assert few.without.keys() == {accelerators.tpu_v5e.name} and "of weights are" in repr(few)
    drafts = dict(engine="vllm", drafted=3, acceptance=0.8)
    quick = search(serve.sessions, models.llama3_70b, H200, tp=8, ttft="2 s", **drafts, **known)
    assert quick.best[0].session_cost < min(costs)


def test_a_service_found_for_sessions_is_a_call_with_the_same_defaults():
    asked = (models.llama3_70b, H200), CODEX | LAWS["lognormal"] | dict(sessions=100, tp=8)
    best = search(serve.sessions, *asked[0], tiers=[], **asked[1]).best[0]
    again = serve.sessions(*asked[0], **asked[1], replicas=best.replicas)
    assert again == best and planner("agents").plan["engine"] == serve.engine


LENGTHS = dict(prompt=8192, output=512)
ROWS, LAID = (models.gpt_oss_120b, accelerators.h200), dict(tp=8, attention_dp=2, ep=16, engine="vllm")  # two nodes
ASKED_RL = dict(devices=64, responses=2048, response=3256, response_most=3976, rollout="tp=4", training="tp=4 pp=4")
RL = (models.qwen3_32b, accelerators.h100), ASKED_RL | dict(reward_time=5.0)
OF_OTHERS = {"shared_heads", "prompt_layer_overhead"} | {x for x in serve.takes if "encoder" in x}  # of other models
# An entry, its rows and letters, and letters that it takes though they are idle there, such as what only limits
ASKED = cases("services whose letters are moved", globals())
LETTERS = cases("letters that move a service", globals())


def _found(result, letter):
    """All of a result but one letter."""
    row = getattr(result, "row", result)
    values = {n: x.value for n, x in row.cells.items() if n != letter} if hasattr(row, "cells") else vars(row)
    return repr((values, getattr(row, "words", None), result if result is not row else None))


@pytest.mark.parametrize("name", ASKED)
def test_every_letter_moves_the_answer_or_is_refused(name):
    entry, rows, asked, idle = ASKED[name]
    plain = entry(*rows, **asked)
    given = (x for x in (*rows, getattr(plain, "row", plain), asked) if hasattr(x, "keys"))
    known = {n: x for row in given for n, x in row.items()}
    service = {*LETTERS} if name == "search" else {*LETTERS, *serve.letters, *session_sheet().letters}
    shown, ignored, refused = {*inspect.signature(entry).parameters}, [], set()
    for letter in sorted((shown | service) - {*idle.split()}):
        here, own, is_taken = _found(plain, letter), known.get(letter, 1.0), False
        values = (2 * own, own / 2, 0.7 * own) if isinstance(own, float | int) else ()
        for value in (*values, LETTERS.get(letter, 7.0), 0.3, 2.0, 1e-4, 1500.0):
            try:
                if _found(entry(*rows, **asked | {letter: value}), letter) != here:
                    break
                is_taken = True
            except TypeError as error:
                refused |= {letter} if f" does not use {letter}" in str(error) else set()
                break
            except (ValueError, LookupError):  # this value does not go with the others
                continue
        else:
            ignored += [letter] * is_taken
    assert not ignored
    assert rows != ROWS or refused & {*entry.takes} <= OF_OTHERS, "a signature shows what is refused"
