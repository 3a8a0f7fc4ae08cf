"""tshark with the project's dissector shows what Scapy's layers, or the hosts' readers, say of the same frames."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw

from gradbed.formats import aggregation, compression, shuffle
from gradbed.formats import ring as ring_format
from gradbed.formats.encoding import Form
from gradbed.formats.header import Header
from gradbed.formats.ndn import MULTICAST_MAC
from gradbed.formats.tlv import generic
from gradbed.hosts.collectives.ring import Ring
from gradbed.hosts.compressors.content import WIDTHS, Content, read, written
from gradbed.hosts.protocols.layers import datagram
from gradbed.hosts.systems.aggregation.gradient import Gradient, gradient_frame
from gradbed.hosts.systems.compression.frames import HEADER_BYTES, Route, part_frames
from gradbed.hosts.systems.compression.layers import Acknowledgement, GradientPart
from gradbed.hosts.systems.ndn.packets import VersionHead, data_frame, ethernet, interest_frame, version_frames
from gradbed.hosts.systems.shuffle.coded import Coded, coded_frame
from gradbed.hosts.systems.shuffle.coded import repair as repair_carries
from tests.unit.formats.test_wire_bytes import BUILT, DST_IP, ETHERNET, SOURCE, TEXT
from tests.unit.formats.tshark import Layers, dissected, found, needs_tshark, numbers

pytestmark = needs_tshark

BITS = 16
OF_HYPOTHESIS = settings(
    max_examples=2,
    phases=[Phase.generate],
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
"""Each example is some dozens of frames, since tshark takes a second to start; so none is made smaller either."""


def values_of(header: Header) -> st.SearchStrategy[dict[str, int]]:
    """Of all fields that are no constants, most of them at random."""
    varied = {
        field.name: st.sampled_from(list(field.words)).map(int)
        if field.words is not None and field.name == "form"
        else st.integers(0, 2**field.bits - 1)
        for field in header.fields
        if not field.constant
    }
    return st.fixed_dictionaries(varied)


LANES = st.lists(st.integers(-(2**31), 2**31 - 1), max_size=40)


def same_fields(layers: Layers, name: str, header: Header, packet: Packet) -> None:
    """Every field of the header, with its flags, is as in Scapy's layer."""
    prefix = f"gradbed.{name}"
    for field in header.fields:
        value = int(packet.getfieldval(field.name))
        assert numbers(layers, f"{prefix}.{field.name}") == [value], field.name
        if (field.words is not None and name != "part") or field.name == "flags":
            for word in field.words or ():
                told = numbers(layers, f"{prefix}.{field.name}.{str(word.name).lower()}")
                assert told == [int(bool(value & word.value))], word


@OF_HYPOTHESIS
@given(examples=st.lists(st.tuples(values_of(aggregation.GRADIENT), LANES), min_size=30, max_size=30))
def test_gradients(tmp_path: Path, examples: list[tuple[dict[str, int], list[int]]]) -> None:
    frames = [bytes(gradient_frame(**TEXT, **values, lanes=lanes)) for values, lanes in examples]
    for frame, layers in zip(frames, dissected(frames, tmp_path), strict=True):
        packet = Ether(frame)[Gradient]
        same_fields(layers, "gradient", aggregation.GRADIENT, packet)
        assert [int(value) for value in found(layers, "gradbed.gradient.lane")] == packet.lanes


@OF_HYPOTHESIS
@given(examples=st.lists(st.tuples(values_of(ring_format.RING), LANES), min_size=30, max_size=30))
def test_ring(tmp_path: Path, examples: list[tuple[dict[str, int], list[int]]]) -> None:
    frames = [bytes(datagram(Ring, **TEXT, **values, lanes=lanes)) for values, lanes in examples]
    for frame, layers in zip(frames, dissected(frames, tmp_path), strict=True):
        packet = Ether(frame)[Ring]
        same_fields(layers, "ring", ring_format.RING, packet)
        assert [int(value) for value in found(layers, "gradbed.ring.lane")] == packet.lanes


def _content(random: np.random.Generator) -> Content:
    """Of any width, with positions near each other, far away, or all of a stretch."""
    width = int(random.choice(WIDTHS))
    most = 2 ** (min(width, 63) - 1)
    count = int(random.integers(1, 120))
    codes = random.choice([-1, 1], count) if width == 1 else random.integers(-most, most, count)
    spread = int(random.choice([1, 3, 90]))
    indices = np.sort(random.choice(count * spread + 1, count, replace=False)) if spread > 1 else None
    return Content(100_000, codes, width, int(random.integers(1, 2**31)), indices, 0 if indices is not None else 17)


def test_parts_of_compressed_gradients(tmp_path: Path) -> None:
    contents = [_content(np.random.default_rng(seed)) for seed in range(60)]
    route = Route(0x0102, SOURCE, DST_IP, SOURCE.gateway_mac)
    made = [part_frames(route, written(each, HEADER_BYTES), 7, 0x03040506) for each in contents]
    frames = [frame.tobytes() for each in made for frame in each]
    forms = set()
    for frame, layers in zip(frames, dissected(frames, tmp_path), strict=True):
        packet = Ether(frame)[GradientPart]
        same_fields(layers, "part", compression.PART, packet)
        payload = np.frombuffer(bytes(packet.payload), np.uint8)
        told = read(packet.form, packet.width_bits, 1, packet.first, packet.span, packet.codes, payload, 100_000)
        assert told is not None
        places, codes = told
        at = list(range(places.start, places.stop)) if isinstance(places, slice) else places.tolist()
        assert [int(value) for value in found(layers, "gradbed.part.code")] == codes.tolist()
        assert numbers(layers, "gradbed.part.position") == at
        forms.add(packet.form)
    assert forms == {Form.DENSE, Form.BITMAP, Form.COORDINATE}


@OF_HYPOTHESIS
@given(examples=st.lists(values_of(compression.ACKNOWLEDGEMENT), min_size=30, max_size=30))
def test_acknowledgements(tmp_path: Path, examples: list[dict[str, int]]) -> None:
    frames = [bytes(datagram(Acknowledgement, **TEXT, **{**each, "flags": each["flags"] | 1})) for each in examples]
    for frame, layers in zip(frames, dissected(frames, tmp_path), strict=True):
        packet = Ether(frame)[Acknowledgement]
        same_fields(layers, "acknowledgement", compression.ACKNOWLEDGEMENT, packet)


CARRIED: Mapping[str, Callable[[dict[str, int]], bytes]] = {
    "scheduled": lambda values: b"\xab" * (1 + values["job"] % 9),
    "repair": lambda values: repair_carries([(values["job"], 5), (values["transmission"], 6)], b"\xcd\xef"),
    "request": lambda values: struct.pack(">I", values["transmission"]) + b"\xa0" + bytes(62) + b"\x01",
}


@OF_HYPOTHESIS
@given(
    examples=st.lists(
        st.tuples(st.sampled_from(list(CARRIED)), values_of(shuffle.CODED), st.integers(0, 2**BITS - 1)),
        min_size=30,
        max_size=30,
    )
)
def test_coded_packets(tmp_path: Path, examples: list[tuple[str, dict[str, int], int]]) -> None:
    flags = {"scheduled": 8, "repair": 1, "request": 2}
    frames = [
        bytes(
            coded_frame(
                **TEXT, **{**values, "flags": flags[kind]}, bits=BITS, bit_string=bits, carries=CARRIED[kind](values)
            )
        )
        for kind, values, bits in examples
    ]
    told = dissected(frames, tmp_path, f"gradbed.coded.bits:{BITS}")
    for frame, layers, (kind, values, bits) in zip(frames, told, examples, strict=True):
        packet = Coded(bytes(Ether(frame)[UDP].payload))
        same_fields(layers, "coded", shuffle.CODED, packet)
        assert numbers(layers, "gradbed.coded.receiver") == [i for i in range(BITS) if bits >> i & 1]
        if kind == "repair":
            assert numbers(layers, "gradbed.coded.components") == [2]
            assert numbers(layers, "gradbed.coded.component.sample") == [values["job"], values["transmission"]]
            assert numbers(layers, "gradbed.coded.component.fragment") == [5, 6]
            assert found(layers, "gradbed.coded.data") == ["cd:ef"]
        elif kind == "request":
            assert numbers(layers, "gradbed.coded.request.sample") == [values["transmission"]]
            first = values["fragment"]
            assert numbers(layers, "gradbed.coded.request.fragment") == [first, first + 2, first + 511]
        else:
            assert found(layers, "gradbed.coded.data") == [":".join(["ab"] * (1 + values["job"] % 9))]


def test_ndn(tmp_path: Path) -> None:
    name = (generic("t-1"), generic(b"a/b\x00"))
    lanes = np.arange(-100, 100, dtype=np.int32)[None]
    (gradient,) = version_frames(ETHERNET, name, 700, VersionHead(0.5, (3, -4), last=True), lanes)
    frames = [
        interest_frame(ethernet(MULTICAST_MAC), name, 0x01020304, 5000, must_be_fresh=True),
        data_frame(ETHERNET, name),
        gradient[0].tobytes(),
    ]
    interest, data, carried = dissected(frames, tmp_path)
    assert [numbers(each, "gradbed.ndn.type") for each in (interest, data, carried)] == [[5], [6], [6]]
    assert found(interest, "gradbed.ndn.name") == found(data, "gradbed.ndn.name") == ["/t-1/a%2Fb%00"]
    assert found(interest, "gradbed.ndn.component") == ["t-1", "a%2Fb%00"]
    assert numbers(interest, "gradbed.ndn.nonce") == [0x01020304]
    assert numbers(interest, "gradbed.ndn.lifetime_ms") == [5000]
    assert (numbers(interest, "gradbed.ndn.must_be_fresh"), numbers(interest, "gradbed.ndn.hop_limit")) == ([1], [32])
    assert found(carried, "gradbed.ndn.name") == ["/t-1/a%2Fb%00/v=700/seg=0"]
    assert (numbers(carried, "gradbed.ndn.version"), numbers(carried, "gradbed.ndn.segment")) == ([700], [0])
    assert found(carried, "gradbed.ndn.loss") == ["0.5"]
    assert [int(value) for value in found(carried, "gradbed.ndn.scale")] == [3, -4, 0, 0]
    assert numbers(carried, "gradbed.ndn.last_version") == [1]
    assert [int(value) for value in found(carried, "gradbed.ndn.lane")] == lanes[0].tolist()


def of_tcp(payload: bytes) -> bytes:
    addresses = {"src": TEXT["src_ip"], "dst": TEXT["dst_ip"]}
    return bytes(
        Ether() / IP(**addresses) / TCP(sport=40000, dport=compression.TCP_PORT, flags="PA", seq=1) / payload
    )


def test_other_ways_to_be_recognised(tmp_path: Path) -> None:
    """By the destination port, as switches do it, and by a trailer at the end; on TCP each part behind its length."""
    gradient: dict[str, Any] = {**TEXT, "job": 9, "lanes": [1]}
    reply = Ether(bytes(gradient_frame(**gradient)))
    reply[UDP].dport, reply[UDP].sport = 5000, aggregation.GRADIENT_PORT
    foreign = Ether(bytes(gradient_frame(**gradient)))
    foreign[Gradient].version = 7
    record = BUILT["part, record"]()
    frames = [
        bytes(gradient_frame(**gradient, switch_number=53)),  # which is DNS's port
        bytes(reply),
        bytes(foreign),
        bytes(
            Ether() / IP(dst=TEXT["dst_ip"]) / UDP(sport=9, dport=5201) / Raw(bytes(20) + BUILT["trailer, numpy"]())
        ),
        of_tcp(record + record),
    ]
    to_dns, from_port, other_version, trailer, stream = dissected(frames, tmp_path)
    assert numbers(to_dns, "gradbed.gradient.switch_number") == [53] and "dns" not in to_dns
    # Wireshark itself also looks at the source port, where nothing else is known.
    assert numbers(from_port, "gradbed.gradient.job") == [9]
    assert not any(key.startswith("gradbed") for key in other_version)
    assert [numbers(trailer, f"gradbed.trailer.{name}") for name in ("source", "receiver", "flow", "warm_up")] == [
        [0x8001], [0x0203], [0x04050607], [1],
    ]  # fmt: skip
    assert numbers(trailer, "gradbed.trailer.sent_ns") == [0x1112131415161718]
    assert [int(value) for value in found(stream, "gradbed.part.code")] == [1, -2, 3] * 2
    assert numbers(stream, "gradbed.part.record_length") == [len(record) - 2] * 2


def test_what_is_cut_off_is_no_error_of_the_script(tmp_path: Path) -> None:
    """Frames that end in the middle: with what is there, or as data."""
    whole = [
        BUILT[name]() for name in ("gradient, scapy", "part, scapy", "repair, scapy", "request, scapy", "interest")
    ]
    frames = [frame[:length] for frame in whole for length in range(42, len(frame), 5)]
    for layers in dissected(frames, tmp_path, f"gradbed.coded.bits:{BITS}"):
        assert "Lua Error" not in str(layers)
