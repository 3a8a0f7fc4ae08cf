"""The commands iperf, iperfudp, trace and capture: traffic between two hosts, its path, and packets on links."""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any, NamedTuple

from gradbed.common.caller import caller
from gradbed.common.errors import UserError
from gradbed.common.modules import COMMAND
from gradbed.controller.planning.plan import Lpm, Match, Output, Plan, SwitchPlan
from gradbed.controller.planning.text import entry_text, flow_text
from gradbed.experiments.captures import SUFFIX
from gradbed.experiments.prompt.base import BasePrompt, starting
from gradbed.topo.graph import Topology
from gradbed.topo.selectors import select

# ---- A packet's way, as the plan in force has it ----


ROUTES = "ipv4_routes"


@dataclass(frozen=True)
class PathHop:
    """A switch on the path."""

    switch: str
    entry: str
    """Entry or flow that decides there."""
    next_node: str
    """Node to which it leads."""
    is_p4: bool


def path_of(topology: Topology, plan: Plan, source: str, destination: str) -> list[PathHop]:
    """Return the path of plain IPv4 packets from one host to another.

    Raises:
        UserError: a switch has no route, or there is a loop.
    """
    address = int(IPv4Address(topology.host(destination).ip))
    hops: list[PathHop] = []
    node = topology.attachment(source).name
    while not topology.is_host(node):
        if node in {hop.switch for hop in hops}:
            raise UserError(f"packets go round in circles: {' -> '.join(hop.switch for hop in hops)} -> {node}")
        routes = [each for each in _routes(plan[node]) if _covers(each[0], address)]
        if not routes:
            raise UserError(f"{node} has no route to {destination}")
        _, port, text = max(routes, key=lambda route: route[0].prefix_bits)
        neighbours = {topology.port(node, other): other for other in topology.graph[node]}
        hops.append(PathHop(node, text, neighbours[port], plan[node].kind == "p4"))
        node = neighbours[port]
    return hops


def _routes(switch: SwitchPlan) -> Iterator[tuple[Lpm, int, str]]:
    """Yield prefix, port and text of each route."""
    for entry in switch.entries:
        if entry.table == ROUTES and "port" in entry.params:
            yield _prefix(entry.match["hdr.ipv4.dst_addr"]), entry.params["port"], entry_text(entry)
    for flow in switch.flows:
        ports = [action.output for action in flow.actions if isinstance(action, Output)]
        if ports and "ipv4_dst" in flow.match and "ip_proto" not in flow.match:
            yield _prefix(flow.match["ipv4_dst"]), ports[0], flow_text(flow)


def _prefix(match: Match) -> Lpm:
    """Return a match as a prefix; an exact address is one of 32 bits."""
    if isinstance(match, int):
        return Lpm(value=match, prefix_bits=32)
    assert isinstance(match, Lpm)
    return match


def _covers(prefix: Lpm, address: int) -> bool:
    return prefix.value >> (32 - prefix.prefix_bits) == address >> (32 - prefix.prefix_bits)


# ---- Traffic ----


PORT = 5001
SECONDS = 5
PATIENCE_S = 15
RETRY_S = 0.1
UDP_RATE = re.compile(r"\d+(\.\d+)?[KMG]?")


class TrafficCommands(BasePrompt):
    """Commands for traffic between two hosts."""

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
        plan = self.runtime.client.plan()
        hops = path_of(self.topology, plan, source, destination)
        down = {frozenset((row["a"], row["b"])) for row in self.runtime.client.links() if not row["up"]}
        names = [source, *(hop.switch for hop in hops)]
        self.say(f"{source} -> {self.topology.port(hops[0].switch, source)}:{hops[0].switch}")
        for hop in hops:
            cut = ", which is down" if frozenset((hop.switch, hop.next_node)) in down else ""
            self.say(f"  {hop.switch}: {hop.entry} to {hop.next_node}{cut}")
        if hops[-1].next_node != destination:
            raise UserError(f"the way ends at {hops[-1].next_node}: {' -> '.join(names)}")
        self._show_how_to_look_inside(hops[0], source, destination)

    def _show_how_to_look_inside(self, hop: PathHop, source: str, destination: str) -> None:
        """Print a command for gradbed's P4 switches, whose P4Runtime socket can be reached from outside."""
        from gradbed.emulation.switches.gradbed_switches import P4RUNTIME_SOCKET

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
        """Run a command, again until the server listens."""
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


# ---- Captures ----


LIMITS = ("count", "seconds")
MOST_SECONDS = 1e6


class _Running(NamedTuple):
    """A capture in progress."""

    selection: str
    drops: int
    """Packets that the kernel had dropped before."""


class CaptureCommands(BasePrompt):
    """Commands that capture packets of links between switches and to hosts."""

    def __init__(self, *arguments: Any) -> None:
        self._captures: dict[Path, _Running] = {}
        super().__init__(*arguments)

    def do_capture(self, line: str) -> None:
        """Write the packets of a link or a host to a file for Wireshark, in the background.
        Usage: capture LINK|HOST [FILE] [count N] [seconds S]   until it has so many, or for so long, or until stopped
               capture                                          those that go on, and how many packets they have
               capture stop [LINK|HOST]                         end them, or those of one place
        A link is written A-B, by the names of its two nodes. The FILE is pcapng, by default LINK.pcapng.
        Example: capture l1-s1 count 100"""
        words = self.words(line, 6)
        if not words:
            self._list_captures()
        elif words[0] == "stop":
            if len(words) > 2:
                raise UserError(f"{words[2]!r} is too much; see help capture")
            self._stop_captures(words[1:])
        else:
            self._start_capture(words)

    def complete_capture(self, text: str, line: str, begin: int, end: int) -> list[str]:
        # readline takes what follows a "-" for a word of its own.
        *before, word = line[:end].split(" ")[1:]
        if before and before[0] != "stop":
            return starting(text, LIMITS)
        links = [f"{a}-{b}" for link in self.topology.links for a, b in _both_ways(link.a.node, link.b.node)]
        names = [*(host.name for host in self.topology.hosts), *links, *([] if before else ["stop"])]
        return [name[len(word) - len(text) :] for name in starting(word, names)]

    def postcmd(self, stop: Any, line: str) -> Any:
        if self._captures:
            for state in self.runtime.backend.captures():
                if state.is_over and state.file in self._captures:
                    self._stop(state.file)
        return super().postcmd(stop, line)

    def close(self) -> None:
        self._stop_captures([])
        super().close()

    def _start_capture(self, words: list[str]) -> None:
        found = select(self.topology, words[0])
        rest = words[1:]
        name = rest.pop(0) if rest and rest[0] not in LIMITS else f"{found.name}{SUFFIX}"
        limits = _limits(rest)
        file = Path(name).absolute()
        drops = self._kernel_drops()
        self.runtime.backend.start_capture(file, found, limits.get("count"), limits.get("seconds"))
        self._captures[file] = _Running(found.name, drops)
        self.say(f"{found.name}: capturing to {name}")

    def _list_captures(self) -> None:
        going_on = [state for state in self.runtime.backend.captures() if not state.is_over]
        for state in going_on:
            self.say(f"{state.file}: {_packets(state.packets)} so far")
        if not going_on:
            self.say("nothing is being captured; 'capture l1-s1' would begin, see help capture")

    def _stop_captures(self, names: list[str]) -> None:
        wanted = [select(self.topology, name).name for name in names]
        files = [file for file, running in self._captures.items() if not wanted or running.selection in wanted]
        if names and not files:
            raise UserError(f"{names[0]} is not being captured")
        for file in files:
            self._stop(file)

    def _stop(self, file: Path) -> None:
        running = self._captures.pop(file)
        packets = self.runtime.backend.stop_capture(file)
        if (person := caller()) is not None:
            person.own(file)
        lost = self._kernel_drops() - running.drops
        unseen = f"; the kernel lost {_packets(lost)} before the switches saw them" if lost else ""
        self.say(f"{running.selection}: {_packets(packets)} in {file}{unseen}")

    def _kernel_drops(self) -> int:
        found = self.runtime.backend.data_plane_statistics()
        return 0 if found is None else found.socket_drops


def _limits(words: list[str]) -> dict[str, Any]:
    """Parse "count N" and "seconds S".

    Raises:
        UserError: the words are something else.
    """
    limits: dict[str, Any] = {}
    for word, value in zip(words[::2], [*words[1::2], None], strict=False):
        if word not in LIMITS or value is None:
            raise UserError("capture LINK|HOST [FILE] [count N] [seconds S]; see help capture")
        try:
            limits[word] = int(value) if word == "count" else float(value)
        except ValueError:
            raise UserError(f"{word} is a number, not {value!r}") from None
        if not 0 < limits[word] <= MOST_SECONDS:
            raise UserError(f"{word} is above 0 and at most {MOST_SECONDS:.0f}, not {value}")
    return limits


def _packets(count: int) -> str:
    return f"{count} packet{'' if count == 1 else 's'}"


def _both_ways(a: str, b: str) -> tuple[tuple[str, str], tuple[str, str]]:
    return (a, b), (b, a)
