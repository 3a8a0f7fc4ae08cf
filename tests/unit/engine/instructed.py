"""Python's side of instructed.c: its library as a program, the frames it obeys, the reports it makes."""

from __future__ import annotations

import enum
import functools
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gradbed.common.c_library import shared_library
from gradbed.switch.bmv2_json.load import load_program
from gradbed.switch.bmv2_json.model import ProgramModel
from gradbed.switch.engine import Engine
from gradbed.switch.runtime.library import RUNTIME_DIR, runtime_library

SOURCE = Path(__file__).parent / "programs" / "instructed.c"
DROP = 255


class Ingress(enum.IntEnum):
    FORWARD = 0
    MULTICAST = 1
    RESUBMIT = 2
    RESUBMIT_FORGETTING = 3
    CLONE = 4
    TRUNCATE = 5
    DIGEST = 6
    LOG = 7


class Egress(enum.IntEnum):
    PASS = 0
    DROP = 1
    RECIRCULATE = 2
    CLONE = 3
    REPORT = 4
    TRUNCATE = 5
    KEEP = 6
    GROW = 7
    RECIRCULATE_FORGETTING = 8


def pass_through(
    port: int = DROP,
    ingress: Ingress = Ingress.FORWARD,
    argument: int = 0,
    egress: Egress = Egress.PASS,
    egress_argument: int = 0,
    priority: int = 0,
) -> bytes:
    """One instruction: what a pass through a pipeline does."""
    return struct.pack("!8B", ingress, argument, port, egress, egress_argument, priority, 0, 0)


def exchange(
    engine: Engine, *frames: bytes, device_id: int = 1, port: int = 1, after_us: float = 0
) -> list[tuple[int, int, bytes]]:
    """What leaves open ports within so long, because of frames that come in by one: (switch, port, frame)."""
    for frame in frames:
        engine.inject(device_id, port, frame)
    engine.advance(after_us)
    return engine.drain()


@dataclass(frozen=True)
class Report:
    """What egress saw: standard metadata and the program's own."""

    ingress_port: int
    egress_spec: int
    egress_port: int
    instance_type: int
    packet_length: int
    enq_timestamp: int
    enq_qdepth: int
    deq_timedelta: int
    deq_qdepth: int
    ingress_global_timestamp: int
    egress_global_timestamp: int
    mcast_grp: int
    egress_rid: int
    checksum_error: int
    parser_error: int
    priority: int
    mark: int
    mark_in_parser: int
    payload: bytes


def read_report(frame: bytes) -> Report:
    size = 18 * 8
    return Report(*struct.unpack("!18Q", frame[:size]), payload=frame[size:])


@dataclass(frozen=True)
class CProgram:
    """A hand-written program (gradbed.switch.device.Program) without tables."""

    library: Path
    json: dict[str, Any]

    @functools.cached_property
    def model(self) -> ProgramModel:
        return load_program(self.json)


@functools.cache
def instructed_program() -> CProgram:
    runtime_library()
    library = shared_library("instructed", [SOURCE], include_dirs=(RUNTIME_DIR,))
    return CProgram(library, MINIMAL_JSON)


MINIMAL_JSON: dict[str, Any] = {
    "program": "instructed",
    "header_types": [],
    "headers": [],
    "header_stacks": [],
    "errors": [],
    "parsers": [{"name": "parser", "id": 0, "init_state": None, "parse_states": []}],
    "deparsers": [{"name": "deparser", "id": 0, "order": []}],
    "actions": [],
    "pipelines": [
        {"name": name, "id": i, "init_table": None, "tables": [], "conditionals": [], "action_profiles": []}
        for i, name in enumerate(("ingress", "egress"))
    ],
    "calculations": [],
    "checksums": [],
    "learn_lists": [],
    "field_lists": [],
    "register_arrays": [],
    "counter_arrays": [],
    "meter_arrays": [],
}
