"""The same workload in other simulators, where somebody has installed or built them: ns-3, and htsim with its NDP."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from gradbed.common.errors import UserError
from gradbed.common.store import cache_dir, make_cache_folder
from tools.bench.virtual.workload import FLOW_PAYLOAD_BPS, LINK_RATE_BPS, PAYLOAD_BYTES, Permutation

# ---- ns-3 (Debian: libns3-dev, g++, pkgconf) ----


SOURCE = Path(__file__).with_name("ns3_permutation.cc")
MODULES = ("core", "network", "internet", "trial-to-trial", "applications")


@dataclass(frozen=True)
class Ns3Result:
    """What a simulation with ns-3 cost, as in VirtualResult."""

    hops: int
    packets: int
    run_s: float

    @property
    def hops_per_s(self) -> float:
        """Hops per second of processor time."""
        return self.hops / self.run_s


@cache
def ns3_version() -> str | None:
    """Return the version of ns-3; None where it, or what compiles programs for it, is missing."""
    if not all(map(shutil.which, ("g++", "pkg-config"))):
        return None
    found = _pkg_config("--modversion", "ns3-core")
    return found.stdout.strip() if found.returncode == 0 else None


def measure_ns3(permutation: Permutation, milliseconds: int, *, global_routing: bool) -> Ns3Result:
    """Simulate with ns-3, with the routes that it finds by itself or with those of our switches."""
    text = description(permutation, milliseconds, global_routing=global_routing)
    outcome = subprocess.run([str(_program())], input=text, capture_output=True, text=True, check=False)
    if outcome.returncode != 0:
        raise UserError(f"ns-3 failed: {outcome.stderr.strip().splitlines()[-1:]}")
    hops, packets, run_s = outcome.stdout.split()
    return Ns3Result(int(hops), int(packets), float(run_s))


def description(permutation: Permutation, milliseconds: int, *, global_routing: bool) -> str:
    """Return the input of ns3_permutation.cc."""
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


# ---- htsim (Broadcom/csg-htsim) ----


HTSIM_VARIABLE = "GRADBED_HTSIM"
PROGRAM = "htsim_ndp"
PLACES = ("", "datacenter", "sim/datacenter")
"""In a build folder."""
HEADERS_BYTES = 42
HOPS_OF_A_PACKET = 18
"""Six links, for it, its ACK and the receiver's pull. htsim says only how many data packets were sent. It is the most
that there can be: a pull that need not wait travels in the ACK."""
OPTIONS = ("-strat", "perm", "-cwnd", "15", "-q", "15")
_COUNTS = re.compile(r"^New: (\d+) Rtx: (\d+) Bounced: \d+$", re.MULTILINE)
_SHARE_OF_BEGINNING = 4
"""The simulation is also run up to this part of its time: what it takes more is that of hops alone."""


@dataclass(frozen=True)
class HtsimResult:
    """What a simulation with htsim cost."""

    hops: int
    """Data, ACK and pull packets on each link."""
    run_s: float
    """Processor time of these hops."""
    setup_s: float
    """Processor time of a simulation of 1 us."""
    memory_bytes: int

    @property
    def hops_per_s(self) -> float:
        """Hops per second of processor time."""
        return self.hops / self.run_s


@dataclass(frozen=True)
class _Ended:
    hops: int
    processor_s: float
    memory_bytes: int


def find_htsim() -> Path | None:
    """Return the program that GRADBED_HTSIM names, itself or its folder; None if it names nothing.

    UserError where there is no such program.
    """
    named = os.environ.get(HTSIM_VARIABLE)
    if not named:
        return None
    path = Path(named).absolute()
    places = [path, *(path / place / PROGRAM for place in PLACES)]
    found = next((place for place in places if place.is_file()), None)
    if found is None or not os.access(found, os.X_OK):
        raise UserError(
            f"{HTSIM_VARIABLE}={named}: there is no program {PROGRAM}: name it, or the folder of its build"
        )
    return found


def measure_htsim(program: Path, permutation: Permutation, hops: int) -> HtsimResult:
    """Simulate about so many hops with htsim. UserError if the program fails or prints something else."""
    duration_us = microseconds(permutation, hops)
    with tempfile.TemporaryDirectory(prefix="gradbed-htsim-") as folder:
        matrix = Path(folder) / "matrix.cm"
        matrix.write_text(connections(permutation), encoding="utf-8")
        nothing = _run(program, permutation, matrix, 1)
        beginning = _run(program, permutation, matrix, duration_us // _SHARE_OF_BEGINNING)
        whole = _run(program, permutation, matrix, duration_us)
    more, more_s = whole.hops - beginning.hops, whole.processor_s - beginning.processor_s
    if more <= 0 or more_s <= 0:
        raise UserError(f"{program} had {whole.hops} hops in {duration_us} us, not more than in a part of it")
    return HtsimResult(more, more_s, nothing.processor_s, whole.memory_bytes)


def microseconds(permutation: Permutation, hops: int) -> int:
    """Return how long hosts must send for about so many hops; at least some round-trip times."""
    packets_per_us = LINK_RATE_BPS / 8e6 / (PAYLOAD_BYTES + HEADERS_BYTES)
    of_all = len(permutation.topology.hosts) * packets_per_us * HOPS_OF_A_PACKET
    return max(_SHARE_OF_BEGINNING * 100, int(hops / of_all))


def connections(permutation: Permutation) -> str:
    """Write the flows in htsim's form; a size of 0 means an endless flow."""
    hosts = permutation.topology.hosts
    numbers = {host.name: number for number, host in enumerate(hosts)}
    lines = [f"Nodes {len(hosts)}", f"Connections {len(hosts)}"]
    for flow, (source, to) in enumerate(permutation.flows(), 1):
        lines.append(f"{numbers[source.name]}->{numbers[to.name]} id {flow} start 0 size 0")
    return "\n".join([*lines, ""])


def _run(program: Path, permutation: Permutation, matrix: Path, end_us: int) -> _Ended:
    command = [
        str(program), "-nodes", str(len(permutation.topology.hosts)), "-tm", str(matrix), "-end", str(end_us),
        "-linkspeed", str(LINK_RATE_BPS // 1_000_000), "-hop_latency", str(permutation.delay_us),
        "-mtu", str(PAYLOAD_BYTES + HEADERS_BYTES), "-o", os.devnull, *OPTIONS,
    ]  # fmt: skip
    with tempfile.TemporaryFile() as output:
        try:
            process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, cwd=matrix.parent)
        except OSError as error:
            raise UserError(f"{program} cannot be run: {error.strerror}") from None
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        said = output.read().decode(errors="replace")
    counts = _COUNTS.search(said)
    if process.returncode != 0 or counts is None:
        last = next((line for line in reversed(said.splitlines()) if line.strip()), "nothing")
        raise UserError(
            f"{program} ended with status {process.returncode}, and did not say how many packets it sent "
            f"(New: ... Rtx: ...), but: {last.strip()[:100]}"
        )
    packets = int(counts[1]) + int(counts[2])
    return _Ended(packets * HOPS_OF_A_PACKET, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024)
