"""What is to be held, as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gradbed.experiments.own_program.system import OwnProgram, OwnProgramConfiguration, OwnProgramSystem
from gradbed.experiments.scale import Scale
from gradbed.experiments.setup import PointTask


def ordered(order: Mapping[str, Any], folder: Path) -> tuple[OwnProgramSystem, PointTask[OwnProgramConfiguration]]:
    """values: of OwnProgramConfiguration; program, entries and macros as in OwnProgram; seed. folder: for logs."""
    system = OwnProgramSystem(OwnProgram(order["program"], order["entries"], macros=order["macros"]))
    configuration = OwnProgramConfiguration.model_validate(order["values"])
    return system, PointTask(configuration, order["seed"], Scale(), folder)
