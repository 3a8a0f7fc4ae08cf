"""Switches, links, hosts' interfaces and P4Runtime on the virtual clock: time goes from event to event."""

from __future__ import annotations

import ctypes
import functools
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from itertools import accumulate
from typing import Any, NamedTuple

import networkx

from gradbed.common.capabilities import REAL_CLOCK
from gradbed.common.errors import EndlessCircle, UserError
from gradbed.switch.codegen import build_program
from gradbed.switch.device import Program
from gradbed.switch.engine import Engine
from gradbed.switch.engine_network import EngineNetwork, InterfaceConfig, NetworkConfig
from gradbed.switch.state.pipeline import Build, Pipelines
from gradbed.switch.virtual import ports as traffic
from gradbed.switch.virtual.ports import HostInterface
from gradbed.switch.virtual.target import LocalTarget

# ---- Which switches are simulated on one thread ----


MOST_PARTITIONS = 64


def logical_processes(config: NetworkConfig, count: int) -> dict[int, int]:
    """Return the logical process of each switch, 0 to count - 1 by device id.

    Switches equally far from hosts are shared out alike, as bursts of many hosts are in one tier of a network
    at a time. Of each tier stretches of device ids, with about as many ports each: neighbours are numbered one after
    the other, so that few links lead from one stretch to another.
    """
    if count == 1:
        return {switch.device_id: 0 for switch in config.switches}
    ports: Counter[int] = Counter(port.device_id for port in config.interfaces)
    with_hosts = set(ports)
    graph = networkx.Graph((link.a[0], link.b[0]) for link in config.links)
    for link in config.links:
        ports.update((link.a[0], link.b[0]))
    sources = with_hosts & set(graph)
    far = networkx.multi_source_dijkstra_path_length(graph, sources) if sources else {}
    tiers: defaultdict[int, list[int]] = defaultdict(list)
    for device_id in sorted(switch.device_id for switch in config.switches):
        tiers[far.get(device_id, 0)].append(device_id)
    found: dict[int, int] = {}
    for device_ids in tiers.values():
        until = list(accumulate(ports[device_id] + 1 for device_id in device_ids))
        found |= {each: (end - 1) * count // until[-1] for each, end in zip(device_ids, until, strict=True)}
    return found


# ---- The network ----


_MAX_EVENTS = 10_000_000
"""At one time."""


class Message(NamedTuple):
    """A message of a switch to its controller, as on P4Runtime's stream (p4.v1.StreamMessageResponse)."""

    time_ns: int
    device_id: int
    message: Any


class Stop(NamedTuple):
    """The time at which the clock stopped, and why.

    interfaces: those whose hosts are to be told of a batch of frames, in order, each once for each batch.
    messages: packet-ins, digest lists and idle timeouts of this moment, in order.
    idle: nothing is queued, in flight or to be generated any more.
    """

    time_ns: int
    interfaces: tuple[HostInterface, ...]
    messages: tuple[Message, ...]
    idle: bool


class SimulatedNetwork(EngineNetwork):
    """A network on the virtual clock, with hosts in this process in place of interfaces.

    The clock is an integer of nanoseconds that starts at 0 and moves in `run_until` alone. Everything happens on the
    caller's thread. Events of the same time are worked on in the order in which they were caused, so the same calls
    lead to the same bytes. Any number of networks can be used side by side. A context manager.
    """

    def __init__(self, config: NetworkConfig, build: Build = build_program, threads: int = 1) -> None:
        """Make the network; every interface of the configuration becomes a port in memory, with its link both ways.

        Args:
            config: Its parts.
            build: Makes programs of BMv2 JSON, such as gradbed.switch.insight.recorder.build_instrumented.
            threads: How many work on it at most, while there is much to do in the network and nothing for hosts and
                controllers. What happens does not depend on it.

        Raises:
            UserError: Something cannot be built, such as a switch that another program runs.
        """
        if not 1 <= threads <= MOST_PARTITIONS:
            raise UserError(f"a network is simulated on 1 to {MOST_PARTITIONS} threads, not {threads}")
        engine = Engine(manual_clock=True, lps=threads)
        super().__init__(config, engine, logical_processes(config, threads))
        pipelines = Pipelines(build)
        self.after_running: list[Callable[[], None]] = []
        """Called whenever time has gone on a little, and several times a second of real time meanwhile."""
        self._messages: list[Message] = []
        # Switches that may have something to send later.
        self._timed: set[int] = set()
        self._targets = {
            device_id: LocalTarget(
                device,
                pipelines,
                functools.partial(self._take_message, device_id),
                functools.partial(self._timed.add, device_id),
            )
            for device_id, device in self.devices.items()
        }
        self._interfaces: dict[int, HostInterface] = {}
        self._due = (ctypes.c_uint32 * 1)()
        self.now_ns = self.engine.now_ns()
        """The clock, which starts at 0 and moves in run_until alone."""
        self._stands_still = False

    def _add_port(self, port: InterfaceConfig) -> None:
        self.engine.add_memory_port(port.device_id, port.port, port.link, port.seed)

    def _add_foreign_switches(self, config: NetworkConfig) -> None:
        if config.foreign_switches or config.wires:
            raise REAL_CLOCK.missing("a switch that another program runs")

    def _restart(self, device_id: int) -> None:
        self._target(device_id).restart()

    def expect_no_messages(self) -> None:
        """Let several threads work although there is a controller, to which switches will send nothing.

        run_until raises UserError if one does after all.
        """
        self.engine.call("expect_no_host_events")

    # ---- Hosts ----

    def interface(self, device_id: int, port: int, *, receive_coalescing_us: int = 0) -> HostInterface:
        """The host's end of a port. Frames that leave through ports without one are lost, as nobody listens."""
        interface = HostInterface(self.engine, device_id, port, receive_coalescing_us)
        self._interfaces[interface.number] = interface
        self._due = (ctypes.c_uint32 * len(self._interfaces))()
        return interface

    # ---- Time ----

    def run_until(self, time_ns: int | None) -> Stop:
        """Let time go on until somebody outside has to act, but not beyond time_ns; None: until nothing is left.

        Everything else that happens at the time at which it stops has been done. Raises ValueError for a time that is
        over, and EndlessCircle when packets go round in circles without time going on: from then on packets stay
        where they are, and time goes on without them.
        """
        if self._stands_still:
            self.now_ns = self.now_ns if time_ns is None else time_ns
            return Stop(self.now_ns, (), (), idle=True)
        while True:
            timer_ns = self._next_timer_ns()
            until_ns = timer_ns if time_ns is None else time_ns if timer_ns is None else min(time_ns, timer_ns)
            try:
                stop = self.engine.run_until(until_ns, self._due, _MAX_EVENTS)
            except EndlessCircle:
                self._stands_still, self.now_ns = True, self.engine.now_ns()
                raise
            for look in self.after_running:
                look()
            self.now_ns = int(stop.time_ns)
            self._send_due(stop.time_ns)
            interfaces = tuple(self._interfaces[number] for number in self._due[: stop.due_count])
            idle = bool(stop.idle) and not interfaces and self._next_timer_ns() is None
            if interfaces or self._messages or stop.time_ns == time_ns or (time_ns is None and idle):
                messages, self._messages = tuple(self._messages), []
                return Stop(stop.time_ns, interfaces, messages, idle)

    def _next_timer_ns(self) -> int | None:
        """Return when a switch has something to tell its controller without a packet, at the earliest."""
        if not self._timed:
            return None
        times = {device_id: self._targets[device_id].next_ns for device_id in self._timed}
        self._timed.difference_update([device_id for device_id, next_ns in times.items() if next_ns is None])
        return min((next_ns for next_ns in times.values() if next_ns is not None), default=None)

    def _send_due(self, now_ns: int) -> None:
        for device_id in sorted(self._timed):
            target = self._targets[device_id]
            next_ns = target.next_ns
            if next_ns is not None and next_ns <= now_ns:
                target.send_due()

    def _take_message(self, device_id: int, message: Any) -> None:
        self._messages.append(Message(self.now_ns, device_id, message))

    # ---- P4Runtime: takes effect at once; RequestError and BatchError as from the server ----

    def set_pipeline(self, device_id: int, config: Any) -> None:
        """Run the program of a p4.v1.ForwardingPipelineConfig from the next packet on, with fresh state."""
        self._target(device_id).set_pipeline(config)

    def cookie(self, device_id: int) -> int | None:
        """Return the cookie of the config that the switch runs; None before the first."""
        return self._target(device_id).cookie

    def write(self, device_id: int, updates: Iterable[Any]) -> None:
        """Attempt every p4.v1.Update, in order. Raises BatchError if some fail."""
        self._target(device_id).write(updates)

    def read(self, device_id: int, entities: Iterable[Any]) -> list[Any]:
        """The entities that each p4.v1.Entity asks for, as in a ReadRequest."""
        return self._target(device_id).read(entities)

    def packet_out(self, device_id: int, packet: Any) -> None:
        """Hand a p4.v1.PacketOut to the pipeline."""
        self._target(device_id).packet_out(packet)

    def acknowledge_digest(self, device_id: int, digest_id: int, list_id: int) -> None:
        """The controller has seen to a digest list."""
        self._target(device_id).acknowledge_digest(digest_id, list_id)

    def programs(self) -> list[Program]:
        """Return what the switches that have a program run."""
        return [target.program for target in self._targets.values() if target.program is not None]

    def _target(self, device_id: int) -> LocalTarget:
        target = self._targets.get(device_id)
        if target is None:
            raise UserError(f"there is no P4 switch with device id {device_id}")
        return target

    # ---- Traffic ----

    def add_generator(self, device_id: int, port: int, generator: traffic.Generator) -> None:
        """Let the host at a port send."""
        traffic.add_generator(self.engine, device_id, port, generator)

    def add_sink(self, device_id: int, port: int, udp_port: int = 0) -> None:
        """Let the host at a port take and count generated datagrams to that UDP port; 0: to any."""
        traffic.add_sink(self.engine, device_id, port, udp_port)

    def sink_statistics(self, device_id: int, port: int) -> traffic.SinkStatistics:
        return traffic.sink_statistics(self.engine, device_id, port)
