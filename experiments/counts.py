"""Counts of a network at one moment: the switches' counters by P4Runtime, and what links did to packets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from experiments.accounting import HostAccount, LinkEffect, Tally
from experiments.systems.aggregation.outcome import EVENT_JOBS, event_at
from experiments.testbed import Testbed

Counters = Mapping[str, list[dict[str, int]]]
"""Of one switch: cells that are not zero, by counter."""


@dataclass(frozen=True)
class PortCounts:
    """What a switch counted at the port of one host. A legacy switch cannot tell gradients from acknowledgements:
    the last two are zero then."""

    received: Tally
    sent: Tally
    gradients_sent: Tally
    acknowledgements_received: Tally

    def __sub__(self, other: PortCounts) -> PortCounts:
        return PortCounts(
            self.received - other.received,
            self.sent - other.sent,
            self.gradients_sent - other.gradients_sent,
            self.acknowledgements_received - other.acknowledgements_received,
        )

    @classmethod
    def of(cls, counters: Counters, port: int) -> PortCounts:
        """From the counters of p4src/aggregation.p4, or those of a legacy switch."""

        def tally(name: str) -> Tally:
            return _tally(counters, name, port)

        if _has(counters, "port_in"):
            return cls(tally("port_in"), tally("port_out"), Tally(), Tally())
        return cls(
            received=tally("gradient_in") + tally("acknowledgement_in"),
            sent=tally("gradient_out") + tally("acknowledgement_out"),
            gradients_sent=tally("gradient_out"),
            acknowledgements_received=tally("acknowledgement_in"),
        )


@dataclass(frozen=True)
class Counts:
    """ports, towards_switch and towards_host by host name; job_events, of all switches together, by job (its number
    modulo EVENT_JOBS) and name."""

    ports: Mapping[str, PortCounts]
    towards_switch: Mapping[str, LinkEffect]
    towards_host: Mapping[str, LinkEffect]
    job_events: Mapping[tuple[int, str], int]
    delivered: Mapping[tuple[str, str], Tally] = field(default_factory=dict)
    """What links have brought to the far end, whatever it was, by direction: names of sender and receiver."""

    @classmethod
    def read(cls, testbed: Testbed, hosts: Iterable[str]) -> Counts:
        """Ask every switch and every link now. Links that cannot tell losses count as having none."""
        hosts = list(hosts)
        topology = testbed.topology
        counters = {switch.name: testbed.client.counters(switch.name) for switch in topology.switches}
        events: Counter[tuple[int, str]] = Counter()
        for of_switch in counters.values():
            for row in _cells(of_switch, "events"):
                events[event_at(row["index"])] += row["packets"]
        ports = {}
        for host in hosts:
            switch = topology.attachment(host).name
            port = topology.port(switch, host)
            ports[host] = PortCounts.of(counters[switch], port)
        links = testbed.network.link_statistics()
        effects = {
            (row.from_node, row.to_node): LinkEffect(
                losses=Tally(row.losses, row.lost_bytes),
                duplicates=Tally(row.duplicates, row.duplicate_bytes),
                # Bytes of drops that nobody counted come out as a disagreement in bytes.
                queue_drops=Tally(row.queue_drops, row.queue_drop_bytes or 0),
            )
            for row in links
        }
        switch_of = {host: topology.attachment(host).name for host in hosts}
        return cls(
            ports=ports,
            towards_switch={host: effects.get((host, switch_of[host]), LinkEffect()) for host in hosts},
            towards_host={host: effects.get((switch_of[host], host), LinkEffect()) for host in hosts},
            job_events=dict(events),
            delivered={(row.from_node, row.to_node): Tally(row.packets, row.bytes) for row in links},
        )

    def since(self, before: Counts) -> Counts:
        """What was counted between `before` and this."""
        return Counts(
            ports={host: now - before.ports[host] for host, now in self.ports.items()},
            towards_switch={h: now - before.towards_switch[h] for h, now in self.towards_switch.items()},
            towards_host={h: now - before.towards_host[h] for h, now in self.towards_host.items()},
            job_events={cell: now - before.job_events.get(cell, 0) for cell, now in self.job_events.items()},
            delivered={way: now - before.delivered.get(way, Tally()) for way, now in self.delivered.items()},
        )

    @property
    def byte_hops(self) -> int:
        """Bytes that all links have carried together."""
        return sum(tally.bytes for tally in self.delivered.values())

    @property
    def events(self) -> dict[str, int]:
        """By name, of all jobs together."""
        together: Counter[str] = Counter()
        for (_, name), packets in self.job_events.items():
            together[name] += packets
        return dict(together)

    def events_of(self, job: int) -> dict[str, int]:
        """By name, of one job."""
        return {name: packets for (cell, name), packets in self.job_events.items() if cell == job % EVENT_JOBS}

    def account(self, host: str, statistics: Mapping[str, Any], *, by_link: bool = False) -> HostAccount:
        """Both ends of a host's link; statistics are the final ones of the host's agent.

        by_link: take what the link itself counted for the switch's counts, since P4 switches count gradient packets
        alone.
        """

        def sent_or_received(direction: str) -> Tally:
            kinds = (statistics[f"{kind}_{direction}"] for kind in ("gradient", "acknowledgement"))
            return sum((Tally(kind["frames"], kind["bytes"]) for kind in kinds), Tally())

        ports = self._ports_by_link(host) if by_link else self.ports[host]
        return HostAccount(
            host=host,
            host_sent=sent_or_received("sent"),
            host_received=sent_or_received("received"),
            socket_drops=statistics["socket_drops"],
            switch_received=ports.received,
            switch_sent=ports.sent,
            towards_switch=self.towards_switch[host],
            towards_host=self.towards_host[host],
        )

    def _ports_by_link(self, host: str) -> PortCounts:
        from_host = sum((tally for (sender, _), tally in self.delivered.items() if sender == host), Tally())
        to_host = sum((tally for (_, receiver), tally in self.delivered.items() if receiver == host), Tally())
        link = self.towards_host[host]
        return PortCounts(from_host, to_host + link.losses - link.duplicates, Tally(), Tally())


def _has(counters: Counters, name: str) -> bool:
    return any(full.rsplit(".", 1)[-1] == name for full in counters)


def _cells(counters: Counters, name: str) -> list[dict[str, int]]:
    """A counter's cells that are not zero; counters are known by the last part of their names."""
    return next((cells for full, cells in counters.items() if full.rsplit(".", 1)[-1] == name), [])


def _tally(counters: Counters, name: str, index: int) -> Tally:
    for cell in _cells(counters, name):
        if cell["index"] == index:
            return Tally(cell["packets"], cell["bytes"])
    return Tally()
