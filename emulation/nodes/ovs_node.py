"""A bridge of Open vSwitch, as a Mininet node."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

from gradbed.emulation.nodes.quiet_switch import QuietSwitch

OPENFLOW_VERSION = "OpenFlow13"


class OvsBridge(QuietSwitch):
    """One bridge of the network's ovs-vswitchd. Its datapath id is the switch's number; run_dir has its sockets."""

    def __init__(self, name: str, number: int, run_dir: Path, **params: Any) -> None:
        super().__init__(name, number, **params)
        self.run_dir = run_dir

    def dpctl(self, *arguments: str) -> str:
        """What ovs-ofctl says: `dpctl("dump-flows")`. Mininet's command line has it, too."""
        command, *rest = arguments
        return subprocess.run(
            ["ovs-ofctl", "-O", OPENFLOW_VERSION, command, f"unix:{self.run_dir}/{self.name}.mgmt", *rest],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        ).stdout
