"""The letters of whole training runs: sites, fabrics, walls, adapters."""

from .notation import letter

__all__ = []

_ZERO = "nonnegative"

# Training at several sites, far from each other.
letter("sites", "", "sites that train one model together", r"n_{\mathrm{site}}", whole=True)
letter("local_steps", "", "steps of a site between two exchanges with the others", r"H_{\mathrm{local}}", whole=True)
letter("exchange_bits", "bit", "bits per parameter that sites exchange", r"\beta_x")
letter("site_bytes", "B", "bytes that a site sends in an exchange", r"S_{\mathrm{site}}", _ZERO)
letter("site_bandwidth", "B/s", "bandwidth of a whole site to the next, one direction", r"W_{\mathrm{site}}")
letter("site_distance", "", "kilometres of fibre from a site to the next", r"d_{\mathrm{site}}", _ZERO)
letter("fibre_delay", "s", "time that light takes for a kilometre of fibre", r"\tau_{\mathrm{fib}}")
letter("site_latency", "s", "time that light takes from a site to the next", r"\lambda_{\mathrm{site}}", _ZERO)
letter("site_exchange", "s", "time of an exchange between sites", r"T_{\mathrm{site}}", _ZERO)
letter("sites_lost", "%", "share of the time that sites wait for their exchanges", r"\chi_{\mathrm{site}}", "share")
letter(
    "half_site_bandwidth",
    "B/s",
    "bandwidth between sites at which they wait for half of the time",
    r"W_{\mathrm{site}}^{1/2}",
)
letter("sites_gain", "", "what sites do together over what one could do alone", r"G_{\mathrm{site}}", _ZERO)

# Fabrics: tori, and trees of switches.
letter("torus_dimensions", "", "dimensions of a torus", r"n_{\mathrm{dim}}", whole=True)
letter("switch_radix", "", "ports of a switch", r"k_{\mathrm{sw}}", whole=True)
letter("switch_tiers", "", "tiers of switches in a network", r"n_{\mathrm{tier}}", whole=True)
letter("tree_devices", "", "devices that a network of switches joins at full bandwidth", r"n_{\mathrm{tree}}")
letter("switch_hops", "", "switches that a message between the farthest devices passes", r"n_{\mathrm{hop}}")

letter("exchange_share", "", "time of the gradients' sum over that of a step's arithmetic", r"r_{\Sigma}", _ZERO)

letter("step_compute", "s", "time of a step's arithmetic, shared by all devices", r"T_Q")

# How large a run can be.
letter("run_flops", "FLOP", "arithmetic of a whole training run", r"Q_{\mathrm{run}}")
letter("tokens_per_param", "", "tokens trained on for each parameter", r"r_{D/N}")
letter("message_time", "s", "time of the smallest sum over the devices of a group", r"\lambda_{\Sigma}")
letter(
    "latency_wall", "FLOP", "largest training run whose messages, one after another, fit into its time", r"Q_{\lambda}"
)
letter("base_batch", "token", "tokens of a step of the run that a batch is scaled from", r"D_{g,0}")
letter("base_flops", "FLOP", "arithmetic of the run that a batch is scaled from", r"Q_0")
letter("batch_power", "", "power of a run's arithmetic that its batch grows with", r"\beta_D", "share")
letter(
    "ridge_tokens", "token", "tokens of a micro-batch whose arithmetic takes as long as a stage's memory", r"\theta_B"
)
letter("stage_microbatches", "", "micro-batches in a step for each stage of a pipeline", r"k_p")
letter("wall_tp", "", "tensor-parallel ways at which a block's sums take as long as its arithmetic", r"t^{W}")
letter("wall_groups", "", "tensor-parallel groups that a step can be dealt out to", r"n_g^{W}")
letter("bandwidth_wall", "FLOP", "largest training run whose data moves as fast as it is computed with", r"Q_W")
letter(
    "domain_wall",
    "FLOP",
    "largest such run with tensor parallelism inside the scale-up domain",
    r"Q_{\mathrm{up}}",
)
letter("grown_latency_wall", "FLOP", "largest run by latency where the batch grows with it", r"Q_{\lambda}^{+}")
letter("grown_bandwidth_wall", "FLOP", "largest run by bandwidth where the batch grows with it", r"Q_W^{+}")

# Muon: matrices whose momentum is orthogonalized.
letter("newton_steps", "", "Newton-Schulz iterations for each matrix", r"n_{\mathrm{NS}}", whole=True)
letter("block_matrices", "", "parameters in matrices of a block, without routed experts", r"N_{\mathrm{mat}/L}", _ZERO)
letter(
    "block_routed_matrices", "", "parameters in matrices of a block's routed experts", r"N_{\mathrm{mat},E/L}", _ZERO
)
letter("orthogonal_flops", "FLOP", "arithmetic that orthogonalizes matrices in a step", r"Q_{\mathrm{NS}}", _ZERO)
letter("orthogonal_time", "s", "time to orthogonalize a device's matrices in a step", r"T_{\mathrm{NS}}", _ZERO)
letter("orthogonal_exchange", "s", "time to exchange matrices that are orthogonalized", r"T_{x,\mathrm{NS}}", _ZERO)

# Training a part of a model: adapters of low rank beside frozen weights.
letter("lora_rank", "", "rank of adapters beside frozen matrices", r"r_{\mathrm{LoRA}}")
letter("adapter_params", "", "parameters of the adapters of a block on one device", r"N_{\mathrm{LoRA}/L}")
letter("trained_share", "%", "trained parameters over all", r"\phi_{\mathrm{tr}}", "share")
letter("block_matrix_flops", "FLOP", "arithmetic with weights of one block of one micro-batch, forward", r"Q_{W/L}")
