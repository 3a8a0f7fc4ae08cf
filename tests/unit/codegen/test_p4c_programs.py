"""What p4c 1.2.4.2 makes of p4c/router.p4 and p4c/stateful.p4, run packet by packet."""

from __future__ import annotations

import functools
import json
import random
import struct
import zlib
from pathlib import Path

from gradbed.switch.codegen import BuiltProgram, build_program
from gradbed.switch.device import ActionCall, GroupReference, KeyMatch
from tests.unit.codegen.bare_switch import BareSwitch, field_bits
from tests.unit.codegen.test_calculations import crc_bitwise, csum16

PROGRAMS = Path(__file__).parent / "p4c"
DROP = 511


@functools.cache
def built(name: str) -> BuiltProgram:
    return build_program(json.loads((PROGRAMS / f"{name}.json").read_text()))


def ipv4(
    source: int, destination: int, ttl: int = 64, protocol: int = 17, ihl: int = 5, good_checksum: bool = True
) -> bytes:
    head = struct.pack(">BBHHHBBHII", 0x40 | ihl, 0, 40, 1, 0, ttl, protocol, 0, source, destination)
    checksum = csum16(head) ^ (0 if good_checksum else 0x55)
    return head[:10] + struct.pack(">H", checksum) + head[12:]


def frame(packet: bytes, ports: tuple[int, int] = (1000, 53)) -> bytes:
    ethernet = bytes.fromhex("020000000001 020000000002 0800")
    return ethernet + packet + struct.pack(">HHHH", *ports, 20, 0) + b"twelve bytes"


HOST_A, HOST_B = 0x0A000001, 0x0A010002


def router() -> BareSwitch:
    switch = BareSwitch(built("router"))
    state = switch.state
    for prefix, bits, nexthop in ((0x0A000000, 8, 1), (0x0A010000, 16, 2)):
        state.tables.insert(
            "RouterIngress.routes",
            [KeyMatch(prefix, prefix_bits=bits)],
            ActionCall("RouterIngress.set_nexthop", (nexthop,)),
        )
    for member in range(4):
        call = ActionCall("RouterIngress.forward", (20 + member, 0x0200000000A0 + member))
        state.profiles.write_member("RouterIngress.ecmp", member, call)
    state.profiles.write_group("RouterIngress.ecmp", 1, [0, 1, 2, 3])
    state.tables.insert("RouterIngress.nexthops", [KeyMatch(2)], GroupReference(1))
    state.tables.insert(
        "RouterIngress.nexthops", [KeyMatch(1)], ActionCall("RouterIngress.forward", (7, 0x020000000077))
    )
    return switch


def test_router_forwards_by_the_longest_prefix() -> None:
    switch = router()
    out = switch.through(frame(ipv4(HOST_A, 0x0A020003)), port=3)
    assert out.std.egress_spec != DROP and out.std.checksum_error == 0
    assert out.std.egress_port == 7
    wanted = bytes.fromhex("020000000077 020000000001 0800") + frame(ipv4(HOST_A, 0x0A020003, ttl=63))[14:]
    assert out.frame == wanted
    assert switch.state.counters.read("RouterIngress.port_counter", 3) == (1, len(wanted))


def test_router_spreads_flows_by_crc16() -> None:
    switch = router()
    seen = set()
    rng = random.Random(7)
    for _ in range(32):
        source, destination = rng.getrandbits(32), 0x0A010000 | rng.getrandbits(16)
        flow = struct.pack(">II", source, destination)
        wanted = 20 + crc_bitwise(flow, 16, 0x8005, True) % 4
        out = switch.through(frame(ipv4(source, destination)))
        assert out.std.egress_port == wanted
        seen.add(wanted)
    assert seen == {20, 21, 22, 23}


def test_router_drops_what_it_should() -> None:
    switch = router()
    bad = [
        frame(ipv4(HOST_A, 0x0B000001)),
        frame(ipv4(HOST_A, HOST_B, ttl=1)),
        frame(ipv4(HOST_A, HOST_B, good_checksum=False)),
        frame(ipv4(HOST_A, HOST_B, ihl=4)),
        frame(ipv4(HOST_A, HOST_B))[:30],
        frame(ipv4(HOST_A, HOST_B))[:12] + b"\x86\xdd" + bytes(60),
    ]
    for data in bad:
        assert switch.ingress(switch.parse(switch.new(data))).std.egress_spec == DROP
    errors = [switch.parse(switch.new(data)).std for data in bad]
    assert [e.checksum_error for e in errors] == [0, 0, 1, 0, 0, 0]
    assert [e.parser_error for e in errors] == [0, 0, 0, 4, 1, 0]


def test_router_access_list() -> None:
    switch = router()
    state = switch.state
    everything = KeyMatch(0, mask=0)

    def rule(action: str, arguments: tuple[int, ...], low: int, high: int, priority: int) -> int:
        key = [everything, KeyMatch(HOST_A, mask=0xFFFFFF00), KeyMatch(low, high=high), KeyMatch(17)]
        return state.tables.insert("RouterIngress.acl", key, ActionCall(action, arguments), priority)

    rule("RouterIngress.deny", (), 0, 65535, 1)
    rule("RouterIngress.permit", (9,), 50, 60, 2)
    mirror = rule("RouterIngress.mirror", (), 53, 53, 3)

    def run(port: int) -> object:
        return switch.ingress(switch.parse(switch.new(frame(ipv4(HOST_A, HOST_B), (1, port)))))

    assert run(80).std.egress_spec == DROP
    assert run(55).std.egress_spec in range(20, 24)
    mirrored = run(53)
    assert (mirrored.requests.clone, mirrored.requests.clone_session, mirrored.requests.clone_field_list) == (
        1,
        100,
        1,
    )
    state.tables.delete("RouterIngress.acl", mirror)
    assert run(53).requests.clone == 0


def test_router_truncates_and_marks_clones_in_egress() -> None:
    switch = router()
    packet = switch.parse(switch.new(frame(ipv4(HOST_A, HOST_B))))
    packet.std.instance_type = 1
    out = switch.deparse(switch.egress(packet))
    assert (out.requests.truncate, out.requests.truncate_length_bytes) == (1, 128)
    assert out.frame[12:14] == b"\x88\xb5"


# ---- stateful.p4: labels[3], option with varbit, value; port 255 is the controller's ----


def value(kind: int, key: int, amount: int, total: int = 0) -> bytes:
    return struct.pack(">B3siQ", kind, key.to_bytes(3, "big"), amount, total)


def label(number: int, last: bool) -> bytes:
    return field_bits([(number, 20), (0, 3), (last, 1), (64, 8)])


def test_stateful_sums_by_key() -> None:
    switch = BareSwitch(built("stateful"))
    index = zlib.crc32(field_bits([(0x123456, 24), (5, 20), (0, 4)])) % 1024
    total = 0
    for amount in (5, -3, 2**31 - 1):
        out = switch.through(label(5, False) + label(6, True) + value(1, 0x123456, amount) + b"rest")
        total = (total + amount % 2**32) % 2**64
        # labels[0] was popped; labels[0] is valid still, so egress recirculates and leaves the amount alone.
        assert out.frame == label(6, True) + value(1, 0x123456, amount, total) + b"rest"
        assert (out.requests.recirculate, out.requests.recirculate_field_list) == (1, 1)
        assert out.std.mcast_grp == 6
    assert switch.state.registers.read("StatefulIngress.totals", index) == total
    assert switch.state.registers.read("StatefulIngress.seen", index) == 1
    assert switch.digests == [(1, [0x123456, 0])]


def test_stateful_saturates_in_egress() -> None:
    switch = BareSwitch(built("stateful"))
    packet = switch.ingress(switch.parse(switch.new(label(5, True) + value(1, 1, -(2**31) + 3))))
    packet.std.egress_rid = 9
    assert switch.deparse(switch.egress(packet)).frame[:8] == value(1, 1, -(2**31))[:8]


def test_stateful_answers_queries_and_obeys_the_controller() -> None:
    switch = BareSwitch(built("stateful"))
    packet = switch.ingress(switch.parse(switch.new(label(5, True) + value(2, 1, 1), port=3)))
    assert packet.std.egress_spec == 255
    assert switch.deparse(packet).frame[:2] == field_bits([(3, 9), (2, 7)])
    out = switch.ingress(
        switch.parse(switch.new(field_bits([(77, 9), (0, 7)]) + label(5, True) + value(2, 1, 1), port=255))
    )
    assert out.std.egress_spec == 77
    assert switch.deparse(out).frame == label(5, True) + value(2, 1, 1)


def test_stateful_options_by_value_set() -> None:
    switch = BareSwitch(built("stateful"))
    option = bytes([0x42, 3]) + bytes(range(12))
    data = label(5, True) + option + value(1, 1, 1)
    assert switch.ingress(switch.parse(switch.new(data))).std.egress_spec == DROP
    switch.state.value_sets.write("StatefulParser.option_kinds", [(0x42, 0xFF)])
    out = switch.through(data)
    assert out.frame == option + value(1, 1, 1, 1)
    short = switch.parse(switch.new(data[:10]))
    assert short.std.parser_error == 1


def test_stateful_label_stack_overflow() -> None:
    switch = BareSwitch(built("stateful"))
    packet = switch.parse(switch.new(b"".join(label(i, False) for i in range(4)) + value(1, 1, 1)))
    assert packet.std.parser_error == 3
