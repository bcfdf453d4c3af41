"""The letters of data sheets, silicon, bills of a run, number formats, operating, and rare exchanges."""

from .notation import letter

__all__ = []

_ZERO = "nonnegative"

# A data sheet: what it prints, and what of that a step may count on.
letter("directions", "", "directions of a link that are added up, one or both", r"n_{\leftrightarrow}", whole=True)
letter("clock", "/s", "clock at which a peak is stated", r"f_{\mathrm{clock}}")
letter(
    "sparsity_gain", "", "operations a printed peak counts for each one done: 2 with 2:4 sparsity, else 1", r"g_{2:4}"
)
letter("printed_devices", "", "devices that a printed figure adds up", r"n_{\mathrm{pr}}", whole=True)
letter("printed_flops", "FLOP/s", "peak as a data sheet prints it", r"F_{\mathrm{pr}}")
letter("printed_links", "B/s", "scale-up bandwidth as a data sheet prints it", r"W_{\mathrm{pr}}")
letter("usable_flops", "FLOP/s", "rate that large dense products reach on one device", r"F_{\mathrm{use}}")
letter("usable_bandwidth", "B/s", "rate at which kernels stream one device's memory", r"W_{\mathrm{use}}")
letter(
    "usable_links",
    "B/s",
    "rate at which collectives send from one device, one direction",
    r"W_{\mathrm{up}}^{\mathrm{use}}",
)
letter("usable_ridge", "FLOP/B", "usable arithmetic over usable bandwidth", r"I^{\star}_{\mathrm{use}}")
letter("usable_share", "%", "usable rate of all devices over the printed peak", r"\sigma_{\mathrm{use}}")
letter(
    "best_found",
    "%",
    "rate of a model's kernels over that of the best that a search found",
    r"\chi_{\mathrm{best}}",
    "share",
)
letter("best_bandwidth", "B/s", "rate at which a benchmark streams one device's memory", r"W_{\mathrm{best}}")
letter("drives", "", "drives of a machine that read or write at the same time", r"n_{\mathrm{drive}}")
letter("pair_bandwidth", "B/s", "bandwidth from one device to one other, one direction", r"W_{\mathrm{pair}}")

# Growth from year to year.
letter("next_launch", "year", "when the new device was announced", r"t_0'")
letter("peak_growth", "", "times that a device's peak grows in a year", r"g_F")
letter("compute_growth", "", "times that the arithmetic of the largest training runs grows in a year", r"g_Q")
letter("cost_growth", "", "times that the cost of the largest training runs grows in a year", r"g_c")
letter("fleet_growth", "", "times that devices and days of the largest training runs grow in a year", r"g_n")
letter("bargain_growth", "", "times that the arithmetic bought for a dollar grows in a year", r"g_{Q/c}")

# Systolic arrays, and what a watt and a dollar buy.
letter("array_side", "", "multipliers along each side of a systolic array", r"s_{\mathrm{arr}}", whole=True)
letter("arrays", "", "systolic arrays of one device", r"n_{\mathrm{arr}}", whole=True)
letter(
    "attention_whole",
    "%",
    "achieved over peak rate of fused attention whose heads fill whole systolic arrays",
    r"\eta_{\mathrm{att,arr}}",
    "share",
)
letter(
    "attention_tile",
    "",
    "queries, and keys, of a tile that fused attention computes whole where a part of it is masked",
    r"s_{\mathrm{att}}",
    whole=True,
)
letter("attention_tile_back", "", "the same of the kernels that go back", r"s_{\mathrm{att}}^{\leftarrow}", whole=True)
letter("array_tiles", "", "tiles of a weight, each as large as a systolic array", r"n_{\theta,\mathrm{arr}}")
letter("load_cycles", "", "cycles in which the weights of one tile enter a systolic array", r"n_{\mathrm{load}}")
letter("array_cycles", "", "cycles that a product takes on one systolic array", r"n_{\mathrm{cyc}}")
letter(
    "array_efficiency",
    "%",
    "multiplications of a product over what an array could do meanwhile",
    r"\eta_{\mathrm{arr}}",
    "share",
)
letter(
    "ridge_rows",
    "",
    "rows of a product at which its weights are read as fast as they are used",
    r"n_{\mathrm{row}}^{\star}",
)
letter("flops_per_joule", "FLOP/J", "peak over thermal design power", r"F/P")
letter("flops_per_dollar", "FLOP/$", "arithmetic at the peak for a dollar of rent", r"F/c_{\mathrm{h}}")
letter(
    "bytes_per_dollar", "B/$", "bytes of memory read at the full bandwidth for a dollar of rent", r"W/c_{\mathrm{h}}"
)
# What a run costs: hours of devices, rent or purchase, electricity, carbon.
letter("device_hours", "h", "hours that all devices of a run work, added up", r"H_d")
letter("device_price", "$", "price of buying a device, with its share of host and network", r"c_{\mathrm{buy}}")
letter("service_life", "h", "hours over which a device that was bought is written off", r"H_{\mathrm{life}}")
letter("utilization", "%", "share of its life in which a device that was bought works", r"\eta_{\mathrm{use}}", "share")
letter("system_factor", "", "power of a device with its share of host and network, over its design power", r"f_P")
letter("device_power", "W", "power of a device with its share of host and network", r"P_d")
letter("pue", "", "power usage effectiveness: power of a data centre over that of its computers", r"\mathrm{PUE}")
letter("power_price", "$/MWh", "price of electricity", r"c_{\mathrm{el}}")
letter("power_hour", "$/h", "price of the electricity of a device for an hour", r"c_P")
letter("run_energy", "MWh", "electricity of a run, cooling included", r"E_D")
letter(
    "carbon_intensity", "t/MWh", "tonnes of CO2 equivalent for a MWh of electricity (kg for a kWh)", r"g_{\mathrm{el}}"
)
letter("run_carbon", "t", "tonnes of CO2 equivalent that the electricity of a run stands for", r"G_D")

# Number formats, and weights that are left out.
letter("element_bits", "bit", "bits of a value itself, without its share of a scale", r"\beta_{\mathrm{el}}")
letter("scale_bits", "bit", "bits of the scale that a block of values shares", r"\beta_{\mathrm{sc}}", _ZERO)
letter("zero_bits", "bit", "bits of the zero point that a block of values shares", r"\beta_{\mathrm{zp}}", _ZERO)
letter("block_values", "", "values that share one scale", r"n_{\mathrm{blk}}")
letter("kept_weights", "", "weights of a group that are kept", r"n_{\mathrm{keep}}")
letter("group_weights", "", "weights of a group of which some are kept", r"n_{\mathrm{of}}")
letter("place_bits", "bit", "bits that say where in its group a kept weight stands", r"\beta_{\mathrm{ix}}", _ZERO)
letter("levels", "", "steps of a format from zero to its largest value, even ones", r"n_{\mathrm{lev}}")
letter("peak_ratio", "", "largest value of a block over the spread of its values", r"r_{\max}")
letter("rounding_noise", "", "spread of rounding errors over that of the values", r"\epsilon_{\mathrm{rnd}}")
letter("faster_share", "%", "share of a step's time that becomes faster", r"\sigma_{\mathrm{fast}}", "share")
letter("part_gain", "", "how much faster that share becomes", r"G_{\mathrm{part}}")
letter("step_gain", "", "how much faster the step becomes", r"G_{\mathrm{step}}")

# Floating point: what a format can hold, and how a loss is scaled so that its gradients can be held.
letter("exponent_bits", "", "bits of a number format's exponent", r"n_{\exp}", whole=True)
letter("exponent_bias", "", "largest exponent of a number format, of a power of two", r"b_{\exp}", _ZERO)
letter(
    "mantissa_bits", "", "bits of a number format's fraction, behind the leading one", r"n_{\mathrm{man}}", whole=True
)
letter("largest_number", "", "largest finite number of a format", r"x_{\max}")
letter("least_number", "", "smallest positive number of a format", r"x_{\min}")
letter("unit_roundoff", "", "largest relative error of rounding to a format's normal numbers", r"\epsilon_u")
letter("least_gradient", "", "smallest gradient that matters to training, in size", r"g_{\min}")
letter("largest_gradient", "", "largest gradient of a step, in size", r"g_{\max}")
letter("loss_scale", "", "what the loss, and so every gradient, is multiplied by going back", r"S_{\mathrm{loss}}")

# Accumulation and recomputation: what a micro-batch costs beside its arithmetic, what is run again instead of kept.
letter(
    "accumulation_share", "%", "time of adding to stored gradients over a micro-batch's products", r"\sigma_{+}", _ZERO
)
letter("again_share", "%", "arithmetic run again over that of the model", r"\sigma_R", _ZERO)
letter(
    "block_input", "B", "activations that enter a block, all that it keeps where it is run again", r"M_{\mathrm{in}/L}"
)
letter("activation_room", "B", "memory that state and buffers leave to activations", r"M_{\mathrm{room}}")
letter("rerun_blocks", "", "blocks of a stage that are run again going back", r"L_R", _ZERO)
letter("segment_blocks", "", "blocks between two inputs that are kept", r"L_{\mathrm{seg}}")
letter("segment_memory", "B", "activations of a stage that keeps an input for each segment", r"M_{\mathrm{seg}}")

# Operating a cluster: what checkpoints write, and whom a group waits for.
letter("checkpoint_bytes", "B", "state that a checkpoint holds", r"M_{\mathrm{ckpt}}")
letter("storage_bandwidth", "B/s", "rate at which a store takes what all devices write", r"W_{\mathrm{store}}")
letter("slow_share", "%", "share of the devices, or hosts, that are slow", r"p_{\mathrm{slow}}", "share")
letter("any_slow", "%", "probability that a group has one that is slow", r"P_{\mathrm{slow}}", "share")
# Fewer synchronisations: compressed gradients, late ones, and devices of unequal speed.
letter("compression", "", "bytes of gradients over those that are exchanged in their place", r"\rho_g")
letter("top_share", "%", "share of the gradients that are exchanged, the largest", r"\phi_k", "share")
letter("entry_bits", "bit", "bits that say which gradient an exchanged one is", r"\beta_i")
letter("gradient_rows", "", "rows of a matrix of gradients", r"n_\nabla", whole=True)
letter("gradient_columns", "", "columns of a matrix of gradients", r"m_\nabla", whole=True)
letter("gradient_rank", "", "columns of the two matrices whose product is nearly a gradient", r"r_\nabla", whole=True)
letter("compression_passes", "", "times that gradients pass through memory to be compressed", r"n_{\rho}")
letter("compression_time", "s", "time that a device takes to compress its gradients", r"T_{\rho}")
letter("compression_share", "%", "arithmetic of compression over that of a step", r"\sigma_{\rho}", _ZERO)
letter("replica_tokens", "token", "tokens of a step that each holder of a gradient works on", r"D_r")
letter("top_ways", "", "devices at which exchanging the largest gradients sends as much as summing all", r"n_k^{\star}")
letter("paying_bandwidth", "B/s", "bandwidth below which compressing gradients saves time", r"W_{\rho}^{\star}")
letter("stable_rate", "", "learning rate times curvature up to which descent is stable", r"(\eta a)^{\star}")
letter("fast_devices", "", "devices of the faster kind", "n_f", whole=True)
letter("slow_devices", "", "devices of the slower kind", "n_s'", whole=True)
letter("speed_ratio", "%", "speed of a slower device over that of a faster one", r"\nu", "share")
letter("fast_microbatches", "", "micro-batches of a step on each faster device", "m_f", whole=True)
letter("pool_lost", "%", "share of what all devices of a pool could do that is lost", r"\chi_{\mathrm{pool}}", "share")
letter("pool_gain", "", "what a pool does over what its faster devices would alone", r"G_{\mathrm{pool}}", _ZERO)
