"""The letters of parallelism and of a training step, one line each: word, unit, meaning, printed form, sign."""

from .notation import letter

__all__ = []

_ZERO = "nonnegative"

# Parallelism.
letter("tp", "", "tensor-parallel size", "t")
letter("cp", "", "context-parallel size", "c")
letter("ep", "", "expert-parallel size", "e")
letter("etp", "", "expert tensor-parallel size", r"t_E")
letter("pp", "", "pipeline stages", "p")
letter("dp", "", "data-parallel size", r"n_{\mathrm{dp}}")
letter("microbatches", "", "micro-batches per step", "m")
letter("chunks", "", "model chunks per pipeline stage", "v")
letter("global_batch", "", "global batch size: sequences per training step", r"B_g")
letter("bubble", "%", "pipeline bubble: idle time over busy time", r"\epsilon", _ZERO)
letter("forward_time", "s", "forward time per micro-batch on one device", r"T_f")
letter("input_gradient_time", "s", "input-gradient time per micro-batch on one device", r"T_b")
letter("weight_gradient_time", "s", "weight-gradient time per micro-batch on one device", r"T_w")
letter("transfer_time", "s", "transfer time between two pipeline stages", r"T_x", _ZERO)
letter("staleness", "", "staleness of a gradient, in weight updates", r"\delta", _ZERO)
letter("weight_versions", "", "weight versions that a stage keeps", r"v_w")
letter("messages", "", "pipeline messages per step", r"n_x", _ZERO)
letter("pipeline_traffic", "B", "bytes sent between pipeline stages per step", r"B_{pp}", _ZERO)
letter("pipeline_latency", "s", "latency of one input through all pipeline stages", r"T_{pp}")
letter("stage", "", "number of a pipeline stage, from 1", "i")
letter("aspect", "", "aspect ratio: hidden width over layers", r"\alpha_{hL}")
letter("held_microbatches", "", "micro-batches in flight on a pipeline stage", r"m_i")
letter("devices", "", "devices that share the work", "n_d")

# Collectives: devices of a group in one scale-up domain are "near", the others "far".
letter("ways", "", "devices in a collective", r"n_c")
letter("near_ways", "", "devices of a collective per scale-up domain", r"n_{\mathrm{near}}^{c}")
letter(
    "collective_bytes",
    "B",
    "buffer of a collective: all-reduce input, all-gather output, or one device's all-to-all input",
    "S",
    _ZERO,
)
letter("collective_time", "s", "time of a collective", r"T_c", _ZERO)
letter("near_latency", "s", "hop latency inside a scale-up domain", r"\lambda_{\mathrm{near}}", _ZERO)
letter("far_latency", "s", "hop latency between scale-up domains", r"\lambda_{\mathrm{far}}", _ZERO)
letter("collective_launch", "s", "launch time of a collective", r"\tau_c", _ZERO)
letter("chunk_time", "s", "time per chunk of a message", r"\tau_{\mathrm{ch}}", _ZERO)
letter("chunk_count", "", "chunks per message", r"n_{\mathrm{ch}}")
letter(
    "near_efficiency",
    "%",
    "share of the scale-up bandwidth that large collectives reach",
    r"\eta_{\mathrm{near}}",
    "share",
)
letter(
    "far_efficiency",
    "%",
    "share of the scale-out bandwidth that large collectives reach",
    r"\eta_{\mathrm{far}}",
    "share",
)
letter(
    "switch_efficiency",
    "%",
    "share of the scale-up bandwidth that in-switch sums reach (0 if there are none)",
    r"\eta_{\mathrm{sw}}",
    "share",
)
letter(
    "mesh_peers",
    "",
    "directly linked peers in a full mesh (1 behind a switch)",
    r"n_{\mathrm{peer}}",
)
letter("torus_neighbours", "", "directly linked neighbours in a torus (1 behind a switch)", r"n_{\mathrm{nb}}")
letter(
    "group_share",
    "%",
    "share of the scale-up bandwidth that a group can use",
    r"\varsigma_{\mathrm{up}}",
    "share",
)
letter("bus_bandwidth", "B/s", "bus bandwidth of a collective", r"W_{\mathrm{bus}}", _ZERO)
letter("ports", "", "scale-out ports per node", r"n_{\mathrm{port}}")
letter("crossing", "", "devices of a node that use its ports at the same time", r"n_{\mathrm{cross}}")
letter("concurrent", "", "collectives that use a device's links at the same time", r"n_{\mathrm{conc}}")

# Offloading to a second tier.
letter(
    "host_efficiency",
    "%",
    "share of the raw host-link rate that large copies reach",
    r"\eta_{\mathrm{host}}",
    "share",
)
letter(
    "host_buffers",
    "",
    "host memory needed over the offloaded state",
    r"\phi_{\mathrm{host}}",
)
letter("block_active_params", "", "active parameters per block and token", r"N_{\mathrm{act}/L}")
letter("kept_values", "", "saved values per block, token and unit of hidden width", r"\kappa_a")
letter("recomputed", "%", "recomputed share of the forward arithmetic", r"\varrho", "share")
letter("block_weights", "B", "weights per block and device", r"M_{w/L}")
letter("block_states", "B", "gradients and optimizer state per block and device", r"M_{o/L}")
letter("block_flops", "FLOP", "forward arithmetic per block and device", r"Q_{L/t}")
letter("block_forward", "s", "forward time per block", r"T_{\mathrm{fw}/L}")
letter("block_backward", "s", "backward time per block", r"T_{\mathrm{bw}/L}")
letter("weight_offload", "%", "offloaded share of the weights", r"x_w", "share")
letter("activation_offload", "%", "offloaded share of the saved activations", r"x_a", "share")
letter("optimizer_offload", "%", "offloaded share of gradients and optimizer state", r"x_o", "share")
letter(
    "near_blocks", "", "buffers in device memory for offloaded weights and activations of a block", r"n_{\mathrm{near}}"
)
letter("near_states", "", "buffers in device memory for offloaded optimizer state of a block", r"n_{\mathrm{near},o}")
letter("near_memory", "B", "device memory in use, without workspace", r"M_{\mathrm{near}}")
letter("offload_memory", "B", "second-tier memory in use, per device", r"M_{\mathrm{off}}", _ZERO)
letter("offload_bandwidth", "B/s", "bandwidth that hides all offload transfers, one direction", r"W_{\mathrm{off}}")
letter("exposed_time", "s", "exposed transfer time per block", r"T_{\mathrm{wait}/L}", _ZERO)
letter("forward_wait", "s", "exposed transfer time in a block's forward pass", r"T_{\mathrm{wait},f}", _ZERO)
letter(
    "backward_wait",
    "s",
    "exposed transfer time in a block's backward pass, optimizer state included",
    r"T_{\mathrm{wait},b}",
    _ZERO,
)
letter(
    "between_wait",
    "s",
    "exposed transfer time in a block's backward pass, except in the last micro-batch",
    r"T'_{\mathrm{wait},b}",
    _ZERO,
)
letter(
    "exposed_between",
    "s",
    "exposed transfer time per block, except in the last micro-batch",
    r"T'_{\mathrm{wait}/L}",
    _ZERO,
)
letter(
    "offload_efficiency",
    "%",
    "speed relative to an infinitely fast link",
    r"\eta_{\mathrm{off}}",
    "share",
)
letter("break_even_tokens", "", "micro-batch tokens at which the link hides all transfers", r"(bs)^{\star}", _ZERO)

# A training step.
letter("forward_compute", "s", "forward kernel time per block", r"T_{F/L}")
letter("again_compute", "s", "recomputed kernel time per block", r"T_{R/L}", _ZERO)
letter("input_gradient_compute", "s", "input-gradient kernel time per block", r"T_{B/L}")
letter("weight_gradient_compute", "s", "weight-gradient kernel time per block", r"T_{W/L}")
for _way, _said in (("tp", "tensor"), ("cp", "context"), ("ep", "expert")):
    letter(
        f"{_way}_forward", "s", f"time of {_said}-parallel collectives per block, forward", rf"T_{{{_way}/F}}", _ZERO
    )
    letter(
        f"{_way}_backward",
        "s",
        f"time of {_said}-parallel collectives that a block's backward pass waits for",
        rf"T_{{{_way}/B}}",
        _ZERO,
    )
for _way, _said in (
    ("tp", "tensor-parallel collectives"),
    ("cp", "context-parallel collectives"),
    ("ep", "expert-parallel collectives"),
    ("pp", "pipeline transfers"),
    ("dp", "data-parallel collectives"),
):
    letter(f"{_way}_overlap", "%", f"overlapped share of the {_said}", rf"\omega_{{{_way}}}", "share")
    letter(f"{_way}_exposed", "s", f"exposed time of {_said} per step", rf"T_{{{_way}}}^{{\mathrm{{wait}}}}", _ZERO)
for _way, _said, _often in (
    ("tp", "tensor-parallel collectives", "per block"),
    ("cp", "context-parallel collectives", "per block"),
    ("ep", "expert-parallel collectives", "per block"),
    ("pp", "pipeline transfers", "per micro-batch"),
    ("dp", "data-parallel collectives", "per step"),
    ("all", "all dimensions at once", ""),
):
    for _tier, _words, _mark in (("scaleup", "scale-up", "up"), ("scaleout", "scale-out", "out")):
        _at = rf"{{{_way}}}^{{\mathrm{{{_mark}}}}}"
        if _often:
            letter(
                f"{_way}_{_tier}_time",
                "s",
                f"busy time of {_words} ports with {_said}, {_often}",
                f"T_{_at}",
                _ZERO,
            )
        if _way == "tp":
            letter(
                f"tp_{_tier}_beside",
                "s",
                f"busy time of {_words} ports with {_said} that weight gradients can hide, {_often}",
                rf"T_{{tp/W}}^{{\mathrm{{{_mark}}}}}",
                _ZERO,
            )
        letter(f"{_way}_{_tier}_needed", "B/s", f"{_words} bandwidth per device that hides {_said}", f"W_{_at}", _ZERO)
letter(
    "tp_async",
    "s",
    "time of tensor-parallel collectives per block that weight gradients can hide",
    r"T_{tp/W}",
    _ZERO,
)
letter("quantized_bits", "bit", "bits per activation of a quantized product", r"\beta_{8}")
letter("sustained_rate", "%", "rate of products in a training step relative to running alone", r"\chi_s", "share")
letter("tp_beside", "%", "share of input-gradient sums overlapped with weight gradients", r"\chi_{tp}", "share")
letter("collective_cores", "%", "share of the cores that overlapped collectives occupy", r"\chi_c", "share")
letter("offload_exposed", "s", "exposed time of offload transfers per step", r"T_{\mathrm{wait}}", _ZERO)
letter("block_routed_params", "", "routed-expert parameters per block and device", r"N_{E/L}", _ZERO)
letter("working_activations", "B", "activations of a block during its backward pass", r"M_{\mathrm{work}/L}")
letter("again_flops", "FLOP", "recomputed arithmetic per block", r"Q_{R/L}", _ZERO)
letter("head_forward", "s", "forward time of the last norm, logits and loss, per micro-batch", r"T_{F/V}")
letter("head_backward", "s", "backward time of the last norm, logits and loss, per micro-batch", r"T_{B/V}")
letter("embedding_time", "s", "time of the embedding lookup and its gradient, per micro-batch", r"T_{E/V}", _ZERO)
letter("head_flops", "FLOP", "forward arithmetic of the logits, per micro-batch and device", r"Q_V")
letter(
    "attention_peak",
    "FLOP/s",
    "peak arithmetic rate of unquantized products: attention, logits",
    r"F_{\mathrm{att}}^{\uparrow}",
)
letter("attention_efficiency", "%", "share of the peak that fused attention reaches", r"\eta_{\mathrm{att}}", "share")
letter("attention_backward", "%", "rate of fused attention backward relative to forward", r"\eta_B", "share")
letter(
    "backward_reached",
    "%",
    "rate of fused attention backward relative to forward, with backward tiles",
    r"\eta_B^{\mathrm{r}}",
)
letter(
    "attended_back",
    "%",
    "share of the query-key pairs that attention computes backward",
    r"\sigma_{qk}^{\leftarrow}",
    "share",
)
letter("capacity_factor", "", "capacity factor of an expert's token buffer", r"f_C")
letter("attended_share", "%", "share of the query-key pairs that fused attention computes", r"\sigma_{qk}", "share")
letter("stage_blocks", "", "blocks per pipeline stage", r"L_i")
letter("last_blocks", "", "blocks of the last pipeline stage", r"L_p", _ZERO)
letter("step_forward", "s", "time of forward kernels per step", r"T_F^{\Sigma}")
letter("step_backward", "s", "time of backward kernels per step", r"T_B^{\Sigma}")
letter("step_again", "s", "time of recomputed kernels per step", r"T_R^{\Sigma}", _ZERO)
letter(
    "step_head",
    "s",
    "time per step added by the embedding or the logits",
    r"T_V^{\Sigma}",
    _ZERO,
)
letter("bubble_time", "s", "time of the pipeline bubble per step", r"T_{\epsilon}", _ZERO)
letter("optimizer_time", "s", "time of the optimizer step", r"T_{\mathrm{opt}}")
letter("step_time", "s", "time of a training step", r"T_{\mathrm{step}}")
letter("shards", "", "devices with the same weights and different tokens", r"n_s")
letter("routed_shards", "", "devices with the same experts and different tokens", r"n_{s,E}")
letter(
    "dense_params",
    "",
    "parameters on the fullest device, routed experts excluded",
    r"N_{\mathrm{dense}}",
)
letter("routed_params", "", "routed-expert parameters per device", r"N_{\mathrm{routed}}", _ZERO)
letter("shard_group", "", "devices per hybrid-sharding group", r"n_g")
letter("reduce_bits", "bit", "bits per gradient in a sum over devices", r"\beta_r")
letter("dp_reduce", "s", "time of gradient reductions per step", r"T_{\mathrm{RS}}", _ZERO)
letter("dp_gather", "s", "time of weight gathers per step", r"T_{\mathrm{AG}}", _ZERO)
letter("dp_passes", "", "micro-batches that can hide data-parallel collectives", r"m_{\mathrm{win}}")
letter("dp_window", "s", "time per step that can hide data-parallel collectives", r"T_{\mathrm{win}}")
letter(
    "last_window",
    "s",
    "time of the last micro-batch that can hide data-parallel collectives",
    r"T_{\mathrm{last}}",
)
letter("dp_unhidden", "s", "unhidden time of data-parallel collectives", r"T_{\mathrm{dp,bare}}", _ZERO)
letter(
    "dp_contention",
    "s",
    "time per step lost to link contention with data-parallel collectives",
    r"T_{\mathrm{link}}",
    _ZERO,
)
letter("gradient_memory", "B", "gradient memory per device", r"M_g")
letter("optimizer_memory", "B", "optimizer-state memory per device", r"M_o")
letter(
    "buffer_memory",
    "B",
    "memory for temporary buffers: a block's backward pass, gathered weights",
    r"M_{\mathrm{buf}}",
    _ZERO,
)
for _what, _said, _mark in (
    ("weight", "weights", "w"),
    ("gradient", "gradients", "g"),
    ("optimizer", "optimizer state", "o"),
    ("activation", "activations", "a"),
    ("train", "all memory", r"\Sigma"),
):
    letter(
        f"{_what}_away",
        "B",
        f"{_said} offloaded to the second tier, per device",
        rf"M_{{{_mark}}}^{{\mathrm{{far}}}}",
        _ZERO,
    )
letter("memory", "B", "training memory of the fullest device", r"M_{\mathrm{dev}}")
letter("first_memory", "B", "training memory per device of the first stage", r"M_{1}^{\Sigma}")
letter("last_memory", "B", "training memory per device of the last stage", r"M_{p}^{\Sigma}")
letter("model_flops", "FLOP", "model FLOPs per step, without recomputation", r"Q_{\mathrm{model}}")
letter("hardware_flops", "FLOP", "hardware FLOPs per step, with recomputation", r"Q_{\mathrm{hw}}")
letter("mfu", "%", "model FLOPs utilisation (MFU)", r"\mathrm{MFU}", _ZERO)
letter("hfu", "%", "hardware FLOPs utilisation (HFU)", r"\mathrm{HFU}", _ZERO)
letter("train_rate", "token/s", "training throughput of all devices", r"R_{\mathrm{train}}")
letter("step_energy", "J", "energy per step at thermal design power", r"E_{\mathrm{step}}")
letter("step_cost", "$", "cost per step", r"c_{\mathrm{step}}")
letter("train_tokens", "token", "training tokens", r"D")
letter("train_time", "s", "training time for all tokens", r"T_D")
letter("train_cost", "$", "training cost for all tokens", r"c_D")

# Data parallelism: hidden collectives and the critical batch.
letter(
    "hiding_tokens",
    "token",
    "tokens per device that hide its data-parallel collectives",
    r"\theta^{\star}",
)
letter("batch_tokens", "token", "tokens per training step", r"D_g")
letter("wall_devices", "", "most devices that still shorten a step", r"n_d^{\star}")
letter("critical_batch", "token", "critical batch size", r"D_c")
letter("min_steps", "", "training steps with an infinite batch", r"S_{\min}")
letter("train_steps", "", "training steps", "S_D")
letter("bucket_count", "", "gradient buckets", r"n_{\mathrm{buck}}")
letter(
    "crossover_tokens",
    "token",
    "tokens per group at which sharding and tensor parallelism send equal bytes",
    r"\theta_{\times}",
)
letter("all_saved", "B", "activations saved by all blocks, per micro-batch", r"M_{\mathrm{act}}^{\ast}")
