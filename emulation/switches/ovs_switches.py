"""The legacy switches of a network: bridges of one Open vSwitch, for a controller that speaks OpenFlow 1.3."""

from __future__ import annotations

import json
import socket
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from gradbed.common.errors import UserError
from gradbed.emulation import veth
from gradbed.emulation.switches.fabric_layout import interface_name
from gradbed.emulation.switches.ovs_processes import OPENFLOW_VERSION, P4_INSTEAD, OvsProcesses, require_open_vswitch
from gradbed.topo.graph import Endpoint, Switch, Topology

if TYPE_CHECKING:
    from mininet.net import Mininet

DATAPATH_TYPE = "netdev"
"""The user-space datapath: it needs no kernel module, and behaves alike on every machine."""

FIRST_PORT = 6653
"""OpenFlow's own (IANA). Bridges wait at this and the next ones, below those that the kernel gives to others."""
MAX_PORT = 65535

DATAPATH_INTERFACE = "ovs-netdev"
"""It makes an interface of this name, and one for each bridge; they outlive it."""


class OvsSwitches:
    """Runs the switches `names` of the topology as bridges.

    A bridge bears its switch's name, its datapath id is the switch's number, its ports have the numbers of the graph,
    and it listens for one controller at `control_address`. Until a controller installs flows it forwards nothing
    (fail-mode secure): no learning, no flooding. Links are not its business
    (gradbed.emulation.fabric.ForeignSwitches).
    """

    def __init__(self, topology: Topology, names: Collection[str]) -> None:
        self.topology = topology
        self.names = frozenset(names)
        self.switches = tuple(switch for switch in topology.switches if switch.name in self.names)
        self._ports: dict[str, int] = {}
        self._processes: OvsProcesses | None = None

    def check(self) -> None:
        """Raise UserError without Open vSwitch."""
        require_open_vswitch()

    def add_nodes(self, net: Mininet, run_dir: Path) -> None:
        from gradbed.emulation.nodes import OvsBridge

        for switch in self.switches:
            net.addSwitch(switch.name, cls=OvsBridge, number=switch.number, run_dir=ovs_directory(run_dir))

    def start(self, run_dir: Path) -> None:
        """Start the daemons and make all bridges, with the interfaces that exist now as ports."""
        ports = filter(_is_free, range(FIRST_PORT, MAX_PORT + 1))
        self._ports = {switch.name: next(ports) for switch in self.switches}
        self._processes = OvsProcesses(ovs_directory(run_dir))
        self._processes.vsctl(*(word for switch in self.switches for word in self._bridge(switch)))
        self._require_working_ports(self._processes)

    def stop(self) -> None:
        if self._processes is not None:
            self._processes.stop()
            self._processes = None
            veth.delete_interfaces([DATAPATH_INTERFACE, *(switch.name for switch in self.switches)])

    def restart_switch(self, switch: str) -> None:
        """Take a bridge away, with its ports, flows, groups and connections, and make it anew. The daemon goes on: it
        runs the others, too."""
        if self._processes is None:
            raise RuntimeError("Open vSwitch has not been started")
        self._processes.vsctl("del-br", switch)
        self._processes.vsctl(*self._bridge(self.topology.switch(switch)))
        self._require_working_ports(self._processes)

    def control_address(self, switch: str) -> str:
        """Return where the bridge waits for its controller, as "127.0.0.1:PORT"."""
        return f"127.0.0.1:{self._ports[switch]}"

    def thrift_ports(self) -> dict[str, int]:
        return {}

    def _bridge(self, switch: Switch) -> Iterator[str]:
        """Arguments of ovs-vsctl (ovs-vswitchd.conf.db(5))."""
        name = switch.name
        yield from ("--", "add-br", name, "--", "set", "bridge", name)
        yield from (f"datapath_type={DATAPATH_TYPE}", "fail_mode=secure", f"protocols={OPENFLOW_VERSION}")
        yield from (f"other_config:datapath-id={switch.number:016x}", "other_config:disable-in-band=true")
        yield from ("--", "set-controller", name, self._controller_target(name))
        for number in self.topology.neighbours(name).values():
            interface = interface_name(Endpoint(node=name, port=number))
            yield from ("--", "add-port", name, interface)
            yield from ("--", "set", "interface", interface, f"ofport_request={number}")

    def _controller_target(self, switch: str) -> str:
        """Let the bridge wait to be called, so that controllers reach it at once, in any order of start."""
        return f"ptcp:{self._ports[switch]}:127.0.0.1"

    def _require_working_ports(self, processes: OvsProcesses) -> None:
        """Raise UserError for a port that the daemon cannot open here, RuntimeError for one of another number."""
        table = json.loads(
            processes.vsctl("--format=json", "--columns=name,ofport,ofport_request,error", "list", "interface")
        )
        for name, given, wanted, error in table["data"]:
            if error not in ("", ["set", []]):
                raise UserError(f"Open vSwitch cannot use {name} here ({error}): {P4_INSTEAD}")
            if wanted != ["set", []] and given != wanted:
                raise RuntimeError(f"Open vSwitch made {name} port {given}, not {wanted}")


def ovs_directory(run_dir: Path) -> Path:
    return run_dir.resolve() / "ovs"


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        # As Open vSwitch does: connections of a network before this one do not matter.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
