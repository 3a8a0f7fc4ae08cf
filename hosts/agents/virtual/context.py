"""gradbed.hosts.agents.context on simulated time: agents are greenlets that hand over to each other where they
wait."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np
from greenlet import getcurrent, greenlet  # type: ignore[import-untyped]
from numpy.typing import NDArray

from gradbed.common.capabilities import REAL_CLOCK
from gradbed.common.errors import UserError
from gradbed.common.resources import Closing
from gradbed.formats.datagram import ETHERNET_BYTES
from gradbed.hosts.agents.config import AgentAddress
from gradbed.hosts.agents.context import FastPath, Result
from gradbed.hosts.agents.frames.counts import AsJson, InterfaceCounts, Patterns, by_interface, frames_library
from gradbed.hosts.agents.launching import BEGIN, INTERFACES, STOP
from gradbed.hosts.agents.nic import Nic, stamped
from gradbed.hosts.agents.nic_queue_pairs import AgentQueuePairs, NicWithQueuePairs
from gradbed.hosts.agents.virtual.clock import Timer, VirtualClock

Batch = tuple[NDArray[np.uint8], NDArray[np.uint32], NDArray[np.int64]]
"""Buffer, lengths, and when each arrived."""

_NOTHING: Batch = (np.zeros((0, 1 << 16), np.uint8), np.zeros(0, np.uint32), np.zeros(0, np.int64))
_MAX_WAITS = 100_000
"""So often an agent may wait without time going on."""


_FRAMES_OR_COMMAND = frozenset({"frames", "command"})


class VirtualPort:
    """A host's NIC, and the agents' interfaces that share it."""

    def __init__(self, clock: VirtualClock, nic: Nic) -> None:
        self.nic = nic
        self.has_frames = False
        """The NIC has something."""
        self._open: list[VirtualInterface] = []
        self._pairs: list[AgentQueuePairs] = []
        self._completed: list[AgentQueuePairs] = []
        clock.listen(nic, self._on_frames)

    def open_pairs(self, address: AgentAddress, wake: Callable[[], None]) -> AgentQueuePairs:
        """wake: of the agent."""
        if not isinstance(self.nic, NicWithQueuePairs):
            raise UserError("this network's NICs have no queue pairs")
        pairs = AgentQueuePairs(self.nic.open_queue_pairs(), address, wake)
        self._pairs.append(pairs)
        pairs.on_close(self._close_pairs)
        self._listen()
        return pairs

    def _close_pairs(self, pairs: AgentQueuePairs) -> None:
        self._pairs.remove(pairs)
        self._listen()

    def open(self, interface: VirtualInterface) -> None:
        self.distribute()  # what came before is not for the new one
        self._open.append(interface)
        self._listen()

    def close(self, interface: VirtualInterface) -> None:
        self._open.remove(interface)
        self._listen()

    def _listen(self) -> None:
        """Time needs not stop for frames that nobody waits for."""
        somebody = bool(self._open or self._pairs)
        self.nic.set_quiet(somebody and all(interface.quiet for interface in self._open))

    @property
    def is_shared(self) -> bool:
        return len(self._open) > 1

    def _on_frames(self) -> Callable[[], None] | None:
        """A batch has come, or something is completed; what wakes the agents that it may be for."""
        self._completed += [pairs for pairs in self._pairs if pairs.collect()]
        if self._pairs and not self._open:
            return self._wake
        self.has_frames = True
        if len(self._open) == 1 and not self._completed:
            return self._open[0].context.wake
        self.distribute()
        return self._wake

    def _wake(self) -> None:
        completed, self._completed = self._completed, []
        for pairs in completed:
            pairs.wake()
        for interface in tuple(self._open):
            if interface.waiting:
                interface.context.wake()

    def receive(self) -> Batch:
        """Return all frames that the NIC has."""
        self.has_frames = False
        buffer, lengths = self.nic.receive()
        return buffer, lengths, self.nic.times_ns

    def distribute(self) -> None:
        """Give each interface a copy of what has come for it; what nobody takes in is lost."""
        batch = self.receive()
        for interface in self._open:
            interface.keep(*batch)


class VirtualInterface(Closing):
    """gradbed.hosts.agents.context.Interface on a NIC of a simulated network."""

    def __init__(
        self,
        context: VirtualContext,
        port: VirtualPort,
        udp_port: int | None,
        ether_type: int | None,
        quiet: bool = False,
        except_udp_port: int | None = None,
    ) -> None:
        self.context = context
        self.quiet = quiet
        self.times_ns: NDArray[np.int64] = np.zeros(0, np.int64)
        self._port = port
        self._udp_port = udp_port
        self._ether_type = ether_type
        self._except_udp_port = except_udp_port
        self._batches: deque[Batch] = deque()
        self._is_open = True
        self.counts = InterfaceCounts.by(context.classes)
        port.open(self)

    @property
    def waiting(self) -> bool:
        """Something may wait to be received, and an agent is not to wait for more."""
        return not self.quiet and (bool(self._batches) or self._port.has_frames)

    def close(self) -> None:
        if self._is_open:
            self._is_open = False
            self._port.close(self)
            self.context.closed(self)

    def send(self, frames: NDArray[Any]) -> int:
        self._check_open()
        taken = self._port.nic.send(frames)
        self.counts.add_sent(frames, taken)
        return taken

    def send_at(
        self,
        frames: NDArray[Any],
        times_ns: NDArray[np.int64],
        lengths: NDArray[np.uint32] | None = None,
        *,
        stamp: bool = False,
    ) -> None:
        self._check_open()
        if not len(frames):
            return
        if stamp:
            frames = stamped(frames, np.maximum(times_ns, self.context.now_ns()), lengths)
        self.counts.add_sent(frames, self._port.nic.send(frames, lengths, times_ns), lengths)

    def _check_open(self) -> None:
        if not self._is_open:
            raise UserError("cannot send: the interface was closed")

    def receive(self) -> tuple[NDArray[np.uint8], NDArray[np.uint32]]:
        buffer, lengths, self.times_ns = self._next_batch()
        if len(lengths):
            self.counts.add_received(buffer, lengths)
        return buffer, lengths

    def _next_batch(self) -> Batch:
        if not self._batches and self._port.is_shared:
            self._port.distribute()
        if self._batches:
            return self._batches.popleft()
        if not (self._port.has_frames or self.quiet):
            return _NOTHING
        batch = self._port.receive()
        if not len(batch[1]):
            return batch
        chosen = self._wanted(*batch[:2])
        return batch if np.count_nonzero(chosen) == len(chosen) else _rows(batch, chosen)

    def keep(self, buffer: NDArray[np.uint8], lengths: NDArray[np.uint32], times_ns: NDArray[np.int64]) -> None:
        """Keep a copy of the frames that this interface takes in."""
        chosen = self._wanted(buffer, lengths)
        if chosen.any():
            self._batches.append(_rows((buffer, lengths, times_ns), chosen))

    def raw_frames(self) -> Nic | None:
        if self._batches or self.quiet or self._port.is_shared or not self._is_open:
            return None
        self._port.has_frames = False
        return self._port.nic

    def join(self, mac: bytes) -> None:
        """Do nothing: the NIC takes in all frames."""

    def drops(self) -> int:
        """Return 0: memory does not end."""
        return 0

    def _wanted(self, buffer: NDArray[np.uint8], lengths: NDArray[np.uint32]) -> NDArray[np.bool_]:
        """Return which frames the interface takes in, shape (frames,), as gradbed.hosts.agents.kernel.raw_socket
        does.
        """
        frames = buffer[: len(lengths)]
        if self._udp_port is not None:
            return udp_datagrams(frames, lengths, self._udp_port)
        wanted: NDArray[np.bool_] = np.ones(len(lengths), np.bool_)
        if self._ether_type is not None:
            wanted = (lengths >= ETHERNET_BYTES) & (_half_word(frames, 12) == self._ether_type)
        if self._except_udp_port is not None:
            wanted &= ~udp_datagrams(frames, lengths, self._except_udp_port)
        return wanted


def _rows(batch: Batch, chosen: NDArray[np.bool_]) -> Batch:
    """A copy of some frames of a batch."""
    buffer, lengths, times_ns = batch
    return buffer[: len(lengths)][chosen], lengths[chosen], times_ns[chosen]


def _half_word(frames: NDArray[np.uint8], offset: int) -> NDArray[np.int64]:
    return frames[:, offset].astype(np.int64) << 8 | frames[:, offset + 1]


def udp_datagrams(frames: NDArray[np.uint8], lengths: NDArray[np.uint32], udp_port: int) -> NDArray[np.bool_]:
    """Return which rows of `frames` are Ethernet frames with an unfragmented IPv4 datagram to a UDP port."""
    wanted: NDArray[np.bool_] = np.empty(len(lengths), np.bool_)
    if len(lengths):
        rows, at = np.ascontiguousarray(frames), np.ascontiguousarray(lengths, np.uint32)
        frames_library().gb_datagrams_to(
            udp_port,
            wanted.ctypes.data,
            rows.ctypes.data,
            rows.nbytes // len(rows),
            at.ctypes.data,
            len(at),
        )
    return wanted


class VirtualContext:
    """The context of an agent that is a greenlet. The greenlet that runs the clock starts, wakes and commands it."""

    def __init__(
        self,
        clock: VirtualClock,
        job: int,
        name: str,
        ports: dict[str, VirtualPort],
        on_event: Callable[[dict[str, Any]], None],
        compute_us: Callable[[], int],
        classes: Patterns = (),
    ) -> None:
        """ports: by the names of the host's interfaces, in order. compute_us: how long the next computation takes.
        classes: of packets, by which interfaces count."""
        self.job = job
        self.name = name
        self.classes = classes
        self.interfaces = tuple(ports)
        self.stopped = False
        self.activity = ""
        """What the agent waits for; empty: nothing."""
        self._clock = clock
        self._ports = tuple(ports.values())
        self._on_event = on_event
        self._compute_us = compute_us
        self._open: list[VirtualInterface] = []
        self._pairs: list[AgentQueuePairs] = []
        self._counts: list[tuple[str, AsJson]] = []
        self.begins = 0
        self._commands: deque[bytes] = deque()
        self._is_woken_by: frozenset[str] = frozenset()
        self._greenlet: greenlet | None = None
        self._killed = False
        self._paused = False
        self._resumes_late = False
        """It would have gone on while it was paused."""
        self._fast_path: FastPath | None = None
        self._timer: Timer | None = None
        self._waits = (0, 0)
        """A time, and how often the agent has waited at it."""

    # ---- For the agent ----

    @property
    def begun(self) -> bool:
        return self.begins > 0

    def now_us(self) -> int:
        return self._clock.now_ns // 1000

    def now_ns(self) -> int:
        return self._clock.now_ns

    def open(
        self,
        *,
        udp_port: int | None = None,
        ether_type: int | None = None,
        except_udp_port: int | None = None,
        interface: int = 0,
        quiet: bool = False,
    ) -> VirtualInterface:
        port = self._port(interface)
        opened = VirtualInterface(self, port, udp_port, ether_type, quiet, except_udp_port)
        self._open.append(opened)
        self._counts.append((self.interfaces[interface], opened.counts))
        return opened

    def open_queue_pairs(self, address: AgentAddress, *, interface: int = 0) -> AgentQueuePairs:
        pairs = self._port(interface).open_pairs(address, self.wake)
        self._pairs.append(pairs)
        pairs.on_close(self._pairs.remove)
        self._counts.append((self.interfaces[interface], pairs.counts(len(self.classes))))
        return pairs

    def _port(self, interface: int) -> VirtualPort:
        if interface >= len(self._ports):
            raise UserError(f"{self.name} has {len(self._ports)} interfaces, none with the number {interface}")
        return self._ports[interface]

    def wait(
        self, until_us: int | None = None, *, until_ns: int | None = None, fast_path: FastPath | None = None
    ) -> None:
        if until_us is not None:
            until_ns = 1000 * until_us
        if self._commands:
            self._read_command()
        elif (until_ns is not None and until_ns <= self.now_ns()) or self._has_something():
            self._count_wait()
        else:
            what = "frames" if self._open else "completions" if self._pairs else "a command"
            self._hand_over(what, until_ns, woken_by=_FRAMES_OR_COMMAND, fast_path=fast_path)
            if self._commands:
                self._read_command()

    def _has_something(self) -> bool:
        for interface in self._open:
            if interface.waiting:
                return True
        return any(pairs.waiting for pairs in self._pairs)

    def wait_for_begin(self) -> bool:
        while not (self.begun or self.stopped):
            if not self._commands:
                self._hand_over("begin", None, woken_by=frozenset({"command"}))
            self._read_command()
        return not self.stopped

    def compute(self, work: Callable[[], Result]) -> Result:
        result = work()
        time_us = self._compute_us()
        if time_us > 0:
            end_ns = 1000 * (self.now_us() + time_us)
            self._hand_over("the end of its computation", end_ns, woken_by=frozenset())
        return result

    def listen_tcp(self, port: int) -> NoReturn:
        self.require_kernel("TCP")

    def connect_tcp(self, ip: str, port: int, timeout_s: float) -> NoReturn:
        self.require_kernel("TCP")

    def require_kernel(self, what: str) -> NoReturn:
        raise REAL_CLOCK.missing(what)

    def emit(self, event: str, **fields: Any) -> None:
        # By JSON, as on the way out of a process.
        self._on_event(json.loads(json.dumps({"event": event, "job": self.job, "name": self.name, **fields})))

    # ---- For its interfaces ----

    def wake(self) -> None:
        """Frames may have come, or something is completed."""
        if "frames" in self._is_woken_by:
            self._go_on()

    def closed(self, interface: VirtualInterface) -> None:
        self._open.remove(interface)

    # ---- For the launcher ----

    def start(self, life: Callable[[], None]) -> None:
        """Live in a greenlet of its own, from now on."""
        if not self._killed:
            self._greenlet = greenlet(life)
            self._resume()

    def tell(self, command: bytes) -> None:
        """gradbed.hosts.agents.launching.BEGIN or STOP."""
        self._commands.append(command)
        if "command" in self._is_woken_by:
            self._resume()

    def pause(self) -> None:
        """Do nothing until `resume`."""
        self._paused = True
        for pairs in self._pairs:
            pairs.hold_collectives(True)

    def resume(self) -> None:
        self._paused = False
        for pairs in self._pairs:
            pairs.hold_collectives(False)
        if self._resumes_late:
            self._resumes_late = False
            self._resume()

    def kill(self) -> None:
        """End at once, wherever it is."""
        self._killed = True
        if self._greenlet is not None and not self._greenlet.dead:
            for each in (*self._open, *self._pairs):
                each.close()
            self._greenlet.parent = getcurrent()
            self._greenlet.throw()

    def emit_interfaces(self) -> None:
        """Tell what the interfaces carried that were ever open, if any was; at the agent's end."""
        if self._counts:
            self.emit(INTERFACES, interfaces=by_interface(self._counts))

    # ---- Inside ----

    def _resume(self) -> None:
        assert self._greenlet is not None
        if self._paused:
            self._resumes_late = True
            return
        self._greenlet.parent = getcurrent()
        self._greenlet.switch()

    def _go_on(self) -> None:
        """Frames have come, or the time has: the fast path, or the agent itself."""
        until_us = None if self._fast_path is None or self._paused else self._fast_path()
        if until_us is None:
            self._resume()
        else:
            self._set_timer(1000 * until_us)

    def _set_timer(self, until_ns: int | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if until_ns is None else self._clock.at(until_ns, self._go_on)

    def _hand_over(
        self,
        what: str,
        until_ns: int | None,
        *,
        woken_by: frozenset[str],
        fast_path: FastPath | None = None,
    ) -> None:
        """Let others act until something in `woken_by` happens, or it is until_ns; fast_path: as in `wait`."""
        assert self._greenlet is not None and self._greenlet.parent is not None
        self._set_timer(until_ns)
        self.activity, self._is_woken_by, self._fast_path = what, woken_by, fast_path
        try:
            self._greenlet.parent.switch()
        finally:
            self.activity, self._is_woken_by, self._fast_path = "", frozenset(), None
            self._set_timer(None)

    def _count_wait(self) -> None:
        now_ns, waits = self._waits
        self._waits = (self._clock.now_ns, waits + 1 if now_ns == self._clock.now_ns else 1)
        if self._waits[1] > _MAX_WAITS:
            raise RuntimeError(f"waited {_MAX_WAITS} times for what is over, so that time does not go on")

    def _read_command(self) -> None:
        command = self._commands.popleft()
        if command == BEGIN:
            self.begins += 1
        elif command == STOP:
            self.stopped = True
