"""Measure what a round of gradients costs on the virtual clock, and where that time goes.

Eight workers on a k=4 fat-tree send 600 fragments each, which switches sum on their way. The processor time of a
round is the difference between a long run and a short one, so that starting up does not count.
"""

from __future__ import annotations

import cProfile
import pstats
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gradbed.experiments.scale import Scale
from gradbed.experiments.study.running.executors import run_single_trial
from gradbed.experiments.systems.aggregation.configuration import AggregationConfiguration
from gradbed.experiments.tables.console import Columns, make_console, rows_table

FRAGMENTS = 600
SHORT_ROUNDS, LONG_ROUNDS = 1, 6
GOAL_S = 2.0
SHOWN = 8
ROOT = Path(__file__).resolve().parents[2]

Function = tuple[str, int, str]
"""File, line and name, as pstats has them."""


def configuration(rounds: int) -> AggregationConfiguration:
    """Return the run without interrupt coalescing: every packet wakes its agent."""
    lanes = 352
    return AggregationConfiguration.model_validate(
        {
            "clock": "virtual",
            "topology": {"kind": "fat-tree:4"},
            "switches": {"programmable": 2},
            "workload": {"workers": 8, "lanes": lanes, "values": FRAGMENTS * lanes, "rounds": rounds},
        }
    )


def processor_s(rounds: int) -> float:
    """Return the processor time of a whole run; its sums have to be right."""
    before_s = time.process_time()
    trial = run_single_trial("aggregation", configuration(rounds), Scale())
    assert not trial.failures, trial.failures
    return time.process_time() - before_s


def run_bench_rounds(repetitions: int = 3) -> int:
    """Measure and print both; exit status 1 if a round takes more than the goal."""
    processor_s(SHORT_ROUNDS)  # loads modules, compiles programs
    spans = [
        (processor_s(LONG_ROUNDS) - processor_s(SHORT_ROUNDS)) / (LONG_ROUNDS - SHORT_ROUNDS)
        for _ in range(repetitions)
    ]
    round_s = sorted(spans)[repetitions // 2]
    console = make_console()
    console.print(
        f"A round of eight workers with {FRAGMENTS} fragments each takes {round_s:.2f} s of processor time "
        f"(median of {repetitions}; goal: less than {GOAL_S:g} s)."
    )
    columns: Columns = (("module", lambda row: row[0]), ("of the time", lambda row: f"{100 * row[1]:.0f} %"))
    title = "Where a run's time goes, as a profiler sees it"
    console.print(rows_table(title, columns, parts(LONG_ROUNDS)[:SHOWN], words=("module",)))
    return int(round_s >= GOAL_S)


def parts(rounds: int) -> list[tuple[str, float]]:
    """Return the modules of gradbed by their share of a run's time, the largest first.

    The time of libraries is counted for the module that calls them.
    """
    profile = cProfile.Profile()
    profile.enable()
    run_single_trial("aggregation", configuration(rounds), Scale())
    profile.disable()
    return shares(pstats.Stats(profile))


def shares(stats: pstats.Stats) -> list[tuple[str, float]]:
    """Return the same as `parts` does, of a profile."""
    functions: Mapping[Function, Any] = stats.stats  # type: ignore[attr-defined]
    known: dict[Function, dict[str, float]] = {}

    def owners(function: Function) -> dict[str, float]:
        """The modules that a function works for, by their part of its time."""
        if function not in known:
            known[function] = {"the rest": 1.0}  # until it is known: functions may call each other in circles
            module = _module(function)
            callers = functions[function][4] if function in functions else {}
            whole_s = sum(span_s for *_, span_s in callers.values())
            if module is not None:
                known[function] = {module: 1.0}
            elif whole_s > 0:
                found: Counter[str] = Counter()
                for caller, (*_, span_s) in callers.items():
                    for owner, part in owners(caller).items():
                        found[owner] += part * span_s / whole_s
                known[function] = dict(found)
        return known[function]

    spent: Counter[str] = Counter()
    for function, (_, _, own_s, *_) in functions.items():
        for owner, part in owners(function).items():
            spent[owner] += part * own_s
    total_s = sum(spent.values())
    return [(module, span_s / total_s) for module, span_s in spent.most_common()]


def _module(function: Function) -> str | None:
    """Return the file of a function of gradbed; None for a library's."""
    file = Path(function[0])
    if not file.is_relative_to(ROOT) or "site-packages" in file.relative_to(ROOT).parts:
        return None
    return str(file.relative_to(ROOT))
