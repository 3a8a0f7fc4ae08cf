"""A forwarding pipeline: a program, verified against its P4Info, ready for any number of devices."""

from __future__ import annotations

import functools
import itertools
import re
from collections import OrderedDict
from collections.abc import Callable, Iterable
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from typing import Any

from gradbed.common.errors import UserError
from gradbed.common.store import digest_of
from gradbed.switch.bmv2_json.model import ProgramModel, Table
from gradbed.switch.device import Program
from gradbed.switch.p4runtime.calls import action_codecs
from gradbed.switch.p4runtime.device_config import bmv2_json
from gradbed.switch.p4runtime.packet_io import ControllerHeader, controller_header
from gradbed.switch.p4runtime.status import RequestError, invalid
from gradbed.switch.p4runtime.values import Translations
from gradbed.switch.state.action_profiles import ProfileCodec
from gradbed.switch.state.device import KINDS, objects_of
from gradbed.switch.state.digests import DigestCodec
from gradbed.switch.state.meters import MeterSpec
from gradbed.switch.state.replication import Widths, widths_bits_of
from gradbed.switch.state.table_state import TableCodec

Build = Callable[[dict[str, Any]], Program]

KEPT_PIPELINES = 16


@dataclass(frozen=True)
class ForwardingPipeline:
    """The objects that a ForwardingPipelineConfig describes, by P4Info ids.

    Shared by the devices that run it, hence never changed, except that names of translated types are added.
    """

    info: Any
    device_config: bytes
    program: Program
    tables: dict[int, TableCodec]
    profiles: dict[int, ProfileCodec]
    direct_meters: dict[int, MeterSpec]
    digests: dict[int, DigestCodec]
    others: dict[str, dict[int, Any]]
    """Codecs of KINDS, by kind."""
    packet_in: ControllerHeader
    packet_out: ControllerHeader
    widths_bits: Widths


def build_pipeline(info: Any, device_config: bytes, build: Build) -> ForwardingPipeline:
    """Verify a P4Info and its BMv2 JSON and compile the program; takes seconds for a program never seen before.

    Raises INVALID_ARGUMENT, with one line that says why, where the switch cannot realize the config.
    """
    try:
        _check_ids(info)
        program = build(bmv2_json(device_config))
        model = program.model
        if not any(_objects(info)) and (missing := _first_to_describe(model)):
            raise ValueError(f"the P4Info is empty, and the program has the {missing}")
        widths_bits = widths_bits_of(model)
        names = Translations()
        actions = action_codecs(info, model, names)
        profiles = {
            p.preamble.id: ProfileCodec(p, info, model, actions, widths_bits.port) for p in info.action_profiles
        }
        in_program = model.tables
        tables = [
            TableCodec(table, info, model, actions, profiles, names)
            for table in info.tables
            # Compilers drop tables without key and action from the JSON, and keep them in P4Info.
            if table.match_fields or table.preamble.name in in_program
        ]
        others = {
            name: {thing.preamble.id: kind.codec(thing, info, model, names) for thing in objects_of(info, name)}
            for name, kind in KINDS.items()
        }
        digests = [DigestCodec(digest, info, model, names) for digest in info.digests]
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
    return ForwardingPipeline(
        info=info,
        device_config=device_config,
        program=program,
        tables={table.table_id: table for table in tables},
        profiles=profiles,
        direct_meters={m.preamble.id: MeterSpec(m.preamble.name, m.spec.type) for m in info.direct_meters},
        digests={digest.digest_id: digest for digest in digests},
        others=others,
        packet_in=packet_in,
        packet_out=packet_out,
        widths_bits=widths_bits,
    )


class Pipelines:
    """Pipelines by their content, so that equal switches verify and compile their program once.

    Used from one thread. The work is done there, or in an executor, so that the thread can go on.
    """

    def __init__(self, build: Build, executor: Executor | None = None) -> None:
        self._build = build
        self._executor = executor
        self._made: OrderedDict[str, Future[ForwardingPipeline]] = OrderedDict()

    def get(self, config: Any) -> Future[ForwardingPipeline]:
        """Return the pipeline of a ForwardingPipelineConfig.

        The future raises RequestError; failures are not kept.
        """
        key = _digest(config)
        made = self._made.get(key)
        if made is None or (made.done() and made.exception() is not None):
            made = self._made[key] = self._start(config)
            while len(self._made) > KEPT_PIPELINES:
                self._made.popitem(last=False)
        self._made.move_to_end(key)
        return made

    def _start(self, config: Any) -> Future[ForwardingPipeline]:
        build = functools.partial(build_pipeline, config.p4info, config.p4_device_config, self._build)
        if self._executor is not None:
            return self._executor.submit(build)
        made: Future[ForwardingPipeline] = Future()
        try:
            made.set_result(build())
        except RequestError as error:
            made.set_exception(error)
        return made


def _digest(config: Any) -> str:
    """Return a digest of what a ForwardingPipelineConfig says of the program."""
    return digest_of([config.p4_device_config, config.p4info.SerializeToString(deterministic=True)])


def _one_line(error: Exception) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), "no reason given")


def _objects(info: Any) -> Iterable[Any]:
    return itertools.chain(
        info.tables,
        info.actions,
        info.action_profiles,
        info.direct_counters,
        info.direct_meters,
        info.controller_packet_metadata,
        info.digests,
        *(objects_of(info, kind) for kind in KINDS),
    )


def _check_ids(info: Any) -> None:
    """Raise ValueError unless every object has an id of its own that is not 0 (P4Runtime specification, "ID
    Allocation")."""
    seen: dict[int, str] = {}
    for thing in _objects(info):
        name, thing_id = thing.preamble.name, thing.preamble.id
        if thing_id == 0:
            raise ValueError(f"{name!r} has no id in the P4Info")
        if thing_id in seen:
            raise ValueError(f"{name!r} and {seen[thing_id]!r} have the same id {thing_id} in the P4Info")
        seen[thing_id] = name


HIDDEN_TABLE = re.compile(r"switch_\d+_table(_\d+)?")
"""What p4c calls the table that it makes of a `switch` on a value; it has an entry for each label and is @hidden."""


def _first_to_describe(program: ProgramModel) -> str | None:
    """Return the kind and name of something that P4Info must describe, None if there is nothing of that sort."""
    for digest in program.digests.values():
        return f"digest {digest.name}"
    for kind in KINDS:
        for name in getattr(program, kind):
            return f"{kind.removesuffix('s').replace('_', ' ')} {name}"
    for table in program.tables.values():
        if table.key and not _is_fixed(table) and not HIDDEN_TABLE.fullmatch(table.name):
            return f"table {table.name}"
    return None


def _is_fixed(table: Table) -> bool:
    """Return whether controllers can neither write nor count anything in a table.

    The JSON does not name @hidden ones.
    """
    observed = table.with_counters or table.with_timeouts or table.direct_meter or table.profile
    return bool(table.entries) and table.default_is_const and not observed
