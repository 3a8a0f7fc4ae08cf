"""The benchmark as a whole: measure, print tables, say which goals were met."""

from __future__ import annotations

import importlib
import os
import statistics
from collections.abc import Iterator, Mapping, Sequence

from rich.console import Console
from rich.table import Table

from experiments.bench.console import bench_console
from experiments.bench.switch import packet_io, workloads
from experiments.bench.switch.control_plane import compile_times, writes_per_s
from experiments.bench.switch.goals import PATH_SWITCHES, Goal, control_goals, rate_goals, table_goal
from experiments.bench.switch.rates import CALIBRATION_S, WARM_UP_S, WINDOWS, Rates, compare, measure
from experiments.bench.switch.subjects import Kind, bmv2_is_installed, which_bmv2
from experiments.bench.switch.workloads import Workload
from experiments.systems import find_system, systems

ROUTES, RULES = 100_000, 10_000
WRITTEN_ENTRIES = 40_000
RATE_COLUMNS = ("frames/s", "least", "most", "CPU us", "window")


def run_bench_switch(rounds: int, measure_s: float) -> int:
    """Measure everything and print it. Call it in a sandbox. Exit status 0, whether goals are met or not."""
    packet_io.build()
    console = bench_console()
    with_bmv2 = bmv2_is_installed()
    _explain(console, rounds, measure_s, with_bmv2)
    goals: list[Goal] = []
    for workload in [workloads.router(), *_of_systems()]:
        rates = measure(workload, _subjects(with_bmv2), rounds, measure_s)
        console.print(_program_table(workload, rates))
        goals += rate_goals(workload.name, rates)
    for small, large, name in (
        (workloads.small_router(), workloads.large_router(ROUTES), f"router.p4, {ROUTES:,} routes"),
        (workloads.small_acl(), workloads.large_acl(RULES), f"acl.p4, {RULES:,} ternary rules"),
    ):
        one, many = compare([small, large], rounds, measure_s)
        console.print(_table_size_table(name, [(small.name, one), (large.name, many)]))
        goals.append(table_goal(one, many, name))
    goals += control_goals(statistics.median(writes_per_s(WRITTEN_ENTRIES, rounds)), compile_times())
    console.print(_goal_table(goals))
    return 0


def _of_systems() -> Iterator[Workload]:
    for name in systems():
        for place in find_system(name).switch_workloads:
            module, _, function = place.partition(":")
            yield getattr(importlib.import_module(module), function)()


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
    table = Table(title=workload.name)
    table.add_column("switches, links")
    for name in (*RATE_COLUMNS, "/ bare", "/ BMv2"):
        table.add_column(name, justify="right")
    for (_, switches), row in rates.items():
        bare, bmv2 = rates.get(("bare", switches)), rates.get(("BMv2", switches))
        table.add_row(
            row.subject.label,
            *_rate_cells(row),
            f"{row.ratio(bare):.2f}" if bare else "",
            f"{row.ratio(bmv2):.1f}" if bmv2 else "",
        )
    return table


def _table_size_table(title: str, rows: Sequence[tuple[str, Rates]]) -> Table:
    table = Table(title=title)
    table.add_column("table holds")
    for name in RATE_COLUMNS:
        table.add_column(name, justify="right")
    for name, row in rows:
        table.add_row(name, *_rate_cells(row))
    return table


def _rate_cells(row: Rates) -> tuple[str, ...]:
    return (
        *(f"{rate:,.0f}" for rate in (row.median_per_s, min(row.per_s), max(row.per_s))),
        f"{statistics.median(row.processor_us):.2f}",
        str(row.window),
    )


def _goal_table(goals: Sequence[Goal]) -> Table:
    table = Table(title="goals")
    table.add_column("what")
    for name in ("goal", "measured", "by CPU time"):
        table.add_column(name, justify="right")
    table.add_column("verdict")
    for goal in goals:
        bound = "<=" if goal.at_most else ">="
        measured = "" if goal.measured is None else _number(goal.measured, goal.unit)
        by_time = "" if goal.by_processor_time is None else _number(goal.by_processor_time, goal.unit)
        table.add_row(goal.name, f"{bound} {_number(goal.wanted, goal.unit)}", measured, by_time, goal.verdict)
    return table


def _number(value: float, unit: str) -> str:
    return f"{value:,.0f} {unit}" if value >= 1000 else f"{value:.2f} {unit}"
