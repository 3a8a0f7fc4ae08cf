"""Objects of one program that are externs of this project's own."""

from __future__ import annotations

from typing import Any, NamedTuple

from gradbed.switch.bmv2_json.model import ProgramModel
from gradbed.switch.p4runtime.values.translation import Translations
from gradbed.switch.state.externs.kinds import EXTERNS


class ExternObject(NamedTuple):
    p4_id: int
    name: str
    type_id: int


def extern_object(instance: Any, info: Any, program: ProgramModel, names: Translations) -> ExternObject:
    """From a p4.config.v1.ExternInstance. Raises ValueError where P4Info and BMv2 JSON do not fit together."""
    name = instance.preamble.name
    extern = program.externs.get(name)
    if extern is None:
        raise ValueError(f"extern {name!r} of the P4Info is not in the BMv2 JSON")
    type_id = EXTERNS[extern.kind].type_id
    if not any(type_.extern_type_id == type_id and instance in type_.instances for type_ in info.externs):
        raise ValueError(f"extern {name!r} is a {extern.kind} in the BMv2 JSON: P4Info has it with another type")
    return ExternObject(instance.preamble.id, name, type_id)
