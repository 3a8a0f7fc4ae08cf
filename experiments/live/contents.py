"""Details of a running network for the page: contents of switches, read little by little, and packets of a link."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from gradbed.common.errors import UserError
from gradbed.controller.southbound.interface import SouthboundError
from gradbed.experiments.programs import Program
from gradbed.experiments.runtimes.interface import Runtime
from gradbed.experiments.setup import NetworkSetup, TrialTask
from gradbed.topo.selectors import select

# ---- Packets of a link ----


EVERY_S = 0.5
MOST_PACKETS = 20
"""In one capture: its first ones, so that a busy link does not fill the page."""

Tell = Callable[[Mapping[str, Any]], None]


class LinkWatch:
    """Captures on the link that a page shows.

    Each capture is a file in the trial's folder, which the process that serves the page reads and removes.
    """

    def __init__(self, runtime: Runtime, task: TrialTask[Any], tell: Tell) -> None:
        self._runtime = runtime
        self._task = task
        self._tell = tell
        self._begin_us = runtime.now_us()
        self._link: int | None = None
        self._number = 0
        self._runs = False
        self._next_s = 0.0

    def watch(self, link: int | None) -> None:
        """Capture packets of this link from now on; None: of none."""
        if link != self._link:
            self._end()
            self._link = link if link is not None and link < len(self._runtime.topology.links) else None
            self._next_s = 0.0

    def read_due(self) -> None:
        now_s = time.monotonic()
        if self._link is not None and now_s >= self._next_s:
            self._next_s = now_s + EVERY_S
            self._end()
            self._start(self._link)

    def _start(self, number: int) -> None:
        link = self._runtime.topology.links[number]
        self._number += 1
        try:
            wanted = select(self._runtime.topology, f"{link.a.node}-{link.b.node}")
            self._runtime.backend.start_capture(self._file, wanted, packets=MOST_PACKETS)
        except UserError as error:
            self._tell({"kind": "event", "level": "note", "text": str(error)})
            self._link = None
            return
        self._runs = True

    def _end(self) -> None:
        if not self._runs:
            return
        self._runs = False
        try:
            packets = self._runtime.backend.stop_capture(self._file)
        except UserError:
            packets = 0
        if not packets:
            self._file.unlink(missing_ok=True)
            return
        self._tell({
            "kind": "captured", "link": self._link, "file": str(self._file), "begin_ns": self._begin_ns(),
            "scale": self._task.scale.factor,
        })  # fmt: skip

    @property
    def _file(self) -> Any:
        return self._task.folder / f"live-{self._number}.pcapng"

    def _begin_ns(self) -> int:
        """Return the time at which the network came up, by the clock of captures."""
        if self._task.configuration.clock == "virtual":
            return 1000 * self._begin_us
        return time.time_ns() - 1000 * (self._runtime.now_us() - self._begin_us)


# ---- What switches hold ----


WATCHED_S = 0.5
"""So often the switch is read that somebody looks at."""

SHARE = 0.01
"""Of the time of a run, at most, goes into reading one switch after the other for the recording."""

MOST_CELLS = 64
"""Of a register or a counter that are told."""

LARGEST_REGISTER, LARGEST_WATCHED = 4096, 65536
"""Cells of register arrays that are read in turn, and where somebody looks. Reading a million takes seconds, in
which the network would stand still: of those their size is told."""


class Contents:
    """Contents of a runtime's switches, read little by little and sent to the page."""

    def __init__(self, runtime: Runtime, network: NetworkSetup, task: TrialTask[Any], tell: Tell) -> None:
        self._runtime = runtime
        self._tell = tell
        by = task.configuration.program

        @cache
        def registers(program: Program) -> dict[str, int]:
            content = json.loads(program.compiled(by).json.read_text(encoding="utf-8"))
            return {each["name"]: each["size"] for each in content.get("register_arrays", ())}

        self._registers = {
            name: registers(program) if isinstance(program, Program) else {}
            for name, program in network.switches.items()
        }
        self._switches = [name for name, program in network.switches.items() if isinstance(program, Program)]
        self._turn = 0
        self._next_turn_s = self._next_watched_s = 0.0
        self._watched: str | None = None
        self._link = LinkWatch(runtime, task, tell)
        self._told: dict[tuple[str, str], Any] = {}

    def watch(self, switch: str | None, link: int | None) -> None:
        """Read this switch and this link more often, as a page shows them; None: none."""
        self._watched = switch if switch in self._registers else None
        self._link.watch(link)
        self._next_watched_s = 0.0

    def plan_changed(self) -> None:
        """Send the plans of the switches for which they have changed."""
        for name, plan in self._runtime.plan().switches.items():
            content = plan.model_dump(mode="json", exclude_defaults=True)
            if self._told.get(("plan", name)) != content:
                self._told["plan", name] = content
                self._tell({"kind": "plan", "switch": name, "plan": content})

    def read_due(self) -> None:
        """Read what is due: captures, the switch that a page shows, or the next switch in turn."""
        now_s = time.monotonic()
        self._link.read_due()
        if self._watched is not None and now_s >= self._next_watched_s:
            self._next_watched_s = now_s + WATCHED_S
            self._read(self._watched, LARGEST_WATCHED)
        elif self._switches and now_s >= self._next_turn_s:
            self._turn = (self._turn + 1) % len(self._switches)
            self._read(self._switches[self._turn], LARGEST_REGISTER)
            if self._turn == 0:
                self.plan_changed()
            self._next_turn_s = now_s + (time.monotonic() - now_s) / SHARE

    def close(self) -> None:
        """Stop captures."""
        self._link.watch(None)

    def _read(self, switch: str, largest: int) -> None:
        try:
            counters = {name: cells[:MOST_CELLS] for name, cells in self._runtime.counters(switch).items() if cells}
            registers = {
                name: self._register(switch, name, size) if size <= largest else {"size": size}
                for name, size in self._registers[switch].items()
            }
        except (UserError, SouthboundError):
            return  # it is away; what it counts later is told later
        row = {"kind": "switch", "switch": switch, "counters": counters, "registers": registers}
        if self._told.get(("switch", switch)) != row:
            self._told["switch", switch] = row
            self._tell(row)

    def _register(self, switch: str, name: str, size: int) -> dict[str, Any]:
        cells = self._runtime.registers(switch, name)
        return {"size": size, "cells": list(cells.items())[:MOST_CELLS], "used": len(cells)}
