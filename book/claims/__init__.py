"""The claims of four articles, sentence by sentence, and whether they hold.  Every number is recomputed on demand.

>>> from scalebook.book.claims import claims
>>> claims["tf32"].verdict, claims["tf32"].recomputed()
('holds only with sparsity', 'holds only with sparsity')
"""

from . import arithmetic
from .arithmetic import *
from .articles import Article, Articles, Heading, articles
from .check import VERDICTS, Check, Point
from .ledger import ARTICLES, Claim, Claims, claims, digest

__all__ = [
    "ARTICLES", "VERDICTS", "Article", "Articles", "Check", "Claim", "Claims", "Heading", "Point", "articles", "claims",
    "digest", *arithmetic.__all__,
]  # fmt: skip
