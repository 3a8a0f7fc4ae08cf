"""The benchmark of the switch as a whole: rates of several subjects in turns, tables, and which goals were met."""

from __future__ import annotations

import contextlib
import os
import socket
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import gcd

from rich.console import Console
from rich.table import Table

from gradbed.common.resources import scratch_folder
from gradbed.experiments.tables.console import Columns, make_console, rows_table
from tools.bench.measure import Goal, goals_table
from tools.bench.switch import packet_io, workloads
from tools.bench.switch.control_plane import CompileTimes, compile_times, writes_per_s
from tools.bench.switch.packet_io import Source
from tools.bench.switch.subjects import (
    PROCESSOR_TICK_S,
    Kind,
    Subject,
    bmv2_is_installed,
    processor_s,
    subject,
    which_bmv2,
)
from tools.bench.switch.system_workloads import gradients, interests
from tools.bench.switch.workloads import Workload

# ---- Rates ----


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
        """Frames per second."""
        return statistics.median(self.per_s)

    def ratio(self, other: Rates) -> float:
        """Return the speed-up: the median over the rounds, each of which is compared with itself."""
        return statistics.median(a / b for a, b in zip(self.per_s, other.per_s, strict=True))

    def processor_ratio(self, other: Rates) -> float:
        """Return the speed-up for equal processor time, which other work on the machine hardly changes."""
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
    """Return the rates of one of our switches under several workloads, measured alternately."""
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
        """Send one cycle, a few frames at a time. RuntimeError unless as many come out as should."""
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


# ---- Goals ----


PATH_SWITCHES = 5

ONE_TO_BARE = 0.90
ONE_TO_BMV2 = 5.0
PATH_TO_ONE = 0.60
PATH_TO_BMV2 = 25.0
LARGE_TO_SMALL = 0.50
WRITES_PER_S = 20_000.0
FIRST_COMPILE_S = 5.0
CACHED_COMPILE_S = 0.2


def rate_goals(program: str, rates: Mapping[tuple[Kind, int], Rates]) -> Iterator[Goal]:
    """Compare one switch and a path of five with the bare forwarder, BMv2 and each other."""
    one: tuple[Kind, int] = ("gradbed", 1)
    path: tuple[Kind, int] = ("gradbed", PATH_SWITCHES)
    pairs: tuple[tuple[str, float, tuple[Kind, int], tuple[Kind, int]], ...] = (
        ("one switch / bare forwarder", ONE_TO_BARE, one, ("bare", 1)),
        ("one switch / BMv2", ONE_TO_BMV2, one, ("BMv2", 1)),
        ("path of five / one switch", PATH_TO_ONE, path, one),
        ("path of five / BMv2's", PATH_TO_BMV2, path, ("BMv2", PATH_SWITCHES)),
    )
    for name, wanted, ours, theirs in pairs:
        yield _ratio_goal(f"{program}: {name}", wanted, rates.get(ours), rates.get(theirs))


def table_goal(small: Rates, large: Rates, name: str) -> Goal:
    """Return the goal for the rate with a large table."""
    return _ratio_goal(f"{name} / one entry", LARGE_TO_SMALL, large, small)


def _ratio_goal(name: str, wanted: float, ours: Rates | None, theirs: Rates | None) -> Goal:
    if ours is None or theirs is None:
        return Goal(name, wanted, None, "x")
    return Goal(name, wanted, ours.ratio(theirs), "x", by_processor_time=ours.processor_ratio(theirs))


def control_goals(writes_per_s: float, times: Sequence[CompileTimes]) -> Iterator[Goal]:
    """Yield the goals for table writes and compile times."""
    yield Goal("table writes over P4Runtime", WRITES_PER_S, writes_per_s, "/s")
    for row in times:
        yield Goal(f"{row.program}: compile and load", FIRST_COMPILE_S, row.first_s, "s", at_most=True)
        yield Goal(f"{row.program}: the same from the cache", CACHED_COMPILE_S, row.again_s, "s", at_most=True)


# ---- The benchmark ----


ROUTES, RULES = 100_000, 10_000
WRITTEN_ENTRIES = 40_000
RATE_COLUMNS: Columns = (
    ("frames/s", lambda row: f"{row.median_per_s:,.0f}"),
    ("least", lambda row: f"{min(row.per_s):,.0f}"),
    ("most", lambda row: f"{max(row.per_s):,.0f}"),
    ("CPU us", lambda row: f"{statistics.median(row.processor_us):.2f}"),
    ("window", lambda row: row.window),
)


def run_bench_switch(rounds: int, measure_s: float) -> int:
    """Measure everything and print it. Call it in a sandbox. Exit status 0, whether goals are met or not."""
    packet_io.build()
    console = make_console()
    with_bmv2 = bmv2_is_installed()
    _explain(console, rounds, measure_s, with_bmv2)
    goals: list[Goal] = []
    for workload in (workloads.router(), gradients(), interests()):
        rates = measure(workload, _subjects(with_bmv2), rounds, measure_s)
        console.print(_program_table(workload, rates))
        goals += rate_goals(workload.name, rates)
    for small, large, name in (
        (workloads.small_router(), workloads.large_router(ROUTES), f"router.p4, {ROUTES:,} routes"),
        (workloads.small_acl(), workloads.large_acl(RULES), f"acl.p4, {RULES:,} ternary rules"),
    ):
        one, many = compare([small, large], rounds, measure_s)
        console.print(_table_size_table(name, {small.name: one, large.name: many}))
        goals.append(table_goal(one, many, name))
    goals += control_goals(statistics.median(writes_per_s(WRITTEN_ENTRIES, rounds)), compile_times())
    console.print(goals_table(goals))
    return 0


def _subjects(with_bmv2: bool) -> list[tuple[Kind, int]]:
    kinds: list[tuple[Kind, int]] = [
        ("bare", 1),
        ("gradbed", 1),
        ("bare", PATH_SWITCHES),
        ("gradbed", PATH_SWITCHES),
        ("gradbed, veth", PATH_SWITCHES),
    ]
    if with_bmv2:
        kinds += [("BMv2", 1), ("BMv2", PATH_SWITCHES)]
    return sorted(kinds, key=lambda kind: kind[1])


def _explain(console: Console, rounds: int, measure_s: float, with_bmv2: bool) -> None:
    bmv2 = which_bmv2() if with_bmv2 else "not installed (name its simple_switch_grpc in GRADBED_BMV2)"
    console.print(
        f"One flow of {workloads.FRAME_BYTES}-byte frames (gradient packets: 32 lanes, the fewest) over "
        f"veth, sent with sendmmsg, counted by the kernel at the receiving interface. Closed loop: "
        f"{', '.join(map(str, WINDOWS))} frames under way, whichever suits a subject best (tried for "
        f"{CALIBRATION_S:g} s each). {rounds} rounds, in which the subjects take turns of {measure_s:g} s after "
        f"{WARM_UP_S:g} s; rates are medians, ratios medians of the rounds' ratios. CPU us: processor "
        f"time of the forwarding processes for each frame. The bare forwarder is C with "
        f"recvmmsg and sendmmsg, as our switch has it, and no P4. BMv2: {bmv2}. {os.cpu_count()} processors; "
        f"their load was {os.getloadavg()[0]:.1f} when this began: what else runs takes from all, but most from "
        f"those that use one processor.",
        style="dim",
    )


def _program_table(workload: Workload, rates: Mapping[tuple[Kind, int], Rates]) -> Table:
    def ratio(row: Rates, kind: Kind, digits: int) -> str | None:
        other = rates.get((kind, row.subject.switches))
        return f"{row.ratio(other):.{digits}f}" if other else None

    columns: Columns = (
        ("switches, links", lambda row: row.subject.label),
        *RATE_COLUMNS,
        ("/ bare", lambda row: ratio(row, "bare", 2)),
        ("/ BMv2", lambda row: ratio(row, "BMv2", 1)),
    )
    return rows_table(workload.name, columns, rates.values(), words=("switches, links",))


def _table_size_table(title: str, rows: Mapping[str, Rates]) -> Table:
    columns: Columns = (
        ("table holds", lambda row: row[0]),
        *((name, lambda row, cell=cell: cell(row[1])) for name, cell in RATE_COLUMNS),
    )
    return rows_table(title, columns, rows.items(), words=("table holds",))
