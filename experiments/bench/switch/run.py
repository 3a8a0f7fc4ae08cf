"""The benchmark as a whole: measure, print tables, say which goals were met."""

from __future__ import annotations

import os
import statistics
from collections.abc import Iterator, Mapping

from rich.console import Console
from rich.table import Table

from gradbed.common.modules import attribute
from gradbed.experiments.bench.report import Goal, goals_table
from gradbed.experiments.bench.switch import packet_io, workloads
from gradbed.experiments.bench.switch.control_plane import compile_times, writes_per_s
from gradbed.experiments.bench.switch.goals import PATH_SWITCHES, control_goals, rate_goals, table_goal
from gradbed.experiments.bench.switch.rates import CALIBRATION_S, WARM_UP_S, WINDOWS, Rates, compare, measure
from gradbed.experiments.bench.switch.subjects import Kind, bmv2_is_installed, which_bmv2
from gradbed.experiments.bench.switch.workloads import Workload
from gradbed.experiments.systems import find_system, systems
from gradbed.experiments.tables.console import make_console
from gradbed.experiments.tables.rows import Columns, rows_table

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
    for workload in [workloads.router(), *_of_systems()]:
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


def _of_systems() -> Iterator[Workload]:
    for name in systems():
        for place in find_system(name).switch_workloads:
            yield attribute(place)()


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
