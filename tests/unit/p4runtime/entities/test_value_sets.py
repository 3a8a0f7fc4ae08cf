"""Parser value sets: members of all match kinds, as values and masks."""

from __future__ import annotations

import pytest
from finsy.proto import p4r
from hypothesis import given
from hypothesis import strategies as st

from gradbed.switch.p4runtime.status import StatusCode
from gradbed.switch.state.value_sets import range_prefixes
from tests.unit.p4runtime.client import MODIFY, Client, exact, lpm, optional, range_, ternary
from tests.unit.p4runtime.entities.test_state import failures
from tests.unit.p4runtime.fake_device import FakeDevice
from tests.unit.p4runtime.sample_program import ETHER_TYPES, SPECIALS, config


def value_set(*members: list, value_set_id: int = ETHER_TYPES) -> p4r.ValueSetEntry:
    return p4r.ValueSetEntry(
        value_set_id=value_set_id, members=[p4r.ValueSetMember(match=match) for match in members]
    )


def test_life_of_a_value_set(client: Client, device: FakeDevice) -> None:
    written = value_set([exact(1, b"\x08\x00")], [exact(1, b"\x86\xdd")])
    assert client.modify(written) == StatusCode.OK
    assert device.state.value_sets == {"Parser.ether_types": [(0x800, 0xFFFF), (0x86DD, 0xFFFF)]}
    assert client.read(value_set()) == [written]
    assert client.read(p4r.ValueSetEntry()) == [written, value_set(value_set_id=SPECIALS)]
    assert client.modify(value_set([exact(1, b"\x00\x01")])) == StatusCode.OK
    assert client.read(value_set()) == [value_set([exact(1, b"\x01")])]
    assert client.modify(value_set()) == StatusCode.OK
    assert device.state.value_sets == {"Parser.ether_types": []}


def test_match_kinds(client: Client, device: FakeDevice) -> None:
    """Fields of 8, 16, 8, 8 and 8 bits: exact, ternary, lpm, range, optional."""
    everything = [
        exact(1, b"\x11"),
        ternary(2, b"\x22\x00", b"\xff\x00"),
        lpm(3, b"\xa0", 4),
        range_(4, b"\x01", b"\x04"),
        optional(5, b"\x55"),
    ]
    written = value_set(everything, [exact(1, b"\x12")], value_set_id=SPECIALS)
    assert client.modify(written) == StatusCode.OK
    assert device.state.value_sets["Parser.specials"] == [
        (0x11_2200_A0_01_55, 0xFF_FF00_F0_FF_FF),
        (0x11_2200_A0_02_55, 0xFF_FF00_F0_FE_FF),
        (0x11_2200_A0_04_55, 0xFF_FF00_F0_FF_FF),
        (0x12_0000_00_00_00, 0xFF_0000_00_00_00),
    ]
    assert client.read(value_set(value_set_id=SPECIALS)) == [written]


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        (value_set(value_set_id=0), StatusCode.INVALID_ARGUMENT),
        (value_set(value_set_id=5), StatusCode.NOT_FOUND),
        (value_set([]), StatusCode.INVALID_ARGUMENT),
        (value_set([exact(1, b"\x01\x00\x00")]), StatusCode.OUT_OF_RANGE),
        (value_set([ternary(1, b"\x01", b"\x01")]), StatusCode.INVALID_ARGUMENT),
        (value_set([exact(1, b"\x01")], [exact(1, b"\x00\x01")]), StatusCode.ALREADY_EXISTS),
        (value_set(*([exact(1, bytes([i]))] for i in range(5))), StatusCode.RESOURCE_EXHAUSTED),
    ],
)
def test_unusable_members(client: Client, device: FakeDevice, wrong: p4r.ValueSetEntry, code: StatusCode) -> None:
    client.write((MODIFY, value_set([exact(1, b"\x77")])))
    assert client.modify(wrong) == code
    assert device.state.value_sets == {"Parser.ether_types": [(0x77, 0xFFFF)]}


def test_errors(client: Client) -> None:
    assert client.insert(value_set()) == client.delete(value_set()) == StatusCode.INVALID_ARGUMENT
    assert failures(client, value_set(value_set_id=5)) == [StatusCode.NOT_FOUND]


def test_survive_reconciliation(client: Client, device: FakeDevice) -> None:
    client.write((MODIFY, value_set([exact(1, b"\x77")])))
    client.push("RECONCILE_AND_COMMIT", config(cookie=8, routes="Ingress.renamed"))
    assert device.state.value_sets == {"Parser.ether_types": [(0x77, 0xFFFF)]}
    assert client.read(value_set()) == [value_set([exact(1, b"\x77")])]


@given(st.data())
def test_prefixes_of_a_range(data: st.DataObject) -> None:
    width_bits = data.draw(st.integers(1, 10))
    low, high = sorted(data.draw(st.tuples(*[st.integers(0, (1 << width_bits) - 1)] * 2)))
    prefixes = range_prefixes(low, high, width_bits)
    covered = [v for v in range(1 << width_bits) for value, mask in prefixes if v & mask == value]
    assert covered == list(range(low, high + 1))
    assert len(prefixes) <= max(1, 2 * width_bits - 2)
