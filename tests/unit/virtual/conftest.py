from __future__ import annotations

from collections.abc import Iterator

import pytest

from gradbed.switch.fabric_config import FabricConfig, InterfaceConfig, LinkConfig, SwitchConfig
from gradbed.switch.virtual import VirtualFabric
from gradbed.topo.link import LinkModel
from tests.unit.engine.instructed import instructed_program

LINK = LinkModel(rate_bps=8_000_000, delay_us=100)
"""A byte takes a microsecond."""


def line_of_two(link: LinkModel = LINK, seed: int = 1) -> FabricConfig:
    """Switches 1 and 2, port 2 to port 2; each has a host at port 1."""
    return FabricConfig(
        switches=(SwitchConfig(device_id=1, name="s1"), SwitchConfig(device_id=2, name="s2")),
        interfaces=tuple(
            InterfaceConfig(device_id=i, port=1, interface=f"s{i}-eth1", link=link, seed=seed + i) for i in (1, 2)
        ),
        links=(LinkConfig(a=(1, 2), b=(2, 2), link=link, seed=seed),),
    )


def instructed_fabric(link: LinkModel = LINK, seed: int = 1) -> VirtualFabric:
    """With the program that does what frames tell it."""
    fabric = VirtualFabric(line_of_two(link, seed))
    for device in fabric.devices.values():
        device.load(instructed_program())
    return fabric


@pytest.fixture
def fabric() -> Iterator[VirtualFabric]:
    """At the end nothing may be left of any packet."""
    with instructed_fabric() as fabric:
        yield fabric
        for interface in fabric._interfaces.values():
            interface.close()
        while not fabric.run_until(None).idle:
            pass
        assert fabric.engine.statistics().live_packets == 0
