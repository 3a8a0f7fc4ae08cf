"""iperf, iperfudp and trace: traffic between two hosts, and the way it takes."""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from collections.abc import Sequence
from typing import Any

from gradbed.common.errors import UserError
from gradbed.common.modules import COMMAND
from gradbed.experiments.prompt.base import BasePrompt
from gradbed.experiments.prompt.path import Hop, path_of

PORT = 5001
SECONDS = 5
PATIENCE_S = 15
RETRY_S = 0.1
UDP_RATE = re.compile(r"\d+(\.\d+)?[KMG]?")


class TrafficCommands(BasePrompt):
    """Between hosts."""

    complete_iperf = complete_iperfudp = complete_trace = BasePrompt.complete_hosts

    def do_iperf(self, line: str) -> None:
        """Measure how much TCP carries from one host to another, for five seconds.
        Usage: iperf [FROM TO]
        Without hosts from the first to the last."""
        self._iperf(self._two_hosts(line), [])

    def do_iperfudp(self, line: str) -> None:
        """Send UDP at a rate from one host to another, for five seconds, and show what arrives.
        Usage: iperfudp [RATE [FROM TO]], the rate as 10M"""
        rate, _, rest = (line.strip() or "10M").partition(" ")
        if not UDP_RATE.fullmatch(rate):
            raise UserError(f"a rate is a number of bits a second, such as 500K or 10M, not {rate!r}")
        self._iperf(self._two_hosts(rest), ["-u", "-b", rate])

    def do_trace(self, line: str) -> None:
        """Show the way that packets take from one host to another, by the plan in force.
        Usage: trace FROM TO
        The last line is a command for another terminal, which shows what the first switch does to such a packet."""
        source, destination = self._two_hosts(line)
        if source == destination:
            raise UserError(f"{source} is both ends")
        plan = self.testbed.client.plan()
        hops = path_of(self.topology, plan, source, destination)
        down = {frozenset((row["a"], row["b"])) for row in self.testbed.client.links() if not row["up"]}
        names = [source, *(hop.switch for hop in hops)]
        self.say(f"{source} -> {self.topology.port(hops[0].switch, source)}:{hops[0].switch}")
        for hop in hops:
            cut = ", which is down" if frozenset((hop.switch, hop.next_node)) in down else ""
            self.say(f"  {hop.switch}: {hop.entry} to {hop.next_node}{cut}")
        if hops[-1].next_node != destination:
            raise UserError(f"the way ends at {hops[-1].next_node}: {' -> '.join(names)}")
        self._show_how_to_look_inside(hops[0], source, destination)

    def _show_how_to_look_inside(self, hop: Hop, source: str, destination: str) -> None:
        """For gradbed's P4 switches, which serve P4Runtime at a socket that can be reached from outside."""
        from gradbed.emulation.switches.fabric_switches import P4RUNTIME_SOCKET

        unix_socket = self.task.folder / P4RUNTIME_SOCKET
        if not hop.is_p4 or not unix_socket.exists():
            return
        number = self.topology.switch(hop.switch).number
        frame = self._echo_request(source, destination).hex()
        port = self.topology.port(hop.switch, source)
        self.say(
            f"inside {hop.switch}: {COMMAND} p4 trace --target unix:{unix_socket} --device-id {number} "
            f"--port {port} {frame}"
        )

    def _echo_request(self, source: str, destination: str) -> bytes:
        from scapy.layers.inet import ICMP, IP
        from scapy.layers.l2 import Ether

        sender, receiver = self.topology.host(source), self.topology.host(destination)
        next_mac = self.topology.destination_mac(source, destination)
        return bytes(Ether(src=sender.mac, dst=next_mac) / IP(src=sender.ip, dst=receiver.ip, ttl=64) / ICMP())

    def _two_hosts(self, line: str) -> tuple[str, str]:
        words = self.words(line, 2)
        if len(words) == 1:
            raise UserError("two hosts, from and to")
        hosts = [host.name for host in self.topology.hosts]
        source, destination = (self.host(word) for word in words) if words else (hosts[0], hosts[-1])
        return source, destination

    def _iperf(self, hosts: tuple[str, str], options: Sequence[str]) -> None:
        if shutil.which("iperf") is None:
            raise UserError("the program iperf is missing: apt-get install --no-install-recommends iperf")
        source, destination = hosts
        if source == destination:
            raise UserError(f"{source} is both ends")
        server = self._popen(destination, ["iperf", "-s", "-p", str(PORT), *(["-u"] if options else [])])
        try:
            address = self.topology.host(destination).ip
            told = self._call(["iperf", "-c", address, "-p", str(PORT), "-t", str(SECONDS), *options], source)
        finally:
            server.kill()
            server.wait()
        found = re.findall(r"[\d.]+ [KMG]?bits/sec.*", told)
        if not found:
            raise UserError(f"iperf says: {(told.strip().splitlines() or ['nothing'])[-1]}")
        self.say(f"{'UDP' if options else 'TCP'} from {source} to {destination}: {found[-1]}")

    def _call(self, command: list[str], host: str) -> str:
        """Until the server listens."""
        deadline_s = time.monotonic() + PATIENCE_S
        while True:
            client = self._popen(host, command)
            try:
                told, _ = client.communicate(timeout=SECONDS + PATIENCE_S)
            except subprocess.TimeoutExpired:
                raise UserError("iperf did not come to an end: do the hosts reach each other (pingall)?") from None
            finally:
                client.kill()
                client.wait()
            if "refused" not in told or time.monotonic() > deadline_s:
                return str(told)
            time.sleep(RETRY_S)

    def _popen(self, host: str, command: list[str]) -> subprocess.Popen[str]:
        started: Any = self.mn[host].popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert isinstance(started, subprocess.Popen)
        return started
