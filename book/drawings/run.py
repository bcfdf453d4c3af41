"""A drawing of a long run: work, checkpoints, a failure, and repeated work.

>>> checkpoint_timelines().title
'A failure between checkpoints'
"""

from collections.abc import Sequence

from scalebook.book.drawings.schematic import Scene

from scalebook.language import show

__all__ = ["checkpoint_timelines"]

LASTS, LOST, WAITS = 0.9, 0.25, 0.5  # shades


def checkpoint_timelines(
    intervals: Sequence[float] = (1440, 480),
    checkpoint_time: float = 60,
    restart_time: float = 300,
    failure: float = 2400,
    until: float = 3600,
) -> Scene:
    """Draw the same failure in runs with different checkpoint intervals. All arguments are in seconds.

    >>> "written 5 min, done again 4 min" in checkpoint_timelines().description
    True
    """
    if not 0 < failure < until:
        raise ValueError(f"a failure that is drawn comes between 0 and {until:g} s; this comes at {failure:g}")
    scene = Scene(
        "A failure between checkpoints",
        "Time runs to the right. Blue is work, green the writing of checkpoints, grey the restart. Faint is work that "
        "the failure takes with it: from the last checkpoint on it is done again. Rare checkpoints risk more, and "
        "frequent ones take more.",
    )
    unit = 338 / until
    for k, interval in enumerate(intervals):
        y = 20 + 64 * k
        parts = _parts(interval, checkpoint_time, restart_time, failure, until)
        written = sum(end - start for start, end, kind, _ in parts if kind == "memory")
        again = sum(end - start for start, end, _, shade in parts if shade == LOST)
        scene.note((0, y), f"every {show(interval, 's')}: written {show(written, 's')}, done again {show(again, 's')}")
        for start, end, kind, shade in parts:
            scene.tensor((1 + unit * start, y + 8), (shade,), kind, (unit * (end - start), 22))
        scene.arrow((1 + unit * failure, y + 44), (1 + unit * failure, y + 30), kind="waiting")
    scene.note((unit * failure, y + 57), "failure", "middle")
    return scene


def _parts(interval, checkpoint_time, restart_time, failure, until):
    """Return the pieces of a run in order: each piece's start and end, its kind, and the share of it that is kept."""
    parts, now = [], 0.0
    while now < until:
        for kind, takes in (("arithmetic", interval), ("memory", checkpoint_time)):
            end = min(now + takes, until)
            if now < failure <= end:
                begun = now if kind == "arithmetic" else parts.pop()[0]
                parts += [(begun, failure, "arithmetic", LOST), (failure, failure + restart_time, "waiting", WAITS)]
                now = failure + restart_time
                break
            if now < end:
                parts.append((now, end, kind, LASTS))
            now = end
    return parts
