"""A network to look around in: Mininet's prompt inside, the REST interface outside."""

from __future__ import annotations

import os
import socket
import sys
import tempfile
from pathlib import Path

from experiments.config import NetworkConfig
from experiments.programs import aggregation_program
from switch.errors import UserError
from topo.graph import Topology
from topo.namespaces import require_root
from topo.registry import parse_topology
from topo.sandbox import run_in_sandbox
from topo.size import announce


def run_interactive(config: NetworkConfig, rest_port: int) -> int:
    """Bring the network up and read commands for Mininet until exit, end of input, or Ctrl-D. UserError as ever."""
    topology = parse_topology(config.topology, config.link_model)
    announce(topology)
    require_root("gradbed up")
    try:
        # Made out here, it can be reached from the caller's network namespace.
        rest = socket.create_server(("127.0.0.1", rest_port))
    except (OSError, OverflowError) as error:
        reason = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else str(error)
        raise UserError(f"--rest-port {rest_port}: {reason}; choose another, or 0") from None
    with rest, tempfile.TemporaryDirectory(prefix="gradbed-") as folder:
        return run_in_sandbox(lambda: _prompt(topology, config, Path(folder), rest), "gradbed up")


def _prompt(topology: Topology, config: NetworkConfig, folder: Path, rest: socket.socket) -> int:
    from mininet.cli import CLI

    from experiments.testbed import Testbed
    from topo.fabric_switches import P4RUNTIME_SOCKET

    try:
        print(f"gradbed: bringing up {config.topology} ...", file=sys.stderr)
        with Testbed(
            topology,
            aggregation_program(config.lanes, config.switch, config.slots),
            folder,
            switch_kind=config.switch,
            links=config.links,
            seed=config.seed,
            slots=config.slots,
            congestion_packets=config.congestion_packets,
            rest_fd=rest.fileno(),
        ) as testbed:
            host, port = rest.getsockname()
            print(
                f"gradbed: {len(topology.hosts)} hosts and {len(topology.switches)} switches are up; "
                f"REST interface: http://{host}:{port}/docs; 'exit' ends it",
                file=sys.stderr,
            )
            unix_socket = folder / P4RUNTIME_SOCKET
            if unix_socket.exists():
                print(
                    f"gradbed: P4Runtime: unix:{unix_socket}, a device id is the number of its switch; look around "
                    f"with './gradbed p4 shell --grpc-addr unix:{unix_socket} --device-id 1 --election-id 0,0'",
                    file=sys.stderr,
                )
            CLI(testbed.network.mininet)
    except UserError as error:
        print(f"{error.prefix}{error}", file=sys.stderr)
        return 2
    return 0
