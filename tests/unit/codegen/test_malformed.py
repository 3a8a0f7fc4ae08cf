"""JSON that is not a program: one line that says where and why, whatever the damage."""

from __future__ import annotations

import copy
import json
import random
from pathlib import Path
from typing import Any

import pytest

from gradbed.switch.bmv2_json.load import load_program
from gradbed.switch.codegen import MalformedProgram
from gradbed.switch.codegen.program import generate
from tests.unit.codegen import program_maker as make

PROGRAMS = [json.loads(p.read_text()) for p in sorted((Path(__file__).parent / "p4c").glob("*.json"))]


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    result = [path]
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in items:
        result.extend(places(child, (*path, key)))
    return result


def damage(json_value: Any, rng: random.Random, where: list[tuple[Any, ...]]) -> Any:
    """Change, remove or repeat something somewhere, in a copy that shares what is the same."""
    path = rng.choice(where)
    if not path:
        return json_value
    result = holder = copy.copy(json_value)
    for key in path[:-1]:
        holder[key] = copy.copy(holder[key])
        holder = holder[key]
    kind = rng.randrange(4)
    if kind == 0:
        del holder[path[-1]]
    elif kind == 1:
        holder[path[-1]] = rng.choice([None, True, -1, 10**12, 2.5, "", "0x", "no such thing", [], {}, [[]], "-0x1f"])
    elif kind == 2 and isinstance(holder, list):
        holder.insert(rng.randrange(len(holder) + 1), holder[path[-1]])
    else:
        other = json_value
        for key in rng.choice(where):
            other = other[key]
        holder[path[-1]] = other
    return result


@pytest.mark.commit_cases(1)
@pytest.mark.parametrize("program", PROGRAMS, ids=["router", "stateful"])
def test_damaged_programs_load_or_are_refused(program: dict[str, Any]) -> None:
    rng = random.Random(5)
    where = places(program)
    refused = 0
    for _ in range(400):
        damaged = damage(program, rng, where)
        try:
            generate(load_program(damaged))
        except MalformedProgram as error:
            refused += 1
            assert "\n" not in str(error)
    assert refused > 100


def small() -> make.ProgramMaker:
    maker = make.ProgramMaker()
    maker.add_header("h", [["a", 8, False]])
    return maker


def assign(target: make.Json, value: make.Json) -> make.Json:
    return make.call("assign", target, value)


A = make.field("h", "a")


@pytest.mark.parametrize(
    ("primitive", "problem"),
    [
        (assign(make.field("g", "a"), A), "actions[0].primitives[0].parameters[0].value[0]: no header named 'g'"),
        (assign(make.field("h", "b"), A), "no field 'b' in header type h_t"),
        (make.call("frobnicate", A), "primitive 'frobnicate' is not supported"),
        (make.call("assign", A), "'assign' takes 2 parameters, got 1"),
        (assign(A, {"type": "hexstr", "value": "12xy"}), "expected a hexadecimal number, got '12xy'"),
        (assign(A, {"type": "runtime_data", "value": 3}), "parameter 3, which it lacks"),
        (assign(A, make.operation("+", A, make.header("h"))), "expected a number, got a header"),
        (assign(A, make.operation("<=>", A, A)), "operation '<=>' is not supported"),
        (assign(A, make.operation("sat_cast", A, A)), "a cast needs a constant width"),
        (assign(make.constant(1), A), "assignment to something that is not a field"),
        (
            assign(
                A, make.operation(">>", make.operation("<<", A, make.field("standard_metadata", "instance_type")), A)
            ),
            "needs more than 16384 bits",
        ),
        (make.call("_jump", A), "_jump needs a constant target"),
    ],
)
def test_bad_primitives(primitive: make.Json, problem: str) -> None:
    maker = small()
    maker.run([primitive])
    with pytest.raises(MalformedProgram) as error:
        generate(load_program(maker.json()))
    assert problem in str(error.value)


def test_headers_are_whole_bytes() -> None:
    maker = small()
    maker.add_header("odd", [["a", 7, False]])
    with pytest.raises(MalformedProgram, match="header 'odd' is not a whole number of bytes"):
        load_program(maker.json())


def test_endless_nesting_is_refused() -> None:
    maker = small()
    value = A
    for _ in range(5000):
        value = make.operation("~", None, value)
    maker.run([assign(A, value)])
    with pytest.raises(MalformedProgram, match="nested too deeply"):
        load_program(maker.json())


def test_a_unknown_hash_is_refused() -> None:
    maker = small()
    maker.add("calculations", name="c", algo="sha3", input=[A])
    with pytest.raises(MalformedProgram, match="hash algorithm 'sha3' is not supported"):
        generate(load_program(maker.json()))
