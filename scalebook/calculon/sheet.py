"""Calculon's whole model as one sheet of formulas, for the options of a strategy and the efficiencies of a machine."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from functools import cache

from sympy import Add, Eq, Max, S, sympify

from scalebook.language import Formula, Row, Sheet
from scalebook.language.arguments import checked
from scalebook.language.notation import nearest, quoted, symbol

from .block import block_formulas
from .cases import by, pick, plain
from .checks import refuse, refuse_memory
from .documents import QUIRKS, STATED, Choices, Execution, application, execution
from .equations import capacity, gradients, stages, totals
from .systems import System, Tables, reached, system

__all__ = ["calculon_step", "priced", "step_formulas", "step_sheet"]


@checked
def calculon_step(model, strategy, machine, *formulas: Formula, mended: Iterable[str] = ()) -> Row:
    """Compute Calculon's results for a step: times, memory of both tiers, and the bandwidths that hide transfers.

    `model`, `strategy` and `machine` are Calculon's documents: paths of JSON files, dicts, or what `application`,
    `execution` and `system` read. `formulas` replace the sheet's. `mended` names `calculon.QUIRKS` to leave out, or is
    "all". Raises ValueError for a strategy that cannot run, with what would work.

    >>> from scalebook.calculon import library
    >>> run = calculon_step(library.models["gpt3-175B"], library.example, library.systems["a100_80e"])
    >>> run.step_time, run.useful_share
    (29.971952, 0.3133818)
    """
    model, strategy, machine = _read(model, strategy, machine)
    run = priced(model, strategy, machine, *formulas, mended=mended)

    def lighter():
        words = ["none", "attn_only", "full"]
        for word in words[words.index(strategy.choices.recompute) + 1 :] if strategy.choices.training else ():
            gathers = strategy.choices.gather_again and word != "full"
            choices = replace(strategy.choices, recompute=word, gather_again=gathers)
            other = Execution(strategy.name, strategy.cells, choices, strategy.datatype)
            yield word, priced(model, other, machine, *formulas, mended=mended).train_memory

    refuse_memory(run, machine, lighter)
    return run


@checked
def priced(model, strategy, machine, *formulas: Formula, mended: Iterable[str] = ()) -> Row:
    """Compute Calculon's results for a training step, even if it does not fit in memory. See `calculon_step`."""
    model, strategy, machine = _read(model, strategy, machine)
    refuse(model, strategy, machine)
    sheet = step_sheet(strategy.choices, machine.tables(strategy), mended)
    return (sheet.using(*formulas) if formulas else sheet)(model, strategy, machine.row(strategy))


def _read(model, strategy, machine):
    return (
        model if isinstance(model, Row) else application(model),
        strategy if isinstance(strategy, Execution) else execution(strategy),
        machine if isinstance(machine, System) else system(machine),
    )


def step_sheet(choices: Choices, tables: Tables, mended: Iterable[str] = ()) -> Sheet:
    """Return Calculon's model of a step as a sheet of formulas, for a strategy's options and a machine's tables.

    `mended` names quirks to leave out, or is "all". Raises LookupError for an unknown one.
    """
    return _sheet(choices, tables, _concerned(choices, mended))


@cache
def _sheet(choices, tables, mended):
    formulas = *block_formulas(choices, tables, mended), *step_formulas(choices, tables, mended)
    return Sheet("calculon_step", *formulas, doc="A step as Calculon prices it.")


def _concerned(choices: Choices, mended: Iterable[str]) -> frozenset[str]:
    mended = frozenset(QUIRKS) if mended == "all" else frozenset(mended)
    if unknown := sorted(mended - QUIRKS.keys()):
        raise LookupError(f"{quoted(unknown[0])} is no quirk; {nearest(unknown[0], QUIRKS)}")
    return frozenset(x for x in mended if QUIRKS[x].concerns(choices))


def step_formulas(choices: Choices, tables: Tables, mended: frozenset[str] = frozenset()) -> list[Formula]:
    """Return the formulas of a step that follow from the quantities of one block.

    Some options may be symbols (see `cases`), so that one sheet covers several.
    """
    rest = replace(
        choices, recompute="full" if choices.recompute == "full" else "none", overlap="none", fused=False,
        attention="multihead", gather_again=False, exchange="ar" if choices.exchange == "ar" else "rs_ag",
    )  # fmt: skip
    return _step_formulas(rest, replace(tables, near=(), matrix=(), vector=()), mended)


@cache
def _step_formulas(choices, tables, mended) -> list[Formula]:
    # if a letter has several formulas, the last one counts
    found = [*_shared(), *_sends(choices, mended), *_memory(choices, tables)]
    if not choices.training:
        found += _inference()
        left_out = STATED["forward_only"]["left_out"]
        return [f for n, f in {f.letter: f for f in found}.items() if n not in left_out]
    found += [totals.calculon_step_time, totals.training_flops, totals.busy_share, capacity.move_needed]
    found += _gradients(choices, tables, mended)
    found += [] if choices.sharded else [plain("optimizer_shards", S.One, "Every device holds all of it.")]
    return list({f.letter: f for f in found}.values())


@cache
def _shared() -> list[Formula]:
    """Return the formulas of stages, memory and totals that no choice changes: the only ones of their letter."""
    own = [f for group in (stages, capacity, totals) for f in vars(group).values()]
    often = Counter(f.letter for f in own)
    return [f for f in own if often[f.letter] == 1]


def _nothing(*letters):
    return [plain(x, S.Zero, "There is none.") for x in letters]


def _sends(choices, mended):
    send = [stages.whole_send if choices.exchange == "ar" or not choices.split else stages.split_send]
    if choices.training:
        send += [stages.gradient_send, totals.pp_link_time]
    else:
        send += [*_nothing("backward_send_bytes"), totals.pp_link_time_forward]
    zero = ["forward_send_bytes", "backward_send_bytes", "pp_link_time"]
    if "send_latency" in mended:
        send += [stages.forward_send_time, stages.backward_send_time]
        zero += ["forward_send_time", "backward_send_time"]
    return by(choices.piped, send, _nothing(*zero))


def _memory(choices, tables):
    """Return the formulas of both memory tiers and the transfers between them, which depend on what is offloaded."""
    full, training = choices.recompute == "full" and choices.training, choices.training
    weights, activations = choices.weight_offload, choices.activation_offload
    parts = by(choices.interleaved, [capacity.held_chunked], [capacity.held_at_most_stages])
    one_block = full or not training
    parts.append(capacity.one_block_activation_memory if one_block else capacity.stage_activation_memory)
    parts += [] if full else _nothing("checkpoint_memory", "near_checkpoints")
    near = [
        pick(weights, symbol("near_weights"), symbol("weight_memory")),
        pick(activations, symbol("near_activations"), symbol("activation_memory")),
        pick(activations, symbol("near_checkpoints"), symbol("checkpoint_memory")),
    ]
    far = [
        pick(weights, symbol("weight_memory"), S.Zero),
        pick(activations, symbol("checkpoint_memory" if full else "activation_memory"), S.Zero),
    ]
    if training:
        states = symbol("gradient_memory") + symbol("optimizer_memory")
        kept = pick(choices.optimizer_offload, symbol("near_gradients") + symbol("near_optimizer"), states)
        near += [symbol("activation_gradient_memory"), kept]
        away = symbol("optimizer_memory") + symbol("block_gradients") * symbol("stage_blocks")
        far.append(pick(choices.optimizer_offload, away, S.Zero))
    return [
        *parts,
        plain("train_memory", Add(*near), "What is near, by what is offloaded."),
        plain("offload_memory", Add(*far), "What is in the second tier, by what is offloaded."),
        *_moves(choices, tables),
    ]


def _moves(choices, tables):
    moved = symbol("block_checkpoint" if choices.recompute == "full" else "block_stored")
    forward = [pick(choices.weight_offload, symbol("block_weights"), S.Zero)]
    forward.append(pick(choices.activation_offload, moved, S.Zero))
    backward = [*forward, pick(choices.optimizer_offload, symbol("block_optimizer"), S.Zero)]
    moves = [x for x in forward if x != 0]
    most = Max(*moves, evaluate=False) if len(moves) > 1 else Add(*moves)
    found = [
        plain("forward_move_bytes", most, "Weights arrive while activations leave: the larger counts."),
        plain("backward_move_bytes", Add(*backward) if choices.training else S.Zero, "All that is offloaded moves."),
    ]
    for way in ("forward", "backward"):
        size = symbol(f"{way}_move_bytes")
        time = size / (symbol("host_bandwidth") * reached(tables.far, size))
        found.append(plain(f"{way}_move_time", time, "At the step that the size reaches."))
    return found


def _gradients(choices, tables, mended):
    g, network = gradients, tables.networks[2]
    kinds = ("reduce_scatter", "all_gather") if choices.sharded else ("all_reduce",)
    sent = {kind: symbol("block_reduce_bytes") for kind in kinds}
    if "narrow_gradients" in mended:  # gradients are reduced in fp32; weights come back in their own precision
        wide = "all_reduce" if "all_reduce" in sent else "reduce_scatter"
        sent[wide] = sent[wide] * 32 / symbol("weight_bits")
    parts = [
        plain(
            "block_reduce_bytes",
            symbol("block_weights"),
            "As many bytes as the block's weights (a quirk: gradients are held in fp32).",
        ),
        plain(
            "block_reduce_time",
            sum(network.time(kind, x) for kind, x in sent.items()),
            "The exchange of one block's gradients, and of its weights where state is shared out.",
        ),
        g.dp_link_time,
    ]
    needed = _nothing("dp_bandwidth_needed", "dp_tail_needed")
    parts += by(choices.dp_overlap, _hidden_gradients(choices, network, kinds), [g.dp_after, *needed])
    nothing = _nothing("block_reduce_bytes", "block_reduce_time", "dp_link_time", "dp_exposed")
    return by(choices.replicated, parts, nothing + needed)


def _hidden_gradients(choices, network, kinds):
    g, (tp, pp, dp) = gradients, map(sympify, choices.tiers)
    scale = sum(network.scale(kind) for kind in kinds)
    excess = [g.sends_on_one_network, g.chunk_excess_one_network, g.dp_bandwidth_needed_one_network]
    if choices.sharded:
        own = [g.chunk_window, g.tail_window, g.reduce_compute]
    else:
        own = [g.chunk_window_with_update, g.tail_window_with_update, g.reduce_compute_with_update]
    return [
        *by(
            Eq(dp, tp),
            [g.window_of_base_one_network, g.window_of_edge_one_network],
            [g.window_of_base, g.window_of_edge],
        ),
        *by(Eq(dp, pp), excess, [g.chunk_excess, g.dp_bandwidth_needed]),
        *own,
        g.tail_excess,
        g.dp_behind,
        g.dp_tail_needed,
        plain("reduce_scale", scale, "The networks' factors of the exchanges of gradients."),
    ]


def _inference():
    moved = symbol("forward_move_bytes") / symbol("forward_hiding_time")
    own = [totals.calculon_pass_time, totals.forward_flops, totals.busy_share_forward]
    needed = plain("move_needed", moved, "What is offloaded, hidden forward.")
    return [*_nothing(*STATED["forward_only"]["zero"]), *own, needed]
