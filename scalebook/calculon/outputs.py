"""Calculon's name for each of its outputs, by our letter.

>>> OUTPUTS["times of a step"]["bubble_time"]
'bubble_time'
"""

__all__ = ["OUTPUTS"]

_PASSES = {"forward": "fw", "again": "re", "input": "agrad", "weight": "wgrad", "update": "optim"}
_EXCHANGES = {"forward": ("fw_tp", "fw_tp"), "input": ("agrad_tp", "bw_tp"), "again": ("recomm", "recomm")}
_BLOCKS = {"base": "baseblock", "edge": "edgeblock"}


def _of_passes(letter, column):
    return {f"block_{name}_{letter}": f"block_{short}_{column}" for name, short in _PASSES.items()}


def _of_exchanges(letter, column, of=0):
    return {
        f"{kind}_{name}_{letter}": f"{block}_{words[of]}_{column}"
        for kind, block in _BLOCKS.items()
        for name, words in _EXCHANGES.items()
    }


# Our letters and Calculon's names of the outputs, by kind.
OUTPUTS = {
    "FLOPs of a block": {**_of_passes("flops", "flops"), "useful_flops": "useful_flops"},
    "bytes of a block": _of_passes("traffic", "mem_accessed"),
    "sizes of exchanges": {
        **_of_exchanges("bytes", "size", 1), "forward_send_bytes": "block_fw_pp_size",
        "backward_send_bytes": "block_bw_pp_size", "block_reduce_bytes": "block_dp_size",
    },
    "memory of a block": {
        "block_weights": "block_weight_space", "block_working": "block_act_working_space",
        "block_stored": "block_act_storage_space", "block_checkpoint": "block_act_checkpoint_size",
        "block_gradients": "block_weight_grad_space", "block_whole_gradients": "block_weight_grad_space_no_sharding",
        "block_activation_gradients": "block_act_grad_space", "block_optimizer": "block_optimizer_space",
    },
    "memory of a device": {
        "weight_memory": "weight_space", "activation_memory": "act_space", "checkpoint_memory": "act_checkpoint_size",
        "activation_gradient_memory": "act_grad_space", "gradient_memory": "weight_grad_space",
        "optimizer_memory": "optimizer_space", "near_weights": "weight_space_with_offload",
        "near_activation_gradients": "act_grad_space_with_offload",
        "near_activations": "act_space_with_offload", "near_checkpoints": "act_checkpoint_size_with_offload",
        "near_gradients": "weight_grad_space_with_offload", "near_optimizer": "optimizer_space_with_offload",
        "train_memory": "proc_mem_tier1_cap_req", "offload_memory": "proc_mem_tier2_cap_req",
    },
    "times of a block": {
        **_of_passes("compute", "flops_time"), **_of_passes("memory", "mem_time"), **_of_passes("time", "time"),
        **_of_exchanges("link", "time"), **_of_exchanges("exposed", "time_exposed"),
    },
    "times of a step": {
        "step_forward": "fw_time", "step_backward": "bw_time", "optimizer_time": "optim_step_time",
        "step_again": "recompute_time", "again_link_time": "recomm_link_time",
        "again_exposed_time": "recomm_exposed_time", "bubble_time": "bubble_time", "tp_link_time": "tp_comm_link_time",
        "pp_link_time": "pp_comm_link_time", "dp_link_time": "dp_comm_link_time",
        "tp_exposed": "tp_comm_exposed_time", "pp_exposed": "pp_comm_exposed_time",
        "dp_exposed": "dp_comm_exposed_time", "forward_wait_time": "fw_offload_exposed_time",
        "backward_wait_time": "bw_offload_exposed_time", "step_time": "total_time",
    },
    "bandwidths that hide": {
        "tp_bandwidth_needed": "tp_bw_overlap_req", "dp_bandwidth_needed": "dp_bw_overlap_req_chunk",
        "dp_tail_needed": "dp_bw_overlap_req_tail", "activation_move_needed": "act_offload_bw_req",
        "weight_move_needed": "weight_offload_bw_req", "optimizer_move_needed": "optim_offload_bw_req",
        "move_needed": "offload_mem_bw_req",
    },
    "shares and rate": {
        "busy_share": "compute_efficiency", "passes_share": "system_efficiency", "useful_share": "total_efficiency",
        "sequence_rate": "sample_rate",
    },
}  # fmt: skip
