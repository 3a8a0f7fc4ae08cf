"""Priorities of table entries: P4_16 1.2.5, section 14.2.1.4, as BMv2 JSON says them."""

from __future__ import annotations

import pytest

from gradbed.switch.bmv2_json.model import initial_priorities
from gradbed.switch.compiler import CompileError
from tests.unit.compiler.programs import compile_text, control


def table(entries: str, properties: str = "", const: str = "") -> dict:
    compiled = compile_text(
        control(
            "t.apply();",
            f"""
            action a(bit<8> x) {{ meta.x = x; }}
            table t {{
                key = {{ hdr.h.a: ternary; }}
                actions = {{ a; }}
                {properties}
                {const} entries = {{ {entries} }}
            }}
            """,
        )
    )
    assert compiled.warnings == ()
    [found] = [t for t in compiled.json["pipelines"][0]["tables"] if t["name"] == "I.t"]
    return found


def priorities(entries: str, properties: str = "") -> list[int]:
    return initial_priorities([entry["priority"] for entry in table(entries, properties)["entries"]])


def test_by_position() -> None:
    assert [e["priority"] for e in table("1: a(1); 2: a(2); 3: a(3);")["entries"]] == [1, 2, 3]


@pytest.mark.parametrize(
    ("entries", "properties", "wanted"),
    [
        ("1: a(1); 2: a(2); 3: a(3);", "", [3, 2, 1]),
        ("1: a(1); 2: a(2); 3: a(3);", "priority_delta = 10;", [3, 2, 1]),
        ("priority=100: 1: a(1); 2: a(2); priority=5: 3: a(3);", "", [100, 99, 5]),
        ("1: a(1); priority=50: 2: a(2); 3: a(3);", "priority_delta = 10;", [21, 50, 40]),
        (
            "priority=1000: 1: a(1); 2: a(2); priority=901: 3: a(3); 4: a(4);",
            "priority_delta = 100;",
            [1000, 900, 901, 801],
        ),
        # The smallest wins: turned around.
        ("priority=10: 1: a(1); 2: a(2); priority=5: 3: a(3);", "largest_priority_wins = false;", [2, 1, 7]),
    ],
)
def test_given_and_counted(entries: str, properties: str, wanted: list[int]) -> None:
    assert priorities(entries, properties) == wanted


@pytest.mark.parametrize("entries", ["priority=0: 1: a(1);", "priority=1: 1: a(1); 2: a(2);"])
def test_priorities_that_do_not_exist(entries: str) -> None:
    with pytest.raises(CompileError, match="the entry's priority 0 is not in 1"):
        table(entries)


def test_constant_entries_among_others_are_marked() -> None:
    assert [e.get("const") for e in table("const 1: a(1); 2: a(2);")["entries"]] == [True, None]
    assert [e.get("const") for e in table("1: a(1); 2: a(2);", const="const")["entries"]] == [None, None]
