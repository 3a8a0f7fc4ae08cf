"""A recording once more on this switch, and where the two differ."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from finsy.proto import p4i

from gradbed.common.errors import UserError
from gradbed.switch.codegen import build_program
from gradbed.switch.recordings.own_switch import OwnSwitch
from gradbed.switch.recordings.recording import Outputs, Recording, State, ends_in_tag, state_of, without_tag
from gradbed.switch.state.pipeline import Build

_SHOWN_CELLS = 8


def compile_recorded(recording: Recording) -> tuple[dict[str, Any], p4i.P4Info]:
    """BMv2 JSON and P4Info that our compiler makes of the recorded sources, not of today's. UserError if it refuses
    them."""
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
    """Where this switch, with this program, differs from what was recorded: entries, frames in order, state at the
    end. [] if nowhere.

    Registers that the recorded program does not have are passed over: p4c leaves out those that decide nothing.
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
