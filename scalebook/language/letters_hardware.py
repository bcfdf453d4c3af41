"""The letters of data sheets, silicon, run costs, number formats, cluster operation and compressed gradients."""

from .notation import letter

__all__ = []

_ZERO = "nonnegative"

# Data sheets: printed figures, and the rates that a step can use.
letter("directions", "", "link directions added up (1 or 2)", r"n_{\leftrightarrow}", whole=True)
letter("clock", "/s", "clock frequency at which the peak is stated", r"f_{\mathrm{clock}}")
letter("sparsity_gain", "", "sparsity factor of a printed peak: 2 with 2:4 sparsity, else 1", r"g_{2:4}")
letter("printed_devices", "", "devices added up in a printed figure", r"n_{\mathrm{pr}}", whole=True)
letter("printed_flops", "FLOP/s", "peak as printed in a data sheet", r"F_{\mathrm{pr}}")
letter("printed_links", "B/s", "scale-up bandwidth as printed in a data sheet", r"W_{\mathrm{pr}}")
letter("usable_flops", "FLOP/s", "arithmetic rate of large dense products on one device", r"F_{\mathrm{use}}")
letter("usable_bandwidth", "B/s", "memory bandwidth that kernels reach on one device", r"W_{\mathrm{use}}")
letter(
    "usable_links",
    "B/s",
    "scale-up bandwidth per device that collectives reach, one direction",
    r"W_{\mathrm{up}}^{\mathrm{use}}",
)
letter("usable_ridge", "FLOP/B", "ridge point of the usable rates", r"I^{\star}_{\mathrm{use}}")
letter("usable_share", "%", "usable rate of all devices over the printed peak", r"\sigma_{\mathrm{use}}")
letter(
    "best_found",
    "%",
    "rate of a model's kernels relative to the best that a search found",
    r"\chi_{\mathrm{best}}",
    "share",
)
letter("best_bandwidth", "B/s", "memory bandwidth of one device in a streaming benchmark", r"W_{\mathrm{best}}")
letter("drives", "", "drives of a machine used in parallel", r"n_{\mathrm{drive}}")
letter("pair_bandwidth", "B/s", "bandwidth between two devices, one direction", r"W_{\mathrm{pair}}")

# Growth from year to year.
letter("next_launch", "year", "announcement of the new device", r"t_0'")
letter("peak_growth", "", "yearly growth factor of a device's peak", r"g_F")
letter("compute_growth", "", "yearly growth factor of the largest runs' arithmetic", r"g_Q")
letter("cost_growth", "", "yearly growth factor of the largest runs' cost", r"g_c")
letter("fleet_growth", "", "yearly growth factor of the largest runs without faster devices", r"g_n")
letter("bargain_growth", "", "yearly growth factor of the arithmetic per dollar", r"g_{Q/c}")

# Systolic arrays; arithmetic and bytes per watt and dollar.
letter("array_side", "", "multipliers per side of a systolic array", r"s_{\mathrm{arr}}", whole=True)
letter("arrays", "", "systolic arrays per device", r"n_{\mathrm{arr}}", whole=True)
letter(
    "attention_whole",
    "%",
    "share of the peak that fused attention reaches with heads that fill whole arrays",
    r"\eta_{\mathrm{att,arr}}",
    "share",
)
letter(
    "attention_tile",
    "",
    "queries and keys per side of a fused attention tile",
    r"s_{\mathrm{att}}",
    whole=True,
)
letter(
    "attention_tile_back",
    "",
    "queries and keys per side of a backward attention tile",
    r"s_{\mathrm{att}}^{\leftarrow}",
    whole=True,
)
letter("array_tiles", "", "array-sized tiles of a weight matrix", r"n_{\theta,\mathrm{arr}}")
letter("load_cycles", "", "cycles to load one weight tile into a systolic array", r"n_{\mathrm{load}}")
letter("array_cycles", "", "cycles of a matrix product on one systolic array", r"n_{\mathrm{cyc}}")
letter(
    "array_efficiency",
    "%",
    "useful share of a systolic array's multiplications",
    r"\eta_{\mathrm{arr}}",
    "share",
)
letter(
    "ridge_rows",
    "",
    "rows of a product at which reading the weights takes as long as the arithmetic",
    r"n_{\mathrm{row}}^{\star}",
)
letter("flops_per_joule", "FLOP/J", "peak over thermal design power", r"F/P")
letter("flops_per_dollar", "FLOP/$", "arithmetic at peak per dollar of rent", r"F/c_{\mathrm{h}}")
letter("bytes_per_dollar", "B/$", "memory reads at full bandwidth per dollar of rent", r"W/c_{\mathrm{h}}")
# The cost of a run: device hours, rent or purchase, electricity, carbon.
letter("device_hours", "h", "device hours of a run", r"H_d")
letter("device_price", "$", "purchase price of a device, with its share of host and network", r"c_{\mathrm{buy}}")
letter("service_life", "h", "depreciation period of a purchased device", r"H_{\mathrm{life}}")
letter("utilization", "%", "share of a purchased device's life in use", r"\eta_{\mathrm{use}}", "share")
letter("system_factor", "", "system power per device relative to its design power", r"f_P")
letter("device_power", "W", "system power per device, with its share of host and network", r"P_d")
letter("pue", "", "power usage effectiveness (PUE) of the data centre", r"\mathrm{PUE}")
letter("power_price", "$/MWh", "price of electricity", r"c_{\mathrm{el}}")
letter("power_hour", "$/h", "hourly electricity cost of a device", r"c_P")
letter("run_energy", "MWh", "energy of a run, cooling included", r"E_D")
letter("carbon_intensity", "t/MWh", "carbon intensity of electricity (CO2 equivalent)", r"g_{\mathrm{el}}")
letter("run_carbon", "t", "carbon emissions of a run's electricity (CO2 equivalent)", r"G_D")

# Number formats, block scales and pruning.
letter("element_bits", "bit", "bits per value, without its share of a scale", r"\beta_{\mathrm{el}}")
letter("scale_bits", "bit", "bits of the scale shared by a block of values", r"\beta_{\mathrm{sc}}", _ZERO)
letter("zero_bits", "bit", "bits of the zero point shared by a block of values", r"\beta_{\mathrm{zp}}", _ZERO)
letter("block_values", "", "values per scale", r"n_{\mathrm{blk}}")
letter("kept_weights", "", "weights kept per group in a pruned matrix", r"n_{\mathrm{keep}}")
letter("group_weights", "", "weights per group in a pruned matrix", r"n_{\mathrm{of}}")
letter("place_bits", "bit", "index bits per kept weight in a pruned matrix", r"\beta_{\mathrm{ix}}", _ZERO)
letter("levels", "", "evenly spaced levels from zero to a format's largest value", r"n_{\mathrm{lev}}")
letter("peak_ratio", "", "largest value of a block over its standard deviation", r"r_{\max}")
letter(
    "rounding_noise", "", "standard deviation of rounding errors over that of the values", r"\epsilon_{\mathrm{rnd}}"
)
letter("faster_share", "%", "share of a step's time that is accelerated", r"\sigma_{\mathrm{fast}}", "share")
letter("part_gain", "", "speedup of the accelerated share", r"G_{\mathrm{part}}")
letter("step_gain", "", "speedup of the step", r"G_{\mathrm{step}}")

# Floating-point formats and loss scaling.
letter("exponent_bits", "", "exponent bits of a number format", r"n_{\exp}", whole=True)
letter("exponent_bias", "", "exponent bias of a number format", r"b_{\exp}", _ZERO)
letter("mantissa_bits", "", "fraction bits of a number format", r"n_{\mathrm{man}}", whole=True)
letter("largest_number", "", "largest finite number of a format", r"x_{\max}")
letter("least_number", "", "smallest positive number of a format", r"x_{\min}")
letter("unit_roundoff", "", "unit roundoff: largest relative rounding error of a format", r"\epsilon_u")
letter("least_gradient", "", "smallest gradient magnitude that matters to training", r"g_{\min}")
letter("largest_gradient", "", "largest gradient magnitude of a step", r"g_{\max}")
letter("loss_scale", "", "loss scale", r"S_{\mathrm{loss}}")

# Gradient accumulation and recomputation.
letter("accumulation_share", "%", "time of gradient accumulation over a micro-batch's products", r"\sigma_{+}", _ZERO)
letter("again_share", "%", "recomputed arithmetic over the model's", r"\sigma_R", _ZERO)
letter("block_input", "B", "input activations of a block", r"M_{\mathrm{in}/L}")
letter("activation_room", "B", "memory left for activations", r"M_{\mathrm{room}}")
letter("rerun_blocks", "", "recomputed blocks per stage", r"L_R", _ZERO)
letter("segment_blocks", "", "blocks per recomputed segment", r"L_{\mathrm{seg}}")
letter("segment_memory", "B", "activations of a stage with one saved input per segment", r"M_{\mathrm{seg}}")

# Operating a cluster: checkpoints and slow devices.
letter("checkpoint_bytes", "B", "size of a checkpoint", r"M_{\mathrm{ckpt}}")
letter("storage_bandwidth", "B/s", "storage bandwidth for all devices together", r"W_{\mathrm{store}}")
letter("slow_share", "%", "share of devices or hosts that are slow", r"p_{\mathrm{slow}}", "share")
letter("any_slow", "%", "probability that a group includes a slow device", r"P_{\mathrm{slow}}", "share")
# Compressed gradients, late gradients, and devices of unequal speed.
letter("compression", "", "compression ratio of the exchanged gradients", r"\rho_g")
letter("top_share", "%", "share of the gradients that is exchanged (top-k)", r"\phi_k", "share")
letter("entry_bits", "bit", "index bits per exchanged gradient", r"\beta_i")
letter("gradient_rows", "", "rows of a gradient matrix", r"n_\nabla", whole=True)
letter("gradient_columns", "", "columns of a gradient matrix", r"m_\nabla", whole=True)
letter("gradient_rank", "", "rank of a compressed gradient", r"r_\nabla", whole=True)
letter("compression_passes", "", "memory passes to compress gradients", r"n_{\rho}")
letter("compression_time", "s", "time to compress gradients", r"T_{\rho}")
letter("compression_share", "%", "arithmetic of compression over that of a step", r"\sigma_{\rho}", _ZERO)
letter("replica_tokens", "token", "tokens per step on each holder of a gradient", r"D_r")
letter("top_ways", "", "devices at which gathering top-k gradients sends as much as an all-reduce", r"n_k^{\star}")
letter("paying_bandwidth", "B/s", "bandwidth below which compressing gradients saves time", r"W_{\rho}^{\star}")
letter("stable_rate", "", "largest stable learning rate times curvature", r"(\eta a)^{\star}")
letter("fast_devices", "", "faster devices of a pool", "n_f", whole=True)
letter("slow_devices", "", "slower devices of a pool", "n_s'", whole=True)
letter("speed_ratio", "%", "speed of a slower device relative to a faster one", r"\nu", "share")
letter("fast_microbatches", "", "micro-batches per step on each faster device", "m_f", whole=True)
letter("pool_lost", "%", "share of a pool's capacity that is lost", r"\chi_{\mathrm{pool}}", "share")
letter("pool_gain", "", "speedup of a pool over its faster devices alone", r"G_{\mathrm{pool}}", _ZERO)
