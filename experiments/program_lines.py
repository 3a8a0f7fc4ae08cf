"""Lines for people on which program runs on which switch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gradbed.controller.entries.planner import EntriesSettings
from gradbed.experiments.programs import P4_SOURCES, Program
from gradbed.experiments.setup import NetworkSetup
from gradbed.experiments.system import System
from gradbed.topo.files import TopologyFile

AT_MOST = 6
"""Names in a row, of switches or files; longer rows end with how many more there are."""


def programs_line(setup: NetworkSetup) -> str:
    """Which switches run which program, and the files that fill the tables of people's own programs."""
    switches: dict[str, list[str]] = {}
    for switch, program in setup.switches.items():
        what = _path(program.source) if isinstance(program, Program) else "Open vSwitch"
        switches.setdefault(what, []).append(switch)
    parts = [f"{_row(names)} run{'s' if len(names) == 1 else ''} {what}" for what, names in switches.items()]
    if isinstance(setup.settings, EntriesSettings):
        files = dict.fromkeys((*setup.settings.files, *setup.settings.switch_files.values()))
        parts.append(f"entries: {_row([_path(path) for path in files])}" if files else "no entries")
    return "; ".join(parts)


def unused_programs_line(system: System[Any], file: TopologyFile | None) -> str:
    """That the system's switches do not run the programs which the topology's file names; empty if it names none."""
    if file is None or system.switches.run_topology_programs or not (named := file.own_programs()):
        return ""
    names = _row(list(dict.fromkeys(named.values())))
    return f"{file.path} names {names}, which does not run: switches run the programs of {system.name}"


def _row(names: Sequence[str]) -> str:
    more = len(names) - AT_MOST
    return ", ".join(names) if more <= 1 else f"{', '.join(names[:AT_MOST])} and {more} more"


def _path(path: Path) -> str:
    """Relative to the working directory, where it is in it; gradbed's own programs by name."""
    if path.parent == P4_SOURCES:
        return f"gradbed's {path.name}"
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)
