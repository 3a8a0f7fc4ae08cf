"""Every system in Mininet, on its own switch and on BMv2: is the result exact on both, and how long does it take?"""

from __future__ import annotations

import re
import shlex
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass

from rich.table import Table

from common.json_lines import own_program
from common.scratch import scratch_folder
from experiments.bench.console import bench_console
from experiments.systems import find_system, systems
from switch.p4lang.bmv2_programs import find_simple_switch_grpc

TIMEOUT_S = 600.0
MODELS = ("gradbed", "bmv2")


@dataclass(frozen=True)
class ModelRun:
    """exact: the run's own checks held, to its closing sentence. seconds: of the whole command."""

    exact: bool
    verdict: str
    seconds: float
    said: str


def run_bench_models(only: str | None, scale: float) -> int:
    """Exit status 1 if a run is not exact. UserError without BMv2."""
    find_simple_switch_grpc()
    console = bench_console()
    table = Table(title=f"links at {scale:g} of their rate, without delay", title_justify="left")
    for title in ("system", "run", *(f"{model}: {what}" for model in MODELS for what in ("exact", "verdict", "s"))):
        table.add_column(title)
    failed = False
    for name, label, words in _runs(only):
        cells = []
        for model in MODELS:
            console.print(f"{name}, {label}, on {model} ...")
            found = _run(name, f"{words} --switch {model} --scale {scale}")
            cells += ["yes" if found.exact else "NO", found.verdict, f"{found.seconds:.1f}"]
            if not found.exact:
                failed = True
                console.print(found.said, markup=False)
        table.add_row(name, label, *cells)
    console.print(table)
    return 1 if failed else 0


def _runs(only: str | None) -> Iterator[tuple[str, str, str]]:
    for name in [only] if only is not None else systems():
        for label, words in find_system(name).model_runs.items():
            yield name, label, words


def _run(name: str, words: str) -> ModelRun:
    start_s = time.monotonic()
    with scratch_folder("bench") as folder:
        command = own_program("cli", "run", name, *shlex.split(words), "--clock", "real", "--delay-us", "0")
        outcome = subprocess.run(
            [*command, "--output", folder], capture_output=True, text=True, check=False, timeout=TIMEOUT_S
        )
    said = outcome.stdout + outcome.stderr
    exact = outcome.returncode == 0 and find_system(name).assurance in " ".join(said.split())
    verdict = re.search(r"fidelity: (\w+)", said)
    return ModelRun(exact, verdict[1] if verdict else "none", time.monotonic() - start_s, said)
