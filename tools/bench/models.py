"""Run every system in Mininet on gradbed's switch and on BMv2, and compare results and times."""

from __future__ import annotations

import re
import shlex
import subprocess
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from gradbed.common.errors import UserError
from gradbed.common.json_lines import own_program
from gradbed.common.resources import scratch_folder
from gradbed.experiments.systems import find_system
from gradbed.experiments.tables.console import Columns, make_console, rows_table
from gradbed.switch.p4lang.bmv2 import find_simple_switch_grpc

TIMEOUT_S = 600.0
MODELS = ("gradbed", "bmv2")

_AGGREGATION = "--workload synthetic --topology leaf-spine:2,2,2 --workers 3 --rounds 2 --lanes 64"
RUNS: Mapping[str, Mapping[str, str]] = {
    "aggregation": {"greedy": _AGGREGATION, "legacy switches (OpenFlow)": f"{_AGGREGATION} --legacy openflow"},
    "ndn": {"push": "--workload synthetic --topology star:3 --peers 3 --rounds 2 --values 960"},
    "shuffle": {"coded": "--topology star:3 --workers 3 --samples 30 --storage 0.34"},
    "compression": {"whole gradients": "--workload synthetic --topology star:4 --workers 2 --rounds 2"},
    "interconnect": {"least loaded": "--topology optical-electrical:2 --channels uplink --packets 20"},
}
"""Small runs of each system: options of `gradbed run NAME`, by what they show."""


@dataclass(frozen=True)
class ModelRun:
    """A run of one system on one switch."""

    exact: bool
    """Whether all checks of the run passed."""
    verdict: str
    """Realtime validity."""
    seconds: float
    """Of the whole command."""
    said: str
    """Its output."""


def run_bench_models(only: str | None, scale: float) -> int:
    """Print a table; exit status 1 if a run is not exact. UserError without BMv2."""
    find_simple_switch_grpc()
    console = make_console()
    rows = []
    for name, label, words in _runs(only):
        found = {}
        for model in MODELS:
            console.print(f"{name}, {label}, on {model} ...")
            found[model] = _run(name, f"{words} --switch {model} --scale {scale}")
            if not found[model].exact:
                console.print(found[model].said, markup=False)
        rows.append((name, label, found))
    columns: Columns = (
        ("system", lambda row: row[0]),
        ("run", lambda row: row[1]),
        *(
            (f"{model}: {what}", partial(_cell, model, what))
            for model in MODELS
            for what in ("exact", "verdict", "s")
        ),
    )
    title = f"links at {scale:g} of their rate, without delay"
    console.print(rows_table(title, columns, rows, words=[name for name, _ in columns]))
    return int(any(not run.exact for *_, found in rows for run in found.values()))


def _cell(model: str, what: str, row: tuple[str, str, Mapping[str, ModelRun]]) -> str:
    run = row[2][model]
    return {"exact": "yes" if run.exact else "NO", "verdict": run.verdict, "s": f"{run.seconds:.1f}"}[what]


def _runs(only: str | None) -> Iterator[tuple[str, str, str]]:
    if only is not None and only not in RUNS:
        raise UserError(f"--system: there are no runs of {only!r}, but of {', '.join(RUNS)}")
    for name in [only] if only is not None else RUNS:
        for label, words in RUNS[name].items():
            yield name, label, words


def _run(name: str, words: str) -> ModelRun:
    start_s = time.monotonic()
    with scratch_folder("bench") as folder:
        command = own_program("gradbed", "run", name, *shlex.split(words), "--clock", "real", "--delay-us", "0")
        outcome = subprocess.run(
            [*command, "--output", folder], capture_output=True, text=True, check=False, timeout=TIMEOUT_S
        )
    said = outcome.stdout + outcome.stderr
    exact = outcome.returncode == 0 and find_system(name).report.assurance in " ".join(said.split())
    verdict = re.search(r"verdict: (\w+)", said)
    return ModelRun(exact, verdict[1] if verdict else "none", time.monotonic() - start_s, said)
