"""Small workloads on the virtual clock."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gradbed.experiments.engine.trial import run_trial
from gradbed.experiments.phases import TrialResult
from gradbed.experiments.scale import Scale
from gradbed.experiments.setup import TrialTask
from gradbed.experiments.systems.workload.configuration import WorkloadConfiguration
from gradbed.experiments.systems.workload.system import WorkloadSystem

OWN = Path(__file__).parent / "programs" / "own.p4"

ROUTES = """
tables:
  routes:
    - routes: shortest
      match: {hdr.ipv4.dst_addr: $dst_ip}
      action: forward
      params: {port: $port}
"""


def configuration(folder: Path, entries: str = ROUTES, **sections: Any) -> WorkloadConfiguration:
    """Three hosts at one switch, unless a section says otherwise. entries: YAML."""
    file = folder / "entries.yaml"
    file.write_text(entries)
    topology = {"kind": "star:3", "link": {"rate_mbps": 100}, **sections.pop("topology", {})}
    program = {"path": OWN, "entries_file": file, **sections.pop("program", {})}
    traffic = {"packets": 300, **sections.pop("traffic", {})}
    return WorkloadConfiguration.model_validate(
        {"topology": topology, "program": program, "traffic": traffic, **sections}
    )


def run(folder: Path, entries: str = ROUTES, seed: int = 1, **sections: Any) -> TrialResult:
    """Checked as a study is, then run."""
    system, chosen = WorkloadSystem(), configuration(folder, entries, **sections)
    system.check(chosen)
    return run_trial(system, TrialTask(chosen, seed, Scale(), folder))


def table(result: TrialResult, name: str) -> list[dict[str, Any]]:
    return [dict(row) for row in result.tables.get(name, [])]
