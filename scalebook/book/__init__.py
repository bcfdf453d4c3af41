"""What only the book needs: drawings of its chapters, and its planner. It stands in the repository, not in the wheel.

`scalebook.book.drawings` is the folder `book/drawings`, and `scalebook.book.planner` is `book/planner`. A clone of the
repository has both next to the package. Where only the package is installed, an import raises ImportError.

>>> from scalebook.book import drawings
>>> drawings.ring(4).title
'A ring all-reduce of 4 devices'
"""

from pathlib import Path

_BOOK = Path(__file__).resolve().parents[2] / "book"
if not (_BOOK / "drawings").is_dir():
    raise ImportError(
        "the drawings and the planner belong to the book, and pip installs only the package: "
        "git clone https://github.com/scalebook/scalebook, and run this notebook there with `make lab`",
        name=__name__,
    )
__path__ = [str(_BOOK)]
