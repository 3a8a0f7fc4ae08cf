"""Open vSwitch of our own: ovsdb-server and ovs-vswitchd with a directory of theirs, beside no system service."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from gradbed.common.errors import UserError
from gradbed.common.programs import find_program

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
