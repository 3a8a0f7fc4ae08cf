"""What p4c's back end for BMv2 refuses in actions, and this compiler warns of: the same, as p4c itself says."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradbed.common.errors import UserError
from gradbed.switch.p4lang.p4c import compile_with_p4c, find_p4c
from tests.unit.compiler.programs import compile_text, control

CONDITION = "p4c's back end for BMv2 takes only assignments under a condition in an action, not this"
SWITCH = "p4c's back end for BMv2 takes no switch in an action: write if and else"
FUNCTIONS = """
void drop(inout standard_metadata_t std) { mark_to_drop(std); }
bit<8> least(in bit<8> x) { if (x > 3) { return 3; } return x; }
bit<8> chosen(in bit<8> x) { bit<8> y = 0; switch (x) { 1: { y = 2; } default: { y = 3; } } return y; }
"""
LOCALS = """
register<bit<8>>(4) r;
action other() { hdr.h.b = 7; }
action writes() { r.write(1, 1); }
action writes_behind() { if (hdr.h.a == 1) { return; } r.write(1, 1); }
CALLEDaction in_table() { BODY }
table t { key = { hdr.h.b: exact; } actions = { in_table; NoAction; } default_action = NoAction(); }
"""
CALLED, CALLED_EXIT = "called: r.write(1, 1);", "called: exit;"
BODIES = [
    ("if (hdr.h.a == 1) { hdr.h.b = 1; } else { hdr.h.b = 2; }", None),
    ("bit<8> v; r.read(v, 0); if (v > 3) { v = 0; } r.write(0, v);", None),
    ("if (hdr.h.a == 1) { other(); }", None),
    ("if (hdr.h.a == 1) { hdr.h = hdr.g; }", None),
    ("if (hdr.h.a == 1) { return; } hdr.h.b = 1;", None),
    ("if (hdr.h.a == 1) { { return; } } else { hdr.h.b = least(hdr.h.c); }", None),
    ("if (true) { r.write(0, 1); } else { exit; }", None),
    ("if (hdr.h.a == 1) { r.write(0, 1); }", CONDITION),
    ("if (hdr.h.a == 1) { mark_to_drop(std); }", CONDITION),
    ("if (hdr.h.a == 1) { hdr.g.setValid(); }", CONDITION),
    ("if (hdr.h.a == 1) { exit; }", CONDITION),
    ("if (hdr.h.a == 1) { hdr.g = {1, 2, 3, 4}; }", CONDITION),
    ("if (hdr.h.a == 1) { writes(); }", CONDITION),
    ("if (hdr.h.a == 1) { drop(std); }", CONDITION),
    ("if (hdr.h.a == 1) { return; } r.write(0, 1);", CONDITION),
    ("writes_behind();", CONDITION),
    (CALLED, CONDITION),
    (CALLED_EXIT, CONDITION),
    ("switch (hdr.h.a) { 1: { hdr.h.b = 1; } default: { hdr.h.b = 2; } }", SWITCH),
    ("hdr.h.b = chosen(hdr.h.a);", SWITCH),
]


def program(body: str) -> str:
    """With the body in the action of a table, or behind "called:" in one that the control itself calls."""
    where, _, called = body.partition("called: ")
    action = f"action called() {{ if (hdr.h.c == 1) {{ {called} }} }}\n" if called else ""
    locals_ = LOCALS.replace("BODY", where).replace("CALLED", action)
    return control(f"t.apply(); {'called();' if called else ''}", locals_, before=FUNCTIONS)


@pytest.mark.parametrize(("body", "message"), BODIES)
def test_what_is_warned_of(body: str, message: str | None) -> None:
    found = {item.message for item in compile_text(program(body)).warnings if item.category == "unsupported"}
    assert found == ({message} if message else set())


@pytest.mark.nightly  # p4c stays as it is; what our compiler says of each is the test above
@pytest.mark.skipif(find_p4c() is None, reason="p4c is not installed")
@pytest.mark.parametrize(("body", "message"), BODIES)
def test_p4c_refuses_the_same(body: str, message: str | None, tmp_path: Path) -> None:
    p4c = find_p4c()
    assert p4c is not None
    source = tmp_path / "test.p4"
    source.write_text(program(body))
    if message is None:
        compile_with_p4c(p4c, source, {}, tmp_path / "out.json", tmp_path / "out.txt")
    else:
        with pytest.raises(UserError, match=r"Conditional execution in actions|switch statements not supported"):
            compile_with_p4c(p4c, source, {}, tmp_path / "out.json", tmp_path / "out.txt")
