"""A system that needs no network: throws coins, and leaves a trace of every run."""

from __future__ import annotations

import contextlib
import os
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import Field

from gradbed.common.errors import UserError
from gradbed.experiments import systems
from gradbed.experiments.configuration.sections import Section
from gradbed.experiments.configuration.trial import TrialConfiguration
from gradbed.experiments.phases import PhaseResult, Trial, TrialResult
from gradbed.experiments.results.study_results import StudyResults
from gradbed.experiments.setup import TrialTask
from gradbed.experiments.study.running.executors import RunOptions
from gradbed.experiments.study.running.worker import Outcome, run_task
from gradbed.experiments.system import System, SystemReport
from gradbed.experiments.tables.metric import Metric
from gradbed.experiments.validity.verdict import ValidityReport, VerdictWord

TRACE = "GRADBED_TEST_TRACE"
"""Environment variable: a file to which every run adds a line."""


class Coins(Section):
    count: int = Field(default=10, ge=1)
    bias: float = Field(default=0.5, ge=0, le=1)
    verdict: VerdictWord = "valid"
    sleep_s: float = 0.0
    ends: str = ""
    ignored: int = 0


class CoinConfiguration(TrialConfiguration):
    coins: Coins = Coins()

    def chance(self) -> tuple[str, ...]:
        return (*super().chance(), *(["sides"] if 0 < self.coins.bias < 1 else []))

    def canonical(self) -> CoinConfiguration:
        return self.model_copy(update={"coins": self.coins.model_copy(update={"ignored": 0})})


class CoinSystem(System[CoinConfiguration]):
    """Throw coins."""

    name = "coins"
    configuration = CoinConfiguration
    service = ""
    metrics: Mapping[str, Metric] = {
        "heads": Metric("", "coins that showed heads"),
        "throughput_bps": Metric("bit/s", "made up", "rate"),
        "time_s": Metric("s", "made up too", "time"),
        "limit": Metric("", "all coins"),
    }
    report = SystemReport(
        assurance="No coin stands on its edge.",
    )

    def check(self, configuration: CoinConfiguration) -> None:
        if configuration.coins.count == 13:
            raise ValueError("thirteen coins bring bad luck")

    def present(self, results: StudyResults, console: Any) -> None:
        console.print(f"{results.trials[0].row['heads']} heads")

    def trial(self, task: TrialTask[CoinConfiguration]) -> CoinTrial:
        return CoinTrial(task)


class CoinTrial(Trial[CoinConfiguration]):
    """Of no phases: it is computed."""

    def result(self, measured: Sequence[PhaseResult]) -> TrialResult:
        task, coins = self.task, self.configuration.coins
        if trace := os.environ.get(TRACE):
            with Path(trace).open("a") as file:
                file.write(f"{coins.count} {task.seed}\n")
        time.sleep(coins.sleep_s)
        if coins.ends == "broken":
            raise RuntimeError("the coin rolled away")
        if coins.ends == "stuck":
            raise UserError(f"no answer for {coins.count} s")
        if coins.ends == "interrupt":
            raise KeyboardInterrupt
        draw = random.Random(task.seed)
        thrown = [draw.random() < coins.bias for _ in range(coins.count)]
        return TrialResult(
            metrics={"heads": sum(thrown), "limit": coins.count, "throughput_bps": 5e6, "time_s": 2.0},
            validity=ValidityReport(verdict=coins.verdict, reasons=() if coins.verdict == "valid" else ("made so",)),
            decisions={"thrown": thrown},
            tables={"throws": [{"throw": i, "heads": h} for i, h in enumerate(thrown)]},
            failures=["a coin stands on its edge"] if coins.ends == "edge" else [],
        )


systems.SYSTEMS["coins"] = f"{__name__}:CoinSystem"


class InThisProcess:
    """An executor for tests: one trial after the other, without sandbox and without other processes."""

    def __init__(self, tasks: Sequence[TrialTask]) -> None:
        self._tasks = tasks

    def results(self, on_start: Callable[[TrialTask], None]) -> Iterator[tuple[TrialTask, Outcome]]:
        for task in self._tasks:
            if len(self._tasks) > 1:
                on_start(task)
            yield task, run_task(task)


@contextlib.contextmanager
def in_this_process(tasks: Sequence[TrialTask], options: RunOptions) -> Iterator[InThisProcess]:
    """In place of gradbed.experiments.study.running.executors.open_executor."""
    yield InThisProcess(tasks)
