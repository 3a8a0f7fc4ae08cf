"""Trials on the virtual clock leave the same bytes whatever else the machine does: rows, counters, captures."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import pytest

from gradbed.experiments.scale import Scale
from gradbed.experiments.setup import TrialTask
from gradbed.experiments.study.running.executors import ParallelExecutor
from gradbed.experiments.study.running.worker import BrokenTrial
from tests.unit.experiments.virtual_trials import configuration

CONFIGURATION = configuration(
    link={"loss": 0.03, "duplicate": 0.03, "jitter_us": 80, "reorder": True},
    timing={"compute_us": 500, "compute_distribution": "exponential", "control_delay_us": 200},
    faults=[{"at_ms": 4.2, "fault": "switch-restart", "switch": "s1"}],
)


def tasks(folder: Path, seeds: Sequence[int]) -> list[TrialTask]:
    return [
        TrialTask(
            CONFIGURATION, seed, Scale(), folder / str(seed), capture=True, system="aggregation", digest=str(seed)
        )
        for seed in seeds
    ]


def digests(folder: Path, processes: int, seeds: Sequence[int] = (1, 2)) -> dict[str, str]:
    """Of each trial: everything that is kept of it, and every file that it left, by its name."""
    found = {}
    for task, outcome in ParallelExecutor(tasks(folder, seeds), processes).results(lambda task: None):
        assert not isinstance(outcome, BrokenTrial), outcome
        assert outcome.failures == []
        text = json.dumps(asdict(outcome), sort_keys=True)
        captures = sorted(task.folder.glob("pcap/*"))
        assert [file.name for file in captures] == ["h1.pcapng"]
        assert all(file.stat().st_size > 10_000 for file in captures)
        for file in captures:
            text += file.name + hashlib.sha256(file.read_bytes()).hexdigest()
        found[task.digest] = hashlib.sha256(text.encode()).hexdigest()
    return found


@contextmanager
def busy_processors() -> Iterator[None]:
    """Somebody else takes what there is of them."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(1)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


@pytest.mark.thorough
def test_neither_other_programs_nor_the_number_of_processes_change_a_byte(tmp_path: Path) -> None:
    two = digests(tmp_path / "two", processes=2)
    with busy_processors():
        one = digests(tmp_path / "one", processes=1)
    assert one == two
    # The seed decides.
    assert len(set(two.values())) == 2
