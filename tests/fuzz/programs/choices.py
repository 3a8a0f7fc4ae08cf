"""The choices that make a random program: drawn from a seed, kept, and played back when a case is shrunk."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

T = TypeVar("T")


@dataclass
class Choices:
    """A stream of numbers below a bound. The smaller a number, the simpler what comes of it.

    source: where new numbers come from; None: from `replayed` alone, and 0 behind its end.
    """

    source: random.Random | None
    replayed: Sequence[int] = ()
    drawn: list[int] = field(default_factory=list)
    spans: list[tuple[int, int]] = field(default_factory=list)
    """Begin and end, in `drawn`, of what belongs together: a statement, an expression, a declaration."""

    def below(self, bound: int) -> int:
        if self.source is not None:
            number = self.source.randrange(bound)
        else:
            number = self.replayed[len(self.drawn)] % bound if len(self.drawn) < len(self.replayed) else 0
        self.drawn.append(number)
        return number

    def between(self, low: int, high: int) -> int:
        return low + self.below(high - low + 1)

    def chance(self, percent: int) -> bool:
        return self.below(100) >= 100 - percent

    def pick(self, offered: Sequence[T]) -> T:
        return offered[self.below(len(offered))]

    def weighted(self, offered: Sequence[tuple[int, T]]) -> T:
        number = self.below(sum(weight for weight, _ in offered))
        for weight, what in offered:
            if number < weight:
                return what
            number -= weight
        raise AssertionError("weights do not add up")

    def number(self, width: int) -> int:
        """Return a number that `width` bits hold: often a small one, or one at an edge."""
        full = (1 << width) - 1
        match self.below(6):
            case 0:
                return self.below(4) & full
            case 1:
                return full - self.below(2) & full
            case 2:
                return (1 << width - 1) - self.below(2) & full
            case 3:
                return 1 << self.below(width)
        return self.below(1 << width)

    @contextlib.contextmanager
    def span(self) -> Iterator[None]:
        first = len(self.drawn)
        yield
        self.spans.append((first, len(self.drawn)))
