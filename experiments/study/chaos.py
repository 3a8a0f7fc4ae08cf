"""The fault matrix: every fault in every system, at another time in each repetition. What `gradbed chaos` does.

A cell is a point. It is right if the point's own checks find nothing, and clear if all that is wrong are lines that
the study allows for this fault (`chaos.errors`); all else has failed. So has a cell with a storm: a link carried more
than STORM times what the busiest one carries without a fault, and PROBES_PER_S besides while somebody waited.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any, Literal

from pydantic import ValidationError
from rich.console import Console

from common.errors import UserError
from experiments.records.results import load_results
from experiments.records.run_files import StoredPoint
from experiments.scale import Scale
from experiments.study.command import INTERRUPTED, RunOptions, run_points, write_report
from experiments.study.definition.model import ChaosSection, FigureSection, Point, Study
from experiments.study.evaluation.figures import draw_figures
from experiments.study.evaluation.kinds import Sheet, figure_kind
from experiments.study.loading import load_study
from experiments.study.running.runner import StudyRun
from experiments.systems import find_system, studies_folder, systems
from experiments.tables.console import make_console
from experiments.tables.rows import Columns, rows_table
from experiments.tables.tables import write_tables
from topo.graph import Topology

FILE = "chaos.yaml"
NOTHING = "nothing"
"""The fault of points to which the others are compared."""
STORM = 5.0
"""Times the packets of the busiest link without a fault."""
PROBES_PER_S = 100
"""Who waits asks again and again."""
PAUSE_MS = 5000

EVERYWHERE: Mapping[str, str] = {
    "loss 1 %": "loss=0.01",
    "loss 5 %": "loss=0.05",
    "duplication": "duplicate=0.1",
    "reordering": "delay_us=100,jitter_us=100,reorder=true",
    "damaged bits": "bit_error_rate=5e-6",
}
"""What every link does from the beginning."""

Verdict = Literal["right", "clear error", "failed"]


@dataclass(frozen=True)
class Cell:
    """A fault at one time. packets: of the busiest link, in times of that without a fault; time_s: nominal, until all
    phases were complete; None: it did not come to an end. line: what was wrong."""

    fault: str
    seed: int
    verdict: Verdict
    packets: float | None
    time_s: float | None
    line: str = ""


def faults_of(chaos: ChaosSection, topology: Topology, share: float) -> dict[str, list[str]]:
    """By name, the faults of a point as texts. share: how late of the time in which they may happen, 0 to 1."""
    at_ms = chaos.at_ms[0] + share * (chaos.at_ms[1] - chaos.at_ms[0])
    back_ms = at_ms + chaos.back_ms
    first, second = chaos.links
    cut = [f"link-down:{first}@{at_ms}", f"link-up:{first}@{back_ms}"]
    links = [f"{link.a.node}-{link.b.node}" for link in topology.links]
    found = {name: [f"link-change:{link},{what}@0" for link in links] for name, what in EVERYWHERE.items()}
    found |= {
        "loss 20 % on two links": [f"link-change:{link},loss=0.2@0" for link in chaos.links],
        "a link is cut": cut,
        "two links are cut": [*cut, f"link-down:{second}@{at_ms + 1}", f"link-up:{second}@{back_ms + 1}"],
        "a link gets slower": [f"link-change:{first},rate_mbps=10@{at_ms}"],
        "a P4 switch restarts": [f"switch-restart:{chaos.switch}@{at_ms}"],
        "the controller is killed": [f"controller-restart@{at_ms}"],
    }
    if chaos.forwarding:
        found["a forwarding switch restarts"] = [f"switch-restart:{chaos.forwarding}@{at_ms}"]
    if chaos.worker:
        found["an agent is killed"] = [f"agent-stop:{chaos.worker}@{at_ms}"]
        found["a host stands still"] = [f"agent-pause:{chaos.worker},for_ms={PAUSE_MS}@{at_ms}"]
    if chaos.server:
        found["the server is killed and starts anew"] = [
            f"agent-stop:{chaos.server}@{at_ms}",
            f"agent-start:{chaos.server}@{back_ms}",
        ]
    return found


def load_chaos(system: str, quick: bool = False, only: Sequence[str] = ()) -> tuple[Study, ChaosSection]:
    """The matrix of a system, its faultless points first. only: the names of faults, all if none. UserError."""
    find_system(system)
    if not (path := studies_folder(system) / FILE).is_file():
        raise UserError(f"{system} has no fault matrix; these have one: {', '.join(with_chaos())}")
    study = load_study(path, quick)
    chaos = study.head.chaos
    if chaos is None or study.head.sweep.paths:
        raise UserError(f"{path}: a fault matrix has a section chaos, and no sweep")
    points = tuple(_points(study, chaos, only))
    figures = {"chaos": FigureSection(kind="chaos", x="fault", y="seed")}
    return replace(study, head=study.head.model_copy(update={"figures": figures}), points=points), chaos


def with_chaos() -> list[str]:
    return [name for name in systems() if (studies_folder(name) / FILE).is_file()]


def _points(study: Study, chaos: ChaosSection, only: Sequence[str]) -> Iterator[Point]:
    base = study.points[0].configuration
    topology = base.topology.build(Scale())
    seeds = study.head.seed_of_repetition
    names = [NOTHING, *(only or faults_of(chaos, topology, 0.0))]
    for name in names:
        for repetition, seed in enumerate(seeds):
            known = {NOTHING: [], **faults_of(chaos, topology, repetition / len(seeds))}
            if name not in known:
                raise UserError(f"{study.head.system} has no fault {name!r}; it has: {', '.join(known)}")
            values = {**base.model_dump(), "faults": known[name]}
            try:
                configuration = study.system.configuration.model_validate(values)
                study.system.check(configuration)
            except ValidationError as error:
                message = error.errors(include_url=False)[0]["msg"].removeprefix("Value error, ")
                raise UserError(f"{study.path}: chaos: {message}") from None
            yield Point({"fault": name}, repetition, seed, configuration)


def run_chaos(system: str, options: RunOptions, quick: bool = False, only: Sequence[str] = ()) -> int:
    """Run the matrix of a system, and say what became of each cell; exit status 1 if one failed."""
    study, chaos = load_chaos(system, quick, only)
    run = run_points(study, options)
    console = make_console()
    if run.interrupted:
        console.print("interrupted: --resume goes on", style="bold")
        return INTERRUPTED
    cells = judged(study, chaos, run)
    write_tables([vars(cell) for cell in cells], run.folder / "cells")
    console.print(rows_table(f"{system}: faults", COLUMNS, summary(cells), words=("fault",)))
    results = load_results(run.folder, run.files)
    for figure in draw_figures(results, study.head.figures, study.system.metrics, lambda nothing: None):
        if figure.suffix == ".png":
            console.print(f"figure: {figure}")
    write_report(run, options, console)
    return _conclude(cells, console)


def _conclude(cells: Sequence[Cell], console: Console) -> int:
    failed = [cell for cell in cells if cell.verdict == "failed"]
    for cell in failed:
        console.print(f"FAILED: {cell.fault}, seed {cell.seed}: {cell.line}", style="bold red", markup=False)
    counts = {
        verdict: sum(cell.verdict == verdict for cell in cells) for verdict in ("right", "clear error", "failed")
    }
    console.print(f"{len(cells)} cells: " + ", ".join(f"{count} {verdict}" for verdict, count in counts.items()))
    return int(bool(failed))


def judged(study: Study, chaos: ChaosSection, run: StudyRun) -> list[Cell]:
    """Every cell, in the study's order."""
    done = {(point.coordinates["fault"], point.repetition): point.stored for point in run.done}
    cells = []
    for point in study.points:
        fault = point.coordinates["fault"]
        stored, without = done.get((fault, point.repetition)), done.get((NOTHING, point.repetition))
        allowed = chaos.errors.get(fault)
        if stored is None:
            cell = Cell(fault, point.seed, _verdict([run.broken[point.label]], allowed), None, None)
            cells.append(replace(cell, line=run.broken[point.label]))
        else:
            cells.append(_cell(fault, stored, busiest(without) if without is not None else 0, allowed))
    return cells


def _cell(fault: str, stored: StoredPoint, usual: int, allowed: str | None) -> Cell:
    time_us = sum(row["time_us"] for row in stored.tables.get("timeline", ()) if row["what"] == "phase")
    packets, lines = busiest(stored), list(stored.failures)
    if packets > STORM * usual + PROBES_PER_S * time_us / 1e6:
        lines.append(f"a storm: a link carried {packets} packets, the busiest one {usual} without a fault")
    times = packets / usual if usual else None
    return Cell(fault, stored.seed, _verdict(lines, allowed), times, time_us / 1e6, "; ".join(lines))


def _verdict(lines: Sequence[str], allowed: str | None) -> Verdict:
    if not lines:
        return "right"
    clear = allowed is not None and all("\n" not in line and re.search(allowed, line) for line in lines)
    return "clear error" if clear else "failed"


def busiest(stored: StoredPoint) -> int:
    """Packets of the direction of a link that carried most."""
    return max((row["packets"] for row in stored.tables.get("links", ())), default=0)


def summary(cells: Sequence[Cell]) -> list[dict[str, Any]]:
    """A row for each fault."""
    rows = []
    for fault in dict.fromkeys(cell.fault for cell in cells):
        own = [cell for cell in cells if cell.fault == fault]
        packets = [cell.packets for cell in own if cell.packets is not None]
        times_s = [cell.time_s for cell in own if cell.time_s is not None]
        verdicts = {word: sum(cell.verdict == word for cell in own) for word in ("right", "clear error", "failed")}
        rows.append(
            {
                "fault": fault,
                **verdicts,
                "packets": max(packets, default=None),
                "time_s": median(times_s) if times_s else None,
            }
        )
    return rows


COLUMNS: Columns = (
    ("fault", lambda row: row["fault"]),
    ("right", lambda row: row["right"]),
    ("clear error", lambda row: row["clear error"]),
    ("failed", lambda row: row["failed"]),
    ("packets (times)", lambda row: None if row["packets"] is None else f"{row['packets']:.2f}"),
    ("time (s)", lambda row: None if row["time_s"] is None else f"{row['time_s']:.3g}"),
)


@figure_kind("chaos", width_in=6.4, height_in=4.8)
def draw(sheet: Sheet) -> None:
    """The busiest link of every cell that came to an end, by fault."""
    (axes,) = sheet.axes
    points = sheet.results.points
    usual = {point.stored.seed: busiest(point.stored) for point in points if point.coordinates["fault"] == NOTHING}
    faults = list(dict.fromkeys(str(point.coordinates["fault"]) for point in points))
    for place, fault in enumerate(faults):
        own = [point.stored for point in points if point.coordinates["fault"] == fault]
        times = [busiest(stored) / usual[stored.seed] for stored in own if usual.get(stored.seed)]
        axes.plot(times, [place] * len(times), "o", color="#4477aa", alpha=0.6)
    axes.axvline(STORM, color="#cc3311", linestyle="--")
    axes.set_yticks(range(len(faults)), faults)
    axes.invert_yaxis()
    axes.set(xlabel="packets of the busiest link, in times of a run without faults", xlim=(0, STORM * 1.1))
