"""The reader's own machine: times are a machine's, so they must be possible, and nothing may be lost."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from time import sleep
from types import SimpleNamespace

import numpy as np
import pytest

import scalebook.measure as package
from scalebook import accelerators, models, training_step
from scalebook.measure import OWN, NumPy, Sample, Shape, Torch, adam, cells_of, plan, stored, train, turns
from scalebook.measure.__main__ import main
from scalebook.measure.clock import _calls
from scalebook.shell.named import read

from .support import each_case, refuses

TINY = Shape(layers=1, hidden=16, heads=2, ffn=24, vocab=32)
CELLS = [
    "hbm_capacity", "hbm_bandwidth", "stream_efficiency", "kernel_launch", "cores", "peak_fp32", "matmul_fp32",
    "attention_efficiency", "scaleup_size", "scaleup_bandwidth", "storage_bandwidth", "peak_vector",
]  # fmt: skip


# A machine whose every figure is known: what comes out of the rows must be what went in.


def row(kind, seconds, m=0, n=0, k=0, traffic=0.0, precision="fp32"):
    return package.Measurement(kind, precision, m, n, k, int(m > 0), traffic, Sample(tuple(seconds)))


def product(m, n, k, rate, slower=(1.0, 1.25, 2.0)):
    return row("product", [2 * m * n * k / rate * x for x in slower], m, n, k, 4.0 * (m * k + k * n + m * n))


def stream(kind, size, rate, tensors):
    return row(kind, [tensors * size / rate] * 3, traffic=tensors * size)


KNOWN = [
    *(product(x, x, x, 1e11) for x in (256, 512, 1024)),
    *(stream(kind, size, rate, n) for kind, rate, n in [("read", 2e10, 1), ("copy", 1e10, 2), ("add", 1e10, 3)]
      for size in (2.0**26, 2.0**28)),
    row("launch", [1e-6, 2e-6, 3e-6]),
    row("attention", [2.0 * 8 * 512 * 512 * 128 / 1e10] * 3, 512, 512, 128),
    row("write", [1.0, 2.0, 4.0], traffic=1e9),
]  # fmt: skip


def test_a_known_machine_comes_out_as_it_is():
    cells = cells_of(KNOWN, memory=16e9, cores=2)
    assert set(CELLS) <= set(cells)
    assert cells["peak_fp32"].value == pytest.approx(1e11) and cells["hbm_bandwidth"].value == pytest.approx(2e10)
    assert cells["matmul_fp32"].value == pytest.approx(1 / 1.25) and cells["matmul_fp32"].repeats == 9
    assert cells["stream_efficiency"].value == pytest.approx(0.5)
    assert cells["kernel_launch"].value == 2e-6 and cells["kernel_launch"].low == pytest.approx(1.2e-6)
    assert cells["storage_bandwidth"].value == pytest.approx(5e8)
    assert cells["hbm_capacity"].value == 16e9 and cells["cores"].value == 2


def test_no_kernel_is_above_the_peak_where_products_were_slowed_down():
    slowed = [product(x, x, x, 1e8) for x in (256, 512, 1024)]
    cells = cells_of([*slowed, *(x for x in KNOWN if x.kind != "product")], 16e9, 2)
    assert cells["attention_efficiency"].high == 1 and cells["peak_fp32"].value == pytest.approx(6.25e8)


def test_the_tile_is_found_where_thin_products_show_it():
    """Below 16 rows products take as long as one of 16, which a tile of 64 would not say."""
    thin = [product(m, 2048, 2048, 1e11 * m / max(m, 16), (1.0,)) for m in (1, 2, 4, 8, 16, 32, 64, 128)]
    fast = [stream("copy", 2.0**28, 1e12, 2)]  # so that weights are no hindrance
    squares = [product(1024, 1024, 1024, 1e11, (1.0,))]
    cells = cells_of([*squares, *thin, *fast, stream("add", 2.0**28, 1e12, 3), row("launch", [1e-9])], 16e9, 1)
    assert cells["tile_rows"].value == 16


def test_collectives_and_hosts_are_cells_where_there_are_some():
    more = [row("host", [0.1, 0.2], traffic=1e9), row("all_gather", [1e-5] * 3, traffic=512.0),
            row("all_gather", [1e-2, 2e-2], traffic=1e9)]  # fmt: skip
    cells = cells_of([*KNOWN, *more], 16e9, 2, devices=4)
    assert cells["host_bandwidth"].value == pytest.approx(1e10)
    assert cells["host_efficiency"].value == pytest.approx(0.75)
    assert cells["scaleup_size"].value == 4 and cells["scaleup_bandwidth"].value == pytest.approx(1e11)
    assert cells["collective_launch"].value == pytest.approx(1e-5) and cells["near_latency"].value == 0


def test_a_row_needs_products_and_streams():
    refuses(ValueError, "needs products and streams", lambda: cells_of(KNOWN[:3], 16e9, 2))


# This machine, for real


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Measured in a process of its own with one thread: others share this machine, and threads that spin wait long."""
    path = tmp_path_factory.mktemp("measured") / "here.toml"
    code = "import sys; from scalebook.measure import measure; measure(True, 'numpy', False).save(sys.argv[1])"
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    subprocess.run([sys.executable, "-c", code, str(path)], check=True, env=environment, timeout=240)
    return path


def test_what_is_measured_here_is_possible(saved):
    device, cells = accelerators.read(saved), accelerators.read(saved).cells
    assert set(CELLS) <= set(device)
    # No processor has done more in fp32 a core and clock than 64 additions and multiplications, twice, at 6 GHz.
    assert 1e7 < device.peak_fp32 < device.cores * 2 * 64 * 2 * 6e9
    assert 1e7 < device.hbm_bandwidth < 1e12 and device.kernel_launch < 1
    for name in ("matmul_fp32", "stream_efficiency", "kernel_launch", "attention_efficiency", "storage_bandwidth"):
        cell = cells[name]
        assert 0 < cell.low <= cell.value <= cell.high
        assert "measured by scalebook.measure on " in cell.source and ", median of " in cell.source
    assert all(cell.source.startswith("scalebook-measure") for name, cell in cells.items() if name in CELLS)


def test_what_was_saved_is_read_again(saved, tmp_path):
    again = stored(saved)
    assert again.stanza + "\n" == saved.read_text("utf-8")
    assert dict(again.device) == dict(accelerators.read(saved))
    again.save(tmp_path / "twice.toml")
    assert (tmp_path / "twice.json").read_text("utf-8") == saved.with_suffix(".json").read_text("utf-8")
    lines = again.confront().lines
    assert [x.letter for x in lines][-3:] == ["step_time", "pass_time", "pass_time"]
    assert all(np.isfinite(x.error) and x.predicted > 0 for x in lines)


def test_a_step_on_the_readers_own_device(saved):
    mine = accelerators.read(saved)
    step = training_step(models.gpt2, mine.at("fp32"), batch=1, global_batch=8, seq=512)
    assert step.step_time > 0 and step.devices == 1 and 0 < step.mfu <= 1
    rows, _ = read(training_step, {}, model="gpt2", device=str(saved), precision="fp32")
    assert rows[1].peak_flops == mine.peak_fp32
    assert "measured by scalebook.measure" in mine.sources["matmul_fp32"]


class SimpleBackend(NumPy):
    """One that does next to nothing, so that the plan alone is tested."""

    cores, memory, device = 2, 2**18, "none"

    def product(self, a, b):
        return lambda: sleep(1e-3)  # else ever larger ones would be tried

    copy = read = wide_copy = lambda self, x: lambda: None

    def add(self, x, y):
        return lambda: None

    def attention(self, q, k, v):
        return lambda: None


def test_a_machine_that_is_slow_or_busy_is_measured_too(monkeypatch):
    monkeypatch.setattr("scalebook.measure.probes._LONGEST", {False: 0.0})
    products = plan(SimpleBackend())[0].run(times=1)
    assert [(x.rows, x.columns) for x in products if x.rows in (128, 256)][:2] == [(128, 128), (256, 256)]


# The transformer


@pytest.fixture
def tiny():
    shape, rng = Shape(layers=2, hidden=8, heads=2, ffn=12, vocab=10), np.random.default_rng(0)
    w = shape.weights(lambda *size: 0.5 * rng.standard_normal(size))
    tokens, hot = rng.permutation(10)[:6], np.eye(10)[rng.integers(0, 10, 6)]
    return shape, w, tokens, hot


def test_gradients_are_those_of_differences(tiny):
    shape, w, tokens, hot = tiny
    _, gradients = train(np, w, tokens, hot, shape.heads, batch=2)
    rng, step = np.random.default_rng(1), 1e-6
    for name in w:
        at = tuple(rng.integers(0, n) for n in w[name].shape)
        losses = []
        for side in (step, -step):
            moved = w | {name: w[name].copy()}
            moved[name][at] += side
            losses.append(train(np, moved, tokens, hot, shape.heads, batch=2)[0])
        assert gradients[name][at] == pytest.approx((losses[0] - losses[1]) / (2 * step), rel=1e-4, abs=1e-8), name


def test_training_lowers_the_loss(tiny):
    shape, w, tokens, hot = tiny
    first, second = ({name: 0 * x for name, x in w.items()} for _ in range(2))
    losses = []
    for _ in range(20):
        loss, gradients = train(np, w, tokens, hot, shape.heads)
        w, first, second = adam(np, w, gradients, first, second, rate=0.01)
        losses.append(loss)
    assert losses[-1] < 0.8 * losses[0]


def test_decoding_says_what_the_whole_sequence_does(tiny):
    shape, w, tokens, _ = tiny
    n, width = len(tokens), shape.hidden // shape.heads
    keys, values = ([np.zeros((1, shape.heads, n, width)) for _ in range(shape.layers)] for _ in range(2))
    for i, token in enumerate(tokens):
        short = [[x[:, :, : i + 1] for x in cache] for cache in (keys, values)]
        made = package.decode(np, w, *short, np.array([token]), shape.heads, turns(np, 1, width, i))
    assert np.allclose(made[0], whole(w, tokens, shape)[-1])


def whole(w, tokens, shape):
    """Logits of every place, by the loss's own gradient: probabilities less what was hot."""
    from scalebook.measure.transformer import forward, logits

    x, turn = w["embedding"][tokens], turns(np, len(tokens), shape.hidden // shape.heads)
    for i in range(shape.layers):
        x, _ = forward(np, x, w, i, 1, shape.heads, turn)
    return logits(np, x, w)[0]


def test_the_model_has_the_parameters_that_are_timed():
    shape = Shape(layers=3, hidden=64, heads=4, ffn=96, vocab=100)
    from scalebook.block import model_params

    assert model_params(shape.row()) == sum(np.prod(x) for x in shape.weights(lambda *size: size).values())


# Frameworks


class FakeTorch:
    """So much of PyTorch as is asked for, over NumPy: that each call is one that PyTorch takes, its documentation says;
    that the way through them ends, this says."""

    float32, uint8, bfloat16 = np.float32, np.uint8, np.float32
    backends, cuda = SimpleNamespace(), SimpleNamespace(is_available=lambda: False)
    nn = SimpleNamespace(
        functional=SimpleNamespace(scaled_dot_product_attention=lambda q, k, v, is_causal: q @ v.mT @ v)
    )

    def __getattr__(self, name):
        return getattr(np, name)

    def randn(self, shape, device, dtype):
        return Tensor(np.random.default_rng(0).standard_normal(shape).astype(dtype))

    def from_numpy(self, x):
        return Tensor(x)

    def get_num_threads(self):
        return 2


class Tensor:
    def __new__(cls, values):
        return np.asarray(values).view(_Tensor)


class _Tensor(np.ndarray):
    def clone(self):
        return self.copy()

    def copy_(self, other):
        self[...] = other

    def to(self, where):
        return self if where == "cpu" else self.astype(where)


def test_the_way_through_pytorch(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", FakeTorch())
    on = Torch()
    monkeypatch.setattr(on, "precisions", ("fp32",))
    assert on.is_cpu and on.cores == 2
    assert [x.name for x in plan(on, quick=True)] == ["products in fp32", "streams", "launches", "attention", "a file"]
    for probe in plan(on, quick=True)[2:]:
        assert all(min(x.sample.seconds) > 0 for x in probe.run(times=1))
    assert len(package.timed(on, TINY, TINY, seq=8, times=1)) == 7


def test_frameworks_are_asked_for_by_name():
    for name, kind in [("torch", Torch), ("jax", package.Jax)]:
        try:
            assert isinstance(package.backend(name), kind)
        except LookupError as error:
            assert str(error) == f"{name} is not installed here: pip install {name}, or measure with 'numpy'"


# Files


@each_case("files of a reader's own device", "text, words", globals())
def test_a_broken_row_says_what_would_do(tmp_path, text, words):
    path = tmp_path / "mine.toml"
    path.write_text(text, "utf-8")
    refuses(ValueError, words, lambda: accelerators.read(path))


def test_files_that_are_none(tmp_path):
    (tmp_path / "odd.toml").write_bytes(b"\xff\xfe")
    refuses(ValueError, "no text in UTF-8", lambda: accelerators.read(tmp_path / "odd.toml"))
    (tmp_path / "odd.json").write_text("[]", "utf-8")
    refuses(ValueError, "holds no measurements", lambda: stored(tmp_path / "odd.toml"))


def test_a_machine_called_as_a_device_of_the_table_is_its_own(tmp_path):
    """What a device of that name reaches in training, and how far that may be off, is not the reader's machine's."""
    named = dict(host="b200", rows=[replace(x, precision=x.precision and "bf16") for x in KNOWN])
    replace(stored(), **named).save(tmp_path / "mine.toml")
    mine = accelerators.read(tmp_path / "mine.toml")
    assert "training_bf16" not in mine and "training_bf16" in accelerators.b200
    row = training_step(models.gpt2, mine.at("bf16"), batch=1, global_batch=8, seq=512)
    assert row.training_efficiency == pytest.approx(1 / 1.25)
    unnamed = replace(stored(), **named | dict(host="mine")).device
    spread = {name: (x.value, x.low, x.high) for name, x in unnamed.cells.items()}
    assert spread == {name: (x.value, x.low, x.high) for name, x in mine.cells.items()}


def test_a_file_of_several_devices(tmp_path):
    path, text = tmp_path / "two.toml", OWN.read_text("utf-8")
    first = text.partition("]")[0][1:]
    path.write_text(f"{text}\n{text.replace(first, 'other', 1)}", "utf-8")
    assert accelerators.read(path, "other").peak_fp32 == accelerators.read(OWN).peak_fp32
    refuses(LookupError, "several devices", lambda: accelerators.read(path))
    refuses(LookupError, "did you mean 'other'", lambda: accelerators.read(path, "othr"))


def test_the_command(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr("scalebook.measure.__main__.measure", lambda quick, on: stored())
    said = main(["--save", str(tmp_path / "my.toml")])
    assert (tmp_path / "my.toml").read_text("utf-8") == OWN.read_text("utf-8")
    assert "peak_fp32 = " in said and "time of a training step" in said and said.endswith('my.toml")')
    for path, words in [("my.csv", "such as my.toml, not in 'my.csv'"), ("none/my.toml", "No such file or directory")]:
        refuses(SystemExit, "2", main, ["--save", path])
        assert words in capsys.readouterr().err


def test_a_name_that_toml_would_break_on():
    odd = replace(stored(), host='a "host"\n\\', name="CPU\t[x]")
    assert odd.device.name == "CPU [x] with NumPy" and '"host"' in odd.device.cells["cores"].source


# What the package keeps of a machine of ours


def test_our_own_machine_is_stored_as_measured():
    ours = stored()
    assert ours.stanza + "\n" == OWN.read_text("utf-8"), "the row follows from the times beside it"
    assert json.loads(OWN.with_suffix(".json").read_text("utf-8"))["date"] == ours.date
    assert {"product", "read", "copy", "add", "launch", "attention", "write"} <= {x.kind for x in ours.rows}
    assert all(len(x.sample.seconds) >= 5 for x in ours.rows)
    assert {x.letter for x in ours.confront().lines} >= {"block_forward", "block_backward", "step_time", "pass_time"}
    best = max(x.rate(x.sample.best) for x in ours.rows if x.kind == "product" and x.precision == "fp32")
    assert ours.device.peak_fp32 == pytest.approx(best, rel=1e-4)


def test_interrupted_it_gives_what_was_measured(monkeypatch):
    """After some parts what there is, with a note; before the first the interruption itself."""
    from scalebook.measure import measured

    whole, stop = measured.plan, 2

    class Interrupted:
        name = "stopped"

        def run(self, *_):
            raise KeyboardInterrupt

    monkeypatch.setattr(measured, "plan", lambda *x: [*whole(*x)[:stop], Interrupted(), *whole(*x)[stop:]])
    found = measured.measure(quick=True, on="numpy", progress=False)
    assert found.rows and not found.times and found.note in repr(found) and found.note.startswith("interrupted")
    stop = 0
    with pytest.raises(KeyboardInterrupt):
        measured.measure(quick=True, on="numpy", progress=False)


def test_nothing_else_is_overwritten(tmp_path):
    path = tmp_path / "my.toml"
    stored().save(path)
    stored().save(path)  # an earlier row may go
    path.write_text("", "utf-8")
    stored().save(path)
    two = OWN.read_text("utf-8") + "\n[other]\n"
    for text in ("[project]\nname = 'mine'\n", two):
        path.write_text(text, "utf-8")
        refuses(ValueError, r"my\.toml holds something else than a row that was measured", lambda: stored().save(path))
        assert path.read_text("utf-8") == text
    path.unlink()
    path.with_suffix(".json").write_text('{"private": true}', "utf-8")
    refuses(ValueError, r"my\.json holds something else", lambda: stored().save(path))
    assert not path.exists()


def test_where_nothing_can_be_written_is_said_before_measuring(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr("scalebook.measure.__main__.measure", lambda *_: pytest.fail("it was measured"))
    for path in (tmp_path / "none" / "my.toml", "/proc/my.toml"):
        refuses(SystemExit, "2", main, ["--save", str(path)])
        assert "my.toml could not be written: " in capsys.readouterr().err


def test_on_a_full_disk_what_was_measured_is_printed(monkeypatch, tmp_path, capsys):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("scalebook.measure.__main__.measure", lambda *_: stored())
    monkeypatch.setattr("scalebook.measure.Measured.save", full)
    refuses(SystemExit, "2", lambda: main(["--save", str(tmp_path / "my.toml")]))
    said = capsys.readouterr()
    assert stored().stanza in said.out and "my.toml could not be written: No space left" in said.err


def test_a_machine_on_which_others_were_at_work_is_told():
    """Two products of three, and then no more than one kernel of eleven."""
    busy = replace(stored(), rows=[*(replace(x, sample=Sample((1.0, 1.0, 9.0))) for x in KNOWN[:2]), *KNOWN[2:]])
    assert not replace(busy, rows=KNOWN).disturbed and not stored().disturbed
    assert f"2 of {len(KNOWN)} kernels took more than twice" in busy.disturbed
    assert busy.disturbed in repr(busy) and busy.disturbed in repr(busy.confront())
    assert not replace(busy, rows=busy.rows[1:]).disturbed


def test_one_call_that_is_held_up_is_no_measure_of_the_others(monkeypatch):
    """Neither of how often a short run is made in a row, nor of how large the products become."""
    # Begun and done: a first call, one that is held up for nine seconds, and two that take no time.
    seconds = iter([0, 0, 1, 10, 10, 11])
    monkeypatch.setattr("scalebook.measure.clock.perf_counter", lambda: next(seconds, 11))
    assert _calls(lambda: None, lambda: None, least=2e-3) == 10_000
