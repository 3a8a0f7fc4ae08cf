"""Rates of several subjects under one load, in turns, so that what else the machine does hits all alike."""

from __future__ import annotations

import contextlib
import socket
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import gcd

from gradbed.common.scratch import scratch_folder
from gradbed.experiments.bench.switch.packet_io import Source
from gradbed.experiments.bench.switch.subjects import PROCESSOR_TICK_S, Kind, Subject, processor_s, subject
from gradbed.experiments.bench.switch.workloads import Workload

WINDOWS = (64, 256, 1024)
"""Frames under way; each subject is measured with the one that suits it best."""

WARM_UP_S = 0.1
CALIBRATION_S = 0.2
CHECK_TIMEOUT_S = 15.0


@dataclass(frozen=True)
class Rates:
    """Frames a second that were dealt with, in each round, and processor microseconds of the subject for each."""

    subject: Subject
    window: int
    per_s: tuple[float, ...]
    processor_us: tuple[float, ...]

    @property
    def median_per_s(self) -> float:
        return statistics.median(self.per_s)

    def ratio(self, other: Rates) -> float:
        """How many times as fast: the median over the rounds, each of which is compared with itself."""
        return statistics.median(a / b for a, b in zip(self.per_s, other.per_s, strict=True))

    def processor_ratio(self, other: Rates) -> float:
        """How many times as many frames for equal processor time, which other work on the machine hardly changes."""
        return statistics.median(other.processor_us) / statistics.median(self.processor_us)


def measure(
    workload: Workload, wanted: Sequence[tuple[Kind, int]], rounds: int, measure_s: float
) -> dict[tuple[Kind, int], Rates]:
    """Build all subjects (kind, number of switches), check that each does its work, and measure them in turns."""
    with scratch_folder("bench") as scratch, contextlib.ExitStack() as stack:
        runs = [
            _Run(stack.enter_context(subject(kind, switches, workload, group, scratch / str(group))), workload)
            for group, (kind, switches) in enumerate(wanted, 1)
        ]
        rates = _in_turns(runs, rounds, measure_s)
        return {(row.subject.kind, row.subject.switches): row for row in rates}


def compare(workloads: Sequence[Workload], rounds: int, measure_s: float) -> list[Rates]:
    """The rates of one of our switches under several workloads, measured in turns."""
    with scratch_folder("bench") as scratch, contextlib.ExitStack() as stack:
        return _in_turns(
            [
                _Run(stack.enter_context(subject("gradbed", 1, workload, group, scratch / str(group))), workload)
                for group, workload in enumerate(workloads, 1)
            ],
            rounds,
            measure_s,
        )


class _Run:
    """A subject under its load."""

    def __init__(self, subject: Subject, workload: Workload) -> None:
        cycle = workload.cycle
        # Without P4 everything comes out.
        self.cycle = replace(cycle, outputs=len(cycle.frames)) if subject.kind == "bare" else cycle
        self.subject = subject
        self.source = Source(self.cycle)
        self.per_s: list[float] = []
        self.processor_us: list[float] = []
        self._check(workload.name)
        self.window = max(WINDOWS, key=lambda window: self._drive(window, CALIBRATION_S))

    def turn(self, measure_s: float) -> None:
        before_s = processor_s(self.subject.pids)
        rate = self._drive(self.window, measure_s)
        spent_s = max(PROCESSOR_TICK_S, processor_s(self.subject.pids) - before_s)
        self.per_s.append(rate)
        self.processor_us.append(1e6 * spent_s / max(1.0, rate * (WARM_UP_S + measure_s)))

    def rates(self) -> Rates:
        return Rates(self.subject, self.window, tuple(self.per_s), tuple(self.processor_us))

    def _drive(self, window: int, measure_s: float) -> float:
        entrance, exit_ = self.subject.entrance, self.subject.exit
        return self.source.drive(entrance, exit_, window=window, warm_up_s=WARM_UP_S, measure_s=measure_s)

    def _check(self, workload: str) -> None:
        """One cycle, a few frames at a time: as many come out as should. RuntimeError otherwise."""
        whole = len(self.cycle.frames) // gcd(len(self.cycle.frames), self.cycle.outputs)
        outputs = whole * self.cycle.outputs // len(self.cycle.frames)
        with _socket(self.subject.entrance) as entrance, _socket(self.subject.exit) as exit_:
            exit_.settimeout(CHECK_TIMEOUT_S)
            for number, frame in enumerate(self.source.whole_cycle(), 1):
                entrance.send(frame)
                for _ in range(outputs if number % whole == 0 else 0):
                    try:
                        exit_.recv(2048)
                    except TimeoutError:
                        raise RuntimeError(f"{self.subject.label} lost a frame of {workload}") from None


def _in_turns(runs: Sequence[_Run], rounds: int, measure_s: float) -> list[Rates]:
    for _ in range(rounds):
        for run in runs:
            run.turn(measure_s)
    return [run.rates() for run in runs]


def _socket(interface: str) -> socket.socket:
    end = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    ignore_outgoing = 23  # PACKET_IGNORE_OUTGOING of <linux/if_packet.h>
    end.setsockopt(263, ignore_outgoing, 1)
    end.bind((interface, 3))  # ETH_P_ALL
    return end
