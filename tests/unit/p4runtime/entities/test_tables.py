"""TableEntry, over gRPC, against a device in memory."""

from __future__ import annotations

import pytest
from finsy.proto import p4r

from gradbed.switch.device import ActionCall, KeyMatch
from gradbed.switch.p4runtime.status import StatusCode
from tests.unit.p4runtime.client import (
    DELETE,
    INSERT,
    MODIFY,
    Client,
    action,
    entry,
    exact,
    lpm,
    optional,
    range_,
    ternary,
)
from tests.unit.p4runtime.fake_device import FakeDevice
from tests.unit.p4runtime.sample_program import (
    ACL,
    DEFAULT_ONLY,
    DROP,
    FORWARD,
    HOSTS,
    INDIRECT,
    KEYLESS,
    KINDS,
    MARK,
    NO_ACTION,
    PORTS,
    PRESET,
    ROUTES,
)

FORWARD_3 = action(FORWARD, b"\x03", b"\x02\x00\x00\x00\x00\x01")
ROUTE = entry(ROUTES, lpm(1, b"\x0a\x01\x00\x00", 16), action=FORWARD_3)
RULE = entry(
    ACL,
    ternary(1, b"\x0a\x00\x00\x00", b"\xff\x00\x00\x00"),
    range_(2, b"\x50", b"\x01\x00"),
    optional(3, b"\x07"),
    exact(4, b"\x11"),
    action=action(DROP),
    priority=5,
)


def only(items):
    [item] = items
    return item


def test_insert_reaches_the_device_with_every_match_kind(client: Client, device: FakeDevice) -> None:
    client.write((INSERT, ROUTE), (INSERT, RULE))
    assert only(device.state.tables["Ingress.routes"].entries.values()) == (
        (KeyMatch(0x0A010000, prefix_bits=16),),
        ActionCall("Ingress.forward", (3, 0x020000000001)),
        0,
    )
    assert only(device.state.tables["Ingress.acl"].entries.values()) == (
        (
            KeyMatch(0x0A000000, mask=0xFF000000),
            KeyMatch(0x50, high=0x100),
            KeyMatch(7, mask=0x1FF),
            KeyMatch(0x11),
        ),
        ActionCall("Ingress.drop"),
        5,
    )


def test_omitted_fields_match_anything(client: Client, device: FakeDevice) -> None:
    client.write(
        (INSERT, entry(ACL, exact(4, b"\x11"), action=action(DROP), priority=1)),
        (INSERT, entry(ROUTES, action=action(DROP))),
    )
    assert only(device.state.tables["Ingress.acl"].entries.values())[0] == (
        KeyMatch(0, mask=0),
        KeyMatch(0, high=0xFFFF),
        KeyMatch(0, mask=0),
        KeyMatch(0x11),
    )
    assert only(device.state.tables["Ingress.routes"].entries.values())[0] == (KeyMatch(0, prefix_bits=0),)


def test_reading_gives_what_was_written(client: Client) -> None:
    rule = p4r.TableEntry(metadata=b"note", controller_metadata=9)
    rule.MergeFrom(RULE)
    client.write((INSERT, ROUTE), (INSERT, rule))
    assert client.read(entry(ROUTES)) == [ROUTE]
    assert client.read(entry(ACL)) == [rule]


def test_byte_strings_are_read_back_in_canonical_form(client: Client) -> None:
    long_winded = entry(
        ROUTES, lpm(1, bytes(3) + b"\x0a\x01\x00\x00", 16), action=action(FORWARD, bytes(5) + b"\x03", bytes(9))
    )
    assert client.insert(long_winded) == StatusCode.OK
    assert client.read(entry(ROUTES)) == [
        entry(ROUTES, lpm(1, b"\x0a\x01\x00\x00", 16), action=action(FORWARD, b"\x03", b"\x00"))
    ]
    # The same key in another spelling is the same entry.
    assert client.insert(ROUTE) == StatusCode.ALREADY_EXISTS


def test_order_of_fields_and_parameters_does_not_matter(client: Client) -> None:
    shuffled = p4r.TableEntry()
    shuffled.CopyFrom(RULE)
    del shuffled.match[:]
    shuffled.match.extend(reversed(RULE.match))
    assert client.insert(shuffled) == StatusCode.OK
    assert client.insert(RULE) == StatusCode.ALREADY_EXISTS
    assert client.read(entry(ACL)) == [RULE]


def test_modify_and_delete(client: Client, device: FakeDevice) -> None:
    assert client.modify(ROUTE) == StatusCode.NOT_FOUND
    assert client.delete(ROUTE) == StatusCode.NOT_FOUND
    client.write((INSERT, ROUTE))
    changed = entry(ROUTES, *ROUTE.match, action=action(DROP), metadata=b"x")
    assert client.modify(changed) == StatusCode.OK
    assert only(device.state.tables["Ingress.routes"].entries.values())[1] == ActionCall("Ingress.drop")
    assert client.read(entry(ROUTES)) == [changed]
    # Only the key counts for DELETE, even next to nonsense.
    assert client.delete(entry(ROUTES, *ROUTE.match, action=action(12345), idle_timeout_ns=-1)) == StatusCode.OK
    assert client.read(entry(ROUTES)) == []
    assert device.state.tables["Ingress.routes"].entries == {}


def test_modify_without_action_keeps_it(client: Client, device: FakeDevice) -> None:
    client.write((INSERT, ROUTE), (MODIFY, entry(ROUTES, *ROUTE.match, metadata=b"new")))
    assert only(client.read(entry(ROUTES))).metadata == b"new"
    assert only(device.state.tables["Ingress.routes"].entries.values())[1].action == "Ingress.forward"


def test_priority_is_part_of_the_key(client: Client) -> None:
    higher = p4r.TableEntry()
    higher.CopyFrom(RULE)
    higher.priority = 6
    assert client.outcomes((INSERT, RULE), (INSERT, higher)) == [StatusCode.OK, StatusCode.OK]
    assert client.delete(entry(ACL, *RULE.match, priority=7)) == StatusCode.NOT_FOUND
    assert client.delete(RULE) == StatusCode.OK
    assert client.read(entry(ACL)) == [higher]


def test_full_table(client: Client) -> None:
    routes = [entry(ROUTES, lpm(1, bytes([10, i, 0, 0]), 16), action=action(DROP)) for i in range(5)]
    assert client.outcomes(*[(INSERT, r) for r in routes]) == [StatusCode.OK] * 4 + [StatusCode.RESOURCE_EXHAUSTED]
    client.write((DELETE, routes[0]))
    assert client.insert(routes[4]) == StatusCode.OK


def test_a_failing_update_does_not_stop_the_batch(client: Client) -> None:
    other = entry(ROUTES, lpm(1, b"\x0b\x00\x00\x00", 8), action=action(DROP))
    failures = client.failures((INSERT, ROUTE), (INSERT, ROUTE), (INSERT, other))
    assert [code for code, _ in failures] == [StatusCode.OK, StatusCode.ALREADY_EXISTS, StatusCode.OK]
    assert failures[0][1] == "" and "Ingress.routes" in failures[1][1]
    assert len(client.read(entry(ROUTES))) == 2


@pytest.mark.commit_cases(13)
@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        (entry(0, action=action(DROP)), StatusCode.INVALID_ARGUMENT),
        (entry(0x02FFFFFF, action=action(DROP)), StatusCode.NOT_FOUND),
        (entry(ROUTES, lpm(1, b"\x0a", 8)), StatusCode.INVALID_ARGUMENT),  # no action
        (entry(ROUTES, lpm(2, b"\x0a", 8), action=action(DROP)), StatusCode.INVALID_ARGUMENT),  # no such field
        (entry(ROUTES, exact(1, b"\x0a"), action=action(DROP)), StatusCode.INVALID_ARGUMENT),  # another kind
        (entry(ROUTES, p4r.FieldMatch(field_id=1), action=action(DROP)), StatusCode.INVALID_ARGUMENT),
        (
            entry(ROUTES, lpm(1, b"\x0a\x01\x00\x00", 8), action=action(DROP)),
            StatusCode.INVALID_ARGUMENT,
        ),  # bits beyond
        (entry(ROUTES, lpm(1, b"\x00", 0), action=action(DROP)), StatusCode.INVALID_ARGUMENT),
        (entry(ROUTES, lpm(1, b"\x0a", 33), action=action(DROP)), StatusCode.INVALID_ARGUMENT),
        (entry(ROUTES, lpm(1, b"\x0a", -1), action=action(DROP)), StatusCode.INVALID_ARGUMENT),
        (entry(ROUTES, lpm(1, b"\x01\x00\x00\x00\x00", 8), action=action(DROP)), StatusCode.OUT_OF_RANGE),
        (entry(ROUTES, lpm(1, b"", 8), action=action(DROP)), StatusCode.INVALID_ARGUMENT),
        (entry(ROUTES, *ROUTE.match, *ROUTE.match, action=action(DROP)), StatusCode.INVALID_ARGUMENT),  # twice
        (entry(ROUTES, *ROUTE.match, action=action(DROP), priority=1), StatusCode.INVALID_ARGUMENT),
        (entry(ROUTES, *ROUTE.match, action=action(DROP), is_const=True), StatusCode.INVALID_ARGUMENT),
        (entry(ROUTES, *ROUTE.match, action=action(DROP), idle_timeout_ns=1), StatusCode.INVALID_ARGUMENT),
        (
            entry(ROUTES, *ROUTE.match, action=action(DROP), meter_config=p4r.MeterConfig()),
            StatusCode.INVALID_ARGUMENT,
        ),
        (entry(ROUTES, *ROUTE.match, action=action(0x01FFFFFF)), StatusCode.INVALID_ARGUMENT),
        (entry(ROUTES, *ROUTE.match, action=action(DEFAULT_ONLY)), StatusCode.PERMISSION_DENIED),
        (entry(ROUTES, *ROUTE.match, action=action(FORWARD, b"\x01")), StatusCode.INVALID_ARGUMENT),  # one missing
        (entry(ROUTES, *ROUTE.match, action=action(DROP, b"\x01")), StatusCode.INVALID_ARGUMENT),  # one too many
        (
            entry(ROUTES, *ROUTE.match, action=action(FORWARD, b"\x02\x00", b"\x01")),
            StatusCode.OUT_OF_RANGE,
        ),  # 10 bits
        (entry(ROUTES, *ROUTE.match, action=action(FORWARD, b"", b"\x01")), StatusCode.INVALID_ARGUMENT),
        (entry(ROUTES, *ROUTE.match, action=p4r.TableAction()), StatusCode.INVALID_ARGUMENT),
        (
            entry(ROUTES, *ROUTE.match, action=p4r.TableAction(action_profile_member_id=1)),
            StatusCode.INVALID_ARGUMENT,
        ),
        (entry(ACL, *RULE.match, action=action(DROP)), StatusCode.INVALID_ARGUMENT),  # no priority
        (entry(ACL, *RULE.match, action=action(DROP), priority=-1), StatusCode.INVALID_ARGUMENT),
        (
            entry(ACL, *RULE.match[:3], action=action(DROP), priority=1),
            StatusCode.INVALID_ARGUMENT,
        ),  # exact is missing
        (
            entry(ACL, ternary(1, b"\x01", b"\x00"), exact(4, b"\x01"), action=action(DROP), priority=1),
            StatusCode.INVALID_ARGUMENT,
        ),
        (
            entry(ACL, ternary(1, b"\x03", b"\x01"), exact(4, b"\x01"), action=action(DROP), priority=1),
            StatusCode.INVALID_ARGUMENT,
        ),
        (
            entry(ACL, range_(2, b"\x02", b"\x01"), exact(4, b"\x01"), action=action(DROP), priority=1),
            StatusCode.INVALID_ARGUMENT,
        ),
        (
            entry(ACL, range_(2, b"\x00", b"\xff\xff"), exact(4, b"\x01"), action=action(DROP), priority=1),
            StatusCode.INVALID_ARGUMENT,
        ),
        (entry(KEYLESS, action=action(DROP)), StatusCode.INVALID_ARGUMENT),
        (entry(KINDS, exact(1, b"\x01"), action=action(DROP)), StatusCode.PERMISSION_DENIED),
        (entry(INDIRECT, exact(1, b"\x01"), action=action(DROP)), StatusCode.INVALID_ARGUMENT),
        (
            entry(INDIRECT, exact(1, b"\x01"), action=p4r.TableAction(action_profile_group_id=1)),
            StatusCode.NOT_FOUND,
        ),
        (entry(ROUTES, action=action(DROP), is_default_action=True), StatusCode.INVALID_ARGUMENT),
    ],
)
def test_inserts_that_fail(client: Client, device: FakeDevice, wrong, code: StatusCode) -> None:
    assert client.insert(wrong) == code
    assert all(
        not table.entries
        for name, table in device.state.tables.items()
        if name not in ("Ingress.kinds", "Ingress.preset")
    )


def test_parameters_given_twice(client: Client) -> None:
    twice = action(FORWARD, b"\x01", b"\x02")
    twice.action.params[1].param_id = 1
    assert client.insert(entry(ROUTES, *ROUTE.match, action=twice)) == StatusCode.INVALID_ARGUMENT


def test_default_entry(client: Client, device: FakeDevice) -> None:
    default = entry(ROUTES, is_default_action=True)
    assert client.read(default) == [entry(ROUTES, is_default_action=True, action=action(DROP))]
    changed = entry(ROUTES, is_default_action=True, action=action(MARK, b"\x05"), metadata=b"m")
    assert client.modify(changed) == StatusCode.OK
    assert device.state.tables["Ingress.routes"].default == ActionCall("Ingress.mark", (5,))
    assert client.read(default) == [changed]
    assert client.read(entry(ROUTES)) == []
    assert client.modify(default) == StatusCode.OK
    assert device.state.tables["Ingress.routes"].default is None
    assert client.read(default) == [entry(ROUTES, is_default_action=True, action=action(DROP))]


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        (entry(ROUTES, *ROUTE.match, is_default_action=True, action=action(DROP)), StatusCode.INVALID_ARGUMENT),
        (entry(ROUTES, is_default_action=True, action=action(DROP), priority=1), StatusCode.INVALID_ARGUMENT),
        (entry(ROUTES, is_default_action=True, action=FORWARD_3), StatusCode.PERMISSION_DENIED),  # TABLE_ONLY
        (entry(HOSTS, is_default_action=True, action=action(DROP)), StatusCode.PERMISSION_DENIED),  # const default
        (entry(INDIRECT, is_default_action=True, action=action(DROP)), StatusCode.PERMISSION_DENIED),
    ],
)
def test_default_entries_that_cannot_be(client: Client, wrong, code: StatusCode) -> None:
    assert client.modify(wrong) == code


def test_default_only_action(client: Client) -> None:
    assert client.modify(entry(ROUTES, is_default_action=True, action=action(DEFAULT_ONLY))) == StatusCode.OK
    assert client.delete(entry(ROUTES, is_default_action=True)) == StatusCode.INVALID_ARGUMENT


def test_const_default_is_marked(client: Client) -> None:
    assert client.read(entry(HOSTS, is_default_action=True)) == [
        entry(HOSTS, is_default_action=True, action=action(NO_ACTION), is_const=True)
    ]


def test_const_entries(client: Client) -> None:
    entries = client.read(entry(KINDS))
    assert entries == [
        entry(KINDS, exact(1, b"\x06"), action=action(NO_ACTION), is_const=True),
        entry(KINDS, exact(1, b"\x11"), action=action(MARK, b"\x07"), is_const=True),
    ]
    key = exact(1, b"\x06")
    assert client.delete(entry(KINDS, key)) == StatusCode.PERMISSION_DENIED
    assert client.modify(entry(KINDS, key, action=action(NO_ACTION))) == StatusCode.PERMISSION_DENIED
    assert client.modify(entry(KINDS, key)) == StatusCode.OK
    assert client.read(entry(KINDS)) == entries


def test_wildcard_reads(client: Client) -> None:
    lower = entry(ACL, *RULE.match, action=action(MARK, b"\x01"), priority=4)
    client.write((INSERT, ROUTE), (INSERT, RULE), (INSERT, lower))
    written = [ROUTE, RULE, lower]
    everything = [e for e in client.read(entry(0)) if e.table_id not in (KINDS, PRESET)]
    assert everything == written
    assert client.read(entry(ACL)) == [RULE, lower]
    assert client.read(entry(ACL, *RULE.match)) == [RULE, lower]
    assert client.read(entry(ACL, *RULE.match, priority=4)) == [lower]
    assert client.read(entry(ACL, priority=5)) == [RULE]
    assert client.read(entry(ACL, action=action(MARK))) == [lower]
    assert client.read(entry(ACL, exact(4, b"\x01"), priority=5)) == []
    assert client.read(entry(ROUTES, *ROUTE.match)) == [ROUTE]
    assert client.read(entry(ROUTES, metadata=b"x")) == []
    assert client.read(entry(ROUTES, controller_metadata=1)) == []
    assert len(client.read(entry(0, is_default_action=True))) == 11


def test_translated_width(client: Client, device: FakeDevice) -> None:
    """The controller's ports have 32 bits, those of the data plane 9."""
    assert client.insert(entry(PORTS, exact(1, b"\x01\xff"), action=action(DROP))) == StatusCode.OK
    assert only(device.state.tables["Ingress.ports"].entries.values())[0] == (KeyMatch(511),)
    assert client.insert(entry(PORTS, exact(1, b"\x02\x00"), action=action(DROP))) == StatusCode.OUT_OF_RANGE


def test_direct_counters(client: Client, device: FakeDevice) -> None:
    counted = entry(ROUTES, *ROUTE.match, action=FORWARD_3, counter_data=p4r.CounterData(packet_count=5))
    client.write((INSERT, counted))
    [handle] = device.state.tables["Ingress.routes"].entries
    assert device.state.tables["Ingress.routes"].counts[handle] == (5, 0)
    device.state.tables["Ingress.routes"].counts[handle] = (7, 300)

    def counts(message) -> tuple[int, int]:
        return message.packet_count, message.byte_count

    with_counts = entry(ROUTES, counter_data=p4r.CounterData())
    assert counts(only(client.read(with_counts)).counter_data) == (7, 300)
    assert not only(client.read(entry(ROUTES))).HasField("counter_data")
    assert client.modify(entry(ROUTES, *ROUTE.match, counter_data=p4r.CounterData(byte_count=1))) == StatusCode.OK
    assert counts(only(client.read(with_counts)).counter_data) == (0, 1)

    which = entry(ROUTES, *ROUTE.match)
    direct = p4r.DirectCounterEntry(table_entry=which)
    device.state.tables["Ingress.routes"].counts[handle] = (3, 400)
    [found] = client.read(direct)
    assert found.table_entry == which and counts(found.data) == (3, 400)
    assert client.read(p4r.DirectCounterEntry(table_entry=entry(ROUTES))) == [found]
    assert [e for e in client.read(p4r.DirectCounterEntry()) if e.table_entry.table_id == ROUTES] == [found]
    written = p4r.DirectCounterEntry(table_entry=which, data=p4r.CounterData(packet_count=1000))
    assert client.modify(written) == StatusCode.OK
    assert counts(only(client.read(direct)).data) == (1000, 0)
    assert client.insert(written) == StatusCode.INVALID_ARGUMENT
    assert client.delete(written) == StatusCode.INVALID_ARGUMENT
    missing = p4r.DirectCounterEntry(table_entry=entry(ROUTES, lpm(1, b"\x01\x00\x00\x00", 8)))
    assert client.modify(missing) == StatusCode.NOT_FOUND
    assert (
        client.modify(p4r.DirectCounterEntry(table_entry=entry(HOSTS, exact(1, b"\x01"))))
        == StatusCode.INVALID_ARGUMENT
    )


def test_counter_of_the_default_entry(client: Client, device: FakeDevice) -> None:
    device.state.tables["Ingress.routes"].counts[None] = (4, 256)
    direct = p4r.DirectCounterEntry(table_entry=entry(ROUTES, is_default_action=True))
    assert only(client.read(direct)).data.packet_count == 4
    asked = entry(ROUTES, is_default_action=True, counter_data=p4r.CounterData())
    assert only(client.read(asked)).counter_data.byte_count == 256
    client.write(
        (MODIFY, p4r.DirectCounterEntry(table_entry=direct.table_entry, data=p4r.CounterData(packet_count=1)))
    )
    assert only(client.read(asked)).counter_data == p4r.CounterData(packet_count=1)
    # Resetting the default entry resets its counter.
    client.write((MODIFY, entry(ROUTES, is_default_action=True)))
    assert only(client.read(asked)).counter_data == p4r.CounterData()


def test_counters_of_const_entries(client: Client, device: FakeDevice) -> None:
    device.state.tables["Ingress.kinds"].counts[1] = (9, 99)
    [first, second] = client.read(entry(KINDS, counter_data=p4r.CounterData()))
    assert (first.counter_data.packet_count, second.counter_data.packet_count) == (0, 9)
    reset = entry(KINDS, exact(1, b"\x11"), counter_data=p4r.CounterData())
    assert client.modify(reset) == StatusCode.OK
    assert only(client.read(reset)).counter_data == p4r.CounterData()
