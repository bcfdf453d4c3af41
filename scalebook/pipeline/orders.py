"""The order in which each device of a pipeline runs its passes: one function for each schedule.

A function appends the passes of one device to `order`, a list of slots. Operations of a slot run together: a forward
pass F, the gradient B of a stage's input, the gradient W of its weights. Stages count along the model; a device with
chunks has several.

>>> orders(one_f_one_b, pp=2, microbatches=2, chunks=1)[1]
[(F0.1,), (B0.1, W0.1), (F1.1,), (B1.1, W1.1)]
"""

from collections.abc import Callable
from typing import NamedTuple

__all__ = ["Operation", "orders"]


class Operation(NamedTuple):
    """A pass of one micro-batch through one stage."""

    kind: str  # F, B or W
    stage: int
    microbatch: int

    def __repr__(self):
        return f"{self.kind}{self.microbatch}.{self.stage}"


class _Order(list):
    """The slots of one device. Deferred weight gradients wait in `late`."""

    def __init__(self):
        self.late = []

    def forward(self, stage, microbatch):
        self.append((Operation("F", stage, microbatch),))

    def backward(self, stage, microbatch):
        self.append((Operation("B", stage, microbatch), Operation("W", stage, microbatch)))

    def split(self, stage, microbatch):
        self.append((Operation("B", stage, microbatch),))
        self.late.append((Operation("W", stage, microbatch),))

    def weights(self, leave=0):
        """Run the oldest deferred weight gradient, unless `leave` or fewer are waiting."""
        if len(self.late) > leave:
            self.append(self.late.pop(0))

    def pair(self):
        self[-2:] = [self[-2] + self[-1]]


def orders(fill: Callable, pp: int, microbatches: int, chunks: int) -> list[list[tuple[Operation, ...]]]:
    """Return the operations of every device, in their order, for a function of this module such as `one_f_one_b`.

    Raises ValueError if the schedule cannot run.
    """
    found = []
    for device in range(pp):
        order = _Order()
        fill(order, device, pp, microbatches, chunks)
        while order.late:
            order.weights()
        found.append(order)
    return found


def gpipe(order, device, pp, microbatches, chunks):
    """GPipe: all forward passes, then all backward passes, last micro-batch first."""
    for k in range(microbatches):
        order.forward(device, k)
    for k in reversed(range(microbatches)):
        order.backward(device, k)


def run_ahead(order, device, microbatches, ahead, late=None):
    """Run `ahead` forward passes, then one backward and one forward pass in turn.

    With `late`, weight gradients are deferred, and at most `late` of them wait.
    """
    ahead = min(microbatches, ahead)
    for k in range(ahead):
        order.forward(device, k)
    for k in range(microbatches):
        if late is None:
            order.backward(device, k)
        else:
            order.split(device, k)
            order.weights(leave=late)
        if ahead + k < microbatches:
            order.forward(device, ahead + k)


def one_f_one_b(order, device, pp, microbatches, chunks):
    """1F1B: one forward pass for this stage and each later one, then a backward and a forward pass in turn."""
    run_ahead(order, device, microbatches, pp - device)


def interleaved(order, device, pp, microbatches, chunks):
    """Interleaved 1F1B: micro-batches go in groups of `pp`, and each group passes through all chunks in turn."""
    if microbatches % pp:
        raise ValueError(
            f"interleaved runs groups of pp={pp} micro-batches: microbatches={microbatches} is no multiple"
        )
    total = microbatches * chunks

    def place(k):
        return k // pp % chunks, k // (pp * chunks) * pp + k % pp

    def forward(k):
        chunk, microbatch = place(k)
        order.forward(chunk * pp + device, microbatch)

    ahead = min(total, 2 * (pp - device - 1) + (chunks - 1) * pp)
    for k in range(ahead):
        forward(k)
    for k in range(total):
        if ahead + k < total:
            forward(ahead + k)
        chunk, microbatch = place(k)
        order.backward((chunks - 1 - chunk) * pp + device, microbatch)


def zb_h1(order, device, pp, microbatches, chunks):
    """ZB-H1: 1F1B, but later stages defer weight gradients until they keep as much as the first stage."""
    run_ahead(order, device, microbatches, pp - device, device)


def zb_h2(order, device, pp, microbatches, chunks):
    """ZB-H2: ZB-H1 with nearly twice the forward passes ahead and twice the deferred weight gradients."""
    run_ahead(order, device, microbatches, 2 * (pp - device) - 1, 2 * device)


def zb_v(order, device, pp, microbatches, chunks):
    """ZB-V: the first device has the first and the last stage, the last device the two stages in the middle."""
    if microbatches < 2 * pp - 1:
        raise ValueError(
            f"zb_v fills the V with 2 pp - 1 = {2 * pp - 1} micro-batches: microbatches={microbatches} is fewer"
        )
    stages, forth, back = (device, 2 * pp - 1 - device), [0, 0], [0, 0]

    def forward(chunk):
        if forth[chunk] < microbatches:
            order.forward(stages[chunk], forth[chunk])
            forth[chunk] += 1

    def backward(chunk, late=False):
        order.split(stages[chunk], back[chunk])
        back[chunk] += 1
        if not late:
            order.weights()

    far = pp - device - 1
    for _ in range(2 * far):
        forward(0)
    for _ in range(device + 1):
        forward(0), forward(1)
    for _ in range(far):
        backward(1), forward(1)
    while forth[0] < microbatches:
        backward(1), forward(0), forward(1), backward(0)
    for _ in range(far):
        backward(1), forward(1), backward(0)
    for _ in range(device + 1):
        backward(1, late=True), backward(0, late=True)
    for _ in range(far):
        order.weights(), backward(0, late=True)


def dualpipe(order, device, pp, microbatches, chunks):
    """DualPipe: half of the micro-batches enter at each end, in two copies of the model, whose passes run in pairs."""
    if pp % 2 or microbatches % 2 or microbatches < 2 * pp:
        raise ValueError(
            f"dualpipe takes an even pp and an even number of at least 2 pp micro-batches, not pp={pp}, "
            f"microbatches={microbatches}"
        )
    half, way = pp // 2, microbatches // 2

    def place(side, count):
        """Return the stage and the micro-batch. Side 0 enters at the nearer end, side 1 at the other."""
        second = side ^ (device >= half)
        return (pp - 1 - device if second else device), count + second * way

    from_both_ends(order, half, min(device, pp - 1 - device), way, place)


def from_both_ends(order, half, near, way, place):
    """Run micro-batches that enter at both ends, for DualPipe and for DualPipeV, which is one half of it.

    `near` devices (at most `half - 1`) lie between this one and the nearer end. `way` micro-batches enter at each end.
    `place(side, count)` returns the stage and the number of the next micro-batch from a side.
    """
    far, forth, back = half - near - 1, [0, 0], [0, 0]

    def take(side, count):
        count[side] += 1
        return place(side, count[side] - 1)

    def forward(side):
        order.forward(*take(side, forth))

    def backward(side, late=False):
        (order.split if late else order.backward)(*take(side, back))

    def both(side):
        forward(side), backward(1 - side), order.pair()

    for _ in range(2 * far):
        forward(0)
    for _ in range(near + 1):
        forward(0), forward(1)
    for _ in range(far):
        backward(1, late=True), order.weights(), forward(1)
    for i in range(way - 2 * half + near + 1):
        if i == 0 and far == 0:
            forward(0), backward(1)
        else:
            both(0)
        both(1)
    for _ in range(far):
        backward(1), both(1)
    for i in range(near + 1):  # the second half of these defers weight gradients
        backward(1, late=2 * i >= near + 1)
        backward(0, late=2 * i + 1 >= near + 1)
    for _ in range(far):
        order.weights(), backward(0, late=True)
