"""A program of python-ndn on a host of an NDN network, as somebody else would write it (docs/ndn.md).

At the prompt of `gradbed up --system ndn`, on host h4:

    h4 python3 examples/ndn_client.py fetch /training-1/h1/v=0/seg=0
    h4 python3 examples/ndn_client.py publish /training-1/h4 &
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import socket
import struct
import sys
from collections.abc import Coroutine

from ndn.appv2 import NDNApp, pass_all
from ndn.encoding import Component, NackReason, Name, parse_tl_num
from ndn.security import NullSigner
from ndn.transport.face import Face
from ndn.transport.prefix_registerer import PrefixRegisterer
from ndn.types import InterestNack, InterestTimeout

ETHER_TYPE = 0x8624
MULTICAST_MAC = bytes.fromhex("01005e0017aa")
ETHERNET_BYTES = 14
GRADIENT_HEAD = struct.Struct(">d4bHH")
"""Loss, scales, flags, zero: what the lanes of a gradient's Data follow."""


class EthernetFace(Face):
    """Packets straight on Ethernet, as NFD's Ethernet faces have them."""

    def __init__(self, interface: str) -> None:
        super().__init__()
        self._interface = interface

    async def open(self) -> None:
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETHER_TYPE))
        self._socket.bind((self._interface, ETHER_TYPE))
        self._socket.setblocking(False)
        self._header = MULTICAST_MAC + self._socket.getsockname()[4] + ETHER_TYPE.to_bytes(2, "big")
        self._closed = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        asyncio.get_running_loop().add_reader(self._socket, self._take)
        self.running = True

    async def run(self) -> None:
        await self._closed.wait()

    def shutdown(self) -> None:
        if self.running:
            self.running = False
            asyncio.get_running_loop().remove_reader(self._socket)
            self._socket.close()
            self._closed.set()

    def send(self, data: bytes) -> None:
        self._socket.send(self._header + bytes(data))

    async def isLocalFace(self) -> bool:
        return False

    def _take(self) -> None:
        try:
            packet = self._socket.recv(65536)[ETHERNET_BYTES:]
        except OSError:
            self.shutdown()  # the network is taken down
            return
        # What follows the packet is Ethernet's padding.
        kind, type_bytes = parse_tl_num(packet)
        length, length_bytes = parse_tl_num(packet, type_bytes)
        task = asyncio.create_task(self.callback(kind, packet[: type_bytes + length_bytes + length]))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


class RoutesOfTheController(PrefixRegisterer):
    """There is no forwarder on the host that could be told: the controller has routed the names."""

    async def register(self, name: object) -> bool:
        return True

    async def unregister(self, name: object) -> bool:
        return True


async def fetch(app: NDNApp, name: str, lifetime_ms: int) -> bool:
    """Ask for a name; print what comes."""
    try:
        found, content, _ = await app.express(name, pass_all, lifetime=lifetime_ms)
    except InterestTimeout:
        print(f"{name}: nothing came in {lifetime_ms} ms", flush=True)
        return False
    except InterestNack as nack:
        reason = {NackReason.NO_ROUTE: "no route", NackReason.DUPLICATE: "duplicate"}.get(nack.reason, "no reason")
        print(f"{name}: a router sent a Nack ({reason})", flush=True)
        return False
    content = bytes(content or b"")
    print(f"{Name.to_str(found)}: {len(content)} bytes, {content[:32].hex()} ...", flush=True)
    return True


def publish(app: NDNApp, prefix: str, lanes: int, value: int) -> None:
    """Answer as a peer of a training does who does not push: every lane of its gradients is `value`."""
    training, publisher = prefix.strip("/").split("/")
    content = GRADIENT_HEAD.pack(0.0, 0, 0, 0, 0, 0, 0) + struct.pack(">i", value) * lanes

    def acknowledge(operation: str) -> None:
        data = app.make_data(f"/{operation}/{publisher}/{training}", b"", NullSigner(), meta_info=None)
        app.face.send(data)

    @app.route(f"/insert/{publisher}/{training}")
    def on_insertion(*_: object) -> None:
        acknowledge("distribute")

    @app.route(f"/delete/{publisher}/{training}")
    def on_deletion(*_: object) -> None:
        acknowledge("delete")

    @app.route(prefix)
    def on_probe(name: list[bytes], _parameters: object, reply: object, _context: object) -> None:
        """Such as /training-1/h4/v=0/seg=0. Without MetaInfo, and with a null signature, routers keep it."""
        if [Component.get_type(each) for each in name[2:]] == [Component.TYPE_VERSION, Component.TYPE_SEGMENT]:
            assert callable(reply)
            reply(app.make_data(name, content, NullSigner(), meta_info=None))
            print(f"answered {Name.to_str(name)}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--interface", help="of this host; default: its only one besides lo")
    commands = parser.add_subparsers(dest="command", required=True)
    fetching = commands.add_parser("fetch", help="ask for a name")
    fetching.add_argument("name", help="such as /training-1/h1/v=0/seg=0")
    fetching.add_argument("--lifetime-ms", type=int, default=2000)
    publishing = commands.add_parser("publish", help="answer for gradients, until Ctrl-C")
    publishing.add_argument("prefix", help="training with its job's number, and host, such as /training-1/h4")
    publishing.add_argument("--lanes", type=int, default=96, help="of a Data packet, as the routers have it")
    publishing.add_argument("--value", type=int, default=1, help="of every lane")
    given = parser.parse_args()

    others = [name for _, name in socket.if_nameindex() if name != "lo"]
    if not (given.interface or others):
        parser.error("this host has no interface besides lo")
    interface = given.interface or others[0]
    app = NDNApp(EthernetFace(interface), registerer=RoutesOfTheController())
    outcome = []

    async def asking() -> None:
        outcome.append(await fetch(app, given.name, given.lifetime_ms))
        app.shutdown()

    after_start: Coroutine[None, None, None] | None = None
    if given.command == "fetch":
        after_start = asking()
    else:
        publish(app, given.prefix, given.lanes, given.value)
    with contextlib.suppress(KeyboardInterrupt):
        app.run_forever(after_start)
    return 0 if all(outcome) else 1


if __name__ == "__main__":
    sys.exit(main())
