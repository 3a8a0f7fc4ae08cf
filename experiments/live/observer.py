"""Looks on while points run, on either clock, and tells the live view of it."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gradbed.common.errors import UserError
from gradbed.experiments.configuration.faults import Fault
from gradbed.experiments.engine.onlooker import Onlooker
from gradbed.experiments.live.channel import Feed
from gradbed.experiments.live.contents import Contents
from gradbed.experiments.live.introduction import introduction
from gradbed.experiments.live.pace import Pace
from gradbed.experiments.live.recording import LEAVE
from gradbed.experiments.phases import Phase, Progress
from gradbed.experiments.scale import Scale
from gradbed.experiments.setup import NetworkSetup, PointTask
from gradbed.experiments.testbeds.interface import Testbed

FRAME_S = 0.1
"""Between frames on the real clock, and on a virtual one that is held back."""

SHARE = 0.03
"""Of the time of a run that goes into looking at it, at most."""

LOOK_S = 0.005
"""Commands of the page are taken in so often."""

LONGEST_US, SHORTEST_US = 1_000_000, 100
"""Virtual time between looks, where nobody acts meanwhile."""

VALUES = ("loss", "mean_loss", "accuracy", "seconds")
"""What agents tell of rounds, by the names that all systems have for it."""
ROUNDS = ("round", "version")


class LiveObserver(Onlooker):
    """One for all points of a command. paused: the virtual clock waits at the start of each point for the page."""

    def __init__(self, feed: Feed, *, paused: bool = False) -> None:
        self._feed = feed
        self._starts_paused = paused
        self._testbed: Testbed | None = None

    # What the engine tells.

    def network_is_up(self, testbed: Testbed, network: NetworkSetup, task: PointTask[Any], system: str) -> None:
        self._testbed = testbed
        self._scale: Scale = task.scale
        self._is_virtual = task.configuration.clock == "virtual"
        self._begin_us = testbed.now_us()
        self._phase = ""
        self._numbers: dict[int, int] = {}
        self._told: dict[tuple[str, str], tuple[int | None, ...]] = {}
        self._order = {
            pair: 2 * number + back
            for number, link in enumerate(testbed.topology.links)
            for back, pair in enumerate(((link.a.node, link.b.node), (link.b.node, link.a.node)))
        }
        self._pace = Pace()
        self._spacing_us = SHORTEST_US
        self._next_frame_s = self._next_look_s = 0.0
        self._contents = Contents(testbed, network, task, self.tell)
        self.tell(introduction(testbed, network, task, system))
        self._take_frame()
        self._contents.plan_changed()
        if self._is_virtual:
            self._pace.set_speed(testbed.now_us(), None)
            if self._starts_paused:
                self._pace.pause()
            self._tell_clock()
            testbed.look_on(self._look_virtual)
        else:
            testbed.look_on(self._look_real)

    def phase_begins(self, phase: Phase, jobs: Sequence[int]) -> None:
        self._phase = phase.name
        self._numbers = {job: place for place, job in enumerate(jobs, 1)}
        self.tell({"kind": "phase", "name": phase.name, "begins": True})
        self._contents.plan_changed()

    def agent_told(self, event: Mapping[str, Any]) -> None:
        number = next((event[name] for name in ROUNDS if name in event), None)
        for name in VALUES:
            if number is not None and isinstance(event.get(name), (int, float)):
                row = {"phase": self._phase, "name": name, "round": number, "value": float(event[name])}
                self.tell({"kind": "value", "job": self._numbers.get(event.get("job", 0), 0), **row})

    def progressed(self, bars: Sequence[Progress]) -> None:
        told = [[bar.label, bar.completed, bar.total, bar.note] for bar in bars]
        if told != getattr(self, "_bars", None):
            self._bars = told
            self.tell({"kind": "progress", "bars": told})

    def fault_happens(self, fault: Fault) -> None:
        self.tell({"kind": "event", "level": "fault", "text": fault.words})

    def phase_ended(self, phase: Phase) -> None:
        self._take_frame()
        self.tell({"kind": "phase", "name": phase.name, "begins": False})

    def network_goes(self) -> None:
        assert self._testbed is not None
        self._testbed.look_on(None)
        self._frame_if_new()
        self._contents.close()
        self.tell({"kind": "end"})
        self._testbed = None

    def given_up(self) -> None:
        self._feed.send({"kind": LEAVE})

    # Looking.

    def tell(self, row: Mapping[str, Any]) -> None:
        assert self._testbed is not None
        passed_us = self._testbed.now_us() - self._begin_us
        self._feed.send({"kind": row["kind"], "t_us": round(self._scale.nominal_time(passed_us), 3), **row})

    def _look_virtual(self) -> int:
        """As of Testbed.look_on."""
        assert self._testbed is not None
        now_us, now_s = self._testbed.now_us(), time.monotonic()
        if now_s < self._next_look_s and self._pace.is_free:
            # Most looks end here. Where little happens looking must not be what takes the time.
            self._spacing_us = min(LONGEST_US, 2 * self._spacing_us)
            return now_us + self._spacing_us
        if self._pace.arrived(now_us):
            self._tell_clock()
        if now_s >= self._next_look_s:
            self._next_look_s = now_s + LOOK_S
            self._obey(now_us, 0.0)
        held = False
        while self._feed.is_open and (self._pace.paused or self._pace.ahead_s(now_us) > 0):
            if not held or time.monotonic() >= self._next_frame_s:
                self._frame_if_new()
                held = True
            self._obey(now_us, FRAME_S if self._pace.paused else min(FRAME_S, self._pace.ahead_s(now_us)))
        if time.monotonic() >= self._next_frame_s:
            self._timed_frame()
            self._spacing_us = max(SHORTEST_US, self._spacing_us // 4)
        else:
            self._spacing_us = min(LONGEST_US, 2 * self._spacing_us)
        paced_us = self._pace.next_us(now_us)
        return now_us + self._spacing_us if paced_us is None else min(paced_us, now_us + self._spacing_us)

    @contextlib.contextmanager
    def on_a_thread(self) -> Iterator[None]:
        """Look at a network of the real clock where nobody waits for events."""
        ended = threading.Event()

        def look() -> None:
            while not ended.wait(FRAME_S):
                try:
                    self._look_real()
                except (UserError, RuntimeError):
                    return  # the network goes

        assert self._testbed is not None
        self._testbed.look_on(None)
        thread = threading.Thread(target=look, name="live view", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def _look_real(self) -> int:
        assert self._testbed is not None
        self._obey(self._testbed.now_us(), 0.0)
        self._timed_frame()
        return self._testbed.now_us() + round(1e6 * max(FRAME_S, self._next_frame_s - time.monotonic()))

    def _timed_frame(self) -> None:
        """A frame, and what is due of switches; the next one comes when that has become a small share of the time."""
        started_s = time.monotonic()
        if self._feed.has_room():
            self._take_frame()
            self._next_frame_s = started_s + (time.monotonic() - started_s) / SHARE
            self._contents.read_due()
        else:
            self._next_frame_s = started_s + LOOK_S

    def _frame_if_new(self) -> None:
        """While time stands still: of what happened up to here."""
        self._take_frame()
        self._contents.read_due()
        self._next_frame_s = time.monotonic() + FRAME_S

    def _take_frame(self) -> None:
        assert self._testbed is not None
        changed = {}
        for row in self._testbed.fabric.link_statistics():
            pair = row.from_node, row.to_node
            now = (row.packets, row.bytes, row.queue_drops, row.queued)
            if self._told.get(pair) != now:
                self._told[pair] = now
                changed[str(self._order[pair])] = now
        self.tell({"kind": "frame", "links": changed})

    # Commands.

    def _obey(self, now_us: int, timeout_s: float) -> None:
        for command in self._feed.commands(timeout_s):
            try:
                self._do(command, now_us)
            except UserError as error:
                self.tell({"kind": "event", "level": "note", "text": str(error)})

    def _do(self, command: Mapping[str, Any], now_us: int) -> None:
        match command["command"]:
            case "watch":
                self._contents.watch(command.get("switch"), command.get("link"))
                return
            case "pause":
                self._pace.pause()
            case "run":
                self._pace.run(now_us)
            case "step":
                self._pace.step(now_us, round(command["step_us"] / self._scale.factor))
            case "speed":
                self._pace.set_speed(now_us, command["speed"])
        self._tell_clock()

    def _tell_clock(self) -> None:
        if self._is_virtual:
            self.tell({"kind": "clock", "paused": self._pace.paused, "speed": self._pace.speed})


@contextlib.contextmanager
def looked_on(
    observer: LiveObserver, testbed: Testbed, network: NetworkSetup, task: PointTask[Any]
) -> Iterator[None]:
    """Look at a network without phases, of the real clock. The recording goes into the task's folder."""
    observer.network_is_up(testbed, network, task, "network")
    try:
        with observer.on_a_thread():
            yield
    finally:
        observer.network_goes()
