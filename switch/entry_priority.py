"""Priorities of the entries that a program brings along.

In BMv2 JSON the smallest number is looked at first; everywhere else here, as in P4Runtime, the largest wins.
"""

from __future__ import annotations

from collections.abc import Sequence

# The compiler writes an entry with a priority of its own, P, as GREATEST_RANK - P, so that P comes out again.
GREATEST_RANK = 2**31 - 1
_FIRST_EXPLICIT_RANK = 2**30


def initial_priorities(ranks: Sequence[int]) -> list[int]:
    """Priorities of a table's initial entries from their "priority" in BMv2 JSON, in the same order.

    N entries that are ranked by position have priorities N..1 (P4Runtime specification 1.4, "Constant Tables").
    """
    last = max(ranks, default=0)
    if last >= _FIRST_EXPLICIT_RANK:
        return [GREATEST_RANK - rank for rank in ranks]
    return [last + 1 - rank for rank in ranks]
