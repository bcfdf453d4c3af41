"""Formulas for the memory, time and cost of large language models, each with a source and a checked derivation.

>>> import scalebook
>>> row = scalebook.decoding(scalebook.models.llama3_8b, scalebook.accelerators.h100, batch=1, context=8192,
...                          weight_bits=16, kv_bits=16)
>>> round(row.token_time * 1e3, 2)
4.8
>>> scalebook.trainig_step
Traceback (most recent call last):
    ...
AttributeError: scalebook has no 'trainig_step'; did you mean 'training_step', 'links' or 'decoding'?
"""

__version__ = "0.1.0"  # the only place; pyproject.toml and a test of CITATION.cff read it

# The rooms, in the order a reader meets them: a module imports from its own room and from those before it.
ROOMS = (
    "language", "tables", "machine", "block", "attention", "pipeline", "memory", "offload", "search", "inference",
    "training", "rl", "runs", "answers", "flags", "calculon", "shell", "measurements", "measure",
    "display", "book",
)  # fmt: skip

# The ten names that a reader types first, and where they are: what is known (three tables), what is asked of it (a
# training step, a step of decoding, the best of many, how far off), the same with sliders, and what formulas of one's
# own are made of.
_FIRST = {
    "accelerators": "tables", "models": "tables", "links": "tables", "training_step": "training",
    "decoding": "inference",
    "search": "search", "confront": "measurements", "calculator": "display", "formula": "language", "Sheet": "language",
}  # fmt: skip
__all__ = [*_FIRST]

# What is shown of a formula and of a row, what an error says of other sheets, the counts of a model that was read,
# whose letters a search completes, and what it adds to a step: the rooms that ask for these here stand before theirs.
_SHOWN = {
    "coloured_terms": "display.meanings", "row_page": "display.row_page", "things_with": "shell.named",
    "training_step": "training.step", "serve": "inference.serving",
    "answer_of": "answers.answer", "row_as_dict": "answers.answer", "table_of": "answers.answer",
    "with_bill": "answers.costs", "counts": "block.counts",
}  # fmt: skip


def _shown_by(name):
    """Return the function of a later room that the language shows something with, such as `row_page`."""
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_SHOWN[name]}"), name)


def __getattr__(name):
    from importlib import import_module  # here, so that the package's own import costs nothing

    if name in _FIRST:
        found = getattr(import_module(f"{__name__}.{_FIRST[name]}"), name)
        return globals().get(name, found)  # `search` is a package too, always the same, and can be called
    if not name.startswith("_"):
        from .language.notation import nearest

        said = f"import scalebook.{name} first" if name in ROOMS else nearest(name, _FIRST)
        raise AttributeError(f"scalebook has no {name!r}; {said}", name="", obj=None)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted({*globals(), *_FIRST})
