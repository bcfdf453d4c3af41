"""Backends for measuring: NumPy on a CPU, or PyTorch or JAX on the device that they see; both are imported on use."""

import os
import platform
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec

import numpy as np

from scalebook.language.notation import either, quoted

__all__ = ["BITS", "Backend", "Jax", "NumPy", "Torch", "backend"]

BITS = {"fp64": 64, "fp32": 32, "bf16": 16, "fp16": 16}
_DTYPES = {"fp64": "float64", "fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}


class Backend:
    """The NumPy backend, and the base class of the others.

    A timed operation (`product`, `copy`, `add`, ...) is returned as a function without arguments, so that one-time
    preparation, such as memory for the result, is not timed. Backends with `has_host` also have `host_copies(size)`:
    copies of `size` bytes to the device and back. Those with several `devices` have `all_gather(size)`, whose result
    has `size` bytes on every device.
    """

    name = "NumPy"
    precisions = ("fp32", "fp64")
    devices = 1  # devices that collectives can use
    has_host = False  # True if the device is connected to its host by a link
    is_eager = True  # True if functions run when they are called, so that parts of a step can be timed
    is_cpu = True
    library = np  # the module with the functions for a tensor: `exp`, `where`, ...

    def tensor(self, shape: tuple[int, ...], precision: str):
        """Return normal random numbers with standard deviation 0.1, the same every time."""
        values = np.random.default_rng(0).standard_normal(shape, np.float64 if precision == "fp64" else np.float32)
        values *= 0.1
        return values

    def given(self, values: np.ndarray, precision: str | None = None):
        """Put a NumPy array on the device, converted to a precision if given."""
        return values.astype(_DTYPES[precision]) if precision else values

    def compiled(self, run: Callable) -> Callable:
        """Return a function of tensors, compiled if the library can."""
        return run

    def wait(self, *made) -> None:
        """Wait until the device has done all its work."""

    # Timed operations

    def product(self, a, b) -> Callable:
        result = a @ b
        return lambda: self.library.matmul(a, b, out=result)

    def copy(self, x) -> Callable:
        other = np.array(x)
        return lambda: np.copyto(other, x)

    def wide_copy(self, x) -> Callable | None:
        """Return a copy on all cores at once, or None with a single core; `copy` uses one core."""
        if self.cores < 2:
            return None
        other, pool = np.array(x), ThreadPoolExecutor(self.cores)
        parts = [*zip(np.array_split(other, self.cores), np.array_split(x, self.cores), strict=True)]
        return lambda: [*pool.map(lambda pair: np.copyto(*pair), parts)]

    def add(self, x, y) -> Callable:
        result = x + y
        return lambda: self.library.add(x, y, out=result)

    def read(self, x) -> Callable:
        """Return a function that reads every element and writes none."""
        return lambda: self.library.dot(x, x)

    def attention(self, q, k, v) -> Callable:
        """Return causal attention of [batch, heads, tokens, width] with the scores written to memory."""
        from scalebook.measure.transformer import attend

        return self._compiled_on(lambda *qkv: attend(self.library, *qkv)[0], q, k, v)

    def _compiled_on(self, run: Callable, *args) -> Callable:
        fast = self.compiled(run)
        return lambda: fast(*args)

    # The machine

    @property
    def device(self) -> str:
        return _cpu()

    @cached_property
    def cores(self) -> int:
        """Number of cores that a large product keeps busy: processor time over wall-clock time."""
        x = self.tensor((1024, 1024), "fp32")
        ratios = []
        for _ in range(5):
            start, busy = time.perf_counter(), time.process_time()
            _ = x @ x
            ratios.append((time.process_time() - busy) / (time.perf_counter() - start))
        return max(1, min(_allowed(), round(max(ratios))))

    @property
    def memory(self) -> int:
        if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
            return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        if find_spec("psutil"):
            return import_module("psutil").virtual_memory().total
        raise ValueError("how much memory this system has cannot be asked without psutil: pip install psutil")


NumPy = Backend


class Torch(Backend):
    """PyTorch, on a GPU if there is one."""

    name = "PyTorch"
    wide_copy = None  # its ordinary copies use all cores

    def __init__(self):
        self.library = torch = import_module("torch")
        self.kind = next((x for x in ("cuda", "xpu", "mps") if _is_available(torch, x)), "cpu")
        self.is_cpu, self.has_host = self.kind == "cpu", self.kind in ("cuda", "xpu")
        self.precisions = ("bf16", "fp16", "fp32", "fp64") if self.has_host else ("fp32", "bf16")
        self.devices = torch.cuda.device_count() if self.kind == "cuda" else 1

    def _dtype(self, precision):
        return getattr(self.library, _DTYPES[precision])

    def tensor(self, shape, precision):
        return self.library.randn(shape, device=self.kind, dtype=self._dtype(precision)) * 0.1

    def given(self, values, precision=None):
        made = self.library.from_numpy(np.ascontiguousarray(values))
        if precision:
            made = made.to(self._dtype(precision))  # first: some devices lack 64-bit floats
        return made.to(self.kind)

    def wait(self, *made):
        if not self.is_cpu:
            getattr(self.library, self.kind).synchronize()

    def copy(self, x):
        other = x.clone()
        return lambda: other.copy_(x)

    def attention(self, q, k, v):
        fused = self.library.nn.functional.scaled_dot_product_attention
        return lambda: fused(q, k, v, is_causal=True)

    def host_copies(self, size):
        host = self.library.zeros(size, dtype=self.library.uint8, pin_memory=self.kind == "cuda")
        near = host.to(self.kind)
        return [lambda: near.copy_(host, non_blocking=True), lambda: host.copy_(near, non_blocking=True)]

    def all_gather(self, size):
        nccl = import_module("torch.cuda.nccl")
        part, every = size // self.devices, range(self.devices)
        parts, whole = (
            [self.library.zeros(n, dtype=self.library.uint8, device=f"cuda:{i}") for i in every]
            for n in (part, part * self.devices)
        )
        return lambda: nccl.all_gather(parts, whole)

    @property
    def device(self):
        return getattr(self.library, self.kind).get_device_name(0) if self.has_host else _cpu()

    @cached_property
    def cores(self):
        if self.kind == "cuda":
            return self.library.cuda.get_device_properties(0).multi_processor_count
        return self.library.get_num_threads() if self.is_cpu else 1

    @property
    def memory(self):
        if self.has_host:
            return getattr(self.library, self.kind).get_device_properties(0).total_memory
        return super().memory


class Jax(Backend):
    """JAX; timed operations are compiled first."""

    name = "JAX"
    is_eager = False
    wide_copy = None

    def __init__(self):
        self.jax, self.library = import_module("jax"), import_module("jax.numpy")
        self.chip = self.jax.devices()[0]
        self.is_cpu = self.chip.platform == "cpu"
        self.has_host = not self.is_cpu
        self.precisions = ("fp32",) if self.is_cpu else ("bf16", "fp16", "fp32")
        self.devices = self.jax.local_device_count()
        self._made = ()

    def tensor(self, shape, precision):
        values = self.jax.random.normal(self.jax.random.key(0), shape) * 0.1
        return values.astype(_DTYPES[precision])

    def given(self, values, precision=None):
        return self.library.asarray(values, _DTYPES[precision] if precision else None)

    def compiled(self, run):
        fast = self.jax.jit(run)
        return lambda *args: self._keep(fast(*args))

    def _keep(self, made):
        """Keep a result; `wait` waits only for the last one, since a device works in order."""
        self._made = made
        return made

    def wait(self, *made):
        self.jax.block_until_ready((made, self._made))

    def product(self, a, b):
        exact = self.jax.lax.Precision.HIGHEST if a.dtype == "float32" else None  # full fp32, not a shortened format
        return self._compiled_on(lambda a, b: self.library.matmul(a, b, precision=exact), a, b)

    def copy(self, x):
        return self._compiled_on(lambda x: -x, x)  # a plain copy would be optimised away

    def add(self, x, y):
        return self._compiled_on(lambda x, y: x + y, x, y)

    def read(self, x):
        return self._compiled_on(lambda x: x @ x, x)

    def host_copies(self, size):
        host, near, up = np.zeros(size, np.uint8), self.library.zeros(size, "uint8"), self.jax.jit(lambda x: x + 1)
        # The way back makes a new array, because the host keeps a fetched one.
        return [lambda: self._keep(self.jax.device_put(host)), lambda: np.asarray(up(near))]

    def all_gather(self, size):
        parts = self.library.zeros((self.devices, size // self.devices), "uint8")
        gather = self.jax.pmap(lambda x: self.jax.lax.all_gather(x, "i"), axis_name="i")
        return lambda: self._keep(gather(parts))

    @property
    def device(self):
        return _cpu() if self.is_cpu else self.chip.device_kind

    @cached_property
    def cores(self):
        return _allowed() if self.is_cpu else getattr(self.chip, "core_count", 1)

    @property
    def memory(self):
        if self.is_cpu:
            return super().memory
        stats = self.chip.memory_stats()
        if not stats:
            raise ValueError(f"{self.device} does not tell JAX how much memory it has: measure with 'torch' or 'numpy'")
        return stats["bytes_limit"]


_KINDS = {"numpy": (NumPy, "numpy"), "torch": (Torch, "torch"), "jax": (Jax, "jax")}


def backend(name: str | None = None) -> Backend:
    """Return the backend "numpy", "torch" or "jax"; by default the framework that sees an accelerator, or NumPy.

    Raises LookupError for another name, or if the library is not installed.

    >>> backend("numpy").name
    'NumPy'
    """
    if name is None:
        found = (kind() for kind, module in (_KINDS["torch"], _KINDS["jax"]) if find_spec(module))
        return next((x for x in found if not x.is_cpu), None) or NumPy()
    if not isinstance(name, str) or name not in _KINDS:
        raise LookupError(f"measurements are made with {either(map(repr, _KINDS))}, not with {quoted(name)}")
    kind, module = _KINDS[name]
    if not find_spec(module):
        raise LookupError(f"{name} is not installed here: pip install {name}, or measure with 'numpy'")
    return kind()


def _is_available(torch, kind) -> bool:
    place = getattr(torch.backends, "mps", None) if kind == "mps" else getattr(torch, kind, None)
    return bool(place and place.is_available())


def _allowed() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _cpu() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    except OSError:
        names = []
    return (names[0] if names else "") or platform.processor() or platform.machine() or "CPU"
