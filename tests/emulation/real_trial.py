"""One trial of a system in Mininet, as a user runs it."""

from __future__ import annotations

from pathlib import Path

from tests.command import rows, run_well


def real_trial(system: str, options: str, folder: Path) -> dict[str, str]:
    """`gradbed run SYSTEM --clock real OPTIONS`: the row of the trials table. It has to end well."""
    run_well("run", system, "--clock", "real", *options.split(), "--output", folder, timeout_s=300)
    (trial,) = rows(folder / system / "latest" / "trials.csv")
    assert trial["clock"] == "real"
    return trial
