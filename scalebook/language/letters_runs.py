"""The letters of whole training runs: sites, fabrics, walls, adapters."""

from .notation import letter

__all__ = []

_ZERO = "nonnegative"

# Training at several distant sites (local SGD).
letter("sites", "", "sites that train one model together", r"n_{\mathrm{site}}", whole=True)
letter("local_steps", "", "local steps between two exchanges of a site", r"H_{\mathrm{local}}", whole=True)
letter("exchange_bits", "bit", "bits exchanged per parameter", r"\beta_x")
letter("site_bytes", "B", "bytes that a site sends per exchange", r"S_{\mathrm{site}}", _ZERO)
letter("site_bandwidth", "B/s", "bandwidth between two sites, one direction", r"W_{\mathrm{site}}")
letter("site_distance", "", "kilometres of fibre between two sites", r"d_{\mathrm{site}}", _ZERO)
letter("fibre_delay", "s", "light delay per kilometre of fibre", r"\tau_{\mathrm{fib}}")
letter("site_latency", "s", "latency between two sites", r"\lambda_{\mathrm{site}}", _ZERO)
letter("site_exchange", "s", "time of an exchange between sites", r"T_{\mathrm{site}}", _ZERO)
letter("sites_lost", "%", "share of the time that sites wait for exchanges", r"\chi_{\mathrm{site}}", "share")
letter(
    "half_site_bandwidth",
    "B/s",
    "bandwidth at which sites wait half of the time",
    r"W_{\mathrm{site}}^{1/2}",
)
letter("sites_gain", "", "speedup of all sites over one", r"G_{\mathrm{site}}", _ZERO)

# Fabrics: tori, and trees of switches.
letter("torus_dimensions", "", "dimensions of a torus", r"n_{\mathrm{dim}}", whole=True)
letter("switch_radix", "", "ports per switch", r"k_{\mathrm{sw}}", whole=True)
letter("switch_tiers", "", "tiers of switches in a network", r"n_{\mathrm{tier}}", whole=True)
letter("tree_devices", "", "devices joined by a fat tree at full bandwidth", r"n_{\mathrm{tree}}")
letter("switch_hops", "", "switches on the longest path of a network", r"n_{\mathrm{hop}}")

letter("exchange_share", "", "time of the gradient sum over a step's arithmetic", r"r_{\Sigma}", _ZERO)

letter("step_compute", "s", "time of a step's arithmetic on all devices", r"T_Q")

# How large a run can be.
letter("run_flops", "FLOP", "arithmetic of a training run", r"Q_{\mathrm{run}}")
letter("tokens_per_param", "", "training tokens per parameter", r"r_{D/N}")
letter("message_time", "s", "latency of an all-reduce in a group", r"\lambda_{\Sigma}")
letter("latency_wall", "FLOP", "largest training run that latency allows", r"Q_{\lambda}")
letter("base_batch", "token", "tokens per step of the reference run", r"D_{g,0}")
letter("base_flops", "FLOP", "arithmetic of the reference run", r"Q_0")
letter("batch_power", "", "exponent of the batch's growth with a run's arithmetic", r"\beta_D", "share")
letter(
    "ridge_tokens",
    "token",
    "micro-batch tokens at which arithmetic takes as long as a stage's memory traffic",
    r"\theta_B",
)
letter("stage_microbatches", "", "micro-batches per step for each pipeline stage", r"k_p")
letter("wall_tp", "", "tensor-parallel size at which a block's sums take as long as its arithmetic", r"t^{W}")
letter("wall_groups", "", "tensor-parallel groups that a step can keep busy", r"n_g^{W}")
letter("bandwidth_wall", "FLOP", "largest training run that bandwidth allows", r"Q_W")
letter(
    "domain_wall",
    "FLOP",
    "largest training run that bandwidth allows inside scale-up domains",
    r"Q_{\mathrm{up}}",
)
letter("grown_latency_wall", "FLOP", "largest training run that latency allows if the batch grows", r"Q_{\lambda}^{+}")
letter("grown_bandwidth_wall", "FLOP", "largest training run that bandwidth allows if the batch grows", r"Q_W^{+}")

# Muon: matrices whose momentum is orthogonalized.
letter("newton_steps", "", "Newton-Schulz iterations for each matrix", r"n_{\mathrm{NS}}", whole=True)
letter("block_matrices", "", "parameters in matrices of a block, without routed experts", r"N_{\mathrm{mat}/L}", _ZERO)
letter(
    "block_routed_matrices", "", "parameters in matrices of a block's routed experts", r"N_{\mathrm{mat},E/L}", _ZERO
)
letter("orthogonal_flops", "FLOP", "arithmetic that orthogonalizes matrices in a step", r"Q_{\mathrm{NS}}", _ZERO)
letter("orthogonal_time", "s", "time to orthogonalize a device's matrices in a step", r"T_{\mathrm{NS}}", _ZERO)
letter("orthogonal_exchange", "s", "time to exchange matrices that are orthogonalized", r"T_{x,\mathrm{NS}}", _ZERO)

# Training low-rank adapters of frozen weights (LoRA).
letter("lora_rank", "", "rank of LoRA adapters", r"r_{\mathrm{LoRA}}")
letter("adapter_params", "", "adapter parameters per block and device", r"N_{\mathrm{LoRA}/L}")
letter("trained_share", "%", "trained share of the parameters", r"\phi_{\mathrm{tr}}", "share")
letter("block_matrix_flops", "FLOP", "forward arithmetic with weights, per block and micro-batch", r"Q_{W/L}")
