"""Count what transformers builds from configurations: parameters, FLOPs and cache, without weights.

Run it in an environment of its own, with torch and the transformers that shall be counted:

    python -m venv /tmp/counted && /tmp/counted/bin/pip install torch transformers
    /tmp/counted/bin/python tools/configurations.py tests/configurations.jsonl.gz [FOLDER OF config.json FILES]...

Each type of causal language model is built at its default configuration on PyTorch's meta device, and each file of the
folders at its own. A line of the result is one configuration, with the keys that can matter to a shape. FLOPs are those
of matrix products, all pairs of tokens; the cache is the elements of all floating-point tensors that the model returns
as such. tests/test_configurations.py compares the package with the result.
"""

import gzip
import json
import re
import sys
from pathlib import Path

BESIDE = re.compile(  # keys of training, generation and presentation
    r"(architectures|auto_map|dtype|torch_dtype|initializer.*|id2label|label2id|output_.*|return_dict|torchscript|"
    r".*dropout.*|.*pdrop|.*_eps|.*_epsilon|.*token_id|.*token_index|rope_.*|hidden_act|.*activation.*|use_cache|"
    r"transformers_version|_name_or_path|task_specific.*|chunk_size_feed.*|.*_std|.*_coef|.*multiplier|problem_type)"
)


def kept(config: dict) -> dict:
    """Return a configuration without keys that cannot matter, and with encoders' configurations empty."""
    found = {}
    for key, value in config.items():
        if value is None and key not in ("q_lora_rank", "sliding_window", "n_shared_experts"):
            continue
        if key in ("vision_config", "audio_config", "quantization_config"):
            found[key] = {"weight_block_size": value["weight_block_size"]} if "weight_block_size" in value else {}
        elif not BESIDE.fullmatch(key) or key == "block_ffn_dim_multiplier":
            found[key] = kept(value) if isinstance(value, dict) else value
    return found


def tensors(thing, seen):
    """Yield all floating-point tensors in an object, each once."""
    import torch

    if id(thing) in seen:
        return
    seen.add(id(thing))
    if isinstance(thing, torch.Tensor):
        if thing.is_floating_point():
            yield thing
    else:
        inner = thing.values() if isinstance(thing, dict) else thing if isinstance(thing, (list, tuple)) else ()
        for part in [*inner, *getattr(thing, "__dict__", {}).values()]:
            yield from tensors(part, seen)


def counted(config, tokens: int = 1024, shorter: int = 256) -> dict:
    """Build a model on the meta device and run it twice: its parameters, and FLOPs and cache of so many tokens."""
    import torch
    from transformers import AutoModelForCausalLM

    def grouped(rows, weights, *more, **kwargs):
        return 2 * rows[0] * rows[1] * weights[-1]

    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config, attn_implementation="eager", dtype=torch.bfloat16).eval()
        said = {"params": sum(x.numel() for x in {id(x): x for x in model.parameters()}.values())}
        try:
            passes = [passed(model, length, grouped) for length in (tokens, shorter)]
        except Exception as error:  # routing by data, which the meta device lacks
            return said | {"no forward": f"{type(error).__name__}"}
    return said | passes[0] | {"shorter": passes[1]}


def passed(model, tokens: int, grouped) -> dict:
    """Run a model forward over so many tokens: the FLOPs, and the elements of the cache that it returns."""
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    counter = FlopCounterMode(display=False, custom_mapping={torch.ops.aten._grouped_mm: grouped})
    with counter, torch.no_grad():
        result = model(torch.zeros(1, tokens, dtype=torch.long), use_cache=True)
    cache = sum(x.numel() for x in tensors(getattr(result, "past_key_values", None), set()))
    return {"tokens": tokens, "flops": counter.get_total_flops(), "cache": cache}


def configurations(folders):
    """Yield the name, source and configuration of each type, and of each file of the folders."""
    import transformers
    from transformers import AutoConfig
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

    for name in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES:
        yield name, f"transformers {transformers.__version__}", lambda x=name: AutoConfig.for_model(x)
    for path in (x for folder in folders for x in sorted(Path(folder).rglob("*.json"))):
        said = json.loads(path.read_text("utf-8"))
        yield path.stem, path.parent.name, lambda x=said: AutoConfig.for_model(x["model_type"], **x)


def main(out: str, *folders: str) -> None:
    with gzip.open(out, "wt", encoding="utf-8") as file:
        for name, source, config in configurations(folders):
            try:
                made = config()
                line = {"name": name, "source": source, "config": kept(made.to_dict())} | counted(made)
            except Exception as error:
                print(f"{name}: {type(error).__name__}: {str(error)[:100]}", file=sys.stderr)
            else:
                file.write(json.dumps(line, sort_keys=True) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
