"""Backends for measuring: NumPy on a CPU, or PyTorch or JAX on the device that they see.

All offer the same methods to make, multiply, copy and add tensors, and to wait until that is done. PyTorch and JAX are
imported only on use and never required.
"""

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
    preparation, such as memory for the result, is not timed.
    """

    name = "NumPy"
    precisions = ("fp32", "fp64")
    devices = 1  # devices that collectives can use
    has_host = False  # True if the device is connected to its host by a link
    is_eager = True  # True if functions run when they are called, so that parts of a step can be timed

    @property
    def is_cpu(self) -> bool:
        return True

    def tensor(self, shape: tuple[int, ...], precision: str):
        """Return normal random numbers with standard deviation 0.1, the same every time."""
        values = np.random.default_rng(0).standard_normal(shape, np.float64 if precision == "fp64" else np.float32)
        values *= 0.1
        return values

    def given(self, values: np.ndarray, precision: str | None = None):
        """Return a NumPy array on the device, converted to a precision if given."""
        return values.astype(_DTYPES[precision]) if precision else values

    def compiled(self, run: Callable) -> Callable:
        """Return a function of tensors, compiled if the library can."""
        return run

    def wait(self, *made) -> None:
        """Return when all work given to the device is done."""

    # Timed operations

    def product(self, a, b) -> Callable:
        result = a @ b
        return lambda: np.matmul(a, b, out=result)

    def copy(self, x) -> Callable:
        other = np.array(x)
        return lambda: np.copyto(other, x)

    def wide_copy(self, x) -> Callable | None:
        """Return a copy on all cores at once, or None with a single core; `copy` uses one core.

        NumPy releases the lock while it copies.
        """
        if self.cores < 2:
            return None
        other, pool = np.array(x), ThreadPoolExecutor(self.cores)
        parts = [*zip(np.array_split(other, self.cores), np.array_split(x, self.cores), strict=True)]
        return lambda: [*pool.map(lambda pair: np.copyto(*pair), parts)]

    def add(self, x, y) -> Callable:
        result = x + y
        return lambda: np.add(x, y, out=result)

    def read(self, x) -> Callable:
        """Return a function that reads every element and writes none."""
        return lambda: np.dot(x, x)

    def attention(self, q, k, v) -> Callable:
        """Return causal attention of [batch, heads, tokens, width] with the scores written to memory."""
        from scalebook.measure.transformer import attend

        return lambda: attend(self.library, q, k, v)[0]

    def to_device(self, size: int) -> Callable | None:
        """Return a copy of `size` bytes from the host to the device, or None without a link."""
        return None

    def from_device(self, size: int) -> Callable | None:
        return None

    def all_gather(self, size: int) -> Callable | None:
        """Return an all-gather with a result of `size` bytes on every device, or None for a single device."""
        return None

    # The machine

    @property
    def library(self):
        """The module with the functions for a tensor: `exp`, `where`, ..."""
        return np

    @property
    def device(self) -> str:
        """Name of the device."""
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
        """Memory in bytes."""
        if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
            return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        if find_spec("psutil"):
            return import_module("psutil").virtual_memory().total
        raise ValueError("how much memory this system has cannot be asked without psutil: pip install psutil")


NumPy = Backend


class Torch(Backend):
    """PyTorch, on a GPU if there is one."""

    name = "PyTorch"

    def __init__(self):
        self.torch = import_module("torch")
        accelerated = [x for x in ("cuda", "xpu", "mps") if _is_available(self.torch, x)]
        self.kind = accelerated[0] if accelerated else "cpu"
        self.precisions = ("bf16", "fp16", "fp32", "fp64") if self.kind in ("cuda", "xpu") else ("fp32", "bf16")
        self.devices = self.torch.cuda.device_count() if self.kind == "cuda" else 1
        self.has_host = self.kind in ("cuda", "xpu")

    @property
    def is_cpu(self):
        return self.kind == "cpu"

    def tensor(self, shape, precision):
        return self.torch.randn(shape, device=self.kind, dtype=getattr(self.torch, _DTYPES[precision])) * 0.1

    def given(self, values, precision=None):
        made = self.torch.from_numpy(np.ascontiguousarray(values))
        if precision:
            made = made.to(getattr(self.torch, _DTYPES[precision]))  # first: some devices lack 64-bit floats
        return made.to(self.kind)

    def wait(self, *made):
        if self.kind != "cpu":
            getattr(self.torch, self.kind).synchronize()

    def product(self, a, b):
        result = self.torch.matmul(a, b)
        return lambda: self.torch.matmul(a, b, out=result)

    def copy(self, x):
        other = x.clone()
        return lambda: other.copy_(x)

    def wide_copy(self, x):
        return None  # its ordinary copies use all cores

    def add(self, x, y):
        result = x + y
        return lambda: self.torch.add(x, y, out=result)

    def read(self, x):
        return lambda: self.torch.dot(x, x)

    def attention(self, q, k, v):
        fused = self.torch.nn.functional.scaled_dot_product_attention
        return lambda: fused(q, k, v, is_causal=True)

    def _host(self, size):
        return self.torch.zeros(size, dtype=self.torch.uint8, pin_memory=self.kind == "cuda")

    def to_device(self, size):
        if not self.has_host:
            return None
        host = self._host(size)
        near = host.to(self.kind)
        return lambda: near.copy_(host, non_blocking=True)

    def from_device(self, size):
        if not self.has_host:
            return None
        host = self._host(size)
        near = host.to(self.kind)
        return lambda: host.copy_(near, non_blocking=True)

    def all_gather(self, size):
        if self.devices < 2:
            return None
        nccl = import_module("torch.cuda.nccl")
        part, every = size // self.devices, range(self.devices)
        parts, whole = (
            [self.torch.zeros(n, dtype=self.torch.uint8, device=f"cuda:{i}") for i in every]
            for n in (part, part * self.devices)
        )
        return lambda: nccl.all_gather(parts, whole)

    @property
    def library(self):
        return self.torch

    @property
    def device(self):
        if self.kind in ("cuda", "xpu"):
            return getattr(self.torch, self.kind).get_device_name(0)
        return _cpu()

    @cached_property
    def cores(self):
        if self.kind == "cuda":
            return self.torch.cuda.get_device_properties(0).multi_processor_count
        return self.torch.get_num_threads() if self.is_cpu else 1

    @property
    def memory(self):
        if self.kind in ("cuda", "xpu"):
            return getattr(self.torch, self.kind).get_device_properties(0).total_memory
        return super().memory


class Jax(Backend):
    """JAX; timed operations are compiled first."""

    name = "JAX"
    is_eager = False

    def __init__(self):
        self.jax, self.library_ = import_module("jax"), import_module("jax.numpy")
        self.kind = self.jax.devices()[0].platform
        self.precisions = ("fp32",) if self.is_cpu else ("bf16", "fp16", "fp32")
        self.devices = self.jax.local_device_count()
        self.has_host = not self.is_cpu
        self._made = ()

    @property
    def is_cpu(self):
        return self.kind == "cpu"

    def tensor(self, shape, precision):
        values = self.jax.random.normal(self.jax.random.key(0), shape) * 0.1
        return values.astype(_DTYPES[precision])

    def given(self, values, precision=None):
        return self.library_.asarray(values, _DTYPES[precision] if precision else None)

    def compiled(self, run):
        fast = self.jax.jit(run)

        def kept(*args):
            self._made = fast(*args)
            return self._made

        return kept

    def wait(self, *made):
        self.jax.block_until_ready((made, self._made))

    def _keeping(self, run, *args):
        """Return a compiled run; `wait` waits only for the last result, since a device works in order."""
        fast = self.compiled(run)
        return lambda: fast(*args)

    def product(self, a, b):
        exact = self.jax.lax.Precision.HIGHEST if a.dtype == "float32" else None  # full fp32, not a shortened format
        return self._keeping(lambda a, b: self.library_.matmul(a, b, precision=exact), a, b)

    def copy(self, x):
        return self._keeping(lambda x: -x, x)  # a plain copy would be optimised away

    def wide_copy(self, x):
        return None

    def add(self, x, y):
        return self._keeping(lambda x, y: x + y, x, y)

    def read(self, x):
        return self._keeping(lambda x: x @ x, x)

    def attention(self, q, k, v):
        from scalebook.measure.transformer import attend

        return self._keeping(lambda q, k, v: attend(self.library_, q, k, v)[0], q, k, v)

    def to_device(self, size):
        if not self.has_host:
            return None
        host = np.zeros(size, np.uint8)

        def run():
            self._made = self.jax.device_put(host)
            return self._made

        return run

    def from_device(self, size):
        if not self.has_host:
            return None
        zeros, up = self.library_.zeros(size, "uint8"), self.jax.jit(lambda x: x + 1)
        return lambda: np.asarray(up(zeros))  # a new array, because the host keeps a fetched one

    def all_gather(self, size):
        if self.devices < 2:
            return None
        parts = self.library_.zeros((self.devices, size // self.devices), "uint8")
        gather = self.jax.pmap(lambda x: self.jax.lax.all_gather(x, "i"), axis_name="i")

        def run():
            self._made = gather(parts)
            return self._made

        return run

    @property
    def library(self):
        return self.library_

    @property
    def device(self):
        return _cpu() if self.is_cpu else self.jax.devices()[0].device_kind

    @cached_property
    def cores(self):
        return _allowed() if self.is_cpu else getattr(self.jax.devices()[0], "core_count", 1)

    @property
    def memory(self):
        if self.is_cpu:
            return super().memory
        stats = self.jax.devices()[0].memory_stats()
        if not stats:
            raise ValueError(f"{self.device} does not tell JAX how much memory it has: measure with 'torch' or 'numpy'")
        return stats["bytes_limit"]


_KINDS = {"numpy": (NumPy, "numpy"), "torch": (Torch, "torch"), "jax": (Jax, "jax")}


def backend(name: str | None = None) -> Backend:
    """Return the backend "numpy", "torch" or "jax"; by default the framework that sees an accelerator, or NumPy.

    Raises LookupError for another name, or if the library is not installed.

    >>> backend("cupy")
    Traceback (most recent call last):
        ...
    LookupError: measurements are made with 'numpy', 'torch' or 'jax', not with 'cupy'
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
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _cpu() -> str:
    """Return the processor's name from Linux, or what Python knows."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    except OSError:
        names = []
    return (names[0] if names else "") or platform.processor() or platform.machine() or "CPU"
