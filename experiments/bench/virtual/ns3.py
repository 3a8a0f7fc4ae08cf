"""The same workload in ns-3, where its development files are installed (Debian: libns3-dev, g++, pkgconf)."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from gradbed.common.errors import UserError
from gradbed.common.store import cache_dir, make_cache_folder
from gradbed.experiments.bench.virtual.workload import (
    FLOW_PAYLOAD_BPS,
    LINK_RATE_BPS,
    PAYLOAD_BYTES,
    Permutation,
)

SOURCE = Path(__file__).with_name("ns3_permutation.cc")
MODULES = ("core", "network", "internet", "point-to-point", "applications")


@dataclass(frozen=True)
class Ns3Measured:
    """As measure.Measured."""

    hops: int
    packets: int
    run_s: float

    @property
    def hops_per_s(self) -> float:
        return self.hops / self.run_s


@cache
def ns3_version() -> str | None:
    """None where ns-3 or what is needed to compile with it is missing."""
    if not all(map(shutil.which, ("g++", "pkg-config"))):
        return None
    found = _pkg_config("--modversion", "ns3-core")
    return found.stdout.strip() if found.returncode == 0 else None


def measure_ns3(permutation: Permutation, milliseconds: int, *, global_routing: bool) -> Ns3Measured:
    """global_routing: ns-3 finds the routes by itself, as its users let it; otherwise it has our switches' routes."""
    text = description(permutation, milliseconds, global_routing=global_routing)
    outcome = subprocess.run([str(_program())], input=text, capture_output=True, text=True, check=False)
    if outcome.returncode != 0:
        raise UserError(f"ns-3 failed: {outcome.stderr.strip().splitlines()[-1:]}")
    hops, packets, run_s = outcome.stdout.split()
    return Ns3Measured(int(hops), int(packets), float(run_s))


def description(permutation: Permutation, milliseconds: int, *, global_routing: bool) -> str:
    """What ns3_permutation.cc reads."""
    topology = permutation.topology
    numbers = {node.name: number for number, node in enumerate((*topology.hosts, *topology.switches))}
    lines = [f"nodes {len(topology.hosts)} {len(topology.switches)}"]
    interfaces: dict[tuple[str, int], int] = {}
    count = dict.fromkeys(numbers, 0)
    for link in topology.links:
        lines.append(f"link {numbers[link.a.node]} {numbers[link.b.node]}")
        for end in (link.a, link.b):
            count[end.node] += 1
            interfaces[end.node, end.port] = count[end.node]
    if not global_routing:
        lines += [
            f"route {numbers[switch]} {numbers[host]} {interfaces[switch, port]}"
            for switch, routes in permutation.host_routes()
            for host, port in routes.items()
        ]
    lines += [f"flow {numbers[source.name]} {numbers[to.name]}" for source, to in permutation.flows()]
    lines.append(
        f"go {LINK_RATE_BPS} {permutation.delay_us} {PAYLOAD_BYTES} {FLOW_PAYLOAD_BPS} {milliseconds * 1_000_000} "
        f"{int(global_routing)}"
    )
    return "\n".join([*lines, ""])


def _program() -> Path:
    # Not pkg-config's libraries: it names those, too, that only ns-3's own need.
    flags = _pkg_config("--cflags", "ns3-core").stdout.split() + [f"-lns3-{module}" for module in MODULES]
    digest = hashlib.sha256(repr((flags, ns3_version())).encode() + SOURCE.read_bytes())
    target = cache_dir() / f"ns3-permutation-{digest.hexdigest()[:32]}"
    if target.exists():
        return target
    make_cache_folder(target.parent)
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        built = Path(scratch) / target.name
        command = ["g++", "-std=c++17", "-O2", "-o", str(built), str(SOURCE), *flags]
        outcome = subprocess.run(command, capture_output=True, text=True, check=False)
        if outcome.returncode != 0:
            raise UserError(f"g++ refused {SOURCE.name}: {outcome.stderr.strip().splitlines()[:1]}")
        built.replace(target)
    return target


def _pkg_config(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["pkg-config", *arguments], capture_output=True, text=True, check=False)
