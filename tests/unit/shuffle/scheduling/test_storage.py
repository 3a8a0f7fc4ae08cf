"""What workers store and need, epoch after epoch."""

from __future__ import annotations

from itertools import islice, pairwise

import pytest

from gradbed.common.errors import UserError
from gradbed.controller.systems.shuffle.scheduling.instance import Replacement, epochs

HOSTS = ["h1", "h2", "h3", "h4"]


@pytest.mark.parametrize("share", [0.25, 0.4, 1.0])
@pytest.mark.parametrize("replacement", ["random", "least-recent"])
def test_each_epoch_stores_what_the_last_one_needed(share: float, replacement: Replacement) -> None:
    shuffles = list(islice(epochs(HOSTS, [10] * 40, share, 1, replacement), 4))
    for instance in shuffles:
        assert sorted(sample for needed in instance.needed for sample in needed) == list(range(40))
        assert [len(stored) for stored in instance.stored] == [round(share * 40)] * 4
    for before, after in pairwise(shuffles):
        for worker in range(4):
            kept = set(after.stored[worker])
            assert set(before.needed[worker]) <= kept
            assert kept <= {*before.needed[worker], *before.stored[worker]}


def test_least_recent_keeps_what_was_needed_last() -> None:
    first, second, third = islice(epochs(HOSTS, [10] * 40, 0.5, 1, "least-recent"), 3)
    for worker in range(4):
        assert {*first.needed[worker], *second.needed[worker]} <= set(third.stored[worker])


@pytest.mark.parametrize("share", [0.0, 0.2, 1.1])
def test_shares_that_cannot_be(share: float) -> None:
    with pytest.raises(UserError, match="between 1/4 and 1"):
        next(epochs(HOSTS, [10] * 40, share, 1))
