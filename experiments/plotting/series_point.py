"""One place of a curve."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gradbed.experiments.fidelity.report import VerdictWord


@dataclass(frozen=True)
class SeriesPoint:
    """The repetitions at one place of one series. values: of runs that were not invalid and did not fail.
    other_clock: of those that were repeated on the other clock; verdict knows nothing of them."""

    x: Any
    values: tuple[float, ...]
    invalid: tuple[float, ...]
    verdict: VerdictWord
    """The worst of the runs in `values`; invalid if there is none."""
    other_clock: tuple[float, ...] = ()
