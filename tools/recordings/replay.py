"""A recording once more on this switch, in this process and on a manual clock, and where the two differ."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from finsy.proto import p4i, p4r

from gradbed.common.errors import UserError
from gradbed.common.resources import Closing
from gradbed.switch.codegen import build_program
from gradbed.switch.engine import Engine
from gradbed.switch.p4runtime.status import BatchError
from gradbed.switch.state.pipeline import Build, Pipelines
from gradbed.switch.virtual.target import LocalTarget
from tools.recordings.recording import Outputs, Recording, State, ends_in_tag, state_of, without_tag

# ---- This switch as what is recorded or replayed on, by P4Runtime ----


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
        """Close the switch."""
        self._engine.close()

    def push(self, bmv2_json: Mapping[str, Any], info: p4i.P4Info) -> None:
        """Load a program."""
        program = json.dumps(bmv2_json).encode()
        self._target.set_pipeline(p4r.ForwardingPipelineConfig(p4info=info, p4_device_config=program))

    def insert(self, entity: p4r.Entity) -> str:
        """Insert an entity; return why it is refused, or an empty string."""
        try:
            self._target.write([p4r.Update(type=p4r.Update.INSERT, entity=entity)])
        except BatchError as error:
            return " ".join(str(error).split())
        return ""

    def exchange(self, port: int, frame: bytes) -> dict[int, list[bytes]]:
        """Send a frame, and return what came out by which port."""
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
        """Return all cells, by name."""
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
        """Return packets and bytes by index, by name."""
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


# ---- Replaying ----


_SHOWN_CELLS = 8


def compile_recorded(recording: Recording) -> tuple[dict[str, Any], p4i.P4Info]:
    """Compile the recorded sources, not those of today, to BMv2 JSON and P4Info. UserError if they are refused."""
    from gradbed.switch.compiler import compile_p4

    with tempfile.TemporaryDirectory() as folder:
        for name, text in recording.sources.items():
            path = Path(folder, name)
            if not path.resolve().is_relative_to(Path(folder).resolve()):
                raise UserError(f"the recording names a file outside of its program: {name}")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        compiled = compile_p4(Path(folder, recording.program), defines=dict(recording.defines))
    return compiled.json, compiled.p4info


def replay(
    recording: Recording, bmv2_json: Mapping[str, Any], info: p4i.P4Info, build: Build = build_program
) -> list[str]:
    """Replay a recording on this switch with a program, and return the differences.

    Entries, frames in order, and the state at the end are compared. Registers that the recorded program lacks are
    ignored: p4c removes those that have no effect.
    """
    with OwnSwitch(recording.ports, build) as switch:
        switch.push(bmv2_json, info)
        refused = [
            f"entry {number}: {why}"
            for number, entity in enumerate(recording.entities())
            if (why := switch.insert(entity))
        ]
        differences = [*refused, *_frames(recording, switch)]
        found = state_of(switch.registers(info), switch.counters(info), info, recording.times)
        return differences + list(_state(recording.state, found))


def _frames(recording: Recording, switch: OwnSwitch) -> Iterator[str]:
    for number, exchange in enumerate(recording.frames):
        frame = bytes.fromhex(exchange.sent)
        arrives = not (recording.untagged and ends_in_tag(frame))
        came_out = switch.exchange(exchange.in_port, frame) if arrives else {}
        out = {port: [_seen(recording, each).hex() for each in frames] for port, frames in came_out.items()}
        if out != exchange.out:
            yield f"frame {number}: {_shown(out)} instead of {_shown(exchange.out)}"
        for _ in range(recording.rounds):
            for port, marker in recording.markers_from(exchange.in_port):
                if switch.exchange(exchange.in_port, marker).keys() != {port}:
                    yield f"frame {number}: the marker to port {port} does not leave by it alone"


def _seen(recording: Recording, frame: bytes) -> bytes:
    return without_tag(frame) if recording.untagged else frame


def _shown(out: Outputs) -> str:
    return ", ".join(f"port {port}: {' '.join(frames)}" for port, frames in sorted(out.items())) or "nothing"


def _state(recorded: State, found: State) -> Iterator[str]:
    for name, cells in recorded.items():
        if name not in found:
            yield f"{name}: the program has none"
            continue
        ours = found[name]
        differ = sorted(index for index in cells.keys() | ours.keys() if cells.get(index) != ours.get(index))
        if differ:
            shown = [f"[{index}] {ours.get(index, 0)} instead of {cells.get(index, 0)}" for index in differ]
            more = f" and {len(differ) - _SHOWN_CELLS} more" if len(differ) > _SHOWN_CELLS else ""
            yield f"{name}: {', '.join(shown[:_SHOWN_CELLS])}{more}"
