"""Counters of one program, as P4Info and BMv2 JSON describe them."""

from __future__ import annotations

from typing import Any

from gradbed.switch.bmv2_json.model import ProgramModel
from gradbed.switch.p4runtime.values.translation import Translations
from gradbed.switch.state.base import CellArray


def counter_array(counter: Any, info: Any, program: ProgramModel, names: Translations) -> CellArray:
    """From a p4.config.v1.Counter. Raises ValueError where the BMv2 JSON has no such counter."""
    name = counter.preamble.name
    if name not in program.indirect_counters:
        raise ValueError(f"counter {name!r} of the P4Info is not in the BMv2 JSON")
    return CellArray(counter.preamble.id, name, program.counters[name].size)
