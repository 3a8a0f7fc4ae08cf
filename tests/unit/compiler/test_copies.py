"""Copies of arguments and operands: made where something may change between, and nowhere else."""

from __future__ import annotations

import pytest

from tests.unit.compiler.programs import compile_text, control

FUNCTIONS = """
bit<8> inc(inout bit<8> x, in bit<8> y) { x = x * 3 + y; return x ^ y; }
bit<8> add(in bit<8> x, in bit<8> y) { return x + y; }
void whole(inout bytes_t p, in bit<8> y) { p.a = y; }
"""


def copies(statement: str) -> list[str]:
    """Variables and headers that the compiler adds to the program's own."""
    json = compile_text(control(statement, before=FUNCTIONS)).json
    scalars = next(each for each in json["header_types"] if each["name"] == "scalars_0")
    names = [name for name, *_ in scalars["fields"]] + [each["name"] for each in json["headers"]]
    own = ("meta_t.", "_padding")
    return [n for n in names if not n.startswith(own) and n not in ("scalars", "standard_metadata", "h", "g")]


@pytest.mark.parametrize(
    ("statement", "names"),
    [
        # Nothing else can touch these: the arguments stand for the parameters themselves.
        ("hdr.h.a = inc(hdr.h.b, 3);", []),
        ("inc(hdr.h.b, hdr.g.c);", []),
        ("whole(hdr.h, hdr.g.a);", []),
        ("hdr.h.a = meta.x + inc(hdr.h.b, 1);", []),
        # An argument that is computed has a variable of its own, the `inout` one beside it none.
        ("inc(meta.x, inc(hdr.h.b, 1));", ["y"]),
        ("hdr.h.a = inc(meta.x, add(hdr.h.b, hdr.h.c));", ["y"]),
        ("whole(hdr.h, inc(hdr.g.a, 1));", ["y"]),
        # What changes in between is copied: the value before, then into the parameter.
        ("hdr.h.a = inc(meta.x, inc(meta.x, 1));", ["tmp", "x", "y"]),
        ("hdr.h.a = meta.x + inc(meta.x, 1);", ["tmp"]),
        ("inc(hdr.h.b, hdr.h.b);", ["x", "y"]),
        ("whole(hdr.h, inc(hdr.h.a, 1));", ["y", "tmp", "p"]),
    ],
)
def test_copies_are_made_where_something_may_change(statement: str, names: list[str]) -> None:
    assert copies(statement) == names
