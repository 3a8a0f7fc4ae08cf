"""Functions that only old programs call: still there, with a warning."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.compiler.programs import compile_text, control, run


def primitives(json: dict[str, Any]) -> list[dict[str, Any]]:
    return [item for action in json["actions"] for item in action["primitives"]]


@pytest.mark.parametrize(
    ("apply", "op", "kept"),
    [
        (
            "clone3(CloneType.I2E, 32w5, { meta.x, hdr.h.a, std.ingress_port });",
            "clone_ingress_pkt_to_egress",
            [["scalars", "meta_t.x"], ["standard_metadata", "ingress_port"]],
        ),
        (
            "clone3<tuple<bit<16>>>(CloneType.I2E, 5, { meta.y });",
            "clone_ingress_pkt_to_egress",
            [["scalars", "meta_t.y"]],
        ),
        ("resubmit<meta_t>(meta);", "resubmit", [["scalars", "meta_t.x"], ["scalars", "meta_t.y"]]),
        ("resubmit(meta);", "resubmit", [["scalars", "meta_t.x"], ["scalars", "meta_t.y"]]),
        ("recirculate(meta.x);", "recirculate", [["scalars", "meta_t.x"]]),
        ("recirculate<tuple<>>({});", "recirculate", []),
    ],
)
def test_data_is_what_is_kept(apply: str, op: str, kept: list[list[str]]) -> None:
    compiled = compile_text(control(apply))
    (warning,) = compiled.warnings
    assert warning.category == "deprecated" and "@field_list(N)" in warning.message
    (primitive,) = [item for item in primitives(compiled.json) if item["op"] == op]
    (fields,) = compiled.json["field_lists"]
    assert primitive["parameters"][-1] == {"type": "hexstr", "value": hex(fields["id"])}
    assert [item["value"] for item in fields["elements"]] == kept


def test_lists_by_index_and_by_fields_have_numbers_of_their_own() -> None:
    apply = "clone_preserving_field_list(CloneType.I2E, 1, 7); resubmit(meta.x); resubmit_preserving_field_list(7);"
    lists = compile_text(control(apply)).json["field_lists"]
    assert [(item["id"], item["name"]) for item in lists] == [(1, "field_list7"), (2, "kept_fields2")]


def test_mark_to_drop_without_an_argument() -> None:
    old, new = (compile_text(control(call)).json for call in ("mark_to_drop();", "mark_to_drop(std);"))
    assert [item["op"] for item in primitives(old)] == ["mark_to_drop"]
    assert [item["parameters"] for item in primitives(old)] == [item["parameters"] for item in primitives(new)]


def test_the_other_forms_are_not_deprecated() -> None:
    assert compile_text(control("mark_to_drop(std); clone(CloneType.I2E, 1);")).warnings == ()


def test_a_packet_still_goes_through() -> None:
    assert run("hdr.h.a = 1; resubmit(meta);", bytes(4)) == bytes((1, 0, 0, 0))
