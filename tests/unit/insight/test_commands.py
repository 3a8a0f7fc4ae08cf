"""gradbed p4 trace and gradbed p4 coverage, as a person gives them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from scapy.utils import PcapWriter

from gradbed.cli.p4.commands import app
from gradbed.common.errors import UserError
from gradbed.switch.engine import Engine
from gradbed.switch.server import P4RuntimeServer
from tests.unit.insight.test_p4runtime_state import push
from tests.unit.insight.tracing import ORDER_COMMANDS, ORDERS, ROUTED, ROUTER, ROUTES
from tests.unit.p4runtime.client import Client

HEX = ROUTED.hex(" ")


def gradbed(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> str:
    """Standard output of gradbed p4 ..."""
    assert app([str(argument) for argument in arguments], standalone_mode=False) == 0
    return capsys.readouterr().out


@pytest.fixture
def routes(tmp_path: Path) -> Path:
    path = tmp_path / "routes.stf"
    path.write_text(ROUTES)
    return path


@pytest.fixture
def orders(tmp_path: Path) -> Path:
    path = tmp_path / "orders.stf"
    path.write_text(ORDER_COMMANDS)
    return path


def capture(path: Path, *frames: bytes, link_type: int = 1) -> Path:
    with PcapWriter(str(path), linktype=link_type) as writer:
        for frame in frames:
            writer.write(frame)
    return path


def test_trace_of_a_packet_in_hexadecimal(capsys: pytest.CaptureFixture[str], routes: Path) -> None:
    out = gradbed(capsys, "trace", ROUTER, HEX, "--port", "1", "--entries", routes)
    assert "hit: hdr.ipv4.dst_addr: 10.0.1.0/24" in out
    assert out.splitlines()[-1].strip() == f"Sent: port 3 ({len(ROUTED)} bytes)"


def test_trace_as_json(capsys: pytest.CaptureFixture[str], routes: Path) -> None:
    told = json.loads(gradbed(capsys, "trace", ROUTER, HEX, "-e", routes, "--json"))
    assert [stage["name"] for stage in told["stages"]] == ["parse", "ingress", "egress", "deparse"]
    assert told["outputs"][0]["port"] == 3


@pytest.mark.parametrize(("more", "before"), [([], 0), (["--replay"], 2)])
def test_trace_of_a_packet_of_a_capture_file(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, orders: Path, more: list[str], before: int
) -> None:
    pcap = capture(tmp_path / "in.pcap", bytes([5, 1]), bytes([5, 1]), bytes([5, 1]))
    told = json.loads(gradbed(capsys, "trace", ORDERS, "--pcap", pcap, "--index", "3", "-e", orders, "--json", *more))
    table = next(event for event in told["stages"][1]["events"] if event["kind"] == "table")
    uses = [use for statement in table["statements"] for use in statement["cells"]]
    assert [(use["old"], use["new"]) for use in uses] == [(before, None), (before, before + 1)]


def test_trace_of_a_switch_that_runs(capsys: pytest.CaptureFixture[str]) -> None:
    with Engine(manual_clock=True) as engine:
        server = P4RuntimeServer({1: engine.add_switch(1)}, ["127.0.0.1:0"])
        server.start()
        address = f"127.0.0.1:{server.ports[0]}"
        client = Client(address)
        client.become_primary()
        push(client, ROUTER)
        with_source = gradbed(capsys, "trace", ROUTER, HEX, "--target", address)
        alone = gradbed(capsys, "trace", HEX, "--target", address, "--device-id", "1")
        client.close()
        server.stop()
    assert "if (!hdr.ipv4.isValid()" in with_source and "if (!hdr.ipv4.isValid()" in alone
    assert "miss: default action" in alone


def test_trace_of_bmv2_json(capsys: pytest.CaptureFixture[str], tmp_path: Path, routes: Path) -> None:
    from gradbed.switch.compiler import compile_p4

    compiled = compile_p4(ROUTER)
    path, p4info = tmp_path / "router.json", tmp_path / "router.p4info.txt"
    path.write_text(compiled.json_text)
    p4info.write_text(compiled.p4info_text)
    plan = tmp_path / "plan.json"
    plan.write_text('{"program": "router", "entries": []}')
    out = gradbed(capsys, "trace", path, HEX, "-e", routes, "--source", ROUTER.parent)
    assert "meta.next_hop = next_hop;" in out
    assert "miss" in gradbed(capsys, "trace", path, HEX, "-e", plan, "--p4info", p4info)


def test_coverage_of_a_capture_file(capsys: pytest.CaptureFixture[str], tmp_path: Path, routes: Path) -> None:
    pcap = capture(tmp_path / "in.pcap", ROUTED, ROUTED)
    told = json.loads(gradbed(capsys, "coverage", ROUTER, "--pcap", pcap, "-e", routes, "--json"))
    assert told["packets"] == 2
    assert told["categories"]["table entries"]["percent"] == 66.7


def test_coverage_of_stf_files_with_a_page(capsys: pytest.CaptureFixture[str], tmp_path: Path, routes: Path) -> None:
    tests = []
    for number in (1, 2):
        tests.append(tmp_path / f"test{number}.stf")
        tests[-1].write_text(f"{ROUTES}\npacket 1 {HEX}\nexpect 3\n")
    page = tmp_path / "coverage.html"
    out = gradbed(capsys, "coverage", ROUTER, "--stf", tests[0], "--stf", tests[1], "--html", page)
    assert out.startswith("router.p4: reached by 2 packets\n")
    assert any(line.split() == ["parser", "states", "2", "of", "2", "100.0", "%"] for line in out.splitlines())
    assert page.read_text().startswith("<!DOCTYPE html>")


def test_coverage_tells_of_a_test_that_fails(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    test = tmp_path / "test.stf"
    test.write_text(f"packet 1 {HEX}\nexpect 3\n")
    assert app(["coverage", str(ROUTER), "--stf", str(test)], standalone_mode=False) == 0
    assert f"note: the test fails: {test}:2:" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["trace", "absent.p4", "00"], "no such P4 program: absent.p4"),
        (["trace", "absent.json", "00"], "cannot read absent.json"),
        (["trace", ORDERS], "give one packet"),
        (["trace"], "give one packet"),
        (["trace", ORDERS, "0g"], "not hexadecimal"),
        (["trace", ORDERS, "012"], "not hexadecimal"),
        (["trace", ORDERS, ""], "1 to"),
        (["trace", ORDERS, "00" * 65_554], "1 to 65553"),
        (["trace", ORDERS, "0100", "--port", "511"], "no port 511"),
        (["trace", ORDERS, "0100", "--cpu-port", "600"], "CPU port"),
        (["trace", ORDERS, "0100", "--pcap", "x.pcap"], "give one packet"),
        (["trace", ORDERS, "--pcap", "absent.pcap"], "absent.pcap"),
        (["trace", ORDERS, "--pcap", ORDERS], "no capture file"),
        (["trace", ORDERS, "0100", "-e", "absent.stf"], "absent.stf"),
        (["trace", "0100", "--target", "127.0.0.1:1"], "UNAVAILABLE"),
        (["coverage", ORDERS], "give packets"),
        (["coverage", ORDERS, "--stf", "absent.stf"], "absent.stf"),
        (["coverage", ORDERS, "--stf", "{orders}", "-e", "{orders}"], "--entries goes with --pcap"),
        (["coverage", "absent.p4", "--stf", "{orders}"], "absent.p4"),
        (["coverage", ORDERS, "--stf", "{orders}", "--html", "/absent/page.html"], "/absent/page.html"),
        (["coverage", ORDERS, "--stf", "{orders}", "--port", "3"], "--port goes with --pcap"),
        (["trace", ORDERS, "0100", "-e", "{wrong}"], "wrong.stf:1"),
    ],
)
def test_mistakes_are_told_in_one_line(arguments: list[str | Path], words: str, orders: Path, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.stf"
    wrong.write_text("add oders hdr.order.what:1 send(port:1)")
    given = [str(argument).format(orders=orders, wrong=wrong) for argument in arguments]
    with pytest.raises(UserError) as caught:
        app(given, standalone_mode=False)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_capture_without_ethernet_and_number_out_of_range(tmp_path: Path) -> None:
    raw = capture(tmp_path / "raw.pcap", b"\x45" + bytes(19), link_type=101)
    with pytest.raises(UserError, match="link type is 101"):
        app(["trace", str(ORDERS), "--pcap", str(raw)], standalone_mode=False)
    two = capture(tmp_path / "two.pcap", bytes([1, 0]), bytes([1, 0]))
    with pytest.raises(UserError, match="has 2 packets, no packet 3"):
        app(["trace", str(ORDERS), "--pcap", str(two), "--index", "3"], standalone_mode=False)


def test_packet_that_goes_round_for_ever(tmp_path: Path) -> None:
    source = tmp_path / "circle.p4"
    text = ORDERS.read_text()
    assert "meta.rounds == 0) {\n            meta.rounds = 9;" in text
    source.write_text(
        text.replace("meta.rounds == 0) {\n            meta.rounds = 9;", "meta.rounds == 0) {").replace(
            "std.egress_port == 6 && std.instance_type == 0", "std.egress_port == 6"
        )
    )
    entries = tmp_path / "entries.stf"
    entries.write_text("add orders hdr.order.what:6 send(port:6)")
    with pytest.raises(UserError, match="round in circles") as caught:
        app(["trace", str(source), "0600", "-e", str(entries)], standalone_mode=False)
    assert "\n" not in str(caught.value)
