"""Tables with thousands of entries under many masks against a brute-force model, while entries come and go."""

from __future__ import annotations

import functools
import random
from collections.abc import Iterable
from dataclasses import dataclass

import pytest

from gradbed.switch.codegen import BuiltProgram, build_program
from gradbed.switch.device import ActionCall, KeyMatch
from tests.unit.codegen import program_maker as make
from tests.unit.codegen.bare_switch import BareSwitch, field_bits

PORTS = 500
MISS = 511
KINDS = {
    "lpm": (("lpm", 32),),
    "lpm in two words": (("exact", 4), ("lpm", 73)),
    "ternary": (("ternary", 32), ("exact", 8), ("ternary", 70)),
    "range": (("range", 16), ("ternary", 32), ("range", 68)),
}


@functools.cache
def build(kind: str) -> BuiltProgram:
    fields = KINDS[kind]
    total = sum(width for _, width in fields)
    maker = make.ProgramMaker()
    maker.add_header("key", [*([f"k{i}", w, False] for i, (_, w) in enumerate(fields)), ["pad", -total % 8, False]])
    maker.states = [make.state("start", [make.extract("key")])]
    port = make.field("standard_metadata", "egress_spec")
    hit = maker.add_action("hit", [make.call("assign", port, {"type": "runtime_data", "value": 0})], [("port", 9)])
    key = [(match, ["key", f"k{i}"]) for i, (match, _) in enumerate(fields)]
    maker.add_table("t", key, [hit], hit, [MISS], match=kind.split()[0], max_size=100_000)
    return build_program(maker.json(), optimise="-O1")


@dataclass
class Rule:
    key: list[KeyMatch]
    bounds: list[tuple[int, int]]  # of each field: (mask, value), or (low, high) of a range
    priority: int
    port: int
    mask: int
    value: int
    """Of the whole key, but for ranges."""
    handle: int = -1


def make_rule(kind: str, rng: random.Random, priority: int) -> Rule:
    key, bounds = [], []
    for match, width in KINDS[kind]:
        full = (1 << width) - 1
        value = rng.getrandbits(width)
        if match == "exact":
            value = rng.randrange(2)
            key.append(KeyMatch(value))
            bounds.append((full, value))
        elif match == "lpm":
            # Some lengths have many prefixes each, others few.
            bits = priority = rng.choice([rng.randrange(33), 12, 18, 20, 24])
            mask = full ^ full >> bits
            key.append(KeyMatch(value & mask, prefix_bits=bits))
            bounds.append((mask, value & mask))
        elif match == "ternary":
            mask = rng.choice(
                [0, full ^ full >> rng.randrange(width), rng.getrandbits(width), full << width // 2 & full]
            )
            key.append(KeyMatch(value & mask, mask=mask))
            bounds.append((mask, value & mask))
        else:
            low, high = sorted((value, rng.choice([value, value + rng.randrange(9), rng.getrandbits(width)])))
            high = min(high, full)
            key.append(KeyMatch(low, high=high))
            bounds.append((low, high))
    pairs = [(0, 0) if match == "range" else bound for (match, _), bound in zip(KINDS[kind], bounds, strict=True)]
    masks, values = zip(*pairs, strict=True)
    return Rule(key, bounds, priority, rng.randrange(PORTS), packed(kind, masks), packed(kind, values))


def packed(kind: str, values: Iterable[int]) -> int:
    """A number for each field, one behind the other."""
    number = 0
    for (_, width), value in zip(KINDS[kind], values, strict=True):
        number = number << width | value
    return number


def matching(kind: str, rules: list[Rule], values: list[int]) -> list[Rule]:
    """All that match, in their order."""
    key, ranges = packed(kind, values), [place for place, (match, _) in enumerate(KINDS[kind]) if match == "range"]
    return [
        rule
        for rule in rules
        if key & rule.mask == rule.value
        and all(rule.bounds[place][0] <= values[place] <= rule.bounds[place][1] for place in ranges)
    ]


def values_for(kind: str, rng: random.Random, rules: list[Rule]) -> list[int]:
    """Of a key that this rule or that matches, at least in most fields."""
    rule, values = rng.choice(rules), []
    for (match, width), (first, second) in zip(KINDS[kind], rule.bounds, strict=True):
        noise = rng.getrandbits(width)
        value = rng.choice([first, second, (first + second) // 2]) if match == "range" else second | noise & ~first
        values.append(noise if rng.random() < 0.1 else value)
    return values


@pytest.mark.parametrize(
    ("kind", "entries"), [("lpm", 6000), ("lpm in two words", 6000), ("ternary", 3000), ("range", 1500)]
)
def test_lookups_agree_with_the_model(kind: str, entries: int) -> None:
    rng = random.Random(entries)
    switch = BareSwitch(build(kind))
    total = sum(width for _, width in KINDS[kind])
    rules: list[Rule] = []

    def insert(count: int) -> None:
        # Priorities in any order, each of them twice or so.
        for _ in range(count):
            rule = make_rule(kind, rng, rng.randrange(entries // 2))
            try:
                rule.handle = switch.state.tables.insert(
                    "t", rule.key, ActionCall("hit", (rule.port,)), rule.priority
                )
            except ValueError:
                continue  # it is there already
            rules.append(rule)

    def check(lookups: int) -> None:
        for _ in range(lookups):
            values = values_for(kind, rng, rules)
            found = matching(kind, rules, values)
            # Of equal priorities the one that was there first: max keeps the first.
            wanted = max(found, key=lambda rule: rule.priority).port if found else MISS
            frame = field_bits([*zip(values, (w for _, w in KINDS[kind]), strict=True), (0, -total % 8)])
            assert switch.through(frame).std.egress_spec == wanted

    def delete(count: int) -> None:
        for _ in range(count):
            rule = rules.pop(rng.randrange(len(rules)))
            switch.state.tables.delete("t", rule.handle)

    insert(entries)
    check(200)
    delete(len(rules) * 3 // 4)
    check(200)
    insert(entries // 2)
    check(200)
    delete(len(rules) - 3)
    check(50)
