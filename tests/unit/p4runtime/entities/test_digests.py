"""Digests: lists, duplicates, acknowledgements and timeouts, on a clock of the test's own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from finsy.proto import p4d, p4r

from gradbed.switch.p4runtime.status import StatusCode
from gradbed.switch.state.digests import GREATEST_CACHE, GREATEST_LIST, DigestBuffer, DigestConfig, DigestLists
from tests.unit.p4runtime.client import DELETE, INSERT, MODIFY, Client, Stream
from tests.unit.p4runtime.entities.test_state import failures
from tests.unit.p4runtime.fake_device import FakeDevice
from tests.unit.p4runtime.sample_program import LEARN, config

FOREVER_NS = 1 << 62


def digest(digest_id: int = LEARN, **settings: int) -> p4r.DigestEntry:
    return p4r.DigestEntry(digest_id=digest_id, config=p4r.DigestEntry.Config(**settings))


def learnt(source: int, port: int, odd: bool) -> p4d.P4Data:
    data = p4d.P4Data()
    members = data.struct.members
    members.add().bitstring = source.to_bytes(max(1, (source.bit_length() + 7) // 8), "big")
    members.add().bitstring = port.to_bytes(max(1, (port.bit_length() + 7) // 8), "big")
    members.add().bool = odd
    return data


class TestBuffer:
    def test_lists_of_distinct_messages(self) -> None:
        buffer = DigestBuffer(DigestConfig(max_timeout_ns=100, max_list_size=2))
        assert buffer.due_ns is None
        assert not buffer.add((1,), 10)
        assert not buffer.add((1,), 20)
        assert buffer.due_ns == 110
        assert buffer.add((2,), 30)
        assert buffer.take(30) == (1, [(1,), (2,)])
        assert buffer.due_ns is None

    @pytest.mark.parametrize(
        ("settings", "size"),
        [
            (DigestConfig(), 1),
            (DigestConfig(max_list_size=9), 1),
            (DigestConfig(max_timeout_ns=1, max_list_size=1), 1),
            (DigestConfig(max_timeout_ns=1, max_list_size=9), 9),
            (DigestConfig(max_timeout_ns=1), GREATEST_LIST),
        ],
    )
    def test_sizes(self, settings: DigestConfig, size: int) -> None:
        assert settings.list_size == size

    def test_acknowledgement(self) -> None:
        buffer = DigestBuffer(DigestConfig(ack_timeout_ns=FOREVER_NS))
        assert buffer.add((1,), 0)
        list_id, _ = buffer.take(0)
        assert not buffer.add((1,), 1)
        assert buffer.due_ns is None
        buffer.acknowledge(list_id + 1)
        assert not buffer.add((1,), 2)
        buffer.acknowledge(list_id)
        assert buffer.add((1,), 3)

    def test_acknowledgement_that_does_not_come(self) -> None:
        buffer = DigestBuffer(DigestConfig(ack_timeout_ns=100))
        buffer.add((1,), 0)
        buffer.take(10)
        buffer.add((2,), 50)
        buffer.take(50)
        assert not buffer.add((1,), 109)
        assert buffer.add((1,), 110)
        buffer.take(110)
        assert not buffer.add((2,), 149)
        assert buffer.add((2,), 150)

    def test_without_cache(self) -> None:
        buffer = DigestBuffer(DigestConfig())
        assert buffer.add((1,), 0)
        buffer.take(0)
        assert buffer.add((1,), 0)

    def test_cache_has_a_limit(self) -> None:
        buffer = DigestBuffer(DigestConfig(ack_timeout_ns=FOREVER_NS))
        for i in range(GREATEST_CACHE + 1):
            buffer.add((i,), 0)
            buffer.take(0)
        assert buffer.add((0,), 0)
        assert not buffer.add((GREATEST_CACHE,), 0)


@dataclass
class NumberCodec:
    """Of a digest that is one number."""

    digest_id: int
    list_id: int

    def values(self, words: Sequence[int]) -> tuple[int, ...]:
        return tuple(words)

    def encode(self, values: tuple[int, ...], data: Any) -> None:
        data.bitstring = bytes(values)


def test_lists_that_are_due_are_sent_and_no_others() -> None:
    sent: list[tuple[int, list[bytes]]] = []
    now_ns = 0

    def send(digest_id: int, digest_list: Any) -> bool:
        sent.append((digest_id, [data.bitstring for data in digest_list.data]))
        return True

    configs = {i: DigestConfig(max_timeout_ns=i, max_list_size=9) for i in (10, 20)}
    codecs: list[Any] = [NumberCodec(20, 1), NumberCodec(10, 2)]
    lists = DigestLists(codecs, configs, send, lambda: now_ns, lambda: now_ns)
    assert lists.due_ns is None
    for list_id in (1, 2, 3):
        lists.receive(list_id, (list_id,))
    assert lists.due_ns == 10
    for at_ns, wanted in ((9, []), (10, [(10, [b"\x02"])]), (15, []), (20, [(20, [b"\x01"])]), (99, [])):
        now_ns = at_ns
        sent.clear()
        lists.send_due()
        assert sent == wanted
    assert lists.due_ns is None
    lists.receive(1, (4,))
    del configs[20]
    now_ns = 200
    lists.send_due()
    assert lists.due_ns is None and sent == []


class TestEntries:
    def test_life_of_an_entry(self, client: Client, device: FakeDevice) -> None:
        assert device.digest is None
        written = digest(max_timeout_ns=1, max_list_size=2, ack_timeout_ns=3)
        assert client.modify(written) == client.delete(written) == StatusCode.NOT_FOUND
        assert client.insert(written) == StatusCode.OK
        assert device.digest is not None
        assert client.insert(written) == StatusCode.ALREADY_EXISTS
        assert client.read(digest()) == client.read(p4r.DigestEntry()) == [written]
        assert client.modify(digest(max_list_size=7)) == StatusCode.OK
        assert client.read(p4r.DigestEntry()) == [digest(max_list_size=7)]
        assert client.delete(digest()) == StatusCode.OK
        assert device.digest is None and client.read(p4r.DigestEntry()) == []

    def test_errors(self, client: Client) -> None:
        assert client.insert(digest(0)) == StatusCode.INVALID_ARGUMENT
        assert client.insert(digest(5)) == StatusCode.NOT_FOUND
        for field in ("max_timeout_ns", "max_list_size", "ack_timeout_ns"):
            assert client.insert(digest(**{field: -1})) == StatusCode.INVALID_ARGUMENT
        assert failures(client, digest(5), digest()) == [StatusCode.NOT_FOUND] * 2

    def test_type_that_is_not_sent(self, client: Client) -> None:
        """Such a program runs, it just cannot have its digest sent."""
        odd = config()
        odd.p4info.digests[0].type_spec.error.SetInParent()
        client.push(pipeline=odd)
        [(code, text)] = client.failures((INSERT, digest()))
        assert (code, "no values of type error" in text) == (StatusCode.UNIMPLEMENTED, True)
        longer = config()
        longer.p4info.type_info.structs["learn_t"].members.add(name="more").type_spec.bool.SetInParent()
        client.push(pipeline=longer)
        assert client.insert(digest()) == StatusCode.UNIMPLEMENTED

    def test_survive_reconciliation(self, client: Client, device: FakeDevice) -> None:
        client.write((INSERT, digest(max_list_size=7)))
        client.push("RECONCILE_AND_COMMIT", config(cookie=8, routes="Ingress.renamed"))
        assert client.read(p4r.DigestEntry()) == [digest(max_list_size=7)]
        assert device.digest is not None
        client.push_sample()
        assert client.read(p4r.DigestEntry()) == [] and device.digest is None


class TestStream:
    def test_lists_and_acknowledgements(self, primary: Stream, bare_client: Client, device: FakeDevice) -> None:
        bare_client.write((INSERT, digest(max_timeout_ns=FOREVER_NS, max_list_size=2, ack_timeout_ns=FOREVER_NS)))
        assert device.digest is not None
        for words in ((0xA1, 3, 1), (0xA1, 3, 1), (0xA2, 0x1FF, 0)):
            device.digest(1, words)
        sent = primary.next().digest
        assert (sent.digest_id, list(sent.data)) == (LEARN, [learnt(0xA1, 3, True), learnt(0xA2, 0x1FF, False)])
        assert sent.timestamp > 0
        device.digest(1, (0xA1, 3, 1))  # was sent already
        device.digest(1, (0xA3, 3, 1))
        device.digest(1, (0xA4, 3, 1))
        assert [d.struct.members[0].bitstring for d in primary.next().digest.data] == [b"\xa3", b"\xa4"]
        primary.send(digest_ack=p4r.DigestListAck(digest_id=LEARN, list_id=sent.list_id))
        primary.arbitrate(1)  # the answer comes once the acknowledgement has been taken
        primary.next()
        device.digest(1, (0xA1, 3, 1))
        device.digest(1, (0xA5, 3, 1))
        assert [d.struct.members[0].bitstring for d in primary.next().digest.data] == [b"\xa1", b"\xa5"]

    def test_a_list_that_is_not_full_is_sent_in_time(
        self, primary: Stream, bare_client: Client, device: FakeDevice
    ) -> None:
        bare_client.write((INSERT, digest(max_timeout_ns=1_000_000, max_list_size=100)))
        assert device.digest is not None
        device.digest(1, (0xA1, 3, 1))
        assert list(primary.next().digest.data) == [learnt(0xA1, 3, True)]

    def test_changes_and_unknown_lists(self, primary: Stream, bare_client: Client, device: FakeDevice) -> None:
        bare_client.write((INSERT, digest(max_timeout_ns=FOREVER_NS, max_list_size=9)))
        callback = device.digest
        assert callback is not None
        callback(2, (1,))  # a learn list that the program does not have
        callback(1, (0xA1, 3, 1))
        bare_client.write((MODIFY, digest(max_timeout_ns=FOREVER_NS, max_list_size=2)))
        callback(1, (0xA2, 3, 1))
        assert len(primary.next().digest.data) == 2
        bare_client.write((DELETE, digest()))
        callback(1, (0xA3, 3, 1))
        device.packet_in(b"\x00\x00x")
        assert primary.next().WhichOneof("update") == "packet"

    def test_a_new_primary_hears_everything(self, primary: Stream, bare_client: Client, device: FakeDevice) -> None:
        bare_client.write((INSERT, digest(max_list_size=1, ack_timeout_ns=FOREVER_NS)))
        assert device.digest is not None
        device.digest(1, (0xA1, 3, 1))
        assert primary.next().HasField("digest")
        successor = bare_client.stream()
        successor.arbitrate(2)
        assert successor.status()[0] == StatusCode.OK
        device.digest(1, (0xA1, 3, 1))
        assert list(successor.next().digest.data) == [learnt(0xA1, 3, True)]
        assert not primary.next().HasField("digest")  # told that it is no longer the primary

    def test_nobody_to_send_to(self, primary: Stream, bare_client: Client, device: FakeDevice) -> None:
        bare_client.write((INSERT, digest(max_list_size=1, ack_timeout_ns=FOREVER_NS)))
        assert device.digest is not None
        primary.arbitrate(None)
        assert primary.status()[0] == StatusCode.NOT_FOUND
        device.digest(1, (0xA1, 3, 1))
        primary.arbitrate(1)
        assert primary.status()[0] == StatusCode.OK
        device.digest(1, (0xA1, 3, 1))
        assert primary.next().HasField("digest")

    def test_acknowledgements_that_are_refused(self, primary: Stream, bare_client: Client) -> None:
        unknown = p4r.DigestListAck(digest_id=5, list_id=1)
        primary.send(digest_ack=unknown)
        error = primary.next().error
        assert (error.canonical_code, error.digest_list_ack.digest_list_ack) == (StatusCode.INVALID_ARGUMENT, unknown)
        backup = bare_client.stream()
        backup.arbitrate(0)
        assert backup.status()[0] == StatusCode.ALREADY_EXISTS
        backup.send(digest_ack=p4r.DigestListAck(digest_id=LEARN, list_id=1))
        assert backup.next().error.canonical_code == StatusCode.PERMISSION_DENIED
        # A list that is not known is none to wait for.
        primary.send(digest_ack=p4r.DigestListAck(digest_id=LEARN, list_id=99))
        primary.arbitrate(1)
        assert primary.next().HasField("arbitration")
