"""What four articles claim, sentence by sentence, and what holds: every number recomputed when it is asked for.

>>> from scalebook.claims import claims
>>> claims["tf32"].verdict, claims["tf32"].recomputed()
('holds only with sparsity', 'holds only with sparsity')
>>> claims["t32"]
Traceback (most recent call last):
    ...
KeyError: "no claim is called 't32'; did you mean 'tf32'?"
"""

from . import arithmetic
from .arithmetic import *
from .check import VERDICTS, Check, Point
from .ledger import ARTICLES, Claim, Claims, claims, digest

__all__ = ["ARTICLES", "VERDICTS", "Check", "Claim", "Claims", "Point", "claims", "digest", *arithmetic.__all__]
