"""What a check found wrong, in words for the student."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class Detail(NamedTuple):
    """A labelled line of a finding."""

    label: str
    """A word such as "packet"; empty: a further line of the label before."""
    text: str


@dataclass(frozen=True)
class SolutionFinding:
    """A fault that a check found in a solution."""

    what: str
    """One line."""
    details: tuple[Detail, ...] = ()


@dataclass(frozen=True)
class CheckOutcome:
    """The outcome of one check of a solution."""

    name: str
    finding: SolutionFinding | None
    """What is wrong; None if the check passed."""


class Refusal(Exception):
    """Raised by a check: one line, with what was expected and what came instead."""

    def __init__(self, what: str, expected: str = "", came: str = "") -> None:
        super().__init__(what)
        self.finding = SolutionFinding(
            what,
            tuple(Detail(label, text) for label, text in (("expected", expected), ("came out", came)) if text),
        )
