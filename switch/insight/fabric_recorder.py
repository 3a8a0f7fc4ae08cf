"""Records of a fabric whose data plane is a thread of its own: kept while it runs, handed over as a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gradbed.switch.engine import Engine, EngineDevice
from gradbed.switch.insight.instrumented import InstrumentedProgram
from gradbed.switch.insight.recorder import Level, Recorder, as_words


class FabricRecorder:
    """Of an engine that does not run yet; closed after it."""

    def __init__(self, engine: Engine, devices: Mapping[int, EngineDevice], level: Level) -> None:
        self._engine = engine
        self._devices = devices
        self._recorder = Recorder(level)
        self._addresses: dict[int, int] = {}
        """Device ids by the addresses of their states, the last that each address had."""
        self._parts: list[tuple[bytes, dict[int, int]]] = []
        """Words, and what addresses meant in them."""
        self._lost = False
        engine.record(self._recorder.pointer)

    def close(self) -> None:
        self._recorder.close()

    def before_restart(self) -> None:
        """A switch is about to lose its state, whose address may become another one's."""
        with self._engine.guard:
            self._take()

    def _take(self) -> None:
        running = {device.state.pointer: number for number, device in self._devices.items() if device.program}
        self._addresses = {**self._addresses, **running}
        try:
            self._parts.append((self._recorder.take(), dict(self._addresses)))
        except MemoryError:
            self._lost = True

    def write(self, file: Path) -> dict[str, Any]:
        """Write the words since the last call, and behind them those of the entries of each switch as they are now;
        what is to be known to read them (read_recording). MemoryError if they were too many."""
        devices = []
        with self._engine.guard, file.open("wb") as target:
            self._take()
            if self._lost:
                raise MemoryError("more was recorded than can be kept")
            taken, self._parts = self._parts, []
            parts = [{"words": target.write(words) // 8, "devices": list(of.items())} for words, of in taken]
            for device_id, device in self._devices.items():
                entries = 0
                if isinstance(device.program, InstrumentedProgram):
                    found = self._recorder.entries(device.state, len(device.program.model.tables))
                    entries = target.write(found) // 8
                devices.append({"device_id": device_id, "start_ns": device.start_ns, "entry_words": entries})
        return {"parts": parts, "devices": devices}


@dataclass(frozen=True)
class Recording:
    """parts: words, and device ids by the addresses of states in them. entries: words by device id. start_us: when
    each switch came up, after the first one."""

    parts: Sequence[tuple[Sequence[int], Mapping[int, int]]]
    entries: Mapping[int, Sequence[int]]
    start_us: Mapping[int, int]


def read_recording(file: Path, written: Mapping[str, Any]) -> Recording:
    """written: what FabricRecorder.write returned."""
    every, at = as_words(file.read_bytes()), 0
    parts, entries = [], {}
    for part in written["parts"]:
        parts.append((every[at : at + part["words"]], dict(part["devices"])))
        at += part["words"]
    for each in written["devices"]:
        entries[each["device_id"]] = every[at : at + each["entry_words"]]
        at += each["entry_words"]
    first_ns = min(each["start_ns"] for each in written["devices"])
    start_us = {each["device_id"]: (each["start_ns"] - first_ns) // 1000 for each in written["devices"]}
    return Recording(parts, entries, start_us)
