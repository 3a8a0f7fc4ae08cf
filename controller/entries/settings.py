"""Which files say what switches hold."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict


class EntriesSettings(BaseModel):
    """programs: P4Info file of each program. switches: program of each switch. files: for all switches, YAML or
    Python. switch_files: for single switches, YAML, runtime JSON of p4lang/tutorials, or commands of
    simple_switch_CLI. skip_invalid: what does not fit the programs is left out and logged, and is no error."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    programs: dict[str, Path]
    switches: dict[str, str]
    files: tuple[Path, ...] = ()
    switch_files: dict[str, Path] = {}
    skip_invalid: bool = False
