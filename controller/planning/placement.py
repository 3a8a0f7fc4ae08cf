"""Which switches sum a job's gradients."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from controller.planning.routing import Routes
from switch.errors import UserError
from topo.graph import Topology


class Placement(Protocol):
    """Chooses the designated switches of a job: the seam behind which planners of any kind fit."""

    def designated_switches(
        self, topology: Topology, routes: Routes, workers: Sequence[str], server: str
    ) -> tuple[str, ...]:
        """Names of switches in the order in which fragments are dealt to them; empty: the server sums alone.

        workers and server are hosts of the topology. Raises UserError if the request cannot be met.
        """


class NoPlacement:
    """The parameter server alone."""

    def designated_switches(
        self, topology: Topology, routes: Routes, workers: Sequence[str], server: str
    ) -> tuple[str, ...]:
        return ()


@dataclass(frozen=True)
class ExplicitPlacement:
    """The switches that somebody named."""

    switches: tuple[str, ...]

    def designated_switches(
        self, topology: Topology, routes: Routes, workers: Sequence[str], server: str
    ) -> tuple[str, ...]:
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
        return self.switches


class SharedPathPlacement:
    """Every switch that lies on some shortest path from every worker to the server.

    Each of them can see the gradients of all workers without a detour, so fragments are dealt to all of them,
    nearest to the workers first. The server's ToR is always among them, and the only one as soon as a worker
    hangs on it too. Otherwise, on a fat-tree with workers in several pods, the aggregation switches of the
    server's pod share the work with it, and on a leaf-spine the spines do.
    """

    def designated_switches(
        self, topology: Topology, routes: Routes, workers: Sequence[str], server: str
    ) -> tuple[str, ...]:
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
        return tuple(switch.name for switch in shared)
