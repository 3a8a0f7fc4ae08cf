"""What python -m tools.bench transport measures is what it says."""

from __future__ import annotations

import pytest

from tools.bench.virtual import transport


@pytest.mark.parametrize(("network", "links"), [(transport._star(), 2), (transport._fat_tree(), 6)])
def test_every_packet_takes_so_many_links(network: transport.Network, links: int) -> None:
    found = transport.measure(network, 4096, 100)
    # An acknowledgement for four packets, and nothing is lost or sent again.
    assert network.links == links
    assert (found.data_packets, found.hops) == (1600, 16 * 125 * links)
