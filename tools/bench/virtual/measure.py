"""One measurement on the virtual clock, in a process of its own.

`measure K DELAY_US MILLISECONDS THREADS` prints an empty line once the network is ready, waits for a line, so that
several can begin together, and then measures and prints a JSON object.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

from gradbed.emulation.layout import network_config
from gradbed.switch.codegen import build_program
from gradbed.switch.device import ActionCall, KeyMatch
from gradbed.switch.program_cache import compiled_files
from gradbed.switch.virtual import Generator, SimulatedNetwork
from gradbed.topo.graph import Host, Topology
from tools.bench.virtual.workload import PAUSE_NS, PAYLOAD_BYTES, Permutation

ROUTER = Path(__file__).resolve().parents[3] / "p4src" / "router.p4"
HEADERS_BYTES = 14 + 20 + 8
_MILLISECOND_NS = 1_000_000


@dataclass(frozen=True)
class VirtualResult:
    """What a simulation cost."""

    k: int
    hosts: int
    switches: int
    hops: int
    """Frames that links delivered."""
    packets: int
    """Packets that sinks received."""
    queue_drops: int
    setup_s: float
    """Processor time until the simulation begins."""
    run_s: float
    """Processor time of the simulation."""
    clock_s: float
    """Wall time of the simulation."""
    memory_bytes: int

    @property
    def hops_per_s(self) -> float:
        """Hops per second of processor time."""
        return self.hops / self.run_s


def measure(
    permutation: Permutation, milliseconds: int, threads: int, ready: Callable[[], None] = lambda: None
) -> VirtualResult:
    """Measure a network; `ready` is called before time advances, and is not measured."""
    start_s = time.process_time()
    with SimulatedNetwork(network_config(permutation.topology, "memory", 1, ()), threads=threads) as simulated:
        install(simulated, permutation.topology, permutation.routes())
        add_traffic(simulated, permutation)
        ready_s = time.process_time()
        ready()
        begin_cpu_s = time.process_time()
        begin_s = time.perf_counter()
        simulated.run_until(milliseconds * _MILLISECOND_NS)
        end_s = time.process_time()
        clock_s = time.perf_counter() - begin_s
        rows = simulated.engine.link_statistics()
        sinks = [simulated.sink_statistics(*place_of(permutation, host)) for host in permutation.topology.hosts]
        return VirtualResult(
            k=permutation.k,
            hosts=len(permutation.topology.hosts),
            switches=len(simulated.devices),
            hops=sum(row.packets for row in rows),
            packets=sum(sink.packets for sink in sinks),
            queue_drops=sum(row.queue_drops for row in rows),
            setup_s=ready_s - start_s,
            run_s=end_s - begin_cpu_s,
            clock_s=clock_s,
            memory_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        )


def install(
    simulated: SimulatedNetwork, topology: Topology, routes: Iterable[tuple[str, Mapping[IPv4Network, int]]]
) -> None:
    """Load router.p4 into every switch, with a route for each prefix; `routes` has the port of each, by switch."""
    files = compiled_files(ROUTER, {})
    program = build_program(json.loads(Path(files.json).read_text()))
    for switch, of_switch in routes:
        device = simulated.devices[topology.switch(switch).number]
        device.load(program)
        for port in sorted(set(of_switch.values())):
            forward = ActionCall("RouterIngress.forward", (port, 1, 2))
            device.state.tables.insert("RouterIngress.next_hops", [KeyMatch(port)], forward, 0)
        for prefix, port in of_switch.items():
            key = KeyMatch(int(prefix.network_address), prefix_bits=prefix.prefixlen)
            device.state.tables.insert(
                "RouterIngress.routes", [key], ActionCall("RouterIngress.set_next_hop", (port,)), prefix.prefixlen
            )


def add_traffic(simulated: SimulatedNetwork, permutation: Permutation) -> None:
    """Add a generator and a sink for every flow."""
    frame_bytes = HEADERS_BYTES + PAYLOAD_BYTES
    for source, destination in permutation.flows():
        generator = Generator(
            src_mac=mac(source.mac),
            dst_mac=mac(source.gateway_mac),
            src_ip=IPv4Address(source.ip),
            dst_ip=IPv4Address(destination.ip),
            rate_bps=frame_bytes * 8 * 1_000_000_000 // PAUSE_NS,
            frame_bytes=frame_bytes,
        )
        simulated.add_generator(*place_of(permutation, source), generator)
        simulated.add_sink(*place_of(permutation, destination))


def place_of(permutation: Permutation, host: Host) -> tuple[int, int]:
    """Return the device id and the port to which a host is attached."""
    edge = permutation.edges[host.name]
    return permutation.topology.switch(edge).number, permutation.ports[edge, host.name]


def mac(text: str) -> bytes:
    """Return the bytes of a MAC address."""
    return bytes.fromhex(text.replace(":", ""))


def _told() -> None:
    print(flush=True)
    sys.stdin.readline()


def main(arguments: Sequence[str]) -> int:
    """Measure as the arguments say, and print the result as JSON."""
    k, delay_us, milliseconds, threads = map(int, arguments)
    print(json.dumps(asdict(measure(Permutation(k, delay_us), milliseconds, threads, _told))))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
