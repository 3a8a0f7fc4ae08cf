"""Entries that a program brings along: constant ones, and ones that can be changed like any other."""

from __future__ import annotations

import json

import pytest
from finsy.proto import p4r
from hypothesis import given
from hypothesis import strategies as st

from gradbed.switch.bmv2_json.model import GREATEST_RANK, initial_priorities
from gradbed.switch.device import ActionCall
from gradbed.switch.p4runtime.status import StatusCode
from tests.unit.p4runtime.client import DELETE, MODIFY, Client, action, entry, ternary
from tests.unit.p4runtime.fake_device import FakeDevice
from tests.unit.p4runtime.sample_program import MARK, PRESET, config

FIRST = entry(PRESET, ternary(1, b"\x01", b"\xff"), action=action(MARK, b"\x01"), priority=2)
SECOND = entry(PRESET, ternary(1, b"\x01", b"\x0f"), action=action(MARK, b"\x02"), priority=1)


def key_of(message: p4r.TableEntry) -> p4r.TableEntry:
    return p4r.TableEntry(table_id=message.table_id, match=message.match, priority=message.priority)


def mixed_config() -> p4r.ForwardingPipelineConfig:
    """The first entry is constant, as this project's compiler marks it."""
    result = config()
    document = json.loads(result.p4_device_config)
    for table in document["pipelines"][0]["tables"]:
        if table["name"] == "Ingress.preset":
            table["entries"][0]["const"] = True
    result.p4_device_config = json.dumps(document).encode()
    return result


def test_they_are_read_with_falling_priorities(client: Client) -> None:
    assert client.read(entry(PRESET)) == [FIRST, SECOND]


def test_they_can_be_changed(client: Client, device: FakeDevice) -> None:
    first, second = device.state.tables["Ingress.preset"].entries
    changed = entry(PRESET, *FIRST.match, action=action(MARK, b"\x07"), priority=2)
    assert client.modify(changed) == StatusCode.OK
    assert device.state.tables["Ingress.preset"].entries[first][1] == ActionCall("Ingress.mark", (7,))
    assert client.delete(key_of(SECOND)) == StatusCode.OK
    assert second not in device.state.tables["Ingress.preset"].entries
    assert client.read(entry(PRESET)) == [changed]
    assert client.insert(SECOND) == StatusCode.OK
    assert client.insert(FIRST) == StatusCode.ALREADY_EXISTS


def test_constant_ones_among_them(client: Client) -> None:
    client.push(pipeline=mixed_config())
    assert [e.is_const for e in client.read(entry(PRESET))] == [True, False]
    assert client.modify(FIRST) == client.delete(key_of(FIRST)) == StatusCode.PERMISSION_DENIED
    assert client.modify(SECOND) == client.delete(key_of(SECOND)) == StatusCode.OK


def test_survive_reconciliation(client: Client, device: FakeDevice) -> None:
    changed = entry(PRESET, *FIRST.match, action=action(MARK, b"\x07"), priority=2)
    client.write((MODIFY, changed), (DELETE, key_of(SECOND)))
    client.push("RECONCILE_AND_COMMIT", config(cookie=8, routes="Ingress.renamed"))
    assert client.read(entry(PRESET)) == [changed]
    assert len(device.state.tables["Ingress.preset"].entries) == 1
    client.push_sample()
    assert client.read(entry(PRESET)) == [FIRST, SECOND]


@given(st.lists(st.integers(0, 1000)))
def test_smaller_ranks_have_larger_priorities(ranks: list[int]) -> None:
    priorities = initial_priorities(ranks)
    assert len(priorities) == len(ranks) and all(priority > 0 for priority in priorities)
    order = sorted(range(len(ranks)), key=lambda i: ranks[i])
    assert sorted(range(len(ranks)), key=lambda i: -priorities[i]) == order


@pytest.mark.parametrize("priorities", [[100, 99, 5], [1, 2, 3], [1]])
def test_priorities_of_the_source(priorities: list[int]) -> None:
    assert initial_priorities([GREATEST_RANK - priority for priority in priorities]) == priorities
    assert initial_priorities([1, 2, 3]) == [3, 2, 1]
