"""Ports that end in memory and ports that are veth interfaces: the same frames lead to the same frames and counts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gradbed.switch.engine import Engine, LinkStatistics
from gradbed.switch.engine_network import InterfaceConfig, NetworkConfig, SwitchConfig
from gradbed.switch.virtual import SimulatedNetwork
from gradbed.topo.link import LinkModel
from tests.emulation.engine.test_engine_veth import Bench, make_bench
from tests.unit.engine.instructed import instructed_program, pass_through

pytestmark = [pytest.mark.thorough, pytest.mark.root]

COUNT = 400
SEED = 77
LINKS = [LinkModel(), LinkModel(loss=0.1, duplicate=0.1), LinkModel(loss=0.1, delay_us=200, rate_bps=50_000_000)]


def sent(number: int) -> bytes:
    payload = b"\x02" * 12 + b"\x88\xb5" + number.to_bytes(2, "big")
    return pass_through(2) + payload.ljust(60 + number * 13 % 1400, b"p")


def over_veth(bench: Bench, link: LinkModel) -> tuple[list[bytes], list[LinkStatistics]]:
    with Engine() as engine:
        engine.add_switch(1).load(instructed_program())
        engine.start()
        bench.add_ports(engine, link, SEED)
        bench.sockets[1].settimeout(0.2)
        received = []
        for first in range(0, COUNT, 50):
            for number in range(first, first + 50):
                bench.sockets[0].send(sent(number))
            assert engine.quiesce(10)
            # At most 50, each of them perhaps twice; fewer if some are lost.
            received += bench.receive(2, 100)
        return received, engine.link_statistics()


def over_memory(link: LinkModel) -> tuple[list[bytes], list[LinkStatistics]]:
    config = NetworkConfig(
        switches=(SwitchConfig(device_id=1),),
        interfaces=tuple(
            InterfaceConfig(device_id=1, port=i, interface=f"s{i}", link=link, seed=SEED) for i in (1, 2)
        ),
    )
    with SimulatedNetwork(config) as simulated:
        simulated.devices[1].load(instructed_program())
        hosts = [simulated.interface(1, port) for port in (1, 2)]
        for number in range(COUNT):
            hosts[0].send(np.frombuffer(sent(number), np.uint8)[None])
        while not simulated.run_until(None).idle:
            pass
        buffer, lengths = hosts[1].receive()
        return [
            bytes(row[:length]) for row, length in zip(buffer, lengths, strict=True)
        ], simulated.engine.link_statistics()


def without_times(rows: list[LinkStatistics]) -> list[LinkStatistics]:
    return [replace(row, backlogged_bytes=0, backlogged_ns=0, time_ns=0) for row in rows]


@pytest.mark.parametrize("link", LINKS, ids=["perfect", "loss and duplicates", "loss, delay and rate"])
def test_the_same_frames_arrive_and_are_counted(link: LinkModel) -> None:
    with make_bench() as bench:
        veth_frames, veth_rows = over_veth(bench, link)
    memory_frames, memory_rows = over_memory(link)
    assert (len(memory_frames) == COUNT) == (link.loss == 0)
    assert memory_frames == veth_frames
    assert without_times(memory_rows) == without_times(veth_rows)
