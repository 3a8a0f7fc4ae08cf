"""Open vSwitch of our own: ovsdb-server and ovs-vswitchd with a directory of theirs, beside no system service."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gradbed.common.errors import UserError
from gradbed.common.programs import find_program
from gradbed.emulation import veth
from gradbed.emulation.layout import interface_name
from gradbed.topo.graph import Endpoint, Switch, Topology

if TYPE_CHECKING:
    from mininet.net import Mininet


PROGRAMS = ("ovsdb-tool", "ovsdb-server", "ovs-vswitchd", "ovs-vsctl", "ovs-ofctl")
OPENFLOW_VERSION = "OpenFlow13"
SCHEMAS = ("/usr/share/openvswitch/vswitch.ovsschema", "/usr/local/share/openvswitch/vswitch.ovsschema")
TUN_DEVICE = Path("/dev/net/tun")
"""The user-space datapath makes its bridges' own interfaces with it."""

DATABASE = "unix:db.sock"
READY_TIMEOUT_S = 60.0
_POLL_S = 0.005

P4_INSTEAD = "take P4 switches in their place: `--optical p4` where they are optical ones, else `--legacy p4`"
ADVICE = f"apt-get install --no-install-recommends openvswitch-switch, or {P4_INSTEAD}"


def find_programs() -> dict[str, str]:
    """Return where Open vSwitch's programs are.

    Raises:
        UserError: It is not installed; one line.
    """
    found = {name: find_program(name) for name in PROGRAMS}
    missing = [name for name, place in found.items() if place is None]
    if missing:
        raise UserError(f"Open vSwitch is not installed (no {', '.join(missing)}): {ADVICE}")
    return {name: place for name, place in found.items() if place is not None}


def require_open_vswitch() -> None:
    """Raise UserError where Open vSwitch cannot run."""
    find_programs()
    _schema()
    if not TUN_DEVICE.exists():
        raise UserError(f"Open vSwitch needs {TUN_DEVICE}: modprobe tun, or {P4_INSTEAD}")


def _schema() -> str:
    for place in SCHEMAS:
        if os.path.exists(place):
            return place
    raise UserError(f"Open vSwitch has no {SCHEMAS[0]}: {ADVICE}")


class OvsProcesses:
    """A database and a switch daemon, started with the object; sockets, database and logs are in `directory`."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory = directory.resolve()
        self._programs = find_programs()
        # Sockets without a folder are looked for in OVS_RUNDIR; a comma in a path would separate two addresses.
        self._environment = {
            **os.environ,
            "OVS_RUNDIR": str(directory),
            "OVS_LOGDIR": str(directory),
            "OVS_DBDIR": str(directory),
            "OVS_SYSCONFDIR": str(directory),
        }
        self._running: list[subprocess.Popen[bytes]] = []
        directory.mkdir(parents=True, exist_ok=True)
        database = directory / "conf.db"
        database.unlink(missing_ok=True)
        self._call("ovsdb-tool", "create", str(database), _schema())
        try:
            self._start("ovsdb-server", str(database), f"--remote=p{DATABASE}")
            self._wait_for_socket()
            self.vsctl("--no-wait", "init")
            self._start("ovs-vswitchd", DATABASE)
        except BaseException:
            self.stop()
            raise

    def vsctl(self, *arguments: str) -> str:
        """Run ovs-vsctl: one transaction, which returns once the daemon has done it. RuntimeError in its words."""
        # The server's socket may be there before the server listens on it: hence retries.
        options = (f"--db={DATABASE}", f"--timeout={READY_TIMEOUT_S:.0f}", "--retry")
        return self._call("ovs-vsctl", *options, *arguments)

    def ofctl(self, bridge: str, command: str) -> str:
        """Run a command of ovs-ofctl on a bridge, beside its controller. RuntimeError in its words."""
        return self._call("ovs-ofctl", "-O", OPENFLOW_VERSION, command, f"unix:{bridge}.mgmt")

    def stop(self) -> None:
        """End both; harmless when they have ended. The interfaces of bridges stay behind."""
        # Killed, for the daemon would take its bridges apart one by one, which takes longer the more there are.
        for process in reversed(self._running):
            process.kill()
            process.wait()
        self._running = []

    def _start(self, program: str, *arguments: str) -> None:
        with (self.directory / f"{program}.log").open("wb") as log:
            process = subprocess.Popen(
                [
                    self._programs[program],
                    *arguments,
                    "--no-chdir",
                    f"--unixctl={program}.ctl",
                    "-vsyslog:off",
                    "-vconsole:warn",
                ],
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                # In a session of its own, so that Ctrl-C reaches it only through stop().
                start_new_session=True,
            )
        self._running.append(process)

    def _wait_for_socket(self) -> None:
        server = self._running[0]
        deadline = time.monotonic() + READY_TIMEOUT_S
        while not (self.directory / "db.sock").exists():
            if server.poll() is not None or time.monotonic() > deadline:
                words = (self.directory / "ovsdb-server.log").read_text(errors="replace").strip()
                raise RuntimeError(f"ovsdb-server does not serve:\n{words}")
            time.sleep(_POLL_S)

    def _call(self, program: str, *arguments: str) -> str:
        outcome = self._run([self._programs[program], *arguments])
        if outcome.returncode != 0:
            raise RuntimeError(f"{program} failed: {outcome.stderr.strip()}{self._last_words()}")
        return outcome.stdout

    def _run(self, command: Sequence[str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, env=self._environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )

    def _last_words(self) -> str:
        log = self.directory / "ovs-vswitchd.log"
        words = log.read_text(errors="replace").strip() if log.exists() else ""
        return f"\n{words}" if words else ""


# ---- The legacy switches of a network: bridges of one Open vSwitch, for a controller that speaks OpenFlow 1.3 ----


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
    (gradbed.emulation.backend.ForeignSwitches).
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
