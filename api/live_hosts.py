"""A host of a network that is up: packets of Scapy, and commands."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from gradbed.common.errors import UserError

if TYPE_CHECKING:
    from scapy.packet import Packet

    from gradbed.experiments.sessions.session import NetworkSession
    from gradbed.topo.graph import Topology


class Host:
    """A host that is up.

    Attributes:
        name: As in the topology.
        ip: Its IPv4 address.
        mac: Its MAC address.
        gateway_mac: Where frames to other networks go.
    """

    def __init__(self, session: NetworkSession, topology: Topology, name: str) -> None:
        self._session, self._topology, self.name = session, topology, name
        host = topology.host(name)
        self.ip, self.mac, self.gateway_mac = host.ip, host.mac, host.gateway_mac
        self._waiting: list[Packet] = []

    def send(self, packets: Packet | bytes | Iterable[Packet | bytes]) -> None:
        """Offer packets to the host's link, one after the other.

        Args:
            packets: Scapy packets, or whole Ethernet frames as bytes. IP packets get an Ethernet header, and this
                host's address as their source, if they name none.

        Raises:
            UserError: It is no packet.
        """
        from scapy.packet import Packet

        several = [packets] if isinstance(packets, (bytes, Packet)) else list(packets)
        self._session.send(self.name, [self._frame(each) for each in several])

    def receive(self, *, timeout_us: int = 1_000_000, where: Callable[[Packet], bool] | None = None) -> Packet | None:
        """Return the next packet received, with all its layers; None if none arrives in time.

        Its `time` is in seconds since the network came up.

        Args:
            timeout_us: The longest time to wait, on the network's clock.
            where: Returns whether a packet is wanted; others are dropped. On the real clock a host receives ARP and
                neighbour discovery, too.
        """
        end_us = self._session.now_us() + timeout_us
        while True:
            self._take()
            while self._waiting:
                packet = self._waiting.pop(0)
                if where is None or where(packet):
                    return packet
            left_us = end_us - self._session.now_us()
            if left_us <= 0:
                return None
            self._session.wait_for_frame(self.name, left_us)

    def received(self) -> list[Packet]:
        """Return all packets received and not yet returned; time does not advance."""
        self._take()
        found, self._waiting = self._waiting, []
        return found

    def run(self, command: str | Sequence[str], *, timeout_s: float = 60.0) -> subprocess.CompletedProcess[str]:
        """Run a command in the host's network (real clock), and return what it printed and its status.

        Args:
            command: For a shell, if it is a text: "ping -c 3 10.0.0.2".
            timeout_s: After which it is killed.

        Raises:
            UserError: It did not end in time; or the network is on the virtual clock, whose hosts run no programs.
        """
        arguments = ["sh", "-c", command] if isinstance(command, str) else [str(word) for word in command]
        status, output, errors = self._session.run(self.name, arguments, timeout_s)
        return subprocess.CompletedProcess(arguments, status, output, errors)

    def ping(self, to: Host | str, *, count: int = 1) -> bool:
        """Return whether all echo requests to a host or an address are answered (real clock)."""
        address = to.ip if isinstance(to, Host) else self._address(to)
        return self.run(f"ping -n -c {count} -i 0.2 -W 1 {shlex.quote(address)}").returncode == 0

    def _address(self, name: str) -> str:
        return self._topology.host(name).ip if name in {host.name for host in self._topology.hosts} else name

    def _take(self) -> None:
        from scapy.layers.l2 import Ether

        for time_us, frame in self._session.received(self.name):
            packet = Ether(frame)
            packet.time = time_us / 1e6
            self._waiting.append(packet)

    def _frame(self, packet: Any) -> bytes:
        from scapy.layers.inet import IP
        from scapy.layers.l2 import Ether
        from scapy.packet import Packet

        if isinstance(packet, bytes):
            return packet
        if not isinstance(packet, Packet):
            raise UserError(f"a packet of Scapy or bytes are expected, got {packet!r}")
        if isinstance(packet, IP):
            packet = packet.copy()
            if "src" not in packet.fields:
                packet.src = self.ip
            packet = Ether(src=self.mac, dst=self._next_mac(packet.dst)) / packet
        return bytes(packet)

    def _next_mac(self, address: str) -> str:
        """Return the MAC address of the next hop to an address."""
        to = next((host.name for host in self._topology.hosts if host.ip == address), None)
        return self.gateway_mac if to is None else self._topology.destination_mac(self.name, to)

    def __repr__(self) -> str:
        return f"<Host {self.name}: {self.ip}>"
