"""Collectives: formulas against messages passed one by one, what must hold for any group, and what was calibrated."""

from collections import defaultdict, deque
from math import ceil, log2

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalebook.language import symbol
from scalebook.machine import collective_rates as rates
from scalebook.machine import collective_schedules as schedules
from scalebook.machine import collectives
from scalebook.machine.collective_rates import chunked_message, group_share, message_chunks
from scalebook.machine.collectives import KINDS, all_reduce, all_reduce_hierarchical, all_reduce_ring, collective
from scalebook.machine.topologies import fat_tree_devices, mesh_all_reduce, switch_hops, torus_all_reduce
from scalebook.measurements import confront
from scalebook.measurements.rows import SYSTEMS
from scalebook.tables import accelerators, libraries

H100 = accelerators.h100
BYTES, RATE, HOP = 3e6, 1e9, 1e-6
LINK = dict(collective_bytes=BYTES, link_bandwidth=RATE, link_latency=HOP)
WAYS = [2, 3, 4, 7, 8, 16]
EVERY = [*KINDS.values(), all_reduce_ring, all_reduce_hierarchical, collectives.all_reduce_in_network]


# Messages passed one by one


class Network:
    """Programs on devices; a port sends one message after another, and what is sent arrives a hop later.

    A program yields `(to, bytes, payload, where)` to send, by a kind of port, and a sender's number to receive.
    Each has a device of its own, unless `device` says on which it runs.
    """

    def __init__(self, programs, rate=RATE, hop=HOP, device=lambda i: i):
        rates = rate if isinstance(rate, dict) else defaultdict(lambda: rate)
        hops = hop if isinstance(hop, dict) else defaultdict(lambda: hop)
        clock, free, self.sent, self.results = defaultdict(float), defaultdict(float), defaultdict(float), {}
        boxes = defaultdict(deque)
        running = {i: program(i) for i, program in enumerate(programs)}
        asked = {i: next(program) for i, program in running.items()}
        while running:
            before = len(running), sum(map(len, boxes.values())), sum(self.sent.values())
            for i in list(running):
                while i in running:
                    want, answer = asked[i], None
                    if isinstance(want, tuple):
                        to, size, payload, where = want
                        port = device(i), where
                        free[port] = max(clock[i], free[port]) + size / rates[where]
                        self.sent[port] += size
                        boxes[i, to].append((free[port] + hops[where], payload))
                    elif boxes[want, i]:
                        arrived, answer = boxes[want, i].popleft()
                        clock[i] = max(clock[i], arrived)
                    else:
                        break
                    try:
                        asked[i] = running[i].send(answer)
                    except StopIteration as end:
                        self.results[i] = end.value
                        del running[i]
            assert (len(running), sum(map(len, boxes.values())), sum(self.sent.values())) != before, "they wait forever"
        self.time = max(clock.values())


def gather_ring(ways, size=BYTES):
    def program(i):
        held = {i}
        part = i
        for _ in range(ways - 1):
            yield (i + 1) % ways, size / ways, part, ""
            part = yield (i - 1) % ways
            held.add(part)
        return held

    return [program] * ways


def scatter_ring(ways, then_gather=False):
    """Part j of device i is worth ways * i + j; sums are checked."""

    def program(i):
        own = [ways * i + j for j in range(ways)]
        for step in range(ways - 1):
            j = (i - step) % ways
            yield (i + 1) % ways, BYTES / ways, own[j], ""
            own[(j - 1) % ways] += yield (i - 1) % ways
        j = (i + 1) % ways
        if not then_gather:
            return {j: own[j]}
        for _ in range(ways - 1):
            yield (i + 1) % ways, BYTES / ways, own[j], ""
            j = (j - 1) % ways
            own[j] = yield (i - 1) % ways
        return dict(enumerate(own))

    return [program] * ways


def halving(ways):
    def program(i):
        own, low, high = [ways * i + j for j in range(ways)], 0, ways
        for _ in range(int(log2(ways))):
            half = (high - low) // 2
            partner, upper = i ^ half, bool(i & half)
            mine, theirs = (slice(low + half, high), slice(low, low + half))[:: 1 if upper else -1]
            yield partner, BYTES * half / ways, own[theirs], ""
            got = yield partner
            own[mine] = [a + b for a, b in zip(own[mine], got, strict=True)]
            low, high = mine.start, mine.stop
        while high - low < ways:
            half = high - low
            partner = i ^ half
            yield partner, BYTES * half / ways, (low, own[low:high]), ""
            at, got = yield partner
            own[at : at + half] = got
            low, high = min(low, at), max(high, at + half)
        return dict(enumerate(own))

    return [program] * ways


def two_trees(ways, chunks):
    """Inner devices of the first tree are even, of the second odd: it is the first, counted from the other end."""

    def parent(r):
        low = r & -r
        up = (r & ~low) | (low << 1)
        return None if r == 0 else up if up < ways and up != r else r & ~low

    def program(i):
        tree, place = i % 2, ways - 1 - i // 2 if i % 2 else i // 2
        kids, up, size = [r for r in range(1, ways) if parent(r) == place], parent(place), BYTES / (2 * chunks)
        total = []

        def other(r):
            return 2 * (ways - 1 - r if tree else r) + tree

        for _ in range(chunks):
            value = i // 2
            for kid in kids:
                value += yield other(kid)
            total.append(value)
            if up is not None:
                yield other(up), size, value, ""
        for c in range(chunks):
            if up is not None:
                total[c] = yield other(up)
            for kid in kids:
                yield other(kid), size, total[c], ""
        return total

    return [program] * (2 * ways)


@pytest.mark.parametrize("ways", WAYS)
def test_a_gathering_ring_takes_what_its_formula_says(ways):
    run = Network(gather_ring(ways))
    assert all(held == set(range(ways)) for held in run.results.values())
    assert run.time == pytest.approx(schedules.ring_all_gather(LINK, ways=ways))
    assert list(run.sent.values()) == pytest.approx([BYTES * (ways - 1) / ways] * ways)


def mesh(ways):
    """To each peer over a link of its own: part j of device i is worth ways * i + j."""

    def program(i):
        peers = [j for j in range(ways) if j != i]
        for j in peers:
            yield j, BYTES / ways, ways * i + j, j
        total = ways * i + i
        for j in peers:
            total += yield j
        for j in peers:
            yield j, BYTES / ways, total, j
        own = {i: total}
        for j in peers:
            own[j] = yield j
        return own

    return [program] * ways


def sums_of(ways):
    """Of each part what all devices have of it."""
    return {j: sum(ways * i + j for i in range(ways)) for j in range(ways)}


@pytest.mark.parametrize("ways", WAYS)
def test_a_scattering_ring_takes_what_its_formula_says(ways):
    run = Network(scatter_ring(ways))
    assert {j: x for held in run.results.values() for j, x in held.items()} == sums_of(ways)
    assert run.time == pytest.approx(schedules.ring_reduce_scatter(LINK, ways=ways))


SUMS = {  # programs, and how many ways a device may send at once: each link then has its share
    "ring": (lambda ways: scatter_ring(ways, then_gather=True), schedules.ring_all_reduce, lambda ways: 1),
    "mesh": (mesh, mesh_all_reduce, lambda ways: ways - 1),
    "halving": (halving, schedules.halving_all_reduce, lambda ways: 1),
}


@pytest.mark.parametrize(("name", "ways"), [(x, n) for x in SUMS for n in WAYS if x != "halving" or n & (n - 1) == 0])
def test_an_all_reduce_takes_what_its_formula_says(name, ways):
    program, formula, links = SUMS[name]
    run = Network(program(ways), rate=RATE / links(ways))
    assert all(held == sums_of(ways) for held in run.results.values())
    assert run.time == pytest.approx(formula(LINK, ways=ways))
    assert sum(run.sent.values()) == pytest.approx(2 * BYTES * (ways - 1))


@pytest.mark.parametrize(("side", "dimensions"), [(2, 1), (8, 1), (4, 2), (4, 3), (3, 4)])
def test_a_torus_is_rings_after_rings(side, dimensions):
    """One part for each dimension, on its links; after each dimension a device has a side-th of what it had."""
    part, link = BYTES / dimensions, RATE / dimensions
    rings = [
        schedules.ring_all_reduce(collective_bytes=part / side**i, ways=side, link_bandwidth=link, link_latency=HOP)
        for i in range(dimensions)
    ]
    said = torus_all_reduce(LINK, ways=side**dimensions, torus_dimensions=dimensions)
    assert said == pytest.approx(sum(rings))


@pytest.mark.parametrize(("radix", "tiers"), [(2, 1), (4, 1), (4, 2), (6, 2), (4, 3), (6, 3)])
def test_a_fat_tree_joins_as_many_devices_as_its_formula_says(radix, tiers):
    """Built up: a pod of t tiers is radix / 2 pods of t - 1; the top tier joins radix of them, not half."""
    pod = 1
    for _ in range(tiers - 1):
        pod *= radix // 2
    assert fat_tree_devices(switch_radix=radix, switch_tiers=tiers) == radix * pod
    assert switch_hops(switch_tiers=tiers) == len([*range(tiers), *range(tiers - 1)])


@pytest.mark.parametrize("ways", [2, 4, 8, 16, 32])
@pytest.mark.parametrize("chunks", [1, 4, 32])
def test_two_trees_sum_and_send_no_more_than_their_formula_says(ways, chunks):
    run = Network(two_trees(ways, chunks), device=lambda i: i // 2)
    assert all(set(total) == {sum(range(ways))} for total in run.results.values())
    assert sum(run.sent.values()) == pytest.approx(2 * (ways - 1) * BYTES)
    assert max(run.sent.values()) <= 2 * BYTES * (1 + 1e-9)
    says = schedules.tree_all_reduce(LINK, ways=ways, chunk_count=chunks)
    assert run.time <= says * (1 + 1e-9)
    assert run.time >= 2 * ceil(log2(ways)) * HOP


@pytest.mark.parametrize("ways", WAYS)
def test_an_all_to_all_takes_what_its_formula_says(ways):
    def program(i):
        for k in range(1, ways):
            yield (i + k) % ways, BYTES / ways, (i, (i + k) % ways), ""
        held = set()
        for k in range(1, ways):
            held.add((yield (i - k) % ways))
        return held

    run = Network([program] * ways)
    assert all(held == {(j, i) for j in range(ways) if j != i} for i, held in run.results.items())
    assert run.time == pytest.approx(schedules.direct_all_to_all(LINK, ways=ways))


@pytest.mark.parametrize(("near", "domains"), [(2, 2), (4, 2), (4, 4), (8, 3), (1, 4)])
def test_rings_over_two_tiers_load_the_ports_as_the_formula_says(near, domains):
    """As many rings as near devices, each leaving a domain by another one, each with its share of every part."""
    ways, sent, hops = near * domains, defaultdict(float), []
    for ring in range(near):
        order = [d * near + (ring + k) % near for d in range(domains) for k in range(near)]
        where = ["near" if a // near == b // near else "far" for a, b in zip(order, order[1:] + order[:1], strict=True)]

        def program(i, where=where):
            part, held = i, {i}
            for _ in range(ways - 1):
                yield (i + 1) % ways, BYTES / ways / near, part, where[i]
                part = yield (i - 1) % ways
                held.add(part)
            return held

        run = Network([program] * ways, hop={"near": 1.0, "far": 100.0}, rate=1e30)
        hops.append(run.time)
        assert all(len(held) == ways for held in run.results.values())
        for (i, kind), size in run.sent.items():
            sent[order[i], kind] += size
    far = [sent[i, "far"] for i in range(ways)]
    assert far == pytest.approx([(ways - 1) / ways * BYTES / near] * ways)
    assert max(sent[i, "near"] for i in range(ways)) <= (ways - 1) / ways * BYTES
    # Hops of a part that starts beside a far link. Other parts make one more.
    says = float(collectives._ring_hops(ways, near, 1, 100))
    assert says <= max(hops) * (1 + 1e-9) <= (says + 99) * (1 + 1e-9)


# What must hold for any group

groups = st.tuples(st.integers(0, 6), st.integers(0, 6)).map(lambda x: (2 ** (x[0] + x[1]), 2 ** x[1]))
sizes = st.floats(1e3, 1e11)


@pytest.mark.parametrize("f", EVERY, ids=lambda f: f.name)
def test_one_device_costs_nothing(f):
    assert f(H100, collective_bytes="1 GB", ways=1, near_ways=1) == 0


@pytest.mark.parametrize("f", EVERY, ids=lambda f: f.name)
@given(group=groups, size=sizes)
def test_more_bytes_or_slower_links_never_help(f, group, size):
    ways, near = group
    known = dict(collective_bytes=size, ways=ways, near_ways=near)
    time = f(H100, known)
    assert time >= 0
    assert f(H100, **known | {"collective_bytes": 2 * size}) >= time
    for letter in {"scaleup_bandwidth", "scaleout_bandwidth"} & set(f.inputs):
        assert f(H100, **known | {letter: H100[letter] / 2}) >= time
    for letter in {"near_latency", "far_latency", "collective_launch"} & set(f.inputs):
        assert f(H100, **known | {letter: H100[letter] * 2}) >= time


@pytest.mark.parametrize("f", EVERY, ids=lambda f: f.name)
@given(ways=st.sampled_from([2, 4, 8, 64]), size=sizes)
def test_a_tier_that_is_not_used_does_not_matter(f, ways, size):
    inside, outside = (dict(collective_bytes=size, ways=ways, near_ways=near) for near in (ways, 1))
    far = dict(scaleout_bandwidth=1.0, far_latency=9.0, far_efficiency=0.1)
    near = dict(scaleup_bandwidth=1.0, near_latency=9.0, near_efficiency=0.1)
    near, far = ({x: value for x, value in tier.items() if x in f.inputs} for tier in (near, far))
    assert f(H100, **inside, **far) == f(H100, **inside)
    assert f(H100, **outside, **near) == f(H100, **outside)


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_with_expressions_is_its_formula(kind):
    at = {"traffic": 3e8, "shards": 32.0, "tp": 4.0}
    expr = collective(kind, symbol("traffic"), symbol("shards"), symbol("tp"))
    values = {x: at.get(x.name, H100.get(x.name)) for x in expr.free_symbols}
    says = KINDS[kind](H100, collective_bytes=3e8, ways=32, near_ways=4)
    assert float(expr.xreplace(values)) == pytest.approx(says)


def test_sums_in_the_switch_pay_from_five_devices_on():
    """As NCCL chooses on an H100 with its own model: rings of up to four devices, the switch for eight."""
    known = dict(collective_bytes="1 GB", switch_efficiency=H100.switch_efficiency)
    for ways in range(2, 9):
        best = all_reduce(H100, known, ways=ways, near_ways=ways)
        ring = all_reduce_ring(H100, collective_bytes="1 GB", ways=ways, near_ways=ways)
        assert (best < ring * 0.999) == (ways > 4), ways


@given(size=st.floats(1e5, 1e10))
def test_the_best_number_of_chunks_is_best_and_gives_the_root(size):
    known = dict(collective_bytes=size, link_bandwidth=4e11, chunk_time=2.5e-6)
    count = message_chunks(known)
    best = chunked_message(known, chunk_count=count)
    assert all(
        best <= chunked_message(known, chunk_count=count * x) * (1 + 1e-12) for x in (0.9, 1.1) if count * x >= 1
    )
    if count > 1:
        assert best == pytest.approx(size / 4e11 + 2 * np.sqrt(2.5e-6 * size / 4e11))


# Links of a mesh and of a torus

FABRICS = [accelerators[x] for x in ("h100", "mi300x", "gaudi2", "tpu_v5p", "tpu_v5e", "inferentia2")]


@pytest.mark.parametrize("device", FABRICS, ids=lambda row: row.name)
def test_a_larger_group_never_uses_fewer_links_and_a_whole_domain_all(device):
    ways = np.arange(1, device.scaleup_size + 1)
    share = group_share(device, near_ways=ways)
    assert (np.diff(share) >= 0).all() and 0 < share[0] <= 1
    assert share[-1] == 1
    assert (share == 1).all() == (device.words["fabric"] == "switch")


def test_a_group_of_a_mesh_uses_the_links_between_its_members():
    """Counted: of the links of a device, those that lead to another of the group."""
    for peers in (3, 7):
        for ways in range(2, peers + 2):
            used = sum(other < ways for other in range(1, peers + 1))
            assert rates.group_share(near_ways=ways, mesh_peers=peers) == pytest.approx(used / peers)


@pytest.mark.parametrize(("sides", "ways"), [((2, 1, 1), 2), ((2, 2, 1), 4), ((2, 2, 2), 8), ((4, 4, 4), 64)])
def test_a_box_of_a_torus_has_the_neighbours_that_the_formula_counts(sides, ways):
    """A side of two has one neighbour that way, a side of four that closes has two."""
    neighbours = sum({1: 0, 2: 1, 4: 2}[side] for side in sides)
    assert rates.group_share(near_ways=ways, torus_neighbours=6) == pytest.approx(neighbours / 6)


@pytest.mark.parametrize("kind", KINDS)
def test_behind_a_switch_a_pair_has_all_and_in_a_mesh_one_link(kind):
    known = dict(collective_bytes="1 GB", ways=2, near_ways=2)
    free = {x: 0 for x in ("collective_launch", "chunk_time", "near_latency") if x in KINDS[kind].inputs}
    switch, mesh = (KINDS[kind](H100, known, **free, mesh_peers=peers) for peers in (1, 7))
    parts = {"all_reduce": 2, "send": 1}.get(kind, 1)
    own = 0 if kind == "send" else float(collectives.OWN_PART)
    assert mesh / switch == pytest.approx((7 * parts + own) / (parts + own))


def test_a_message_takes_one_link_however_large_the_group():
    known = dict(collective_bytes="1 GB", near_ways=8, ways=8)
    pair = KINDS["send"](accelerators.mi300x, collective_bytes="1 GB", ways=2, near_ways=2)
    assert KINDS["send"](accelerators.mi300x, known) == pair


# What was calibrated


def test_what_a_sum_takes_to_start_is_what_two_devices_take():
    custom = confront("custom_allreduce")
    for system, device in SYSTEMS.items():
        took = [
            float(r["latency_us"]) / 1e6
            for r, fitted in zip(custom.rows, custom.fitted, strict=True)
            if fitted and r["system"] == system and r["num_gpus"] == "2" and float(r["size_bytes"]) <= 2**14
        ]
        assert accelerators[device].sum_launch == pytest.approx(np.median(took), rel=0.03)


def test_what_a_further_device_adds_is_what_rows_say():
    """The median over engines, on the H100."""
    custom, added = confront("custom_allreduce"), []
    own = [r for r, fitted in zip(custom.rows, custom.fitted, strict=True) if fitted and r["system"] == "h100_sxm"]
    for engine, sums in dict(TRTLLM="trtllm_sums", vLLM="vllm_sums", SGLang="sglang_sums").items():
        two, eight = (
            np.median([
                float(r["latency_us"]) / 1e6 for r in own
                if (r["framework"], r["num_gpus"]) == (engine, ways) and float(r["size_bytes"]) <= 2**14
            ])
            for ways in "28"
        )  # fmt: skip
        added.append((eight - two) / 6 / libraries[sums].sum_peer)
    assert np.median(added) == pytest.approx(1, rel=0.1)
