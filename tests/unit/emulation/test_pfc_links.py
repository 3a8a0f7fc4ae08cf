"""PFC where its two ends are not both in the switch process is refused in one line."""

from __future__ import annotations

import pytest

from gradbed.common.errors import UserError
from gradbed.emulation.layout import network_config
from gradbed.topo.link import LinkModel
from gradbed.topo.registry import parse_topology

PFC = LinkModel(rate_bps=10**9, pfc_xoff_bytes=5000)


def test_links_of_own_switches_and_to_hosts_have_it() -> None:
    config = network_config(parse_topology("leaf-spine:2,1,1", PFC), "memory", 1, ())
    assert {each.link.pfc_xoff_bytes for each in (*config.links, *config.interfaces)} == {5000}
    # Hosts' links alone, whatever is between the switches.
    topology = parse_topology("leaf-spine:2,1,1").with_links([("h1", "l1"), ("h2", "l2")], pfc_xoff_bytes=5000)
    network_config(topology, "veth", 1, ())


def test_links_through_the_kernel_are_refused() -> None:
    with pytest.raises(UserError, match="between l1 and s1 cannot have PFC: it runs through the kernel"):
        network_config(parse_topology("leaf-spine:2,1,1", PFC), "veth", 1, ())


@pytest.mark.parametrize("foreign", [["s1"], ["l1"]])
def test_links_of_other_programs_are_refused(foreign: list[str]) -> None:
    with pytest.raises(UserError, match=f"cannot have PFC: {foreign[0]} is run by another program"):
        network_config(parse_topology("leaf-spine:2,1,1", PFC), "memory", 1, (), foreign)
