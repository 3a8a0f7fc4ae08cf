"""Traffic of the kernel: TCP connections between hosts, or runs of iperf3 (real clock)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, Generic, Literal, TypeVar

import numpy as np
from pydantic import BaseModel

from gradbed.common.capabilities import REAL_CLOCK
from gradbed.common.errors import UserError
from gradbed.experiments.configuration.faults import AgentFault, Fault, stopped_agents
from gradbed.experiments.phases import Phase, Progress
from gradbed.experiments.runtimes.agents import AgentSpec
from gradbed.experiments.scale import Scale
from gradbed.experiments.traffic.agents import NAME, TrafficPlan, plan_traffic, shares
from gradbed.experiments.traffic.background import Background
from gradbed.experiments.traffic.configuration import TrafficSection
from gradbed.hosts.agents.kernel.streams import find_iperf3
from gradbed.hosts.traffic.config import EndpointConfig, TrafficStream
from gradbed.hosts.traffic.connections import Connection, ConnectionsConfig
from gradbed.hosts.traffic.schedule import flow_arrivals, has_flows
from gradbed.topo.graph import Topology

MODULE = "gradbed.hosts.traffic.connections"
AGENT = f"{MODULE}:endpoint"

TCP_PORT = 7012
IPERF3_PORT = 5201
"""Port of the first pair's iperf3 server; each pair has a server of its own."""
TIMEOUT_US = 5_000_000
"""Timeout of a connection without any progress, at scale 1."""


@dataclass(frozen=True)
class ConnectionTraffic:
    """Connections of a trial."""

    specs: tuple[AgentSpec, ...]
    receivers: Mapping[str, tuple[str, ...]]
    """Receivers of each host's connections, in their order."""
    scale: Scale
    flows: bool
    """Whether each connection is a flow of the section's sizes."""


def check_transport(section: TrafficSection, clock: str) -> None:
    """Raise UserError for what only the kernel has, and for iperf3 where it is not installed."""
    if section.transport == "udp":
        return
    REAL_CLOCK.require(clock == "real", f"--transport: {section.transport}", "--transport udp")
    if section.transport == "iperf3":
        find_iperf3()


def plan_connections(section: TrafficSection, topology: Topology, scale: Scale, seed: int) -> ConnectionTraffic:
    """Plan connections between the pairs of the section.

    Flows of published sizes arrive as those of datagrams would, each on a connection of its own. Otherwise every pair
    has section.flows connections, which carry what they can, or at most the pair's rate where a load or a matrix is
    given.

    Args:
        topology: in emulated units.

    Raises:
        UserError: the traffic is not possible.
    """
    flows = has_flows(section.agent_sizes)
    _check_options(section, flows)
    planned = plan_traffic(section, topology, scale, seed)
    most = None if section.packets is None or flows else shares(planned.rates_bps, section.packets)
    iperf3_ports = count(IPERF3_PORT)
    made: dict[str, list[tuple[str, Connection]]] = {host: [] for host in planned.sources}
    for spec in planned.specs:
        config = spec.config
        assert isinstance(config, EndpointConfig)
        receivers = planned.streams[spec.host]
        if flows:
            made[spec.host] += _flow_connections(config, receivers)
            continue
        for receiver, stream in zip(receivers, config.streams, strict=True):
            size_bytes = None if most is None else most[spec.host, receiver] * section.frame_bytes
            port = TCP_PORT if section.transport == "tcp" else next(iperf3_ports)
            made[spec.host] += [(receiver, each) for each in _pair_connections(section, stream, port, size_bytes)]

    def listen(host: str) -> tuple[int, ...]:
        if section.transport == "tcp":
            return (TCP_PORT,)
        return tuple(each.port for found in made.values() for receiver, each in found if receiver == host)

    duration_us = max(1, scale.time_us(1000 * section.duration_ms))
    program: Literal["tcp", "iperf3"] = "tcp" if section.transport == "tcp" else "iperf3"
    specs = tuple(
        AgentSpec(
            host,
            AGENT,
            NAME.format(host),
            ConnectionsConfig(
                program=program,
                connections=tuple(each for _, each in found),
                listen=listen(host),
                duration_us=duration_us,
                timeout_us=max(1, scale.time_us(TIMEOUT_US)),
            ),
        )
        for host, found in made.items()
    )
    receivers_of = {host: tuple(receiver for receiver, _ in found) for host, found in made.items()}
    return ConnectionTraffic(specs, receivers_of, scale, flows)


def _check_options(section: TrafficSection, flows: bool) -> None:
    """Raise UserError for options that do not go with the transport."""
    if section.warm_up_ms:
        raise UserError(f"--warm-up-ms does not go with --transport {section.transport}")
    if flows and section.transport == "iperf3":
        raise UserError(f"--sizes: iperf3 knows no {section.sizes}: use --transport tcp")
    if section.packets is not None and section.transport == "iperf3":
        raise UserError("--packets: iperf3 runs for a time: use --duration-ms")


def _flow_connections(config: EndpointConfig, receivers: Sequence[str]) -> Iterator[tuple[str, Connection]]:
    """Yield the receiver and connection of each flow of a host.

    Args:
        receivers: of the config's streams.
    """
    for begin_ns, place, size in flow_arrivals(config):
        ip = config.streams[place].destination.ip
        yield receivers[place], Connection(destination=ip, port=TCP_PORT, begin_us=begin_ns // 1000, bytes=size)


def _pair_connections(
    section: TrafficSection, stream: TrafficStream, port: int, size_bytes: int | None
) -> list[Connection]:
    """Return the connections of one pair.

    Args:
        size_bytes: of all of them together; None: as much as goes in the time.
    """
    # iperf3 makes its connections itself.
    parts = section.flows if section.transport == "tcp" else 1
    is_limited = section.load is not None or section.matrix is not None
    return parts * [
        Connection(
            destination=stream.destination.ip,
            port=port,
            bytes=None if size_bytes is None else -(-size_bytes // parts),
            rate_bps=stream.rate_bps / parts if is_limited else None,
            parallel=section.flows // parts,
        )
    ]


@dataclass(frozen=True)
class ConnectionResults:
    """Results of connections; times are emulated."""

    traffic: ConnectionTraffic
    rows: Sequence[Mapping[str, Any]]
    """A row for each connection, as gradbed.hosts.traffic.connections reports it, with sender and receiver."""
    untold: int = 0
    """Number of further connections without an outcome: they had not ended, or their host reported nothing."""

    @classmethod
    def of(
        cls, traffic: ConnectionTraffic, final: Mapping[tuple[int, str], Mapping[str, Any]], job: int = 1
    ) -> ConnectionResults:
        """Collect the results from the final statistics of the agents."""
        rows = []
        arrivals = {
            each["sender"]: each
            for host in traffic.receivers
            for each in final.get((job, NAME.format(host)), {}).get("arrivals", [])
        }
        for host, receivers in traffic.receivers.items():
            told = final.get((job, NAME.format(host)), {}).get("connections", [])
            rows += [
                {"sender": host, "receiver": receiver, **_with_arrivals(row, arrivals)}
                for receiver, row in zip(receivers, told, strict=bool(told))
                if row is not None
            ]
        return cls(traffic, rows, sum(map(len, traffic.receivers.values())) - len(rows))

    @property
    def arrived(self) -> list[Mapping[str, Any]]:
        """Connections whose receivers have reported that data came."""
        return [row for row in self.rows if row["received_bytes"]]

    @property
    def unfinished(self) -> int:
        """Number of connections that did not deliver all data."""
        return self.untold + sum(bool(row["received_bytes"] != row["sent_bytes"]) for row in self.rows)

    @property
    def retransmissions(self) -> int:
        return sum(row["retransmissions"] for row in self.rows)

    @property
    def mean_rtt_us(self) -> float | None:
        found = [row["rtt_us"] for row in self.rows if row["rtt_us"] is not None]
        return self._time_us(1000 * sum(found) / len(found)) if found else None

    @property
    def taken_ns(self) -> int | None:
        """Time from the begin of the first connection to the last arrival."""
        arrived = self.arrived
        if not arrived:
            return None
        begin_ns = min(row["begin_ns"] for row in arrived)
        return int(max(row["arrived_ns"] for row in arrived) - begin_ns)

    @property
    def throughput_bps(self) -> float | None:
        """Throughput of payload, all connections together."""
        return self._rate_bps(sum(row["received_bytes"] for row in self.arrived), self.taken_ns)

    def completion_us(self, percent: float) -> float | None:
        """Return a percentile of flow completion times, from the begin to the arrival of the last byte."""
        whole = [row for row in self.arrived if row["received_bytes"] == row["sent_bytes"]]
        if not whole or not self.traffic.flows:
            return None
        return self._time_us(float(np.percentile([row["arrived_ns"] - row["begin_ns"] for row in whole], percent)))

    def pair_rows(self) -> list[dict[str, Any]]:
        """Return a row for each pair that had connections."""
        pairs: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
        for row in self.rows:
            pairs.setdefault((row["sender"], row["receiver"]), []).append(row)
        return [
            {
                "sender": sender,
                "receiver": receiver,
                "connections": len(rows),
                "received_bytes": sum(row["received_bytes"] or 0 for row in rows),
                "throughput_bps": ConnectionResults(self.traffic, rows).throughput_bps,
                "retransmissions": sum(row["retransmissions"] for row in rows),
                "rtt_us": ConnectionResults(self.traffic, rows).mean_rtt_us,
            }
            for (sender, receiver), rows in pairs.items()
        ]

    def flow_rows(self) -> list[dict[str, Any]]:
        """Return a row for each connection."""
        return [
            {
                "sender": row["sender"],
                "receiver": row["receiver"],
                "bytes": row["sent_bytes"],
                "received_bytes": row["received_bytes"],
                "begin_us": self._time_us(row["begin_ns"]),
                "completion_us": None
                if row["received_bytes"] != row["sent_bytes"]
                else self._time_us(row["arrived_ns"] - row["begin_ns"]),
                "retransmissions": row["retransmissions"],
                "error": row["error"],
            }
            for row in self.rows
        ]

    def _time_us(self, time_ns: float) -> float:
        return self.traffic.scale.nominal_time(time_ns) / 1000

    def _rate_bps(self, size: int, taken_ns: int | None) -> float | None:
        return self.traffic.scale.nominal_rate(8e9 * size / taken_ns) if taken_ns else None


def _with_arrivals(row: Mapping[str, Any], arrivals: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the row with its receiver's counts where the sender was not told what came."""
    found = arrivals.get(row.get("local", ""), {}) if row["received_bytes"] is None else {}
    return {**row, **{name: found[name] for name in ("received_bytes", "arrived_ns") if name in found}}


def lost_lines(flows: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return a line for each reason for which connections were lost or not established.

    Args:
        flows: rows of flow_rows().
    """
    reasons = Counter(row["error"] for row in flows if row.get("error"))
    return [
        f"{count} connection{'s were' if count > 1 else ' was'} lost: {reason}"
        for reason, count in sorted(reasons.items())
    ]


# ---- The phase ----


AnyTraffic = TypeVar("AnyTraffic", bound=TrafficPlan | ConnectionTraffic)


def check_faults_of_traffic(faults: Sequence[Fault]) -> None:
    """Raise UserError for a fault that would have a host send its schedule twice."""
    if any(isinstance(fault, AgentFault) and fault.fault == "agent-start" for fault in faults):
        raise UserError("faults: agent-start: a host's traffic does not begin anew; link-up brings a host back")


class TrafficPhase(Phase, Generic[AnyTraffic]):
    """Hosts send their traffic while background jobs run."""

    def __init__(
        self,
        request: BaseModel,
        traffic: AnyTraffic,
        background: Background | None = None,
        faults: Sequence[Fault] = (),
    ) -> None:
        super().__init__("traffic", [request])
        self.traffic = traffic
        self.job = 0
        """Number that the controller gives the job."""
        self.packets = 0
        """Number of packets or connections sent so far."""
        self._background = background
        self._stopped = stopped_agents(faults)
        self._sending: set[str] = set()
        """Names of traffic agents that are not done."""
        self._training: set[str] = set()
        """Names of background agents that are not done."""

    def agents(self, answers: Sequence[Mapping[str, Any]]) -> list[AgentSpec]:
        self.job = answers[0]["job"]
        beside = [] if self._background is None else self._background.of_job(self.job)
        self._sending = {spec.name for spec in self.traffic.specs}
        self._training = {spec.name for spec in beside}
        return [*(replace(spec, job=self.job) for spec in self.traffic.specs), *beside]

    def take(self, event: Mapping[str, Any]) -> None:
        kind, name = event["event"], event["name"]
        if kind in ("sent", "background") or (kind == "killed" and name in self._stopped):
            self._sending.discard(name)
            self._training.discard(name)
        if kind == "sent":
            self.packets += event["packets"]

    @property
    def complete(self) -> bool:
        return not self._sending and not self._training

    def progress(self) -> list[Progress]:
        noun = "connections" if isinstance(self.traffic, ConnectionTraffic) else "packets"
        note = f"{self.packets:,} {noun}" if self.packets else ""
        count = len(self.traffic.specs)
        return [Progress("hosts that have sent", count - len(self._sending), count, note)]
