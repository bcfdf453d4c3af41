"""Serving as published: InferenceX's and NVIDIA's runs of engines on one group of devices, by users.

The kernels of a step were fitted to kernels alone, and how long devices wait for each other in a sum on half of the
curves, so `tpot` of the others is a test of their sum; first tokens have two constants an engine, fitted on the same
half (a curve: one model, system, engine, precision, lengths and layout).
"""

import re
from functools import cache
from math import log2

import numpy as np

from scalebook.inference import serve
from scalebook.language.row import gather
from scalebook.tables import accelerators, engines, models

from . import serving_scripts as scripts
from .confrontation import Confrontation, Priced
from .formats import BITS, is_unpacked, precision_for
from .load import GIB_OVER_GB
from .priced import together
from .rows import SYSTEMS as ALL_SYSTEMS
from .rows import number

__all__ = [
    "CONFRONTATIONS", "devices_along", "devices_of", "is_fitted_curve", "knowns_of", "least_seconds", "lengths",
    "milliseconds", "model_of", "scaled", "served_rows", "users_of",
]  # fmt: skip

SYSTEMS = {name: device for name, device in ALL_SYSTEMS.items() if device != "a100"}  # of which no run was published
MODELS = {
    r"deepseek-ai/DeepSeek-(R1|V3)(-0324|-0528)?|nvidia/DeepSeek-(R1|V3\.1)-NVFP4": "deepseek_v3",
    r"meta-llama/Llama-3.1-70B(-Instruct)?": "llama3_70b",
    r"(meta-llama|nvidia)/Llama-3.1-8B-Instruct(-FP8)?": "llama3_8b",
    r"openai/gpt-oss-120b": "gpt_oss_120b",
    r"Qwen/Qwen3-32B": "qwen3_32b",
    r"Qwen/Qwen3-235B-A22B-FP8": "qwen3_235b_a22b",
    r"moonshotai/Kimi-K2.5": "kimi_k2",
    r"MiniMaxAI/MiniMax-M2.5": "minimax_m2_5",
    r"zhipuai/GLM-5": "glm_5",
    r"Qwen/Qwen3.5-397B-A17B": "qwen3_5_397b",
}
# What NVFP4 checkpoints leave in 16 bits, as the mean over all dense weights: attention, of DeepSeek-R1 (v2) but the
# product out of it, while shared experts have 4.5; of MiniMax all.  INT4 checkpoints leave it all.
ATTENTION_BITS = {"deepseek_v3": 7.4, "kimi_k2": 12.3, "minimax_m2_5": 16}
MEAN_LENGTH = 0.9  # InferenceX draws lengths evenly between 0.8 and 1 of the nominal.


def model_of(row) -> str:
    """The key of a row's model in the table; "" where the table lacks it.

    >>> model_of({"model_path": "openai/gpt-oss-120b"}), model_of({"model_path": "somebody/else"})
    ('gpt_oss_120b', '')
    """
    return next((key for pattern, key in MODELS.items() if re.fullmatch(pattern, row["model_path"])), "")


def devices_along(row, column) -> float:
    """How many devices a column says; an empty cell says one.

    >>> devices_along({"pp_size": ""}, "pp_size"), devices_along({"pp_size": "4"}, "pp_size")
    (1.0, 4.0)
    """
    return float(row[column] or 1) or 1.0


def _bits(row) -> tuple[float, float, float]:
    """Bits of dense weights, experts and caches: checkpoints quantize experts first and attention last."""
    dense = BITS[row["gemm_quant_mode"] or row["precision"]]
    expert = BITS[row["moe_quant_mode"] or row["gemm_quant_mode"] or row["precision"]]
    model = model_of(row)
    if model == "gpt_oss_120b":
        dense, expert = 16, 4.25  # its checkpoint: experts in mxfp4, the rest in bf16
    elif dense < 8 and model in ATTENTION_BITS:
        dense = ATTENTION_BITS[model] if dense == BITS["nvfp4"] else 16
    is_in_four = row["precision"] == "fp4" and "peak_fp4" in accelerators[SYSTEMS[row["system"]]]
    narrow = dense <= 8 or is_in_four or (row["backend"] == "trtllm" and expert < 16)
    if row["backend"] != "trtllm" and not scripts.is_of_inferencex(row) and not row["model_path"].startswith("nvidia/"):
        narrow = False  # vLLM and SGLang keep caches in 16 bits unless told otherwise, as InferenceX and NVIDIA do
    if scripts.has_wide_caches(row, model):
        narrow = False
    cache = 8 if narrow else 16
    return dense, expert, cache


def _group(row, columns="{}") -> dict[str, float]:
    """How the devices of one engine share a model.

    Where each device attends for its own, the file takes the run's number of devices for two widths and multiplies
    them: InferenceX starts vLLM so with a tensor-parallel width of 1, as many groups as devices, and its experts dealt
    out over these; its files have the devices as tensor-parallel width too.  So it is where the square is the
    tensor-parallel width: such runs take as long as those of as many devices as one width says.

    >>> row = dict(tp_size="4", pp_size="1", attention_dp_size="4", moe_ep_size="16", moe_tp_size="1")
    >>> _group(row)
    {'tp': 1.0, 'pp': 1.0, 'attention_dp': 4.0, 'ep': 4.0, 'etp': 1.0}
    >>> _group(row | dict(tp_size="1", attention_dp_size="16", moe_tp_size="4", moe_ep_size="4")) == _group(row)
    True
    >>> _group(row | dict(attention_dp_size="", moe_tp_size="2", moe_ep_size="2"))["tp"]  # tensor-parallel over two
    2.0
    """
    names = dict(tp="tp_size", pp="pp_size", attention_dp="attention_dp_size", ep="moe_ep_size", etp="moe_tp_size")
    group = {letter: devices_along(row, columns.format(column)) for letter, column in names.items()}
    tp, groups, ep, etp = (group[x] for x in ("tp", "attention_dp", "ep", "etp"))
    if tp == groups > 1 and ep == tp * groups:
        return group | dict(tp=1.0, ep=groups)
    if ep == etp > 1 and groups == ep * etp:
        return group | dict(attention_dp=ep, etp=1.0)
    if ep == etp > 1 and groups == 1 and tp == ep * etp:
        return group | dict(tp=ep, etp=1.0)
    return group


def knowns_of(row, columns="{}"):
    """The model, the device and the letters of a row; `columns` is how the widths of its layout are called."""
    model, device = models[model_of(row)], accelerators[SYSTEMS[row["system"]]]
    dense, expert, cached = _bits(row)
    letters = _group(row, columns) | dict(weight_bits=dense, expert_bits=expert, kv_bits=cached)
    letters["activation_bits"] = 8 if dense <= 8 else 16
    if dense != 8:
        letters["scale_kernels"] = 0  # products with few weights in 8 bits
    if letters["attention_dp"] > 1 and model.get("experts"):
        letters["exchange"] = "gather"  # what vLLM and TensorRT-LLM do unless told otherwise
    if (row["backend"], row["backend_version"]) == TOGETHER:
        letters |= dict(prompts_met=0.5, generations=1)
    elif scripts.is_of_inferencex(row):
        letters["generations"] = scripts.generations(row)
    if waited := scripts.wait_steps(row, model_of(row)):
        letters["wait_steps"] = waited
    letters["cores"] = device.get("cores") or accelerators.b200.cores
    if model.get("experts"):
        is_wide = is_unpacked(device, expert) or row["moe_quant_mode"] == "int4_wo"  # no unit multiplies int4
        there = device.at("bf16" if is_wide else precision_for(device, expert))
        letters |= dict(expert_peak=there.peak_flops, expert_efficiency=there.get("matmul_efficiency", 0.6))
        if scripts.deals_experts_out(row, model_of(row)):
            letters |= dict(ep=letters["tp"], etp=1.0)
    else:
        del letters["ep"], letters["etp"]
    letters |= scaled(model, SYSTEMS[row["system"]], dense, expert)
    return model, device.at(precision_for(device, dense)), letters


def scaled(model, device: str, dense: float, expert: float) -> dict[str, float]:
    """What products reach whose weights have 8 bits and a scale for each block, as kernels alone do (`gemm`).

    >>> scaled(models.deepseek_v3, "h200", 8, 4.5), scaled(models.llama3_70b, "h200", 8, 8)
    ({'matmul_efficiency': 0.568}, {})
    """
    if "scale_block" not in model or "matmul_fp8_block" not in accelerators[device]:
        return {}
    bits = dict(matmul_efficiency=dense, expert_efficiency=expert if model.get("experts") else 0)
    return {letter: accelerators[device].matmul_fp8_block for letter, x in bits.items() if x == 8}


def users_of(row) -> float:
    """Users at once; where a row does not say them, its batch."""
    return float(row["concurrency"] or 0) or number(row, "batch_size")


def lengths(row) -> dict[str, float]:
    share = MEAN_LENGTH if scripts.is_of_inferencex(row) else 1.0
    return dict(prompt=share * number(row, "isl"), output=share * number(row, "osl"))


def _asked(row) -> tuple:
    """The sheet that prices a row, and what it is called with."""
    _, device, letters = knowns_of(row)
    sheet, known = _planned(
        model_of(row), row["system"], device.words["precision"], row["backend"], tuple(letters.items())
    )
    return sheet, known | lengths(row) | dict(users=users_of(row)) | scripts.dealt(
        known.get("attention_dp", 1), users_of(row)
    )


@cache
def _planned(model: str, system: str, precision: str, backend: str, letters: tuple) -> tuple:
    """The same for all rows of one layout: users and lengths are not asked for."""
    device = accelerators[SYSTEMS[system]].at(precision)
    asked = dict(letters) | dict(users=1, prompt=1, output=2, engine=engines[backend])
    sheet, knowns, left = serve.plan((models[model], device), asked)
    known = {n: cell.value for n, cell in gather(knowns, left).items()}
    known["hbm_capacity"] *= GIB_OVER_GB
    return sheet, {n: x for n, x in known.items() if n in sheet.inputs or n in sheet.formulas}


def served_rows(rows, *wanted: str, using=(), **letters) -> dict[str, np.ndarray]:
    """What `serve` says of rows: letters to arrays.  Rows of one sheet are priced together.

    Formulas of `using`, and letters that are given a value, or one for each row, take the place of what the rows and
    the sheet say.  Raises KeyError for a letter that it does not give.
    """
    letters = {n: np.broadcast_to(x, len(rows)) for n, x in letters.items()}
    replaced = {f.letter for f in using}

    @cache
    def swapped(sheet):
        return sheet.using(*(f for f in using if f.letter in sheet.letters))

    asked = []
    for place, row in enumerate(rows):
        sheet, known = _asked(row)
        own = {n: x for n, x in known.items() if n not in replaced} | {n: x[place] for n, x in letters.items()}
        asked.append((swapped(sheet) if using else sheet, own))
    return together(asked, *wanted)


# SGLang reads prompts first, and in the runs of this version all lengths are equal: users stay in step.
TOGETHER = ("sglang", "0.5.1.post1")
DRAFTED = "1.2.0rc6.post3"  # of TensorRT-LLM; ten of these runs stand beside the same ones of post2
# Of the same: runs of R1 take half to two thirds of the time of those of V3, the same model, in the same layouts.
DRAFTED_R1 = "1.1.0rc2.post2"
# Of the same: twice the users change no time per token by 5 %, whatever the model; each is 1.3 to 1.7 ms a layer.
UNCAPTURED = "1.3.0rc1"


# What a prediction or a reason rests on.
_READ = (
    "backend", "backend_version", "model_path", "system", "precision", "mode", "isl", "osl", "gemm_quant_mode",
    "moe_quant_mode", "batch_size", "tp_size", "pp_size", "attention_dp_size", "moe_tp_size", "moe_ep_size",
    "silicon_ttft_ms", "silicon_tpot_ms", "concurrency", "origin",
)  # fmt: skip


@cache
def _served(keys: tuple[tuple[str, ...], ...]) -> dict[str, np.ndarray]:
    """All that the three sets hold rows to, once for the same rows."""
    rows = [dict(zip(_READ, key, strict=True)) for key in keys]
    return served_rows(rows, "tpot", "ttft", "end_to_end")


def milliseconds(rows, letter: str) -> np.ndarray:
    """What `serve` says of rows of "tpot", "ttft" or "end_to_end"; once for the same rows."""
    return 1e3 * _served(tuple(tuple(row[x] for x in _READ) for row in rows))[letter]


@cache
def _room(model, system, backend, prompt, output, letters: tuple) -> float:
    """The largest of users that fit, 0 where the weights do not."""
    device = accelerators[system]
    knowns = models[model], device.at("bf16" if "peak_bf16" in device else "fp16")
    asked = dict(letters) | dict(users=1, prompt=prompt, output=output, engine=engines[backend])
    sheet, knowns, left = serve.plan(knowns, asked)
    known = {n: cell.value for n, cell in gather(knowns, left).items()}
    known["hbm_capacity"] *= GIB_OVER_GB
    room = sheet.only("cache_room", "cached_tokens", "token_cache")
    row = room({n: known[n] for n in room.inputs})
    return max(0.0, _value(row, "cache_room") / (row.cached_tokens * row.token_cache)) * dict(letters).get(
        "attention_dp", 1
    )


def _value(row, letter) -> float:
    try:
        return float(row[letter])
    except KeyError:  # below zero: weights that do not fit
        return 0.0


def _fitting(row) -> float:
    _, _, letters = knowns_of(row)
    said = lengths(row)
    return _room(model_of(row), SYSTEMS[row["system"]], row["backend"], *said.values(), tuple(sorted(letters.items())))


def _left_out(row) -> str:
    return _reason(tuple(row[x] for x in _READ))


@cache
def _reason(key: tuple[str, ...]) -> str:
    row = dict(zip(_READ, key, strict=True))
    if row["mode"] != "agg":
        return "of prompts and answers on devices of their own"
    if not model_of(row):
        return "of a model whose blocks are not described here"
    if row["system"] not in SYSTEMS or row["backend"] not in engines:
        return "of a system or an engine that the tables lack"
    if devices_of(row) > 8 or devices_along(row, "pp_size") > 1:
        return "of more devices than one engine's group: disaggregated runs whose columns were flattened"
    if "DeepSeek" in row["model_path"] and row["backend_version"] == DRAFTED:
        return "of a version that writes tokens in half the time of the same runs of the one before: drafted tokens"
    if "DeepSeek-R1" in row["model_path"] and row["backend_version"] == DRAFTED_R1:
        return "of a version in which R1 takes half the time of V3, the same model: drafted tokens"
    if model_of(row) == "kimi_k2" and row["backend_version"] == "0.17.0" and _group(row)["attention_dp"] > 1:
        return "of runs that the file holds once more as of devices that attend together: one layout is not the run's"
    if (row["backend"], row["backend_version"]) == ("trtllm", UNCAPTURED):
        return "of a version whose steps take as long with half the users: launched by the host, and not as a graph"
    if row["system"] == "gb200" and "Qwen3-32B" in row["model_path"]:
        return "five times as slow as the same run elsewhere: a slip of its columns"
    if not float(row["silicon_tpot_ms"] or 0):
        return "without a time per token"
    if number(row, "silicon_tpot_ms") / 1e3 < least_seconds(row):
        return "faster than the weights that a token uses can be read: drafted tokens, or other columns than the run's"
    return (
        "of more users than have room, or of weights that do not fit as said" if _fitting(row) < users_of(row) else ""
    )


def devices_of(row) -> float:
    """Devices of a row's engine."""
    group = _group(row)
    return group["tp"] * group["pp"] * group["attention_dp"]


def least_seconds(row, columns="{}") -> float:
    """Seconds in which the devices read the weights that one token uses, at their full bandwidths."""
    model, device = models[model_of(row)], accelerators[SYSTEMS[row["system"]]]
    bits = min(_bits(row)[:2]) if model.get("experts") else _bits(row)[0]
    group = _group(row, columns)
    return model.active_params * bits / 8 / (group["tp"] * group["attention_dp"] * device.hbm_bandwidth)


def _engine(row):
    return f"{engines[row['backend']].name}, {accelerators[SYSTEMS[row['system']]].name.partition(' (')[0]}"


def is_fitted_curve(row) -> bool:
    """Whether a row is of the half of the curves that constants are fitted on.

    Curves of one model, device and engine take turns, as squares of a chessboard do: a length or a group twice as
    large is of the other half.  So both halves hold every kind; halves by lot differ by what few odd runs fall into.
    A run that the file has twice, its layout in two notations, is of one half.

    >>> row = dict.fromkeys(["pp_size", "attention_dp_size", "moe_tp_size", "moe_ep_size"], "")
    >>> row |= dict(isl="1024", osl="1024", tp_size="4")
    >>> is_fitted_curve(row), is_fitted_curve(row | {"tp_size": "8"})
    (True, False)
    """
    group = _group(row)
    sizes = *(devices_along(row, x) for x in ("isl", "osl")), *(group[x] for x in ("tp", "attention_dp", "ep"))
    return sum(round(log2(x)) for x in sizes) % 2 == 0


def _with_end(row):
    """The end-to-end time of a run follows from its first token and the time of each further one."""
    first, each = float(row["silicon_ttft_ms"] or 0), float(row["silicon_tpot_ms"] or 0)
    output = lengths(row)["output"] if row["osl"] else 0
    return {**row, "end_to_end_ms": str(first + (output - 1) * each) if first and each else ""}


def _no_first(row):
    if reason := _left_out(row):
        return reason
    if not float(row["silicon_ttft_ms"] or 0):
        return "without a time to the first token"
    if scripts.is_of_inferencex(row) and number(row, "silicon_ttft_ms") > scripts.COMPILED * _latest(row):
        return "with first tokens twice as late as all users' prompts can make them: kernels compiled meanwhile"
    return ""


def _latest(row) -> float:
    users = users_of(row) / _group(row)["attention_dp"]
    return scripts.latest_first_token(row, users, lengths(row)["output"], scripts.wait_steps(row, model_of(row)) or 0.5)


def _read_once(rows) -> np.ndarray:
    return np.array([least_seconds(row) for row in rows])


def _read_prompt(rows) -> np.ndarray:
    """Seconds of the arithmetic of all users' prompts, at the peak in 16 bits of an engine's devices."""
    found = []
    for row in rows:
        model, device = models[model_of(row)], accelerators[SYSTEMS[row["system"]]]
        flops = 2 * model.active_params * users_of(row) * lengths(row)["prompt"]
        found.append(flops / (devices_of(row) * device.peak_bf16))
    return np.array(found)


def _ended(rows) -> np.ndarray:
    return _read_prompt(rows) + _read_once(rows) * [lengths(row)["output"] for row in rows]


_FITTED = "of first tokens two constants an engine, on half of the curves"
CONFRONTATIONS = {
    c.name: c
    for c in (
        Confrontation(
            "serving_tpot",
            "serving.csv",
            "Time per output token of users of one engine, by the kernels of its steps.",
            lambda rows: Priced(milliseconds(rows, "tpot"), 1e3 * _read_once(rows)),
            "silicon_tpot_ms",
            "ms",
            ("inferencex", "inferencex-scripts"),
            _left_out,
            _engine,
            "how long devices wait for each other in a sum, one value for all, on half of the curves",
            is_fitted_curve,
        ),
        Confrontation(
            "serving_ttft",
            "serving.csv",
            "Time to the first token, the mean of a benchmark whose users all begin at once.",
            lambda rows: Priced(milliseconds(rows, "ttft"), 1e3 * _read_prompt(rows)),
            "silicon_ttft_ms",
            "ms",
            ("inferencex", "inferencex-scripts"),
            _no_first,
            _engine,
            _FITTED,
            is_fitted_curve,
        ),
        Confrontation(
            "serving_end_to_end",
            "serving.csv",
            "Time from a request to its last token.",
            lambda rows: Priced(milliseconds(rows, "end_to_end"), 1e3 * _ended(rows)),
            "end_to_end_ms",
            "ms",
            ("inferencex", "inferencex-scripts"),
            _no_first,
            _engine,
            _FITTED,
            is_fitted_curve,
            completed=_with_end,
        ),
    )
}
