"""gradbed.hosts.agents.context on the machine's clock, with raw sockets and the launcher's pipes."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable
from typing import Any

from gradbed.common.errors import UserError
from gradbed.hosts.agents.config import AgentAddress
from gradbed.hosts.agents.context import FastPath, Result
from gradbed.hosts.agents.frames.counts import AsJson, Patterns, by_interface
from gradbed.hosts.agents.kernel.nic import KernelQueuePairs, OpenNic
from gradbed.hosts.agents.kernel.raw_socket import RawSocket
from gradbed.hosts.agents.launching import BEGIN, INTERFACES, STOP, write_event
from gradbed.hosts.agents.tcp import Connections, TcpListener, TcpStream


class RealContext:
    """The context of an agent that is a process."""

    def __init__(
        self,
        job: int,
        name: str,
        interfaces: tuple[str, ...],
        control: int,
        events: int,
        compute_us: Callable[[], int] = lambda: 0,
        classes: Patterns = (),
        rates_bps: tuple[int | None, ...] = (),
        open_nic: OpenNic | None = None,
    ) -> None:
        """interfaces: of the present network namespace; rates_bps: of their links, as far as known. control, events:
        descriptors of the two pipes' ends. compute_us: how long the next computation takes at least. classes: of
        packets, by which interfaces count. open_nic: makes NICs; None: there are none."""
        self._rates_bps = rates_bps
        self._open_nic = open_nic
        self._classes = classes
        self._compute_us = compute_us
        self.job = job
        self.name = name
        self.interfaces = interfaces
        self.stopped = False
        self.begins = 0
        self._control = control
        self._events = events
        self._counts: list[tuple[str, AsJson]] = []
        self._open: list[RawSocket] = []
        self._pairs: dict[int, KernelQueuePairs] = {}
        """By descriptor."""
        self._poll = select.poll()
        self._poll.register(control, select.POLLIN)
        self._connections = Connections(self._poll)

    @property
    def begun(self) -> bool:
        return self.begins > 0

    def now_us(self) -> int:
        return self.now_ns() // 1000

    def now_ns(self) -> int:
        return time.monotonic_ns()

    def open(
        self,
        *,
        udp_port: int | None = None,
        ether_type: int | None = None,
        except_udp_port: int | None = None,
        interface: int = 0,
        quiet: bool = False,
    ) -> RawSocket:
        raw_socket = RawSocket(
            self._interface(interface),
            udp_port=udp_port,
            ether_type=ether_type,
            except_udp_port=except_udp_port,
            classes=self._classes,
        )
        descriptor = raw_socket.fileno()
        if not quiet:
            self._poll.register(descriptor, select.POLLIN)
            raw_socket.on_close(lambda: self._poll.unregister(descriptor))
        self._counts.append((self.interfaces[interface], raw_socket.counts))
        self._open.append(raw_socket)
        raw_socket.on_close(lambda: self._open.remove(raw_socket))
        return raw_socket

    def open_queue_pairs(self, address: AgentAddress, *, interface: int = 0) -> KernelQueuePairs:
        if self._open_nic is None:
            raise UserError("this launcher was started without NICs (--nics)")
        name, rates_bps = self._interface(interface), self._rates_bps[interface : interface + 1]
        nic = self._open_nic(name, rates_bps[0] if rates_bps else None, self._classes)
        pairs = KernelQueuePairs(nic, address)
        descriptor = pairs.fileno()
        self._poll.register(descriptor, select.POLLIN)
        self._pairs[descriptor] = pairs
        pairs.on_close(lambda _: self._forget(descriptor))
        self._counts.append((name, pairs.counts(len(self._classes))))
        return pairs

    def _forget(self, descriptor: int) -> None:
        self._poll.unregister(descriptor)
        del self._pairs[descriptor]

    def _interface(self, place: int) -> str:
        if place >= len(self.interfaces):
            raise UserError(f"{self.name} has {len(self.interfaces)} interfaces, none with the number {place}")
        return self.interfaces[place]

    def listen_tcp(self, port: int) -> TcpListener:
        return TcpListener(port, self._connections)

    def connect_tcp(self, ip: str, port: int, timeout_s: float) -> TcpStream:
        return self._connections.connect(ip, port, timeout_s)

    def wait(
        self, until_us: int | None = None, *, until_ns: int | None = None, fast_path: FastPath | None = None
    ) -> None:
        if until_ns is not None:
            until_us = -(-until_ns // 1000)
        while True:
            before = self.begins, self.stopped
            self._wait_once(until_us)
            if fast_path is None or (self.begins, self.stopped) != before or (until_us := fast_path()) is None:
                return

    def _wait_once(self, until_us: int | None) -> None:
        while (next_ns := self._send_due()) is not None:
            end_ns = next_ns if until_us is None else min(next_ns, 1000 * until_us)
            if self._wait_until(end_ns) or end_ns < next_ns:
                return
        # Rounded up: waking before the time would only mean waiting again.
        timeout_ms = None if until_us is None else max(0, -(-(until_us - self.now_us()) // 1000))
        self._poll_for(timeout_ms)

    def _send_due(self) -> int | None:
        """Send the frames whose time has come; when the next is due."""
        return min((next_ns for each in self._open if (next_ns := each.send_due()) is not None), default=None)

    def _wait_until(self, time_ns: int) -> bool:
        """More exactly than poll, which counts in milliseconds. True: something has come before."""
        left_ns = time_ns - self.now_ns()
        if self._poll_for(max(0, left_ns // 1_000_000)):
            return True
        time.sleep(max(0, time_ns - self.now_ns()) / 1e9)
        return False

    def _poll_for(self, timeout_ms: int | None) -> bool:
        """Return whether frames or a command have come."""
        ready = self._poll.poll(timeout_ms)
        self._connections.flush()
        for descriptor, _ in ready:
            if descriptor == self._control:
                self._read_command()
            elif descriptor in self._pairs:
                self._pairs[descriptor].look()
        return bool(ready)

    def wait_for_begin(self) -> bool:
        while not (self.begun or self.stopped):
            self._read_command()
        return not self.stopped

    def compute(self, work: Callable[[], Result]) -> Result:
        begin_ns = self.now_ns()
        result = work()
        end_ns = begin_ns + 1000 * self._compute_us()
        while not self.stopped and (left_ns := end_ns - self.now_ns()) > 0:
            if select.select([self._control], [], [], left_ns / 1e9)[0]:
                self._read_command()
        return result

    def require_kernel(self, what: str) -> None:
        """Do nothing: the kernel's network is there."""

    def emit(self, event: str, **fields: Any) -> None:
        write_event(self._events, event, job=self.job, name=self.name, **fields)

    def emit_interfaces(self) -> None:
        """Tell what the interfaces carried that were ever open, if any was; for the launcher, at the agent's end."""
        for raw_socket in self._open:
            raw_socket.drops()
        if self._counts:
            self.emit(INTERFACES, interfaces=by_interface(self._counts))

    def _read_command(self) -> None:
        command = os.read(self._control, 1)
        if command == BEGIN:
            self.begins += 1
        elif command == STOP:
            self.stopped = True
        elif not command:
            # The launcher has ended; the closed pipe would be readable for ever.
            self._poll.unregister(self._control)
            self.stopped = True
