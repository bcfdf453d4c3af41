"""The options of a training strategy (recomputation, sharding, ...), and how they change a block's operations."""

from dataclasses import dataclass, fields, replace
from functools import cache, partial

from scalebook.block import FAMILIES, Block, Family, core_kernels, eager, kinds_of, sharding, transformations, undropped
from scalebook.language.notation import either
from scalebook.language.rules import condition
from scalebook.language.stanzas import tables_of
from scalebook.language.words import WORDS, word
from scalebook.pipeline.schedules import SCHEDULES, Schedule
from scalebook.training.optimizers import OPTIMIZERS, Optimizer
from scalebook.training.shardings import SHARDINGS, Sharding
from scalebook.training.trained_weights import TRAINED, Trained

__all__ = ["CHOICES", "WORDS", "Strategy"]


# Functions that conditions of words, rules and searches may call.
PROPERTIES = {
    # several devices hold the same weights: with two pipeline stages per device they always do
    "are_shared": lambda dp, cp, schedule: (dp * cp > 1) | (SCHEDULES[schedule].copies > 1),
    "is_interleaved": lambda schedule: SCHEDULES[schedule].chunks is None,
    "chunks_of": lambda schedule: SCHEDULES[schedule].chunks or 1,
    "has_groups": lambda sharding: SHARDINGS[sharding].has_groups,
    "moments_of": lambda optimizer: OPTIMIZERS[optimizer].moments,
    "mode_of": lambda optimizer: OPTIMIZERS[optimizer].mode,
}
_OBJECTS = dict(sharding=SHARDINGS, schedule=SCHEDULES, family=FAMILIES, trained=TRAINED, optimizer=OPTIMIZERS)
for _name, _said in tables_of(__package__, "strategy.toml").items():
    _matters = condition(_said["matters"], **PROPERTIES) if "matters" in _said else None
    _parts = transformations.MODULES if _name == "recompute" else ()
    word(_name, _said.get("values") or _OBJECTS[_name], _said["meaning"], _matters, _parts)

CHOICES = {name: tuple(x.values) for name, x in WORDS.items()}  # the default first


@dataclass(frozen=True)
class Strategy:
    """The options of a training strategy, as names or objects. Raises ValueError naming the values that would work."""

    recompute: str = "none"
    sequence_parallel: bool = True
    attention: str = "flash"
    context_exchange: str = "gather"
    sharding: Sharding | str = "zero1"
    schedule: Schedule | str = "1f1b"
    offload: bool = False
    quantized: bool = False
    kernels: str = "measured"
    blocks: str = "fused"
    family: Family | str = "llama"
    dropout: bool = True
    gathered: str = "again"
    trained: Trained | str = "all"
    optimizer: Optimizer | str = "adam"

    def __post_init__(self):
        for field in fields(self):
            object.__setattr__(self, field.name, WORDS[field.name].value(getattr(self, field.name)))
        if self.modules and self.blocks != "fused":
            raise ValueError(
                f"recompute={self.recompute!r} names modules of fused blocks, and these run step by step: "
                "blocks='fused', or recompute='none' or 'full', would do"
            )
        if self.optimizer.mode and self.trained.is_frozen:
            raise ValueError(
                f"optimizer={self.optimizer.name!r} updates a model's own matrices: trained='all' would do"
            )

    @property
    def words(self) -> dict[str, str | bool]:
        """The strategy's options by name, with their values as a caller gives them."""
        return {name: getattr(value, "name", value) for name, value in vars(self).items()}

    @property
    def of_block(self) -> "Strategy":
        """The strategy with defaults for options that do not affect a block, so that equal blocks share a cache."""
        usual = {x: getattr(Strategy, x) for x in ("sharding", "schedule", "offload", "optimizer")}
        return replace(self, **usual)

    @property
    def modules(self) -> tuple[str, ...]:
        """The names of the modules to recompute, if `recompute` lists some."""
        return () if self.recompute in WORDS["recompute"].values else tuple(self.recompute.split(","))

    def refuse_absent(self, blocks: tuple) -> None:
        """Raise ValueError if none of the modules to recompute is in a model's blocks."""
        kinds = [kind.block for x in blocks for kind in kinds_of(x)]
        there = [x for x in transformations.MODULES if any(transformations.module_lines(y, x) for y in kinds)]
        if not set(there) & {*self.modules}:
            raise ValueError(f"recompute={self.recompute!r} is not in this model: {either([*there, 'none'])} would do")

    def transformed(self, block: Block) -> Block:
        """Return the operations of a block on one device, as this strategy trains it."""
        again = [partial(transformations.recompute_module, module=x) for x in self.modules]
        if self.recompute == "full":
            again = [transformations.full]
        if self.recompute == "selective" and self.attention != "flash":  # which recomputes the attention core itself
            again = [transformations.selective]
        return _on_device(block, replace(self, recompute="none")).then(*again)


@cache
def _on_device(block: Block, strategy: Strategy) -> Block:
    attends = any(op.function == "softmax" for op in block.ops)
    exchanges = strategy.context_exchange == "all_to_all" and attends
    if exchanges and {"index", "entries"} & core_kernels(block).keys() and "kv_rank" not in block.indices:
        raise ValueError(
            "context_exchange='all_to_all' deals out heads, and an indexer or a compressed cache has no heads of "
            "keys to deal out: context_exchange='gather' would do"
        )
    split = sharding.context_exchanged if exchanges else sharding.context_parallel
    if not strategy.dropout:
        block = undropped(block)
    if strategy.blocks != "fused":
        kinds = dict(unfused=strategy.attention == "unfused", autocast=strategy.blocks == "autocast")
        block = eager(block, strategy.family, **kinds)
    steps = [sharding.tensor_parallel, split]
    if strategy.sequence_parallel and sharding.tensor_parallel(block) != block:
        steps.insert(1, sharding.sequence_parallel)
    if any(op.function == "dispatch" for op in block.ops):
        steps.append(sharding.expert_parallel)
        if strategy.sequence_parallel:  # otherwise all tp devices have the same tokens and share the experts' widths
            steps.append(sharding.expert_tensor_parallel)
    if strategy.gathered == "held":
        steps.append(transformations.hold_gathered)
    if strategy.attention == "flash":
        steps.append(transformations.flash)
    return block.then(*steps)
