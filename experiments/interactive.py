"""A network to look around in: Mininet's prompt inside, the REST interface outside."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from gradbed.common.capabilities import GRADBED_SWITCHES
from gradbed.common.errors import UserError, say
from gradbed.common.modules import COMMAND
from gradbed.common.namespaces import require_root
from gradbed.common.resources import scratch_folder
from gradbed.common.sandbox import run_in_sandbox
from gradbed.controller.rest.client import unix_path
from gradbed.emulation.size import announce, require_room
from gradbed.experiments.captures import capturing
from gradbed.experiments.live.observer import LiveObserver, observed
from gradbed.experiments.results.run_folder import CAPTURES, RunFolder
from gradbed.experiments.scale import Scale
from gradbed.experiments.setup import NetworkSetup, TrialTask
from gradbed.experiments.system import System, programs_line, unused_programs_line
from gradbed.switch.server.addresses import OutsideAddress, ServerTls, check_address
from gradbed.topo.files import topology_file
from gradbed.topo.selectors import Selection, select_all


@dataclass(frozen=True)
class Keeps:
    """Files that stay when the network has gone, in up/STAMP of the output folder."""

    output: Path
    captures: Sequence[str] = ()
    """Links, hosts or `all`."""
    live: bool = False
    """Whether there is a live view, and what it shows stays."""


def run_interactive(
    system: System,
    values: Mapping[str, Any],
    seed: int,
    rest_port: int,
    p4runtime_address: str | None = None,
    tls: ServerTls | None = None,
    keeps: Keeps | None = None,
) -> int:
    """Bring up the network of a trial and read commands for Mininet until exit, end of input, or Ctrl-D.

    values: of the system's configuration, as nested mappings. p4runtime_address: where, in the caller's network
    namespace, gradbed's switches serve P4Runtime besides; with tls over TLS. UserError as ever.
    """
    configuration = system.configuration.model_validate(values)
    if p4runtime_address is not None and unix_path(p4runtime_address) is not None:
        raise UserError(f"--p4runtime-address {p4runtime_address}: give HOST:PORT; the unix socket is always there")
    if p4runtime_address is not None:
        check_address(p4runtime_address)
    topology = configuration.topology.build(Scale())
    wanted = () if keeps is None else select_all(topology, keeps.captures)
    is_gradbed = configuration.program.model == "gradbed"
    GRADBED_SWITCHES.require(is_gradbed or p4runtime_address is None, "--p4runtime-address")
    require_room(topology)
    require_root("gradbed up")
    try:
        # Made out here, it can be reached from the caller's network namespace.
        rest = socket.create_server(("127.0.0.1", rest_port))
    except (OSError, OverflowError) as error:
        reason = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else str(error)
        raise UserError(f"--rest-port {rest_port}: {reason}; choose another, or 0") from None
    with (
        rest,
        open("/proc/self/ns/net", "rb") as namespace,
        scratch_folder() as folder,
    ):
        task = TrialTask(configuration, seed, Scale(), folder)
        setup = system.network(task)
        print(f"gradbed: {programs_line(setup)}", file=sys.stderr)
        if line := unused_programs_line(system, topology_file(configuration.topology.kind)):
            print(f"gradbed: {line}", file=sys.stderr)
        announce(topology)
        for note in setup.notes:
            print(f"note: {note}", file=sys.stderr)
        outside = None
        if p4runtime_address is not None:
            outside = OutsideAddress(p4runtime_address, namespace.fileno(), tls)
        run = None if keeps is None else RunFolder(keeps.output, "up")
        into = folder if run is None else run.path
        with _looking_on(keeps is not None and keeps.live) as observer:
            prompt = partial(_prompt, system, setup, task, rest, outside, wanted, into, observer)
            status = run_in_sandbox(prompt, "gradbed up")
        if run is not None:
            run.finish()
            run.close()
        return status


def _looking_on(live: bool) -> AbstractContextManager[LiveObserver | None]:
    if not live:
        return nullcontext()
    from gradbed.experiments.live.server import live_view  # a web server takes a while to load

    return live_view()


def _prompt(
    system: System,
    setup: NetworkSetup,
    task: TrialTask,
    rest: socket.socket,
    outside: OutsideAddress | None,
    wanted: Sequence[Selection],
    into: Path,
    observer: LiveObserver | None,
) -> int:
    """Run the prompt; capture what is `wanted` from the beginning, into this folder."""
    from gradbed.emulation.switches.gradbed_switches import P4RUNTIME_SOCKET
    from gradbed.experiments.prompt.prompt import run_prompt
    from gradbed.experiments.runtimes.real import RealRuntime

    try:
        topology = setup.topology
        print(f"gradbed: bringing up {topology.name} ...", file=sys.stderr)
        with RealRuntime(system, setup, task, rest_fd=rest.fileno(), p4runtime=outside) as runtime:
            host, port = rest.getsockname()
            say(
                f"gradbed: {len(topology.hosts)} hosts and {len(topology.switches)} switches are up; "
                f"REST interface: http://{host}:{port}/docs; 'exit' ends it",
                sys.stderr,
            )
            unix_socket = task.folder / P4RUNTIME_SOCKET
            if unix_socket.exists():
                say(
                    f"gradbed: P4Runtime: unix:{unix_socket}, a device id is the number of its switch; look around "
                    f"with 'p4sh SWITCH' here, elsewhere with '{COMMAND} p4 shell --grpc-addr unix:{unix_socket} "
                    "--device-id 1 --election-id 0,0'",
                    sys.stderr,
                )
            if outside is not None:
                say(
                    f"gradbed: P4Runtime {'over TLS ' if outside.tls else ''}at {outside.address}, too",
                    sys.stderr,
                )
            with (
                system.at_prompt(runtime, task),
                capturing(runtime.backend, wanted, into),
                nullcontext() if observer is None else observed(observer, runtime, setup, replace(task, folder=into)),
            ):
                if wanted:
                    print(f"gradbed: captures: {into}/{CAPTURES}/", file=sys.stderr)
                run_prompt(system, runtime, task)
    except UserError as error:
        print(f"{error.prefix}{error}", file=sys.stderr)
        return 2
    return 0
