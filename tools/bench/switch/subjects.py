"""What is measured: something that forwards, and the interfaces between which it does."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from gradbed.common.errors import UserError
from gradbed.controller.planning.plan import Plan
from gradbed.controller.southbound.interface import Target
from gradbed.controller.southbound.p4runtime.p4runtime import P4RuntimeSouthbound
from gradbed.controller.southbound.p4runtime.schema import Pipeline
from gradbed.emulation.nodes import Bmv2Switch, free_ports
from gradbed.emulation.switches.gradbed_switches import SwitchProcess, switch_process_command
from gradbed.emulation.veth import VethPair, create_pairs, delete_group
from gradbed.switch.engine_network import InterfaceConfig, LinkConfig, NetworkConfig, SwitchConfig
from gradbed.switch.p4lang.bmv2 import find_simple_switch_grpc
from gradbed.switch.p4lang.p4c import find_p4c
from gradbed.switch.program_cache import compiled_files
from gradbed.topo.link import LinkModel
from tools.bench.measure import ROOT, tool
from tools.bench.switch.workloads import LEFT_PORT, RIGHT_PORT, Workload

READY_TIMEOUT_S = 120.0
PROCESSOR_TICK_S = 1 / os.sysconf("SC_CLK_TCK")
MEMORY_LINK = LinkModel(queue_packets=4096)

Kind = Literal["bare", "gradbed", "gradbed, veth", "BMv2"]


@dataclass(frozen=True)
class Subject:
    """A path of switches that is measured."""

    kind: Kind
    switches: int
    entrance: str
    """The sender's interface."""
    exit: str
    """The receiver's interface."""
    pids: tuple[int, ...]
    """The processes that forward."""

    @property
    def label(self) -> str:
        """What tables call it."""
        name = self.kind.partition(",")[0]
        if self.switches == 1:
            return name
        return f"{self.switches} {name}, {'memory' if self.kind == 'gradbed' else 'veth'}"


def bmv2_is_installed() -> bool:
    """Return whether simple_switch_grpc is found."""
    try:
        find_simple_switch_grpc()
    except UserError:
        return False
    return True


@contextlib.contextmanager
def subject(kind: Kind, switches: int, workload: Workload, group: int, folder: Path) -> Iterator[Subject]:
    """Build the path, and load program and tables; `group` is a number of its own for its interfaces."""
    place = _Place(f"p{group}", switches, inner_links=kind != "gradbed")
    folder.mkdir()
    create_pairs(place.pairs(), group)
    starters: dict[Kind, Callable[[_Place, Workload, Path], contextlib.AbstractContextManager[tuple[int, ...]]]] = {
        "bare": _bare,
        "gradbed": _gradbed,
        "gradbed, veth": _gradbed,
        "BMv2": _bmv2,
    }
    try:
        with starters[kind](place, workload, folder) as pids:
            yield Subject(kind, switches, place.entrance, place.exit, pids)
    finally:
        delete_group(group)


@dataclass(frozen=True)
class _Place:
    """The interfaces of a path: of sender and receiver, and two of each switch, unless links are in memory."""

    prefix: str
    switches: int
    inner_links: bool

    @property
    def entrance(self) -> str:
        return f"{self.prefix}in"

    @property
    def exit(self) -> str:
        return f"{self.prefix}out"

    def left(self, switch: int) -> str:
        return f"{self.prefix}l{switch}"

    def right(self, switch: int) -> str:
        return f"{self.prefix}r{switch}"

    def pairs(self) -> Iterator[VethPair]:
        ends = [(self.entrance, self.left(1)), (self.right(self.switches), self.exit)]
        if self.inner_links:
            ends += [(self.right(i), self.left(i + 1)) for i in range(1, self.switches)]
        for number, (near, far) in enumerate(ends):
            yield VethPair(near, f"02:00:00:00:{number:02x}:01", far, f"02:00:00:00:{number:02x}:02")

    def ports(self, switch: int) -> dict[int, str]:
        ports = {}
        if switch == 1 or self.inner_links:
            ports[LEFT_PORT] = self.left(switch)
        if switch == self.switches or self.inner_links:
            ports[RIGHT_PORT] = self.right(switch)
        return ports


@contextlib.contextmanager
def _bare(place: _Place, _workload: Workload, _folder: Path) -> Iterator[tuple[int, ...]]:
    with contextlib.ExitStack() as stack:
        processes = []
        for switch in range(1, place.switches + 1):
            process = subprocess.Popen(
                tool("tools.bench.switch.bare_forwarder", place.left(switch), place.right(switch)),
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
            )
            stack.callback(_kill, process)
            processes.append(process)
        for process in processes:
            assert process.stdout is not None
            if not process.stdout.read(1):
                raise RuntimeError("the bare forwarder did not start")
        yield tuple(process.pid for process in processes)


def _kill(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.communicate()


@contextlib.contextmanager
def _gradbed(place: _Place, workload: Workload, folder: Path) -> Iterator[tuple[int, ...]]:
    numbers = range(1, place.switches + 1)
    config = NetworkConfig(
        grpc_addresses=("127.0.0.1:0",),
        switches=tuple(SwitchConfig(device_id=i, name=f"s{i}") for i in numbers),
        interfaces=tuple(
            InterfaceConfig(device_id=i, port=port, interface=name, link=MEMORY_LINK)
            for i in numbers
            for port, name in place.ports(i).items()
        ),
        links=()
        if place.inner_links
        else tuple(LinkConfig(a=(i, RIGHT_PORT), b=(i + 1, LEFT_PORT), link=MEMORY_LINK) for i in numbers[:-1]),
    )
    path = folder / "switches.json"
    path.write_text(config.model_dump_json())
    process = SwitchProcess(switch_process_command(path), folder / "switches.log")
    try:
        process.wait_ready()
        address = f"127.0.0.1:{process.grpc_ports[0]}"
        with _programmed(workload, [Target(address, i) for i in numbers], None):
            yield (process.pid,)
    finally:
        process.stop()


@contextlib.contextmanager
def _bmv2(place: _Place, workload: Workload, folder: Path) -> Iterator[tuple[int, ...]]:
    binary = find_simple_switch_grpc()
    ports = free_ports(2 * place.switches)
    with contextlib.ExitStack() as stack:
        nodes = []
        for i in range(1, place.switches + 1):
            node = Bmv2Switch(f"s{i}", i, binary, ports[2 * i - 2], ports[2 * i - 1], folder / f"{i}.log")
            node.intfs = {port: _Interface(name) for port, name in place.ports(i).items()}
            stack.callback(node.stop, deleteIntfs=False)
            node.start([])
            nodes.append(node)
        for node in nodes:
            node.wait_ready()
        targets = [Target(node.grpc_address, node.number) for node in nodes]
        with _programmed(workload, targets, find_p4c()):
            yield tuple(node.process.pid for node in nodes if node.process)


@dataclass
class _Interface:
    """As much of Mininet's as the node looks at."""

    name: str


@contextlib.contextmanager
def _programmed(workload: Workload, targets: Sequence[Target], p4c: str | None) -> Iterator[None]:
    """Write program and table entries by P4Runtime into every switch of the path."""
    files = compiled_files(workload.source, workload.defines, p4c)
    pipeline = Pipeline.load(workload.program, files.json, files.p4info)
    names = {f"s{i}": target for i, target in enumerate(targets, 1)}
    southbound = P4RuntimeSouthbound(names, {workload.program: pipeline})
    try:
        southbound.start(Plan(switches={name: workload.plan(name == f"s{len(targets)}") for name in names}))
        southbound.wait_ready(READY_TIMEOUT_S)
        yield
    finally:
        southbound.stop()


def processor_s(pids: Sequence[int]) -> float:
    """Return the processor time of processes in seconds (proc_pid_stat(5)): multiples of PROCESSOR_TICK_S."""
    ticks = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks * PROCESSOR_TICK_S


def which_bmv2() -> str:
    """Return the version line of the BMv2 in use."""
    binary = shutil.which(find_simple_switch_grpc()) or ""
    said = subprocess.run([binary, "--version"], capture_output=True, text=True, check=False).stdout.split()
    return said[0] if said else "unknown"
