"""A topology as a running network: hosts in network namespaces, switches as processes, links between them."""

from __future__ import annotations

import contextlib
import os
import resource
import secrets
import sys
from collections.abc import Iterator, Mapping
from ipaddress import IPv4Address
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Protocol

from gradbed.common.errors import UserError
from gradbed.common.namespaces import require_root
from gradbed.common.programs import search_path
from gradbed.common.resources import scratch_folder
from gradbed.emulation import veth
from gradbed.emulation.backend import NetworkBackend
from gradbed.emulation.layout import LinkKind, interface_name, is_wire, wire_interface_name
from gradbed.emulation.size import DESCRIPTORS_OF_A_HOST, require_room
from gradbed.emulation.switches.bmv2_switches import Bmv2Switches
from gradbed.emulation.switches.gradbed_switches import RealBackend, SwitchProcess
from gradbed.emulation.switches.open_vswitch import OvsSwitches
from gradbed.switch.server.addresses import OutsideAddress
from gradbed.topo.addressing import host_port_mac, port_mac
from gradbed.topo.graph import Endpoint, Host, Link, Topology
from gradbed.topo.link import USUAL_MTU_BYTES

if TYPE_CHECKING:
    from mininet.net import Mininet

SwitchKind = Literal["gradbed", "bmv2"]
"""What runs the P4 switches."""

ControlProtocol = Literal["p4", "openflow"]
"""What a switch is to its controller: a P4 switch (P4Runtime), or a bridge of Open vSwitch (OpenFlow 1.3)."""

MAX_INTERFACE_NAME = 15
"""IFNAMSIZ of <linux/if.h>, less the closing zero."""


class SwitchRunner(Protocol):
    """Starts and stops switches of a network under Mininet; what they can do is a NetworkBackend's."""

    def check(self) -> None:
        """Raise UserError if it cannot work here; called before anything is made."""

    def add_nodes(self, net: Mininet, run_dir: Path) -> None:
        """Add a Mininet node per switch, without starting anything."""

    def start(self, run_dir: Path) -> None:
        """Start the processes on interfaces that exist now; return when switches can be reached."""

    def stop(self) -> None:
        """End the processes. May be called at any time, and again."""


class EmulatedNetwork:
    """Brings a topology up in the caller's network namespace, and takes it down again without a trace.

    topology: what to build.
    switch_kind: "gradbed" (one switch process for all P4 switches) or "bmv2" (one simple_switch_grpc each).
    links: "memory" (links between switches are queues in the switch process) or "veth" (interfaces of the kernel,
        to capture on). Links to hosts, BMv2 and Open vSwitch are veth.
    run_dir: where configuration and logs go; without one, a temporary directory that goes with the network.
    seed: of everything random in the links; the same seed gives the same decisions.
    kinds: which switches are "openflow", each a bridge of one Open vSwitch (open_vswitch.py); the others, and those
        not named, are "p4". The links' model is the same everywhere: links that touch none of these run through
        the switch process, too.
    p4runtime: where gradbed's switches serve P4Runtime besides, for clients outside the network.
    record: what gradbed's switches keep of what their programs do, for `records` (gradbed.switch.engine_network).
    mtu_bytes: of all interfaces of the kernel, at most 65,535.
    loading: a switch process that was started already, with "-" (switch/switch_process.py).

    Run it in gradbed.common.sandbox.run_in_sandbox: then not even SIGKILL leaves anything behind. A context manager;
    `stop` may be called at any time, again, and after an interrupted `start`, which has cleaned up then already.
    """

    def __init__(
        self,
        topology: Topology,
        switch_kind: SwitchKind = "gradbed",
        links: LinkKind = "memory",
        run_dir: Path | None = None,
        seed: int = 1,
        kinds: Mapping[str, ControlProtocol] | None = None,
        p4runtime: OutsideAddress | None = None,
        record: Literal["points", "values"] | None = None,
        mtu_bytes: int = USUAL_MTU_BYTES,
        loading: SwitchProcess | None = None,
    ) -> None:
        self.topology = topology
        self.switch_kind: SwitchKind = switch_kind
        bridges = frozenset(topology.switch(name).name for name, kind in (kinds or {}).items() if kind == "openflow")
        self.links: LinkKind = links
        foreign: list[OvsSwitches | Bmv2Switches] = [OvsSwitches(topology, bridges)] if bridges else []
        if switch_kind == "bmv2":
            foreign.append(Bmv2Switches(topology, {switch.name for switch in topology.switches} - bridges))
        backend = RealBackend(topology, links, seed, foreign, p4runtime, record, loading)
        self.backend: NetworkBackend = backend
        """What switches and links can do."""
        self._runners: tuple[SwitchRunner, ...] = (backend, *foreign)
        self._mtu_bytes = mtu_bytes
        self._given_run_dir = run_dir
        self._scratch = contextlib.ExitStack()
        self._own_run_dir: Path | None = None
        self._mininet: Mininet | None = None
        self._interface_group = 0

    def __enter__(self) -> EmulatedNetwork:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def run_dir(self) -> Path:
        found = self._given_run_dir or self._own_run_dir
        if found is None:
            raise RuntimeError("the network has not been started")
        return found

    @property
    def mininet(self) -> Mininet:
        """Mininet's object for the running network: nodes, links, and what mininet.cli.CLI takes."""
        if self._mininet is None:
            raise RuntimeError("the network has not been started")
        return self._mininet

    def start(self) -> None:
        """Return once all hosts have addresses and all switches serve P4Runtime or wait for an OpenFlow controller.

        UserError if not root, without Mininet, without BMv2 or Open vSwitch if asked for, where the kernel lacks what
        the links need, or if another network runs in this network namespace. Call it from the main thread: the switch
        process ends with the thread that started it.
        """
        if self._mininet is not None:
            raise RuntimeError("the network has been started already")
        try:
            self._start()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Take down whatever is up."""
        for runner in reversed(self._runners):
            runner.stop()
        if self._interface_group:
            veth.delete_group(self._interface_group)
            self._interface_group = 0
        if self._mininet is not None:
            self._mininet.stop()
            self._mininet = None
        if self._own_run_dir is not None:
            self._scratch.close()
            self._own_run_dir = None

    def host_pid(self, host: str) -> int:
        """Return a process whose namespaces are the host's (its shell)."""
        pid: int = self.mininet[self.topology.host(host).name].pid
        return pid

    def host_interfaces(self, host: str) -> tuple[str, ...]:
        """Return the names of the host's interfaces, in the order of its ports."""
        ends = [end for link in self.topology.host_links for end in (link.a, link.b) if end.node == host]
        return tuple(interface_name(end) for end in sorted(ends, key=lambda end: end.port))

    # How it comes up.

    def _start(self) -> None:
        require_root("an emulated network")
        self._require_short_names()
        require_room(self.topology)
        _require_mininet()
        os.environ["PATH"] = search_path()  # Mininet calls ip and ethtool by their names
        for runner in self._runners:
            runner.check()
        if self._given_run_dir is None:
            self._own_run_dir = self._scratch.enter_context(scratch_folder())
        self.run_dir.mkdir(parents=True, exist_ok=True)
        self._add_nodes()
        self._add_links()
        self._make_interfaces()
        for runner in reversed(self._runners):
            runner.start(self.run_dir)

    def _require_short_names(self) -> None:
        for link in self.topology.links:
            for end in (link.a, link.b):
                name = interface_name(end)
                if len(name) > MAX_INTERFACE_NAME:
                    raise UserError(f"{name} is too long for an interface: give {end.node} a shorter name")

    def _add_nodes(self) -> None:
        from mininet.net import Mininet

        from gradbed.emulation.nodes import EmulatedHost, RecordedIntf, RecordedLink

        Mininet.inited = True  # skip its changes to the machine's sysctl settings
        self._mininet = net = Mininet(controller=None, host=EmulatedHost, link=RecordedLink, intf=RecordedIntf)
        with _descriptor_limit(DESCRIPTORS_OF_A_HOST * len(self.topology.hosts)):
            for host in self.topology.hosts:
                net.addHost(host.name, ip=f"{host.ip}/{host.prefix_bits}", mac=host.mac)
        for runner in self._runners:
            runner.add_nodes(net, self.run_dir)
        net.built = True

    def _add_links(self) -> None:
        from gradbed.emulation.nodes import MemoryIntf, RecordedIntf

        for link in self.topology.links:
            recorded = self.mininet.addLink(
                link.a.node,
                link.b.node,
                link.a.port,
                link.b.port,
                intf=RecordedIntf if self._is_veth(link.a, link.b) else MemoryIntf,
                addr1=self._interface_mac(link.a),
                addr2=self._interface_mac(link.b),
            )
            for end, interface in ((link.a, recorded.intf1), (link.b, recorded.intf2)):
                if self.topology.is_host(end.node) and end.port == 0:
                    host = self.topology.host(end.node)
                    interface.ip, interface.prefixLen = host.ip, host.prefix_bits

    def _make_interfaces(self) -> None:
        pairs = [pair for link in self.topology.links for pair in self._veth_pairs(link)]
        self._interface_group = secrets.randbits(30) + 1
        veth.create_pairs(pairs, self._interface_group, self._mtu_bytes)
        for link in self.topology.host_links:
            end = link.a if self.topology.is_host(link.a.node) else link.b
            if end.port == 0:
                host = self.topology.host(end.node)
                veth.configure_host(host, interface_name(end), self.host_pid(end.node), self._neighbours(host))
            else:
                veth.bring_up(interface_name(end), self.host_pid(end.node))

    def _neighbours(self, host: Host) -> list[Host]:
        """Return the hosts that it reaches directly."""
        others = (other for other in self.topology.hosts if other != host)
        return [other for other in others if host.on_link and IPv4Address(other.ip) in host.network]

    def _veth_pairs(self, link: Link) -> list[veth.VethPair]:
        near, far = (link.b, link.a) if self.topology.is_host(link.a.node) else (link.a, link.b)
        if not self._is_veth(near, far):
            return []
        if is_wire(self.topology, link, self.backend.foreign):
            # Two pairs, with the switch process between them.
            return [self._veth_pair(wire_interface_name(end), self._wire_mac(end), end) for end in (near, far)]
        return [self._veth_pair(interface_name(near), self._interface_mac(near), far)]

    def _veth_pair(self, name: str, mac: str, far: Endpoint) -> veth.VethPair:
        """Return the pair from the interface `name` here to the one at a link end."""
        return veth.VethPair(
            interface=name,
            mac=mac,
            peer=interface_name(far),
            peer_mac=self._interface_mac(far),
            peer_pid=self.host_pid(far.node) if self.topology.is_host(far.node) else None,
        )

    def _is_veth(self, a: Endpoint, b: Endpoint) -> bool:
        return self.links == "veth" or any(
            self.topology.is_host(end.node) or end.node in self.backend.foreign for end in (a, b)
        )

    def _wire_mac(self, end: Endpoint) -> str:
        """Return the MAC address of the interface that faces the one at a link end."""
        return "02:03:" + self._interface_mac(end)[len("02:03:") :]

    def _interface_mac(self, end: Endpoint) -> str:
        if self.topology.is_host(end.node):
            return host_port_mac(self.topology.host(end.node), end.port)
        return port_mac(self.topology.switch(end.node).number, end.port)


def _require_mininet() -> None:
    try:
        if sys.version_info >= (3, 12):
            import setuptools  # noqa: F401  # Mininet 2.3 imports distutils, which is setuptools' from 3.12 on
        import mininet.net  # noqa: F401
    except ImportError as error:
        raise UserError(
            f"Mininet cannot be used ({error}): apt-get install --no-install-recommends mininet"
        ) from error


@contextlib.contextmanager
def _descriptor_limit(more: int) -> Iterator[None]:
    """Allow `more` open files than the usual 1024, and not many: mnexec closes every possible one, one by one.

    Where the limit is a million, as in many containers, that would cost a second per host.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    enough = min(1024 + more, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (enough, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, enough), hard))
