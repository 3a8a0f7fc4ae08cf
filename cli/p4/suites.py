"""gradbed p4 conformance of PI, p4-guide, finsy, p4runtime-shell and tutorials: their own tests on our switch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from gradbed.emulation.suites import OUTCOMES, Checkout, Stopped, read_version, run_suite

REASON_CHARACTERS = 200


def print_suite(checkout: Checkout, python: Path, only: Sequence[str], expected: frozenset[str] | None) -> int:
    """Run the tests of a checkout and print a line for each, then the counts. 1 if one that must pass does not.

    expected: names of tests that must pass; None: all that can be run here.
    """
    outcomes = {}
    try:
        for result in run_suite(checkout, python, only):
            outcomes[result.name] = result.outcome
            reason = f": {shortened(result.reason)}" if result.reason else ""
            print(f"{result.name}  {result.outcome}{reason}", flush=True)
    except Stopped as stopped:
        return stopped.status
    counts = Counter(outcomes.values())
    run = len(outcomes) - counts["not run"]
    print(f"\n{counts['passed']} of {run} passed")
    for outcome, meaning in OUTCOMES.items():
        if counts[outcome]:
            print(f"{counts[outcome]:4} {outcome}: {meaning}")
    print_version(checkout.suite.name, checkout.folder)
    required = {name for name, outcome in outcomes.items() if outcome != "not run"} if expected is None else expected
    failed = sorted(name for name in required if outcomes.get(name) != "passed")
    if expected is not None:
        print(f"must pass: {len(required)}; failed or missing: {', '.join(failed) or 'none'}")
    return 1 if failed else 0


def print_version(name: str, folder: Path) -> None:
    """Print the commit that was tested, if the folder is the top of a checkout."""
    version = read_version(folder)
    if version is not None:
        print(f"{name} {version}")


def shortened(text: str) -> str:
    """The text on one line, cut where it is too long for a table."""
    line = " ".join(text.split())
    return line if len(line) <= REASON_CHARACTERS else f"{line[: REASON_CHARACTERS - 3]}..."
