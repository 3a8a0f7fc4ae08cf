"""What programs of other people do and p4c takes, in programs of our own."""

from __future__ import annotations

from typing import Any

import pytest

from gradbed.switch.compiler import CompileError
from tests.unit.compiler.programs import BYTES, PARSER, compile_text, control, model, run

DEPARSER = "apply { packet.emit(hdr.h); packet.emit(hdr.g); }"
VRF = "type bit<8> vrf_t;\nconst vrf_t DEFAULT_VRF = 7;\n" + BYTES.replace("bit<8> a;", "vrf_t a;")


def deparser(body: str, apply: str = "hdr.g.setValid(); hdr.g.a = 9;") -> str:
    return control(apply).replace(DEPARSER, f"apply {{ {body} }}")


def tables(document: dict[str, Any]) -> list[dict[str, Any]]:
    return [table for pipeline in document["pipelines"] for table in pipeline["tables"]]


def test_integer_literals_are_of_new_types_too() -> None:
    apply = "hdr.h.a = 3; if (hdr.h.a == 3) { hdr.h.b = 1; } if (hdr.h.a != DEFAULT_VRF) { hdr.h.c = 2; }"
    assert run(apply, types=VRF) == bytes([3, 1, 2, 0])
    table = """
        action set(vrf_t vrf) { hdr.h.a = vrf; }
        table t { key = { hdr.h.a: exact; } actions = { set; NoAction; }
            const entries = { 0: set(5); DEFAULT_VRF: set(6); } default_action = NoAction; }"""
    assert run("t.apply();", locals_=table, types=VRF) == bytes([5, 0, 0, 0])
    parser = PARSER.replace("transition accept;", "transition select(hdr.h.a) { 0: accept; default: reject; }")
    assert run("hdr.h.b = 1;", types=VRF, parser=parser) == bytes([0, 1, 0, 0])
    with pytest.raises(CompileError, match=r"'\+' takes two numbers of the same type, these are vrf_t and int"):
        compile_text(control("hdr.h.a = hdr.h.a + 1;", types=VRF))


def test_a_literal_that_is_too_large_for_a_new_type_is_cut_with_a_warning() -> None:
    compiled = compile_text(control("hdr.h.a = 300;", types=VRF))
    assert [(w.category, w.message) for w in compiled.warnings] == [
        ("overflow", "300 does not fit into vrf_t, it becomes 44")
    ]


def test_a_size_of_0_is_no_size() -> None:
    text = "table t { key = { hdr.h.a: exact; } actions = { NoAction; } size = 0; }"
    compiled = compile_text(control("t.apply();", text))
    assert tables(compiled.json)[0]["max_size"] == compiled.p4info.tables[0].size == 1024


def test_wide_varbit() -> None:
    types = BYTES.replace("struct headers_t {", "header wide_t { varbit<8032> v; }\nstruct headers_t { wide_t w; ")
    parser = PARSER.replace("packet.extract(hdr.h);", "packet.extract(hdr.h); packet.extract(hdr.w, 8032);")
    compiled = compile_text(control("", types=types, parser=parser))
    assert next(h for h in compiled.json["header_types"] if h["name"] == "wide_t")["max_length"] == 1004
    with pytest.raises(CompileError, match="a width of 65537 is outside 1 to 65536"):
        compile_text(control("", types=types.replace("8032", "65537")))
    with pytest.raises(CompileError, match="a width of 8032 is outside 1 to 2048"):
        compile_text(control("", types=BYTES.replace("bit<8> x;", "bit<8032> x;")))


def test_things_called_list() -> None:
    assert run(
        "hdr.h.a = (bit<8>)(bit<32>)kind_t.list;", before="enum bit<32> kind_t { none = 3, list = 4 }"
    ) == bytes([4, 0, 0, 0])


def test_a_string_over_several_lines_in_an_annotation() -> None:
    text = """@entry_restriction("
        key != 0;
    ") table t { key = { hdr.h.a: exact @name("key"); } actions = { NoAction; } }"""
    (table,) = compile_text(control("t.apply();", text)).p4info.tables
    assert list(table.preamble.annotations) == ['@entry_restriction("\n        key != 0;\n    ")']


# ---- Deparsers: BMv2's runs primitives, then writes headers; it has no branches ----


def test_a_deparser_may_log_between_headers() -> None:
    log = 'log_msg("valid {} a {}", {hdr.h.isValid(), hdr.h.a});'
    document = compile_text(deparser(f"packet.emit(hdr.h); {log} packet.emit(hdr.g);")).json
    (only,) = document["deparsers"]
    assert only["order"] == ["h", "g"]
    assert [primitive["op"] for primitive in only["primitives"]] == ["log_msg"]


def test_a_deparser_may_ask_whether_the_header_is_valid() -> None:
    body = "packet.emit(hdr.h); if (hdr.g.isValid()) { packet.emit(hdr.g); }"
    assert model(deparser(body)).run(bytes(4))[0] == bytes([0, 0, 0, 0, 9, 0, 0, 0])
    assert model(deparser(body, "")).run(bytes(4))[0] == bytes(4)


def test_a_deparser_may_assign_under_a_condition() -> None:
    body = "bytes_t own = hdr.h; if (hdr.g.a == 9) { own.b = 8; } else { own.c = 7; } packet.emit(own);"
    assert model(deparser(body)).run(bytes(4))[0] == bytes([0, 8, 0, 0])
    assert model(deparser(body, "hdr.g.setValid();")).run(bytes(4))[0] == bytes([0, 0, 7, 0])


@pytest.mark.parametrize(
    "body",
    [
        "if (hdr.h.a == 1) { packet.emit(hdr.h); }",
        "if (hdr.h.isValid()) { packet.emit(hdr.g); }",
        "if (hdr.h.isValid()) { packet.emit(hdr.h); } else { packet.emit(hdr.g); }",
        'if (hdr.h.isValid()) { log_msg("h"); }',
    ],
)
def test_a_deparser_does_not_branch(body: str) -> None:
    with pytest.raises(CompileError) as caught:
        compile_text(deparser(body))
    (error,) = caught.value.diagnostics
    assert error.message == "a deparser cannot branch on this target, except to emit a header if that is valid"
    assert error.hint == "emit() leaves out headers that are not valid: make them so at the end of egress"


def test_what_has_been_emitted_does_not_change() -> None:
    with pytest.raises(CompileError, match="a header that has been emitted cannot be changed on this target"):
        compile_text(deparser("bytes_t own = hdr.h; packet.emit(own); own.a = 1;"))
