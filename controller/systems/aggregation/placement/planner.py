"""Planners of aggregation: their choice of switches and labels, and those that solve no linear program."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from gradbed.common.errors import UserError
from gradbed.controller.planning.routing import Routes
from gradbed.formats.aggregation import Designation
from gradbed.topo.graph import Topology

# ---- What a planner returns ----


@dataclass(frozen=True)
class Rates:
    """An optimal solution of problem P2 of the source (claim 3), in the letters of docs/placement.md."""

    programmable: tuple[str, ...]
    """S: the switches that sum, without the server's ToR."""
    gamma_bps: float
    """The rate at which every worker's gradients reach the global sum: `y_bps` and `x_bps` of a worker together."""
    y_bps: Mapping[str, Mapping[str, float]]
    """y(w, s) and y(w, sd): by worker and switch, gradients to a programmable switch or to the server's ToR."""
    x_bps: Mapping[str, float]
    """x(w): by worker, gradients that no switch sums."""
    a_bps: Mapping[str, float]
    """a(s): by switch, sums to the server."""
    b_bps: Mapping[str, float]
    """b(s): by switch, sums to the server's ToR, which sums them once more."""
    f_bps: float
    """f: sums from the server's ToR to the server."""


@dataclass(frozen=True)
class AggregationChoice:
    """A choice of switches that sum a job's gradients, and the labels of its packets."""

    programmable: tuple[str, ...]
    """Names of the switches that sum, in the order of choice, without the server's ToR."""
    designations: Mapping[str, tuple[Designation, ...]]
    """Labels by worker: packet n has designations[worker][n % len(designations[worker])]; with an empty tuple all
    packets go straight to the server."""
    rates: Rates | None = None
    """The solution of the linear program that the labels follow; None where none was solved."""


# ---- Planners without a linear program ----


class AggregationPlanner(Protocol):
    """A planner: it chooses the switches that sum for a job, and labels the job's packets."""

    def choose(self, topology: Topology, routes: Routes, workers: Sequence[str], server: str) -> AggregationChoice:
        """Return the choice for a job of these hosts.

        Raises:
            UserError: The request cannot be met.
        """


class NoPlacement:
    """The parameter server alone."""

    def choose(self, topology: Topology, routes: Routes, workers: Sequence[str], server: str) -> AggregationChoice:
        return AggregationChoice((), dict.fromkeys(workers, ()))


@dataclass(frozen=True)
class ExplicitPlacement:
    """The switches that the request names; fragments are dealt to them in turn."""

    switches: tuple[str, ...]

    def choose(self, topology: Topology, routes: Routes, workers: Sequence[str], server: str) -> AggregationChoice:
        if not self.switches:
            raise UserError("placement explicit needs at least one switch; with placement none no switch sums")
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
    """Choose all switches that lie on some shortest path from every worker to the server.

    Each of them can see the gradients of all workers without a detour, so fragments are dealt to all of them,
    nearest to the workers first. The server's ToR is always among them, and the only one if a worker is attached to
    it, too. Otherwise, on a fat-tree with workers in several pods, the aggregation switches of the server's pod
    share the work with it, and on a leaf-spine the spines do.
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
    """Let every worker's own top-of-rack switch sum for its rack, and the server's for all racks.

    Each link carries each fragment once, however many workers are behind it.
    """

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
    """Return labels that deal fragments to `switches` in turn, and send sums on by way of the server's ToR."""
    last = topology.attachment(server)
    labels = tuple(
        Designation(number, len(workers))
        if number == last.number
        else Designation(number, len(workers), last.number, len(workers))
        for number in (topology.switch(name).number for name in switches)
    )
    return AggregationChoice(tuple(name for name in switches if name != last.name), dict.fromkeys(workers, labels))
