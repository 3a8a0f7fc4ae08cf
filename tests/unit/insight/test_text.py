"""Traces as text and JSON, and how values are written."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from gradbed.switch.insight.source import SourceMap
from gradbed.switch.insight.trace import build_trace
from gradbed.switch.insight.trace_events import EntryPart, Trace, match_text, value_text
from gradbed.switch.insight.trace_text import print_trace
from gradbed.switch.insight.traced_switch import TracedSwitch
from gradbed.switch.stf import parse_stf
from tests.unit.insight.tracing import (
    HERE,
    ORDERS,
    ROUTED,
    ROUTER,
    ROUTES,
    compiled_by_p4c,
    order,
    place,
    program,
    trace,
)


def text_of(told: Trace, sources: SourceMap, whole: bool = False, **options: bool) -> list[str]:
    out = io.StringIO()
    print_trace(told, sources, Console(file=out, width=100, highlight=False, **options), whole=whole)
    return out.getvalue().splitlines()


def test_router() -> None:
    lines = text_of(trace(ROUTER, ROUTES, ROUTED, port=1), program(ROUTER)[1])
    said = [line.split(maxsplit=1)[1] if line.startswith("router.p4:") else line.strip() for line in lines]
    for wanted in (
        "PARSER  port 1",
        "select ethernet.ether_type = 0x0800: 0x0800 -> parse_ipv4",
        "ipv4.dst_addr = 10.0.1.7",
        "hit: hdr.ipv4.dst_addr: 10.0.1.0/24",
        "action RouterIngress.set_next_hop(next_hop = 1)",
        "ethernet.dst_addr: 02:00:00:00:00:01 -> 02:00:00:00:00:02",
        "counter RouterEgress.port_counter[3]: 1 packet, 48 bytes",
        "emit ethernet, ipv4",
        "=> sent by port 3, 48 bytes",
        "Sent: port 3 (48 bytes)",
    ):
        assert wanted in said, wanted
    statement = next(line for line in lines if "meta.next_hop = next_hop;" in line)
    assert statement.split()[0] == place(ROUTER, "meta.next_hop = next_hop;")


def test_no_colours_without_a_terminal() -> None:
    told, sources = trace(ROUTER, ROUTES, ROUTED), program(ROUTER)[1]
    assert not any("\x1b" in line for line in text_of(told, sources))
    assert any("\x1b" in line for line in text_of(told, sources, force_terminal=True))


def test_drop_is_told_with_its_reason() -> None:
    lines = text_of(order(99), program(ORDERS)[1])
    assert "=> dropped: mark_to_drop(std)" in lines[-3]
    assert lines[-3].split()[0] == place(ORDERS, "mark_to_drop(std)")
    assert lines[-1].strip() == "Nothing was sent."


def test_long_lists_are_cut_short_unless_asked() -> None:
    source = HERE / "programs" / "many.p4"
    told, sources = trace(source, "", bytes(range(40))), program(source)[1]
    short, whole = text_of(told, sources), text_of(told, sources, whole=True)
    assert any("... 26 more fields" in line for line in short)
    assert any("... 16 more changes" in line for line in short)
    assert not any("more" in line for line in whole)
    assert len(whole) > len(short) + 30


def test_program_without_source_positions() -> None:
    built = compiled_by_p4c("router")
    sources = SourceMap(built.model)
    with TracedSwitch(built) as switch:
        passage = switch.send(3, ROUTED)
    lines = text_of(build_trace(built, sources, 3, ROUTED, passage.records, passage.outputs), sources)
    assert any(line.strip().startswith("if (") for line in lines)
    assert any(line.strip() == "table RouterIngress.routes" for line in lines)


def test_source_file_that_is_not_at_hand() -> None:
    built, _ = program(ROUTER)
    sources = SourceMap(built.model, [HERE])
    with TracedSwitch(built) as switch:
        switch.set_up(parse_stf(ROUTES, Path("test.stf")))
        passage = switch.send(1, ROUTED)
    lines = text_of(build_trace(built, sources, 1, ROUTED, passage.records, passage.outputs), sources)
    assert any(line.endswith("meta.next_hop = next_hop") for line in lines)


def test_json() -> None:
    told = json.loads(json.dumps(order(16, rest="1234").to_json()))
    assert told["frame"] == "10001234"
    assert told["outputs"] == [{"port": 3, "frame": "1000beef"}]
    ingress = told["stages"][1]
    table = next(event for event in ingress["events"] if event["kind"] == "table")
    assert table["entry"]["match"] == [
        {"match": "exact", "width": 8, "value": 16, "mask": None, "prefix_bits": None, "high": None}
    ]
    assert {"kind": "field", "name": "note.text", "width": 16, "old": 0x1234, "new": 0xBEEF} in [
        change for statement in table["statements"] for change in statement["changes"]
    ]
    assert told["stages"][3]["decisions"][0]["frame"] == "1000beef"


@pytest.mark.parametrize(
    ("value", "width", "name", "wanted"),
    [
        (0x020000000001, 48, "ethernet.dst_addr", "02:00:00:00:00:01"),
        (0x0A000107, 32, "ipv4.dst_addr", "10.0.1.7"),
        (0x0A000107, 32, "hdr.ipv4.srcAddr", "10.0.1.7"),
        (0x0A000107, 32, "meta.sum", "167772423"),
        (1, 128, "ipv6.src", "::1"),
        (0x0800, 16, "ethernet.etherType", "0x0800"),
        (6, 16, "ethernet.etherType", "6"),
        (64, 8, "ipv4.ttl", "64"),
        (1 << 63, 64, "owner", "0x8000000000000000"),
        (-5, 32, "value.amount", "-5"),
        (1, 0, "ipv4.isValid()", "true"),
        (b"\x01\x02", 320, "options.data", "0102"),
        (b"", 320, "options.data", "(empty)"),
    ],
)
def test_values(value: int | bytes, width: int, name: str, wanted: str) -> None:
    assert value_text(value, width, name) == wanted


@pytest.mark.parametrize(
    ("part", "wanted"),
    [
        (EntryPart("exact", 16, 5), "5"),
        (EntryPart("lpm", 32, 0x0A000000, prefix_bits=8), "10.0.0.0/8"),
        (EntryPart("ternary", 32, 0x0A000000, mask=0xFF0000FF), "10.0.0.0 &&& 0xff0000ff"),
        (EntryPart("ternary", 32, 0x0A000000, mask=0xFFFFFFFF), "10.0.0.0"),
        (EntryPart("ternary", 32, 0, mask=0), "_"),
        (EntryPart("range", 16, 5, high=9), "5..9"),
    ],
)
def test_matches(part: EntryPart, wanted: str) -> None:
    assert match_text(part, "ipv4.src_addr") == wanted
