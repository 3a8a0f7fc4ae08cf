"""Expressions: the emitted JSON, with BMv2's unbounded integers, against P4's fixed widths in plain Python."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.unit.compiler.bmv2_model import Bmv2Model, Packet
from tests.unit.compiler.programs import compile_text, control, run


@dataclass(frozen=True)
class Sample:
    """An expression with its type (width, signed; width 0: bool) and value."""

    text: str
    width: int
    signed: bool
    value: int


def wrap(value: int, width: int, signed: bool) -> int:
    value &= (1 << width) - 1
    return value - (1 << width) if signed and value >> (width - 1) else value


def saturate(value: int, width: int, signed: bool) -> int:
    least, most = (-(1 << (width - 1)), (1 << (width - 1)) - 1) if signed else (0, (1 << width) - 1)
    return max(least, min(most, value))


WIDTHS = (1, 3, 8, 13, 32, 48, 64, 100)
FIELDS = {
    (width, signed): f"hdr.h.{'s' if signed else 'u'}{width}"
    for width in WIDTHS
    for signed in (False, True)
    if not (signed and width == 1)
}


def type_name(width: int, signed: bool) -> str:
    return f"{'int' if signed else 'bit'}<{width}>"


def leaves(width: int, signed: bool, values: dict[tuple[int, bool], int]) -> st.SearchStrategy[Sample]:
    field = st.just(Sample(FIELDS[width, signed], width, signed, values[width, signed]))
    literals = st.integers(0, (1 << width) - 1).map(
        lambda number: Sample(f"{width}{'s' if signed else 'w'}{number}", width, signed, wrap(number, width, signed))
    )
    return field | literals


@st.composite
def samples(draw: st.DrawFn, width: int, signed: bool, values: dict[tuple[int, bool], int], depth: int) -> Sample:
    """A random expression of this type over the header's fields."""
    if depth == 0:
        return draw(leaves(width, signed, values))
    inner = functools.partial(samples, values=values, depth=depth - 1)
    kinds = ["arithmetic", "bitwise", "saturating", "shift", "unary", "cast", "choice"]
    kinds += ["slice", "concat"] if not signed else []
    kind = draw(st.sampled_from(kinds))
    if kind in ("arithmetic", "bitwise", "saturating"):
        a, b = draw(inner(width, signed)), draw(inner(width, signed))
        operator = draw(st.sampled_from({"arithmetic": "+-*", "bitwise": "&|^", "saturating": "+-"}[kind]))
        exact = {"+": a.value + b.value, "-": a.value - b.value, "*": a.value * b.value}
        exact |= {"&": a.value & b.value, "|": a.value | b.value, "^": a.value ^ b.value}
        value, sign = exact[operator], operator
        if kind == "saturating":
            return Sample(f"({a.text} |{sign}| {b.text})", width, signed, saturate(value, width, signed))
        return Sample(f"({a.text} {sign} {b.text})", width, signed, wrap(value, width, signed))
    if kind == "shift":
        a = draw(inner(width, signed))
        by = draw(leaves(8, False, values)) if draw(st.booleans()) else None
        amount = draw(st.integers(0, width + 3)) if by is None else by.value
        text = str(amount) if by is None else by.text
        if draw(st.booleans()):
            return Sample(f"({a.text} << {text})", width, signed, wrap(a.value << amount, width, signed))
        return Sample(f"({a.text} >> {text})", width, signed, a.value >> amount)
    if kind == "unary":
        a = draw(inner(width, signed))
        if draw(st.booleans()):
            return Sample(f"(-{a.text})", width, signed, wrap(-a.value, width, signed))
        return Sample(f"(~{a.text})", width, signed, wrap(~a.value, width, signed))
    if kind == "choice":
        a, b, c, d = (draw(inner(width, signed)) for _ in range(4))
        operator = draw(st.sampled_from(["==", "!=", "<", "<=", ">", ">="]))
        holds = {
            "==": a.value == b.value,
            "!=": a.value != b.value,
            "<": a.value < b.value,
            "<=": a.value <= b.value,
            ">": a.value > b.value,
            ">=": a.value >= b.value,
        }[operator]
        text = f"({a.text} {operator} {b.text} ? {c.text} : {d.text})"
        return Sample(text, width, signed, c.value if holds else d.value)
    if kind == "slice":
        source = draw(st.sampled_from([other for other in WIDTHS if other >= width]))
        a = draw(inner(source, draw(st.booleans()) if source > 1 else False))
        low = draw(st.integers(0, source - width))
        return Sample(f"({a.text}[{low + width - 1}:{low}])", width, False, (a.value >> low) & ((1 << width) - 1))
    if kind == "concat":
        low_width = draw(st.sampled_from([other for other in WIDTHS if width - other in WIDTHS] or [0]))
        if low_width == 0:
            return draw(leaves(width, signed, values))
        high, low = draw(inner(width - low_width, False)), draw(inner(low_width, False))
        return Sample(f"({high.text} ++ {low.text})", width, False, high.value << low_width | low.value)
    # A cast: from another width of the same sign, or from the other sign at the same width.
    if width > 1 and draw(st.booleans()):
        a = draw(inner(width, not signed))
    else:
        a = draw(inner(draw(st.sampled_from([w for w in WIDTHS if w > 1 or not signed])), signed))
    return Sample(f"(({type_name(width, signed)}){a.text})", width, signed, wrap(a.value, width, signed))


@st.composite
def cases(draw: st.DrawFn) -> tuple[dict[tuple[int, bool], int], Sample]:
    values = {key: wrap(draw(st.integers(0, (1 << key[0]) - 1)), *key) for key in FIELDS}
    width, signed = draw(st.sampled_from(sorted(FIELDS)))
    return values, draw(samples(width, signed, values, draw(st.integers(1, 3))))


def program(assignment: str) -> str:
    fields = " ".join(f"{type_name(width, signed)} {'s' if signed else 'u'}{width};" for width, signed in FIELDS)
    bits = sum(width for width, _ in FIELDS)
    fields += f" bit<{8 - bits % 8}> padding;" if bits % 8 else ""
    results = " ".join(f"{type_name(*key)} r{name.rsplit('.', 1)[1]};" for key, name in FIELDS.items())
    types = f"header fields_t {{ {fields} }}\nstruct headers_t {{ fields_t h; }}\nstruct meta_t {{ {results} }}\n"
    text = control(assignment, types=types)
    return text.replace("packet.emit(hdr.g);", "").replace("packet.extract(hdr.h);", "")


@pytest.mark.thorough
@settings(max_examples=examples(150), deadline=None)
@given(cases())
def test_expressions_mean_what_p4_says(case: tuple[dict[tuple[int, bool], int], Sample]) -> None:
    values, sample = case
    target = "r" + FIELDS[sample.width, sample.signed].rsplit(".", 1)[1]
    compiled = compile_text(program(f"meta.{target} = {sample.text};")).json
    switch = Bmv2Model(compiled)
    initial = {("h", name.rsplit(".", 1)[1]): values[key] for key, name in FIELDS.items()}
    # Control flow alone: the fields are put in place by hand.
    packet = Packet(fields=dict(initial), valid={"h"})
    switch.control(packet, compiled["pipelines"][0])
    assert packet.fields.get(("scalars", f"meta_t.{target}"), 0) == sample.value, sample.text


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("8w250 + 10", 4),
        ("8w250 |+| 10", 255),
        ("8w5 |-| 10", 0),
        ("(bit<8>)8s0x80", 128),
        ("(bit<8>)(int<8>)-128", 128),
        ("(bit<8>)(8s100 |+| 8s100)", 127),
        ("8w7 / 2 + 8w7 % 4", 6),
        ("(4w15 ++ 4w1)", 241),
        ("((8w1 << 7) >> 6)", 2),
        ("0xF0[7:4] ++ 4w3", 243),
        ("(bit<8>)(bit<1>)true", 1),
        ("(true || false) ? 8w1 : 2", 1),
        ("(1 + 2) * 3", 9),
        ("(bit<8>)(16w0x1234)", 0x34),
        ("1 << 3 | 1", 9),
        ("6 & 3 ^ 1", 3),
    ],
)
def test_constants_are_folded(text: str, value: int) -> None:
    program = compile_text(control(f"hdr.h.a = {text};")).json
    (primitive,) = next(action for action in program["actions"] if action["primitives"])["primitives"]
    assert primitive["parameters"][1] == {"type": "hexstr", "value": f"0x{value:02x}"}


@pytest.mark.parametrize("divisor", [1, 2, 8, 128])
@pytest.mark.parametrize("number", [0, 1, 7, 8, 129, 255])
def test_division_by_powers_of_two(number: int, divisor: int) -> None:
    out = run(f"hdr.h.b = hdr.h.a / {divisor}; hdr.h.c = hdr.h.a % {divisor};", bytes((number, 9, 9, 9)))
    assert (out[1], out[2]) == divmod(number, divisor)


def test_a_choice_between_numbers_without_width() -> None:
    """P4_16 allows it where the condition is known. p4c wants a width."""
    assert run("hdr.h.a = (bit<8>)K;", before="const int K = true ? 3 : 4;")[0] == 3
