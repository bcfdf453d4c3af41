"""Change one operator, number or factor of the package at a time, and see whether a test notices.

`mutations.toml` lists the changes: a file, a text that occurs once in it, and what stands there instead. Each is made
in a temporary copy, never here. First the doctests of the changed module and the quick guards run, then the tests of
its room. A mutation that no test notices SURVIVED: something is not guarded.

    python -m tools.mutations             all, two at a time
    python -m tools.mutations gather      those with "gather" in their names

Ends with 1 if a mutation survived that has no `survives`, the reason why it may.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue

ROOT = Path(__file__).parents[1]
QUICK = ("test_worked_numbers", "test_derivatives", "test_shardings")  # seconds, for any mutation
OF_ROOM = {
    "block": ("test_block",),
    "training": ("test_training", "test_training_memory", "test_configurations"),
    "inference": ("test_serving", "test_serving_counts"),
    "machine": ("test_collectives",),
    "pipeline": ("test_schedules",),
    "calculon": ("test_calculon",),
    "search": ("test_search",),
    "answers": ("test_answers", "test_assumed"),
}
LIMIT = 600  # seconds for one run of tests


def listed() -> dict[str, dict]:
    """Return the mutations by name. Raises ValueError, a sentence each, for those whose text is gone or not unique."""
    path, wrong = Path(__file__).with_suffix(".toml"), []
    found = tomllib.loads(path.read_text("utf-8"))
    for name, change in found.items():
        file = ROOT / change["file"]
        times = file.read_text("utf-8").count(change["old"]) if file.exists() else 0
        if times != 1:
            wrong.append(
                f"{path.name}, [{name}]: {change['old']!r} occurs {times} times in {change['file']}, and not once: "
                "write it as it stands there today, or delete the stanza if the code is gone"
            )
    if wrong:
        raise ValueError("\n".join(wrong))
    return found


def copied(folder: str) -> Path:
    """Return a copy of what the tests need, in a folder."""
    copy = Path(folder)
    left_out = shutil.ignore_patterns("__pycache__", "node_modules", "_build")
    for name in ("scalebook", "tests", "tools", "book"):
        shutil.copytree(ROOT / name, copy / name, ignore=left_out)
    for name in ("pyproject.toml", "nbval_sanitize.cfg", "conftest.py"):
        shutil.copy(ROOT / name, copy)
    return copy


def tested(copy: Path, *files: str) -> str:
    """Run tests in a copy up to the first failure. Return what failed, or "" if nothing did."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--no-header", "--tb=no", *files]
    run = subprocess.run(
        command, cwd=copy, env=os.environ | {"PYTHONPATH": str(copy)}, capture_output=True, text=True, timeout=LIMIT
    )
    if run.returncode in (0, 5):  # all passed, or there was nothing to run
        return ""
    failed = [x for x in run.stdout.splitlines() if x.startswith(("FAILED", "ERROR"))]
    if not failed and run.returncode != 2:
        raise RuntimeError(f"pytest could not run {' '.join(files)}: {(run.stderr or run.stdout).strip()[-300:]}")
    return failed[0].partition(" ")[2].partition(" - ")[0] if failed else "the import of the package"


def killer_of(copy: Path, change: dict) -> str:
    """Return the test that notices a mutation, or "" if none does. The copy is left as it was."""
    file = copy / change["file"]
    before, room = file.read_text("utf-8"), Path(change["file"]).parts[1]
    stages = [(*modules([change]), *paths(QUICK)), *((x,) for x in paths(OF_ROOM.get(room, ())))]
    try:
        written(file, before.replace(change["old"], change["new"]))
        return next(filter(None, (tested(copy, *files) for files in stages)), "")
    except subprocess.TimeoutExpired:
        return f"the limit of {LIMIT} s"
    finally:
        written(file, before)


def modules(changes) -> list[str]:
    """Return the files with the doctests of what changed. Those of equations in a table are its module's, beside it."""
    files = {Path(x["file"]).with_suffix(".py") for x in changes}
    return sorted(str(x) for x in files if (ROOT / x).exists())


def paths(names) -> list[str]:
    return [f"tests/{x}.py" for x in names]


def written(file: Path, text: str):
    """Write a module without a compiled one that could be taken for it: Python compares seconds and sizes only."""
    file.write_text(text, "utf-8")
    for old in (file.parent / "__pycache__").glob(f"{file.stem}.*.pyc"):
        old.unlink()


def main(words: list[str]) -> int:
    changes = {name: x for name, x in listed().items() if all(word in name for word in words)}
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as two:
        copies = Queue()
        for folder in (one, two):
            copies.put(copied(folder))
        if failed := tested(Path(one), *modules(changes.values()), *paths(QUICK)):
            print(f"without any mutation {failed} fails already: mend that first")
            return 1

        def tried(name):
            copy = copies.get()
            try:
                killer = killer_of(copy, changes[name])
            finally:
                copies.put(copy)
            print(f"{name:58} {killer or 'SURVIVED'}", flush=True)
            return killer

        with ThreadPoolExecutor(2) as pool:
            killers = dict(zip(changes, pool.map(tried, changes), strict=True))
    survivors = [name for name, killer in killers.items() if not killer]
    print(f"\n{len(killers) - len(survivors)} of {len(killers)} mutations were noticed")
    for name in survivors:
        print(f"survived: {name}: {changes[name].get('survives', 'nothing guards it')}")
    return int(any("survives" not in changes[x] for x in survivors))


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except ValueError as error:
        sys.exit(str(error))
