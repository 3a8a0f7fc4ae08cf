"""The fault matrix: every fault in every system, at another time in each repetition. What `gradbed chaos` runs, and
the table and the figure of all systems that it leaves.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any, Literal, get_args

from pydantic import ValidationError
from rich.console import Console

from gradbed.common.errors import UserError
from gradbed.common.problems import first_problem
from gradbed.emulation.switches.open_vswitch import require_open_vswitch
from gradbed.experiments.plotting.style import COLOURS, MARKERS, figure, save
from gradbed.experiments.results.run_folder import RunFolder, TrialRecord
from gradbed.experiments.results.study_results import load_results
from gradbed.experiments.scale import Scale
from gradbed.experiments.study.command import INTERRUPTED, run_study, write_report
from gradbed.experiments.study.definition import ChaosSection, FigureSection, Study, TrialSpec, with_values
from gradbed.experiments.study.evaluation.figures import draw_figures
from gradbed.experiments.study.evaluation.kinds import Sheet, figure_kind
from gradbed.experiments.study.loading import check_switch_programs, load_study, suited_to_bmv2
from gradbed.experiments.study.running.executors import RunOptions
from gradbed.experiments.study.running.runner import StudyRun
from gradbed.experiments.systems import find_system, studies_folder, systems
from gradbed.experiments.tables.console import Columns, make_console, rows_table
from gradbed.experiments.tables.files import replace_file, write_csv, write_tables
from gradbed.topo.graph import Topology

FILE = "chaos.yaml"
FORWARDING, LEGACY = "a forwarding switch restarts", "a legacy switch restarts"
"""The same, but for what the switch is."""
NOTHING = "nothing"
"""The fault of trials to which the others are compared."""
STORM = 3.0
"""Times the packets of the busiest link without a fault."""
PROBES_PER_S = 60
"""Who waits asks again: up to six hosts, each at most ten times in a second, some for several things."""
PAUSE_MS = 5000
LIMIT_S = 600.0
"""Of the machine's time, for one cell."""
REAL_SHARE = 0.1
MENDING = ("link-up", "agent-start")
"""What may come too late: all is right already."""

LOSSES: Mapping[str, float] = {"loss 1 %": 0.01, "loss 5 %": 0.05, "loss 20 %": 0.2}
LINKS_THERE_AND_BACK = 8
"""Of a question and its answer, at least: over two leaves and a spine."""

EVERYWHERE: Mapping[str, str] = {
    **{name: f"loss={loss}" for name, loss in LOSSES.items()},
    "duplication": "duplicate=0.1",
    "reordering": "delay_us=100,jitter_us=100,reorder=true",
    "damaged bits": "bit_error_rate=5e-6",
}
"""What every link does from the beginning."""

Verdict = Literal["right", "clear error", "failed", "not possible here"]
ABSENT: Verdict = "not possible here"
VERDICTS: Sequence[Verdict] = get_args(Verdict)


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
    """Return the faults of a trial as texts, by name.

    Args:
        share: time within the interval of faults, from 0 to 1.
    """
    at_ms = chaos.at_ms[0] + share * (chaos.at_ms[1] - chaos.at_ms[0])
    back_ms = at_ms + chaos.back_ms
    first, second = chaos.links
    cut = [f"link-down:{first}@{at_ms}", f"link-up:{first}@{back_ms}"]
    links = [f"{link.a.node}-{link.b.node}" for link in topology.links]
    found = {name: [f"link-change:{link},{what}@0" for link in links] for name, what in EVERYWHERE.items()}
    found |= {
        "a link is cut": cut,
        "two links are cut": [*cut, f"link-down:{second}@{at_ms + 1}", f"link-up:{second}@{back_ms + 1}"],
        "a link gets slower": [f"link-change:{first},rate_mbps=10@{at_ms}"],
        "a P4 switch restarts": [f"switch-restart:{chaos.switch}@{at_ms}"],
        "the controller is killed": [f"controller-restart@{at_ms}"],
    }
    if chaos.forwarding:
        found[FORWARDING] = [f"switch-restart:{chaos.forwarding}@{at_ms}"]
    if chaos.worker:
        found["an agent is killed"] = [f"agent-stop:{chaos.worker}@{at_ms}"]
        found["a host stands still"] = [f"agent-pause:{chaos.worker},for_ms={PAUSE_MS}@{at_ms}"]
    if chaos.server:
        found["the server is killed and starts anew"] = [
            f"agent-stop:{chaos.server}@{at_ms}",
            f"agent-start:{chaos.server}@{back_ms}",
        ]
    return found


@dataclass(frozen=True)
class Matrix:
    """Part of the fault matrix to run."""

    quick: bool = False
    only: Sequence[str] = ()
    """Names of faults; empty: all."""
    clock: str | None = None
    """Clock in place of the study's."""
    switch: str | None = None
    """Switch model in place of the study's."""
    seed: int | None = None
    """Seed of the first repetition, the next ones follow; None: those of the study."""


def load_chaos(system: str, wanted: Matrix = Matrix()) -> tuple[Study, ChaosSection]:
    """Return the fault matrix of a system, trials without faults first.

    Raises:
        UserError: the system has none, or its file is wrong.
    """
    find_system(system)
    if not (path := studies_folder(system) / FILE).is_file():
        raise UserError(f"{system} has no fault matrix; these have one: {', '.join(with_chaos())}")
    study = load_study(path, wanted.quick, wanted.clock)
    chaos = study.head.chaos
    if chaos is None or study.head.sweep.paths:
        raise UserError(f"{path}: a fault matrix has a section chaos, and no sweep")
    base = _base(study, wanted)
    head: dict[str, Any] = {
        "figures": {"chaos": FigureSection(kind="chaos", x="fault", y="seed")},
        "limit_s": LIMIT_S,
    }
    if base["clock"] == "real":
        head["repetitions"] = math.ceil(REAL_SHARE * study.head.repetitions)
    if wanted.seed is not None:
        repetitions = head.get("repetitions", study.head.repetitions)
        head["seeds"] = list(range(wanted.seed, wanted.seed + repetitions))
    study = replace(study, head=study.head.model_copy(update=head))
    return replace(study, trials=tuple(_trials(study, chaos, base, wanted.only))), chaos


def _base(study: Study, wanted: Matrix) -> dict[str, Any]:
    """The configuration of the study, nested, on the switches that are wanted."""
    base = study.trials[0].configuration.model_dump()
    if wanted.switch is None:
        return base
    base = with_values(base, {"program.model": wanted.switch})
    given = () if wanted.clock is None else ("clock",)
    return suited_to_bmv2(study.system, base, given) if wanted.switch == "bmv2" else base


def with_chaos() -> list[str]:
    return [name for name in systems() if (studies_folder(name) / FILE).is_file()]


def _trials(study: Study, chaos: ChaosSection, base: Mapping[str, Any], only: Sequence[str]) -> Iterator[TrialSpec]:
    topology = study.trials[0].configuration.topology.build(Scale())
    seeds = study.head.seed_of_repetition
    has_legacy = bool(chaos.openflow) and base["clock"] == "real"
    names = [NOTHING, *(only or [*faults_of(chaos, topology, 0.0), *([LEGACY] if has_legacy else [])])]
    for name in names:
        changed = with_values(base, chaos.openflow if name == LEGACY else {})
        for repetition, seed in enumerate(seeds):
            known = {NOTHING: [], **faults_of(chaos, topology, (repetition + 0.5) / len(seeds))}
            if has_legacy:
                known[LEGACY] = known[FORWARDING]
            if name not in known:
                raise UserError(f"{study.head.system} has no fault {name!r}; it has: {', '.join(known)}")
            try:
                configuration = study.system.configuration.model_validate({**changed, "faults": known[name]})
                check_switch_programs(configuration)
                study.system.check(configuration)
            except ValidationError as error:
                raise UserError(f"{study.path}: chaos: {first_problem(error)}") from None
            yield TrialSpec({"fault": name}, repetition, seed, configuration)


def run_chaos(
    system: str, options: RunOptions, wanted: Matrix = Matrix(), found: dict[str, Sequence[Cell]] | None = None
) -> int:
    """Run the matrix of a system, and say what became of each cell; exit status 1 if one failed. found: takes the
    cells, by system."""
    study, chaos = load_chaos(system, wanted)
    run = run_study(study, options)
    console = make_console()
    if run.interrupted:
        console.print("interrupted: --resume goes on", style="bold")
        return INTERRUPTED
    cells = judged(study, chaos, run)
    if found is not None:
        found[system] = cells
    write_tables([vars(cell) for cell in cells], run.folder / "cells")
    console.print(rows_table(f"{system}: faults", COLUMNS, summary(cells), words=("fault",)))
    results = load_results(run.folder, run.files)
    for file in draw_figures(results, study.head.figures, study.system.metrics, lambda nothing: None):
        if file.suffix == ".png":
            console.print(f"figure: {file}")
    write_report(run, options, console)
    return _conclude(cells, console)


def legacy_is_missing() -> str:
    """Why this machine has no legacy switches; "" if it has."""
    try:
        require_open_vswitch()
    except UserError as error:
        return str(error)
    return ""


def _conclude(cells: Sequence[Cell], console: Console) -> int:
    failed = [cell for cell in cells if cell.verdict == "failed"]
    for cell in failed:
        console.print(f"FAILED: {cell.fault}, seed {cell.seed}: {cell.line}", style="bold red", markup=False)
    for cell in (cell for cell in cells if cell.verdict == ABSENT):
        console.print(f"{ABSENT}: {cell.fault}: {cell.line}", markup=False)
    counts = {verdict: sum(cell.verdict == verdict for cell in cells) for verdict in VERDICTS}
    told = [f"{count} {verdict}" for verdict, count in counts.items() if count or verdict != ABSENT]
    console.print(f"{len(cells)} cells: {', '.join(told)}")
    return int(bool(failed))


def judged(study: Study, chaos: ChaosSection, run: StudyRun) -> list[Cell]:
    """Return all cells, in the order of the study."""
    done = {(trial.coordinates["fault"], trial.repetition): trial for trial in run.done}
    cells = []
    for trial in study.trials:
        fault = trial.coordinates["fault"]
        stored, without = done.get((fault, trial.repetition)), done.get((NOTHING, trial.repetition))
        allowed = chaos.errors.get(fault)
        if fault == LEGACY and (reason := legacy_is_missing()):
            cells.append(Cell(fault, trial.seed, ABSENT, None, None, reason))
        elif stored is None:
            cell = Cell(fault, trial.seed, _verdict([run.broken[trial.label]], allowed), None, None)
            cells.append(replace(cell, line=run.broken[trial.label]))
        else:
            cells.append(_cell(trial, stored, busiest(without) if without is not None else 0, allowed))
    return cells


def _cell(trial: TrialSpec, stored: TrialRecord, usual: int, allowed: str | None) -> Cell:
    fault = trial.coordinates["fault"]
    time_us = sum(row["time_us"] for row in stored.tables.get("timeline", ()) if row["what"] == "phase")
    packets, lines = busiest(stored), [*stored.failures, *_too_late(trial, stored)]
    # Links may be slower than they are called, and times longer with them; how often hosts ask is not.
    waited_s = time_us / 1e6 / stored.row.get("scale_factor", 1.0)
    if (sent := _most_sent(stored)) > STORM * usual * _tries(fault) + PROBES_PER_S * waited_s:
        lines.append(f"a storm: a link carried {sent} packets, the busiest one {usual} without a fault")
    times = packets / usual if usual else None
    return Cell(fault, stored.seed, _verdict(lines, allowed), times, time_us / 1e6, "; ".join(lines))


def _tries(fault: str) -> float:
    """Return the mean number of attempts until an answer."""
    return (1 - LOSSES.get(fault, 0.0)) ** -LINKS_THERE_AND_BACK


def _too_late(trial: TrialSpec, stored: TrialRecord) -> Iterator[str]:
    """A line for each phase that was over before all that was to fail had failed."""
    wanted = sum(fault.fault not in MENDING for fault in trial.configuration.faults)
    happened = {row["phase"]: 0 for row in stored.tables.get("timeline", ())}
    for row in stored.tables.get("timeline", ()):
        happened[row["phase"]] += row["what"] == "fault" and not row["name"].startswith(MENDING)
    for phase, count in happened.items():
        if count < wanted:
            yield f"{phase} was over after {count} of {wanted} faults"


def _verdict(lines: Sequence[str], allowed: str | None) -> Verdict:
    if not lines:
        return "right"
    clear = allowed is not None and all("\n" not in line and re.search(allowed, line) for line in lines)
    return "clear error" if clear else "failed"


def busiest(stored: TrialRecord) -> int:
    """Packets of the direction of a link that carried most."""
    return max((row["packets"] for row in stored.tables.get("links", ())), default=0)


def _most_sent(stored: TrialRecord) -> int:
    """Return the same as `busiest`, without duplicates that the link itself made."""
    return max((row["packets"] - row["duplicates"] for row in stored.tables.get("links", ())), default=0)


def summary(cells: Sequence[Cell]) -> list[dict[str, Any]]:
    """A row for each fault."""
    rows = []
    for fault in dict.fromkeys(cell.fault for cell in cells):
        own = [cell for cell in cells if cell.fault == fault]
        packets = [cell.packets for cell in own if cell.packets is not None]
        times_s = [cell.time_s for cell in own if cell.time_s is not None]
        verdicts: dict[str, int] = {word: sum(cell.verdict == word for cell in own) for word in VERDICTS}
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
    trials = sheet.results.trials
    usual = {trial.seed: busiest(trial) for trial in trials if trial.coordinates["fault"] == NOTHING}
    faults = list(dict.fromkeys(str(trial.coordinates["fault"]) for trial in trials))
    for place, fault in enumerate(faults):
        own = [trial for trial in trials if trial.coordinates["fault"] == fault]
        times = [busiest(stored) / usual[stored.seed] for stored in own if usual.get(stored.seed)]
        axes.plot(times, [place] * len(times), "o", color="#4477aa", alpha=0.6)
    axes.axvline(STORM, color="#cc3311", linestyle="--")
    axes.set_yticks(range(len(faults)), faults)
    axes.invert_yaxis()
    axes.set(xlabel="packets of the busiest link, in times of a run without faults", xlim=(0, STORM * 1.1))


# ---- All systems together ----


NAME = "outcome"
NO_NUMBER = "–"
"""The system has no such fault, or no cell of it came to an end."""

Row = Mapping[str, Any]


def write_outcome(output: Path, cells: Mapping[str, Sequence[Cell]]) -> Path:
    """outcome.csv, .md, .png, .svg and .pdf of the cells of each system, in a new folder; that folder."""
    folder = RunFolder(output, "chaos")
    rows = outcome_rows(cells)
    replace_file(folder.path / f"{NAME}.csv", lambda target: write_csv(rows, target))
    tables = f"{verdict_table(rows)}\n\n{packet_table(rows)}\n"
    replace_file(folder.path / f"{NAME}.md", lambda target: target.write_text(tables, encoding="utf-8"))
    draw_all(rows, folder.path / NAME)
    folder.finish()
    folder.close()
    return folder.path


def outcome_rows(cells: Mapping[str, Sequence[Cell]]) -> list[dict[str, Any]]:
    """system, fault, cells of each verdict, packets (the most of a link, in times of a run without
    faults), time_s (median)."""
    return [{"system": system, **row} for system, own in cells.items() for row in summary(own)]


def read_outcome(path: Path) -> list[dict[str, Any]]:
    """The rows of an outcome.csv."""
    with path.open(newline="", encoding="utf-8") as file:
        return [
            {
                **row,
                **{word: int(row[word]) for word in VERDICTS},
                **{word: float(row[word]) if row[word] else None for word in ("packets", "time_s")},
            }
            for row in csv.DictReader(file)
        ]


def verdict_table(rows: Sequence[Row]) -> str:
    """Markdown: a line for each fault, a column for each system."""
    return _table(rows, _verdicts)


def packet_table(rows: Sequence[Row]) -> str:
    """The same of packets and times of cells that came to an end."""
    return _table([row for row in rows if row["fault"] != NOTHING], _effort)


def _table(rows: Sequence[Row], words: Any) -> str:
    systems = list(dict.fromkeys(row["system"] for row in rows))
    lines = [f"| fault | {' | '.join(systems)} |", "|---" * (len(systems) + 1) + "|"]
    for fault in dict.fromkeys(row["fault"] for row in rows):
        found = {row["system"]: words(row) for row in rows if row["fault"] == fault}
        lines.append(f"| {fault} | {' | '.join(found.get(system, NO_NUMBER) for system in systems)} |")
    return "\n".join(lines)


def _verdicts(row: Row) -> str:
    short = {"clear error": "clear", "failed": "**failed**"}
    return ", ".join(f"{row[verdict]} {short.get(verdict, verdict)}" for verdict in VERDICTS if row[verdict])


def _effort(row: Row) -> str:
    if row["packets"] is None or row["time_s"] is None:
        return NO_NUMBER
    time_s = float(f"{row['time_s']:.2g}")
    return f"{row['packets']:.2f}, {time_s:g} s"


def draw_all(rows: Sequence[Row], path: Path) -> list[Path]:
    """Packets of the busiest link, the most of each fault's cells, by fault and system."""
    shown = [row for row in rows if row["fault"] != NOTHING and row["packets"] is not None]
    faults = list(dict.fromkeys(row["fault"] for row in rows if row["fault"] != NOTHING))
    systems = list(dict.fromkeys(row["system"] for row in rows))
    with figure(6.4, 4.8) as (made, (axes,)):
        for place, system in enumerate(systems):
            own = [row for row in shown if row["system"] == system]
            heights = [faults.index(row["fault"]) + 0.1 * (place - (len(systems) - 1) / 2) for row in own]
            look = {"color": COLOURS[place % len(COLOURS)], "marker": MARKERS[place % len(MARKERS)]}
            axes.plot([row["packets"] for row in own], heights, linestyle="none", label=system, **look)
        axes.set_yticks(range(len(faults)), faults)
        axes.invert_yaxis()
        axes.set_xscale("log")
        axes.set_xticks([0.5, 1, 2, 5, 10], ["0.5", "1", "2", "5", "10"])
        axes.minorticks_off()
        axes.set_xlabel("packets of the busiest link, in times of a run without faults")
        axes.legend()
        return save(made, path, "Faults: the most packets over a link")
