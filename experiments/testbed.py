"""A network that runs: switches and hosts under Mininet, programmed by the controller."""

from __future__ import annotations

from pathlib import Path

from controller.client import ControllerClient
from controller.config import ControllerConfig, ProgramFiles
from switch.program_cache import CompiledFiles
from topo.fabric_layout import LinkKind
from topo.graph import Topology
from topo.json_lines import JsonLinesProcess, own_program
from topo.network import EmulatedNetwork, SwitchKind

REST_ADDRESS = "127.0.0.1:8080"
"""In the sandbox, whose loopback nobody else uses."""

START_TIMEOUT_S = 90.0
STOP_TIMEOUT_S = 3.0


class Testbed:
    """Brings up `topology` with `program` in every switch. A context manager, for use in a sandbox.

    folder holds configurations and logs. rest_fd is a listening socket that serves the REST interface, too: one made
    outside the sandbox can be reached from there.
    """

    __test__ = False  # not a test, whatever pytest makes of its name

    def __init__(
        self,
        topology: Topology,
        program: CompiledFiles,
        folder: Path,
        *,
        switch_kind: SwitchKind = "gradbed",
        links: LinkKind = "memory",
        seed: int = 1,
        rest_fd: int | None = None,
    ) -> None:
        self.topology = topology
        self.network = EmulatedNetwork(topology, switch_kind=switch_kind, links=links, run_dir=folder, seed=seed)
        self.client = ControllerClient(REST_ADDRESS)
        self._program = program
        self._folder = folder
        self._rest_fd = rest_fd
        self._controller: JsonLinesProcess | None = None

    def __enter__(self) -> Testbed:
        try:
            # It loads its modules while the network is being made.
            self._controller = self._start_controller()
            self.network.start()
            self._configure(self._controller)
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Take everything down; harmless when it is down already."""
        if self._controller is not None:
            self._controller.terminate(STOP_TIMEOUT_S)
            self._controller = None
        self.network.stop()

    def _start_controller(self) -> JsonLinesProcess:
        return JsonLinesProcess(
            "controller",
            own_program("controller.app", "-"),
            log=self._folder / "controller.log",
            keep_open=[] if self._rest_fd is None else [self._rest_fd],
        )

    def _configure(self, controller: JsonLinesProcess) -> None:
        config = ControllerConfig(
            topology=self.topology,
            targets={s.name: self.network.p4runtime_address(s.name) for s in self.topology.switches},
            program=ProgramFiles(json=self._program.json, p4info=self._program.p4info),
            rest_fd=self._rest_fd,
            rest_address=REST_ADDRESS,
        )
        path = self._folder / "controller.json"
        path.write_text(config.model_dump_json(by_alias=True, indent=1))
        controller.send("configure", file=str(path))
        controller.expect("ready", START_TIMEOUT_S)
