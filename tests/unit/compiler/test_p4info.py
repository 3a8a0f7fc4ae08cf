"""P4Info: identifiers, aliases, documentation, types. The numbers are those that p4c gives these programs."""

from __future__ import annotations

from pathlib import Path

import pytest
from finsy.proto import p4i
from google.protobuf import text_format

from gradbed.switch.compiler import CompileError, compile_p4
from gradbed.switch.compiler.p4info.preamble import one_at_a_time, shortest_suffixes
from tests.unit.compiler.programs import BYTES, compile_text, control

PROGRAMS = Path(__file__).parents[2] / "p4" / "programs"


@pytest.mark.parametrize("name", ["acl_router", "stateful"])
def test_whole_programs(name: str) -> None:
    expected = p4i.P4Info()
    text_format.Parse((PROGRAMS / f"{name}.p4info.txt").read_text(), expected)
    assert compile_p4(PROGRAMS / f"{name}.p4").p4info == expected


def test_text_and_message_agree() -> None:
    compiled = compile_p4(PROGRAMS / "stateful.p4")
    parsed = p4i.P4Info()
    text_format.Parse(compiled.p4info_text, parsed)
    assert parsed == compiled.p4info


def test_the_hash_behind_identifiers() -> None:
    assert one_at_a_time("") == 0
    assert 0x02000000 | one_at_a_time("RouterIngress.routes") & 0xFFFFFF == 48351477


def test_aliases_are_the_shortest_suffixes_that_tell_names_apart() -> None:
    assert shortest_suffixes(["a.b.c", "d.b.c", "e.c", "x.y", "z"]) == {
        "a.b.c": "a.b.c",
        "d.b.c": "d.b.c",
        "e.c": "e.c",
        "x.y": "y",
        "z": "z",
    }


LOCALS = """
    @id(0x1234) @name("renamed") @brief("what it does") @mine(1, two)
    action a(@id(7) bit<8> v, @brief("w") bit<16> w) { hdr.h.a = v; meta.y = w; }
    @id(0x02000099)
    table t {
        key = { hdr.h.a: ternary @name("first") @id(5); hdr.h.b[3:0]: exact; hdr.g.isValid(): exact; }
        actions = { @tableonly a; @defaultonly NoAction; }
        const default_action = NoAction();
        support_timeout = true;
        size = 77;
    }
    @hidden table u { actions = { NoAction; } }
"""


def test_annotations_and_names() -> None:
    info = compile_text(control("t.apply(); u.apply();", LOCALS)).p4info
    (table,) = info.tables
    assert (table.preamble.id, table.preamble.name, table.preamble.alias) == (0x02000099, "I.t", "t")
    assert [(field.id, field.name, field.bitwidth) for field in table.match_fields] == [
        (5, "first", 8),
        (2, "hdr.h.b[3:0]", 4),
        (3, "hdr.g.$valid$", 1),
    ]
    assert [ref.scope for ref in table.action_refs] == [p4i.ActionRef.TABLE_ONLY, p4i.ActionRef.DEFAULT_ONLY]
    assert (table.size, table.idle_timeout_behavior) == (77, p4i.Table.NOTIFY_CONTROL)
    action = next(item for item in info.actions if item.preamble.alias == "renamed")
    assert (action.preamble.id, action.preamble.name) == (0x01001234, "I.renamed")
    assert action.preamble.doc.brief == "what it does"
    assert list(action.preamble.annotations) == ["@mine(1 , two)"]
    assert [(item.id, item.name) for item in action.params] == [(7, "v"), (2, "w")]
    assert action.params[1].doc.brief == "w"


def test_identifiers_that_collide_are_an_error() -> None:
    locals_ = "@id(5) action a() { } @id(5) action b() { } table t { actions = { a; b; } }"
    with pytest.raises(CompileError, match=r"the identifier 0x5 of 'I.b' is taken"):
        compile_text(control("t.apply();", locals_))


def test_two_tables_cannot_have_one_name() -> None:
    locals_ = '@name("x") table a { actions = { NoAction; } } @name("x") table b { actions = { NoAction; } }'
    with pytest.raises(CompileError, match=r"the control plane knows another table by the name 'I\.x'"):
        compile_text(control("a.apply(); b.apply();", locals_))


def test_nested_instances_are_named_by_their_path() -> None:
    before = """
control Inner(inout bit<8> v)(bit<32> size) {
    counter(size, CounterType.bytes) hits;
    table t { key = { v: exact; } actions = { NoAction; } size = size; }
    apply { t.apply(); hits.count(0); }
}
"""
    locals_ = "Inner(16) one; Inner(32) two;"
    info = compile_text(control("one.apply(hdr.h.a); two.apply(hdr.h.b);", locals_, before=before)).p4info
    assert [(item.preamble.name, item.preamble.alias, item.size) for item in info.tables] == [
        ("I.one.t", "one.t", 16),
        ("I.two.t", "two.t", 32),
    ]
    assert [(item.preamble.name, item.size) for item in info.counters] == [("I.one.hits", 16), ("I.two.hits", 32)]


def test_new_types_are_translated() -> None:
    before = """
@p4runtime_translation("p4.org/example/Port", 32) type bit<9> port_t;
@p4runtime_translation("p4.org/example/Name", string) type bit<10> name_t;
type bit<8> plain_t;
"""
    types = (
        before
        + """
header bytes_t { bit<8> a; bit<8> b; bit<8> c; bit<8> d; }
struct headers_t { bytes_t h; bytes_t g; }
struct meta_t { port_t p; name_t n; plain_t q; }
"""
    )
    locals_ = """
    action a(port_t p) { meta.p = p; }
    table t { key = { meta.p: exact; meta.n: exact; meta.q: exact; } actions = { a; } }
"""
    info = compile_text(control("t.apply();", locals_, types=types)).p4info
    fields = info.tables[0].match_fields
    assert [(field.type_name.name, field.bitwidth) for field in fields] == [
        ("port_t", 32),
        ("name_t", 0),
        ("plain_t", 8),
    ]
    new_types = info.type_info.new_types
    assert new_types["port_t"].translated_type.sdn_bitwidth == 32
    assert new_types["name_t"].translated_type.HasField("sdn_string")
    assert new_types["plain_t"].original_type.bitstring.bit.bitwidth == 8
    action = next(item for item in info.actions if item.preamble.alias == "a")
    assert (action.params[0].bitwidth, action.params[0].type_name.name) == (32, "port_t")


def test_package_information() -> None:
    text = control("").replace("V1Switch(", '@pkginfo(name = "x.p4", version = "3") @brief("short") V1Switch(')
    package = compile_text(text).p4info.pkg_info
    assert (package.name, package.version, package.arch, package.doc.brief) == ("x.p4", "3", "v1model", "short")


def test_default_action_data_has_the_bytes_of_its_type() -> None:
    locals_ = "action a(bit<16> v) { meta.y = v; } table t { actions = { a; } default_action = a(3); }"
    (table,) = compile_text(control("t.apply();", locals_)).p4info.tables
    (argument,) = table.initial_default_action.arguments
    assert (argument.param_id, argument.value) == (1, b"\0\x03")


# ---- As p4c has it ----


def test_actions_that_only_actions_call_are_left_out() -> None:
    locals_ = """
        action inner() { hdr.h.a = 1; }
        action both() { hdr.h.b = 1; }
        action outer() { inner(); both(); }
        table t { actions = { outer; } default_action = outer(); }"""
    info = compile_text(control("t.apply(); both();", locals_)).p4info
    assert {item.preamble.alias for item in info.actions} == {"outer", "both"}


SELECTOR = """
    @max_group_size(200) @selector_size_semantics("sum_of_members") @max_member_weight(4000) @mine()
    action_selector(HashAlgorithm.crc16, 64, 8) selector;
    @max_group_size(200) action_profile(32) profile;
    table t { key = { hdr.h.a: exact; hdr.h.b: selector; } actions = { NoAction; } implementation = selector; }
    table u { key = { hdr.h.a: exact; } actions = { NoAction; } implementation = profile; }
    table v { key = { hdr.h.a: exact; } actions = { NoAction; }
        @name("in_place") @max_group_size(5) @oneshot()
        implementation = action_selector(HashAlgorithm.crc16, 16, 8);
        @name("its_counter") counters = direct_counter(CounterType.bytes); }
"""


def test_annotations_of_action_profiles_become_fields() -> None:
    info = compile_text(control("t.apply(); u.apply(); v.apply();", SELECTOR)).p4info
    profiles = {item.preamble.name: item for item in info.action_profiles}
    assert set(profiles) == {"I.selector", "I.profile", "in_place"}
    assert [profiles[name].max_group_size for name in sorted(profiles)] == [0, 200, 5]
    assert profiles["I.selector"].sum_of_members.max_member_weight == 4000
    assert [list(profiles[name].preamble.annotations) for name in sorted(profiles)] == [[], ["@mine"], ["@oneshot"]]


def test_what_is_made_in_a_property_goes_by_the_name_in_front_of_it() -> None:
    compiled = compile_text(control("t.apply(); u.apply(); v.apply();", SELECTOR))
    (counter,) = compiled.p4info.direct_counters
    assert counter.preamble.name == "its_counter"
    assert [item["name"] for item in compiled.json["counter_arrays"]] == ["its_counter"]


def test_structured_annotations() -> None:
    locals_ = """
        @list[1, "two" "three", true, 1 == 2, 5 + 8w0x10, -1] @pairs[a="x", b=false, c=2 * 3] @empty[]
        @unknown[HERE] table t { actions = { @mine[4] NoAction; } }"""
    (table,) = compile_text(control("t.apply();", locals_)).p4info.tables
    given = {item.name: item for item in table.preamble.structured_annotations}
    assert set(given) == {"list", "pairs", "empty"}
    expressions = given["list"].expression_list.expressions
    values = [(one.WhichOneof("value"), getattr(one, one.WhichOneof("value"))) for one in expressions]
    assert values == [
        ("int64_value", 1),
        ("string_value", "twothree"),
        ("bool_value", True),
        ("bool_value", False),
        ("int64_value", 21),
        ("int64_value", -1),
    ]
    pairs = {pair.key: pair.value for pair in given["pairs"].kv_pair_list.kv_pairs}
    assert (pairs["a"].string_value, pairs["b"].bool_value, pairs["c"].int64_value) == ("x", False, 6)
    assert list(table.preamble.annotations) == ["@unknown(HERE)"]
    assert table.action_refs[0].structured_annotations[0].name == "mine"


def test_properties_of_the_platform() -> None:
    property_ = "@platform_property(multicast_group_table_size = 10, multicast_group_table_total_replicas = 20)"
    package = compile_text(control("").replace("V1Switch(", f"{property_} V1Switch(")).p4info.pkg_info
    assert package.platform_properties.multicast_group_table_size == 10
    assert package.platform_properties.multicast_group_table_total_replicas == 20
    assert not package.annotations


def test_names_of_keys_and_parameters() -> None:
    types = BYTES.replace("bit<8> a;", '@name("first") bit<8> a;').replace("bytes_t g;", '@name(".other") bytes_t g;')
    locals_ = """
        action set(@name("value") bit<8> v) { hdr.h.a = v; }
        table t {
            key = { hdr.h.a: exact; hdr.g.b: exact; hdr.h.c & 0x0F: exact; hdr.h.d & 8w3: exact; }
            actions = { set; } }"""
    info = compile_text(control("t.apply();", locals_, types=types)).p4info
    names = [field.name for field in info.tables[0].match_fields]
    assert names == ["hdr.h.first", "other.b", "hdr.h.c & 0xf", "hdr.h.d & 3"]
    assert [item.params[0].name for item in info.actions if item.params] == ["value"]


def test_structs_in_controller_headers_are_flat() -> None:
    types = "struct port_t { bit<16> number; bit<16> kind; }\n"
    types += '@controller_header("packet_in") header in_t { port_t port; bit<8> x; }\n'
    (header,) = compile_text(control("", before=types)).p4info.controller_packet_metadata
    assert [(item.id, item.name, item.bitwidth) for item in header.metadata] == [
        (1, "port.number", 16),
        (2, "port.kind", 16),
        (3, "x", 8),
    ]


def test_tables_of_a_profile_are_in_the_order_of_their_names() -> None:
    tables = "".join(
        f"@id({number}) table {name} {{ key = {{ hdr.h.a: exact; }} actions = {{ NoAction; }} implementation = s; }}"
        for number, name in ((1, "z"), (2, "m"), (3, "a"))
    )
    info = compile_text(control("z.apply(); m.apply(); a.apply();", f"action_profile(4) s; {tables}")).p4info
    assert [number & 0xFF for number in info.action_profiles[0].table_ids] == [3, 2, 1]
