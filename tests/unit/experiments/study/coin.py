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
from gradbed.experiments.configuration.point import PointConfiguration
from gradbed.experiments.configuration.sections import Section
from gradbed.experiments.fidelity.verdict import FidelityReport, VerdictWord
from gradbed.experiments.phases import Measured, Point, PointResult
from gradbed.experiments.records.results import StudyResults
from gradbed.experiments.setup import PointTask
from gradbed.experiments.study.running.attempt import Outcome, attempt
from gradbed.experiments.study.running.measure import PointOrder
from gradbed.experiments.system import System
from gradbed.experiments.tables.metric import Metric

TRACE = "GRADBED_TEST_TRACE"
"""Environment variable: a file to which every run adds a line."""


class Coins(Section):
    count: int = Field(default=10, ge=1)
    bias: float = Field(default=0.5, ge=0, le=1)
    verdict: VerdictWord = "valid"
    sleep_s: float = 0.0
    ends: str = ""
    ignored: int = 0


class CoinConfiguration(PointConfiguration):
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
    assurance = "No coin stands on its edge."
    metrics: Mapping[str, Metric] = {
        "heads": Metric("", "coins that showed heads"),
        "throughput_bps": Metric("bit/s", "made up", "rate"),
        "time_s": Metric("s", "made up too", "time"),
        "limit": Metric("", "all coins"),
    }

    def check(self, configuration: CoinConfiguration) -> None:
        if configuration.coins.count == 13:
            raise ValueError("thirteen coins bring bad luck")

    def present(self, results: StudyResults, console: Any) -> None:
        console.print(f"{results.points[0].row['heads']} heads")

    def point(self, task: PointTask[CoinConfiguration]) -> CoinPoint:
        return CoinPoint(task)


class CoinPoint(Point[CoinConfiguration]):
    """Of no phases: it is computed."""

    def result(self, measured: Sequence[Measured]) -> PointResult:
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
        return PointResult(
            metrics={"heads": sum(thrown), "limit": coins.count, "throughput_bps": 5e6, "time_s": 2.0},
            fidelity=FidelityReport(verdict=coins.verdict, reasons=() if coins.verdict == "valid" else ("made so",)),
            decisions={"thrown": thrown},
            tables={"throws": [{"throw": i, "heads": h} for i, h in enumerate(thrown)]},
            failures=["a coin stands on its edge"] if coins.ends == "edge" else [],
        )


systems.SYSTEMS["coins"] = f"{__name__}:CoinSystem"


class InThisProcess:
    """An executor for tests: one point after the other, without sandbox and without other processes."""

    def __init__(self, orders: Sequence[PointOrder]) -> None:
        self._orders = orders

    def results(self, on_start: Callable[[PointOrder], None]) -> Iterator[tuple[PointOrder, Outcome]]:
        for order in self._orders:
            if len(self._orders) > 1:
                on_start(order)
            yield order, attempt(order)


@contextlib.contextmanager
def in_this_process(
    orders: Sequence[PointOrder], jobs: int | None, scheduler: str | None, onlooker: object = None
) -> Iterator[InThisProcess]:
    """In place of gradbed.experiments.study.runner.executor."""
    yield InThisProcess(orders)
