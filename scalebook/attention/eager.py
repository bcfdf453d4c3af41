"""Unfused attention as PyTorch runs it: separate product kernels, with the scores moved through memory between them."""

from scalebook.attention.assumptions import sixteen_bits
from scalebook.language import Sheet, formula, symbol
from scalebook.machine import kernels

__all__ = ["eager_attention", "eager_kernel_time", "eager_operand_passes", "eager_score_passes", "eager_traffic"]

_STEPS = ("flash-attention-benchmark", "pytorch-softmax")


@formula("score_passes", *_STEPS)
def eager_score_passes(masked, backward):
    """Number of times each score crosses the memory bus between the products, in PyTorch's kernels.

    The softmax reads its row three times, one of them from a cache, and writes it once.

    >>> eager_score_passes(masked=0, backward=0), eager_score_passes(masked=1, backward=1)
    (3.0, 13.0)
    """
    return 3 + 3 * masked + 7 * backward


@formula("operand_passes", *_STEPS)
def eager_operand_passes(backward):
    """Number of times queries, keys, values and results, or their gradients, cross the bus to be rotated or copied.

    >>> eager_operand_passes(backward=0), eager_operand_passes(backward=1)
    (6.0, 14.0)
    """
    return 6 + 8 * backward


@formula("traffic", *_STEPS, given=[eager_score_passes, eager_operand_passes])
def eager_traffic(batch, heads, seq, head_dim, score_passes, operand_passes, activation_bits):
    """Bytes that cross the memory bus between the products of unfused attention.

    >>> eager_traffic(batch=1, heads=32, seq=8192, head_dim=128, activation_bits=16, masked=0, backward=0) / 1e9
    13.287555072
    """
    return batch * heads * seq * (score_passes * seq + operand_passes * head_dim) * activation_bits / 8


def _product(columns, inner):
    copies, rows = symbol("batch") * symbol("heads"), symbol("seq")
    moved = copies * (rows * inner + inner * columns + rows * columns) * symbol("activation_bits") / 8
    return kernels.matmul_time_split.of(rows=rows, columns=columns, inner=inner, copies=copies, traffic=moved)


@formula("kernel_time", "nvidia-matmul-guide §3.1", *_STEPS, given=[eager_traffic])
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
    "eager_attention", *kernels.DEFAULT_FORMULAS, sixteen_bits, eager_score_passes, eager_operand_passes, eager_traffic,
    eager_kernel_time,
    doc="Unfused attention as PyTorch runs it. Set masked to 1 if a mask is added, backward to 1 to add the gradients.",
)  # fmt: skip
