"""The data plane: many switches, their links and ports, and one thread that moves packets through them."""

from __future__ import annotations

import ctypes
import errno
import logging
import os
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gradbed.common.errors import EndlessCircle, UserError
from gradbed.common.resources import Closing
from gradbed.switch.engine import abi
from gradbed.switch.engine.abi import EngineHandle
from gradbed.switch.engine.capture import Capture, CaptureInterface, Format, of_ports
from gradbed.switch.engine.device import EngineDevice
from gradbed.switch.engine.statistics import (
    Direction,
    EngineStatistics,
    InterfaceStatistics,
    LinkClasses,
    LinkStatistics,
    Patterns,
    PortNumber,
    pattern_structs,
)
from gradbed.topo.link import LinkModel

# ---- Links with PFC that wait for each other for good ----


@dataclass(frozen=True)
class Pause:
    """A priority of one direction of a link, by the port that has it, which is not sent."""

    device_id: int
    port: int
    direction: Direction
    priority: int

    @classmethod
    def of(cls, row: Any) -> Pause:
        return cls(row.device_id, row.port, "out" if row.outwards else "in", row.priority)


class LinksDeadlocked(EndlessCircle):
    """Links wait for each other in a circle, each until the next goes on. Its text is one line that names them."""

    def __init__(self, circle: Sequence[Pause], link_name: Callable[[int, int], str]) -> None:
        """Name these links by `link_name`, which takes the sender's device id and port."""
        self.circle = tuple(circle)
        links = [link_name(each.device_id, each.port) for each in circle]
        priorities = sorted({each.priority for each in circle})
        named = f"priority {priorities[0]}" if len(priorities) == 1 else f"priorities {_list(priorities)}"
        super().__init__(
            f"deadlock: links paused by PFC wait for each other in a cycle: {' for '.join([*links, links[0]])} "
            f"({named}): use routes without cycles, or disable PFC on one of these links"
        )


def _list(priorities: Sequence[int]) -> str:
    return ", ".join(map(str, priorities))


# ---- The engine ----


_logger = logging.getLogger(__name__)
_DEFAULT_LINK = LinkModel()
_DEFAULT_CPU_PORT = 510
_FOREVER_NS = 10**18
_FOREVER = 2**64 - 1


class Engine(EngineHandle, Closing):
    """Switches, links and ports are added before or after `start`; methods may be called from any thread.

    With `manual_clock` there is no thread: time stands still but for `advance`, which does everything that happens
    meanwhile, so that a run comes out the same every time. Use it as a context manager, or call `close`.
    """

    def __init__(self, *, manual_clock: bool = False, lps: int = 1) -> None:
        super().__init__(manual_clock, lps)
        self._manual_clock = manual_clock
        self._devices: dict[int, EngineDevice] = {}
        self._far: dict[tuple[int, int], int] = {}
        self._host_event_thread: threading.Thread | None = None

    def close(self) -> None:
        """Stop, and give everything back. The engine and its devices are unusable afterwards."""
        if self._pointer is None:
            return
        self.stop()
        self._library.gb_engine_host_event_close(self._pointer)
        if self._host_event_thread is not None:
            self._host_event_thread.join()
        for device in self._devices.values():
            device._close()
        self._free()

    # Switches, ports, links

    def add_switch(
        self,
        device_id: int,
        name: str = "",
        cpu_port: int | None = _DEFAULT_CPU_PORT,
        *,
        drop_port: int = abi.DROP_PORT,
        priorities: int = abi.PRIORITIES,
        seed: int = 0,
        lp: int = 0,
    ) -> EngineDevice:
        """Add a switch without a program, which drops and counts packets until one is loaded.

        `cpu_port`: port of packet-ins and packet-outs, which the switch has from the beginning; None for none.
        `drop_port`: what mark_to_drop writes to egress_spec. `priorities`: queues of each port, one for each value of
        standard_metadata.priority from 0 on; the largest goes first. Packets of larger priorities are dropped
        (priority_drops). `seed`: random seed of its programs, beside the device id. `lp`: number of the logical
        process that runs it, 0 to lps - 1.
        """
        who = f"switch {name or device_id}"
        if not 0 <= drop_port < abi.MAX_PORTS:
            raise UserError(f"{who}: drop port {drop_port} is not in 0..{abi.MAX_PORTS - 1}")
        if cpu_port is not None and (not 0 <= cpu_port < abi.MAX_PORTS or cpu_port == drop_port):
            raise UserError(
                f"{who}: CPU port {cpu_port} is not in 0..{abi.MAX_PORTS - 1}, or is the drop port {drop_port}"
            )
        if not 1 <= priorities <= abi.PRIORITIES:
            raise UserError(f"{who}: a port has 1..{abi.PRIORITIES} priority queues, not {priorities}")
        port = abi.NO_PORT if cpu_port is None else cpu_port
        options = abi.SwitchOptionsStruct(port, drop_port, priorities, seed, lp)
        code = self.call("add_switch", device_id, ctypes.byref(options))
        if code == -errno.EEXIST:
            raise UserError(f"there are two switches with device id {device_id}: give each its own")
        _raise_unless_done(code, f"adding switch {name or device_id}")
        device = EngineDevice(self, device_id, name or str(device_id))
        self._devices[device_id] = device
        return device

    def add_interface(self, device_id: int, port: int, interface: str, link: LinkModel, seed: int) -> None:
        """Make a network interface of this namespace (one end of a veth pair) a port of the switch.

        The link model applies to both directions: to frames from the host before the pipeline sees them, to frames to
        the host before the interface does. Needs root (CAP_NET_RAW). The interface may be down, also later.
        """
        device = self._device(device_id)
        _require_one_channel(link)
        code = self.call(
            "add_interface",
            device_id,
            port,
            os.fsencode(interface),
            ctypes.byref(abi.LinkModelStruct.of(link, seed, 1)),
            ctypes.byref(abi.LinkModelStruct.of(link, seed, 0)),
        )
        self._check_interface(code, f"switch {device.name} port {port}, interface {interface}", device_id, port)

    def add_link(self, a: tuple[int, int], b: tuple[int, int], link: LinkModel, seed: int) -> None:
        """Connect two ports, each (device id, port), in memory."""
        for device_id, _ in (a, b):
            self._device(device_id)
        code = self.call(
            "add_link",
            *a,
            *b,
            ctypes.byref(abi.LinkModelStruct.of(link, seed, 0)),
            ctypes.byref(abi.LinkModelStruct.of(link, seed, 1)),
        )
        self._check_port(code, *a, *b)
        _raise_unless_done(code, f"link {a} to {b}")
        self._far |= {a: b[0], b: a[0]}

    def add_wire(
        self, a: tuple[int, int, str], b: tuple[int, int, str] | tuple[None, None, str], link: LinkModel, seed: int
    ) -> None:
        """Join two network interfaces by a link: what arrives at one leaves by the other, without a program between.

        An end is (device id, port, interface). The interface is one end of a veth pair whose other end is a port of a
        switch that another program runs (Open vSwitch); that switch has been added here, too, so that its ports have
        statistics, can be cut and captured. The end of a host is (None, None, interface): the link is then both
        directions of port a, as with `add_interface`.
        """
        (device_a, port_a, interface_a), (device_b, port_b, interface_b) = a, b
        self._device(device_a)
        if device_b is not None:
            self._device(device_b)
        _require_one_channel(link)
        code = self.call(
            "add_wire",
            device_a,
            port_a,
            os.fsencode(interface_a),
            0 if device_b is None else device_b,
            abi.NO_PORT if port_b is None else port_b,
            os.fsencode(interface_b),
            ctypes.byref(abi.LinkModelStruct.of(link, seed, 0)),
            ctypes.byref(abi.LinkModelStruct.of(link, seed, 1)),
        )
        ports = (device_a, port_a) if device_b is None or port_b is None else (device_a, port_a, device_b, port_b)
        self._check_interface(code, f"wire between {interface_a} and {interface_b}", *ports)

    def add_nic(self, device_id: int, port: int, interface: str, link: LinkModel) -> int:
        """Add a host's NIC for queue pairs (gradbed.switch.engine.queue_pairs) on an interface of this network
        namespace.

        It stands at a port, and `link` is between the two. Needs root (CAP_NET_RAW), and an engine with a thread.
        Returns the engine's descriptor that becomes readable when something is complete.
        """
        self._device(device_id)
        _require_one_channel(link)
        model = ctypes.byref(abi.LinkModelStruct.of(link, 0, 0))
        code = self.call("add_nic", device_id, port, os.fsencode(interface), model, model)
        self._check_interface(code, f"a NIC on {interface}", device_id, port)
        descriptor = self.call("notify_descriptor", device_id, port)
        _raise_unless_done(descriptor, f"a NIC on {interface}")
        return descriptor

    def add_open_port(self, device_id: int, port: int, link: LinkModel = _DEFAULT_LINK, seed: int = 0) -> None:
        """Add a port whose other end is in the caller's hand: `inject` and `drain`."""
        self._add_own_port("add_open_port", device_id, port, link, seed)

    def add_memory_port(self, device_id: int, port: int, link: LinkModel, seed: int) -> None:
        """Add a port to a host in this process, with the links and random generators of `add_interface`.

        Nothing receives there at first: `gradbed.switch.virtual` has the host's side.
        """
        self._add_own_port("add_memory_port", device_id, port, link, seed)

    def _add_own_port(self, verb: str, device_id: int, port: int, link: LinkModel, seed: int) -> None:
        self._device(device_id)
        _require_one_channel(link)
        directions = [ctypes.byref(abi.LinkModelStruct.of(link, seed, number)) for number in (1, 0)]
        code = self.call(verb, device_id, port, *directions)
        self._check_port(code, device_id, port)
        _raise_unless_done(code, f"port {port} of switch {device_id}")

    def set_link(
        self, device_id: int, port: PortNumber, link: LinkModel, directions: Sequence[Direction] = ("in", "out")
    ) -> None:
        """Change rate, delay, loss, queues of a port's directions from now on.

        What is queued or in flight stays, and so do the random generators. A link in memory has an "out" direction at
        each end and no "in".
        """
        name = self._device(device_id).name
        for direction in directions:
            struct = abi.LinkModelStruct.of(link, 0, 0)
            code = self.call("set_link", device_id, port, direction == "out", ctypes.byref(struct))
            if code == -errno.EINVAL:
                raise UserError(f"port {port} of switch {name} has no direction {direction!r} to be changed")
            _raise_unless_done(code, f"port {port} of switch {device_id}")

    def set_link_up(self, device_id: int, port: PortNumber, up: bool) -> None:
        """Cut the link at a port, or mend it: the ports at both ends go down, and what is sent on it is lost.

        Members of action selectors that watch such a port are left out meanwhile.
        """
        name = self._device(device_id).name
        code = self.call("set_link_up", device_id, port, up)
        if code == -errno.EINVAL:
            raise UserError(f"port {port} of switch {name} has no link to be cut")
        _raise_unless_done(code, f"port {port} of switch {device_id}")

    def capture(
        self, file: Path, ports: Iterable[tuple[int, int, Direction]], *, nanoseconds: bool = True
    ) -> Capture:
        """Write what passes ports, each (device id, port, direction), to a pcap file. See Capture.

        "out" frames are recorded when the port begins to send them, also those that the link then loses; "in" frames
        when the switch gets them. nanoseconds: resolution of its times; with False, the microseconds that old
        programs insist on.
        """
        return self._capture(file, "nanoseconds" if nanoseconds else "microseconds", [of_ports(ports)])

    def capture_interfaces(self, file: Path, interfaces: Sequence[CaptureInterface]) -> Capture:
        """Write a pcapng file with these interfaces. Frames that a link loses have a comment."""
        return self._capture(file, "pcapng", interfaces)

    def _capture(self, file: Path, kind: Format, interfaces: Sequence[CaptureInterface]) -> Capture:
        for device_id in {tap.device_id for each in interfaces for tap in each.taps}:
            self._device(device_id)
        return Capture(self, file, kind, interfaces)

    # Frames

    def inject(self, device_id: int, port: int, frame: bytes) -> None:
        """Let a frame arrive at an open port."""
        device = self._device(device_id)
        code = self.call("inject", device_id, port, frame, len(frame))
        if code == -errno.EINVAL:
            raise UserError(f"switch {device.name} has no open port {port}")
        if code == -errno.EMSGSIZE:
            raise ValueError(f"a frame has at most {abi.MAX_FRAME_BYTES} bytes, this one {len(frame)}")
        _raise_unless_done(code, "injecting a frame")

    def drain(self) -> list[tuple[int, int, bytes]]:
        """Return what left through open ports since the last call, in order: (device id, port, frame)."""
        return [(device_id, port, frame) for _, device_id, port, frame in self.drain_with_times()]

    def drain_with_times(self) -> list[tuple[int, int, int, bytes]]:
        """Drain as `drain` does, with the time of arrival in nanoseconds of the engine's clock in front."""
        drained = abi.DrainedStruct()
        data = (ctypes.c_uint8 * abi.MAX_FRAME_BYTES)()
        frames = []
        while self.call("drain", ctypes.byref(drained), data):
            frames.append((drained.time_ns, drained.device_id, drained.port, bytes(data[: drained.length])))
        return frames

    # Running

    def start(self) -> None:
        """Start the data-plane thread. Does nothing if it runs."""
        if self._manual_clock:
            raise RuntimeError("an engine with a manual clock has no thread: use advance")
        if self._host_event_thread is None:
            self._host_event_thread = threading.Thread(
                target=self._deliver_host_events, name="host events", daemon=True
            )
            self._host_event_thread.start()
        _raise_unless_done(self.call("start"), "starting the data plane")

    def record(self, recorder: int) -> None:
        """Record what instrumented programs do, from the start of the data-plane thread on.

        `recorder` is one of gradbed.switch.insight.recorder, and outlives the engine.
        """
        _raise_unless_done(self.call("record", recorder), "recording what the data plane does")

    def stop(self) -> None:
        """Stop the data-plane thread; packets stay where they are. Does nothing if it does not run."""
        self.call("stop")

    def quiesce(self, timeout_s: float = 1.0) -> bool:
        """Wait until no packet is queued, in flight or in a socket. False if that took longer than `timeout_s`."""
        timeout_ns = 0 if self._manual_clock else max(0, int(timeout_s * 1e9))
        return bool(self.call("quiesce", timeout_ns))

    def advance(self, microseconds: float, max_events: int = 10_000_000) -> None:
        """Advance the manual clock, working through all events of that time and calling back with host events.

        Raises RuntimeError when more than `max_events` happen: packets go round in circles.
        """
        code = self.call("advance", round(microseconds * 1000), max_events)
        if code == -errno.ELOOP:
            raise RuntimeError(f"more than {max_events} events: packets may be going round in circles")
        if code == -errno.EINVAL:
            raise RuntimeError("advance needs an engine with a manual clock")
        while self._deliver_host_event(0):
            pass

    def run_until(self, time_ns: int | None, due: ctypes.Array[ctypes.c_uint32], max_events: int) -> abi.StopStruct:
        """Advance the manual clock until a host or controller has to act.

        It ends at time_ns (None: never) at the latest, and after 0.2 s of the machine's time, so that Ctrl-C is
        noticed. Calls back with host events, which are of the time at which it stopped.

        `due`: receives the numbers of the inboxes that have frames, each once.

        Raises:
            ValueError: time_ns is over.
            EndlessCircle: max_events happened at one time.
            LinksDeadlocked: Links with PFC wait for each other for good.
            UserError: A switch sends its controller a message after expect_no_host_events, while several threads
            work.
        """
        stop = abi.StopStruct()
        until_ns = _FOREVER if time_ns is None else time_ns
        code = self.call("run_until", until_ns, max_events, ctypes.byref(stop), due, len(due))
        if code == -errno.EINVAL:
            raise ValueError(f"{time_ns} ns is in the past, or this engine has no manual clock")
        if code == -errno.ELOOP:
            raise EndlessCircle(
                f"packets go round in circles, more than {max_events:,} events at {self.now_ns() / 1e9:.6f} s: does "
                "a program recirculate, resubmit or clone without end?"
            )
        if code == -errno.EXDEV:
            raise UserError(
                "a switch sent its controller a message, which needs a single thread: leave --threads out"
            )
        if code == -errno.EDEADLK:
            raise LinksDeadlocked(self.deadlock(), self._link_name)
        if stop.host_events:
            while self._deliver_host_event(0):
                pass
        return stop

    def deadlock(self) -> list[Pause]:
        """Return links with PFC that wait for each other in a circle, each for the next; none if no link waits for
        good."""
        return [Pause.of(row) for row in self._rows("deadlock", abi.PauseStruct)]

    # Statistics

    def link_statistics(self) -> list[LinkStatistics]:
        """Return one row per link direction, in order of creation.

        Links in memory have two "out" directions and no "in".
        """
        found = []
        for row in self._rows("link_statistics", abi.LinkStatisticsStruct):
            arrays = ("channel_bytes", "pauses_sent", "pauses_received", "paused_ns")
            values: dict[str, Any] = {**abi.values(row), **{name: tuple(getattr(row, name)) for name in arrays}}
            found.append(LinkStatistics(direction="out" if values.pop("outwards") else "in", **values))
        return found

    def interface_statistics(self) -> list[InterfaceStatistics]:
        """Return one row per network interface: one for a port, one for each end of a wire."""
        rows = [abi.values(row) for row in self._rows("interface_statistics", abi.InterfaceStatisticsStruct)]
        return [InterfaceStatistics(direction="out" if row.pop("outwards") else "in", **row) for row in rows]

    def statistics(self) -> EngineStatistics:
        row = abi.EngineStatisticsStruct()
        self.call("statistics", ctypes.byref(row))
        values: dict[str, Any] = {**abi.values(row), "late_counts": tuple(row.late_counts)}
        return EngineStatistics(**values)

    def count_classes(self, patterns: Patterns) -> None:
        """Count packets by these classes from now on, from zero. UserError for too many, or too many words."""
        code = self.call("count_classes", pattern_structs(patterns), len(patterns))
        _raise_unless_done(code, f"cannot count packets by {len(patterns)} classes")

    def link_classes(self) -> list[LinkClasses]:
        """Return rows as `link_statistics` does; none while packets are not counted by class."""
        return [LinkClasses.of(row) for row in self._rows("link_classes", abi.LinkClassesStruct)]

    # Private

    def _device(self, device_id: int) -> EngineDevice:
        device = self._devices.get(device_id)
        if device is None:
            raise UserError(f"there is no switch with device id {device_id}")
        return device

    def _link_name(self, device_id: int, port: int) -> str:
        """Return the name of a link between two switches, as its sender has it."""
        return f"{self._device(device_id).name}-{self._device(self._far[device_id, port]).name}"

    def _check_interface(self, code: int, what: str, *ports: int) -> None:
        if code in (-errno.ENODEV, -errno.ENXIO):
            raise UserError(f"{what}: there is no such interface here")
        if code in (-errno.EPERM, -errno.EACCES):
            raise UserError(f"{what}: opening it needs root (CAP_NET_RAW)")
        self._check_port(code, *ports)
        _raise_unless_done(code, what)

    def _check_port(self, code: int, *ports: int) -> None:
        """Say what is wrong with one of the ports: device id, port, device id, port ..."""
        pairs = zip(ports[::2], ports[1::2], strict=True)
        named = " or ".join(f"port {port} of switch {self._device(device_id).name}" for device_id, port in pairs)
        if code == -errno.EEXIST:
            raise UserError(f"{named} is in use already")
        if code == -errno.EINVAL:
            raise UserError(f"{named}: ports are 0..{abi.MAX_PORTS - 1}, but for the drop port")

    def _rows(self, name: str, kind: type[ctypes.Structure]) -> list[ctypes.Structure]:
        capacity = 0
        while True:
            rows = (kind * capacity)()
            count = self.call(name, rows, capacity)
            if count <= capacity:
                return list(rows[:count])
            capacity = count

    def _deliver_host_events(self) -> None:
        while self._deliver_host_event(_FOREVER_NS):
            pass

    def _deliver_host_event(self, timeout_ns: int) -> bool:
        """Call back with the next host event; return False after the timeout, or when the engine is being closed."""
        pointer: Any = self.call("host_event_wait", timeout_ns)
        if not pointer:
            return False
        host_event = pointer.contents
        data = ctypes.string_at(ctypes.addressof(host_event.data), host_event.length)
        device, kind, list_id = self._devices[host_event.device_id], host_event.kind, host_event.list_id
        self._library.gb_host_event_free(pointer)
        try:
            device._on_host_event(kind, list_id, data)
        except Exception:
            # The next message is not to blame for this one's receiver.
            _logger.exception("switch %s: a callback failed", device.name)
        return True


def _require_one_channel(link: LinkModel) -> None:
    if link.channels > 1:
        raise UserError(
            f"only links in memory between switches have channels, not one with {link.channels} to elsewhere"
        )


def _raise_unless_done(code: int, what: str) -> None:
    if code < 0:
        raise UserError(f"{what}: {os.strerror(-code)}")
