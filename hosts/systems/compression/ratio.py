"""How much of a gradient to send when the rate has fallen: the source's rule, and the repaired one."""

from __future__ import annotations

from typing import Literal

RatioRule = Literal["none", "source", "repaired"]


def source_ratio(sent: float, total: float, initial_rate: float, rate: float) -> float:
    """The source's formula to the letter: (sent + remaining x (R0 - R) / R0) / total.

    sent, total: bytes of the gradient that have been sent, and all of them. An unchanged rate gives sent / total, so
    that nothing more is sent; the more the rate falls, the more is kept. Not limited to 0 to 1.
    """
    if not total:
        return 1.0
    return (sent + (total - sent) * (initial_rate - rate) / initial_rate) / total


SUM_MOST = 0.5
"""Of what the rate would still carry of a gradient, the part that is given up at most for the sum."""


def repaired_ratio(
    sent: float, total: float, initial_rate: float, rate: float, floor: float = 0.0, sum_share: float = 0.0
) -> float:
    """(sent + remaining x min(1, R / R0)) / total, of what is left at least the part `floor`.

    Between sent / total and 1, never less for a higher rate, and 1 exactly if R >= R0 or nothing is left. At rate R0
    until now and R from now on, the gradient takes total / R0, whatever R is.

    sum_share: bytes that come back in place of a worker's gradient, over the link that is slower now. What they take
    longer the gradient is to take less, so that both together take as long as they would have; but no more than half
    of what is sent otherwise is left out for them.
    """
    remaining = total - sent
    if remaining <= 0 or rate >= initial_rate:
        return 1.0
    part = rate / initial_rate
    kept = max((1 - SUM_MOST) * remaining * part, remaining * part - sum_share * (1 - part))
    return (sent + max(floor * remaining, kept)) / total
