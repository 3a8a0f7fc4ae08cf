"""Tables against a brute-force model, which tries every entry for every packet."""

from __future__ import annotations

import functools
import random
from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradbed.switch.codegen import build_program
from gradbed.switch.device import ActionCall, EntryExists, KeyMatch, StateFull
from tests.examples import examples
from tests.unit.codegen import program_maker as make
from tests.unit.codegen.bare_switch import BareSwitch, field_bits

MISS = 0x1FF
KINDS = {
    "exact_small": (("exact", 12),),
    "exact_many": (("exact", 9), ("exact", 64), ("exact", 100)),
    "lpm": (("lpm", 32),),
    "lpm_wide": (("exact", 4), ("lpm", 128)),
    "ternary": (("ternary", 16), ("exact", 4), ("ternary", 80)),
    "range": (("range", 16), ("ternary", 8), ("range", 70)),
    "mixed": (("lpm", 16), ("range", 12), ("exact", 4)),
}


@functools.cache
def build(kind: str) -> object:
    fields = KINDS[kind]
    total = sum(width for _, width in fields)
    maker = make.ProgramMaker()
    maker.add_header("key", [*([f"k{i}", w, False] for i, (_, w) in enumerate(fields)), ["pad", -total % 8, False]])
    maker.states = [make.state("start", [make.extract("key")])]
    port = make.field("standard_metadata", "egress_spec")
    hit = maker.add_action("hit", [make.call("assign", port, {"type": "runtime_data", "value": 0})], [("port", 9)])
    order = ["exact", "lpm", "ternary", "range"]
    maker.add_table(
        "t",
        [(match, ["key", f"k{i}"]) for i, (match, _) in enumerate(fields)],
        [hit],
        hit,
        [MISS],
        match=max((match for match, _ in fields), key=order.index),
        max_size=300,
    )
    return build_program(maker.json(), optimise="-O1")


@dataclass(frozen=True)
class ModelEntry:
    key: tuple[KeyMatch, ...]
    priority: int
    port: int

    def matches(self, kind: str, values: Sequence[int]) -> bool:
        for (match, width), part, value in zip(KINDS[kind], self.key, values, strict=True):
            if match == "exact" and value != part.value:
                return False
            if match == "lpm" and value >> width - part.prefix_bits != part.value >> width - part.prefix_bits:
                return False
            if match == "ternary" and (value ^ part.value) & part.mask:
                return False
            if match == "range" and not part.value <= value <= part.high:
                return False
        return True


class Tables:
    """A switch's table and the model of it, changed together."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.fields = KINDS[kind]
        self.switch = BareSwitch(build(kind))
        self.entries: dict[int, ModelEntry] = {}

    def insert(self, entry: ModelEntry) -> None:
        same = [e for e in self.entries.values() if self.identity(e) == self.identity(entry)]
        if same:
            with pytest.raises(EntryExists):
                self.switch.state.tables.insert("t", entry.key, ActionCall("hit", (entry.port,)), entry.priority)
            return
        handle = self.switch.state.tables.insert("t", entry.key, ActionCall("hit", (entry.port,)), entry.priority)
        assert handle not in self.entries
        self.entries[handle] = entry

    def identity(self, entry: ModelEntry) -> tuple[object, ...]:
        parts: list[object] = []
        for (match, width), part in zip(self.fields, entry.key, strict=True):
            if match == "lpm":
                parts.append((part.value >> width - part.prefix_bits, part.prefix_bits))
            elif match == "ternary":
                parts.append((part.value & part.mask, part.mask))
            else:
                parts.append((part.value, part.high))
        ordered = any(match in ("ternary", "range") for match, _ in self.fields)
        return (*parts, entry.priority if ordered else 0)

    def expected(self, values: Sequence[int]) -> int:
        found = [e for e in self.entries.values() if e.matches(self.kind, values)]
        if not found:
            return MISS
        if not any(match in ("ternary", "range") for match, _ in self.fields):
            return max(found, key=lambda e: sum(p.prefix_bits or 0 for p in e.key)).port
        # Of equal priorities the one inserted first; dictionaries keep that order.
        return max(found, key=lambda e: e.priority).port

    def check(self, values: Sequence[int]) -> None:
        total = sum(width for _, width in self.fields)
        frame = field_bits([*zip(values, (w for _, w in self.fields), strict=True), (0, -total % 8)])
        assert self.switch.ingress(self.switch.parse(self.switch.new(frame))).std.egress_spec == self.expected(values)


def draw_value(rng: random.Random, width: int) -> int:
    """Few different values, so that entries overlap and packets hit."""
    base = rng.choice([0, (1 << width) - 1, (0xA5A5A5A5A5A5A5A5 * 0x10001) % (1 << width)])
    return base ^ (1 << rng.randrange(width)) if rng.random() < 0.6 else base


def draw_entry(rng: random.Random, kind: str) -> ModelEntry:
    key = []
    for match, width in KINDS[kind]:
        value = draw_value(rng, width)
        if match == "exact":
            key.append(KeyMatch(value))
        elif match == "lpm":
            key.append(KeyMatch(value, prefix_bits=rng.choice([0, width, rng.randrange(width + 1)])))
        elif match == "ternary":
            key.append(
                KeyMatch(value, mask=rng.choice([0, (1 << width) - 1, (1 << width) - 2, draw_value(rng, width)]))
            )
        else:
            low, high = sorted((value, rng.choice([value, draw_value(rng, width), (1 << width) - 1])))
            key.append(KeyMatch(low, high=high))
    return ModelEntry(tuple(key), rng.randrange(6), rng.randrange(MISS))


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=examples(12), deadline=None)
@given(seed=st.integers(0, 2**32))
def test_lookups_agree_with_the_model(kind: str, seed: int) -> None:
    rng = random.Random(seed)
    tables = Tables(kind)
    for _ in range(60):
        action = rng.random()
        if action < 0.5 or not tables.entries:
            tables.insert(draw_entry(rng, kind))
        elif action < 0.65:
            handle = rng.choice(list(tables.entries))
            tables.switch.state.tables.delete("t", handle)
            del tables.entries[handle]
        elif action < 0.75:
            handle, port = rng.choice(list(tables.entries)), rng.randrange(MISS)
            tables.switch.state.tables.modify("t", handle, ActionCall("hit", (port,)))
            tables.entries[handle] = ModelEntry(tables.entries[handle].key, tables.entries[handle].priority, port)
        for _ in range(4):
            if tables.entries and rng.random() < 0.5:
                entry = rng.choice(list(tables.entries.values()))
                tables.check([p.value if p.high is None else rng.choice([p.value, p.high]) for p in entry.key])
            else:
                tables.check([draw_value(rng, width) for _, width in KINDS[kind]])
    tables.switch.state.close()


def test_thousands_of_entries_come_and_go() -> None:
    switch = BareSwitch(build("exact_small"))
    handles = {v: switch.state.tables.insert("t", [KeyMatch(v)], ActionCall("hit", (v % 500,))) for v in range(300)}
    with pytest.raises(StateFull, match="room for 300"):
        switch.state.tables.insert("t", [KeyMatch(301)], ActionCall("hit", (1,)))
    for value in range(0, 300, 3):
        switch.state.tables.delete("t", handles.pop(value))
    for value in range(300):
        packet = switch.ingress(switch.parse(switch.new(field_bits([(value, 12), (0, 4)]))))
        assert packet.std.egress_spec == (value % 500 if value in handles else MISS)


def test_default_actions() -> None:
    switch = BareSwitch(build("exact_small"))

    def miss() -> int:
        return switch.ingress(switch.parse(switch.new(b"\0\0"))).std.egress_spec

    switch.state.tables.set_default("t", ActionCall("hit", (7,)))
    assert miss() == 7
    switch.state.tables.set_default("t", None)
    assert miss() == MISS


@pytest.mark.parametrize(
    ("key", "call", "error"),
    [
        ([KeyMatch(1 << 12)], ActionCall("hit", (1,)), ValueError),
        ([KeyMatch(-1)], ActionCall("hit", (1,)), ValueError),
        ([], ActionCall("hit", (1,)), ValueError),
        ([KeyMatch(1)], ActionCall("hit", ()), ValueError),
        ([KeyMatch(1)], ActionCall("hit", (512,)), ValueError),
        ([KeyMatch(1)], ActionCall("other", ()), KeyError),
    ],
)
def test_bad_entries_are_refused(key: list[KeyMatch], call: ActionCall, error: type[Exception]) -> None:
    switch = BareSwitch(build("exact_small"))
    with pytest.raises(error):
        switch.state.tables.insert("t", key, call)
    with pytest.raises(IndexError):
        switch.state.tables.delete("t", 0)


def test_bad_ranges_and_prefixes_are_refused() -> None:
    with pytest.raises(ValueError, match="low end 5 is above"):
        BareSwitch(build("mixed")).state.tables.insert(
            "t", [KeyMatch(0, prefix_bits=0), KeyMatch(5, high=4), KeyMatch(0)], ActionCall("hit", (1,)), 1
        )
    with pytest.raises(ValueError, match="prefix of 33 bits"):
        BareSwitch(build("lpm")).state.tables.insert("t", [KeyMatch(0, prefix_bits=33)], ActionCall("hit", (1,)))
    with pytest.raises(KeyError, match="no table named nowhere"):
        BareSwitch(build("lpm")).state.tables.count("nowhere", None)
