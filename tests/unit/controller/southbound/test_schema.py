from __future__ import annotations

from pathlib import Path

import pytest
from google.protobuf import text_format
from hypothesis import given, settings
from hypothesis import strategies as st

from gradbed.common.errors import UserError
from gradbed.controller.planning.plan import Lpm, Match, Range, RegisterValue, SwitchPlan, TableEntry, Ternary
from gradbed.controller.southbound.p4runtime.codec import canonical_bytes, decode_entry, encode_entry
from gradbed.controller.southbound.p4runtime.schema import Pipeline, ProgramSchema
from tests.unit.controller.p4info import aggregation_p4info, every_match_p4info

SCHEMA = ProgramSchema(every_match_p4info())
ANY_PORT = {"port": 3}


def normalised(table: str, match: dict[str, Match], priority: int = 0, **params: int) -> TableEntry:
    entry = TableEntry(table=table, match=match, action="set_port", params=params or ANY_PORT, priority=priority)
    return SCHEMA.normalised(SwitchPlan.of("prog", [entry])).entries[0]


def test_tables_are_found_by_full_name_alias_and_unique_tail() -> None:
    schema = ProgramSchema(aggregation_p4info())
    full = "AggregationIngress.forwarding.ipv4_routes"
    assert {schema.tables[name].name for name in (full, "forwarding.ipv4_routes", "ipv4_routes")} == {full}
    with pytest.raises(UserError, match="no table 'zebra'; it has AggregationIngress"):
        schema.tables["zebra"]
    with pytest.raises(UserError, match="no table 'ipv4_rotues'; did you mean 'ipv4_routes'"):
        schema.tables["ipv4_rotues"]
    assert [counter.short for counter in schema.counters] == ["gradient_in", "acknowledgement_in", "events"]


def test_an_ambiguous_name_is_refused() -> None:
    assert SCHEMA.tables["inner.twin"].name == "Ingress.inner.twin"
    with pytest.raises(UserError, match=r"'twin' may be Ingress.inner.twin or Ingress.outer.twin"):
        SCHEMA.tables["twin"]


def test_normalising_spells_out_names_and_drops_what_matches_anything() -> None:
    entry = normalised(
        "wide_table",
        {
            "t": Ternary(value=0x1234, mask=0),
            "r": Range(low=0, high=0xFFFF),
            "o": 7,
            "l": Lpm(value=(1 << 127) + 5, prefix_bits=1),
        },
        priority=1,
    )
    assert entry == TableEntry(
        table="Ingress.wide_table",
        match={"hdr.o": 7, "hdr.l": Lpm(value=1 << 127, prefix_bits=1)},
        action="Ingress.set_port",
        params={"port": 3},
        priority=1,
    )
    assert normalised("wide_table", {"t": Ternary(value=0xFFFF, mask=0xF0)}, 1).match == {
        "hdr.t": Ternary(value=0xF0, mask=0xF0)
    }


@pytest.mark.parametrize(
    ("table", "match", "priority", "params", "line"),
    [
        ("exact_table", {"b": 1}, 0, {}, "no field 'b'"),
        ("exact_table", {}, 0, {}, "an entry must give hdr.a"),
        ("exact_table", {"a": 0x10000}, 0, {}, "65536 does not fit hdr.a, which has 16 bits"),
        ("exact_table", {"a": Lpm(value=0, prefix_bits=8)}, 0, {}, "kind EXACT and cannot match"),
        ("exact_table", {"a": 1}, 0, {"port": 512}, "512 does not fit port"),
        ("exact_table", {"a": 1}, 0, {"gate": 1}, "no parameter 'gate'"),
        ("exact_table", {"a": 1}, 5, {}, "an entry takes no priority"),
        ("wide_table", {"o": 1}, 0, {}, "an entry needs priority"),
        ("wide_table", {"t": 1}, 1, {}, "kind TERNARY and cannot match 1"),
        ("wide_table", {"l": Lpm(value=0, prefix_bits=129)}, 1, {}, "129 bits is longer"),
        ("wide_table", {"r": Range(low=5, high=4)}, 1, {}, "5..4 is empty"),
        ("wide_table", {"t": Ternary(value=0, mask=0x10000)}, 1, {}, "does not fit hdr.t"),
    ],
)
def test_entries_that_the_program_cannot_hold_are_refused(
    table: str, match: dict[str, Match], priority: int, params: dict[str, int], line: str
) -> None:
    with pytest.raises(UserError, match=line):
        normalised(table, match, priority, **params)


def test_an_action_needs_all_its_parameters() -> None:
    entry = TableEntry(table="exact_table", match={"a": 1}, action="set_port")
    with pytest.raises(UserError, match=r"action Ingress.set_port lacks port"):
        SCHEMA.normalised(SwitchPlan.of("prog", [entry]))


def test_unknown_registers_are_refused() -> None:
    cell = RegisterValue(register_name="nothing", index=0, value=0)
    with pytest.raises(UserError, match=r"no register 'nothing'; it has Ingress.memory"):
        SCHEMA.normalised(SwitchPlan.of("prog", registers=[cell]))


word = st.integers(0, 0xFFFF)
wide_entries = st.builds(
    lambda match, priority, port: normalised("wide_table", match, priority, port=port),
    st.fixed_dictionaries(
        {},
        optional={
            "t": st.builds(Ternary, value=word, mask=word),
            "r": st.tuples(word, word).map(lambda ends: Range(low=min(ends), high=max(ends))),
            "o": word,
            "l": st.builds(Lpm, value=st.integers(0, (1 << 128) - 1), prefix_bits=st.integers(0, 128)),
        },
    ),
    st.integers(1, 1 << 20),
    st.integers(0, 511),
)


@given(wide_entries)
@settings(deadline=None)
def test_entries_survive_the_wire(entry: TableEntry) -> None:
    message = encode_entry(SCHEMA, entry).table_entry
    assert decode_entry(SCHEMA, type(message).FromString(message.SerializeToString())) == entry


@given(st.integers(0, 1 << 200))
@settings(deadline=None)
def test_bytestrings_are_the_shortest(value: int) -> None:
    data = canonical_bytes(value)
    assert int.from_bytes(data, "big") == value
    assert data == b"\0" or data[0] != 0


def test_what_a_plan_does_not_manage_is_not_decoded() -> None:
    message = encode_entry(SCHEMA, normalised("exact_table", {"a": 1})).table_entry
    assert decode_entry(SCHEMA, message) is not None
    default = type(message).FromString(message.SerializeToString())
    default.is_default_action = True
    in_const_table = type(message).FromString(message.SerializeToString())
    in_const_table.table_id = SCHEMA.tables["fixed"].id
    member = type(message).FromString(message.SerializeToString())
    member.action.action_profile_member_id = 4
    assert [decode_entry(SCHEMA, m) for m in (default, in_const_table, member)] == [None, None, None]


def test_a_pipeline_is_read_as_text_or_binary(tmp_path: Path) -> None:
    p4info = aggregation_p4info()
    (tmp_path / "program.json").write_text("{}")
    (tmp_path / "text").write_text(text_format.MessageToString(p4info))
    (tmp_path / "binary").write_bytes(p4info.SerializeToString())
    (tmp_path / "neither").write_bytes(b"\xff\xff not protobuf")
    text, binary = (Pipeline.load("prog", tmp_path / "program.json", tmp_path / name) for name in ("text", "binary"))
    assert text.p4info == binary.p4info == p4info
    assert text.cookie == binary.cookie != 0
    (tmp_path / "program.json").write_text("{ }")
    assert Pipeline.load("prog", tmp_path / "program.json", tmp_path / "text").cookie != text.cookie
    with pytest.raises(UserError, match="neither is not a P4Info file"):
        Pipeline.load("prog", tmp_path / "program.json", tmp_path / "neither")
    with pytest.raises(UserError, match=r"cannot read .*missing"):
        Pipeline.load("prog", tmp_path / "missing", tmp_path / "text")
