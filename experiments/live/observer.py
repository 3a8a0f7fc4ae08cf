"""Observer of trials for the live view, on either clock; the page in turn paces the virtual clock."""

from __future__ import annotations

import contextlib
import json
import select
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from gradbed.common.errors import UserError
from gradbed.experiments.configuration.faults import Fault
from gradbed.experiments.engine.observer import TrialObserver
from gradbed.experiments.live.contents import Contents
from gradbed.experiments.live.recording import LEAVE, VERSION, Row
from gradbed.experiments.phases import Phase, Progress
from gradbed.experiments.programs import Program
from gradbed.experiments.runtimes.interface import Runtime
from gradbed.experiments.scale import Scale
from gradbed.experiments.setup import NetworkSetup, TrialTask

# ---- The channel: rows one way, commands of the page the other ----


BUFFER_BYTES = 4_000_000
"""So much may wait before the network's process does."""


class Feed:
    """The channel's end in the network's process; once the page's process is gone, rows are dropped."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._unread = b""
        self.is_open = True
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER_BYTES)

    def send(self, row: Row) -> None:
        if not self.is_open:
            return
        try:
            self._connection.sendall(json.dumps(row, separators=(",", ":")).encode() + b"\n")
        except OSError:
            self.is_open = False

    def has_room(self) -> bool:
        """Return whether a row can be sent without blocking."""
        poll = select.poll()
        poll.register(self._connection, select.POLLOUT)
        return bool(poll.poll(0))

    def commands(self, timeout_s: float = 0.0) -> list[dict[str, Any]]:
        """Return received commands; wait up to timeout_s for the first one."""
        poll = select.poll()
        poll.register(self._connection, select.POLLIN)
        # Less than nothing would be without end.
        if not self.is_open or not poll.poll(1000 * max(0.0, timeout_s)):
            return []
        with contextlib.suppress(BlockingIOError):
            piece = self._connection.recv(65536)
            if not piece:
                self.is_open = False
            self._unread += piece
        *lines, self._unread = self._unread.split(b"\n")
        return [json.loads(line) for line in lines]


# ---- The first row: what the network is ----


def introduction(runtime: Runtime, network: NetworkSetup, task: TrialTask[Any], system: str) -> dict[str, Any]:
    """gradbed.experiments.live.recording says what it has; x and y of nodes come later. Rates and delays are
    nominal."""
    topology = runtime.topology
    return {
        "kind": "begin",
        "version": VERSION,
        "title": f"{system} on {topology.name}",
        "system": system,
        "clock": task.configuration.clock,
        "scale": task.scale.factor,
        "seed": task.seed,
        "folder": str(task.folder),
        "nodes": [
            *({"name": host.name, "tier": None, "ip": host.ip} for host in topology.hosts),
            *({"name": switch.name, "tier": switch.tier, "number": switch.number} for switch in topology.switches),
        ],
        "links": [
            {
                "a": link.a.node,
                "b": link.b.node,
                "a_port": link.a.port,
                "b_port": link.b.port,
                "rate_bps": None if link.model.rate_bps is None else task.scale.nominal_rate(link.model.rate_bps),
                "delay_us": task.scale.nominal_time(link.model.delay_us),
                "queue_packets": link.model.queue_packets,
            }
            for link in topology.links
        ],
        "programs": {
            name: _program(program) for name, program in network.switches.items() if isinstance(program, Program)
        },
    }


def _program(program: Program) -> dict[str, Any]:
    return {"name": program.name, "source": str(program.source), "macros": dict(program.macros)}


# ---- How fast the virtual clock goes ----


AHEAD_S = 0.02
"""So much of real time at most goes by between two looks at a clock that is held back."""


class Pace:
    """Times of the network are in microseconds, emulated; `real_s` tells the real time in seconds."""

    def __init__(self, real_s: Callable[[], float] = time.monotonic) -> None:
        self._real_s = real_s
        self.paused = False
        self.speed: float | None = None
        """Times of the network over real time; None: as fast as possible."""
        self._anchor_us = 0
        self._anchor_s = 0.0
        self._stop_us: int | None = None
        """Where a step ends."""

    @property
    def is_free(self) -> bool:
        """Return whether nothing holds back the clock, now or soon."""
        return not self.paused and self.speed is None and self._stop_us is None

    def run(self, now_us: int) -> None:
        self.paused, self._stop_us = False, None
        self._hold(now_us)

    def pause(self) -> None:
        self.paused, self._stop_us = True, None

    def step(self, now_us: int, step_us: int) -> None:
        """Run for this time and pause there; 0: until the next event."""
        self.paused = False
        self._stop_us = now_us + step_us
        self._hold(now_us)

    def set_speed(self, now_us: int, speed: float | None) -> None:
        self.speed = speed
        self._hold(now_us)

    def _hold(self, now_us: int) -> None:
        """Start counting real time from here."""
        self._anchor_us, self._anchor_s = now_us, self._real_s()

    def arrived(self, now_us: int) -> bool:
        """Return whether a step ends at this time, and pause if so."""
        if self._stop_us is None or now_us < self._stop_us:
            return False
        self.pause()
        return True

    def ahead_s(self, now_us: int) -> float:
        """Return how long the network has to wait for real time, in seconds."""
        if self.speed is None:
            return 0.0
        return (now_us - self._anchor_us) / 1e6 / self.speed - (self._real_s() - self._anchor_s)

    def next_us(self, now_us: int) -> int | None:
        """Return the latest time of the next check; None: any."""
        times = [] if self.speed is None else [now_us + max(1, round(1e6 * AHEAD_S * self.speed))]
        if self._stop_us is not None:
            times.append(max(self._stop_us, now_us + 1))
        return min(times, default=None)


# ---- Looking on ----


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


class LiveObserver(TrialObserver):
    """Observer of all trials of a command for the live view."""

    def __init__(self, feed: Feed, *, paused: bool = False) -> None:
        """Observe for the page at the other end of `feed`.

        Args:
            paused: the virtual clock waits at the start of each trial until the page lets it run.
        """
        self._feed = feed
        self._starts_paused = paused
        self._runtime: Runtime | None = None

    # What the engine tells.

    def on_network_up(self, runtime: Runtime, network: NetworkSetup, task: TrialTask[Any], system: str) -> None:
        self._runtime = runtime
        self._scale: Scale = task.scale
        self._is_virtual = task.configuration.clock == "virtual"
        self._begin_us = runtime.now_us()
        self._phase = ""
        self._numbers: dict[int, int] = {}
        self._told: dict[tuple[str, str], tuple[int | None, ...]] = {}
        self._order = {
            pair: 2 * number + back
            for number, link in enumerate(runtime.topology.links)
            for back, pair in enumerate(((link.a.node, link.b.node), (link.b.node, link.a.node)))
        }
        self._pace = Pace()
        self._spacing_us = SHORTEST_US
        self._next_frame_s = self._next_look_s = 0.0
        self._contents = Contents(runtime, network, task, self.tell)
        self.tell(introduction(runtime, network, task, system))
        self._take_frame()
        self._contents.plan_changed()
        if self._is_virtual:
            self._pace.set_speed(runtime.now_us(), None)
            if self._starts_paused:
                self._pace.pause()
            self._tell_clock()
            runtime.set_periodic_hook(self._look_virtual)
        else:
            runtime.set_periodic_hook(self._look_real)

    def on_phase_start(self, phase: Phase, jobs: Sequence[int]) -> None:
        self._phase = phase.name
        self._numbers = {job: place for place, job in enumerate(jobs, 1)}
        self.tell({"kind": "phase", "name": phase.name, "begins": True})
        self._contents.plan_changed()

    def on_agent_event(self, event: Mapping[str, Any]) -> None:
        number = next((event[name] for name in ROUNDS if name in event), None)
        for name in VALUES:
            if number is not None and isinstance(event.get(name), (int, float)):
                row = {"phase": self._phase, "name": name, "round": number, "value": float(event[name])}
                self.tell({"kind": "value", "job": self._numbers.get(event.get("job", 0), 0), **row})

    def on_progress(self, bars: Sequence[Progress]) -> None:
        told = [[bar.label, bar.completed, bar.total, bar.note] for bar in bars]
        if told != getattr(self, "_bars", None):
            self._bars = told
            self.tell({"kind": "progress", "bars": told})

    def on_fault(self, fault: Fault) -> None:
        self.tell({"kind": "event", "level": "fault", "text": fault.words})

    def on_phase_end(self, phase: Phase) -> None:
        self._take_frame()
        self.tell({"kind": "phase", "name": phase.name, "begins": False})

    def on_network_stop(self) -> None:
        assert self._runtime is not None
        self._runtime.set_periodic_hook(None)
        self._frame_if_new()
        self._contents.close()
        self.tell({"kind": "end"})
        self._runtime = None

    def on_abort(self) -> None:
        self._feed.send({"kind": LEAVE})

    # Looking.

    def tell(self, row: Mapping[str, Any]) -> None:
        assert self._runtime is not None
        passed_us = self._runtime.now_us() - self._begin_us
        self._feed.send({"kind": row["kind"], "t_us": round(self._scale.nominal_time(passed_us), 3), **row})

    def _look_virtual(self) -> int:
        """Send what is due, obey commands, hold back the clock; as of Runtime.set_periodic_hook."""
        assert self._runtime is not None
        now_us, now_s = self._runtime.now_us(), time.monotonic()
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

        assert self._runtime is not None
        self._runtime.set_periodic_hook(None)
        thread = threading.Thread(target=look, name="live view", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def _look_real(self) -> int:
        assert self._runtime is not None
        self._obey(self._runtime.now_us(), 0.0)
        self._timed_frame()
        return self._runtime.now_us() + round(1e6 * max(FRAME_S, self._next_frame_s - time.monotonic()))

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
        assert self._runtime is not None
        changed = {}
        for row in self._runtime.backend.link_statistics():
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
def observed(observer: LiveObserver, runtime: Runtime, network: NetworkSetup, task: TrialTask[Any]) -> Iterator[None]:
    """Look at a network without phases, of the real clock. The recording goes into the task's folder."""
    observer.on_network_up(runtime, network, task, "network")
    try:
        with observer.on_a_thread():
            yield
    finally:
        observer.on_network_stop()
