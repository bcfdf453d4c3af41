"""Rules for flags that act together, by framework: what follows from several that are read, or must be written."""

import math
from collections.abc import Mapping
from fractions import Fraction
from functools import cache
from typing import Any

from scalebook import tables
from scalebook.flags.table import frameworks, number, optimizer_named, text_of
from scalebook.language.notation import NOTATION, either, quoted
from scalebook.language.words import WORDS
from scalebook.training.optimizers import OPTIMIZERS
from scalebook.training.shardings import SHARDINGS
from scalebook.training.step import DEFAULT_LETTERS

__all__ = ["complete", "follow"]

_BITS = {"fp32": 32, "fp16": 16, "bf16": 16, "fp8": 8}


def _is_set(given: Mapping, flag: str) -> bool:
    return text_of(given.get(flag, False)).lower() not in ("false", "none")


def _pieces(ways: int) -> float:
    """Return the share that overlaps if a collective is sent in `ways` pieces: all but the first."""
    return 1 - 1 / ways


def _whole(value: float, said: str) -> int:
    if value != int(value) or value < 1:
        raise ValueError(said)
    return int(value)


def _choice(flag: str, value, choices) -> str:
    """Return a value as text. Raises ValueError, naming the flag, if it is none of the choices."""
    if (text := text_of(value)) not in choices:
        raise ValueError(f"{flag} is {quoted(text)}, of which nothing is known; known are {either(choices)}")
    return text


def _chunks(flag: str, blocks, pp: int, layers) -> int:
    if not layers:
        raise ValueError(f"{flag} says how many blocks a chunk has: give the model's layers too")
    count = number(flag, blocks)
    chunks = layers / (pp * count) if count else 0
    return _whole(chunks, f"{flag} {count:g} does not divide the {layers / pp:g} blocks of each of {pp} stages")


def _hidden_async(tp: float) -> float:
    """Return the share that torchtitan's asynchronous tensor parallelism hides, from its row of `tables.frameworks`."""
    return tables.frameworks.torchtitan_async.tp_pieces * _pieces(tp)


def _overlapped(sharding: str, reduces: bool, gathers: bool, letters: Mapping) -> float:
    """Return the share of data-parallel bytes that overlap, if only gradients or only gathered weights may."""
    if not SHARDINGS[sharding].gathers or reduces == gathers:
        return int(reduces)
    bits = DEFAULT_LETTERS | dict(letters)
    part = bits.get("reduce_bits", bits["gradient_bits"]), bits["weight_bits"]
    return part[0] / sum(part) if reduces else part[1] / sum(part)


def _one_precision(bf16: bool, fp16: bool, names: tuple[str, str], fp8: bool) -> str | None:
    if bf16 and fp16:
        raise ValueError(f"{names[0]} and {names[1]} contradict each other: leave one of them out")
    return "fp8" if fp8 else "bf16" if bf16 else "fp16" if fp16 else None


def _megatron(given, found, known) -> dict:
    out: dict[str, Any] = {}
    tp, pp, cp = (found.get(x, 1) for x in ("tp", "pp", "cp"))
    if "nproc-per-node" in given or "nnodes" in given:
        near, nodes = (number(f"--{x}", given.get(x, 1)) for x in ("nproc-per-node", "nnodes"))
        out["devices"] = near * nodes
    layers = found.get("layers", known.get("layers"))
    if (flag := "num-layers-per-virtual-pipeline-stage") in given:
        out["chunks"] = _chunks(f"--{flag}", given[flag], pp, layers)
        if found.get("chunks", out["chunks"]) != out["chunks"]:
            raise ValueError(f"--{flag} makes {out['chunks']} chunks, not {found['chunks']}: leave one of them out")
    chunks = out.get("chunks", found.get("chunks", 1))
    if "sharding" not in found or not _is_set(given, "use-megatron-fsdp"):
        is_sharded = _is_set(given, "use-distributed-optimizer") or given.get("optimizer") == "dist_muon"
        out["sharding"] = "zero1" if is_sharded else "replicated"
    out["optimizer"] = optimizer_named(given.get("optimizer"), given.get("muon-tp-mode", "duplicated"))
    if _is_set(given, "use-torch-fsdp2"):
        if _is_set(given, "use-distributed-optimizer"):
            raise ValueError("--use-torch-fsdp2 and --use-distributed-optimizer contradict each other: leave one out")
        out["sharding"] = "zero2" if _is_set(given, "torch-fsdp2-no-reshard-after-forward") else "zero3"
    _megatron_precision(given, out)
    sharding = out.get("sharding", found.get("sharding"))
    reduces, gathers = (_is_set(given, x) for x in ("overlap-grad-reduce", "overlap-param-gather"))
    out["dp_overlap"] = _overlapped(sharding, reduces, gathers, found | out)
    if _is_set(given, "tp-comm-overlap"):
        out["tp_overlap"] = _pieces(tp)
    if chunks > 1:
        out["schedule"] = "interleaved"
        out["pp_overlap"] = int(not _is_set(given, "no-overlap-p2p-communication"))
    kind = _choice("--cp-comm-type", given.get("cp-comm-type", "p2p"), ("p2p", "allgather", "a2a"))
    if cp > 1 or "cp-comm-type" in given:
        out["context_exchange"] = "all_to_all" if kind == "a2a" else "gather"
        out["cp_overlap"] = _pieces(cp) if kind == "p2p" else 0
    if _is_set(given, "optimizer-cpu-offload"):
        flag = "optimizer-offload-fraction"
        out["optimizer_offload"] = number(f"--{flag}", given.get(flag, 1))
    _megatron_counts(given, found, known, out)
    return out


def _megatron_counts(given, found, known, out) -> None:
    tp, pp, cp = (found.get(x, 1) for x in ("tp", "pp", "cp"))
    layers = found.get("layers", known.get("layers"))
    if blocks := number("--cpu-offloading-num-layers", given.get("cpu-offloading-num-layers", 0)):
        if not layers:
            raise ValueError("--cpu-offloading-num-layers is a share of the model's layers: give these too")
        out["activation_offload"] = float(Fraction(blocks) * pp / Fraction(layers))
    if "global_batch" not in found:
        out["microbatches"] = 1
    devices = known.get("devices", out.get("devices"))
    if devices and "global_batch" in found and "batch" in found:
        each = found["batch"] * devices / (tp * pp * cp)
        _whole(found["global_batch"] / each, f"--global-batch-size {found['global_batch']} is no multiple of the "
               f"{each:g} sequences that {devices:g} devices in replicas of {tp * pp * cp} take at once")  # fmt: skip


def _megatron_precision(given, out) -> None:
    """Return the precision of products, and the bits of gradients and of the optimizer state."""
    bf16, fp16 = _is_set(given, "bf16"), _is_set(given, "fp16")
    out["precision"] = _one_precision(bf16, fp16, ("--bf16", "--fp16"), _is_set(given, "fp8-format"))
    if fp16 and not _is_set(given, "accumulate-allreduce-grads-in-fp32"):
        out |= dict(gradient_bits=16, optimizer_bits=128)
    dtypes = ("main-params-dtype", "exp-avg-dtype", "exp-avg-sq-dtype")
    if any(x in given for x in dtypes):
        out["optimizer_bits"] = sum(_BITS[_choice(f"--{x}", given.get(x, "fp32"), _BITS)] for x in dtypes)


def _deepspeed(given, found, known) -> dict:
    out: dict[str, Any] = {}
    zero = "zero_optimization."
    sharding = found.get("sharding", "replicated")
    for flag, word in (("zero_hpz_partition_size", "zero3_hpz"), ("mics_shard_size", "hybrid")):
        size = given.get(zero + flag, 1)
        if isinstance(size, int) and size < 0:  # the same as not given
            continue
        if zero + flag in given and number(zero + flag, size) > 1:
            if sharding != "zero3":
                raise ValueError(f"{zero}{flag} {size} needs {zero}stage 3")
            found.pop("sharding", None)
            out |= dict(sharding=word, shard_group=number(zero + flag, size))
    sharding = out.get("sharding", sharding)
    overlap = given.get(zero + "overlap_comm", SHARDINGS[sharding].is_gathered)
    out["dp_overlap"] = int(text_of(overlap) == "true")
    out["optimizer"] = optimizer_named(given.get("optimizer.type"))
    flag = zero + "offload_optimizer.device"
    if _choice(flag, given.get(flag, "none"), ("cpu", "nvme", "none")) != "none":
        ratio = zero + "offload_optimizer.ratio"
        out["optimizer_offload"] = number(ratio, given.get(ratio, 1))
        if sharding == "replicated":
            raise ValueError(f"{zero}offload_optimizer needs {zero}stage 1, 2 or 3")
    if found.get("weight_offload") and not SHARDINGS[sharding].is_gathered:
        raise ValueError(f"{zero}offload_param needs {zero}stage 3")
    out["precision"] = _one_precision(
        _is_set(given, "bf16.enabled"), _is_set(given, "fp16.enabled"), ("bf16.enabled", "fp16.enabled"), False
    )
    if found.get("tp", 1) > 1:
        out["sequence_parallel"] = False  # its tensor parallelism does not split norms
    _deepspeed_replicas(found, known, out)
    return out


def _deepspeed_replicas(found, known, out) -> None:
    """Set dp if the batch is stated three times over. Raises ValueError if the three contradict each other."""
    devices, batches = known.get("devices"), [found.get(x) for x in ("global_batch", "batch", "microbatches")]
    dp = known.get("dp", devices / found.get("tp", 1) / known.get("pp", 1) if devices else None)
    if all(batches):
        whole, batch, count = batches
        replicas = whole / (batch * count)
        if replicas != int(replicas) or (dp and replicas != dp):
            said = f"train_batch_size {whole} is not train_micro_batch_size_per_gpu {batch}"
            times = f"times gradient_accumulation_steps {count} times {f'{dp:g}' if dp else 'a number of'} replicas"
            raise ValueError(f"{said} {times}")
        out["dp"] = int(replicas)


def _torchtitan(given, found, known) -> dict:
    out: dict[str, Any] = {"sequence_parallel": True, "optimizer": optimizer_named(given.get("optimizer.name"))}
    of = "parallelism."
    tp, pp, cp = (found.get(x, 1) for x in ("tp", "pp", "cp"))
    copies = number(of + "data_parallel_replicate_degree", given.get(of + "data_parallel_replicate_degree", 1))
    shards = given.get(of + "data_parallel_shard_degree", -1)
    devices = known.get("devices")
    if text_of(shards) == "-1":
        shards = None
        if devices:
            left = devices / (copies * tp * pp * cp)
            ways = f"{copies} copies times tp={tp}, pp={pp} and cp={cp}"
            shards = _whole(left, f"{devices:g} devices are no multiple of {ways}")
    else:
        shards = number(of + "data_parallel_shard_degree", shards)
    flag = of + "fsdp_reshard_after_forward"
    reshards = _choice(flag, given.get(flag, "default"), ("default", "always", "never"))
    out["sharding"] = "zero2" if reshards == "never" or (reshards == "default" and pp > 1) else "zero3"
    if copies > 1:
        out["sharding"] = "replicated" if shards == 1 and cp == 1 else "hybrid"  # context parallelism shards too
        if out["sharding"] == "hybrid" and not shards:
            raise ValueError(f"{of}data_parallel_shard_degree -1 beside {copies} copies: give devices too")
        if out["sharding"] == "hybrid":
            out["shard_group"] = shards * cp
    if shards:
        out["dp"] = copies * shards
    out["dp_overlap"] = 1  # weights are gathered one block ahead, and gradients are reduced during the next block
    if _is_set(given, of + "enable_async_tensor_parallel"):
        out |= dict(tp_overlap=_hidden_async(tp), tp_beside=0)
    if found.get("schedule") == "interleaved":
        out["chunks"] = _torchtitan_chunks(given, pp, known.get("layers"))
    _torchtitan_batch(given, pp, out)
    flag = "training.mixed_precision_param"
    precise = _choice(flag, given.get(flag, "bfloat16"), ("bfloat16", "float32"))
    converters = " ".join(map(str, given.get("model.converters", [])))
    is_8_bits = "float8" in converters or "mx" in converters
    out["precision"] = "fp8" if is_8_bits else "bf16" if precise == "bfloat16" else None
    return out


def _usual(given, flag: str):
    """Return a number of torchtitan's configuration, or the program's default."""
    return number(flag, given.get(flag, frameworks()["torchtitan"][flag].usual))


def _torchtitan_chunks(given, pp, layers) -> int:
    """Return the chunks per device. Where stages are cut, the embedding and the head count as some layers."""
    flag = "parallelism.pipeline_parallel_layers_per_stage"
    if flag not in given:
        return 2
    if not layers:
        raise ValueError(f"{flag} says how many blocks a chunk has: give the model's layers too")
    ends = sum(_usual(given, f"parallelism.pipeline_parallel_{x}_stage_less_layers") for x in ("first", "last"))
    each = number(flag, given[flag])
    stages = math.ceil((layers + ends) / each) if each else 0
    made = f"{stages} stages of {layers:g} blocks and {ends:g} for the ends"
    return _whole(stages / pp, f"{flag} {each:g} makes {made}, no multiple of pp={pp}")


def _torchtitan_batch(given, pp, out) -> None:
    local = "training.batch_size" if "training.batch_size" in given else "training.local_batch_size"
    flag, split = "training.global_batch_size", "parallelism.pipeline_parallel_microbatch_size"
    own = number(local, given[local]) if local in given else _usual(given, local)
    out["batch"] = number(split, given.get(split, 1)) if pp > 1 else own
    if text_of(given.get(flag, -1)) != "-1":
        out["global_batch"] = number(flag, given[flag])
    else:
        out["microbatches"] = _whole(own / out["batch"], f"{local} {own} is no multiple of {split} {out['batch']}")


_FOLLOW = {"megatron": _megatron, "deepspeed": _deepspeed, "torchtitan": _torchtitan}


def follow(framework: str, given: Mapping, found: dict, known: Mapping) -> dict[str, Any]:
    """Derive the arguments of a training step that depend on several `given` flags together, such as `chunks`.

    `found` has the arguments that single flags set, `known` the caller's. Raises ValueError for contradictions.

    >>> follow("megatron", {"num-layers-per-virtual-pipeline-stage": "4"}, {"pp": 8}, {"layers": 96})["chunks"]
    3
    """
    return {x: y for x, y in _FOLLOW[framework](given, found, known).items() if y is not None}


def complete(framework: str, wanted: Mapping, flags: dict, layers: int | None) -> None:
    """Set the flags in `flags` that depend on several `wanted` values: the ones with a cell `when` in flags.toml."""
    known = letters_when(wanted, layers)
    for flag, entry in frameworks()[framework].items():
        value = next((x for x, text in entry.when.items() if _computed(text, known)), None)
        if value == "":
            flags.pop(flag, None)
        elif value is not None:
            flags[flag] = _computed(value[1:], known) if value[0] == "=" else value


def letters_when(wanted: Mapping, layers: int | None) -> dict[str, Any]:
    """Return the names that conditions in flags.toml may use; a quantity or option that is not wanted is None."""
    usual = dict.fromkeys(("tp", "cp", "pp", "chunks"), 1) | {"shard_group": DEFAULT_LETTERS["shard_group"]}
    known = dict.fromkeys((*NOTATION, *WORDS, "precision")) | usual | dict(wanted)
    known |= {"layers": layers, "hidden_async": _hidden_async}
    known["optimizer"] = OPTIMIZERS.get(wanted.get("optimizer"), OPTIMIZERS["adam"])
    known["gathers"] = getattr(SHARDINGS.get(wanted.get("sharding")), "gathers", False)
    known["shards"] = known["shard_group"] // known["cp"]  # devices that hold one copy, without context parallelism
    chunks = known["pp"] * known["chunks"]
    known["chunk_blocks"] = layers // chunks if layers and layers % chunks == 0 else None
    return known


def _computed(text: str, known: Mapping[str, Any]):
    return eval(_compiled(text), {}, known)


@cache
def _compiled(text: str):
    return compile(text, "flags.toml", "eval")
