"""Records of a fabric whose data plane is a thread of its own: kept while it runs, handed over as a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from switch.engine import Engine, EngineDevice
from switch.insight.instrumented import InstrumentedProgram
from switch.insight.recorder import Level, Recorder, as_words


class FabricRecorder:
    """Of an engine that does not run yet; closed after it."""

    def __init__(self, engine: Engine, devices: Mapping[int, EngineDevice], level: Level) -> None:
        self._engine = engine
        self._devices = devices
        self._recorder = Recorder(level)
        self._addresses: dict[int, list[int]] = {device_id: [] for device_id in devices}
        """Of the states that each switch has had."""
        engine.record(self._recorder.pointer)

    def close(self) -> None:
        self._recorder.close()

    def note_states(self) -> None:
        """Call it before a switch loses its state."""
        for device_id, device in self._devices.items():
            if device.program is not None and device.state.pointer not in self._addresses[device_id]:
                self._addresses[device_id].append(device.state.pointer)

    def write(self, file: Path) -> dict[str, Any]:
        """Write the words since the last call, and behind them those of the entries of each switch as they are now;
        what is to be known to read them (read_recording). MemoryError if they were too many."""
        self.note_states()
        told = []
        with self._engine.guard, file.open("wb") as target:
            words = target.write(self._recorder.take()) // 8
            for device_id, device in self._devices.items():
                entries = 0
                if isinstance(device.program, InstrumentedProgram):
                    found = self._recorder.entries(device.state, len(device.program.model.tables))
                    entries = target.write(found) // 8
                addresses = self._addresses[device_id]
                told.append(
                    {
                        "device_id": device_id,
                        "start_ns": device.start_ns,
                        "addresses": addresses,
                        "entry_words": entries,
                    }
                )
        return {"words": words, "devices": told}


@dataclass(frozen=True)
class Recording:
    """devices: device ids by the addresses of their states. entries: words by device id. start_us: when each switch
    came up, after the first one."""

    words: Sequence[int]
    devices: Mapping[int, int]
    entries: Mapping[int, Sequence[int]]
    start_us: Mapping[int, int]


def read_recording(file: Path, told: Mapping[str, Any]) -> Recording:
    """told: what FabricRecorder.write returned."""
    every = as_words(file.read_bytes())
    at = told["words"]
    first_ns = min(each["start_ns"] for each in told["devices"])
    entries = {}
    for each in told["devices"]:
        entries[each["device_id"]] = every[at : at + each["entry_words"]]
        at += each["entry_words"]
    return Recording(
        every[: told["words"]],
        {address: each["device_id"] for each in told["devices"] for address in each["addresses"]},
        entries,
        {each["device_id"]: (each["start_ns"] - first_ns) // 1000 for each in told["devices"]},
    )
