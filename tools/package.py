"""Build the sdist and the wheel into dist/ and try both away from the checkout, as `make package` and CI do.

The sdist holds the files of the repository, no more and no fewer, and its tests run from where it is unpacked.  The
wheel, built from the sdist, runs the README's examples and imports every module in an environment without extras.
"""

import shutil
import subprocess
import sys
import tarfile
import tempfile
import venv
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parents[1]
UV = [sys.executable, "-m", "uv"]
MADE = {"PKG-INFO", "setup.cfg"}  # by setuptools, with scalebook.egg-info
# Every test is collected, so its imports are there; those run that read the most files beside the package.
# Asserts are left as they are: rewriting those of every file takes longer than the tests that run.
TESTS = ["-q", "--assert=plain", "-p", "no:cacheprovider", "tests", "-k", "test_environment or test_notebooks"]
MODULES = """
import importlib, pkgutil, sys, scalebook
assert scalebook.__file__.startswith(sys.prefix), scalebook.__file__
names = [m.name for m in pkgutil.walk_packages(scalebook.__path__, "scalebook.") if not m.name.endswith("__main__")]
names.remove("scalebook.book")  # which stands in the repository alone, and says so
for name in names:
    importlib.import_module(name)
print(f"wheel: scalebook {scalebook.__version__}, {len(names)} modules imported without extras")
"""

SAFELY = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}  # Python 3.11 before its fourth release has none


def run(*command, **options) -> str:
    """What a command prints; where it fails, its output is shown and this tool ends."""
    done = subprocess.run(
        [str(x) for x in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options
    )
    if done.returncode:
        sys.exit(f"{done.stdout}\nfailed: {' '.join(map(str, command))[:200]}")
    return done.stdout.strip()


def built() -> tuple[Path, Path]:
    """The sdist and the wheel in dist/, made anew."""
    # setuptools takes up again what an earlier list of sources names, and so would hide what MANIFEST.in forgets.
    shutil.rmtree(ROOT / "scalebook.egg-info", ignore_errors=True)
    shutil.rmtree(ROOT / "dist", ignore_errors=True)
    run(*UV, "build", "-q", "--build-constraints", "constraints.txt", "--out-dir", "dist", cwd=ROOT)
    [sdist], [wheel] = (ROOT / "dist").glob("*.tar.gz"), (ROOT / "dist").glob("*.whl")
    return sdist, wheel


def unlike(packed: set[str], kept: set[str]) -> str:
    """What a set of packed files lacks of those the repository keeps, and what it has beside them; empty if nothing."""
    packed = {x for x in packed if x not in MADE and not x.startswith("scalebook.egg-info/")}
    said = [("lacks", kept - packed), ("should not hold", packed - kept)]
    return "; ".join(f"the sdist {what} {', '.join(sorted(files))}" for what, files in said if files)


def try_sdist(sdist: Path, folder: Path) -> None:
    with tarfile.open(sdist) as packed:
        packed.extractall(folder, **SAFELY)
    [unpacked] = folder.iterdir()
    if (ROOT / ".git").exists():
        files = {str(p.relative_to(unpacked)) for p in unpacked.rglob("*") if p.is_file()}
        tracked = run("git", "ls-files", cwd=ROOT).splitlines()
        if problem := unlike(files, {x for x in tracked if (ROOT / x).exists()}):
            sys.exit(f"{problem}: see MANIFEST.in, or add a new file to git")
        print(f"{sdist.name}: the repository's {len(tracked)} files, {sdist.stat().st_size / 1e6:.1f} MB")
    where = "import scalebook; print(scalebook.__file__)"
    assert Path(run(sys.executable, "-c", where, cwd=unpacked)).is_relative_to(unpacked)
    print("sdist:", run(sys.executable, "-m", "pytest", *TESTS, cwd=unpacked).splitlines()[-1])


def try_wheel(wheel: Path, folder: Path) -> None:
    venv.create(folder / "env", with_pip=False)
    python = folder / ("env/Scripts/python.exe" if sys.platform == "win32" else "env/bin/python")
    run(*UV, "pip", "install", "-q", "--python", python, "-c", ROOT / "constraints.txt", wheel, cwd=folder)
    print(run(python, "-c", MODULES, cwd=folder))
    run(python, "-m", "doctest", "-o", "NORMALIZE_WHITESPACE", "-o", "ELLIPSIS", ROOT / "README.md", cwd=folder)
    print("wheel: README.md's examples passed")


def main() -> None:
    sdist, wheel = built()
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other, ThreadPoolExecutor() as pool:
        tried = [
            pool.submit(try_sdist, sdist, Path(one).resolve()),
            pool.submit(try_wheel, wheel, Path(other).resolve()),
        ]
    for each in tried:
        each.result()


if __name__ == "__main__":
    main()
