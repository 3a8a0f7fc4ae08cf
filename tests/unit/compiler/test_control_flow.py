"""What compiled controls do: inlining, copy-in and copy-out, returns, exits, tables, branches in actions."""

from __future__ import annotations

import pytest

from tests.unit.compiler.programs import PARSER, compile_text, control, model, run


def test_assignments_happen_in_order() -> None:
    assert run("hdr.h.a = hdr.h.b; hdr.h.b = hdr.h.c + 1;", bytes([1, 2, 3, 4])) == bytes([2, 4, 3, 4])


def test_return_in_a_control_skips_the_rest() -> None:
    body = "if (hdr.h.a == 1) { hdr.h.b = 9; return; } hdr.h.c = 9;"
    assert run(body, bytes([1, 0, 0, 0])) == bytes([1, 9, 0, 0])
    assert run(body, bytes([2, 0, 0, 0])) == bytes([2, 0, 9, 0])


def test_return_in_a_nested_control_ends_only_that() -> None:
    inner = "control Inner(inout bit<8> v) { apply { if (v == 1) { return; } v = 7; } }"
    body = "inner.apply(hdr.h.a); hdr.h.d = 5;"
    assert run(body, bytes([1, 0, 0, 0]), "Inner() inner;", before=inner) == bytes([1, 0, 0, 5])
    assert run(body, bytes([2, 0, 0, 0]), "Inner() inner;", before=inner) == bytes([7, 0, 0, 5])


def test_exit_in_a_nested_control_copies_out_and_ends_the_pipeline() -> None:
    inner = "control Inner(inout bit<8> v, inout bit<8> w) { apply { v = 1; w = 2; exit; } }"
    body = "inner.apply(hdr.h.a, hdr.h.a); hdr.h.d = 5;"
    assert run(body, bytes(4), "Inner() inner;", before=inner) == bytes([2, 0, 0, 0])


def test_exit_ends_ingress_but_not_egress() -> None:
    text = control("exit;").replace(
        "standard_metadata_t std) { apply { } }", "standard_metadata_t std) { apply { hdr.h.d = 8; } }"
    )
    assert model(text).run(bytes(4))[0] == bytes([0, 0, 0, 8])


def test_the_same_variable_passed_twice_is_copied_out_left_to_right() -> None:
    function = "void f(inout bit<8> v, inout bit<8> w) { v = v + 1; w = w + 10; }"
    assert run("f(hdr.h.a, hdr.h.a);", bytes([5, 0, 0, 0]), before=function) == bytes([15, 0, 0, 0])


def test_functions_of_one_name_are_told_apart_by_the_names_of_arguments() -> None:
    functions = """
        bit<8> f(in bit<8> x) { return x + 1; }
        bit<8> f(in bit<8> y) { return y + 2; }
        bit<8> f(in bit<8> x, in bit<8> y) { return x - y; }
    """
    body = "hdr.h.a = f(y = 10); hdr.h.b = f(x = 10); hdr.h.c = f(9, 4); hdr.h.d = f(y = 1, x = 8);"
    assert run(body, before=functions) == bytes([12, 11, 5, 7])


def test_in_arguments_keep_the_value_at_the_call() -> None:
    function = "bit<8> f(in bit<8> v, inout bit<8> w) { w = w + 1; return v; }"
    assert run("hdr.h.b = f(hdr.h.a, hdr.h.a);", bytes([5, 0, 0, 0]), before=function) == bytes([6, 5, 0, 0])


def test_operands_are_evaluated_left_to_right() -> None:
    function = "bit<8> f(inout bit<8> v) { v = v + 1; return v; }"
    assert run("hdr.h.b = hdr.h.a + f(hdr.h.a);", bytes([5, 0, 0, 0]), before=function)[1] == 11


@pytest.mark.parametrize(("first", "expected"), [(0, [0, 9, 9, 0]), (1, [1, 1, 9, 0])])
def test_functions_return_from_anywhere(first: int, expected: list[int]) -> None:
    function = "bit<8> f(in bit<8> v) { if (v == 1) { return v; } return 9; }"
    body = "hdr.h.b = f(hdr.h.a); hdr.h.c = 9;"
    assert run(body, bytes([first, 0, 0, 0]), before=function) == bytes(expected)


def test_logical_operators_do_not_evaluate_more_than_they_need() -> None:
    function = "bool f(inout bit<8> v) { v = v + 1; return true; }"
    body = "if (hdr.h.a == 1 && f(hdr.h.b)) { hdr.h.c = 1; } if (hdr.h.a == 1 || f(hdr.h.b)) { hdr.h.d = 1; }"
    assert run(body, bytes([1, 0, 0, 0]), before=function) == bytes([1, 1, 1, 1])
    assert run(body, bytes([0, 0, 0, 0]), before=function) == bytes([0, 1, 0, 1])


def test_the_conditional_operator_evaluates_one_side() -> None:
    function = "bit<8> f(inout bit<8> v) { v = v + 1; return v; }"
    body = "hdr.h.c = hdr.h.a == 1 ? f(hdr.h.b) : 8w7;"
    assert run(body, bytes([1, 4, 0, 0]), before=function) == bytes([1, 5, 5, 0])
    assert run(body, bytes([0, 4, 0, 0]), before=function) == bytes([0, 4, 7, 0])


def test_out_headers_start_invalid() -> None:
    function = "void f(out bytes_t v) { if (v.isValid()) { v.a = 1; } else { v = { 1, 2, 3, 4 }; } }"
    assert run("f(hdr.h);", bytes([9, 9, 9, 9]), before=function) == bytes([1, 2, 3, 4])


def test_headers_are_copied_with_their_validity() -> None:
    body = "bytes_t v; if (hdr.h.a == 1) { v = hdr.h; } hdr.g = v;"
    assert run(body, bytes([1, 2, 3, 4])) == bytes([1, 2, 3, 4, 1, 2, 3, 4])
    assert run(body, bytes([0, 2, 3, 4])) == bytes([0, 2, 3, 4])


def test_a_list_that_reads_what_it_is_assigned_to() -> None:
    assert run("hdr.h = { hdr.h.d, hdr.h.c, hdr.h.b, hdr.h.a };", bytes([1, 2, 3, 4])) == bytes([4, 3, 2, 1])


def test_slices_are_assigned_alone() -> None:
    assert run("hdr.h.a[5:2] = 4w0b1010;", bytes([0xFF, 0, 0, 0]))[0] == 0b11101011


def test_switch_on_values_with_shared_bodies() -> None:
    body = "switch (hdr.h.a) { 1: 2: { hdr.h.b = 5; } 3: { hdr.h.b = 6; } default: { hdr.h.b = 7; } }"
    assert [run(body, bytes([value, 0, 0, 0]))[1] for value in (1, 2, 3, 4)] == [5, 5, 6, 7]


# --- tables ---

TABLE = """
    action set(bit<8> v) { hdr.h.b = v; }
    action leave() { hdr.h.c = 1; exit; }
    table t {
        key = { hdr.h.a: exact; }
        actions = { set; leave; NoAction; }
        const entries = { 1: set(11); 2: leave(); 3: set(33); }
        const default_action = NoAction();
    }
"""


def test_tables_run_the_action_of_their_entry() -> None:
    assert run("t.apply(); hdr.h.d = 9;", bytes([1, 0, 0, 0]), TABLE) == bytes([1, 11, 0, 9])
    assert run("t.apply(); hdr.h.d = 9;", bytes([7, 0, 0, 0]), TABLE) == bytes([7, 0, 0, 9])


def test_exit_in_an_action_ends_the_pipeline() -> None:
    assert run("t.apply(); hdr.h.d = 9;", bytes([2, 0, 0, 0]), TABLE) == bytes([2, 0, 1, 0])


def test_hit_and_miss_choose_a_branch() -> None:
    body = "if (t.apply().hit) { hdr.h.d = 1; } else { hdr.h.d = 2; }"
    assert [run(body, bytes([value, 0, 0, 0]), TABLE)[3] for value in (1, 7)] == [1, 2]
    body = "if (!t.apply().hit) { hdr.h.d = 1; }"
    assert [run(body, bytes([value, 0, 0, 0]), TABLE)[3] for value in (1, 7)] == [0, 1]
    body = "if (hdr.h.c == 0 && t.apply().miss) { hdr.h.d = 1; }"
    assert [run(body, bytes([value, 0, 0, 0]), TABLE)[3] for value in (1, 7)] == [0, 1]


def test_switch_on_action_run() -> None:
    body = "switch (t.apply().action_run) { set: { hdr.h.d = 1; } default: { hdr.h.d = 2; } } hdr.h.c = hdr.h.c + 4;"
    assert run(body, bytes([1, 0, 0, 0]), TABLE) == bytes([1, 11, 4, 1])
    assert run(body, bytes([7, 0, 0, 0]), TABLE) == bytes([7, 0, 4, 2])


def test_a_table_applied_in_two_places_goes_on_where_it_was_applied() -> None:
    body = "if (hdr.h.d == 0) { t.apply(); hdr.h.d = 5; } else { t.apply(); hdr.h.d = 6; }"
    assert run(body, bytes([1, 0, 0, 0]), TABLE) == bytes([1, 11, 0, 5])
    assert run(body, bytes([3, 0, 0, 1]), TABLE) == bytes([3, 33, 0, 6])


def test_a_table_may_be_asked_for_a_hit_here_and_for_its_action_there() -> None:
    """Entry 4 runs the default action, so its hit is no miss, and its action tells nothing of a hit."""
    table = TABLE.replace("3: set(33);", "3: set(33); 4: NoAction();")
    body = """
        if (t.apply().hit) { hdr.h.d = 16; }
        switch (t.apply().action_run) { set: { hdr.h.d = hdr.h.d + 1; } NoAction: { hdr.h.d = hdr.h.d + 2; } }
        if (t.apply().miss) { hdr.h.d = hdr.h.d + 32; }
        t.apply();
    """
    assert [run(body, bytes([value, 0, 0, 0]), table)[3] for value in (1, 3, 4, 9)] == [17, 17, 18, 34]


def test_keys_that_are_no_fields_are_computed_first() -> None:
    table = TABLE.replace("hdr.h.a: exact;", 'hdr.h.a + 1: exact @name("next");')
    assert run("t.apply();", bytes([2, 0, 0, 0]), table) == bytes([2, 33, 0, 0])


def test_exit_in_the_action_of_a_nested_control_copies_out() -> None:
    inner = """
control Inner(inout bit<8> v, inout bit<8> w) {
    action leave() { v = 1; w = 2; exit; }
    table t { key = { v: exact; } actions = { leave; NoAction; } const entries = { 5: leave(); } }
    apply { t.apply(); w = 9; }
}
"""
    body = "inner.apply(hdr.h.a, hdr.h.a); hdr.h.d = 5;"
    assert run(body, bytes([5, 0, 0, 0]), "Inner() inner;", before=inner) == bytes([2, 0, 0, 0])
    assert run(body, bytes([6, 0, 0, 0]), "Inner() inner;", before=inner) == bytes([9, 0, 0, 5])


def test_bound_arguments_of_a_listed_action() -> None:
    locals_ = """
    action add(inout bit<8> target, in bit<8> step, bit<8> data) { target = target + step + data; }
    table t {
        key = { hdr.h.a: exact; }
        actions = { add(hdr.h.b, hdr.h.c); }
        default_action = add(hdr.h.b, hdr.h.c, 100);
    }
"""
    assert run("t.apply();", bytes([0, 1, 2, 0]), locals_) == bytes([0, 103, 2, 0])


def test_an_instance_applied_twice_keeps_its_calls_apart() -> None:
    inner = """
control Inner(inout bit<8> v) {
    action set(bit<8> d) { v = d; }
    table t { key = { v: exact; } actions = { set; NoAction; } const entries = { 1: set(7); 2: set(8); } }
    apply { t.apply(); }
}
"""
    body = "inner.apply(hdr.h.a); inner.apply(hdr.h.b);"
    assert run(body, bytes([1, 2, 0, 0]), "Inner() inner;", before=inner) == bytes([7, 8, 0, 0])


def test_headers_are_not_copied_for_an_instance_without_tables_that_is_applied_twice() -> None:
    inner = """
control Inner(inout headers_t hdr, in bit<8> add) {
    register<bit<8>>(4) sum;
    bit<8> so_far;
    apply { sum.read(so_far, 0); hdr.h.d = so_far + add; sum.write(0, hdr.h.d); }
}
control Outer(inout headers_t hdr, in bit<8> add) {
    Inner() inner;
    apply { inner.apply(hdr, add); }
}
"""
    body = "outer.apply(hdr, 1); outer.apply(hdr, 2);"
    text = control(body, "Outer() outer;", before=inner)
    assert model(text).run(bytes([1, 2, 0, 0]))[0] == bytes([1, 2, 0, 3])
    stored = [header["name"] for header in compile_text(text).json["headers"] if not header["metadata"]]
    assert stored == ["h", "g"]


# --- branches and loops in actions ---


@pytest.mark.parametrize("value", range(5))
def test_branches_in_actions(value: int) -> None:
    locals_ = """
    action a() {
        if (hdr.h.a == 0) { hdr.h.b = 1; return; }
        else if (hdr.h.a == 1) { hdr.h.b = 2; hdr.g.setValid(); }
        else { if (hdr.h.a < 4) { hdr.h.b = 3; } }
        hdr.h.c = 1;
    }
    table t { actions = { a; } default_action = a(); }
"""
    out = run("t.apply(); hdr.h.d = 1;", bytes([value, 0, 0, 0]), locals_)
    expected = [[0, 1, 0, 1], [1, 2, 1, 1, 0, 0, 0, 0], [2, 3, 1, 1], [3, 3, 1, 1], [4, 0, 1, 1]][value]
    assert out == bytes(expected)


def test_loops_with_break_and_continue() -> None:
    body = """
    for (bit<8> i = 0; i < hdr.h.a; i = i + 1) {
        if (i == 2) { continue; }
        if (i == 5) { break; }
        hdr.h.b = hdr.h.b + i;
    }
"""
    for locals_, apply in (
        ("", body),
        (f"action a() {{ {body} }} table t {{ actions = {{ a; }} default_action = a(); }}", "t.apply();"),
    ):
        assert run(apply, bytes([4, 0, 0, 0]), locals_)[1] == 0 + 1 + 3
        assert run(apply, bytes([200, 0, 0, 0]), locals_)[1] == 0 + 1 + 3 + 4


def test_loops_over_ranges_are_unrolled() -> None:
    assert run("for (bit<8> i in 1 .. 4) { hdr.h.a = hdr.h.a + i; }", bytes(4))[0] == 10


# --- stacks and unions ---

STACK = """
header item_t { bit<8> v; }
header_union either_t { item_t one; item_t two; }
struct headers_t { item_t[3] s; either_t u; item_t tail; }
struct meta_t { bit<8> x; }
"""
STACK_PARSER = """
parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    state start { packet.extract(hdr.s.next); transition select(hdr.s.last.v) { 0: accept; default: start; } }
}
"""


def stack(apply: str, data: list[int]) -> list[int]:
    text = control(apply, types=STACK, parser=STACK_PARSER).replace(
        "packet.emit(hdr.h); packet.emit(hdr.g);", "packet.emit(hdr.s); packet.emit(hdr.u); packet.emit(hdr.tail);"
    )
    return list(model(text).run(bytes(data))[0])


def test_stacks_are_pushed_and_popped() -> None:
    assert stack("hdr.s.pop_front(1);", [5, 0]) == [0]
    assert stack("hdr.s.push_front(1); hdr.s[0].setValid(); hdr.s[0].v = 7;", [5, 0]) == [7, 5, 0]


def test_elements_by_an_index_known_at_run_time() -> None:
    assert stack("hdr.s[hdr.s[0].v].v = 9;", [1, 3, 0]) == [1, 9, 0]
    assert stack("hdr.s[0].v = hdr.s[hdr.s[0].v].v;", [1, 3, 0]) == [3, 3, 0]
    assert stack("hdr.s[hdr.s[0].v].setInvalid();", [1, 3, 0]) == [1, 0]
    assert stack("if (hdr.s[hdr.s[0].v].isValid()) { hdr.s[0].v = 8; }", [2, 0]) == [2, 0]


def test_the_target_of_a_compound_assignment_is_evaluated_once() -> None:
    assert run("hdr.h.a += 3; hdr.h.b |= 8; hdr.h.c <<= 2; hdr.h.d[3:0] -= 1;", bytes([1, 1, 1, 0x10])) == bytes(
        [4, 9, 4, 0x1F]
    )
    text = control("hdr.s[f(hdr.s[0].v)].v += 5;", types=STACK, parser=STACK_PARSER).replace(
        "packet.emit(hdr.h); packet.emit(hdr.g);", "packet.emit(hdr.s);"
    )
    text = text.replace("parser P(", "bit<8> f(inout bit<8> v) { v = v + 1; return v; }\nparser P(")
    assert list(model(text).run(bytes([1, 4, 0]))[0]) == [2, 4, 5]


def test_a_union_has_one_valid_member() -> None:
    body = "hdr.u.one.setValid(); hdr.u.one.v = 1; hdr.u.two.setValid(); hdr.u.two.v = 2;"
    assert stack(body, [0]) == [0, 2]
    assert stack(body + "hdr.u.two.setInvalid(); if (!hdr.u.isValid()) { hdr.s[0].v = 4; }", [0]) == [4]


# --- state ---


def test_registers_count() -> None:
    locals_ = "register<bit<8>>(4) r; bit<8> v;"
    switch = model(
        control("r.read(v, (bit<32>)hdr.h.a); v = v + 1; r.write((bit<32>)hdr.h.a, v); hdr.h.b = v;", locals_)
    )
    assert [switch.run(bytes([2, 0, 0, 0]))[0][1] for _ in range(3)] == [1, 2, 3]
    assert switch.registers["I.r"] == [0, 0, 3, 0]


def test_digests_keep_the_values_of_the_call() -> None:
    program = compile_text(control("digest<meta_t>(1, { hdr.h.a, 16w5 }); hdr.h.a = 9;")).json
    (learned,) = program["learn_lists"]
    assert learned["name"] == "meta_t"
    assert all(element["value"][0] == "scalars" for element in learned["elements"])


def test_field_lists_follow_their_annotation() -> None:
    types = """
header bytes_t { bit<8> a; bit<8> b; bit<8> c; bit<8> d; }
struct inner_t { bit<8> p; bit<8> q; }
struct headers_t { bytes_t h; bytes_t g; }
struct meta_t { @field_list(3, 4) bit<8> x; bit<16> y; @field_list(4) inner_t inner; }
"""
    text = control(
        "resubmit_preserving_field_list(4); clone_preserving_field_list(CloneType.I2E, 7, 3);", types=types
    )
    lists = {
        item["id"]: [part["value"][1] for part in item["elements"]] for item in compile_text(text).json["field_lists"]
    }
    assert lists == {1: ["meta_t.x", "meta_t.inner.p", "meta_t.inner.q"], 2: ["meta_t.x"]}


def test_field_lists_may_be_named_by_constants() -> None:
    types = """
const bit<8> KEPT = 3;
enum bit<8> list_t { ALSO = 4 }
header bytes_t { bit<8> a; bit<8> b; bit<8> c; bit<8> d; }
struct headers_t { bytes_t h; bytes_t g; }
struct meta_t {
    @field_list(KEPT, list_t.ALSO) bit<8> x;
    @field_list(8w0x3) bit<16> y;
    @field_list(NOTHING, 5) bit<8> z;
}
"""
    text = control(
        "resubmit_preserving_field_list(KEPT); clone_preserving_field_list(CloneType.I2E, 7, 4);", types=types
    )
    lists = [[part["value"][1] for part in item["elements"]] for item in compile_text(text).json["field_lists"]]
    assert lists == [["meta_t.x", "meta_t.y"], ["meta_t.x"]]


RANGE = "for (bit<8> i in hdr.h.a .. hdr.h.b) {{ {0} }}"


@pytest.mark.parametrize(
    ("body", "first", "last", "c"),
    [
        ("hdr.h.c = hdr.h.c + i;", 2, 4, 9),
        ("hdr.h.c = hdr.h.c + i;", 4, 4, 4),
        ("hdr.h.c = hdr.h.c + i;", 5, 4, 0),
        ("hdr.h.c = hdr.h.c + 1;", 250, 255, 6),
        ("if (i == 3) { continue; } if (i == 6) { break; } hdr.h.c = hdr.h.c + 1;", 1, 9, 4),
        ("hdr.h.c = hdr.h.c + 1; hdr.h.b = 0; i = 0;", 1, 3, 3),
    ],
)
@pytest.mark.parametrize("place", ["control", "action", "parser"])
def test_for_over_a_range_that_the_packet_gives(place: str, body: str, first: int, last: int, c: int) -> None:
    loop = RANGE.format(body)
    data = bytes((first, last, 0, 0))
    if place == "control":
        result = run(loop, data)
    elif place == "action":
        result = run("a();", data, f"action a() {{ {loop} }}")
    else:
        result = run("", data, parser=PARSER.replace("transition accept;", f"{loop} transition accept;"))
    assert result[2] == c


def test_for_over_a_long_range_is_not_unrolled() -> None:
    compiled = compile_text(control("for (bit<16> i in 0 .. 60000) { meta.y = meta.y + 1; }"))
    assert len(compiled.json_text) < 100_000
