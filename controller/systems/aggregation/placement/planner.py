"""Which switches sum a job's gradients, and which gradient goes to which of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from gradbed.common.errors import UserError
from gradbed.controller.planning.routing import Routes
from gradbed.formats.aggregation import Designation
from gradbed.topo.graph import Topology


@dataclass(frozen=True)
class Rates:
    """An optimal solution of the linear program, all in bit/s.

    gamma_bps: the rate of every worker. y_bps[worker][switch]: what the worker sends to a programmable switch or to
    the server's ToR for summing; x_bps[worker]: what it sends to the server unaggregated; together they are
    gamma_bps. a_bps[switch], b_bps[switch]: sums that a programmable switch sends to the server, and to the server's
    ToR. f_bps: sums from the server's ToR to the server.
    """

    programmable: tuple[str, ...]
    gamma_bps: float
    y_bps: Mapping[str, Mapping[str, float]]
    x_bps: Mapping[str, float]
    a_bps: Mapping[str, float]
    b_bps: Mapping[str, float]
    f_bps: float


@dataclass(frozen=True)
class AggregationChoice:
    """programmable: names of the switches that sum, in the order of choice, without the server's ToR.

    designations: for every worker; packet number n bears designations[worker][n % len(designations[worker])], and
    with an empty tuple it goes straight to the server. rates: of the linear program; None where none was solved.
    """

    programmable: tuple[str, ...]
    designations: Mapping[str, tuple[Designation, ...]]
    rates: Rates | None = None


class AggregationPlanner(Protocol):
    """Makes a job's choice: the seam behind which planners of any kind fit."""

    def choose(self, topology: Topology, routes: Routes, workers: Sequence[str], server: str) -> AggregationChoice:
        """Choose for a job whose workers and server are hosts of the topology.

        Raises:
            UserError: The request cannot be met.
        """


class NoPlacement:
    """The parameter server alone."""

    def choose(self, topology: Topology, routes: Routes, workers: Sequence[str], server: str) -> AggregationChoice:
        return AggregationChoice((), dict.fromkeys(workers, ()))


@dataclass(frozen=True)
class ExplicitPlacement:
    """The switches that somebody named, each dealt the same share of the fragments in turn."""

    switches: tuple[str, ...]

    def choose(self, topology: Topology, routes: Routes, workers: Sequence[str], server: str) -> AggregationChoice:
        if not self.switches:
            raise UserError("name at least one aggregation switch, or turn aggregation off")
        hosts = {host.name for host in topology.hosts}
        for name in self.switches:
            if name in hosts:
                raise UserError(f"{name} is a host; aggregation takes place in switches")
            topology.switch(name)
        repeated = sorted({name for name in self.switches if self.switches.count(name) > 1})
        if repeated:
            raise UserError(f"aggregation switch named twice: {', '.join(repeated)}")
        return dealt_in_turn(topology, self.switches, workers, server)


class SharedPathPlacement:
    """Every switch that lies on some shortest path from every worker to the server.

    Each of them can see the gradients of all workers without a detour, so fragments are dealt to all of them,
    nearest to the workers first. The server's ToR is always among them, and the only one as soon as a worker
    hangs on it too. Otherwise, on a fat-tree with workers in several pods, the aggregation switches of the
    server's pod share the work with it, and on a leaf-spine the spines do.
    """

    def choose(self, topology: Topology, routes: Routes, workers: Sequence[str], server: str) -> AggregationChoice:
        goal = topology.attachment(server).name
        starts = [topology.attachment(worker).name for worker in workers]
        shared = [
            switch
            for switch in topology.switches
            if all(
                routes.distance(start, switch.name) + routes.distance(switch.name, goal)
                == routes.distance(start, goal)
                for start in set(starts)
            )
        ]
        shared.sort(key=lambda s: (sum(routes.distance(start, s.name) for start in starts), s.number))
        return dealt_in_turn(topology, [switch.name for switch in shared], workers, server)


class OwnTorPlacement:
    """Every worker's own top-of-rack switch sums for its rack, and the server's for all racks: each link carries each
    fragment once, however many workers are behind it."""

    def choose(self, topology: Topology, routes: Routes, workers: Sequence[str], server: str) -> AggregationChoice:
        last = topology.attachment(server)
        tors = {worker: topology.attachment(worker) for worker in workers}
        in_rack = Counter(tor.number for tor in tors.values())
        labels = {
            worker: Designation(last.number, len(workers))
            if tor.number == last.number
            else Designation(tor.number, in_rack[tor.number], last.number, len(workers))
            for worker, tor in tors.items()
        }
        names = dict.fromkeys(tor.name for tor in tors.values() if tor.number != last.number)
        return AggregationChoice(tuple(names), {worker: (label,) for worker, label in labels.items()})


def dealt_in_turn(
    topology: Topology, switches: Sequence[str], workers: Sequence[str], server: str
) -> AggregationChoice:
    """Fragments dealt to `switches` in turn, the same for all workers; sums go on by way of the server's ToR."""
    last = topology.attachment(server)
    labels = tuple(
        Designation(number, len(workers))
        if number == last.number
        else Designation(number, len(workers), last.number, len(workers))
        for number in (topology.switch(name).number for name in switches)
    )
    return AggregationChoice(tuple(name for name in switches if name != last.name), dict.fromkeys(workers, labels))
