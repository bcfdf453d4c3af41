"""Code that only the book needs, in folders of `book`: claims, drawings, errors measured, pages and the planner.

`scalebook.book.claims` is the folder `book/claims`. A clone of the repository has it beside the package. Where only
the package is installed, an import raises ImportError.

>>> from scalebook.book import drawings
>>> drawings.ring(4).title
'A ring all-reduce of 4 devices'
"""

from pathlib import Path

_BOOK = Path(__file__).resolve().parents[2] / "book"
if not (_BOOK / "drawings").is_dir():
    raise ImportError(
        "claims, drawings and the planner belong to the book, and pip installs only the package: "
        "git clone https://github.com/scalebook/scalebook, and run this notebook there with `make lab`",
        name=__name__,
    )
__path__ = [str(_BOOK)]
