"""Packet-in, packet-out and stream errors."""

from __future__ import annotations

import pytest
from finsy.proto import p4r, stratum
from google.protobuf import any_pb2

from gradbed.switch.p4runtime.packet_io import ControllerHeader, HeaderField
from gradbed.switch.p4runtime.status import StatusCode
from gradbed.switch.p4runtime.values import NumberCodec
from gradbed.switch.server.service import PENDING_MESSAGES
from tests.unit.p4runtime.client import Client, Stream
from tests.unit.p4runtime.fake_device import FakeDevice


def metadata(*values: bytes) -> list:
    return [p4r.PacketMetadata(metadata_id=i, value=value) for i, value in enumerate(values, 1)]


def test_packet_out(primary: Stream, device: FakeDevice) -> None:
    primary.send(packet=p4r.PacketOut(payload=b"frame", metadata=metadata(b"\x01\x02", b"\x00")))
    primary.send(packet=p4r.PacketOut(payload=b"other", metadata=reversed(metadata(b"\x03", b"\x7f"))))
    primary.send(packet=p4r.PacketOut())
    assert primary.next().error.canonical_code == StatusCode.INVALID_ARGUMENT
    # 9 bits of port, 7 of padding.
    assert device.sent == [b"\x81\x00frame", b"\x01\xffother"]


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        (metadata(b"\x01"), StatusCode.INVALID_ARGUMENT),
        (metadata(b"\x01", b"\x00", b"\x00"), StatusCode.INVALID_ARGUMENT),
        (metadata(b"\x01", b"\x00") + metadata(b"\x01"), StatusCode.INVALID_ARGUMENT),
        (metadata(b"\x02\x00", b"\x00"), StatusCode.OUT_OF_RANGE),
        (metadata(b"\x01", b""), StatusCode.INVALID_ARGUMENT),
    ],
)
def test_malformed_packet_out(primary: Stream, device: FakeDevice, wrong, code: StatusCode) -> None:
    packet = p4r.PacketOut(payload=b"frame", metadata=wrong)
    primary.send(packet=packet)
    error = primary.next().error
    assert error.canonical_code == code and error.message
    assert error.packet_out.packet_out == packet
    assert device.sent == []


def test_only_the_primary_sends_packets(client: Client, device: FakeDevice) -> None:
    packet = p4r.PacketOut(payload=b"frame", metadata=metadata(b"\x01", b"\x00"))
    stream = client.stream()
    stream.send(packet=packet)
    assert stream.next().error.canonical_code == StatusCode.PERMISSION_DENIED
    stream.arbitrate(0)
    stream.next()
    stream.send(packet=packet)
    assert stream.next().error.canonical_code == StatusCode.PERMISSION_DENIED
    assert device.sent == []


def test_packet_out_before_a_pipeline(bare_client: Client) -> None:
    stream = bare_client.become_primary()
    stream.send(packet=p4r.PacketOut(payload=b"frame"))
    assert stream.next().error.canonical_code == StatusCode.FAILED_PRECONDITION


def test_packet_in_goes_to_the_primary(primary: Stream, bare_client: Client, device: FakeDevice) -> None:
    backup = bare_client.stream()
    backup.arbitrate(0)
    backup.next()
    device.packet_in(b"")  # too short for the header: dropped
    device.packet_in(b"\x81\x05frame")
    packet = primary.next().packet
    assert packet.payload == b"frame"
    assert list(packet.metadata) == metadata(b"\x01\x02", b"\x05")
    assert backup.silent()


def test_packet_in_filter_of_a_role(client: Client, device: FakeDevice) -> None:
    config = any_pb2.Any()
    wanted = stratum.P4RoleConfig.PacketFilter(metadata_id=2, value=b"\x05")
    config.Pack(stratum.P4RoleConfig(receives_packet_ins=True, packet_in_filter=wanted))
    stream = client.stream()
    stream.arbitrate(1, role=p4r.Role(name="punted", config=config))
    stream.next()
    device.packet_in(b"\x81\x04no")
    device.packet_in(b"\x81\x05yes")
    assert stream.next().packet.payload == b"yes"


def test_many_packets_arrive_in_order(primary: Stream, device: FakeDevice) -> None:
    count = PENDING_MESSAGES // 2
    for i in range(count):
        device.packet_in(b"\x00\x00" + i.to_bytes(4, "big"))
    assert [int.from_bytes(primary.next().packet.payload, "big") for _ in range(count)] == list(range(count))


def test_other_stream_messages(bare_client: Client) -> None:
    stream = bare_client.stream()
    ack = p4r.DigestListAck(digest_id=1, list_id=2)
    stream.send(digest_ack=ack)
    error = stream.next().error
    assert (error.canonical_code, error.digest_list_ack.digest_list_ack) == (StatusCode.PERMISSION_DENIED, ack)
    stream.send(other=any_pb2.Any(type_url="x"))
    error = stream.next().error
    assert (error.canonical_code, error.other.other.type_url) == (StatusCode.UNIMPLEMENTED, "x")
    stream.send()
    assert stream.next().error.WhichOneof("details") == "other"


def test_no_controller_header() -> None:
    header = ControllerHeader(())
    assert header.frame(p4r.PacketOut(payload=b"x")) == b"x"
    assert header.packet_in(b"x") == p4r.PacketIn(payload=b"x")


def test_header_of_broken_bytes() -> None:
    with pytest.raises(ValueError, match="9 bits"):
        ControllerHeader([HeaderField(1, "port", 9, NumberCodec(9))])
