"""Generated C against plain Python integers: every operator, widths 1 to 256, hundreds of expressions per library."""

from __future__ import annotations

import operator
import random
from collections.abc import Callable

import pytest

from gradbed.switch.codegen import build_program
from tests.unit.codegen import program_maker as make
from tests.unit.codegen.bare_switch import BareSwitch, field_bits

EXPRESSIONS = 150
FRAMES = 12
WIDTHS = [1, 2, 7, 8, 9, 16, 31, 32, 33, 48, 63, 64, 65, 100, 127, 128, 129, 191, 192, 200, 255, 256]

Evaluate = Callable[[dict[str, int]], int]


def signed(value: int, width: int) -> int:
    value &= (1 << width) - 1
    return value - (1 << width) if value >> (width - 1) else value


def clamp(value: int, low: int, high: int) -> int:
    return min(max(value, low), high)


def divide(a: int, b: int) -> int:
    """Truncates towards zero; 0 for a divisor of 0."""
    return 0 if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def remainder(a: int, b: int) -> int:
    return 0 if b == 0 else a - b * divide(a, b)


class ExpressionMaker:
    """Draws an expression as JSON, and as a function that evaluates it in Python."""

    def __init__(self, rng: random.Random, fields: dict[str, tuple[int, bool]], widths: list[int]) -> None:
        self.rng = rng
        self.fields = fields
        self.widths = widths

    def data(self, depth: int) -> tuple[make.Json, Evaluate]:
        if depth == 0 or self.rng.random() < 0.1:
            return self.leaf()
        kind = self.rng.choice(
            ["arithmetic"] * 8
            + ["mask"] * 3
            + ["shift"] * 3
            + ["cast"] * 4
            + ["divide", "not", "choice", "choice", "b2d"]
        )
        return getattr(self, kind)(depth)

    def leaf(self) -> tuple[make.Json, Evaluate]:
        if self.rng.random() < 0.25:
            width = self.rng.choice(self.widths)
            value = self.rng.choice([0, 1, (1 << width) - 1, self.rng.getrandbits(width)])
            value = -value if self.rng.random() < 0.2 else value
            return make.constant(value), lambda _: value
        name = self.rng.choice(list(self.fields))
        width, is_signed = self.fields[name]
        if is_signed:
            return make.field("values", name), lambda v: signed(v[name], width)
        return make.field("values", name), lambda v: v[name]

    def arithmetic(self, depth: int) -> tuple[make.Json, Evaluate]:
        op = self.rng.choice("+-*&|^")
        apply = {
            "+": operator.add,
            "-": operator.sub,
            "*": operator.mul,
            "&": operator.and_,
            "|": operator.or_,
            "^": operator.xor,
        }[op]
        (a, f), (b, g) = self.data(depth - 1), self.data(depth - 1)
        return make.operation(op, a, b), lambda v: apply(f(v), g(v))

    def mask(self, depth: int) -> tuple[make.Json, Evaluate]:
        width = self.rng.choice(self.widths)
        a, f = self.data(depth - 1)
        return make.operation("&", a, make.constant((1 << width) - 1)), lambda v: f(v) & ((1 << width) - 1)

    def shift(self, depth: int) -> tuple[make.Json, Evaluate]:
        a, f = self.data(depth - 1)
        if self.rng.random() < 0.5:
            by = self.rng.randrange(300)
            amount, g = make.constant(by), (lambda _: by)
        else:
            amount = make.operation("&", make.field("values", "amount"), make.constant(0x1FF))
            g = lambda v: v["amount"] & 0x1FF  # noqa: E731
        if self.rng.random() < 0.5:
            return make.operation(">>", a, amount), lambda v: f(v) >> g(v)
        width = self.rng.choice(self.widths)
        shifted = make.operation("<<", a, amount)
        return make.operation(
            "&", shifted, make.constant((1 << width) - 1)
        ), lambda v: (f(v) << g(v)) & ((1 << width) - 1)

    def cast(self, depth: int) -> tuple[make.Json, Evaluate]:
        width = self.rng.choice(self.widths)
        a, f = self.data(depth - 1)
        op = self.rng.choice(["two_comp_mod", "usat_cast", "sat_cast"])
        node = make.operation(op, a, make.constant(width))
        if op == "two_comp_mod":
            return node, lambda v: signed(f(v), width)
        if op == "usat_cast":
            return node, lambda v: clamp(f(v), 0, (1 << width) - 1)
        return node, lambda v: clamp(f(v), -(1 << (width - 1)), (1 << (width - 1)) - 1)

    def divide(self, depth: int) -> tuple[make.Json, Evaluate]:
        (a, f), (b, g) = self.data(depth - 1), self.data(depth - 1)
        if self.rng.random() < 0.5:
            return make.operation("/", a, b), lambda v: divide(f(v), g(v))
        return make.operation("%", a, b), lambda v: remainder(f(v), g(v))

    def choice(self, depth: int) -> tuple[make.Json, Evaluate]:
        c, h = self.boolean(depth - 1)
        (a, f), (b, g) = self.data(depth - 1), self.data(depth - 1)
        node = {"type": "expression", "value": {"op": "?", "left": a, "right": b, "cond": c}}
        return node, lambda v: f(v) if h(v) else g(v)

    def b2d(self, depth: int) -> tuple[make.Json, Evaluate]:
        a, f = self.boolean(depth - 1)
        return make.operation("b2d", None, a), lambda v: int(f(v))

    def boolean(self, depth: int) -> tuple[make.Json, Callable[[dict[str, int]], bool]]:
        kind = self.rng.choice(["compare", "compare", "compare", "d2b", "logic", "not"]) if depth > 0 else "compare"
        if kind == "logic":
            op = self.rng.choice(["and", "or", "==", "!="])
            (a, f), (b, g) = self.boolean(depth - 1), self.boolean(depth - 1)
            apply = {
                "and": lambda x, y: x and y,
                "or": lambda x, y: x or y,
                "==": operator.eq,
                "!=": operator.ne,
            }[op]
            return make.operation(op, a, b), lambda v: apply(f(v), g(v))
        if kind == "not":
            a, f = self.boolean(depth - 1)
            return make.operation("not", None, a), lambda v: not f(v)
        if kind == "d2b":
            b, g = self.data(max(depth - 1, 0))
            return make.operation("d2b", None, b), lambda v: g(v) != 0
        op = self.rng.choice(["==", "!=", "<", "<=", ">", ">="])
        compare = {
            "==": operator.eq,
            "!=": operator.ne,
            "<": operator.lt,
            "<=": operator.le,
            ">": operator.gt,
            ">=": operator.ge,
        }[op]
        (c, h), (d, k) = self.data(max(depth - 1, 0)), self.data(max(depth - 1, 0))
        return make.operation(op, c, d), lambda v: compare(h(v), k(v))

    def not_(self, depth: int) -> tuple[make.Json, Evaluate]:
        a, f = self.data(depth - 1)
        return make.operation("~", None, a), lambda v: ~f(v)


setattr(ExpressionMaker, "not", ExpressionMaker.not_)


@pytest.mark.commit_cases(1)
@pytest.mark.parametrize("seed", range(3))
def test_expressions_equal_python_integers(seed: int) -> None:
    check_expressions(random.Random(seed), WIDTHS)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(10, 34))
def test_expressions_of_every_width(seed: int) -> None:
    """Together the runs have all widths."""
    check_expressions(random.Random(seed), list(range(1 + (seed - 10) % 12, 257, 12)))


def check_expressions(rng: random.Random, widths: list[int]) -> None:
    fields: dict[str, tuple[int, bool]] = {"amount": (32, False)}
    for i, width in enumerate(widths):
        fields[f"u{i}"] = (width, False)
        if width > 1:
            fields[f"s{i}"] = (width, True)
    total = sum(width for width, _ in fields.values())
    maker = make.ProgramMaker()
    layout = [[name, width, is_signed] for name, (width, is_signed) in fields.items()]
    maker.add_header("values", [*layout, ["pad", -total % 8, False]])
    expressions = [ExpressionMaker(rng, fields, widths).data(4) for _ in range(EXPRESSIONS)]
    targets = [(f"r{i}", rng.choice(widths)) for i in range(EXPRESSIONS)]
    target_bits = sum(width for _, width in targets)
    maker.add_header("results", [*([n, w, False] for n, w in targets), ["pad", -target_bits % 8, False]])
    maker.states = [make.state("start", [make.extract("values"), make.extract("results")])]
    maker.order = ["results"]
    maker.run(
        [
            make.call("assign", make.field("results", name), make.expression(node))
            for (name, _), (node, _) in zip(targets, expressions, strict=True)
        ]
    )
    switch = BareSwitch(build_program(maker.json(), optimise="-O1"))
    for _ in range(FRAMES):
        values = {
            name: rng.choice(
                [0, 1, (1 << width) - 1, 1 << (width - 1), rng.getrandbits(width), rng.getrandbits(width)]
            )
            for name, (width, _) in fields.items()
        }
        frame = field_bits([*((values[n], w) for n, (w, _) in fields.items()), (0, -total % 8)])
        out = switch.through(frame + bytes((target_bits + 7) // 8)).frame
        wanted = [(evaluate(values), width) for (_, width), (_, evaluate) in zip(targets, expressions, strict=True)]
        expected = field_bits([*wanted, (0, -target_bits % 8)])
        if out != expected:
            number, shift = int.from_bytes(out, "big"), len(out) * 8
            for (value, width), (node, _) in zip(wanted, expressions, strict=True):
                shift -= width
                got = number >> shift & ((1 << width) - 1)
                assert got == value % (1 << width), node
        assert out == expected
