"""Entries that watch a port, over P4Runtime and back."""

from __future__ import annotations

import pytest

from gradbed.common.errors import UserError
from gradbed.controller.planning.plan import SwitchPlan, TableEntry
from gradbed.controller.planning.text import entry_text
from gradbed.controller.southbound.p4runtime.codec import decode_entry, encode_entry
from gradbed.controller.southbound.p4runtime.schema import Pipeline, ProgramSchema
from gradbed.experiments.programs import Program

WAY = TableEntry(
    table="mesh_ways", match={"sub_unit": 1}, action="mesh", params={"port": 300, "next": 2}, watch_port=300
)


@pytest.fixture(scope="module")
def schema() -> ProgramSchema:
    files = Program.own("interconnect").compiled()
    return Pipeline.load("interconnect", files.json, files.p4info).schema


@pytest.mark.parametrize("watch_port", [300, None])
def test_they_are_one_shots_of_one_member(schema: ProgramSchema, watch_port: int | None) -> None:
    given = WAY.model_copy(update={"watch_port": watch_port})
    (entry,) = schema.normalised(SwitchPlan.of("interconnect", [given])).entries
    message = encode_entry(schema, entry).table_entry
    (member,) = message.action.action_profile_action_set.action_profile_actions
    assert (member.weight, member.watch_port) == (1, b"" if watch_port is None else b"\x01\x2c")
    assert decode_entry(schema, type(message).FromString(message.SerializeToString())) == entry


def test_only_action_selectors_watch_ports(schema: ProgramSchema) -> None:
    entry = TableEntry(table="self", match={"hdr.ethernet.dst_addr": 1}, action="NoAction", watch_port=1)
    with pytest.raises(UserError, match="its entries watch no ports, since it has no action selector"):
        schema.normalised(SwitchPlan.of("interconnect", [entry]))


def test_plans_say_so() -> None:
    assert entry_text(WAY).endswith("-> mesh(port=300, next=2) while port 300 is up")
