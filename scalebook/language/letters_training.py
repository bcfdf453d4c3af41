"""The letters of parallelism and of a training step, one line each: word, unit, meaning, printed form, sign."""

from .notation import letter

__all__ = []

_ZERO = "nonnegative"

# Parallelism.
letter("tp", "", "tensor-parallel ways", "t")
letter("cp", "", "context-parallel ways", "c")
letter("ep", "", "expert-parallel ways", "e")
letter("etp", "", "devices that the width of an expert is split over", r"t_E")
letter("pp", "", "pipeline stages", "p")
letter("dp", "", "data-parallel ways", r"n_{\mathrm{dp}}")
letter("microbatches", "", "micro-batches in a step", "m")
letter("chunks", "", "model chunks per pipeline stage", "v")
letter("global_batch", "", "sequences in a training step", r"B_g")
letter("bubble", "%", "idle time over busy time", r"\epsilon", _ZERO)
letter("forward_time", "s", "forward pass of a micro-batch through the stages of one device", r"T_f")
letter("input_gradient_time", "s", "gradient of the inputs, one micro-batch on one device", r"T_b")
letter("weight_gradient_time", "s", "gradient of the weights, one micro-batch on one device", r"T_w")
letter("transfer_time", "s", "time a tensor takes from one pipeline stage to the next", r"T_x", _ZERO)
letter("staleness", "", "updates of the weights between a gradient's forward pass and its use", r"\delta", _ZERO)
letter("weight_versions", "", "versions of its weights that a stage keeps", r"v_w")
letter("messages", "", "tensors sent between the devices of a pipeline in one step", r"n_x", _ZERO)
letter("pipeline_traffic", "B", "bytes sent between the devices of a pipeline in one step", r"B_{pp}", _ZERO)
letter("pipeline_latency", "s", "time one input takes through all stages of a pipeline", r"T_{pp}")
letter("stage", "", "which pipeline stage; the first is 1", "i")
letter("aspect", "", "hidden width over layers", r"\alpha_{hL}")
letter("held_microbatches", "", "micro-batches whose activations a pipeline stage holds at once", r"m_i")
letter("devices", "", "devices that share the work", "n_d")

# Collectives: a group of devices, of which some share a scale-up domain ("near"); the others are "far".
letter("ways", "", "devices that take part in a collective", r"n_c")
letter("near_ways", "", "devices of a collective that share a scale-up domain", r"n_{\mathrm{near}}^{c}")
letter(
    "collective_bytes",
    "B",
    "whole buffer of a collective: what is reduced, what a gather ends with, "
    "what a device of an all-to-all starts from",
    "S",
    _ZERO,
)
letter("collective_time", "s", "time of a collective", r"T_c", _ZERO)
letter("near_latency", "s", "a hop between devices of a scale-up domain", r"\lambda_{\mathrm{near}}", _ZERO)
letter("far_latency", "s", "a hop between scale-up domains", r"\lambda_{\mathrm{far}}", _ZERO)
letter("collective_launch", "s", "time to start a collective, however little it moves", r"\tau_c", _ZERO)
letter("chunk_time", "s", "time that each chunk of a message adds", r"\tau_{\mathrm{ch}}", _ZERO)
letter("chunk_count", "", "chunks that a message is cut into", r"n_{\mathrm{ch}}")
letter(
    "near_efficiency", "%", "rate of large collectives over the scale-up bandwidth", r"\eta_{\mathrm{near}}", "share"
)
letter("far_efficiency", "%", "rate of large collectives over the scale-out bandwidth", r"\eta_{\mathrm{far}}", "share")
letter(
    "switch_efficiency",
    "%",
    "rate of sums taken in the switch over the scale-up bandwidth; 0 where it takes none",
    r"\eta_{\mathrm{sw}}",
    "share",
)
letter(
    "mesh_peers",
    "",
    "devices that a device of a full mesh has links of its own to; 1 behind a switch",
    r"n_{\mathrm{peer}}",
)
letter("torus_neighbours", "", "devices that a device of a torus is linked to; 1 behind a switch", r"n_{\mathrm{nb}}")
letter(
    "group_share",
    "%",
    "scale-up bandwidth that the near devices of a group can use, over all of it",
    r"\varsigma_{\mathrm{up}}",
    "share",
)
letter("bus_bandwidth", "B/s", "rate a link would need for a ring that takes as long", r"W_{\mathrm{bus}}", _ZERO)
letter("ports", "", "scale-out ports of a node", r"n_{\mathrm{port}}")
letter("crossing", "", "devices of a node whose collectives leave it at the same time", r"n_{\mathrm{cross}}")
letter("concurrent", "", "collectives that use the links of a device at the same time", r"n_{\mathrm{conc}}")

# Offloading to a second tier.
letter(
    "host_efficiency",
    "%",
    "rate of large copies to and from host memory over the raw rate of the link",
    r"\eta_{\mathrm{host}}",
    "share",
)
letter(
    "host_buffers",
    "",
    "memory that a program asks of a host over the state that it keeps there",
    r"\phi_{\mathrm{host}}",
)
letter("block_active_params", "", "parameters of one block that one token uses", r"N_{\mathrm{act}/L}")
letter("kept_values", "", "values a block keeps for its backward pass, per token and unit of hidden width", r"\kappa_a")
letter("recomputed", "%", "share of the forward arithmetic that the backward pass runs again", r"\varrho", "share")
letter("block_weights", "B", "weights of one block on one device", r"M_{w/L}")
letter("block_states", "B", "gradients and optimizer state of one block on one device", r"M_{o/L}")
letter("block_flops", "FLOP", "arithmetic of one block's forward pass on one device", r"Q_{L/t}")
letter("block_forward", "s", "time of one block's forward pass", r"T_{\mathrm{fw}/L}")
letter("block_backward", "s", "time of one block's backward pass", r"T_{\mathrm{bw}/L}")
letter("weight_offload", "%", "share of the weights that live in the second tier", r"x_w", "share")
letter("activation_offload", "%", "share of the kept activations that live in the second tier", r"x_a", "share")
letter(
    "optimizer_offload", "%", "share of gradients and optimizer state that lives in the second tier", r"x_o", "share"
)
letter("near_blocks", "", "places near for the weights and activations of a block", r"n_{\mathrm{near}}")
letter("near_states", "", "places near for the gradients and optimizer state of a block", r"n_{\mathrm{near},o}")
letter("near_memory", "B", "memory taken near, work space aside", r"M_{\mathrm{near}}")
letter("offload_memory", "B", "memory taken in the second tier, per device", r"M_{\mathrm{off}}", _ZERO)
letter("offload_bandwidth", "B/s", "bandwidth that hides every move, one direction", r"W_{\mathrm{off}}")
letter("exposed_time", "s", "time the arithmetic of a block waits for the link", r"T_{\mathrm{wait}/L}", _ZERO)
letter("forward_wait", "s", "time the forward pass of a block waits for the link", r"T_{\mathrm{wait},f}", _ZERO)
letter(
    "backward_wait",
    "s",
    "time the backward pass of a block waits for the link, optimizer state moving too",
    r"T_{\mathrm{wait},b}",
    _ZERO,
)
letter(
    "between_wait",
    "s",
    "time the backward pass of a block waits for the link, but for the last micro-batch",
    r"T'_{\mathrm{wait},b}",
    _ZERO,
)
letter(
    "exposed_between",
    "s",
    "time a block waits for the link, but for the last micro-batch",
    r"T'_{\mathrm{wait}/L}",
    _ZERO,
)
letter(
    "offload_efficiency",
    "%",
    "speed with this link over the speed with an endless one",
    r"\eta_{\mathrm{off}}",
    "share",
)
letter("break_even_tokens", "", "tokens of a micro-batch at which the link hides all moves", r"(bs)^{\star}", _ZERO)

# A training step.
letter("forward_compute", "s", "kernels of one block's forward pass", r"T_{F/L}")
letter("again_compute", "s", "kernels of one block that the backward pass runs again", r"T_{R/L}", _ZERO)
letter("input_gradient_compute", "s", "kernels of one block on the way to the gradient of its input", r"T_{B/L}")
letter("weight_gradient_compute", "s", "kernels of one block that make the gradients of its weights", r"T_{W/L}")
for _way, _said in (("tp", "tensor"), ("cp", "context"), ("ep", "expert")):
    letter(f"{_way}_forward", "s", f"{_said}-parallel collectives of one block, forward", rf"T_{{{_way}/F}}", _ZERO)
    letter(
        f"{_way}_backward",
        "s",
        f"{_said}-parallel collectives one block's backward pass waits for",
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
    letter(f"{_way}_overlap", "%", f"share of the {_said} that runs beside arithmetic", rf"\omega_{{{_way}}}", "share")
    letter(
        f"{_way}_exposed", "s", f"time of a step that waits for {_said}", rf"T_{{{_way}}}^{{\mathrm{{wait}}}}", _ZERO
    )
for _way, _said, _often in (
    ("tp", "tensor-parallel collectives", "of one block, forward and backward,"),
    ("cp", "context-parallel collectives", "of one block, forward and backward,"),
    ("ep", "expert-parallel collectives", "of one block, forward and backward,"),
    ("pp", "transfers between stages", "of one micro-batch, forward and backward,"),
    ("dp", "data-parallel collectives", "of a step"),
    ("all", "all dimensions at once", ""),
):
    for _tier, _words, _mark in (("scaleup", "scale-up", "up"), ("scaleout", "scale-out", "out")):
        _at = rf"{{{_way}}}^{{\mathrm{{{_mark}}}}}"
        if _often:
            letter(
                f"{_way}_{_tier}_time",
                "s",
                f"time that {_said} {_often} keep the {_words} ports of a device busy",
                f"T_{_at}",
                _ZERO,
            )
        if _way == "tp":
            _all = "tensor-parallel collectives of one block that can run beside gradients of weights"
            letter(
                f"tp_{_tier}_beside",
                "s",
                f"time that {_all} keep the {_words} ports of a device busy",
                rf"T_{{tp/W}}^{{\mathrm{{{_mark}}}}}",
                _ZERO,
            )
        letter(f"{_way}_{_tier}_needed", "B/s", f"{_words} bandwidth per device that hides {_said}", f"W_{_at}", _ZERO)
letter(
    "tp_async",
    "s",
    "tensor-parallel collectives of one block that can run beside gradients of weights",
    r"T_{tp/W}",
    _ZERO,
)
letter("quantized_bits", "bit", "bits of an activation that enters a quantized product", r"\beta_{8}")
letter("sustained_rate", "%", "rate of products within a training step over their rate alone", r"\chi_s", "share")
letter(
    "tp_beside", "%", "share of the sums of input gradients that run beside gradients of weights", r"\chi_{tp}", "share"
)
letter("collective_cores", "%", "share of the cores that collectives beside arithmetic take", r"\chi_c", "share")
letter("offload_exposed", "s", "time of a step that waits for the second tier", r"T_{\mathrm{wait}}", _ZERO)
letter("block_routed_params", "", "parameters of the routed experts of one block on one device", r"N_{E/L}", _ZERO)
letter("working_activations", "B", "activations one block holds while it goes backward", r"M_{\mathrm{work}/L}")
letter("again_flops", "FLOP", "arithmetic of one block that the backward pass runs again", r"Q_{R/L}", _ZERO)
letter("head_forward", "s", "last norm, logits and loss of one micro-batch", r"T_{F/V}")
letter("head_backward", "s", "last norm, logits and loss of one micro-batch, going back", r"T_{B/V}")
letter("embedding_time", "s", "words looked up, and their gradients added, in one micro-batch", r"T_{E/V}", _ZERO)
letter("head_flops", "FLOP", "arithmetic of the logits of one micro-batch on one device, forward", r"Q_V")
letter(
    "attention_peak",
    "FLOP/s",
    "peak rate of arithmetic that is not quantized: attention, logits",
    r"F_{\mathrm{att}}^{\uparrow}",
)
letter("attention_efficiency", "%", "achieved over peak rate of fused attention", r"\eta_{\mathrm{att}}", "share")
letter("attention_backward", "%", "rate of fused attention going back over its rate forward", r"\eta_B", "share")
letter("backward_reached", "%", "the same with tiles of their own going back", r"\eta_B^{\mathrm{r}}")
letter(
    "attended_back",
    "%",
    "share of the query-key pairs that attention computes going back",
    r"\sigma_{qk}^{\leftarrow}",
    "share",
)
letter("capacity_factor", "", "tokens that an expert's buffer holds, over an even share of all", r"f_C")
letter("attended_share", "%", "share of the query-key pairs that fused attention computes", r"\sigma_{qk}", "share")
letter("stage_blocks", "", "blocks of a pipeline stage", r"L_i")
letter("last_blocks", "", "blocks of the last pipeline stage", r"L_p", _ZERO)
letter("step_forward", "s", "time of a step in forward kernels", r"T_F^{\Sigma}")
letter("step_backward", "s", "time of a step in backward kernels", r"T_B^{\Sigma}")
letter("step_again", "s", "time of a step in kernels run again", r"T_R^{\Sigma}", _ZERO)
letter(
    "step_head",
    "s",
    "time of a step by which the embedding or the logits make a stage the slowest",
    r"T_V^{\Sigma}",
    _ZERO,
)
letter("bubble_time", "s", "time of a step in which a device waits for the pipeline", r"T_{\epsilon}", _ZERO)
letter("optimizer_time", "s", "time of the optimizer's update", r"T_{\mathrm{opt}}")
letter("step_time", "s", "time of a training step", r"T_{\mathrm{step}}")
letter("shards", "", "devices with the same weights and other tokens: data- times context-parallel ways", r"n_s")
letter("routed_shards", "", "devices with the same experts and other tokens", r"n_{s,E}")
letter(
    "dense_params",
    "",
    "parameters on the fullest device, of the first stage, routed experts aside",
    r"N_{\mathrm{dense}}",
)
letter("routed_params", "", "parameters of routed experts on one device", r"N_{\mathrm{routed}}", _ZERO)
letter("shard_group", "", "devices that deal state out among themselves in hybrid sharding", r"n_g")
letter("reduce_bits", "bit", "bits per gradient while it is summed over devices", r"\beta_r")
letter("dp_reduce", "s", "time in which gradients are summed over devices, per step", r"T_{\mathrm{RS}}", _ZERO)
letter("dp_gather", "s", "time in which weights are gathered from devices, per step", r"T_{\mathrm{AG}}", _ZERO)
letter("dp_passes", "", "micro-batches that data-parallel collectives may run beside", r"m_{\mathrm{win}}")
letter("dp_window", "s", "time of a step that data-parallel collectives may run beside", r"T_{\mathrm{win}}")
letter(
    "last_window",
    "s",
    "time of the last micro-batch that data-parallel collectives may run beside",
    r"T_{\mathrm{last}}",
)
letter("dp_unhidden", "s", "time of data-parallel collectives that nothing hides", r"T_{\mathrm{dp,bare}}", _ZERO)
letter(
    "dp_contention",
    "s",
    "time of a step lost where data-parallel collectives share links with others",
    r"T_{\mathrm{link}}",
    _ZERO,
)
letter("gradient_memory", "B", "memory of the gradients on one device", r"M_g")
letter("optimizer_memory", "B", "memory of the optimizer state on one device", r"M_o")
letter(
    "buffer_memory",
    "B",
    "memory of what is under way: a block going back, gathered weights",
    r"M_{\mathrm{buf}}",
    _ZERO,
)
for _what, _said, _mark in (
    ("weight", "weights", "w"),
    ("gradient", "gradients", "g"),
    ("optimizer", "optimizer state", "o"),
    ("activation", "kept activations", "a"),
    ("train", "all", r"\Sigma"),
):
    letter(
        f"{_what}_away",
        "B",
        f"{_said} that a device of a stage keeps in the second tier",
        rf"M_{{{_mark}}}^{{\mathrm{{far}}}}",
        _ZERO,
    )
letter("memory", "B", "memory training takes on the fullest device", r"M_{\mathrm{dev}}")
letter("first_memory", "B", "memory training takes on a device of the first stage", r"M_{1}^{\Sigma}")
letter("last_memory", "B", "memory training takes on a device of the last stage", r"M_{p}^{\Sigma}")
letter("model_flops", "FLOP", "arithmetic of a step that the model asks for, nothing run again", r"Q_{\mathrm{model}}")
letter("hardware_flops", "FLOP", "arithmetic of a step, with what is run again", r"Q_{\mathrm{hw}}")
letter("mfu", "%", "arithmetic the model asks for over what the devices could do", r"\mathrm{MFU}", _ZERO)
letter("hfu", "%", "arithmetic done over what the devices could do", r"\mathrm{HFU}", _ZERO)
letter("train_rate", "token/s", "tokens trained on per second, all devices", r"R_{\mathrm{train}}")
letter("step_energy", "J", "energy of a step, every device at its thermal design power", r"E_{\mathrm{step}}")
letter("step_cost", "$", "price of a step", r"c_{\mathrm{step}}")
letter("train_tokens", "token", "tokens to train on", r"D")
letter("train_time", "s", "time to train on all tokens", r"T_D")
letter("train_cost", "$", "price of training on all tokens", r"c_D")

# Data parallelism: what hides under arithmetic, and the batch that training tolerates.
letter(
    "hiding_tokens",
    "token",
    "tokens of a device and pass under whose arithmetic its collectives hide",
    r"\theta^{\star}",
)
letter("batch_tokens", "token", "tokens of a training step", r"D_g")
letter("wall_devices", "", "devices beyond which a step gets no shorter", r"n_d^{\star}")
letter(
    "critical_batch", "token", "tokens of a step that take twice the fewest steps, and twice the fewest tokens", r"D_c"
)
letter("min_steps", "", "steps that training takes with an endless batch", r"S_{\min}")
letter("train_steps", "", "steps that training takes", "S_D")
letter("bucket_count", "", "buckets that gradients are summed in, one after another", r"n_{\mathrm{buck}}")
letter(
    "crossover_tokens",
    "token",
    "tokens of a group from which sharding sends less than splitting matrices",
    r"\theta_{\times}",
)
letter("all_saved", "B", "activations all blocks keep of a micro-batch", r"M_{\mathrm{act}}^{\ast}")
