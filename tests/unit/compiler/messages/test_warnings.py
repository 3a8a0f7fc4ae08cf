"""Warnings: each kind where it is certain, silence where it is not, and @noWarn."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradbed.switch.compiler import compile_p4
from gradbed.switch.compiler.analysis import CATEGORIES
from tests.unit.compiler.programs import compile_text, control

ROOT = Path(__file__).parents[4]


def warnings(text: str) -> list[tuple[str, str]]:
    """(category, message) of each"""
    return [(item.category, item.message) for item in compile_text(text).warnings]


def body(apply: str, locals_: str = "") -> str:
    return control(apply, locals_)


TABLE = "table t { key = { hdr.h.a: exact; } actions = { NoAction; } }"
COPY = "void copy(in bit<8> from, out bit<8> to) { to = from; }\n"


def parser(states: str) -> str:
    head = "parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {"
    return f"\n{head}\n{states}\n}}\n"


@pytest.mark.parametrize(
    ("apply", "locals_", "category", "message"),
    [
        ("", TABLE, "unused", "table 't' is never applied"),
        (
            "t.apply();",
            "table t { key = { hdr.h.a[6:0]: lpm; } actions = { NoAction; } }",
            "bmv2",
            "BMv2 matches prefixes of 7 bits wrongly: it takes them for whole bytes",
        ),
        (
            "std.mcast_grp = 1; truncate(64);",
            "",
            "bmv2",
            "on BMv2 a packet is whole again after multicast, whatever length truncate() gave it before",
        ),
        ("", "action a() { hdr.h.a = 1; }", "unused", "action 'a' is in no table and never called"),
        ("", "register<bit<8>>(4) r;", "unused", "instance 'r' is never used"),
        (
            "t.apply();",
            "table t { key = { hdr.h.a: exact; hdr.h.b: selector; } actions = { NoAction; } }",
            "unused",
            "table 't' has no action_selector, so this key is never used",
        ),
        (
            "t.apply();",
            "table t { key = { hdr.h.a: exact; } actions = { NoAction; } implementation = action_profile(16); }",
            "unsupported",
            "'implementation' of table 't' has no name, as p4c wants for P4Info: put @name before it",
        ),
        (
            "t.apply();",
            "table t { key = { hdr.h.a: exact; } actions = { NoAction; } "
            "counters = direct_counter(CounterType.packets); }",
            "unsupported",
            "'counters' of table 't' has no name, as p4c wants for P4Info: put @name before it",
        ),
        (
            "if (hdr.h.a == 1) { t.apply(); hdr.h.b = 1; } else { t.apply(); }",
            "table t { key = { hdr.h.c: exact; } actions = { NoAction; } }",
            "unsupported",
            "p4c's back end for BMv2 refuses a table that is applied in several places and left differently",
        ),
        (
            "c.count();",
            "direct_counter(CounterType.packets) c;",
            "unused",
            "direct_counter 'c' belongs to no table and does nothing",
        ),
        (
            "m.read(meta.x);",
            "direct_meter<bit<8>>(MeterType.bytes) m;",
            "unused",
            "direct_meter 'm' belongs to no table and does nothing",
        ),
        ("hdr.h.a = hdr.h.b << 8;", "", "overflow", "a bit<8> is shifted by 8, no less than its width"),
        ("bit<8> x;", "", "unused", "variable 'x' is never used"),
        ("", "bit<8> x;", "unused", "variable 'x' is never used"),
        ("bit<8> x; hdr.h.a = x;", "", "uninitialized_use", "'x' is read here, but has no value yet"),
        ("bit<8> x; x = x + 1;", "", "uninitialized_use", "'x' is read here, but has no value yet"),
        ("bit<8> x; hdr.h.a[3:0] = x[3:0];", "", "uninitialized_use", "'x' is read here, but has no value yet"),
        ("hdr.h.a = x; x = 1;", "bit<8> x;", "uninitialized_use", "'x' is read here, but has no value yet"),
        (
            "bit<8> x; if (hdr.h.a == 1) { hdr.h.b = x; } else { x = 1; }",
            "",
            "uninitialized_use",
            "'x' is read here, but has no value yet",
        ),
        ("if (hdr.h.a >= 0) { hdr.h.b = 1; }", "", "mismatch", "this comparison is always true"),
        ("if (0 <= hdr.h.a) { hdr.h.b = 1; }", "", "mismatch", "this comparison is always true"),
        ("if (hdr.h.a < 0) { hdr.h.b = 1; }", "", "mismatch", "this comparison is always false"),
        ("if (hdr.h.a > 255) { hdr.h.b = 1; }", "", "mismatch", "this comparison is always false"),
        ("if ((bit<16>)hdr.h.a < 300) { hdr.h.b = 1; }", "", "mismatch", "this comparison is always true"),
        ("if ((bit<16>)hdr.h.a == 300) { hdr.h.b = 1; }", "", "mismatch", "this comparison is always false"),
        ("if ((hdr.h.a & 7) != 8) { hdr.h.b = 1; }", "", "mismatch", "this comparison is always true"),
        ("hdr.h.a = 300;", "", "overflow", "300 does not fit into bit<8>, it becomes 44"),
        ("hdr.h.a = 8w300;", "", "overflow", "300 does not fit into bit<8>, it becomes 44"),
        (
            "exit; hdr.h.a = 1;",
            "",
            "unreachable",
            "this is never executed: the statement before it does not go on",
        ),
        (
            "if (hdr.h.a == 1) { return; } else { exit; } hdr.h.a = 1;",
            "",
            "unreachable",
            "this is never executed: the statement before it does not go on",
        ),
        (
            "hdr.h.a = hdr.g.a;",
            "",
            "invalid_header",
            "header 'g' is never valid: it is never extracted, assigned or set valid",
        ),
        (
            "mark_to_drop();",
            "",
            "deprecated",
            "'mark_to_drop' with 0 argument(s) is deprecated: write mark_to_drop(standard_metadata)",
        ),
    ],
)
def test_what_is_warned_of(apply: str, locals_: str, category: str, message: str) -> None:
    assert warnings(body(apply, locals_)) == [(category, message)]
    assert category in CATEGORIES


@pytest.mark.parametrize(
    ("apply", "locals_"),
    [
        ("t.apply();", TABLE),
        ("if (t.apply().hit) { hdr.h.a = 1; }", TABLE),
        ("a();", "action a() { hdr.h.a = 1; }"),
        ("hdr.h.a = hdr.h.b >> 7;", ""),
        (
            "t.apply();",
            "direct_counter(CounterType.packets) c; action a() { c.count(); }"
            "table t { actions = { a; } counters = c; }",
        ),
        ("bit<8> x; r.read(x, 0); hdr.h.a = x;", "register<bit<8>>(4) r;"),
        ("bit<8> x; if (hdr.h.a == 1) { x = 1; } hdr.h.b = x;", ""),
        ("bit<8> x; copy(hdr.h.b, x); hdr.h.a = x;", ""),
        ("t.apply(); hdr.h.a = x;", "bit<8> x; action a() { x = 1; } table t { actions = { a; } }"),
        ("a(); hdr.h.a = x;", "bit<8> x; action a() { x = 1; }"),
        ("bit<8> x; for (bit<8> i in 0 .. 3) { if (i == 1) { hdr.h.a = x; } x = i; }", ""),
        ("bit<8> x; switch (hdr.h.a) { 1: { x = 1; } default: { x = 2; } } hdr.h.b = x;", ""),
        ("bytes_t g; g.setValid(); g.a = 1; hdr.h.a = g.a;", ""),
        ("bytes_t g; if (g.isValid()) { hdr.h.a = 1; }", ""),
        ("meta_t m; m.x = 1; hdr.h.a = (bit<8>)m.y;", ""),
        ("if (hdr.h.a < 255) { hdr.h.a = 0; } if (hdr.h.a > 0) { hdr.h.b = 1; }", ""),
        ("if ((int<8>)hdr.h.a < 0) { hdr.h.b = 1; }", ""),
        ("hdr.h.a = (bit<8>)300;", ""),
        ("hdr.g.setValid(); hdr.h.a = hdr.g.a;", ""),
        ("hdr.g = hdr.h; hdr.h.a = hdr.g.a;", ""),
        ("if (hdr.h.a == 1) { return; } hdr.h.a = 1;", ""),
    ],
)
def test_what_is_not_warned_of(apply: str, locals_: str) -> None:
    assert warnings(control(apply, locals_, before=COPY if "copy(" in apply else "")) == []


@pytest.mark.parametrize(
    ("states", "category", "message"),
    [
        (
            "state start { transition accept; } state other { transition accept; }",
            "unreachable",
            "no transition of parser 'P' leads to state 'other'",
        ),
        (
            "state start { transition accept; } state a { transition b; } state b { transition a; }",
            "unreachable",
            "no transition of parser 'P' leads to state 'a'",
        ),
        (
            "state start { transition next; } state next { packet.extract(hdr.h); }",
            "parser-transition",
            "state 'next' has no transition: parsing ends here and rejects the packet",
        ),
        (
            "state start { transition select(meta.x) { default: accept; 1: reject; } }",
            "unreachable",
            "this case is never chosen: the one before it takes all values",
        ),
        (
            "state start { bit<8> x; transition select(x) { 1: accept; default: reject; } }",
            "uninitialized_use",
            "'x' is read here, but has no value yet",
        ),
    ],
)
def test_parsers(states: str, category: str, message: str) -> None:
    assert warnings(control("", parser=parser(states)))[0] == (category, message)


def test_an_out_parameter_that_is_read() -> None:
    function = "void f(out bit<8> x) { x = x + 1; }\n"
    assert warnings(control("f(hdr.h.a);", before=function)) == [
        ("uninitialized_use", "'x' is read here, but has no value yet")
    ]


def test_unused_global_declarations() -> None:
    before = "control Aux(inout meta_t meta) { apply { meta.x = 1; } }\naction a() { }\nvoid f() { }\n"
    assert warnings(control("", before=before)) == [
        ("unused", "control 'Aux' is never used"),
        ("unused", "action 'a' is in no table and never called"),
        ("unused", "function 'f' is never called"),
    ]


def test_what_included_files_offer_need_not_be_used(tmp_path: Path) -> None:
    (tmp_path / "library.p4").write_text("control Aux(inout bit<8> x) { apply { x = 1; } }\n")
    main = tmp_path / "main.p4"
    main.write_text(control("", before='#include "library.p4"\n'))
    assert compile_p4(main).warnings == ()


def test_use_in_something_generic_counts() -> None:
    before = "action a() { }\ncontrol G<T>(inout T x) { apply { a(); } }\n"
    assert warnings(control("g.apply(meta);", "G<meta_t>() g;", before=before)) == []


def test_macros_may_compare_what_is_always_true() -> None:
    assert warnings(control("AT_LEAST(hdr.h.a, 0)", before="#define AT_LEAST(x, n) if (x >= n) { x = 1; }\n")) == []


@pytest.mark.parametrize(
    ("apply", "locals_"),
    [
        ("", '@noWarn("unused") action a() { }'),
        ("", f'@noWarn("unused") {TABLE}'),
        ('@noWarn("unused") bit<8> x;', ""),
        ('@noWarn("uninitialized_use") bit<8> x; hdr.h.a = x;', ""),
        ('@noWarn("mismatch") { if (hdr.h.a >= 0) { hdr.h.b = 1; } }', ""),
    ],
)
def test_no_warn(apply: str, locals_: str) -> None:
    assert warnings(body(apply, locals_)) == []


def test_no_warn_is_for_its_own_category() -> None:
    assert warnings(body("", '@noWarn("mismatch") action a() { }'))[0][0] == "unused"


def test_categories_can_be_left_out() -> None:
    text = body("hdr.h.a = 300;", "action a() { }")
    assert [item.category for item in compile_text(text, without_warnings=["unused"]).warnings] == ["overflow"]


def test_a_warning_shows_place_and_category(tmp_path: Path) -> None:
    path = tmp_path / "main.p4"
    path.write_text(body("hdr.h.a = 1;", "action spare() { }"))
    (warning,) = compile_p4(path).warnings
    assert str(warning).splitlines() == [
        f"{path}:12:8: warning: action 'spare' is in no table and never called [unused]",
        "action spare() { }",
        "       ^~~~~",
    ]


def test_warnings_come_in_the_order_of_the_source() -> None:
    lines = [item.line for item in compile_text(body("hdr.h.a = 300;\nexit;\nhdr.h.b = 1;", TABLE)).warnings]
    assert lines == sorted(lines) and len(lines) == 3


@pytest.mark.parametrize("path", sorted((ROOT / "p4src").glob("*.p4")), ids=lambda path: path.name)
def test_the_projects_own_programs_have_none(path: Path) -> None:
    assert compile_p4(path, include_dirs=[path.parent]).warnings == ()
