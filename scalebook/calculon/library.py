"""Models and systems that come with Calculon or its reference runs, and Calculon's example execution.

Source: Calculon (https://github.com/calculon-ai/calculon) at caa4b11, Apache License 2.0. 13 models and 3 systems are
unchanged.  The others are variants of them: the twelve shapes of its poster, and machines with another second tier.

>>> sorted(models)[:3]
['anthropic-52B', 'chinchilla', 'gopher-280B']
"""

import json
from importlib.resources import files

from .documents import execution
from .systems import System, system

__all__ = ["example", "models", "sample", "systems"]


def _load(name):
    return json.loads((files(__package__) / name).read_text("utf-8"))


models: dict[str, dict] = _load("models.json")
systems: dict[str, System] = {name: system(document, name) for name, document in _load("systems.json").items()}
example = {
    "num_procs": 3072, "tensor_par": 4, "pipeline_par": 64, "data_par": 12, "tensor_par_net": 0, "pipeline_par_net": 1,
    "data_par_net": 1, "batch_size": 3072, "microbatch_size": 4, "datatype": "float16", "fused_activation": True,
    "attention_type": "multihead", "activation_recompute": "full", "pipeline_interleaving": 1,
    "optimizer_sharding": True, "tensor_par_comm_type": "rs_ag", "tensor_par_overlap": "none",
    "seq_par_ag_redo": False, "data_par_overlap": False, "weight_offload": False, "activations_offload": False,
    "optimizer_offload": False, "training": True,
}  # fmt: skip
sample = execution(example, "Calculon's example")
