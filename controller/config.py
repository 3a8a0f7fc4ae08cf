"""The controller's configuration file."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from gradbed.common.errors import UserError
from gradbed.common.problems import first_problem
from gradbed.controller.core.service import ServiceConfig
from gradbed.controller.planning.legacy import OPENFLOW
from gradbed.controller.planning.multicast import MAX_JOB
from gradbed.controller.southbound.interface import Target
from gradbed.topo.graph import Topology


class ProgramFiles(BaseModel):
    """The files that a P4 compiler wrote for a program."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    json_: Path = Field(alias="json")
    """BMv2 JSON."""
    p4info: Path
    """P4Info, as text or binary."""
    routed: bool = True
    """Whether the controller fills the table ipv4_routes, if the program has one."""


class ControllerConfig(BaseModel):
    """The controller's configuration, a file with one JSON object."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    topology: Topology
    targets: dict[str, str]
    """For every P4 switch the gRPC address of its P4Runtime server, where its device id is its number; for every
    OpenFlow switch the TCP address at which it waits for a controller."""
    thrift_ports: dict[str, int] = {}
    """Thrift ports of BMv2 switches, whose P4Runtime servers do not read registers."""
    programs: dict[str, ProgramFiles] = {}
    """P4 programs by name."""
    switches: dict[str, str]
    """For every switch the name of its program, or "openflow"."""
    services: tuple[ServiceConfig, ...] = ()
    """The systems that have jobs in this network."""
    rest_fd: int | None = Field(default=None, ge=0)
    """File descriptor of an inherited bound socket at which the REST interface listens."""
    rest_address: str | None = None
    """Address at which the REST interface listens, besides rest_fd: "127.0.0.1:8080", or the path of a unix
    socket."""
    ready_timeout_s: float = Field(default=60.0, gt=0)
    """Time within which every switch must be programmed."""
    apps: tuple[str, ...] = ()
    """Further os-ken applications to load into the process."""
    journal: Path | None = None
    """Folder with the jobs. A controller that finds one takes over from the controller that wrote it, and keeps what
    is right already in the switches. Of several controllers with one journal one is in charge, the others stand
    by."""
    keep_pipelines: bool = False
    """Take over a running network without a journal: switches keep their pipelines."""
    first_job: int = Field(default=1, ge=1, le=MAX_JOB)
    """The first job number, after those in use in a network that is taken over."""
    hand_over: bool = False
    """Disconnect from all switches once they hold their plans, for another controller to take over."""

    @model_validator(mode="after")
    def _consistent(self) -> ControllerConfig:
        names = {switch.name for switch in self.topology.switches}
        for field, of_switches in (("targets", self.targets), ("switches", self.switches)):
            for name in of_switches:
                if name not in names:
                    raise ValueError(f"{field} name {name}, which is no switch of the topology")
            for name in sorted(names - set(of_switches)):
                raise ValueError(f"{field} lack the switch {name}")
        if OPENFLOW in self.programs:
            raise ValueError(f"programs: {OPENFLOW} is no name for a program")
        for name, program in self.switches.items():
            if program != OPENFLOW and program not in self.programs:
                known = ", ".join(self.programs) or "none"
                raise ValueError(f"{name} is to run {program}, which is not among the programs: {known}")
        systems = [service.name for service in self.services]
        for system in systems:
            if systems.count(system) > 1:
                raise ValueError(f"two services have the name {system}")
        return self

    @classmethod
    def load(cls, path: Path) -> ControllerConfig:
        """Read the file; UserError, one line, if it is missing or wrong."""
        try:
            return cls.model_validate_json(path.read_bytes())
        except OSError as error:
            raise UserError(f"cannot read the configuration {path}: {error.strerror}") from None
        except ValidationError as error:
            raise UserError(f"{path}: {first_problem(error)}") from None

    def switch_targets(self) -> dict[str, Target]:
        return {
            switch.name: Target(self.targets[switch.name], switch.number, self.thrift_ports.get(switch.name))
            for switch in self.topology.switches
        }
