"""One switch with p4src/ndn.p4 on the interfaces of the kernel: the same packets on our switch and on BMv2, by our
compiler and by p4c, where they are installed. In more detail, on our switch alone: tests/unit/ndn."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gradbed.controller.planning.plan import SwitchPlan
from gradbed.controller.systems.ndn.entries import all_sets_of, fib_entry
from gradbed.formats.tlv import CONTENT, generic, name_tlv, tlv
from gradbed.hosts.systems.ndn.packets import (
    VersionHead,
    data_frame,
    ethernet,
    fragment_name,
    interest_frame,
    version_frames,
)
from tests.emulation.sandboxed import in_sandbox
from tests.p4.switch_under_test import on_every_pair, switch_under_test

pytestmark = pytest.mark.root

LANES = 64
PORTS = 4
PUBLISHER = 1
DEFINES = {"LANES": str(LANES), "CONTENTS": "64", "SUBSCRIPTIONS": "64", "PENDING": "64", "EPOCH_SHIFT": "40"}
HEADER = ethernet(bytes.fromhex("020000000001"))


def name(*parts: str) -> tuple[bytes, ...]:
    return tuple(generic(part) for part in parts)


def interest(*parts: str, nonce: int = 1) -> bytes:
    return interest_frame(HEADER, name(*parts), nonce, 60_000)


def gradient(*parts: str, version: int, lane: int) -> bytes:
    lanes = np.full((1, LANES), lane, np.int32)
    (frames,) = version_frames(HEADER, name(*parts), version, VersionHead(0.25), lanes)
    return frames[0].tobytes()


@on_every_pair
@in_sandbox
def test_packets(kind: str, compiler: str, tmp_path: Path) -> None:
    entries, groups = all_sets_of(range(1, PORTS + 1))
    longest = (b"a", b"b" * 32, b"c", b"d", b"e", b"f", b"g", b"h")
    routes = [fib_entry((b"t", b"p"), PUBLISHER), fib_entry((b"a",), 4), fib_entry(longest, 4)]
    plan = SwitchPlan.of("ndn", [*entries, *routes], groups)
    with switch_under_test(kind, compiler, "ndn", DEFINES, plan, PORTS, tmp_path) as switch:
        # Subscriptions.
        insertion, acknowledgement = interest("insert", "p", "t"), data_frame(HEADER, name("distribute", "p", "t"))
        hops_less = insertion[:-1] + bytes([insertion[-1] - 1])
        assert switch.exchange(2, insertion) == {PUBLISHER: [hops_less]}
        assert switch.exchange(3, insertion) == {}
        assert switch.exchange(PUBLISHER, acknowledgement) == {2: [acknowledgement], 3: [acknowledgement]}
        assert switch.exchange(4, insertion) == {4: [acknowledgement]}
        deletion = interest("delete", "p", "t")
        assert switch.exchange(3, deletion) == {3: [data_frame(HEADER, name("delete", "p", "t"))]}

        # A push to those who are left, and a probe for it.
        push = gradient("distribute", "p", "t", version=300, lane=-7)
        assert switch.exchange(PUBLISHER, push) == {2: [push], 4: [push]}
        # Once, and from where the publisher is.
        assert switch.exchange(PUBLISHER, push) == {}
        assert switch.exchange(2, gradient("distribute", "p", "t", version=301, lane=1)) == {}
        overtaken = gradient("distribute", "p", "t", version=299, lane=1)
        assert switch.exchange(PUBLISHER, overtaken) == {}
        wanted = fragment_name(name("t", "p"), 300, 0)
        probe = interest_frame(HEADER, wanted, 1, 60_000)
        assert switch.exchange(3, probe) == {3: [gradient("t", "p", version=300, lane=-7)]}

        # An ordinary name of the longest kind, with a repetition and a duplicate.
        parts = ("a", "b" * 32, "c", "d", "e", "f", "g", "h")
        (out,) = switch.exchange(2, interest(*parts, nonce=1)).items()
        assert out[0] == 4
        duplicate = interest(*parts, nonce=1)
        nack = tlv(0x64, bytes.fromhex("fd032005fd03210164") + tlv(0x50, duplicate[len(HEADER) :]))
        assert switch.exchange(3, duplicate) == {3: [HEADER + nack]}
        assert switch.exchange(3, interest(*parts, nonce=2)) == {}
        data = data_frame(HEADER, name(*parts), tlv(CONTENT, bytes(300)) + bytes.fromhex("16031b01c81700"))
        assert switch.exchange(4, data) == {2: [data], 3: [data]}
        assert switch.exchange(4, data) == {}

        # In an LpPacket, for any longer name; by a digest; both are answered, once.
        asked = name_tlv(name(*parts[:3])) + b"\x21\0" + tlv(0x0A, b"\0\0\0\7")
        bare = HEADER + tlv(5, asked)
        assert switch.exchange(2, HEADER + tlv(0x64, tlv(0x50, tlv(5, asked)))) == {4: [bare]}
        by_digest = HEADER + tlv(5, name_tlv((*name(*parts[:4]), tlv(1, bytes(32)))) + tlv(0x0A, b"\0\0\0\x08"))
        assert switch.exchange(3, by_digest) == {4: [by_digest]}
        longer = data_frame(HEADER, name(*parts[:4]))
        assert switch.exchange(4, longer) == {2: [longer], 3: [longer]}
        assert switch.exchange(4, longer) == {}

        # Without a nonce, with what may be ignored, and with hops that are used up.
        rest = tlv(0x0C, b"\x64") + tlv(0x22, b"\x05") + tlv(0x24, b"xyz") + tlv(0x2E, bytes(300))
        (out,) = switch.exchange(2, HEADER + tlv(5, name_tlv((*name("t", "p"), *name("y"))) + rest)).items()
        assert out[0] == PUBLISHER
        (frame,) = out[1]
        head = HEADER + tlv(5, name_tlv(name("t", "p", "y")) + tlv(0x0A, bytes(4)) + rest)[: -len(rest) - 4]
        assert (frame[: len(head)], frame[len(head) + 4 :]) == (head, rest.replace(b"\x22\1\5", b"\x22\1\4"))
        assert switch.exchange(2, interest("t", "p", "z")[:-1] + b"\1") == {}

        # What is no packet.
        for frame in (HEADER + b"\x05\xff", insertion[:-4], HEADER + tlv(5, tlv(7, tlv(8, bytes(33))))):
            assert switch.exchange(2, frame) == {}
        dropped = {
            full.rsplit(".", 1)[-1]: cells[0].packets
            for full, cells in switch.southbound.counters("s1").items()
            if "dropped_" in full and cells[0].packets
        }
        assert dropped == {
            "dropped_aggregated": 2, "dropped_duplicate": 1, "dropped_unsolicited": 2, "dropped_not_shortest": 1,
            "dropped_truncated": 1, "dropped_component_too_long": 1, "dropped_overtaken": 2,
            "dropped_not_upstream": 1, "dropped_hop_limit": 1,
        }  # fmt: skip
