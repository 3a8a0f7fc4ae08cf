"""Meters, profiles, digests, value sets, timeouts and the like: written by a controller, shown by packets."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import finsy
import pytest
from finsy.p4entity import P4Replica, P4ValueSetMember

from tests.unit.p4runtime.network import H1, H2, Network, compiled, controlled, frame, mac, read, running

BALANCED, INDIRECT, POLICED, METERED, AGED, LEARNT, PRESET, NAMED, OTHER = range(0x1000, 0x1009)
GREEN, YELLOW, RED = range(3)
SECOND_US = 1_000_000
NO_COUNTS = finsy.P4MeterCounterData(**{c: finsy.P4CounterData() for c in ("green", "yellow", "red")})


@pytest.fixture(scope="module")
def options(tmp_path_factory: pytest.TempPathFactory) -> finsy.SwitchOptions:
    return compiled("state.p4", tmp_path_factory.mktemp("state"))


@pytest.fixture
def network(options: finsy.SwitchOptions) -> Iterator[Network]:
    with running(options, manual_clock=True) as network:
        yield network


def to_h2(table: str, action: object, **more: object) -> finsy.P4TableEntry:
    return finsy.P4TableEntry(table, match=finsy.Match({"hdr.ethernet.dst_addr": H2}), action=action, **more)


def forward(port: int) -> finsy.Action:
    return finsy.Action("forward", port=port)


def codes(caught: pytest.ExceptionInfo[finsy.P4ClientError]) -> list[finsy.GRPCStatusCode]:
    return [detail.canonical_code for detail in caught.value.details.values()]


def crc16(data: bytes) -> int:
    """CRC-16/ARC, bit by bit."""
    rest = 0
    for byte in data:
        rest ^= byte
        for _ in range(8):
            rest = rest >> 1 ^ (0xA001 if rest & 1 else 0)
    return rest


@controlled
async def test_profile_members(network: Network, switch: finsy.Switch) -> None:
    await switch.insert([finsy.P4ActionProfileMember("next_hops", member_id=7, action=forward(2))])
    await switch.insert([to_h2("indirect", finsy.P4IndirectAction(member_id=7))])
    assert network.exchange(1, frame(H2, ether_type=INDIRECT)).keys() == {2}
    await switch.modify([finsy.P4ActionProfileMember("next_hops", member_id=7, action=forward(3))])
    assert network.exchange(1, frame(H2, ether_type=INDIRECT)).keys() == {3}
    with pytest.raises(finsy.P4ClientError) as caught:
        await switch.delete([finsy.P4ActionProfileMember("next_hops", member_id=7)])
    assert codes(caught) == [finsy.GRPCStatusCode.FAILED_PRECONDITION]
    await switch.delete([to_h2("indirect", None)])
    await switch.delete([finsy.P4ActionProfileMember("next_hops", member_id=7)])


@controlled
async def test_profile_groups_with_weights(network: Network, switch: finsy.Switch) -> None:
    await switch.insert(
        [
            *(finsy.P4ActionProfileMember("balancer", member_id=i, action=forward(i)) for i in (1, 2, 3)),
            finsy.P4ActionProfileGroup(
                "balancer",
                group_id=1,
                members=[
                    finsy.P4Member(1, weight=2),
                    finsy.P4Member(2, weight=1),
                    finsy.P4Member(3, weight=1),
                ],
            ),
            to_h2("balanced", finsy.P4IndirectAction(group_id=1)),
        ]
    )
    # A member's first place comes with the member, further ones with its weight in the group.
    places = [1, 2, 3, 1]
    sources = [i * 0x0123_4567_89AB % 2**48 for i in range(200)]
    taken = [port for source in sources for port in network.exchange(1, frame(H2, source, BALANCED))]
    assert taken == [places[crc16(mac(source)) % 4] for source in sources]
    assert set(taken) == {1, 2, 3}
    await switch.modify([finsy.P4ActionProfileGroup("balancer", group_id=1, members=[finsy.P4Member(3, weight=1)])])
    assert {p for s in range(20) for p in network.exchange(1, frame(H2, s, BALANCED))} == {3}


@controlled
async def test_profile_one_shot(network: Network, switch: finsy.Switch) -> None:
    actions = finsy.P4IndirectAction(action_set=[(1, forward(2)), ((1, 3), forward(3))])
    await switch.insert([to_h2("balanced", actions)])
    ports = {p for source in range(40) for p in network.exchange(1, frame(H2, source, BALANCED))}
    assert ports == {2, 3}
    [entry] = await read(switch, finsy.P4TableEntry("balanced"))
    assert entry.action == actions
    await switch.modify([to_h2("balanced", finsy.P4IndirectAction(action_set=[(5, forward(1))]))])
    assert {p for s in range(20) for p in network.exchange(1, frame(H2, s, BALANCED))} == {1}
    await switch.delete([to_h2("balanced", None)])
    with pytest.raises(finsy.P4ClientError) as caught:
        watching = finsy.P4IndirectAction(action_set=[((1, 9), forward(1))])
        await switch.insert([to_h2("balanced", watching)])
    assert codes(caught) == [finsy.GRPCStatusCode.INVALID_ARGUMENT]  # there is no port 9
    # Nothing is left behind that would stand in the way of members.
    await switch.insert([finsy.P4ActionProfileMember("balancer", member_id=1, action=forward(1))])


@controlled
async def test_direct_meter(network: Network, switch: finsy.Switch) -> None:
    def colour() -> int:
        [received] = network.exchange(1, frame(H2, ether_type=POLICED)).values()
        return received[11]

    police = finsy.Action("police", port=2)
    await switch.insert([to_h2("policed", police)])
    assert [colour() for _ in range(5)] == [GREEN] * 5
    config = finsy.P4MeterConfig(cir=1, cburst=2, pir=2, pburst=4)
    await switch.modify([finsy.P4DirectMeterEntry(table_entry=to_h2("policed", None), config=config)])
    assert [colour() for _ in range(6)] == [GREEN, GREEN, YELLOW, YELLOW, RED, RED]
    network.engine.advance(SECOND_US)
    assert [colour() for _ in range(3)] == [GREEN, YELLOW, RED]
    network.engine.advance(10 * SECOND_US)
    assert [colour() for _ in range(5)] == [GREEN, GREEN, YELLOW, YELLOW, RED]
    [found] = await read(
        switch, finsy.P4DirectMeterEntry(table_entry=finsy.P4TableEntry("policed"), counter_data=NO_COUNTS)
    )
    assert found.config == config
    marked = (found.counter_data.green, found.counter_data.yellow, found.counter_data.red)
    assert [colour.packet_count for colour in marked] == [5 + 2 + 1 + 2, 2 + 1 + 2, 2 + 1 + 1]
    assert found.counter_data.red.byte_count == 4 * len(frame(H2))
    # A modified entry without a configuration of its meter has none.
    await switch.modify([to_h2("policed", police)])
    assert [colour() for _ in range(10)] == [GREEN] * 10


@controlled
async def test_indirect_meter(network: Network, switch: finsy.Switch) -> None:
    sent = frame(H2, ether_type=METERED, payload=bytes(86))

    def colours(port: int, count: int) -> list[int]:
        return [network.exchange(port, sent)[2][11] for _ in range(count)]

    config = finsy.P4MeterConfig(cir=100, cburst=200, pir=100, pburst=300)
    await switch.modify([finsy.P4MeterEntry("port_meter", index=1, config=config)])
    assert colours(1, 4) == [GREEN, GREEN, YELLOW, RED]
    assert colours(3, 4) == [GREEN] * 4
    network.engine.advance(SECOND_US)
    assert colours(1, 2) == [GREEN, RED]
    [cell] = await read(switch, finsy.P4MeterEntry("port_meter", index=1, counter_data=NO_COUNTS))
    assert cell.config == config
    assert [c.byte_count for c in (cell.counter_data.green, cell.counter_data.red)] == [300, 200]
    cells = await read(switch, finsy.P4MeterEntry("port_meter"))
    assert [c.config for c in cells] == [None, config, *[None] * 6]
    await switch.modify([finsy.P4MeterEntry("port_meter")])
    assert colours(1, 9) == [GREEN] * 9


async def next_digest(switch: finsy.Switch) -> finsy.P4DigestList:
    return await asyncio.wait_for(anext(switch.read_digests("learn_t")), 30)


def learn(network: Network, port: int, source: str, destination: str = H2) -> None:
    assert network.exchange(port, frame(destination, source, LEARNT)) == {}


@controlled
async def test_digest_contents_and_acknowledgement(network: Network, switch: finsy.Switch) -> None:
    learn(network, 1, H1)  # not enabled yet
    await switch.insert([finsy.P4DigestEntry("learn_t", max_list_size=1, ack_timeout_ns=10**18)])
    waiting = asyncio.ensure_future(next_digest(switch))
    await asyncio.sleep(0)
    learn(network, 3, H2, "ff:ff:ff:ff:ff:ff")
    first = await waiting
    assert first.data == [{"src_addr": int.from_bytes(mac(H2), "big"), "port": 3, "broadcast": True}]
    # The same again is not sent before it is acknowledged, another one is.
    waiting = asyncio.ensure_future(next_digest(switch))
    await asyncio.sleep(0)
    learn(network, 3, H2, "ff:ff:ff:ff:ff:ff")
    learn(network, 1, H1)
    second = await waiting
    assert second.data == [{"src_addr": int.from_bytes(mac(H1), "big"), "port": 1, "broadcast": False}]
    assert second.list_id != first.list_id
    await switch.write([finsy.P4DigestListAck("learn_t", first.list_id)])
    # Acknowledged in order with what comes after it on the stream.
    waiting = asyncio.ensure_future(next_digest(switch))
    await read(switch, finsy.P4DigestEntry())
    while not waiting.done():
        learn(network, 3, H2, "ff:ff:ff:ff:ff:ff")
        await asyncio.sleep(0.01)
    assert (await waiting).data == first.data


@controlled
async def test_digest_lists(network: Network, switch: finsy.Switch) -> None:
    """Three distinct messages make a list, whatever the timeout."""
    await switch.insert([finsy.P4DigestEntry("learn_t", max_list_size=3, max_timeout_ns=10**18)])
    waiting = asyncio.ensure_future(next_digest(switch))
    await asyncio.sleep(0)
    for port in (1, 1, 2, 1, 2, 3):
        learn(network, port, H1)
    assert [message["port"] for message in (await waiting).data] == [1, 2, 3]


@controlled
async def test_exact_value_set_members(network: Network, switch: finsy.Switch) -> None:
    tagged = [frame(H2, ether_type=0x9000 + i, payload=bytes([0, 0, 0, 0])) for i in range(3)]
    # A tag that is parsed goes to port 2 like the rest, but without a clone.
    await switch.insert([finsy.P4CloneSessionEntry(5, replicas=[3])])
    assert [network.exchange(1, sent).keys() for sent in tagged] == [{2, 3}] * 3
    members = [P4ValueSetMember(0x9000), P4ValueSetMember(0x9002)]
    await switch.modify([finsy.P4ValueSetEntry("tag_types", members=members)])
    assert [network.exchange(1, sent).keys() for sent in tagged] == [{2}, {2, 3}, {2}]
    [found] = await read(switch, finsy.P4ValueSetEntry("tag_types", members=[]))
    assert found.members == members
    await switch.modify([finsy.P4ValueSetEntry("tag_types", members=[])])
    assert network.exchange(1, tagged[0]).keys() == {2, 3}


@controlled
async def test_value_set_members_of_several_kinds(network: Network, switch: finsy.Switch) -> None:
    def port(kind: int, value: int, prefix: int) -> int:
        payload = bytes([kind]) + value.to_bytes(2, "big") + bytes([prefix])
        [out] = network.exchange(1, frame(H2, ether_type=0x9000, payload=payload))
        return out

    tags = finsy.P4ValueSetEntry("tag_types", members=[P4ValueSetMember(0x9000)])
    member = P4ValueSetMember({"kind": 7, "value": "0x1200/&0xff00", "prefix": "0xa0/4"})
    anything = P4ValueSetMember({"kind": 9})
    await switch.modify([tags, finsy.P4ValueSetEntry("specials", members=[member, anything])])
    assert [port(7, 0x1234, 0xAF), port(9, 0xFFFF, 0xFF)] == [3, 3]
    assert [port(8, 0x1234, 0xAF), port(7, 0x1334, 0xAF), port(7, 0x1234, 0xBF)] == [2, 2, 2]


@controlled
async def test_idle_timeout_notification(network: Network, switch: finsy.Switch) -> None:
    ttl_ns = 10**9
    await switch.insert([to_h2("aged", forward(2), idle_timeout_ns=ttl_ns, metadata=b"mine")])
    network.engine.advance(0.75 * SECOND_US)
    assert network.exchange(1, frame(H2, ether_type=AGED)).keys() == {2}
    network.engine.advance(0.75 * SECOND_US)
    [entry] = await read(switch, finsy.P4TableEntry("aged", time_since_last_hit=0))
    assert entry.time_since_last_hit == 0.75 * ttl_ns
    notifications = switch.read_idle_timeouts()
    waiting = asyncio.ensure_future(anext(notifications))
    await asyncio.sleep(0.2)
    assert not waiting.done()  # the hit came in time
    network.engine.advance(0.25 * SECOND_US)
    [expired] = (await asyncio.wait_for(waiting, 30)).table_entry
    assert (expired.table_id, expired.idle_timeout_ns, expired.metadata) == ("aged", ttl_ns, b"mine")
    assert expired.match == {"dst_addr": int.from_bytes(mac(H2), "big")}
    # The timer starts anew.
    network.engine.advance(SECOND_US)
    assert len((await asyncio.wait_for(anext(notifications), 30)).table_entry) == 1
    await switch.delete([to_h2("aged", None)])


@controlled
async def test_initial_entries_priorities_and_changes(network: Network, switch: finsy.Switch) -> None:
    def preset(dst: str, action: object, priority: int) -> finsy.P4TableEntry:
        match = finsy.Match({"hdr.ethernet.dst_addr": dst}) if dst else None
        return finsy.P4TableEntry("preset", match=match, action=action, priority=priority)

    def ports(*destinations: int) -> list[set[int]]:
        return [set(network.exchange(3, frame(dst, ether_type=PRESET))) for dst in destinations]

    entries = await read(switch, finsy.P4TableEntry("preset"))
    assert [(e.priority, e.is_const) for e in entries] == [(3, True), (2, False), (1, False)]
    assert ports(0x01, 0x02, 0x12, 0x03) == [{1}, {2}, {2}, set()]
    # Between the program's own entries, by priority.
    await switch.insert([preset("0x12/&0xff", forward(3), 3)])
    assert ports(0x02, 0x12) == [{2}, {3}]
    await switch.modify([preset("0x02/&0xf", forward(1), 2)])
    assert ports(0x02, 0x12) == [{1}, {3}]
    await switch.delete([preset("0x02/&0xf", None, 2)])
    assert ports(0x02, 0x12) == [set(), {3}]
    for refused in (
        switch.modify([preset("0x01/&0xff", forward(3), 3)]),
        switch.delete([preset("0x01/&0xff", None, 3)]),
    ):
        with pytest.raises(finsy.P4ClientError) as caught:
            await refused
        assert codes(caught) == [finsy.GRPCStatusCode.PERMISSION_DENIED]
    assert ports(0x01) == [{1}]


@controlled
async def test_clone_sessions(network: Network, switch: finsy.Switch) -> None:
    """Class of service is the clones' priority, the instance their replication id."""
    replicas = [P4Replica(1, instance=11), P4Replica(3, instance=33)]
    await switch.insert([finsy.P4CloneSessionEntry(5, class_of_service=6, packet_length_bytes=14, replicas=replicas)])
    out = network.exchange(2, frame(H2, ether_type=OTHER))
    assert out == {
        2: frame(H2, ether_type=OTHER),
        1: frame(H2, 6 << 16 | 11, OTHER, b""),
        3: frame(H2, 6 << 16 | 33, OTHER, b""),
    }
    [found] = await read(switch, finsy.P4CloneSessionEntry())
    assert (found.class_of_service, found.packet_length_bytes) == (6, 14)


@controlled
async def test_types_that_controllers_name_by_strings(network: Network, switch: finsy.Switch) -> None:
    def room(name: str, port: int) -> finsy.P4TableEntry:
        return finsy.P4TableEntry("room_ports", match=finsy.Match(**{"meta.room": name}), action=forward(port))

    await switch.insert([room("kitchen", 2), room("cellar", 3)])
    for name, port in (("kitchen", 2), ("cellar", 3)):
        await switch.insert([to_h2("rooms", finsy.Action("enter", room=name))])
        assert network.exchange(1, frame(H2, ether_type=NAMED)).keys() == {port}
        [entry] = await read(switch, finsy.P4TableEntry("rooms"))
        assert entry.action.args == {"room": name}
        await switch.delete([to_h2("rooms", None)])
    found = await read(switch, finsy.P4TableEntry("room_ports"))
    assert [entry.match["room"] for entry in found] == ["kitchen", "cellar"]
