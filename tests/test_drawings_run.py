"""The drawing of a run that fails: as every drawing, and with no second lost or counted twice."""

from itertools import pairwise

import pytest
from scalebook.book.drawings.run import LOST, _parts, checkpoint_timelines

from tests.test_schematics import (  # noqa: F401 (what every drawing must be)
    test_it_has_the_colours_of_the_vocabulary_in_both_schemes,
    test_it_is_well_formed_and_says_what_it_shows,
    test_its_text_stays_on_it_and_is_large_enough_on_a_phone,
)


@pytest.fixture
def scene():
    return checkpoint_timelines()


@pytest.mark.parametrize("interval", [300, 480, 1440, 5000])
@pytest.mark.parametrize("failure", [10, 510, 1800, 2430])
def test_pieces_follow_each_other_and_what_is_lost_began_at_the_last_checkpoint(interval, failure):
    parts = _parts(interval, 60, 300, failure, 3600)
    assert parts[0][0] == 0 and parts[-1][1] >= 3600
    assert all(a[1] == b[0] for a, b in pairwise(parts))
    [lost] = [x for x in parts if x[2:] == ("arithmetic", LOST)]
    before = parts[parts.index(lost) - 1] if lost[0] else None
    assert lost[1] == failure and (before is None or before[2] == "memory")


def test_a_failure_that_is_not_drawn_is_refused():
    with pytest.raises(ValueError, match=r"^a failure that is drawn comes between 0 and 3600 s; this comes at 4000$"):
        checkpoint_timelines(failure=4000)
