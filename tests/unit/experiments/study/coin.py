"""A system that needs no network: throws coins, and leaves a trace of every run."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Mapping
from pathlib import Path

from pydantic import Field

from experiments import system
from experiments.configuration.point import PointConfiguration
from experiments.configuration.sections import Section
from experiments.fidelity.report import FidelityReport, VerdictWord
from experiments.system import Metric, PointResult, PointTask, System

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

    def canonical(self) -> CoinConfiguration:
        return self.model_copy(update={"coins": self.coins.model_copy(update={"ignored": 0})})


class CoinSystem(System):
    configuration = CoinConfiguration
    service = ""
    assurance = "No coin stands on its edge."
    metrics: Mapping[str, Metric] = {
        "heads": Metric("", "coins that showed heads"),
        "throughput_bps": Metric("bit/s", "made up", "rate"),
        "time_s": Metric("s", "made up too", "time"),
        "limit": Metric("", "all coins"),
    }
    needs_network = False

    def check(self, configuration: PointConfiguration) -> None:
        assert isinstance(configuration, CoinConfiguration)
        if configuration.coins.count == 13:
            raise ValueError("thirteen coins bring bad luck")

    def run(self, task: PointTask) -> PointResult:
        assert isinstance(task.configuration, CoinConfiguration)
        coins = task.configuration.coins
        if trace := os.environ.get(TRACE):
            with Path(trace).open("a") as file:
                file.write(f"{coins.count} {task.seed}\n")
        time.sleep(coins.sleep_s)
        if coins.ends == "broken":
            raise RuntimeError("the coin rolled away")
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


system.SYSTEMS["coins"] = f"{__name__}:CoinSystem"
