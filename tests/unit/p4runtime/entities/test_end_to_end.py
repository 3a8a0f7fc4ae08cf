"""Compiler, code generator, data plane and this server together, with finsy as the controller."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import finsy
import pytest

from tests.unit.p4runtime.network import H1, H2, H3, Network, compiled, controlled, frame, read, running


@pytest.fixture(scope="module")
def options(tmp_path_factory: pytest.TempPathFactory) -> finsy.SwitchOptions:
    return compiled("punt.p4", tmp_path_factory.mktemp("punt"))


@pytest.fixture
def network(options: finsy.SwitchOptions) -> Iterator[Network]:
    with running(options) as network:
        yield network


def host(mac: str, action: str, **arguments: int) -> finsy.P4TableEntry:
    return finsy.P4TableEntry(
        "hosts", match=finsy.Match({"hdr.ethernet.dst_addr": mac}), action=finsy.Action(action, **arguments)
    )


@controlled
async def test_table_entries_forward(network: Network, switch: finsy.Switch) -> None:
    assert network.exchange(1, frame(H2)) == {}
    await switch.insert([host(H2, "forward", port=2)])
    assert network.exchange(1, frame(H2)) == {2: frame(H2)}
    await switch.modify([host(H2, "forward", port=3)])
    assert network.exchange(1, frame(H2)) == {3: frame(H2)}
    [entry] = await read(switch, finsy.P4TableEntry("hosts", counter_data=finsy.P4CounterData()))
    assert (entry.counter_data.packet_count, entry.counter_data.byte_count) == (2, 2 * len(frame(H2)))
    await switch.delete([host(H2, "forward", port=3)])
    assert network.exchange(1, frame(H2)) == {}


@controlled
async def test_default_action(network: Network, switch: finsy.Switch) -> None:
    default = finsy.P4TableEntry("hosts", action=finsy.Action("forward", port=2), is_default_action=True)
    await switch.modify([default])
    assert network.exchange(1, frame(H3)) == {2: frame(H3)}
    await switch.modify([finsy.P4TableEntry("hosts", is_default_action=True)])
    assert network.exchange(1, frame(H3)) == {}


@controlled
async def test_priorities_ranges_and_const_entries(network: Network, switch: finsy.Switch) -> None:
    def rule(priority: int, action: str, **match: object) -> finsy.P4TableEntry:
        return finsy.P4TableEntry("rules", match=finsy.Match(match), action=finsy.Action(action), priority=priority)

    from_h1 = {"hdr.ethernet.src_addr": f"{H1}/&ff:ff:ff:ff:ff:ff"}
    low_types = {"hdr.ethernet.ether_type": "0...0x0fff"}

    await switch.insert([host(H2, "forward", port=2)])
    await switch.insert([rule(1, "drop", **from_h1), rule(2, "NoAction", **from_h1, **low_types)])
    assert network.exchange(1, frame(H2, ether_type=0x1000)) == {}
    assert network.exchange(1, frame(H2, ether_type=0x0FFF)).keys() == {2}
    assert network.exchange(1, frame(H2, source=H3, ether_type=0x1000)).keys() == {2}
    assert network.exchange(1, frame(H2, source=H3, ether_type=0x88CC)) == {}  # a const entry drops it
    await switch.insert([rule(3, "drop", **{"std.ingress_port": 3})])
    assert network.exchange(3, frame(H2, ether_type=0x0FFF)) == {}
    const = await read(switch, finsy.P4TableEntry("kinds"))
    assert [entry.is_const for entry in const] == [True, True]


def test_multicast(network: Network) -> None:
    async def work(switch: finsy.Switch) -> None:
        await switch.insert([host(H2, "flood", group=7), finsy.P4MulticastGroupEntry(7, replicas=[2, 3])])
        assert network.exchange(1, frame(H2)) == {2: frame(H2), 3: frame(H2)}
        await switch.modify([finsy.P4MulticastGroupEntry(7, replicas=[1])])
        assert network.exchange(1, frame(H2)) == {1: frame(H2)}

    network.run(work)
    # A new pipeline starts without groups.
    network.run(lambda switch: switch.insert([host(H2, "flood", group=7)]))
    assert network.exchange(1, frame(H2)) == {}


@controlled
async def test_clones(network: Network, switch: finsy.Switch) -> None:
    any_frame = finsy.P4TableEntry("rules", action=finsy.Action("mirror"), priority=1)
    await switch.insert([host(H2, "forward", port=2), any_frame])
    await switch.insert([finsy.P4CloneSessionEntry(5, replicas=[3], packet_length_bytes=16)])
    assert network.exchange(1, frame(H2)) == {2: frame(H2), 3: frame(H2)[:16]}


@controlled
async def test_counters_and_registers(network: Network, switch: finsy.Switch) -> None:
    await switch.insert([host(H2, "forward", port=2)])
    network.exchange(1, frame(H2))
    network.exchange(3, frame(H2, source=H3))
    counters = await read(switch, finsy.P4CounterEntry("port_counter"))
    counts = {c.index: (c.packet_count, c.byte_count) for c in counters if c.packet_count}
    assert counts == {2: (2, 2 * len(frame(H2)))}
    registers = await read(switch, finsy.P4RegisterEntry("last_source"))
    values = {r.index: r.data for r in registers if r.data}
    assert values == {1: 0x020000000001, 3: 0x020000000003}
    await switch.modify([finsy.P4RegisterEntry("last_source", index=1, data=2**48 - 1)])
    [register] = await read(switch, finsy.P4RegisterEntry("last_source", index=1))
    assert register.data == 2**48 - 1


@controlled
async def test_packet_in_and_out(network: Network, switch: finsy.Switch) -> None:
    await switch.insert([host(H2, "punt", reason=42)])
    waiting = asyncio.ensure_future(anext(switch.read_packets()))
    await asyncio.sleep(0)
    network.engine.inject(1, 3, frame(H2))
    packet = await waiting
    assert packet.payload == frame(H2)
    assert (packet["ingress_port"], packet["reason"]) == (3, 42)
    await switch.write([finsy.P4PacketOut(frame(H3), egress_port=2, pad=0)])
    received: list[tuple[int, int, bytes]] = []
    while not received:
        received = network.engine.drain()
        await asyncio.sleep(0.001)
    assert received == [(1, 2, frame(H3))]


@controlled
async def test_full_table(network: Network, switch: finsy.Switch) -> None:
    entries = [host(f"02:00:00:00:01:{i:02x}", "drop") for i in range(9)]
    with pytest.raises(finsy.P4ClientError) as caught:
        await switch.insert(entries)
    assert {i: e.canonical_code for i, e in caught.value.details.items()} == {
        8: finsy.GRPCStatusCode.RESOURCE_EXHAUSTED
    }
