"""A forwarding pipeline: a program, verified against its P4Info, ready for any number of devices."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from common.errors import UserError
from switch.bmv2_json.model import ProgramModel
from switch.device import Program
from switch.p4runtime.pipeline.action_profiles import ProfileCodec
from switch.p4runtime.pipeline.calls import action_codecs
from switch.p4runtime.pipeline.device_config import bmv2_json
from switch.p4runtime.pipeline.digests import DigestCodec
from switch.p4runtime.pipeline.meters import MeterArray, MeterSpec, meter_array
from switch.p4runtime.pipeline.packet_io import ControllerHeader, controller_header
from switch.p4runtime.pipeline.tables import TableCodec
from switch.p4runtime.pipeline.value_sets import ValueSetCodec
from switch.p4runtime.values.p4_data import CellCodec, cell_codec
from switch.p4runtime.values.status import RequestError, invalid
from switch.p4runtime.values.translation import Translations

DEFAULT_PORT_WIDTH_BITS = 9
DEFAULT_GROUP_WIDTH_BITS = 16
DEFAULT_INSTANCE_WIDTH_BITS = 16

Build = Callable[[dict[str, Any]], Program]


class CounterArray(NamedTuple):
    counter_id: int
    name: str
    size: int


class RegisterArray(NamedTuple):
    register_id: int
    name: str
    size: int
    cell: CellCodec


@dataclass(frozen=True)
class Pipeline:
    """What a ForwardingPipelineConfig describes, by P4Info ids.

    Shared by the devices that run it, hence never changed, except that names of translated types are added.
    """

    info: Any
    device_config: bytes
    program: Program
    tables: dict[int, TableCodec]
    profiles: dict[int, ProfileCodec]
    counters: dict[int, CounterArray]
    meters: dict[int, MeterArray]
    direct_meters: dict[int, MeterSpec]
    value_sets: dict[int, ValueSetCodec]
    digests: dict[int, DigestCodec]
    registers: dict[int, RegisterArray]
    packet_in: ControllerHeader
    packet_out: ControllerHeader
    port_width_bits: int
    group_width_bits: int
    instance_width_bits: int


def build_pipeline(info: Any, device_config: bytes, build: Build) -> Pipeline:
    """Verify a P4Info and its BMv2 JSON and compile the program; takes seconds for a program never seen before.

    Raises INVALID_ARGUMENT, with one line that says why, where the switch cannot realize the config.
    """
    try:
        _check_ids(info)
        program = build(bmv2_json(device_config))
        model = program.model
        if _can_be_described(model) and not any(_objects(info)):
            raise ValueError("the P4Info describes nothing of the program")
        widths_bits = _standard_widths_bits(model)
        port_width_bits = widths_bits.get("egress_spec", DEFAULT_PORT_WIDTH_BITS)
        names = Translations()
        actions = action_codecs(info, model, names)
        profiles = {
            p.preamble.id: ProfileCodec(p, info, model, actions, port_width_bits) for p in info.action_profiles
        }
        in_program = model.tables
        tables = [
            TableCodec(table, info, model, actions, profiles, names)
            for table in info.tables
            # Compilers drop tables without key and action from the JSON, and keep them in P4Info.
            if table.match_fields or table.preamble.name in in_program
        ]
        value_sets = [ValueSetCodec(value_set, info, model, names) for value_set in info.value_sets]
        digests = [DigestCodec(digest, info, model, names) for digest in info.digests]
        meters = [meter_array(meter, model) for meter in info.meters]
        counters = [_counter(counter, model) for counter in info.counters]
        registers = [_register(register, info, model, names) for register in info.registers]
        packet_in = controller_header("packet_in", info, model, names)
        packet_out = controller_header("packet_out", info, model, names)
    except RequestError:
        raise
    except (UserError, ValueError) as error:
        raise invalid(f"the pipeline cannot be realized: {_one_line(error)}") from error
    except (LookupError, TypeError, AttributeError, ArithmeticError, RuntimeError) as error:
        # A document that is not BMv2 JSON fails in more ways than are worth naming one by one.
        kind = type(error).__name__
        raise invalid(f"the pipeline cannot be realized: {kind}: {_one_line(error)}") from error
    return Pipeline(
        info=info,
        device_config=device_config,
        program=program,
        tables={table.table_id: table for table in tables},
        profiles=profiles,
        counters={counter.counter_id: counter for counter in counters},
        meters={meter.meter_id: meter for meter in meters},
        direct_meters={m.preamble.id: MeterSpec(m.preamble.name, m.spec.type) for m in info.direct_meters},
        value_sets={value_set.value_set_id: value_set for value_set in value_sets},
        digests={digest.digest_id: digest for digest in digests},
        registers={register.register_id: register for register in registers},
        packet_in=packet_in,
        packet_out=packet_out,
        port_width_bits=port_width_bits,
        group_width_bits=widths_bits.get("mcast_grp", DEFAULT_GROUP_WIDTH_BITS),
        instance_width_bits=widths_bits.get("egress_rid", DEFAULT_INSTANCE_WIDTH_BITS),
    )


def _one_line(error: Exception) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), "no reason given")


def _objects(info: Any) -> Iterable[Any]:
    return itertools.chain(
        info.tables,
        info.actions,
        info.action_profiles,
        info.counters,
        info.direct_counters,
        info.meters,
        info.direct_meters,
        info.controller_packet_metadata,
        info.value_sets,
        info.registers,
        info.digests,
    )


def _check_ids(info: Any) -> None:
    """Every object has an id of its own, and 0 is none (P4Runtime specification, "ID Allocation")."""
    seen: dict[int, str] = {}
    for thing in _objects(info):
        name, thing_id = thing.preamble.name, thing.preamble.id
        if thing_id == 0:
            raise ValueError(f"{name!r} has no id in the P4Info")
        if thing_id in seen:
            raise ValueError(f"{name!r} and {seen[thing_id]!r} have the same id {thing_id} in the P4Info")
        seen[thing_id] = name


def _can_be_described(program: ProgramModel) -> bool:
    """Whether it has something that controllers write or read: compilers put that into P4Info."""
    arrays = (program.counters, program.meters, program.registers, program.value_sets, program.digests)
    return any(arrays) or any(table.key for table in program.tables.values())


def _standard_widths_bits(program: ProgramModel) -> dict[str, int]:
    """Of the fields of standard_metadata."""
    header = program.headers.get("standard_metadata")
    return {field.name: field.width for field in header.type.fields} if header else {}


def _counter(counter: Any, program: ProgramModel) -> CounterArray:
    name = counter.preamble.name
    if name not in program.indirect_counters:
        raise ValueError(f"counter {name!r} of the P4Info is not in the BMv2 JSON")
    return CounterArray(counter.preamble.id, name, program.counters[name].size)


def _register(register: Any, info: Any, program: ProgramModel, names: Translations) -> RegisterArray:
    name = register.preamble.name
    in_program = program.registers.get(name)
    if in_program is None:
        raise ValueError(f"register {name!r} of the P4Info is not in the BMv2 JSON")
    try:
        cell = cell_codec(register.type_spec, info.type_info, in_program.width, names)
    except ValueError as error:
        raise ValueError(f"register {name!r}: {error}") from None
    return RegisterArray(register.preamble.id, name, in_program.size, cell)
