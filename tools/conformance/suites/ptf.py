"""Tests with PTF, as their own script runs them: compile, start a switch, start ptf."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from tools.conformance.suites.environment import Ended, SuiteEnvironment
from tools.conformance.suites.result import Outcome, SuiteResult

TIME_LIMIT_S = 300.0

_TEST = re.compile(r"^(?P<name>[\w.]+) \.\.\. (?:(?!^[\w.]+ \.\.\. ).)*?(?P<end>\bok|\bFAIL|\bERROR)$", re.M | re.S)
_BEGUN = re.compile(r"^([\w.]+) \.\.\. ", re.M)
_TRACEBACK = re.compile(r"^(?:ERROR|FAIL): (?P<name>[\w.]+)\n-{20,}\n(?P<text>.*?)(?=^={20,}$|^-{20,}$)", re.M | re.S)
_OUTCOMES: dict[str, Outcome] = {"ok": "passed", "FAIL": "failed", "ERROR": "failed"}
_REFUSED = re.compile(r"^(?:p4c\S*: .*|.*: error: .*|gradbed: .*)$", re.M)


def run_script(script: Path, name: str, env: SuiteEnvironment) -> list[SuiteResult]:
    """Run a script that compiles, starts the switch and ptf; one result for each test, named after `name`."""
    ended = env.run(["bash", str(script)], cwd=script.parent, time_limit_s=TIME_LIMIT_S)
    return results_of(ended, name, TIME_LIMIT_S)


def results_of(ended: Ended, name: str, time_limit_s: float) -> list[SuiteResult]:
    """Read what ptf wrote about each test; one result for all if it ran none."""
    reasons = {found["name"]: last_error(found["text"]) for found in _TRACEBACK.finditer(ended.output)}
    done = {}
    for found in _TEST.finditer(ended.output):
        test, outcome = found["name"], _OUTCOMES[found["end"]]
        done[test] = SuiteResult(f"{name} {test}", outcome, reasons.get(test, "") if outcome != "passed" else "")
    begun = [test for test in _BEGUN.findall(ended.output) if test not in done]
    results = [*done.values()]
    if ended.status is None:
        results += [
            SuiteResult(f"{name} {test}", "stopped", f"after {time_limit_s:g} s") for test in begun or ["(start)"]
        ]
    elif not results:
        refused = _REFUSED.search(ended.output)
        reason = refused[0] if refused else last_error(ended.output)
        results = [SuiteResult(name, "refused" if refused else "failed", reason)]
    return results


def last_line(text: str) -> str:
    """Return the last line that is not empty: of a traceback, what was raised."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else ""


def last_error(output: str) -> str:
    """Return the last line that names an exception, otherwise the last line."""
    raised = re.findall(r"^\w[\w.]*(?:Error|Exception|NotFound)\b.*$", output, re.M)
    return raised[-1] if raised else last_line(output)


def named(scripts: Iterable[Path], folder: Path) -> dict[str, Path]:
    """Name scripts by their folder, and by their own name if it says more than runptf."""
    names = {}
    for script in sorted(scripts):
        variant = script.stem.removesuffix("runptf").strip("-")
        place = script.parent.relative_to(folder).as_posix()
        names[f"{place}/{variant}" if variant else place] = script
    return names
