"""Packet hops per processor second on the virtual clock, from k = 4 on, beside ns-3 where it is installed."""

from __future__ import annotations

import json
import statistics
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console

from common.errors import UserError
from common.json_lines import own_program
from experiments.bench.report import Goal, exit_status
from experiments.bench.virtual.measure import Measured
from experiments.bench.virtual.ns3 import Ns3Measured, measure_ns3, ns3_version
from experiments.bench.virtual.workload import (
    FLOW_PAYLOAD_BPS,
    LINK_DELAY_US,
    LINK_RATE_BPS,
    PAYLOAD_BYTES,
    Permutation,
)
from experiments.tables.console import make_console
from experiments.tables.rows import Columns, rows_table

HOPS = 3_000_000
"""Of one measurement, about: long enough for a clock of processor time."""
NS3_HOPS = 300_000
NS3_GREATEST_K = 8
GOALS = {4: 25, 8: 100}
"""Times as many hops per processor second as ns-3, by k."""
_HOPS_PER_MILLISECOND = 25 * 6
"""Of a host, at most: its packets and their hops."""


@dataclass(frozen=True)
class Row:
    """Of one k: hops a second, ours, ns-3's with its own routes and with ours; the goal is of the ratio.

    speed_up: how many times as soon several threads were done as one, by the clock on the wall; None: only one was
    measured.
    """

    found: Sequence[Measured]
    rate: float
    own: float | None
    same: float | None
    goal: Goal
    speed_up: float | None = None


COLUMNS: Columns = (
    ("k", lambda row: row.found[0].k),
    ("hosts", lambda row: row.found[0].hosts),
    ("switches", lambda row: row.found[0].switches),
    ("virtual clock", lambda row: f"{row.rate / 1000:,.0f}"),
    ("speed-up", lambda row: f"{row.speed_up:.2f}" if row.speed_up else None),
    ("set-up s", lambda row: f"{statistics.median(each.setup_s for each in row.found):.1f}"),
    ("MB", lambda row: f"{max(each.memory_bytes for each in row.found) / 1e6:,.0f}"),
    ("ns-3", lambda row: f"{row.own / 1000:,.1f}" if row.own else None),
    ("same routes", lambda row: f"{row.same / 1000:,.1f}" if row.same else None),
    ("ratio", lambda row: f"{row.goal.measured:,.0f}" if row.goal.measured else None),
    ("goal", lambda row: row.goal.wanted or None),
)


def run_bench_virtual(sizes: Sequence[int], repetitions: int, threads: int = 1) -> int:
    """Measure and print a table; with several threads also how much sooner they are done.

    Exit status 0; 1 if a goal is missed. UserError for a k that cannot be.
    """
    for k in sizes:
        if k < 2 or k % 2:
            raise UserError(f"a fat-tree needs an even k >= 2, got {k}")
    console = make_console()
    version = ns3_version()
    _explain(console, version)
    rows = []
    for k in sizes:
        found, speed_up = _measure_in_turns(k, repetitions, threads)
        rate = statistics.median(each.hops_per_s for each in found)
        own, same = _ns3_rates(k, repetitions) if version and k <= NS3_GREATEST_K else (None, None)
        rows.append(
            Row(found, rate, own, same, Goal(f"k = {k}", GOALS.get(k, 0), rate / own if own else None), speed_up)
        )
    console.print(rows_table("Packet hops per processor second, in thousands (medians)", COLUMNS, rows))
    return exit_status(row.goal for row in rows)


def milliseconds(k: int, hops: int) -> int:
    """For how long hosts must send for about so many hops."""
    return max(1, hops // (k**3 // 4 * _HOPS_PER_MILLISECOND))


def _measure_in_turns(k: int, repetitions: int, threads: int) -> tuple[list[Measured], float | None]:
    """On one thread, and how many times as soon several were done; None: one alone was wanted.

    RuntimeError if they did not do the same.
    """
    alone, speed_ups = [], []
    for _ in range(repetitions):
        alone.append(measure_apart(k, milliseconds(k, HOPS)))
        if threads > 1:
            together = measure_apart(k, milliseconds(k, HOPS), threads)
            if (together.hops, together.packets) != (alone[-1].hops, alone[-1].packets):
                raise RuntimeError(
                    f"k = {k}: {threads} threads handed over {together.hops} frames, one {alone[-1].hops}"
                )
            speed_ups.append(alone[-1].clock_s / together.clock_s)
    return alone, statistics.median(speed_ups) if speed_ups else None


def measure_apart(k: int, duration_ms: int, threads: int = 1) -> Measured:
    """In a process of its own, whose memory is that of this size alone."""
    command = own_program("experiments.bench.virtual.measure", str(k), str(duration_ms), str(threads))
    outcome = subprocess.run(command, capture_output=True, text=True, check=False)
    if outcome.returncode != 0:
        raise RuntimeError(f"the measurement of k = {k} failed:\n{outcome.stderr}")
    return Measured(**json.loads(outcome.stdout))


def _ns3_rates(k: int, repetitions: int) -> tuple[float, float]:
    """Hops per second, medians: with the routes that ns-3 finds by itself, and with those of our switches."""
    permutation = Permutation(k)

    def rate(global_routing: bool) -> float:
        found: list[Ns3Measured] = [
            measure_ns3(permutation, milliseconds(k, NS3_HOPS), global_routing=global_routing)
            for _ in range(repetitions)
        ]
        return statistics.median(each.hops_per_s for each in found)

    return rate(True), rate(False)


def _explain(console: Console, version: str | None) -> None:
    ns3 = (
        f"ns-3 {version}: point-to-point links; with its global routing (to which the ratio is) and "
        f"with routes along the paths of our switches; up to k = {NS3_GREATEST_K}."
        if version
        else "ns-3 is not installed (Debian: apt-get install libns3-dev g++ pkgconf)."
    )
    console.print(
        f"k-ary fat-trees, links of {LINK_RATE_BPS / 1e9:g} Gbit/s and {LINK_DELAY_US} us; every host sends UDP "
        f"with {PAYLOAD_BYTES:,} bytes at a constant {FLOW_PAYLOAD_BPS / 1e6:g} Mbit/s to one of another pod. Hops "
        f"are packets that links hand over, seconds those of the processor while time goes on. {ns3}",
        style="dim",
    )
