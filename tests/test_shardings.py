"""The contract of a sharding: what it exchanges, executed, makes what it keeps, and costs what its formulas say."""

from collections import Counter

import numpy as np
import pytest
import sympy

from scalebook import memory
from scalebook.language import symbol
from scalebook.machine.collectives import OWN_PART
from scalebook.training import CHOICES, SHARDINGS, WORDS
from scalebook.training.data_parallel import data_parallel_formulas
from scalebook.training.memory import bytes_of
from scalebook.training.shardings import Exchange, Sharding

from .support import each_case

SIZES = [(8, 4), (8, 2), (4, 4), (6, 3), (8, 8)]  # devices that share weights, and a group of them
PIECES = 48  # of a model, dealt out


def groups(among, devices, group):
    """Who does an exchange with whom."""
    if among == "all":
        return [list(range(devices))]
    if among == "group":
        return [list(range(i, i + group)) for i in range(0, devices, group)]
    return [list(range(i, devices, group)) for i in range(group)]


def dealt(kept, members):
    """The pieces that all members have, dealt out among them in turn."""
    pieces = sorted(kept[members[0]])
    assert all(sorted(kept[x]) == pieces for x in members), "members have different pieces: nothing to sum"
    return {
        x: pieces[i * len(pieces) // len(members) : (i + 1) * len(pieces) // len(members)]
        for i, x in enumerate(members)
    }


def steps(times, ways):
    """Parts that a device sends on a ring, and its own, which it copies."""
    return times * (ways - 1) + OWN_PART if ways > 1 else 0


def executed(sharding, devices, group):
    """Gradients summed piece by piece, weights gathered:
    what devices end with, and the pieces that each sends, both ways.
    """
    sums = {x: {piece: {x} for piece in range(PIECES)} for x in range(devices)}
    sent = dict.fromkeys(("dp_reduce", "dp_gather"), 0)
    for exchange in sharding.exchanges:
        for members in groups(exchange.among, devices, group):
            ways = len(members)
            if exchange.letter == "dp_gather":
                whole = PIECES  # from the copy that is dealt out to them
                assert exchange.among in (*sharding.parts("weight"), *sharding.parts("optimizer")), (
                    "nobody has what is gathered"
                )
                moved = steps(1, ways) * whole / ways
            else:
                share = dealt(sums, members)
                moved = steps(2 if exchange.kind == "all_reduce" else 1, ways) * len(sums[members[0]]) / ways
                for piece in list(sums[members[0]]):
                    total = set().union(*(sums[x][piece] for x in members))
                    for x in members:
                        if exchange.kind == "all_reduce" or piece in share[x]:
                            sums[x][piece] = total
                        else:
                            del sums[x][piece]
            if 0 in members:
                sent[exchange.letter] += moved * exchange.times
    return sums, sent


def wrong(sharding, devices, group):
    """What is missing in the end; nothing if all is well."""
    sums, _ = executed(sharding, devices, group)
    [among] = sharding.parts("optimizer")
    share = PIECES // {"one": 1, "group": group, "all": devices}[among]
    for mine in sums.values():
        if len(mine) != share:
            return f"{len(mine)} pieces of gradients meet an optimizer of {share}"
        if any(len(x) != devices for x in mine.values()):
            return "gradients of some devices are not in the sum"
    return ""


@pytest.mark.parametrize("name", SHARDINGS)
@pytest.mark.parametrize(("devices", "group"), SIZES)
def test_every_optimizer_gets_the_gradients_of_all(name, devices, group):
    assert not wrong(SHARDINGS[name], devices, group)


@pytest.mark.parametrize("name", SHARDINGS)
@pytest.mark.parametrize(("devices", "group"), SIZES)
def test_what_is_kept_is_a_part_of_each_copy(name, devices, group):
    """A copy of every part lies on those that it is dealt out to, once."""
    at = {symbol(x): n for x, n in dict(shards=devices, routed_shards=devices, shard_group=group).items()}
    for what in ("weight", "gradient", "optimizer"):
        cost = bytes_of(what, SHARDINGS[name], sympy.Integer(PIECES), sympy.S.Zero)
        kept = float(cost.subs(at | {symbol(f"{what}_bits"): 8}))
        ways = [{"one": 1, "group": min(group, devices), "all": devices}[x] for x in SHARDINGS[name].parts(what)]
        assert kept == pytest.approx(sum(PIECES / n for n in ways))


def exchanged(sharding, microbatches):
    """The exchanges of a step, by letter and devices, as they follow from what `keeps` says lies where.

    Weights that a device has only a part of are gathered for each pass and freed after it. The forward pass needs
    the copy that the optimizer has updated; the backward pass may use the one that fewer devices share. Gradients of
    which a device keeps a part cannot wait for the next micro-batch.
    """
    done = Counter()
    updated, nearest = sharding.parts("weight")[0], sharding.parts("weight")[-1]
    [gradient], [optimizer] = sharding.parts("gradient"), sharding.parts("optimizer")
    for _ in range(microbatches):
        for copy in (updated, nearest):
            if copy != "one":
                done["dp_gather", copy] += 1
        if gradient != "one":
            done["dp_reduce", gradient] += 1
    if gradient == "one":
        done["dp_reduce", "all" if optimizer == "one" else optimizer] += 1
    if "group" in (gradient, optimizer):
        done["dp_reduce", "groups"] += 1  # each device's part is summed with those of other groups
    if updated == "one" != optimizer:
        done["dp_gather", optimizer] += 1
    return done


def said(sharding, microbatches):
    """The exchanges of a step as the sharding's stanza says."""
    times = Counter()
    for x in sharding.exchanges:
        times[x.letter, x.among] += int(sympy.sympify(x.times).subs(symbol("microbatches"), microbatches))
    return times


@pytest.mark.parametrize("name", SHARDINGS)
def test_exchanges_are_those_of_a_simulated_forward_and_backward(name):
    assert said(SHARDINGS[name], 5) == exchanged(SHARDINGS[name], 5)


def test_a_halved_gather_is_seen():
    impostor, whole = object.__new__(Sharding), SHARDINGS["zero3"]  # not entered
    reduce, gather = whole.exchanges
    vars(impostor).update(vars(whole) | {"exchanges": (reduce, gather._replace(times=gather.times / 2))})
    assert said(impostor, 5)["dp_gather", "all"] == 5 and exchanged(impostor, 5)["dp_gather", "all"] == 10


@pytest.mark.parametrize("name", SHARDINGS)
@pytest.mark.parametrize(("devices", "group"), SIZES)
def test_traffic_is_what_the_executed_exchange_moves(name, devices, group):
    _, sent = executed(SHARDINGS[name], devices, group)
    f = {x.letter: x for x in data_parallel_formulas(SHARDINGS[name])}["dp_scaleup_time"]
    per_piece, microbatches = 1e9, 5
    known = dict(
        shards=devices, routed_shards=1, tp=1, etp=1, ep=1, shard_group=group, microbatches=microbatches,
        stage_blocks=4, block_params=PIECES * per_piece / 4, block_routed_params=0, dense_params=PIECES * per_piece,
        routed_params=0, weight_bits=16, reduce_bits=32, scaleup_size=64, scaleup_bandwidth=1e12, near_efficiency=1,
        far_efficiency=1, mesh_peers=1, torus_neighbours=1, switch_efficiency=0, scaleout_bandwidth=1e11,
    )  # fmt: skip
    bytes_of_piece = {"dp_reduce": 4 * per_piece, "dp_gather": 2 * per_piece}
    times = {symbol("microbatches"): microbatches}
    moved = sum(float(sympy.sympify(n).subs(times)) * bytes_of_piece[x] for x, n in sent.items())
    assert f(**{x: known[x] for x in f.inputs}) == pytest.approx(moved / known["scaleup_bandwidth"])


@each_case("wrong shardings", "keeps, exchanges, said", dict(globals(), Exchange=Exchange))
def test_the_contract_sees_a_wrong_sharding(keeps, exchanges, said):
    impostor = object.__new__(Sharding)  # not entered
    vars(impostor).update(name="impostor", source="", keeps=keeps, exchanges=tuple(exchanges))
    assert said in wrong(impostor, 8, 4)


@pytest.mark.parametrize("name", SHARDINGS)
def test_every_sharding_is_a_word_with_a_source(name):
    sharding = SHARDINGS[name]
    assert name in CHOICES["sharding"] and WORDS["sharding"].value(name) is sharding and sharding.source
    assert repr(sharding) == name and {*sharding.keeps} <= {"weight", "gradient", "optimizer"}


def test_hpz_trades_memory_for_links():
    """A second copy of the weights in a group spares the backward pass the way to all."""
    at = {symbol(x): n for x, n in dict(shards=64, routed_shards=1, shard_group=8, weight_bits=16, params=70e9).items()}
    plain, hpz = (
        bytes_of("weight", SHARDINGS[x], symbol("params"), sympy.S.Zero).subs(at) for x in ("zero3", "zero3_hpz")
    )
    assert np.isclose(float(hpz - plain), 70e9 * 2 / 8)


@pytest.mark.parametrize("f", [memory.replicated, memory.zero1, memory.zero2, memory.zero3], ids=lambda f: f.name)
def test_what_a_parameter_takes_is_what_the_sharding_deals_out(f):
    """The formulas of one parameter, from which chapters derive, are the step's of a model of one parameter."""
    state = sum(bytes_of(x, SHARDINGS[f.name], sympy.S.One, sympy.S.Zero) for x in ("weight", "gradient", "optimizer"))
    assert sympy.simplify(8 * state - f.rhs.subs(symbol("dp"), symbol("shards"))) == 0
