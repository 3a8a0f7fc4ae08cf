"""Training on several threads is the same, to the last number, as on one."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from gradbed.common.errors import UserError
from gradbed.experiments.results.run_folder import TrialRecord
from gradbed.experiments.scale import Scale
from gradbed.experiments.setup import TrialTask
from gradbed.experiments.study.running.executors import run_single_trial
from gradbed.experiments.study.running.worker import BrokenTrial, run_task
from gradbed.experiments.systems import find_system
from gradbed.experiments.systems.training.configuration import TrainingConfiguration
from gradbed.hosts.collectives.schedule import Operation
from gradbed.hosts.systems.training.collectives.algorithms import algorithms
from gradbed.switch.virtual import SimulatedNetwork, Stop

KINDS = ("fat-tree:4", "leaf-spine:2,3,3", "torus:3,2,2", "dragonfly:2,4,2")
AFTER_EVENTS, FEWEST_EVENTS = 3, 0
"""Side by side almost from the beginning, however little there is to do."""


class Windows:
    """Let logical processes be worked on side by side wherever that is right, and sees whether any were."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.begun = False
        expect_no_messages, run_until = SimulatedNetwork.expect_no_messages, SimulatedNetwork.run_until

        def eager(simulated: SimulatedNetwork) -> None:
            expect_no_messages(simulated)
            simulated.engine.call("set_lookahead_windows", AFTER_EVENTS, FEWEST_EVENTS)

        def noting(simulated: SimulatedNetwork, time_ns: int | None) -> Stop:
            stop = run_until(simulated, time_ns)
            self.begun = self.begun or "logical-process" in thread_names()
            return stop

        patch.setattr(SimulatedNetwork, "expect_no_messages", eager)
        patch.setattr(SimulatedNetwork, "run_until", noting)


def thread_names() -> set[str]:
    return {each.read_text().strip() for each in Path("/proc/self/task").glob("*/comm")}


def on_threads(threads: int, sections: dict[str, Any], seed: int = 1) -> TrialRecord:
    system = find_system("training")
    configuration = system.configuration.model_validate({"clock": "virtual", **sections}).canonical()
    return run_single_trial("training", configuration, Scale(), seed, threads=threads)


def drawn(number: int) -> dict[str, Any]:
    """A configuration by chance. Links are slow or fast beside their delays, perfect or not; something may fail."""
    chance = random.Random(number)
    operation = chance.choice(list(Operation))
    link = {
        "rate_mbps": chance.choice((1_000, 10_000, 100_000)),
        "delay_us": chance.choice((1, 2, 5)),
        "queue_packets": chance.choice((30, 4096)),
        "loss": chance.choice((0, 0, 0.01)),
        "jitter_us": chance.choice((0, 0, 1)),
        "reorder": chance.random() < 0.3,
        "duplicate": chance.choice((0, 0, 0.02)),
        "pfc_xoff_bytes": chance.choice((0, 0, 40_000)),
    }
    link["jitter_us"] = min(link["jitter_us"], link["delay_us"] - 1)
    if link["pfc_xoff_bytes"]:
        link["reorder"] = False
    return {
        "topology": {"kind": chance.choice(KINDS), "link": link},
        "workload": {
            "operation": operation.value,
            "size_bytes": chance.choice((1_000, 60_000, 400_000)),
            "repetitions": chance.choice((1, 2)),
        },
        "ranks": {
            "jobs": chance.choice((1, 1, 2)),
            "placement": chance.choice(("in-order", "striped", "random")),
        },
        "collectives": {
            "algorithm": chance.choice(("auto", *(each.value for each in algorithms(operation)))),
            "chunks": chance.choice((1, 3)),
            "contents": chance.random() < 0.5,
        },
        "transport": {
            "congestion_control": chance.choice(("none", "dctcp", "dcqcn")),
            "recovery": chance.choice(("go-back-n", "selective-repeat")),
            "mtu_bytes": chance.choice((1_024, 4_096)),
            "timeout_us": chance.choice((50, 1_000)),
            "give_up_after": chance.choice((30, 1_000)),
        },
        "switches": {"balancing": chance.choice(("ecmp", "random-spraying", "round-robin-spraying", "flowlets"))},
    }


def outcome(threads: int, sections: dict[str, Any], seed: int) -> TrialRecord | str:
    """What is kept of it, or why it has no result."""
    try:
        return on_threads(threads, sections, seed)
    except UserError as error:
        return str(error)


def check_the_same(numbers: range, patch: pytest.MonkeyPatch) -> None:
    windows, begun = Windows(patch), 0
    for number in numbers:
        sections = drawn(number)
        expected = outcome(1, sections, number)
        windows.begun = False
        assert outcome(2 + number % 3, sections, number) == expected, (number, sections)
        begun += windows.begun
    assert begun > len(numbers) / 2


@pytest.mark.thorough
def test_some_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    check_the_same(range(12), monkeypatch)


@pytest.mark.nightly
def test_many_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    check_the_same(range(12, 212), monkeypatch)


def test_who_can_do_with_one_thread_alone(tmp_path: Path) -> None:
    real = TrainingConfiguration(clock="real")
    refused = run_task(TrialTask(real, 1, Scale(), tmp_path, threads=2, system="training"))
    assert isinstance(refused, BrokenTrial)
    assert refused.reason.startswith("--threads needs the virtual clock: use --clock virtual")
    ndn = find_system("ndn").configuration.model_validate({"clock": "virtual"}).canonical()
    with pytest.raises(UserError, match=r"--threads: a switch of ndn may tell its controller something"):
        run_single_trial("ndn", ndn, Scale(), threads=2)
    with pytest.raises(UserError, match=r"1 to \d+ threads, not 1000"):
        on_threads(1000, {})
