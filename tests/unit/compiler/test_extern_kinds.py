"""A declaration in P4 and its ExternKind that do not agree are refused in one line; so is a kind that cannot be."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from gradbed.switch.compiler import CompileError
from gradbed.switch.state import externs
from gradbed.switch.state.externs import COUNT_MIN_SKETCH, EXTERNS, by_name
from tests.unit.compiler.programs import compile_text, control

INCLUDE = "#include <gradbed.p4>\n"
UPDATE = "CountMinSketch.update(in key, in amount, out estimate)"
METHODS = COUNT_MIN_SKETCH.methods


def errors(apply: str = "", locals_: str = "CountMinSketch(4, 64) counted;", before: str = INCLUDE) -> list[str]:
    with pytest.raises(CompileError) as refused:
        compile_text(control(apply, locals_, before=before))
    return [each.message for each in refused.value.diagnostics]


@pytest.mark.parametrize(
    ("change", "declared", "described"),
    [
        ({"methods": {"estimate": METHODS["estimate"]}}, UPDATE, "no such method"),
        ({"methods": {**METHODS, "update": (*METHODS["update"], "in")}}, UPDATE, "(key, in, out, in)"),
        ({"methods": {**METHODS, "update": ("key", "in", "in")}}, UPDATE, "(key, in, in)"),
        ({"methods": {**METHODS, "forget": ("key",)}}, "no CountMinSketch.forget", "one"),
        (
            {"attributes": dict(reversed(COUNT_MIN_SKETCH.attributes.items()))},
            "CountMinSketch(rows, columns)",
            "(columns, rows)",
        ),
        ({"attributes": {"rows": (1, 16)}}, "CountMinSketch(rows, columns)", "(rows)"),
    ],
    ids=["no method", "a role more", "another direction", "a method more", "another order", "an attribute less"],
)
def test_differences(change: dict[str, Any], declared: str, described: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(EXTERNS, "CountMinSketch", replace(COUNT_MIN_SKETCH, **change))
    assert errors() == [f"gradbed.p4 declares {declared}, switch/state/externs.py has {described}: make them agree"]


def test_a_kind_that_is_not_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(EXTERNS, "CountMinSketch")
    assert errors() == [
        "'CountMinSketch' is declared in gradbed.p4, and not listed in EXTERNS (switch/state/externs.py)"
    ]
    own = "extern Other { Other(); void call(); }"
    assert "extern 'Other' is not part of v1model" in errors("", "Other() other;", own)


def test_an_inout_parameter_has_no_role() -> None:
    before = """
extern CountMinSketch {
    CountMinSketch(bit<32> rows, bit<32> columns);
    void update<T>(in T key, in bit<32> amount, inout bit<32> estimate);
    void estimate<T>(in T key, out bit<32> estimate);
}
"""
    assert errors(before=before) == [
        "test.p4 declares CountMinSketch.update(in key, in amount, inout estimate), "
        "switch/state/externs.py has (key, in, out): make them agree"
    ]


def test_methods_return_void() -> None:
    before = """
extern CountMinSketch {
    CountMinSketch(bit<32> rows, bit<32> columns);
    bit<32> update<T>(in T key, in bit<32> amount, out bit<32> estimate);
    void estimate<T>(in T key, out bit<32> estimate);
}
"""
    assert errors(before=before) == [
        "CountMinSketch.update returns bit<32>: a method of test.p4 returns void, and gives its result by an out "
        "parameter"
    ]


WIDE = """
extern CountMinSketch {
    CountMinSketch(bit<32> rows, bit<32> columns);
    void update<T, A, E>(in T key, in A amount, out E estimate);
    void estimate<T>(in T key, out bit<32> estimate);
}
struct pair_t { bit<8> one; bit<8> two; }
"""


@pytest.mark.parametrize(
    ("amount", "estimate", "told"),
    [
        ("bit<65>", "bit<32>", "'amount' of CountMinSketch.update has 65 bits; in takes up to 64"),
        ("pair_t", "bit<32>", "'amount' of CountMinSketch.update is of type pair_t: in takes bits or bool"),
        ("bit<64>", "pair_t", "'estimate' of CountMinSketch.update is of type pair_t: out takes bits or bool"),
    ],
)
def test_arguments_that_cannot_be_handed_over(amount: str, estimate: str, told: str) -> None:
    apply = f"{amount} much; {estimate} found; counted.update(hdr.h, much, found);"
    assert errors(apply, before=WIDE) == [told]


@pytest.mark.parametrize("estimate", ["bit<64>", "bit<128>", "int<8>", "bool"])
def test_numbers_and_bools_can_be_handed_over(estimate: str) -> None:
    apply = f"bit<64> much = 1; {estimate} found; counted.update(hdr.h, much, found);"
    assert compile_text(control(apply, "CountMinSketch(4, 64) counted;", before=WIDE)).json["extern_instances"]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"attributes": dict.fromkeys("abcde", (1, 2))}, "CountMinSketch has 5 attributes: at most 4 are possible"),
        ({"type_id": 0x80}, "CountMinSketch: type id 0x80 is outside 0x81 to 0xfe"),
        ({"methods": {"both": ("out", "out")}}, "CountMinSketch.both has 2 results: at most one is possible"),
    ],
)
def test_kinds_that_cannot_be(change: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=re.escape(told)):
        replace(COUNT_MIN_SKETCH, **change)


def test_kinds_have_names_and_type_ids_of_their_own() -> None:
    assert list(by_name(COUNT_MIN_SKETCH, replace(COUNT_MIN_SKETCH, name="Other", type_id=0x82))) == [
        "CountMinSketch",
        "Other",
    ]
    with pytest.raises(ValueError, match="externs CountMinSketch and Other have the same type id 0x81"):
        by_name(COUNT_MIN_SKETCH, replace(COUNT_MIN_SKETCH, name="Other"))
    with pytest.raises(ValueError, match="extern CountMinSketch is listed twice"):
        by_name(COUNT_MIN_SKETCH, replace(COUNT_MIN_SKETCH, type_id=0x82))
    assert externs.ExternKind.most_attributes == 4
