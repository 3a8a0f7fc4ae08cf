"""Agents in the hosts of a star: one switch of the data plane, on the virtual clock."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

from gradbed.experiments.runtimes.agents import Agents
from gradbed.hosts.agents.virtual.clock import VirtualClock
from gradbed.hosts.agents.virtual.launcher import VirtualLauncher
from gradbed.switch.codegen import BuiltProgram, build_program
from gradbed.switch.compiler import compile_p4
from gradbed.switch.engine_network import InterfaceConfig, NetworkConfig, SwitchConfig
from gradbed.switch.virtual import SimulatedNetwork
from gradbed.topo.link import LinkModel

LINK = LinkModel(delay_us=100)
_opened: list[SimulatedNetwork] = []


@functools.cache
def _program() -> BuiltProgram:
    return build_program(compile_p4(Path(__file__).with_name("star.p4")).json)


class Star(SimulatedNetwork):
    """Hosts h1, h2, ... at the ports of these numbers (star.p4); `nics` by the names of their interfaces.

    forwards: whether the switch has a program, without which it drops everything.
    """

    def __init__(self, hosts: int, link: LinkModel = LINK, *, forwards: bool = True) -> None:
        ports = range(1, hosts + 1)
        interfaces = [
            InterfaceConfig(device_id=1, port=port, interface=f"s1-eth{port}", link=link, seed=port) for port in ports
        ]
        super().__init__(NetworkConfig(switches=(SwitchConfig(device_id=1),), interfaces=tuple(interfaces)))
        _opened.append(self)
        self.nics = {f"h{port}-eth0": self.interface(1, port) for port in ports}
        if forwards:
            self.devices[1].load(_program())


def close_stars() -> None:
    """All that were made since the last call."""
    while _opened:
        _opened.pop().close()


class Places:
    """gradbed.experiments.runtimes.agents.Hosts of hosts with one interface each."""

    def host_pid(self, host: str) -> int:
        return 0

    def host_interfaces(self, host: str) -> tuple[str, ...]:
        return (f"{host}-eth0",)


def virtual_agents(star: Star, **options: Any) -> tuple[Agents, VirtualClock]:
    """Agents in the star's hosts, and their clock. options: of VirtualLauncher."""
    clock = VirtualClock(star)
    return Agents(Path(), Places(), launcher=VirtualLauncher(clock, star.nics, **options)), clock
