"""What an emulated network needs of this machine, by its size: checked and announced before it is built."""

from __future__ import annotations

import resource
import sys
from dataclasses import dataclass
from pathlib import Path

from gradbed.common.errors import UserError
from gradbed.topo.graph import Topology

# Measured on two cores of 2 GHz; good to a factor of two.
BASE_S, HOST_S, SWITCH_S, ROUTE_S = 3.0, 0.06, 0.02, 1e-4
BASE_BYTES, HOST_BYTES, SWITCH_BYTES, ROUTE_BYTES = 400e6, 3e6, 4e6, 3e3

ANNOUNCED_FROM_S = 30.0
DESCRIPTORS_OF_A_HOST = 4


@dataclass(frozen=True)
class Estimate:
    """Resources that an emulated network needs."""

    hosts: int
    switches: int
    routes: int
    """Table entries of all switches, one for each host."""
    time_s: float
    """Time until it is up."""
    memory_bytes: float

    def __str__(self) -> str:
        took = f"{self.time_s:.0f} s" if self.time_s < 120 else f"{self.time_s / 60:.0f} minutes"
        return (
            f"{self.hosts} hosts, {self.switches} switches with {self.routes} routes: about {took} to come up, "
            f"and {self.memory_bytes / 1e9:.1f} GB of memory"
        )


@dataclass(frozen=True)
class Machine:
    """Resources of this machine."""

    memory_bytes: int
    terminals: int
    """Pseudo-terminals (pty(7)), of which each host's shell takes one."""
    descriptors: int
    """Files that a process may open."""

    @classmethod
    def here(cls) -> Machine:
        memory = Path("/proc/meminfo").read_text(encoding="ascii").split("MemAvailable:")[1].split()[0]
        pty = Path("/proc/sys/kernel/pty")
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        return cls(
            memory_bytes=1024 * int(memory),
            terminals=int((pty / "max").read_text()) - int((pty / "nr").read_text()),
            descriptors=sys.maxsize if hard == resource.RLIM_INFINITY else hard,
        )


def estimate(topology: Topology) -> Estimate:
    """Return what a network takes on the real clock, with routes from every switch to every host."""
    hosts, switches = len(topology.hosts), len(topology.switches)
    routes = hosts * switches
    return Estimate(
        hosts,
        switches,
        routes,
        BASE_S + HOST_S * hosts + SWITCH_S * switches + ROUTE_S * routes,
        BASE_BYTES + HOST_BYTES * hosts + SWITCH_BYTES * switches + ROUTE_BYTES * routes,
    )


def require_room(topology: Topology, machine: Machine | None = None) -> Estimate:
    """Return what the network will take.

    Raises:
        UserError: This machine cannot carry it.
    """
    found, machine = estimate(topology), machine or Machine.here()
    if found.hosts > machine.terminals:
        lacks = (
            f"only {machine.terminals} pseudo-terminals are left (sysctl kernel.pty.max), and every host takes one"
        )
    elif DESCRIPTORS_OF_A_HOST * found.hosts > machine.descriptors:
        lacks = (
            f"a process may open {machine.descriptors} files (ulimit -Hn), and a host takes {DESCRIPTORS_OF_A_HOST}"
        )
    elif found.memory_bytes > machine.memory_bytes:
        lacks = f"{machine.memory_bytes / 1e9:.1f} GB are free"
    else:
        return found
    raise UserError(f"{topology.name} is too large for this machine ({found}): {lacks}; take a smaller one")


def announce(topology: Topology) -> None:
    """Print what a large network will take.

    Raises:
        UserError: This machine cannot carry it.
    """
    found = require_room(topology)
    if found.time_s >= ANNOUNCED_FROM_S:
        print(f"gradbed: {topology.name}: {found}", file=sys.stderr, flush=True)
