"""Measure packet hops per processor second on the virtual clock.

ns-3 is compared where it is installed, and htsim where it is built.
"""

from __future__ import annotations

import contextlib
import json
import statistics
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from subprocess import PIPE

from rich.console import Console

from gradbed.common.errors import UserError
from gradbed.experiments.tables.console import Columns, make_console, rows_table
from tools.bench.measure import ROOT, Goal, exit_status, tool
from tools.bench.virtual.measure import VirtualResult
from tools.bench.virtual.simulators import (
    HTSIM_VARIABLE,
    HtsimResult,
    Ns3Result,
    find_htsim,
    measure_htsim,
    measure_ns3,
    ns3_version,
)
from tools.bench.virtual.workload import (
    FLOW_PAYLOAD_BPS,
    LINK_RATE_BPS,
    PAYLOAD_BYTES,
    Permutation,
)

HOPS = 3_000_000
"""Of one measurement, about: long enough for a clock of processor time."""
NS3_HOPS = 300_000
NS3_GREATEST_K = 8
HTSIM_HOPS = 2_000_000
GOALS = {4: 25, 8: 100}
"""Times as many hops per processor second as ns-3, by k."""
_HOPS_PER_MILLISECOND = 25 * 6
"""Of a host, at most: its packets and their hops."""


@dataclass(frozen=True)
class Turns:
    """The measurements of one k; those of the same index were made one after the other."""

    alone: Sequence[VirtualResult]
    """On one thread."""
    together: Sequence[VirtualResult] = ()
    """On several threads, if that is asked for."""
    separate: Sequence[Sequence[VirtualResult]] = ()
    """As many networks at the same time, each on one thread in a process of its own."""
    htsim: Sequence[HtsimResult] = ()
    """Where it is built."""

    @property
    def rate(self) -> float:
        """Hops per second of processor time, on one thread."""
        return statistics.median(each.hops_per_s for each in self.alone)

    @property
    def threaded_rate(self) -> float | None:
        """Hops per second of wall time on several threads."""
        return statistics.median(each.hops / each.clock_s for each in self.together) if self.together else None

    @property
    def speed_up(self) -> float | None:
        """Speed-up of several threads over one, in wall time."""
        ratios = [one.clock_s / several.clock_s for one, several in zip(self.alone, self.together, strict=False)]
        return statistics.median(ratios) if ratios else None

    @property
    def separate_speed_up(self) -> float | None:
        """Speed-up of separate networks over one: the upper limit that the processors allow."""
        ratios = [
            one.clock_s * len(several) / max(each.clock_s for each in several)
            for one, several in zip(self.alone, self.separate, strict=False)
        ]
        return statistics.median(ratios) if ratios else None

    @property
    def htsim_rate(self) -> float | None:
        """Hops per second of htsim's processor time."""
        return statistics.median(each.hops_per_s for each in self.htsim) if self.htsim else None


@dataclass(frozen=True)
class Row:
    """A row of the table, for one k."""

    turns: Turns
    own: float | None
    """Hops per second of ns-3 with its own routes."""
    same: float | None
    """Hops per second of ns-3 with the routes of our switches."""
    goal: Goal
    """For the ratio to `own`."""


COLUMNS: Columns = (
    ("k", lambda row: row.turns.alone[0].k),
    ("hosts", lambda row: row.turns.alone[0].hosts),
    ("switches", lambda row: row.turns.alone[0].switches),
    ("virtual clock", lambda row: _thousands(row.turns.rate)),
    ("on threads", lambda row: _thousands(row.turns.threaded_rate)),
    ("speed-up", lambda row: _times(row.turns.speed_up)),
    ("separate", lambda row: _times(row.turns.separate_speed_up)),
    ("set-up s", lambda row: f"{statistics.median(each.setup_s for each in row.turns.alone):.1f}"),
    ("MB", lambda row: f"{max(each.memory_bytes for each in row.turns.alone) / 1e6:,.0f}"),
    ("ns-3", lambda row: f"{row.own / 1000:,.1f}" if row.own else None),
    ("same routes", lambda row: f"{row.same / 1000:,.1f}" if row.same else None),
    ("ratio", lambda row: f"{row.goal.measured:,.0f}" if row.goal.measured else None),
    ("goal", lambda row: row.goal.wanted or None),
    ("htsim", lambda row: _thousands(row.turns.htsim_rate)),
    ("its set-up s", lambda row: _median_of(row.turns.htsim, lambda each: each.setup_s, ".1f")),
    ("its MB", lambda row: _median_of(row.turns.htsim, lambda each: each.memory_bytes / 1e6, ",.0f")),
)


def _thousands(rate: float | None) -> str | None:
    return None if rate is None else f"{rate / 1000:,.0f}"


def _times(ratio: float | None) -> str | None:
    return None if ratio is None else f"{ratio:.2f}"


def _median_of(found: Sequence[HtsimResult], value: Callable[[HtsimResult], float], form: str) -> str | None:
    return format(statistics.median(map(value, found)), form) if found else None


def run_bench_virtual(
    sizes: Sequence[int], repetitions: int, threads: int = 1, delay_us: int = Permutation.delay_us
) -> int:
    """Measure and print a table; with several threads also how much sooner they are done.

    Exit status 0; 1 if a goal is missed. UserError for a k that cannot be.
    """
    for k in sizes:
        if k < 2 or k % 2:
            raise UserError(f"a fat-tree needs an even k >= 2, got {k}")
    console = make_console()
    version, htsim = ns3_version(), find_htsim()
    _explain(console, delay_us, version, htsim)
    rows = []
    for k in sizes:
        permutation = Permutation(k, delay_us)
        turns = _measure_in_turns(permutation, repetitions, threads, htsim)
        own, same = _ns3_rates(permutation, repetitions) if version and k <= NS3_GREATEST_K else (None, None)
        rows.append(Row(turns, own, same, Goal(f"k = {k}", GOALS.get(k, 0), turns.rate / own if own else None)))
    # What was not asked for, or is not installed, has no columns.
    shown = [column for column in COLUMNS if any(column[1](row) is not None for row in rows)]
    console.print(rows_table("Packet hops per processor second, in thousands (medians)", shown, rows))
    return exit_status(row.goal for row in rows)


def milliseconds(permutation: Permutation, hops: int) -> int:
    """Return how long hosts must send for about so many hops."""
    return max(1, hops // (permutation.k**3 // 4 * _HOPS_PER_MILLISECOND))


def _measure_in_turns(permutation: Permutation, repetitions: int, threads: int, htsim: Path | None) -> Turns:
    """Measure on one thread, on several if asked for, and htsim. RuntimeError if results differ."""
    alone, together, separate, of_htsim = [], [], [], []
    duration_ms = milliseconds(permutation, HOPS)
    for _ in range(repetitions):
        alone += measure_apart(permutation, duration_ms)
        if threads > 1:
            together += measure_apart(permutation, duration_ms, threads=threads)
            separate.append(measure_apart(permutation, duration_ms, networks=threads))
            if (together[-1].hops, together[-1].packets) != (alone[-1].hops, alone[-1].packets):
                raise RuntimeError(
                    f"k = {permutation.k}: {threads} threads handed over {together[-1].hops} frames, "
                    f"one {alone[-1].hops}"
                )
        if htsim is not None:
            of_htsim.append(measure_htsim(htsim, permutation, HTSIM_HOPS))
    return Turns(alone, together, separate, of_htsim)


def measure_apart(
    permutation: Permutation, duration_ms: int, *, threads: int = 1, networks: int = 1
) -> list[VirtualResult]:
    """Measure so many networks at once, each in a process of its own, whose memory is that of this size alone."""
    numbers = (permutation.k, permutation.delay_us, duration_ms, threads)
    command = tool("tools.bench.virtual.measure", *map(str, numbers))
    with contextlib.ExitStack() as stack:
        processes = []
        for _ in range(networks):
            process = stack.enter_context(
                subprocess.Popen(command, cwd=ROOT, stdin=PIPE, stdout=PIPE, stderr=PIPE, text=True)
            )
            stack.callback(process.kill)
            processes.append(process)
        for process in processes:
            assert process.stdout is not None
            process.stdout.readline()
        for process in processes:
            assert process.stdin is not None
            with contextlib.suppress(BrokenPipeError):
                process.stdin.write("\n")
                process.stdin.flush()
        found = []
        for process in processes:
            said, complaint = process.communicate()
            if process.returncode != 0:
                raise RuntimeError(f"the measurement of k = {permutation.k} failed:\n{complaint}")
            found.append(VirtualResult(**json.loads(said)))
        return found


def _ns3_rates(permutation: Permutation, repetitions: int) -> tuple[float, float]:
    """Return the median hops per second with the routes of ns-3 and with those of our switches."""

    def rate(global_routing: bool) -> float:
        found: list[Ns3Result] = [
            measure_ns3(permutation, milliseconds(permutation, NS3_HOPS), global_routing=global_routing)
            for _ in range(repetitions)
        ]
        return statistics.median(each.hops_per_s for each in found)

    return rate(True), rate(False)


def _explain(console: Console, delay_us: int, version: str | None, htsim: Path | None) -> None:
    ns3 = (
        f"ns-3 {version}: trial-to-trial links; with its global routing (to which the ratio is) and "
        f"with routes along the paths of our switches; up to k = {NS3_GREATEST_K}."
        if version
        else "ns-3 is not installed (Debian: apt-get install libns3-dev g++ pkgconf)."
    )
    of_htsim = (
        "htsim: NDP between the same pairs on such links, as fast as it gets. Its hops are data, ACK and pull "
        "packets, each on each of six links: 18 for a data packet that it says it sent, the most there can be, since "
        "some pulls travel in ACKs."
        if htsim
        else f"htsim is not measured: {HTSIM_VARIABLE} would name its build."
    )
    console.print(
        f"k-ary fat-trees, links of {LINK_RATE_BPS / 1e9:g} Gbit/s and {delay_us} us; every host sends UDP "
        f"with {PAYLOAD_BYTES:,} bytes at a constant {FLOW_PAYLOAD_BPS / 1e6:g} Mbit/s to one of another pod. Hops "
        "are packets that links hand over, seconds those of the processor while time goes on (on threads: of the "
        "clock on the wall). Separate: how many times as much as one as many networks do that share nothing. "
        f"{ns3} {of_htsim}",
        style="dim",
    )
