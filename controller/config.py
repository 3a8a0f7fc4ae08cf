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
    """Files that a P4 compiler wrote: BMv2 JSON, and P4Info as text or binary. routed: the controller fills its table
    ipv4_routes, if it has one."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    json_: Path = Field(alias="json")
    p4info: Path
    routed: bool = True


class ControllerConfig(BaseModel):
    """One JSON object; see the fields.

    topology: the graph. targets: for every switch the gRPC address of its P4Runtime server, where its device id
    is its number, or, of an OpenFlow switch, the TCP address at which it waits for a controller. thrift_ports: of
    switches of BMv2, which tell by Thrift what their P4Runtime does not. programs: what P4
    switches run, by name. switches: for every switch the name of its program, or "openflow". services: the systems
    that have jobs in this network. The REST interface listens on rest_fd (an inherited bound socket) and at
    rest_address ("127.0.0.1:8080", or the path of a unix socket), whichever are not null. ready_timeout_s: seconds
    within which every switch must be programmed. apps: further os-ken applications to load into the process. journal:
    a folder that holds the jobs; a controller that finds one takes over from the one that wrote it, and leaves in the
    switches what is right already. Of several controllers with one journal one is in charge, the others stand by.
    keep_pipelines and first_job: for a controller that takes over a running network without a journal; job numbers
    that were in use there must not be given out again. hand_over: once every switch holds its plan, let go of them
    all, for another controller to take over.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    topology: Topology
    targets: dict[str, str]
    thrift_ports: dict[str, int] = {}
    programs: dict[str, ProgramFiles] = {}
    switches: dict[str, str]
    services: tuple[ServiceConfig, ...] = ()
    rest_fd: int | None = Field(default=None, ge=0)
    rest_address: str | None = None
    ready_timeout_s: float = Field(default=60.0, gt=0)
    apps: tuple[str, ...] = ()
    journal: Path | None = None
    keep_pipelines: bool = False
    first_job: int = Field(default=1, ge=1, le=MAX_JOB)
    hand_over: bool = False

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
