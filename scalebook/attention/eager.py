"""Unfused attention as PyTorch runs it: separate product kernels, with the scores moved through memory between them."""

from scalebook.attention.assumptions import sixteen_bits
from scalebook.language import Sheet, formula, symbol
from scalebook.language.defaults import equations
from scalebook.machine import kernels

_OWN = equations(__name__)  # those of eager.toml
__all__ = [*vars(_OWN), "eager_attention", "eager_kernel_time"]

_STEPS = ("flash-attention-benchmark", "pytorch-softmax")


def _product(columns, inner):
    copies, rows = symbol("batch") * symbol("heads"), symbol("seq")
    moved = copies * (rows * inner + inner * columns + rows * columns) * symbol("activation_bits") / 8
    return kernels.matmul_time_split.of(rows=rows, columns=columns, inner=inner, copies=copies, traffic=moved)


@formula("kernel_time", "nvidia-matmul-guide §3.1", *_STEPS, given=[_OWN.eager_traffic])
def eager_kernel_time(
    batch, heads, seq, head_dim, activation_bits, backward, traffic, tile_rows, tile_columns, cores, peak_flops,
    matmul_efficiency, inner_half, hbm_bandwidth, stream_efficiency, kernel_launch, split_time, split_step,
):  # fmt: skip
    """Time of unfused attention: two products forward, four more backward, and the memory passes between them.

    >>> from scalebook.tables import accelerators
    >>> shape = dict(batch=2, heads=16, head_dim=128, seq=8192)
    >>> round(1e3 * eager_attention(accelerators.h100.at("fp16"), shape, masked=0, backward=0).kernel_time, 1)
    8.5
    """
    scores, values = _product(seq, head_dim), _product(head_dim, seq)
    between = kernels.stream_time.of(traffic=traffic)
    return (1 + backward) * scores + (1 + 3 * backward) * values + between


eager_attention = Sheet(
    "eager_attention", *kernels.DEFAULT_FORMULAS, sixteen_bits, *vars(_OWN).values(), eager_kernel_time,
    doc="Unfused attention as PyTorch runs it. Set masked to 1 if a mask is added, backward to 1 to add the gradients.",
)  # fmt: skip
