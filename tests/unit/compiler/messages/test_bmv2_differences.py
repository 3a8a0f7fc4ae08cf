"""The warnings `bmv2`: one for every row of docs/conformance.md in which this switch and BMv2 differ."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gradbed.switch.compiler.analysis.bmv2_differences import DIFFERENCES
from tests.unit.compiler.programs import BYTES, PARSER, compile_text, control

PAGE = (Path(__file__).parents[4] / "docs" / "conformance.md").read_text()
UNIONS = "header short_t { bit<8> v; } header long_t { bit<16> v; } header_union either_t { short_t s; long_t l; }"
STACKS = UNIONS + BYTES.replace("bytes_t g;", "bytes_t g; either_t[2] u; bytes_t[2] s;")
RANGES = """table t { key = { KEY: range; hdr.h.b: exact; } actions = { NoAction; }
    const entries = { (LABEL, 2): NoAction(); } }"""
PROFILE = """action set() { hdr.h.b = 1; }
table t {
    key = { hdr.h.a: exact; }
    actions = { set; NoAction; }
    default_action = DEFAULT();
    @name("p") implementation = action_profile(4);
}"""
FIELD_LIST = "(CloneType.I2E, 5, 1);"


def table() -> dict[str, tuple[str, bool]]:
    """By the first cell of the rows: what BMv2 does, and whether a warning is promised."""
    text = PAGE.partition("## Where our switch and BMv2 differ")[2].partition("\n\nDivision")[0]
    rows = [re.split(r" ?\| ?", line.strip("| ")) for line in text.splitlines() if line.startswith("|")][2:]
    return {row[0].removesuffix(" *"): (row[2], row[0].endswith(" *")) for row in rows}


def ingress(apply: str, **options: str) -> str:
    return control(apply, **options)


def egress(apply: str, ingress_apply: str = "", before: str = "") -> str:
    control_e = "control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) { apply {"
    return control(ingress_apply, before=before).replace(f"{control_e} }}", f"{control_e} {apply} }}")


def select(cases: str, apply: str = "if (std.parser_error != error.NoError) { hdr.h.b = 1; }") -> str:
    state = f"state start {{ packet.extract(hdr.h); transition select(hdr.h.a[1:0]) {{ {cases} }} }}"
    return control(apply, parser=PARSER.replace("state start { packet.extract(hdr.h); transition accept; }", state))


def ranges(key: str, label: str) -> str:
    types = BYTES.replace("bit<8> d;", "bit<8> d; bit<32> wide; bit<31> narrow; bit<1> rest;")
    return control("t.apply();", RANGES.replace("KEY", key).replace("LABEL", label), types=types)


COPY = "action copy(inout standard_metadata_t std, inout bytes_t h) { h.b = (bit<8>)std.ingress_port; }"
READ_PORT = "hdr.h.b = (bit<8>)std.ingress_port;"
READ_ERROR = "if (std.parser_error != error.NoError) { hdr.h.b = 1; }"

# By row: programs that touch it, each with the words of its warning, and programs close by that do not.
PROGRAMS: dict[str, tuple[list[tuple[str, str]], list[str]]] = {
    "`ingress_port` of clones, resubmitted and recirculated packets": (
        [
            (ingress(READ_PORT + "resubmit_preserving_field_list(1);"), "ingress_port of resubmitted packets is 0"),
            (
                egress("recirculate_preserving_field_list(1);", READ_PORT),
                "ingress_port of recirculated packets is 0",
            ),
            (egress(READ_PORT, "clone(CloneType.I2E, 5);"), "ingress_port of clones from ingress is 0"),
            (egress(READ_PORT + "clone(CloneType.E2E, 5);"), "ingress_port of clones from egress is 0"),
            (
                egress("copy(std, hdr.h);", "clone(CloneType.I2E, 5);", COPY),
                "ingress_port of clones from ingress is 0",
            ),
            (
                egress(READ_PORT + "clone(CloneType.E2E, 5);", "clone(CloneType.I2E, 5);"),
                "ingress_port of clones from ingress and clones from egress is 0",
            ),
        ],
        [
            ingress(READ_PORT),
            egress(READ_PORT),
            ingress(READ_PORT + "clone(CloneType.I2E, 5);"),
            egress("clone(CloneType.E2E, 5);", READ_PORT),
            egress("", "copy(std, hdr.h); clone(CloneType.I2E, 5);", COPY),
            egress("hdr.h.b = (bit<8>)std.egress_port;", "clone(CloneType.I2E, 5);"),
            egress(READ_PORT, "clone3(CloneType.I2E, 5, { std.ingress_port });"),
        ],
    ),
    "`parser_error` and `checksum_error` of clones from ingress to egress": (
        [
            (egress(READ_ERROR, "clone(CloneType.I2E, 5);"), "parser_error of clones from ingress is 0"),
            (
                egress("hdr.h.b = (bit<8>)std.checksum_error;", f"clone_preserving_field_list{FIELD_LIST}"),
                "checksum_error of clones from ingress is 0",
            ),
        ],
        [
            egress(READ_ERROR),
            egress("", READ_ERROR + "clone(CloneType.I2E, 5);"),
            egress(READ_ERROR + "clone(CloneType.E2E, 5);"),
            egress(READ_ERROR, "clone3(CloneType.I2E, 5, { std.parser_error });"),
        ],
    ),
    "an lpm key whose width is not a multiple of 8 bits": (
        [
            (
                control("t.apply();", "table t { key = { hdr.h.a[6:0]: lpm; } actions = { NoAction; } }"),
                "prefixes of 7 bits wrongly",
            )
        ],
        [
            control("t.apply();", "table t { key = { hdr.h.a: lpm; } actions = { NoAction; } }"),
            control("t.apply();", "table t { key = { hdr.h.a[6:0]: ternary; } actions = { NoAction; } }"),
        ],
    ),
    "`_` for a range of 32 bits or more in entries": (
        [(ranges("hdr.h.wide", "_"), "a range of 32 bits ends too early")],
        [ranges("hdr.h.narrow", "_"), ranges("hdr.h.wide", "0 .. 0xffffffff")],
    ),
    "a default action other than `NoAction` of a table with an action profile": (
        [(control("t.apply();", PROFILE.replace("DEFAULT", "set")), "no default action of table 't'")],
        [
            control("t.apply();", PROFILE.replace("DEFAULT", "NoAction")),
            control("t.apply();", PROFILE.replace("DEFAULT", "set").replace('@name("p") implementation', "// ")),
        ],
    ),
    "`truncate` before multicast or recirculation": (
        [
            (ingress("std.mcast_grp = 1; truncate(64);"), "whole again after multicast,"),
            (
                egress("recirculate_preserving_field_list(1);", "std.mcast_grp = 1; truncate(64);"),
                "whole again after multicast and recirculation,",
            ),
        ],
        [ingress("truncate(64);"), ingress("std.mcast_grp = 1;"), egress("recirculate_preserving_field_list(1);")],
    ),
    "`select` without a matching case": (
        [
            (select("0: accept; 1: accept;"), "a packet that no case fits has no error"),
            (select("0 .. 2: accept;"), "a packet that no case fits has no error"),
            (select("2 &&& 2: accept; 1: accept;"), "a packet that no case fits has no error"),
        ],
        [
            select("0: accept; 1: accept; default: reject;"),
            select("0: accept; 1: accept; _: reject;"),
            select("0: accept; 1 .. 3: accept;"),
            select("2 &&& 2: accept; 0 &&& 2: accept;"),
            select("0: accept; 1: accept;", "hdr.h.b = 1;"),
        ],
    ),
    "`push_front` and `pop_front` of a stack of header unions": (
        [
            (ingress("hdr.u.pop_front(1);", types=STACKS), "header unions that are shifted out"),
            (ingress("hdr.u.push_front(1);", types=STACKS), "header unions that are shifted out"),
        ],
        [
            ingress("hdr.s.pop_front(1); hdr.s.push_front(1);", types=STACKS),
            ingress("if (hdr.u[0].isValid()) { hdr.u[1].s.setInvalid(); }", types=STACKS),
        ],
    ),
    "an access to a register beyond its end": (
        [
            (ingress("r.read(hdr.h.b, 4);", locals_="register<bit<8>>(4) r;"), "BMv2 reads other memory"),
            (ingress("r.write(5, hdr.h.b);", locals_="register<bit<8>>(4) r;"), "BMv2 writes other memory"),
        ],
        [
            ingress("r.read(hdr.h.b, 3); r.write(0, 9);", locals_="register<bit<8>>(4) r;"),
            ingress("r.read(hdr.h.b, (bit<32>)hdr.h.a);", locals_="register<bit<8>>(4) r;"),
        ],
    ),
}


def differing(text: str) -> list[str]:
    return [item.message for item in compile_text(text).warnings if item.category == "bmv2"]


def test_the_table_promises_a_warning_for_every_row_that_differs() -> None:
    rows = table()
    assert {what for what, (_, promised) in rows.items() if promised} == set(DIFFERENCES) == set(PROGRAMS)
    kept_quiet = {bmv2 for bmv2, promised in rows.values() if not promised}
    assert kept_quiet == {"the same"}


@pytest.mark.parametrize(
    ("text", "words"), [pytest.param(*case, id=row) for row, (touch, _) in PROGRAMS.items() for case in touch]
)
def test_a_program_that_touches_a_row_gets_its_warning(text: str, words: str) -> None:
    (message,) = differing(text)
    assert words in message


@pytest.mark.parametrize("text", [pytest.param(text, id=row) for row, (_, near) in PROGRAMS.items() for text in near])
def test_a_program_close_to_a_row_gets_none(text: str) -> None:
    assert differing(text) == []


def test_a_port_read_by_a_parser_is_still_there_for_clones_but_not_for_what_comes_again() -> None:
    asks = "transition select(std.ingress_port) { 1: accept; default: reject; }"
    clones = control("clone(CloneType.I2E, 5);", parser=PARSER.replace("transition accept;", asks))
    assert differing(clones) == []
    again = clones.replace("clone(CloneType.I2E, 5);", "resubmit_preserving_field_list(1);")
    assert len(differing(again)) == 1


def test_one_wildcard_for_several_keys_is_said_to_be_refused_by_p4c() -> None:
    entries = "const entries = { ROW: NoAction(); } }"
    keys = "table t { key = { hdr.h.a: ternary; hdr.h.b: ternary; } actions = { NoAction; } " + entries
    alone, tuple_ = (control("t.apply();", keys.replace("ROW", row)) for row in ("_", "(_, _)"))
    assert [item.category for item in compile_text(alone).warnings] == ["unsupported"]
    assert compile_text(tuple_).warnings == ()
    assert (
        compile_text(alone).json["pipelines"][0]["tables"][0]["entries"][0]["match_key"]
        == (compile_text(tuple_).json["pipelines"][0]["tables"][0]["entries"][0]["match_key"])
    )
