"""Counts of a network at one moment: the switches' counters by P4Runtime, and what links did to packets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from experiments.accounting import HostAccount, LinkEffect, Tally
from experiments.outcome import EVENTS
from experiments.testbed import Testbed


@dataclass(frozen=True)
class PortCounts:
    """What a switch counted at the port of one host."""

    gradient_in: Tally
    gradient_out: Tally
    acknowledgement_in: Tally
    acknowledgement_out: Tally

    def __sub__(self, other: PortCounts) -> PortCounts:
        return PortCounts(
            self.gradient_in - other.gradient_in,
            self.gradient_out - other.gradient_out,
            self.acknowledgement_in - other.acknowledgement_in,
            self.acknowledgement_out - other.acknowledgement_out,
        )


@dataclass(frozen=True)
class Counts:
    """ports, towards_switch and towards_host by host name; events (of all switches together) by name."""

    ports: Mapping[str, PortCounts]
    towards_switch: Mapping[str, LinkEffect]
    towards_host: Mapping[str, LinkEffect]
    events: Mapping[str, int]

    @classmethod
    def read(cls, testbed: Testbed, hosts: Iterable[str]) -> Counts:
        """Ask every switch and every link now. Links that cannot tell losses count as having none."""
        hosts = list(hosts)
        topology = testbed.topology
        counters = {switch.name: testbed.client.counters(switch.name) for switch in topology.switches}
        events: Counter[str] = Counter()
        for of_switch in counters.values():
            for row in _cells(of_switch, "events"):
                events[EVENTS[row["index"]]] += row["packets"]
        ports = {}
        for host in hosts:
            switch = topology.attachment(host).name
            port = topology.port(switch, host)
            ports[host] = PortCounts(*(_tally(counters[switch], name, port) for name in PortCounts.__annotations__))
        effects = {
            (row.from_node, row.to_node): LinkEffect(
                losses=Tally(row.losses, row.lost_bytes),
                duplicates=Tally(row.duplicates, row.duplicate_bytes),
                # Bytes of drops that nobody counted come out as a disagreement in bytes.
                queue_drops=Tally(row.queue_drops, row.queue_drop_bytes or 0),
            )
            for row in testbed.network.link_statistics()
        }
        switch_of = {host: topology.attachment(host).name for host in hosts}
        return cls(
            ports=ports,
            towards_switch={host: effects.get((host, switch_of[host]), LinkEffect()) for host in hosts},
            towards_host={host: effects.get((switch_of[host], host), LinkEffect()) for host in hosts},
            events=dict(events),
        )

    def since(self, before: Counts) -> Counts:
        """What was counted between `before` and this."""
        return Counts(
            ports={host: now - before.ports[host] for host, now in self.ports.items()},
            towards_switch={h: now - before.towards_switch[h] for h, now in self.towards_switch.items()},
            towards_host={h: now - before.towards_host[h] for h, now in self.towards_host.items()},
            events={name: now - before.events.get(name, 0) for name, now in self.events.items()},
        )

    def account(self, host: str, statistics: Mapping[str, Any]) -> HostAccount:
        """Both ends of a host's link; statistics are the final ones of the host's agent."""

        def sent_or_received(direction: str) -> Tally:
            kinds = (statistics[f"{kind}_{direction}"] for kind in ("gradient", "acknowledgement"))
            return sum((Tally(kind["frames"], kind["bytes"]) for kind in kinds), Tally())

        ports = self.ports[host]
        return HostAccount(
            host=host,
            host_sent=sent_or_received("sent"),
            host_received=sent_or_received("received"),
            socket_drops=statistics["socket_drops"],
            switch_received=ports.gradient_in + ports.acknowledgement_in,
            switch_sent=ports.gradient_out + ports.acknowledgement_out,
            towards_switch=self.towards_switch[host],
            towards_host=self.towards_host[host],
        )


def _cells(counters: Mapping[str, list[dict[str, int]]], name: str) -> list[dict[str, int]]:
    """A counter's cells that are not zero; counters are known by the last part of their names."""
    return next((cells for full, cells in counters.items() if full.rsplit(".", 1)[-1] == name), [])


def _tally(counters: Mapping[str, list[dict[str, int]]], name: str, index: int) -> Tally:
    for cell in _cells(counters, name):
        if cell["index"] == index:
            return Tally(cell["packets"], cell["bytes"])
    return Tally()
