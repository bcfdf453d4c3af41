"""Calculon's own search space: as many strategies as Calculon goes through,
each priced and refused as Calculon does.
"""

import itertools
import math
import random
from functools import cache

import pytest

from scalebook.calculon import Strategies, application, calculon_step, library, priced
from scalebook.calculon.cases import by, by_tier, pick, plain
from scalebook.language.notation import symbol
from scalebook.search import search
from scalebook.search.arguments import problem_of
from scalebook.search.problem import about, layouts, looked_through, stand_for, word_combinations

from .support import cases, each_case

H100, A100 = library.systems["h100_80g_nvl8"], library.systems["a100_80g"]
SMALL = dict(devices=16, global_batch=8)
MODEL = application(library.models["gpt3-1.3B"])


def problem(model, machine, devices, batch, **more):
    known = dict(devices=devices, global_batch=batch)
    return problem_of(
        Strategies(machine), (application(library.models[model]),), None, None, None, (), (), 10, known | more
    )


def size(problem):
    """How many strategies a space has, none of them priced."""
    words, whole, there, left_out = word_combinations(problem), layouts(problem), 0, 0
    for slab, out in looked_through(problem, whole, range(len(whole) * problem.in_layout)):
        there += stand_for(problem, slab, words).sum()
        left_out += sum(stand_for(problem, x, words).sum() for x in out.values())
    told, is_exact = about(problem, whole, words)  # before it is priced
    assert told == there if is_exact else told == pytest.approx(there, rel=0.2)
    return there + left_out


@each_case("spaces that Calculon counts", "model, machine, devices, batch, fused, strategies", globals())
def test_as_many_strategies_as_calculon_counts(model, machine, devices, batch, fused, strategies):
    assert size(problem(model, machine, devices, batch, fused=fused)) == strategies


def test_as_many_are_valid_as_calculon_finds():
    found = search(
        Strategies(A100), application(library.models["turing-530B"]), devices=5128, global_batch=2520, fused=True
    )
    assert found.fitting + sum(found.rejected.values()) == 10_944
    assert found.fitting == 1_080


def documents(model, machine, devices, batch, fused=(True, False)):
    """Calculon's space one by one, as its nested loops have it."""

    def of(x):
        return [n for n in range(1, x + 1) if x % n == 0]

    has_far, nets = machine.far.capacity > 0, range(len(machine.networks))
    for tp in of(devices):
        if model["hidden"] % tp or model["attn_heads"] % tp:
            continue
        for pp in of(min(devices // tp, model["num_blocks"])):
            dp = devices // tp // pp
            if devices % (tp * pp) or model["num_blocks"] % pp or dp > batch:
                continue
            whole = batch // dp * dp
            for chunks, mb in itertools.product([1] if pp == 1 else of(model["num_blocks"] // pp), of(whole // dp)):
                if mb * model["seq_size"] % tp:
                    continue
                for recompute, exchange in itertools.product(
                    ("none", "attn_only", "full"), ("ar", "p2p_rs_ag", "rs_ag")
                ):
                    again = (False, True) if exchange == "rs_ag" and recompute != "full" else (False,)
                    for choice in itertools.product(
                        ("none", "ring", "pipe") if tp > 1 else ("none",),
                        again,
                        fused,
                        *[(False, True) if dp > 1 else (False,)] * 2,
                        *[(False, True) if has_far else (False,)] * 3,
                        *[nets if x > 1 else (0,) for x in (tp, pp, dp)],
                    ):
                        if recompute != "full" or not choice[6]:
                            yield (tp, pp, dp, whole, chunks, mb, recompute, exchange, *choice)


FIELDS = cases("fields of Calculon by our letters", {})
LETTERS = ("dp_overlap", "weight_offload", "activation_offload", "optimizer_offload")
REASONS = cases("why Calculon refuses", globals())
OWN = ["near_blocks <= stage_blocks", "train_memory <= hbm_capacity", "offload_memory <= host_capacity"]


def fits_networks(x, machine):
    for tier, network in enumerate(machine.networks):
        used = math.prod(way for way, own in zip(x[:3], x[-3:], strict=True) if own == tier)
        if used > network.size or (network.whole and network.size % used):
            return False
    return True


def sample(model, machine, devices, batch, fitting, others):
    """Strategies of the space at random: so many that fit the networks, so many that do not."""
    rng, kept, seen = random.Random(3), ([], []), [0, 0]
    # Millions of strategies share a few of these.
    fits = cache(lambda ways, tiers: fits_networks((*ways, *tiers), machine))
    for x in documents(library.models[model], machine, devices, batch):
        kind = not fits(x[:3], x[-3:])
        number = (fitting, others)[kind]
        seen[kind] += 1
        if len(kept[kind]) < number:
            kept[kind].append(x)
        elif (place := int(rng.random() * seen[kind])) < number:
            kept[kind][place] = x
    return [*kept[0], *kept[1]], sum(seen)


@each_case("spaces of Calculon that are sampled", "model, machine, devices, batch, fitting, others", globals())
def test_random_strategies_are_priced_and_refused_as_calculon_does(model, machine, devices, batch, fitting, others):
    strategies, number = sample(model, machine, devices, batch, fitting, others)
    assert number == size(problem(model, machine, devices, batch))
    row, right, refused = application(library.models[model]), 0, 0
    for x in strategies:
        own = dict(zip(FIELDS, x, strict=True))
        document = {**library.example, **dict(zip(FIELDS.values(), x, strict=True)), "num_procs": devices}
        letters = {n: int(v) if n in LETTERS else v for n, v in own.items() if n not in ("dp", "global_batch")}
        asked = dict(devices=devices, global_batch=batch, progress=False, **letters)
        try:
            run = calculon_step(library.models[model], document, machine)
        except ValueError as error:
            refused += 1
            with pytest.raises(ValueError) as ours:
                search(Strategies(machine), row, **asked)
            kind = next(words for name, words in REASONS.items() if f"most: {name}" in str(ours.value))
            assert kind in str(error), own
            if "blocks in a stage" in str(error) or "network" in str(error):
                continue
            run = priced(library.models[model], document, machine)
        [one] = search(Strategies(machine), row, lift=OWN[: 3 if machine.far.capacity else 2], **asked).best
        right += 1
        assert one.train_memory == pytest.approx(run.train_memory, rel=1e-9), own
        assert one.sequence_time * own["global_batch"] == pytest.approx(run.step_time, rel=1e-9), own
    assert right > fitting / 3 and refused >= others


@pytest.fixture(scope="module")
def found():
    return search(Strategies(H100), MODEL, **SMALL, fused=True, best=40)


@pytest.mark.parametrize("place", [0, 11, 39])
def test_a_strategy_found_is_calculons_step(found, place):
    one = found.best[place]
    assert one.row.step_time / 8 == pytest.approx(one.sequence_time, rel=1e-12)
    assert one.row.train_memory == pytest.approx(one.train_memory, rel=1e-12)
    assert one.call.startswith("Strategies(h100_80g_nvl8)(..., global_batch=8, tp=")


def test_words_that_say_nothing_are_left_out():
    """A call may ask for what Calculon refuses where it says nothing:
    there it is left out, in the price as in the row.
    """
    asked = dict(gather_again=True, overlap="ring", sharded=True, activation_offload=1, fused=True, dp_overlap=1)
    some = search(Strategies(H100), MODEL, **SMALL, **asked, tp=[1, 2], best=2000)
    assert {x.tp for x in some.best} == {1, 2} and {x.recompute for x in some.best} == {"none", "attn_only", "full"}
    for x in some.best[::97]:
        assert x.row.step_time / 8 == pytest.approx(x.sequence_time, rel=1e-9)


# Cases


def test_a_choice_is_made_or_stands_in_the_formula():
    tp, pp = symbol("tp"), symbol("pp")
    assert pick(True, tp, pp) == tp and pick(False, tp, pp) == pp
    both = pick(pp > 1, tp, pp)
    assert both.subs(pp, 2) == tp and both.subs(pp, 1) == 1
    a, b, more = plain("step_time", tp, ""), plain("step_time", pp, ""), plain("bubble_time", pp, "")
    [one, other] = by(pp > 1, [a], [b, more])
    assert one.rhs == both and other is more and by(True, [a], [b, more]) == [a]
    assert by(pp > 1, [a], [a]) == [a]
    assert by_tier("tp", [2, 2]) == 2 and by_tier("tp", [2, 3]).subs(symbol("tp_tier"), 1) == 3
