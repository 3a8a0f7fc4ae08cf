from __future__ import annotations

from collections.abc import Iterator

import pytest

from gradbed.switch.engine_network import InterfaceConfig, LinkConfig, NetworkConfig, SwitchConfig
from gradbed.switch.virtual import SimulatedNetwork
from gradbed.topo.link import LinkModel
from tests.unit.engine.instructed import instructed_program

LINK = LinkModel(rate_bps=8_000_000, delay_us=100)
"""A byte takes a microsecond."""


def line_of_two(link: LinkModel = LINK, seed: int = 1) -> NetworkConfig:
    """Switches 1 and 2, port 2 to port 2; each has a host at port 1."""
    return NetworkConfig(
        switches=(SwitchConfig(device_id=1, name="s1"), SwitchConfig(device_id=2, name="s2")),
        interfaces=tuple(
            InterfaceConfig(device_id=i, port=1, interface=f"s{i}-eth1", link=link, seed=seed + i) for i in (1, 2)
        ),
        links=(LinkConfig(a=(1, 2), b=(2, 2), link=link, seed=seed),),
    )


def instructed_network(link: LinkModel = LINK, seed: int = 1) -> SimulatedNetwork:
    """With the program that does what frames tell it."""
    simulated = SimulatedNetwork(line_of_two(link, seed))
    for device in simulated.devices.values():
        device.load(instructed_program())
    return simulated


@pytest.fixture
def simulated() -> Iterator[SimulatedNetwork]:
    """At the end nothing may be left of any packet."""
    with instructed_network() as simulated:
        yield simulated
        for interface in simulated._interfaces.values():
            interface.close()
        while not simulated.run_until(None).idle:
            pass
        assert simulated.engine.statistics().live_packets == 0
