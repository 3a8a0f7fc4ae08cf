"""The agent of a host whose traffic is the kernel's: TCP connections, or runs of iperf3."""

from __future__ import annotations

import contextlib
import threading
from dataclasses import asdict
from typing import Literal

from pydantic import Field

from gradbed.formats.addresses import Ip
from gradbed.hosts.agents.config import AgentConfig
from gradbed.hosts.agents.context import AgentContext
from gradbed.hosts.agents.kernel.streams import Iperf3Server, StreamOutcome, StreamServer, run_iperf3, send_stream

LOOK_US = 20_000


class Connection(AgentConfig):
    """A connection that a host opens."""

    destination: Ip
    port: int = Field(ge=1, le=65535)
    """Port at which the receiver listens."""
    begin_us: int = Field(default=0, ge=0)
    """Time after agents have begun."""
    bytes: int | None = Field(default=None, ge=1)
    """Bytes of TCP to send; None: until the config's duration is over."""
    rate_bps: float | None = Field(default=None, gt=0)
    """Largest rate."""
    parallel: int = Field(default=1, ge=1)
    """Number of parallel streams (iperf3)."""


class ConnectionsConfig(AgentConfig):
    """The config of a host whose traffic is the kernel's."""

    program: Literal["tcp", "iperf3"]
    connections: tuple[Connection, ...] = ()
    listen: tuple[int, ...] = ()
    """Ports at which others' connections arrive."""
    duration_us: int = Field(ge=1)
    timeout_us: int = Field(default=5_000_000, ge=1)
    """The longest that nothing happens on a TCP connection."""


def endpoint(context: AgentContext, config: ConnectionsConfig) -> None:
    """Emits `sent` once all of its connections have ended, and at the end what became of each."""
    context.require_kernel(f"--transport {config.program}")
    server = StreamServer if config.program == "tcp" else Iperf3Server
    with contextlib.ExitStack() as stack:
        servers = [stack.enter_context(server(port)) for port in config.listen]
        context.emit("ready")
        if not context.wait_for_begin():
            return
        running = Running(config, context.now_ns())
        while not (running.is_over or context.stopped):
            context.wait(context.now_us() + LOOK_US)
        running.raise_failure()
        context.emit("sent", packets=len(config.connections))
        while not context.stopped:
            context.wait()
        arrivals = [
            {"sender": sender, "received_bytes": received, "arrived_ns": arrived_ns - running.begin_ns}
            for each in servers
            if isinstance(each, StreamServer)
            for sender, (received, arrived_ns) in sorted(each.arrivals.items())
        ]
        context.emit("final", statistics={"connections": running.told, "arrivals": arrivals})


class Running:
    """The running connections, each in a thread of its own."""

    def __init__(self, config: ConnectionsConfig, begin_ns: int) -> None:
        self._failures: list[BaseException] = []
        self._config = config
        self.begin_ns = begin_ns
        self._outcomes: list[StreamOutcome | None] = [None] * len(config.connections)
        self._threads = [
            threading.Thread(target=self._carry, args=each, daemon=True) for each in enumerate(config.connections)
        ]
        for thread in self._threads:
            thread.start()

    @property
    def is_over(self) -> bool:
        return not any(thread.is_alive() for thread in self._threads)

    def raise_failure(self) -> None:
        """The first of what is wrong with this machine, not with the network: iperf3 cannot run, no descriptor is
        left. A connection that is lost is an outcome."""
        if self._failures:
            raise self._failures[0]

    @property
    def told(self) -> list[dict[str, int | str | None] | None]:
        """Fields of StreamOutcome, times since the begin; None of what has not ended."""
        return [
            None
            if outcome is None
            else {
                **asdict(outcome),
                "begin_ns": outcome.begin_ns - self.begin_ns,
                "arrived_ns": None if outcome.arrived_ns is None else outcome.arrived_ns - self.begin_ns,
            }
            for outcome in self._outcomes
        ]

    def _carry(self, place: int, connection: Connection) -> None:
        address = (connection.destination, connection.port)
        begin_ns = self.begin_ns + 1000 * connection.begin_us
        end_ns = self.begin_ns + 1000 * self._config.duration_us
        size, rate_bps = connection.bytes, connection.rate_bps
        try:
            self._outcomes[place] = (
                send_stream(
                    address,
                    begin_ns=begin_ns,
                    end_ns=end_ns,
                    size=size,
                    rate_bps=rate_bps,
                    timeout_s=self._config.timeout_us / 1e6,
                )
                if self._config.program == "tcp"
                else run_iperf3(
                    address,
                    begin_ns=begin_ns,
                    end_ns=end_ns,
                    parallel=connection.parallel,
                    rate_bps=rate_bps,
                )
            )
        except BaseException as error:
            self._failures.append(error)
