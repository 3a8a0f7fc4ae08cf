"""Registers of one program, and their cells between messages and numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gradbed.switch.bmv2_json.model import ProgramModel
from gradbed.switch.p4runtime.values.p4_data import CellCodec, cell_codec
from gradbed.switch.p4runtime.values.translation import Translations
from gradbed.switch.state.base import CellArray


@dataclass(frozen=True)
class RegisterArray(CellArray):
    cell: CellCodec


def register_array(register: Any, info: Any, program: ProgramModel, names: Translations) -> RegisterArray:
    """From a p4.config.v1.Register. Raises ValueError where P4Info and BMv2 JSON do not fit together."""
    name = register.preamble.name
    in_program = program.registers.get(name)
    if in_program is None:
        raise ValueError(f"register {name!r} of the P4Info is not in the BMv2 JSON")
    try:
        cell = cell_codec(register.type_spec, info.type_info, in_program.width, names)
    except ValueError as error:
        raise ValueError(f"register {name!r}: {error}") from None
    return RegisterArray(register.preamble.id, name, in_program.size, cell)
