"""This project's switch as what is recorded or replayed on: in this process, on a manual clock, by P4Runtime."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from finsy.proto import p4i, p4r

from gradbed.common.closing import Closing
from gradbed.common.errors import UserError
from gradbed.switch.codegen import build_program
from gradbed.switch.engine import Engine
from gradbed.switch.p4runtime.values.status import BatchError
from gradbed.switch.state.pipeline import Build, Pipelines
from gradbed.switch.virtual.target import LocalTarget

_DEVICE_ID = 1
_BETWEEN_FRAMES_US = 1000
_MAX_EVENTS = 1_000_000


class OwnSwitch(Closing):
    """A SwitchToRecord with ports 1 to `ports`. Every frame has come to rest before the next one."""

    name = "gradbed"

    def __init__(self, ports: int, build: Build = build_program) -> None:
        self._engine = Engine(manual_clock=True)
        device = self._engine.add_switch(_DEVICE_ID, "recorded")
        for port in range(1, ports + 1):
            self._engine.add_open_port(_DEVICE_ID, port)
        self._target = LocalTarget(device, Pipelines(build), lambda message: None, lambda: None)

    def close(self) -> None:
        self._engine.close()

    def push(self, bmv2_json: Mapping[str, Any], info: p4i.P4Info) -> None:
        program = json.dumps(bmv2_json).encode()
        self._target.set_pipeline(p4r.ForwardingPipelineConfig(p4info=info, p4_device_config=program))

    def insert(self, entity: p4r.Entity) -> str:
        try:
            self._target.write([p4r.Update(type=p4r.Update.INSERT, entity=entity)])
        except BatchError as error:
            return " ".join(str(error).split())
        return ""

    def exchange(self, port: int, frame: bytes) -> dict[int, list[bytes]]:
        self._engine.inject(_DEVICE_ID, port, frame)
        try:
            self._engine.advance(_BETWEEN_FRAMES_US, _MAX_EVENTS)
        except RuntimeError:
            raise UserError("a frame goes round in circles and never comes to rest") from None
        out: dict[int, list[bytes]] = {}
        for _, left_by, data in self._engine.drain():
            out.setdefault(left_by, []).append(data)
        return out

    def registers(self, info: p4i.P4Info) -> dict[str, list[int]]:
        return {
            each.preamble.name: [
                int.from_bytes(found.register_entry.data.bitstring, "big")
                for found in self._target.read(
                    [p4r.Entity(register_entry=p4r.RegisterEntry(register_id=each.preamble.id))]
                )
            ]
            for each in info.registers
        }

    def counters(self, info: p4i.P4Info) -> dict[str, dict[int, tuple[int, int]]]:
        return {
            each.preamble.name: {
                found.counter_entry.index.index: (
                    found.counter_entry.data.packet_count,
                    found.counter_entry.data.byte_count,
                )
                for found in self._target.read(
                    [p4r.Entity(counter_entry=p4r.CounterEntry(counter_id=each.preamble.id))]
                )
            }
            for each in info.counters
        }
