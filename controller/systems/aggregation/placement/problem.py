"""The question of problem P2 (claim 3): a network, the routes in force, a job, and what its switches can sum.

Rates are in bit/s. Gradients travel from the workers to the server, so a link counts in the direction of travel
only, and its two directions are two links here."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from gradbed.common.errors import UserError
from gradbed.controller.planning.multicast import multicast_tree
from gradbed.controller.planning.routing import Routes, shortest_routes
from gradbed.topo.graph import Topology

NodePair = tuple[str, str]
"""A link direction: (from, to)."""


@dataclass(frozen=True)
class WorkerGroup:
    """Workers that are interchangeable: they are attached to the same switch by links of the same rate.

    Hence they have the same routes, and some optimal solution gives them all the same rates
    (docs/placement.md, "Workers that are alike").
    """

    workers: tuple[str, ...]
    tor: str
    access_rate_bps: float

    def __len__(self) -> int:
        return len(self.workers)


@dataclass(frozen=True)
class AggregationProblem:
    """Workers W that send gradients to server d over the routes in force.

    Raises:
        UserError: The hosts cannot be a job's, the capacity is not positive, or a link has no rate.
    """

    topology: Topology
    routes: Routes
    """For every switch as destination: the shortest paths of claim 4."""
    workers: tuple[str, ...]
    server: str
    switch_capacity_bps: float | None = None
    """C of claim 3: gradient bits that one switch can take in for summing in a second; None: all that its links
    bring."""

    def __post_init__(self) -> None:
        self._check_hosts()
        capacity = self.switch_capacity_bps
        if capacity is not None and not 0 < capacity < math.inf:
            raise UserError(f"a switch's capacity must be a positive number of bit/s, got {capacity:g}")
        for link in self.topology.links:
            if link.model.rate_bps is None:
                raise UserError(
                    f"the link between {link.a.node} and {link.b.node} has no rate; "
                    "planning needs a finite rate_bps on every link"
                )

    def _check_hosts(self) -> None:
        if not self.workers:
            raise UserError("a job needs at least one worker")
        switches = {switch.name for switch in self.topology.switches}
        for name in (*self.workers, self.server):
            if name in switches:
                raise UserError(f"{name} is a switch; workers and server are hosts")
            self.topology.attachment(name)
        seen: set[str] = set()
        for name in self.workers:
            if name in seen:
                raise UserError(f"worker named twice: {name}")
            seen.add(name)
        if self.server in seen:
            raise UserError(f"{self.server} cannot be both server and worker")

    @classmethod
    def of(
        cls, topology: Topology, workers: Sequence[str], server: str, switch_capacity_bps: float | None = None
    ) -> AggregationProblem:
        """Make the problem with the routes that the controller installs.

        Raises:
            UserError: The network is not connected.
        """
        return cls(topology, shortest_routes(topology), tuple(workers), server, switch_capacity_bps)

    @cached_property
    def server_tor(self) -> str:
        """The server's top-of-rack switch, sd of claim 3."""
        return self.topology.attachment(self.server).name

    @cached_property
    def candidates(self) -> tuple[str, ...]:
        """The switches to choose from (s11): all but the server's ToR, in order of number."""
        switches = sorted(self.topology.switches, key=lambda switch: switch.number)
        return tuple(switch.name for switch in switches if switch.name != self.server_tor)

    def check_programmable(self, names: Sequence[str]) -> None:
        """Check that these are distinct switches other than the server's ToR.

        Raises:
            UserError: They are not.
        """
        for name in names:
            self.topology.switch(name)
            if name == self.server_tor:
                raise UserError(f"{name} is the server's ToR, which sums anyway; name other switches")
        if len(set(names)) < len(names):
            raise UserError(f"programmable switch named twice: {', '.join(names)}")

    @cached_property
    def groups(self) -> tuple[WorkerGroup, ...]:
        """The workers by switch and access rate, in order of their first worker."""
        members: dict[tuple[str, float], list[str]] = {}
        for worker in self.workers:
            tor = self.topology.attachment(worker).name
            members.setdefault((tor, self.rate_bps(worker, tor)), []).append(worker)
        return tuple(WorkerGroup(tuple(names), tor, rate) for (tor, rate), names in members.items())

    def rate_bps(self, a: str, b: str) -> float:
        """Return the rate of the link between two nodes, in either direction."""
        rate = self.topology.link(a, b).model.rate_bps
        assert rate is not None  # __post_init__
        return float(rate)

    @cached_property
    def link_index(self) -> dict[NodePair, int]:
        """Indices of the link directions that workers can share: between switches, and from sd to the server."""
        pairs = [
            pair
            for link in self.topology.switch_links
            for pair in ((link.a.node, link.b.node), (link.b.node, link.a.node))
        ]
        return {pair: index for index, pair in enumerate([*pairs, (self.server_tor, self.server)])}

    @cached_property
    def link_rates_bps(self) -> NDArray[np.float64]:
        """Rates in the order of `link_index`."""
        return np.array([self.rate_bps(*pair) for pair in self.link_index])

    def path(self, switch: str, destination: str) -> list[int]:
        """Return the link indices of the route in force from a switch to a switch, or to the server (claim 4)."""
        goal = self.server_tor if destination == self.server else destination
        nodes = self.routes.path(switch, goal)
        links = [self.link_index[pair] for pair in pairwise(nodes)]
        return [*links, self.link_index[goal, self.server]] if destination == self.server else links


# ---- The links that global sums come back on ----


def returned_sum_links(problem: AggregationProblem, switches: Iterable[str]) -> tuple[NodePair, ...]:
    """Return the links between switches that an ACK crosses from the server to all workers, through all `switches`.

    ACKs carry the global sums, so they are as large as gradients.

    Links of hosts are not among them: what an ACK takes there a gradient takes in the other direction.
    """
    tree = multicast_tree(problem.topology, problem.server, problem.workers, switches)
    return tuple(edge for edge in tree.edges() if edge in problem.link_index)


def highest_degree(problem: AggregationProblem, maximum: int) -> tuple[str, ...]:
    """Return the `maximum` switches with the most links, the lower number first among equal ones."""
    degree = {switch: len(problem.topology.neighbours(switch)) for switch in problem.candidates}
    return tuple(sorted(problem.candidates, key=lambda switch: -degree[switch])[:maximum])
