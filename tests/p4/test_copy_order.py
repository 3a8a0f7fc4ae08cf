"""When arguments and operands are copied (P4_16, section 6.8): random statements against an interpreter.

The interpreter works on the generator's own trees and on P4's rules alone: arguments left to right, the places of
`out` and `inout` found then and kept, the call on copies, then copies back left to right.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gradbed.switch.codegen import build_program
from gradbed.switch.compiler import compile_p4
from gradbed.switch.reference import ReferenceSwitch
from gradbed.switch.stf.engine_target import EngineTarget
from gradbed.switch.stf.statements import Packet

# x and y are variables, the others fields of a struct, of a header, of a stack's elements.
TEXTS = {"x": "x", "y": "y", "sa": "m.a", "sb": "m.b", "ha": "h.pair.a", "hb": "h.pair.b"}
TEXTS |= {f"e{index}": f"h.stack[{index}].v" for index in range(4)}
Memory = dict[str, int]
Run = Callable[[Memory], Any]
STATEMENTS = 48
PACKETS_EACH = 8


@dataclass(frozen=True)
class Node:
    """An expression: its text, its value, and for a place how its cells are found (with the mask of a slice)."""

    text: str
    value: Run
    cells: Callable[[Memory], tuple[list[str], int]] | None = None


def place(text: str, *names: str, mask: int = 255) -> Node:
    return _place(text, lambda memory: (list(names), mask))


def element(index: Node) -> Node:
    return _place(f"h.stack[({index.text}) & 3].v", lambda memory: ([f"e{index.value(memory) & 3}"], 255))


def _place(text: str, cells: Callable[[Memory], tuple[list[str], int]]) -> Node:
    def value(memory: Memory) -> Any:
        return load(memory, *cells(memory))

    return Node(text, value, cells)


def load(memory: Memory, names: list[str], mask: int) -> Any:
    values = [memory[name] & mask for name in names]
    return values[0] if len(values) == 1 else values


def store(memory: Memory, names: list[str], mask: int, value: Any) -> None:
    for name, part in zip(names, value if len(names) > 1 else [value], strict=True):
        memory[name] = (memory[name] & ~mask | part & mask) & 255


FUNCTIONS = """
bit<8> inc(inout bit<8> p, in bit<8> q) { p = p * 3 + q; return p ^ q; }
bit<8> both(inout bit<8> p, inout bit<8> q, in bit<8> r) {
    bit<8> t = p; p = q + 1; q = t + r; if (r > 100) { return t; } p = p + 7; return q;
}
bit<8> set(out bit<8> p, in bit<8> q) { p = q + 5; return q ^ 0x55; }
bit<7> low(inout bit<7> p, in bit<8> q) { p = p + q[6:0]; return p ^ 3; }
bit<8> header_of(inout pair_t p, in bit<8> q) { p.a = p.a + q; p.b = p.b ^ p.a; return p.b; }
bit<8> struct_of(in bit<8> q, inout fields_t p) { p.a = p.b - q; p.b = p.a + 1; return p.a; }
"""
ACTIONS = """
    action mix(inout bit<8> p, in bit<8> q, out bit<8> r) { p = p * 3 + q; x = x + 1; r = p ^ q ^ x; }
"""
CONTROL = """
control Sub(inout bit<8> p, in bit<8> q, out bit<8> r) {
    action twice() { p = p + p; }
    table halves { key = { q : exact; p : exact; } actions = { twice; NoAction; } default_action = twice; }
    apply { p = p ^ q; halves.apply(); r = p + q; }
}
"""


def inc(memory: Memory, p: int, q: int) -> tuple[int, list[Any]]:
    p = (p * 3 + q) & 255
    return p ^ q, [p]


def both(memory: Memory, p: int, q: int, r: int) -> tuple[int, list[Any]]:
    t, p, q = p, (q + 1) & 255, (p + r) & 255
    return (t, [p, q]) if r > 100 else (q, [(p + 7) & 255, q])


def set_(memory: Memory, p: int, q: int) -> tuple[int, list[Any]]:
    return q ^ 0x55, [(q + 5) & 255]


def low(memory: Memory, p: int, q: int) -> tuple[int, list[Any]]:
    p = (p + q) & 127
    return p ^ 3, [p]


def header_of(memory: Memory, p: list[int], q: int) -> tuple[int, list[Any]]:
    a = (p[0] + q) & 255
    return p[1] ^ a, [[a, p[1] ^ a]]


def struct_of(memory: Memory, q: int, p: list[int]) -> tuple[int, list[Any]]:
    a = (p[1] - q) & 255
    return a, [[a, (a + 1) & 255]]


def mix(memory: Memory, p: int, q: int, r: int) -> tuple[int, list[Any]]:
    p = (p * 3 + q) & 255
    memory["x"] = (memory["x"] + 1) & 255
    return 0, [p, p ^ q ^ memory["x"]]


def sub(memory: Memory, p: int, q: int, r: int) -> tuple[int, list[Any]]:
    p = (p ^ q) * 2 & 255
    return 0, [p, (p + q) & 255]


# What runs, and what each parameter takes: v a value, p a place, l the low bits of one, h the header, s the struct.
CALLED: dict[str, tuple[Callable[..., tuple[int, list[Any]]], str]] = {
    "inc": (inc, "pv"),
    "both": (both, "ppv"),
    "set": (set_, "pv"),
    "low": (low, "lv"),
    "header_of": (header_of, "hv"),
    "struct_of": (struct_of, "vs"),
    "mix": (mix, "pvp"),
    "sub_1.apply": (sub, "pvp"),
    "sub_2.apply": (sub, "pvp"),
}
IN_EXPRESSIONS = ("inc", "inc", "both", "set", "low", "header_of", "struct_of")


def call(name: str, arguments: list[Node]) -> Node:
    function, _ = CALLED[name]

    def run(memory: Memory) -> int:
        copied, targets = [], []
        for argument in arguments:
            if argument.cells is None:
                copied.append(argument.value(memory))
            else:
                targets.append(argument.cells(memory))
                copied.append(load(memory, *targets[-1]))
        result, outs = function(memory, *copied)
        for target, value in zip(targets, outs, strict=True):
            store(memory, *target, value)
        return result

    text = f"{name}({', '.join(argument.text for argument in arguments)})"
    return Node(f"(bit<8>){text}" if name == "low" else text, run)


class Generator:
    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def chance(self, share: float) -> bool:
        return self._random.random() < share

    def place(self, depth: int) -> Node:
        if self.chance(0.25):
            return element(self.value(depth) if depth > 0 else place("x", "x"))
        name = self._random.choice(list(TEXTS))
        return place(TEXTS[name], name)

    def value(self, depth: int) -> Node:
        """What is no place to `call`, though its text may be one."""
        node = self.place(0) if depth <= 0 or self.chance(0.2) else self._compound(depth - 1)
        return Node(node.text, node.value)

    def call(self, name: str, depth: int) -> Node:
        return call(name, [self._argument(kind, depth) for kind in CALLED[name][1]])

    def _argument(self, kind: str, depth: int) -> Node:
        if kind == "v":
            return self.value(depth)
        if kind == "h":
            return place("h.pair", "ha", "hb")
        if kind == "s":
            return place("m", "sa", "sb")
        if kind == "l":
            name = self._random.choice(list(TEXTS))
            return place(f"{TEXTS[name]}[6:0]", name, mask=127)
        return self.place(depth)

    def _compound(self, depth: int) -> Node:
        if self.chance(0.6):
            return self.call(self._random.choice(IN_EXPRESSIONS), depth)
        a, b, c = self.value(depth), self.value(depth), self.value(depth)
        match self._random.choice(("+", "++", "?:", "&&", "||")):
            case "+":
                return Node(f"({a.text} + {b.text})", lambda m: (a.value(m) + b.value(m)) & 255)
            case "++":
                joined = f"({a.text} ++ {b.text})[11:4]"
                return Node(joined, lambda m: (a.value(m) << 8 | b.value(m)) >> 4 & 255)
            case "?:":
                text = f"({a.text} < {b.text} ? {c.text} : {a.text})"
                return Node(text, lambda m: (c if a.value(m) < b.value(m) else a).value(m))
            case "&&":
                text = f"({a.text} > 99 && {b.text} > 99 ? {c.text} : 77)"
                return Node(text, lambda m: c.value(m) if a.value(m) > 99 and b.value(m) > 99 else 77)
        text = f"({a.text} > 99 || {b.text} > 99 ? {c.text} : 77)"
        return Node(text, lambda m: c.value(m) if a.value(m) > 99 or b.value(m) > 99 else 77)

    def statement(self) -> Node:
        """An assignment, a compound one, a call of an action or of a control, a switch, a pair at once."""
        target, source, other = self.place(1), self.value(3), self.value(2)
        assert target.cells is not None
        cells = target.cells

        def assign(memory: Memory) -> None:
            found = cells(memory)
            store(memory, *found, source.value(memory))

        def subtract(memory: Memory) -> None:
            found = cells(memory)
            before = load(memory, *found)
            store(memory, *found, before - source.value(memory))

        def choose(memory: Memory) -> None:
            chosen = source.value(memory)
            memory["x"] = (memory["x"] + (3 if chosen == 7 else 1)) & 255

        def pair(memory: Memory) -> None:
            memory["sa"], memory["sb"] = source.value(memory), other.value(memory)

        match self._random.randrange(7):
            case 0:
                return Node(f"{target.text} -= {source.text};", subtract)
            case 1:
                return Node(f"switch ({source.text}) {{ 7: {{ x = x + 3; }} default: {{ x = x + 1; }} }}", choose)
            case 2:
                return Node(f"m = {{ {source.text}, {other.text} }};", pair)
            case 3 | 4:
                made = self.call(self._random.choice(("mix", "sub_1.apply", "sub_2.apply")), 2)
                return Node(f"{made.text};", made.value)
        return Node(f"{target.text} = {source.text};", assign)


PROGRAM = """#include <core.p4>
#include <v1model.p4>
header pair_t { bit<8> a; bit<8> b; }
header byte_t { bit<8> v; }
header first_t { bit<8> which; bit<8> x; bit<8> y; bit<8> sa; bit<8> sb; }
struct fields_t { bit<8> a; bit<8> b; }
struct headers_t { first_t first; pair_t pair; byte_t[4] stack; }
struct metadata_t { }
FUNCTIONS
parser P(packet_in packet, out headers_t h, inout metadata_t meta, inout standard_metadata_t std) {
    state start {
        packet.extract(h.first);
        packet.extract(h.pair);
        packet.extract(h.stack.next);
        packet.extract(h.stack.next);
        packet.extract(h.stack.next);
        packet.extract(h.stack.next);
        transition accept;
    }
}
control C(inout headers_t h, inout metadata_t meta) { apply { } }
CONTROL
control I(inout headers_t h, inout metadata_t meta, inout standard_metadata_t std) {
    bit<8> x;
    bit<8> y;
    fields_t m;
ACTIONS
    Sub() sub_1;
    Sub() sub_2;
    apply {
        std.egress_spec = 1;
        x = h.first.x;
        y = h.first.y;
        m = { h.first.sa, h.first.sb };
BODY
        h.first.x = x;
        h.first.y = y;
        h.first.sa = m.a;
        h.first.sb = m.b;
    }
}
control E(inout headers_t h, inout metadata_t meta, inout standard_metadata_t std) { apply { } }
control D(packet_out packet, in headers_t h) { apply { packet.emit(h); } }
V1Switch(P(), C(), I(), E(), C(), D()) main;
"""
# As the frame has them behind the statement's number.
ORDER = ("x", "y", "sa", "sb", "ha", "hb", "e0", "e1", "e2", "e3")


def compiled_switch(source: Path, frames: list[bytes]) -> list[bytes]:
    program = build_program(compile_p4(source).json, optimise="-O1")
    with EngineTarget(program, frozenset((0, 1))) as switch:
        for frame in frames:
            switch.send(Packet(0, 0, frame))
        return [frame for _, frame in switch.drain()]


def reference(source: Path, frames: list[bytes]) -> list[bytes]:
    switch = ReferenceSwitch(source)
    return [left for frame in frames for _, left in switch.process(0, frame)]


@pytest.mark.commit_cases(1)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("run", [compiled_switch, reference])
def test_random_statements(run: Callable[[Path, list[bytes]], list[bytes]], seed: int, tmp_path: Path) -> None:
    generator = Generator(seed)
    statements = [generator.statement() for _ in range(STATEMENTS)]
    body = "\n".join(f"if (h.first.which == {n}) {{ {node.text} }}" for n, node in enumerate(statements))
    text = PROGRAM.replace("BODY", body).replace("FUNCTIONS", FUNCTIONS)
    source = tmp_path / "random_calls.p4"
    source.write_text(text.replace("ACTIONS", ACTIONS).replace("CONTROL", CONTROL))
    frames = [
        bytes((number, *random.Random(f"{seed} {number} {repeat}").randbytes(len(ORDER))))
        for number in range(STATEMENTS)
        for repeat in range(PACKETS_EACH)
    ]
    received = run(source, frames)
    assert len(received) == len(frames)
    for sent, got in zip(frames, received, strict=True):
        memory = dict(zip(ORDER, sent[1:], strict=True))
        statements[sent[0]].value(memory)
        assert got == bytes((sent[0], *(memory[name] for name in ORDER))), statements[sent[0]].text
