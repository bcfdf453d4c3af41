"""A block as PyTorch runs it in eager mode: every element-wise step is a kernel and saves what its gradient reads.

A fused block keeps one copy of a norm's input. The same norm in PyTorch keeps its input in 32 bits, the normalised
tensor and the result.
"""

from dataclasses import dataclass, replace

from scalebook.block.listing import Block
from scalebook.block.models import GPT, LLAMA  # noqa: F401  (for the examples)
from scalebook.block.operations import FUNCTIONS, Op, Tensor, base

__all__ = ["FAMILIES", "Family", "eager", "undropped"]


@dataclass(frozen=True)
class Family:
    """How the published code of a model family differs from Llama's.

    `norms` are placed "before" each half of a block, "after" it or "around" it. With `head_norm` queries and keys are
    normalised per head. With `wide_gain` the gain is multiplied in 32 bits. With `capped` the scores pass through a
    tanh. With `narrow_softmax` the softmax keeps the width of its input. With `written_gelu` GELU is written out in
    steps. With `one_product` a single product makes queries, keys and values.
    """

    name: str
    norms: str = "before"
    head_norm: bool = False
    wide_gain: bool = False
    capped: bool = False
    narrow_softmax: bool = False
    written_gelu: bool = False
    one_product: bool = False


FAMILIES = {name: Family(name, **x) for name, x in FUNCTIONS["families"].items()}


def eager(block: Block, family: Family = FAMILIES["llama"], *, unfused: bool = False, autocast: bool = False) -> Block:
    """Return the block as PyTorch's eager mode runs it: each element-wise operation becomes several kernels.

    With `unfused` attention is written out too: keys and values are repeated for each query head that shares them, and
    the softmax runs in 32 bits. With `autocast` the weights and the tensors between blocks are 32 bits wide, the
    products 16, and each product saves a 16-bit copy of its input.

    >>> sorted(set(eager(LLAMA).saved_tensors) - set(LLAMA.saved_tensors))[:3]
    ['active_open', 'fp32_h1_rms', 'fp32_h1_wide']
    """
    return _Eager(block, family, unfused, autocast).run()


def undropped(block: Block) -> Block:
    """Return a block without its dropout operations.

    >>> print(undropped(GPT)["x2"])
    x2[batch seq hidden] = add(x[batch seq hidden], attended[batch seq hidden])
    """
    gone = {op.name: op.args[0].name for op in block.ops if op.function == "drop"}

    def read(tensor):
        return replace(tensor, name=gone.get(tensor.name, tensor.name))

    return Block(tuple(op.reading(read) for op in block.ops if op.function != "drop"))


class _Eager:
    def __init__(self, block: Block, family: Family, unfused: bool, autocast: bool):
        self.block, self.family, self.unfused, self.autocast = block, family, unfused, autocast
        self.ops: list[Op] = []
        self.now: dict[str, str] = {t.name: f"fp32_{t.name}" for t in block.inputs if autocast}
        self.copies: dict[str, Tensor] = {}

    def run(self) -> Block:
        for op in self.block.ops:
            rule = getattr(self, f"_{op.function or 'product'}", self._same)
            rule(op, [self.read(t) for t in op.args])
        return Block(tuple(self.ops))

    def read(self, tensor: Tensor) -> Tensor:
        return replace(tensor, name=self.now.get(tensor.name, tensor.name))

    def emit(self, out: Tensor, function: str, *args: Tensor) -> Tensor:
        self.ops.append(Op((out,), (args,), function))
        return out

    def step(self, function: str, first: Tensor, *others: Tensor, name: str, wide: bool | None = None) -> Tensor:
        """Add a step shaped like its first operand: 32-bit if `wide`, or by default if any operand is 32-bit."""
        wide = any(t.is_fp32 for t in (first, *others)) if wide is None else wide
        name = name.removeprefix("fp32_")
        return self.emit(replace(first, name=f"fp32_{name}" if wide else name), function, first, *others)

    def narrow(self, tensor: Tensor, name: str) -> Tensor:
        return self.step("cast", tensor, name=name, wide=False) if tensor.is_fp32 else tensor

    def made(self, op: Op, found: Tensor):
        self.now[op.name] = found.name

    # Lines of a block

    def _same(self, op: Op, args: list[Tensor]):
        wide = any(t.is_fp32 for t in args)
        outs = tuple(replace(t, name=f"fp32_{t.name}") if wide and t.kind == "activation" else t for t in op.outs)
        self.now.update({old.name: new.name for old, new in zip(op.outs, outs, strict=True)})
        self.ops.append(replace(op, outs=outs, terms=(tuple(args),)))

    def _product(self, op: Op, args: list[Tensor]):
        # Autocast does not cover grouped products.
        is_routed = any(base(i) == "expert_tokens" for t in op.args for i in t.indices)
        wide = is_routed and any(t.is_fp32 for t in args)
        of = "qkv" if self.family.one_product and op.name in ("q", "k", "v") else op.name

        def operand(tensor):
            found = self.repeated(tensor) if self.unfused and self.block.is_attended(tensor) else self.read(tensor)
            return found if is_routed else self.copy(found, of)

        out = replace(op.outs[0], name=f"fp32_{op.name}") if wide else op.outs[0]
        self.ops.append(replace(op.reading(operand), outs=(out,)))
        if self.family.head_norm and op.name in ("q", "k"):
            out = self.norm(out, (), f"{op.name}_normed")
        if self.family.norms != "before" and op.name in ("attended", "down") and not is_routed:
            out = self.norm(out, (), f"{op.name}_normed")
        self.made(op, out)

    def repeated(self, tensor: Tensor) -> Tensor:
        found = self.read(tensor)
        if "kv_heads" not in found.indices:
            return found
        at = found.indices.index("kv_heads") + 1
        indices = (*found.indices[:at], "group_size", *found.indices[at:])
        name = f"{found.name}_copied"
        if name not in self.copies:
            self.copies[name] = self.emit(Tensor(name, indices), "repeat", found)
        return self.copies[name]

    def copy(self, tensor: Tensor, of: str) -> Tensor:
        """Make the 16-bit copy that autocast makes of a product's operand. Each product makes its own."""
        if not tensor.is_fp32:
            return tensor
        name = f"{tensor.name.removeprefix('fp32_')}_of_{of}"
        if name not in self.copies:
            self.copies[name] = self.narrow(tensor, name)
        return replace(self.copies[name], indices=tensor.indices)

    def _rmsnorm(self, op: Op, args: list[Tensor]):
        is_latent = op.outs[0].indices[-1] != "hidden"
        if self.family.norms == "after" and not is_latent:
            self.made(op, args[0])
            return
        self.made(op, self.norm(args[0], args[1:], op.name))

    def norm(self, tensor: Tensor, gain: tuple | list, name: str) -> Tensor:
        """An RMS norm in 32 bits: the input, its mean square, the normalised tensor, and the gain."""
        stream = tensor.is_fp32
        wide = tensor if stream else self.step("cast", tensor, name=f"{name}_wide", wide=True)
        rms = self.emit(Tensor(f"fp32_{name}_rms", wide.indices[:-1]), "mean_square", wide)
        normal = self.step("scale", wide, rms, name=f"{name}_normal")
        if stream or self.family.wide_gain:
            gained = self.step("scale", normal, *gain, name=name if stream else f"{name}_gained")
            return gained if stream else self.narrow(gained, name)
        return self.step("scale", self.narrow(normal, f"{name}_narrow"), *gain, name=name)

    def _rope(self, op: Op, args: list[Tensor]):
        [x], name, wide = args, op.name, True if self.autocast else None
        turned = self.step("constant", self.step("constant", x, name=f"{name}_half"), name=f"{name}_sin", wide=wide)
        straight = self.step("constant", x, name=f"{name}_cos", wide=wide)
        self.made(op, self.step("add", straight, turned, name=name))

    def _swiglu(self, op: Op, args: list[Tensor]):
        up, gate = args
        self.made(op, self.step("times", self.step("silu", gate, name=f"{op.name}_open"), up, name=op.name))

    _geglu = _swiglu

    def _gelu(self, op: Op, args: list[Tensor]):
        if not self.family.written_gelu:
            self._same(op, args)
            return
        [x], name = args, op.name
        half, cube = self.step("constant", x, name=f"{name}_half"), self.step("power", x, name=f"{name}_cube")
        inner = self.step("add", x, self.step("constant", cube, name=f"{name}_part"), name=f"{name}_sum")
        bent = self.step("tanh", self.step("constant", inner, name=f"{name}_inner"), name=f"{name}_tanh")
        self.made(op, self.step("times", half, self.step("constant", bent, name=f"{name}_one"), name=name))

    def _softmax(self, op: Op, args: list[Tensor]):
        if not self.unfused:
            self._same(op, args)
            return
        scaled = self.step("constant", args[0], name=f"{op.args[0].name}_scaled")
        if self.family.capped:
            scaled = self.step("tanh", scaled, name=f"{op.args[0].name}_capped")
            scaled = self.step("constant", scaled, name=f"{op.args[0].name}_grown")
        masked = self.step("constant", scaled, name=f"{op.args[0].name}_masked")
        wide = self.autocast or not self.family.narrow_softmax
        self.made(op, self.narrow(self.step("softmax", masked, name=op.name, wide=wide), op.name))

    def _topk(self, op: Op, args: list[Tensor]):
        if op.args[0].name != "logits":  # an indexer's scores
            self._same(op, args)
            return
        chances = self.step("route", self.step("cast", args[0], name="chances_wide", wide=True), name="chances")
        self._same(op, [chances])
