"""Fifty controllers at once, and controllers that do not read what they are sent."""

from __future__ import annotations

import gc
import queue
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import grpc
import pytest
from finsy.proto import U128, p4r

from gradbed.switch.p4runtime.status import StatusCode
from gradbed.switch.server import P4RuntimeServer
from gradbed.switch.server.server import PENDING_MESSAGES, Inbox
from gradbed.switch.server.target import BUSY_SERVER
from tests.unit.p4runtime.client import INSERT, Client, Stream, action, entry, exact
from tests.unit.p4runtime.fake_device import FakeDevice
from tests.unit.p4runtime.sample_program import DROP, HOSTS
from tests.waiting import wait_until

CLIENTS = 50
WRITES = 4
ASKED = 6_000
MEGABYTE = 1 << 20


@pytest.fixture
def clients(address: str) -> Iterator[list[Client]]:
    """Each with a connection of its own."""
    with ExitStack() as stack:
        options = [("grpc.use_local_subchannel_pool", 1)]
        yield [
            Client(stack.enter_context(grpc.insecure_channel(address, options=options)), election_id=number)
            for number in range(2, CLIENTS + 2)  # the fixture client has 1
        ]


def host(client: int, number: int) -> Any:
    return entry(HOSTS, exact(1, (client << 8 | number).to_bytes(6, "big")), action=action(DROP))


def at_once(work: Callable[[int], Any]) -> list[Any]:
    """By all clients' numbers, each in a thread of its own."""
    with ThreadPoolExecutor(CLIENTS) as pool:
        return list(pool.map(work, range(CLIENTS)))


@pytest.mark.thorough
def test_fifty_primaries_each_of_its_own_role(
    client: Client, clients: list[Client], device: FakeDevice, server: P4RuntimeServer
) -> None:
    def work(number: int) -> tuple[list[int], int]:
        own = clients[number]
        own.role = f"role {number}"
        stream = own.stream()
        stream.arbitrate(own.election_id, role=p4r.Role(name=own.role))
        assert stream.status() == (StatusCode.OK, own.election_id)
        codes = [own.insert(host(number, write)) for write in range(WRITES)]
        return codes, len(own.read(entry(HOSTS)))

    outcomes = at_once(work)
    assert [codes for codes, _ in outcomes] == [[StatusCode.OK] * WRITES] * CLIENTS
    assert all(WRITES <= found <= CLIENTS * WRITES for _, found in outcomes)
    assert len(device.state.tables["Ingress.hosts"].entries) == CLIENTS * WRITES
    assert server.drops(1) == {}


@pytest.mark.thorough
def test_one_primary_and_its_backups(client: Client, clients: list[Client], device: FakeDevice) -> None:
    """The primary (the largest id) writes while all others read, and try to write."""
    streams = [Stream(each.stub) for each in clients]
    for each, stream in zip(clients, streams, strict=True):
        stream.arbitrate(each.election_id)
        stream.next()
    before = len(device.state.tables["Ingress.hosts"].entries)

    def work(number: int) -> tuple[Counter[Any], int]:
        own, codes = clients[number], Counter[Any]()
        for write in range(WRITES):
            try:
                own.write((INSERT, host(number, write)))
                codes["OK"] += 1
            except grpc.RpcError as error:
                codes[error.code().name] += 1
        return codes, len(own.read(entry(HOSTS)))

    *backups, (primary, found) = at_once(work)
    assert primary == {"OK": WRITES} and found == before + WRITES
    assert [codes for codes, _ in backups] == [{"PERMISSION_DENIED": WRITES}] * (CLIENTS - 1)
    assert all(before <= seen <= before + WRITES for _, seen in backups)
    assert len(device.state.tables["Ingress.hosts"].entries) == before + WRITES


class Unread:
    """A StreamChannel whose answers nobody takes until `read`."""

    def __init__(self, client: Client, role: str = "") -> None:
        self._requests: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._role = role
        self.call = client.stub.StreamChannel(iter(self._requests.get, None))
        self.arbitrate(client.election_id)
        assert next(self.call).arbitration.status.code == StatusCode.OK

    def arbitrate(self, election_id: int) -> None:
        role = p4r.Role(name=self._role) if self._role else None
        update = p4r.MasterArbitrationUpdate(device_id=1, role=role, election_id=U128.encode(election_id))
        self._requests.put(p4r.StreamMessageRequest(arbitration=update))

    def read(self, count: int) -> list[Any]:
        return [next(self.call) for _ in range(count)]


def resident_bytes() -> int:
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


@pytest.mark.thorough
def test_who_never_reads_slows_nobody_and_is_told_less(
    primary: Stream, clients: list[Client], device: FakeDevice, server: P4RuntimeServer
) -> None:
    """Packets for two roles: one controller reads, the other does not. Every packet is delivered or counted."""
    packets, payload, burst = 6_000, bytes(8_000), 500
    primary.cancel()  # it has pushed the program, and would keep packets here, too
    idle = Unread(clients[0], "idle")
    reader = Stream(clients[1].stub)
    reader.arbitrate(clients[1].election_id, role=p4r.Role(name="reader"))
    assert reader.status()[0] == StatusCode.OK
    held_bytes = []
    for start in range(0, packets, burst):
        held_bytes.append(resident_bytes())
        for number in range(start, start + burst):
            device.packet_in(b"\x00\x00" + number.to_bytes(4, "big") + payload)
        # The reader has each of them, in order.
        for number in range(start, start + burst):
            assert int.from_bytes(reader.next().packet.payload[:4], "big") == number
    # What waits has its size after half of the packets; the other half are 24 MB.
    grown = max(held_bytes) - max(held_bytes[: len(held_bytes) // 2])
    assert grown < 12 * MEGABYTE, f"{grown / MEGABYTE:.0f} MiB"
    clients[1].role = "reader"
    assert clients[1].insert(host(99, 1)) == StatusCode.OK
    dropped = server.drops(1)
    assert set(dropped) == {"packet_slow_controller"}
    delivered = idle.read(packets - dropped["packet_slow_controller"])
    numbers = [int.from_bytes(each.packet.payload[:4], "big") for each in delivered]
    assert numbers == sorted(set(numbers)), "what is delivered is in order, and once"
    assert 0 < len(numbers) < packets
    # It is served again once it reads.
    device.packet_in(b"\x00\x00" + packets.to_bytes(4, "big"))
    assert int.from_bytes(idle.read(1)[0].packet.payload[:4], "big") == packets


@pytest.mark.thorough
def test_who_asks_without_reading_is_sent_away(
    client: Client, clients: list[Client], server: P4RuntimeServer
) -> None:
    """Arbitration must not be dropped, and every request of it is answered, here with a name of 10,000 letters."""
    unread = Unread(clients[0], "x" * 10_000)
    for number in range(ASKED):
        unread.arbitrate(clients[0].election_id + number)
    wait_until(lambda: "arbitration_slow_controller" in server.drops(1))
    assert client.insert(host(99, 2)) == StatusCode.OK, "others are served meanwhile"
    with pytest.raises(grpc.RpcError) as caught:
        unread.read(ASKED)
    assert caught.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert "messages wait to be read on this stream" in caught.value.details()


def test_packets_that_no_controller_may_have_are_counted(
    primary: Stream, device: FakeDevice, server: P4RuntimeServer
) -> None:
    device.packet_in(b"")
    primary.cancel()
    wait_until(lambda: device.packet_in(b"\x00\x00frame") or "packet_no_controller" in server.drops(1))
    assert server.drops(1)["packet_no_header"] == 1


def test_what_the_server_cannot_hand_on_is_counted() -> None:
    """The event loop stands still; the newest messages are kept."""
    woken: list[Callable[[], None]] = []
    loop: Any = SimpleNamespace(call_soon_threadsafe=woken.append)
    counted: Counter[tuple[str, str]] = Counter()
    delivered: list[bytes] = []
    device = FakeDevice(1)
    target: Any = SimpleNamespace(
        device=device,
        digest_sink=None,
        drops=SimpleNamespace(count=lambda *what: counted.update([what])),
        deliver_packet_in=delivered.append,
        deliver_digest=lambda *message: delivered.append(b"digest"),
    )
    Inbox(loop, {1: target})
    target.digest_sink(7, (1, 2))
    assert device.packet_in is not None
    for number in range(PENDING_MESSAGES + 10):
        device.packet_in(number.to_bytes(4, "big"))
    assert len(woken) == 1
    woken[0]()
    assert counted == {("digest", BUSY_SERVER): 1, ("packet", BUSY_SERVER): 10}
    assert delivered == [number.to_bytes(4, "big") for number in range(10, PENDING_MESSAGES + 10)]
