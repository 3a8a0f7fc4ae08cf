"""The order of updates: no address is without a route while prefixes are split or merged, if there is room."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from ipaddress import IPv4Address, IPv4Network

import pytest
from finsy.proto import p4r

from gradbed.controller.planning.entries import ipv4_route
from gradbed.controller.planning.plan import SwitchPlan
from gradbed.controller.southbound.p4runtime.codec import batches
from gradbed.controller.southbound.p4runtime.schema import ProgramSchema
from tests.unit.controller.p4info import aggregation_p4info

WHOLE = {"10.0.0.0/22": 1, "10.0.8.0/24": 1}
SPLIT = {"10.0.0.0/23": 1, "10.0.2.0/24": 2, "10.0.3.0/24": 1, "10.0.9.0/24": 3}
SIZE = 6


def schema_of(size: int) -> ProgramSchema:
    message = aggregation_p4info()
    for table in message.tables:
        table.size = size
    return ProgramSchema(message)


def plan(schema: ProgramSchema, routes: Mapping[str, int]) -> SwitchPlan:
    entries = [ipv4_route(IPv4Network(prefix), port, "02:00:00:00:00:01") for prefix, port in routes.items()]
    return schema.normalised(SwitchPlan.of("aggregation", entries))


def states(schema: ProgramSchema, before: Mapping[str, int], after: Mapping[str, int]) -> Iterator[set[IPv4Network]]:
    """What is in the table after each batch, and in the midst of one if its deletions come first."""
    held = {IPv4Network(prefix) for prefix in before}
    for batch in batches(schema, plan(schema, before), plan(schema, after)):
        for kinds in ((p4r.Update.DELETE,), (p4r.Update.INSERT, p4r.Update.MODIFY)):
            for message in (update.message for update in batch if update.message.type in kinds):
                lpm = message.entity.table_entry.match[0].lpm
                prefix = IPv4Network((int.from_bytes(lpm.value, "big"), lpm.prefix_len))
                (held.discard if message.type == p4r.Update.DELETE else held.add)(prefix)
            yield set(held)


@pytest.mark.parametrize(("before", "after"), [(WHOLE, SPLIT), (SPLIT, WHOLE)])
def test_no_address_is_without_a_route_in_between(before: Mapping[str, int], after: Mapping[str, int]) -> None:
    *_, last = found = list(states(schema_of(SIZE), before, after))
    assert last == {IPv4Network(prefix) for prefix in after}
    for held in found:
        for third in range(4):
            assert any(IPv4Address(f"10.0.{third}.1") in prefix for prefix in held)


@pytest.mark.parametrize(("before", "after"), [(WHOLE, SPLIT), (SPLIT, WHOLE)])
def test_a_table_without_room_for_both_is_never_too_full(before: Mapping[str, int], after: Mapping[str, int]) -> None:
    found = list(states(schema_of(SIZE - 2), before, after))
    assert found[-1] == {IPv4Network(prefix) for prefix in after}
    assert max(map(len, found)) <= SIZE - 2
