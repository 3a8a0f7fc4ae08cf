"""What became of one test of another repository."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Outcome = Literal["passed", "failed", "refused", "stopped", "not run"]

OUTCOMES: dict[Outcome, str] = {
    "passed": "the test passed",
    "failed": "the test failed, or could not start",
    "refused": "our compiler or our switch refused what the test gave it",
    "stopped": "took longer than its time limit",
    "not run": "needs what is not there",
}


@dataclass(frozen=True)
class SuiteResult:
    """What became of one test."""

    name: str
    outcome: Outcome
    reason: str = ""
    """One line; empty if the test passed."""
