"""A network that runs: switches and hosts under Mininet, programmed by the controller."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from pathlib import Path

from controller.client import ControllerClient
from controller.config import ControllerConfig, ProgramFiles
from controller.planning.legacy import LegacyKind
from controller.systems.aggregation.slots import DEFAULT_SLOTS
from switch.outside_address import OutsideAddress
from switch.program_cache import CompiledFiles
from topo.fabric_layout import LinkKind
from topo.graph import Topology
from topo.json_lines import JsonLinesProcess, own_program
from topo.network import EmulatedNetwork, SwitchKind
from topo.size import estimate

REST_ADDRESS = "127.0.0.1:8080"
"""In the sandbox, whose loopback nobody else uses."""

START_TIMEOUT_S, READY_TIMEOUT_S = 90.0, 60.0
"""For small networks: of the controller as a whole, and of its switches."""

PATIENCE = 4
"""Times the estimate of what a network takes to come up (topo/size.py): machines have other things to do."""

STOP_TIMEOUT_S = 3.0


class Testbed:
    """Brings up `topology` with `program` in every switch. A context manager, for use in a sandbox.

    folder holds configurations, logs and the controller's journal. slots: of `program`. legacy: switches that only
    forward, as Open vSwitch or with `forward_program`. congestion_packets: packets in a queue that P4 switches mark
    as congestion; 0: none. rest_fd is a listening socket that serves the REST interface, too: one made outside the
    sandbox can be reached from there. p4runtime: the same for P4Runtime of gradbed's switches.
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
        slots: int = DEFAULT_SLOTS,
        legacy: Mapping[str, LegacyKind] | None = None,
        forward_program: CompiledFiles | None = None,
        congestion_packets: int = 0,
        rest_fd: int | None = None,
        p4runtime: OutsideAddress | None = None,
    ) -> None:
        self.topology = topology
        self.legacy = dict(legacy or {})
        self.network = EmulatedNetwork(
            topology,
            switch_kind=switch_kind,
            links=links,
            run_dir=folder,
            seed=seed,
            kinds={name: "openflow" for name, kind in self.legacy.items() if kind == "openflow"},
            p4runtime=p4runtime,
        )
        self.client = ControllerClient(REST_ADDRESS)
        self._program = program
        self._forward_program = forward_program
        self._slots = slots
        self._congestion_packets = congestion_packets
        self._folder = folder
        self._rest_fd = rest_fd
        self._patience_s = PATIENCE * estimate(topology).time_s
        self._controller: JsonLinesProcess | None = None

    def __enter__(self) -> Testbed:
        try:
            # It loads its modules while the network is being made.
            self._controller = self._start_controller("-")
            self.network.start()
            path = self._write_configuration()
            self._controller.send("configure", file=str(path))
            self._controller.expect("ready", START_TIMEOUT_S + self._patience_s)
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

    def restart_controller(self) -> None:
        """Kill the controller as it stands, and return when its successor has taken over."""
        if self._controller is None:
            raise RuntimeError("there is no controller to be restarted")
        os.kill(self._controller.pid, signal.SIGKILL)
        self._controller.stop(STOP_TIMEOUT_S)
        self._controller = self._start_controller(str(self._configuration_path))
        self._controller.expect("ready", START_TIMEOUT_S + self._patience_s)

    @property
    def _configuration_path(self) -> Path:
        return self._folder / "controller.json"

    def _start_controller(self, argument: str) -> JsonLinesProcess:
        return JsonLinesProcess(
            "controller",
            own_program("controller.app", argument),
            log=self._folder / "controller.log",
            keep_open=[] if self._rest_fd is None else [self._rest_fd],
        )

    def _write_configuration(self) -> Path:
        config = ControllerConfig(
            topology=self.topology,
            targets={switch.name: self.network.control_address(switch.name) for switch in self.topology.switches},
            program=_files(self._program),
            slots=self._slots,
            legacy=self.legacy,
            forward_program=None if self._forward_program is None else _files(self._forward_program),
            congestion_packets=self._congestion_packets or None,
            journal=self._folder / "controller.journal.json",
            rest_fd=self._rest_fd,
            rest_address=REST_ADDRESS,
            ready_timeout_s=READY_TIMEOUT_S + self._patience_s,
        )
        self._configuration_path.write_text(config.model_dump_json(by_alias=True, indent=1))
        return self._configuration_path


def _files(program: CompiledFiles) -> ProgramFiles:
    return ProgramFiles(json=program.json, p4info=program.p4info)
