"""A topology as a running network: hosts in network namespaces, switches as processes, links between them."""

from __future__ import annotations

import contextlib
import json
import resource
import secrets
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Literal

from switch.errors import UserError
from topo import interface_counters, traffic_control, veth
from topo.addressing import port_mac
from topo.fabric_layout import (
    DirectionStatistics,
    LinkKind,
    fabric_config,
    interface_name,
    name_statistics,
)
from topo.fabric_process import FabricProcess
from topo.graph import Endpoint, Topology
from topo.namespaces import require_root

if TYPE_CHECKING:
    from mininet.net import Mininet

SwitchKind = Literal["gradbed", "bmv2"]

MAX_INTERFACE_NAME = 15
"""IFNAMSIZ of <linux/if.h>, less the closing zero."""


class EmulatedNetwork:
    """Brings a topology up in the caller's network namespace, and takes it down again without a trace.

    topology: what to build.
    switch_kind: "gradbed" (one fabric process for all switches) or "bmv2" (one simple_switch_grpc each).
    links: "memory" (links between switches are queues in the fabric process) or "veth" (interfaces of the kernel,
        to capture on); with bmv2 always veth. Links to hosts are veth.
    run_dir: where configuration and logs go; without one, a temporary directory that goes with the network.
    seed: of everything random in the links; the same seed gives the same decisions.

    Run it in topo.sandbox.run_in_sandbox: then not even SIGKILL leaves anything behind. A context manager; `stop`
    may be called at any time, again, and after an interrupted `start`, which has cleaned up then already.
    """

    def __init__(
        self,
        topology: Topology,
        switch_kind: SwitchKind = "gradbed",
        links: LinkKind = "memory",
        run_dir: Path | None = None,
        seed: int = 1,
    ) -> None:
        self.topology = topology
        self.switch_kind = switch_kind
        self.links: LinkKind = "veth" if switch_kind == "bmv2" else links
        self.seed = seed
        self._given_run_dir = run_dir
        self._own_run_dir: Path | None = None
        self._mininet: Mininet | None = None
        self._fabric: FabricProcess | None = None
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
        """Return once all hosts have addresses and all switches serve P4Runtime.

        UserError if not root, without Mininet, without BMv2 if asked for, where the kernel lacks what the links
        need, or if another network runs in this network namespace. Call it from the main thread: the fabric process
        ends with the thread that started it.
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
        if self._fabric is not None:
            self._fabric.stop()
            self._fabric = None
        if self._interface_group:
            veth.delete_group(self._interface_group)
            self._interface_group = 0
        if self._mininet is not None:
            self._mininet.stop()
            self._mininet = None
        if self._own_run_dir is not None:
            shutil.rmtree(self._own_run_dir)
            self._own_run_dir = None

    def p4runtime_address(self, switch: str) -> str:
        """Where the P4Runtime server of a switch listens, as "127.0.0.1:PORT"; the device id is its number."""
        name = self.topology.switch(switch).name
        if self._fabric is not None:
            return f"127.0.0.1:{self._fabric.grpc_ports[0]}"
        address: str = self.mininet[name].grpc_address
        return address

    def host_pid(self, host: str) -> int:
        """A process whose namespaces are the host's (its shell)."""
        pid: int = self.mininet[self.topology.host(host).name].pid
        return pid

    def link_statistics(self) -> list[DirectionStatistics]:
        """One row per direction of every link, since the start.

        With BMv2 from the kernel's counters, which do not tell lost packets from those that found the queue full,
        nor duplicates from originals: links with loss or duplication have no rows then.
        """
        if self._fabric is not None:
            return list(name_statistics(self.topology, self.links, self._fabric.link_statistics()))
        return list(self._kernel_statistics())

    def quiesce(self, timeout_s: float = 2.0) -> bool:
        """Wait until no packet is on its way; False if some still are after `timeout_s`.

        With BMv2 that is when no interface of a switch has sent anything for 50 ms.
        """
        if self._fabric is not None:
            return self._fabric.quiesce(timeout_s)
        deadline = time.monotonic() + timeout_s
        before = None
        while time.monotonic() < deadline:
            now = interface_counters.sent()
            if now == before:
                return True
            before = now
            time.sleep(0.05)
        return False

    # How it comes up.

    def _start(self) -> None:
        require_root("an emulated network")
        if self._given_run_dir is None:
            self._own_run_dir = Path(tempfile.mkdtemp(prefix="gradbed-"))
        self.run_dir.mkdir(parents=True, exist_ok=True)
        self._require_short_names()
        if self.switch_kind == "bmv2":
            traffic_control.require_kernel_support(link.model for link in self.topology.links)
        self._add_nodes()
        self._add_links()
        self._make_interfaces()
        if self.switch_kind == "bmv2":
            self._start_bmv2()
        else:
            self._start_fabric()

    def _require_short_names(self) -> None:
        for link in self.topology.links:
            for end in (link.a, link.b):
                name = interface_name(end)
                if len(name) > MAX_INTERFACE_NAME:
                    raise UserError(f"{name} is too long for an interface: give {end.node} a shorter name")

    def _add_nodes(self) -> None:
        try:
            from mininet.net import Mininet
        except ImportError as error:
            raise UserError(
                f"Mininet cannot be used ({error}): apt-get install --no-install-recommends mininet"
            ) from error
        from topo.mininet_parts import EmulatedHost, RecordedIntf, RecordedLink

        Mininet.inited = True  # skip its changes to the machine's sysctl settings
        self._mininet = net = Mininet(controller=None, host=EmulatedHost, link=RecordedLink, intf=RecordedIntf)
        with _descriptor_limit(64 + 4 * len(self.topology.hosts)):
            for host in self.topology.hosts:
                net.addHost(host.name, ip=f"{host.ip}/{host.prefix_bits}", mac=host.mac)
        if self.switch_kind == "bmv2":
            from switch.nodes.bmv2_node import Bmv2Switch, find_simple_switch_grpc, free_ports

            binary = find_simple_switch_grpc()
            ports = iter(free_ports(2 * len(self.topology.switches)))
            for switch in self.topology.switches:
                net.addSwitch(
                    switch.name,
                    cls=Bmv2Switch,
                    number=switch.number,
                    binary=binary,
                    grpc_port=next(ports),
                    thrift_port=next(ports),
                    log=self.run_dir / f"{switch.name}.log",
                )
        else:
            from switch.nodes.fabric_node import FabricSwitch

            for switch in self.topology.switches:
                net.addSwitch(switch.name, cls=FabricSwitch, number=switch.number)
        net.built = True

    def _add_links(self) -> None:
        from topo.mininet_parts import MemoryIntf, RecordedIntf

        net = self.mininet
        in_memory = set() if self.links == "veth" else set(self.topology.switch_links)
        for link in self.topology.links:
            recorded = net.addLink(
                link.a.node,
                link.b.node,
                link.a.port,
                link.b.port,
                intf=MemoryIntf if link in in_memory else RecordedIntf,
                addr1=self._interface_mac(link.a),
                addr2=self._interface_mac(link.b),
            )
            for end, interface in ((link.a, recorded.intf1), (link.b, recorded.intf2)):
                if self.topology.is_host(end.node):
                    host = self.topology.host(end.node)
                    interface.ip, interface.prefixLen = host.ip, host.prefix_bits

    def _interface_mac(self, end: Endpoint) -> str:
        if self.topology.is_host(end.node):
            return self.topology.host(end.node).mac
        return port_mac(self.topology.switch(end.node).number, end.port)

    def _make_interfaces(self) -> None:
        pairs = []
        for link in self.topology.links:
            near, far = (link.b, link.a) if self.topology.is_host(link.a.node) else (link.a, link.b)
            far_is_host = self.topology.is_host(far.node)
            if far_is_host or self.links == "veth":
                pairs.append(
                    veth.VethPair(
                        interface=interface_name(near),
                        mac=self._interface_mac(near),
                        peer=interface_name(far),
                        peer_mac=self._interface_mac(far),
                        peer_pid=self.host_pid(far.node) if far_is_host else None,
                    )
                )
        self._interface_group = secrets.randbits(30) + 1
        veth.create_pairs(pairs, self._interface_group)
        for host in self.topology.hosts:
            if self.topology.neighbours(host.name):
                veth.configure_host(host, interface_name(Endpoint(node=host.name, port=0)), self.host_pid(host.name))

    def _start_fabric(self) -> None:
        config = self.run_dir / "fabric.json"
        config.write_text(
            json.dumps(fabric_config(self.topology, self.links, self.seed, ["127.0.0.1:0"]), indent=1),
            encoding="utf-8",
        )
        self._fabric = FabricProcess(config, self.run_dir / "fabric.log")
        self._fabric.wait_ready()

    def _start_bmv2(self) -> None:
        switch_lines: list[str] = []
        for link in self.topology.links:
            for end in (link.a, link.b):
                lines = traffic_control.commands(interface_name(end), link.model)
                if self.topology.is_host(end.node):
                    traffic_control.apply(lines, self.host_pid(end.node))
                else:
                    switch_lines += lines
        traffic_control.apply(switch_lines)
        self.mininet.start()
        for switch in self.mininet.switches:
            switch.wait_ready()

    def _kernel_statistics(self) -> Iterator[DirectionStatistics]:
        here = interface_counters.sent()
        for link in self.topology.links:
            if link.model.loss or link.model.duplicate:
                continue
            for end, other in ((link.a, link.b), (link.b, link.a)):
                at_host = self.topology.is_host(end.node)
                counters = interface_counters.sent(self.host_pid(end.node)) if at_host else here
                counts = counters[interface_name(end)]
                yield DirectionStatistics(
                    from_node=end.node,
                    to_node=other.node,
                    packets=counts.packets,
                    bytes=counts.bytes,
                    queue_drops=counts.drops,
                    queue_drop_bytes=None if counts.drops else 0,
                    losses=0,
                    lost_bytes=0,
                    duplicates=0,
                    duplicate_bytes=0,
                )


@contextlib.contextmanager
def _descriptor_limit(extra: int) -> Iterator[None]:
    """Make room for `extra` open files, and no more: mnexec closes every possible descriptor, one by one.

    Where the limit is a million, as in many containers, that would cost a second per host.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 1024 + extra
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(wanted, hard), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(wanted, hard)), hard))
