"""Coverage, counted by hand."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from html.parser import HTMLParser
from pathlib import Path

import pytest
from rich.console import Console

from gradbed.switch.insight.coverage import Coverage, Report, cover_frames, cover_script, percent
from gradbed.switch.insight.coverage_report import html_page, print_report
from gradbed.switch.stf import parse_stf
from tests.unit.insight.tracing import (
    ORDER_COMMANDS,
    ORDERS,
    ROUTED,
    ROUTER,
    ROUTES,
    compiled_by_p4c,
    place,
    program,
)


def covered(source: Path, commands: str, *packets: tuple[int, bytes]) -> Report:
    built, sources = program(source)
    coverage = Coverage(built, sources)
    lines = [commands, *(f"packet {port} {frame.hex()}" for port, frame in packets)]
    cover_script(built, coverage, parse_stf("\n".join(lines), Path("test.stf")))
    return coverage.report()


def hits(report: Report, category: str) -> dict[str, int]:
    return {item.name: item.hits for item in report.items[category]}


def state_of(report: Report, file: Path, text: str, occurrence: int = 1) -> str:
    number = int(place(file, text, occurrence).rsplit(":", 1)[1])
    return report.lines[file.name][number].state


def test_router_by_one_routed_packet() -> None:
    report = covered(ROUTER, ROUTES, (1, ROUTED))
    assert hits(report, "parser states") == {"start": 1, "parse_ipv4": 1}
    assert hits(report, "transitions") == {
        "start: ETHER_TYPE_IPV4: parse_ipv4": 1,
        "start: default: accept": 0,
        "parse_ipv4: transition accept": 1,
    }
    assert hits(report, "tables") == {"RouterIngress.routes": 1, "RouterIngress.next_hops": 1}
    assert hits(report, "table entries") == {
        "RouterIngress.routes hdr.ipv4.dst_addr: 10.0.1.0/24": 1,
        "RouterIngress.routes hdr.ipv4.dst_addr: 10.0.0.0/8": 0,
        "RouterIngress.next_hops meta.next_hop: 1": 1,
    }
    assert hits(report, "actions") == {
        "RouterIngress.set_next_hop": 1,
        "RouterIngress.drop": 0,
        "NoAction": 0,
        "RouterIngress.forward": 1,
    }
    # if: one way of two; routes.apply().hit: the same.
    assert report.reached("branches") == (2, 4)
    # Two extracts, two checksums, one assignment, four of forward, one count; mark_to_drop is missing.
    assert report.reached("statements") == (10, 11)
    assert report.packets == 1


def test_router_by_packets_for_every_way() -> None:
    other = ROUTED[:12] + b"\x86\xdd" + ROUTED[14:]
    elsewhere = ROUTED[:24] + bytes.fromhex("5cbc") + ROUTED[26:30] + bytes.fromhex("14000007") + ROUTED[34:]
    via_8 = ROUTED[:24] + bytes.fromhex("64bc") + ROUTED[26:30] + bytes.fromhex("0a000207") + ROUTED[34:]
    report = covered(ROUTER, ROUTES, *((1, frame) for frame in (ROUTED, other, elsewhere, via_8)))
    assert hits(report, "transitions") == {
        "start: ETHER_TYPE_IPV4: parse_ipv4": 3,
        "start: default: accept": 1,
        "parse_ipv4: transition accept": 3,
    }
    assert report.reached("table entries") == (3, 3)
    # drop() ran directly, as a statement of the apply block, and by the miss of next_hops.
    assert hits(report, "actions")["RouterIngress.drop"] > 0
    assert hits(report, "actions")["NoAction"] == 1
    assert [report.reached(category)[0] for category in report.items] == [2, 3, 2, 3, 4, 4, 11]
    assert all(line.state == "reached" for line in report.lines["router.p4"].values())


def test_lines() -> None:
    report = covered(ROUTER, ROUTES, (1, ROUTED))
    assert state_of(report, ROUTER, "state start") == "reached"
    assert state_of(report, ROUTER, "default: accept") == "unreached"
    assert state_of(report, ROUTER, "if (!hdr.ipv4.isValid()") == "partly"
    assert state_of(report, ROUTER, "action drop") == "unreached"
    assert state_of(report, ROUTER, "action forward") == "reached"
    # It hits; that it may miss decides about the way as well.
    assert state_of(report, ROUTER, "table routes") == "partly"
    assert state_of(report, ROUTER, "table next_hops") == "reached"
    assert "core.p4" not in report.lines


def test_nothing_reached() -> None:
    report = covered(ORDERS, ORDER_COMMANDS)
    assert report.packets == 0
    assert {category: report.reached(category)[0] for category in report.items} == dict.fromkeys(report.items, 0)
    assert report.reached("table entries")[1] == 9
    assert {line.state for line in report.lines["orders.p4"].values()} == {"unreached"}


def test_orders_by_hand() -> None:
    report = covered(ORDERS, ORDER_COMMANDS, (30, bytes([1, 0])), (30, bytes([1, 210])), (30, bytes([17, 0, 0, 0])))
    # The range 16 .. 19 is one case of the source.
    assert hits(report, "transitions") == {
        "start: 16 .. 19: with_note": 1,
        "start: default: accept": 2,
        "with_note: transition accept": 1,
    }
    entries = hits(report, "table entries")
    assert entries["OrderIngress.orders hdr.order.what: 1"] == 2
    assert entries["OrderIngress.limits hdr.order.value: 200..250, meta.rounds: 0, priority 10"] == 1
    assert sum(entries.values()) == 3
    actions = hits(report, "actions")
    assert (actions["OrderIngress.send"], actions["OrderIngress.drop"], actions["OrderIngress.again"]) == (2, 2, 0)
    branches = {name: n for name, n in hits(report, "branches").items() if name.startswith("meta.rounds == 0")}
    assert branches == {"meta.rounds == 0 is true": 3, "meta.rounds == 0 is false": 0}


def test_entries_that_are_deleted_in_the_middle_still_count() -> None:
    built, sources = program(ORDERS)
    coverage = Coverage(built, sources)
    text = """
    add orders hdr.order.what:1 send(port:1) = first
    packet 30 0100
    remove first
    add orders hdr.order.what:2 send(port:2)
    packet 30 0200
    packet 30 0200
    add orders hdr.order.what:3 send(port:3)
    """
    cover_script(built, coverage, parse_stf(text, Path("test.stf")))
    assert hits(coverage.report(), "table entries") == {
        "OrderIngress.orders hdr.order.what: 1": 1,
        "OrderIngress.orders hdr.order.what: 2": 2,
        "OrderIngress.orders hdr.order.what: 3": 0,
    }


def test_several_workloads_add_up() -> None:
    built, sources = program(ORDERS)
    coverage = Coverage(built, sources)
    commands = parse_stf(ORDER_COMMANDS, Path("test.stf"))
    frames = [bytes([1, 0])] * 3
    for _ in range(2):
        cover_frames(built, coverage, 30, frames, lambda switch: switch.set_up(commands), 510)
    report = coverage.report()
    assert report.packets == 6
    assert hits(report, "table entries")["OrderIngress.orders hdr.order.what: 1"] == 6


def test_outcome_of_the_script_is_told() -> None:
    built, sources = program(ORDERS)
    script = parse_stf(ORDER_COMMANDS + "packet 30 0100\nexpect 1 0100$", Path("test.stf"))
    assert cover_script(built, Coverage(built, sources), script).passed
    wrong = parse_stf(ORDER_COMMANDS + "packet 30 0100\nexpect 2", Path("test.stf"))
    assert not cover_script(built, Coverage(built, sources), wrong).passed


def test_program_without_source_positions() -> None:
    """As p4c's JSON with its source_info taken out: names and expressions come from the program itself."""
    from gradbed.switch.insight.source import SourceMap

    built = compiled_by_p4c("stateful")
    coverage = Coverage(built, SourceMap(built.model))
    text = "packet 0 00005140 01123456 00000005 0000000000000000"
    cover_script(built, coverage, parse_stf(text, Path("test.stf")))
    report = coverage.report()
    assert report.lines == {}
    assert hits(report, "transitions")["next_kind 0x01 &&& 0xfd -> value"] == 1
    assert hits(report, "branches")["packet_out.isValid() is false"] == 1
    entries = hits(report, "table entries")
    assert [name.rsplit(" ", 1)[-1] for name in entries] == ["1", "2"]
    assert list(entries.values()) == [1, 0]


def test_percent() -> None:
    assert (percent(1, 3), percent(3, 3), percent(0, 5), percent(0, 0)) == (33.3, 100.0, 0.0, None)


def test_json() -> None:
    report = covered(ROUTER, ROUTES, (1, ROUTED))
    told = json.loads(json.dumps(report.to_json()))
    assert told["packets"] == 1
    transitions = told["categories"]["transitions"]
    assert (transitions["reached"], transitions["total"], transitions["percent"]) == (2, 3, 66.7)
    assert {item["name"]: item["hits"] for item in transitions["items"]} == hits(report, "transitions")
    number = place(ROUTER, "default: accept").rsplit(":", 1)[1]
    assert told["lines"]["router.p4"][number] == {
        "hits": 0,
        "state": "unreached",
        "missed": ["start: default: accept"],
    }


def test_text_marks_lines() -> None:
    report = covered(ROUTER, ROUTES, (1, ROUTED))
    out = io.StringIO()
    print_report(report, program(ROUTER)[1], Console(file=out, width=200, highlight=False))
    lines = out.getvalue().splitlines()
    source = ROUTER.read_text().splitlines()
    listing = lines[lines.index("router.p4") + 1 :]
    assert [line[16:] for line in listing] == [text.rstrip() for text in source]
    number = int(place(ROUTER, "action drop").rsplit(":", 1)[1])
    assert listing[number - 1].split()[:2] == ["#####", str(number)]
    assert "\x1b" not in out.getvalue()


class _Rows(HTMLParser):
    """Class and cells of each table row of the source listing; every reference to something outside."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[tuple[str, list[str]]] = []
        self.references: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.references += [value for name, value in attrs if name in ("src", "href") and value]
        if tag not in ("meta", "br"):
            self.open.append(tag)
        if tag == "tr":
            self.rows.append((values.get("class") or "", []))
        elif tag == "td" and self.rows:
            self.rows[-1][1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "td" and self.rows[-1][1]:
            self.rows[-1][1][-1] += data


@pytest.mark.parametrize("source", [ROUTER, ORDERS])
def test_html_page(source: Path) -> None:
    report = covered(source, ROUTES if source is ROUTER else ORDER_COMMANDS, (1, ROUTED))
    page = _Rows()
    page.feed(html_page(report, program(source)[1]))
    assert page.open == []
    assert page.references == []
    listing = {
        int(cells[1]): (state, cells[2]) for state, cells in page.rows if len(cells) == 3 and cells[1].isdigit()
    }
    text = source.read_text().splitlines()
    assert [listing[n][1] for n in range(1, len(text) + 1)] == text
    told = {number: state for number, (state, _) in listing.items() if state}
    assert told == {number: line.state for number, line in report.lines[source.name].items()}
