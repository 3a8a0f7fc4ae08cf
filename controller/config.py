"""The controller's configuration file."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from controller.planning.legacy import LegacyKind
from controller.southbound.target import Target
from controller.systems.aggregation.job_plan import MAX_JOB
from controller.systems.aggregation.slots import DEFAULT_SLOTS
from switch.errors import UserError
from topo.graph import Topology


class ProgramFiles(BaseModel):
    """What a P4 compiler wrote: BMv2 JSON, and P4Info as text or binary."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    json_: Path = Field(alias="json")
    p4info: Path


class ControllerConfig(BaseModel):
    """One JSON object; see the fields.

    topology: the graph. targets: for every switch the gRPC address of its P4Runtime server, where its device id
    is its number, or, of an OpenFlow switch, the TCP address at which it waits for a controller. program: what
    switches that sum gradients run, with that many slots. legacy: the switches that cannot, and what they are;
    forward_program: what those of kind p4 run. congestion_packets: packets in a queue that are congestion; null:
    none are. The REST interface listens on rest_fd (an inherited bound socket) and at rest_address
    ("127.0.0.1:8080", or the path of a unix socket), whichever are not null. ready_timeout_s: seconds within
    which every switch must be programmed. apps: further os-ken applications to load into the process. journal: a
    file that holds the jobs; a controller that finds one takes over from the one that wrote it, and leaves in the
    switches what is right already. keep_pipelines and first_job: for a controller that takes over a running
    network without a journal; job numbers that were in use there must not be given out again.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    topology: Topology
    targets: dict[str, str]
    program: ProgramFiles
    slots: int = Field(default=DEFAULT_SLOTS, ge=1)
    legacy: dict[str, LegacyKind] = {}
    forward_program: ProgramFiles | None = None
    congestion_packets: int | None = Field(default=None, ge=1)
    rest_fd: int | None = Field(default=None, ge=0)
    rest_address: str | None = None
    ready_timeout_s: float = Field(default=60.0, gt=0)
    apps: tuple[str, ...] = ()
    journal: Path | None = None
    keep_pipelines: bool = False
    first_job: int = Field(default=1, ge=1, le=MAX_JOB)

    @model_validator(mode="after")
    def _consistent(self) -> ControllerConfig:
        switches = {switch.name for switch in self.topology.switches}
        for name in self.targets:
            if name not in switches:
                raise ValueError(f"targets name {name}, which is no switch of the topology")
        for name in sorted(switches - set(self.targets)):
            raise ValueError(f"targets lack the switch {name}")
        for name in self.legacy:
            if name not in switches:
                raise ValueError(f"legacy names {name}, which is no switch of the topology")
        if "p4" in self.legacy.values() and self.forward_program is None:
            raise ValueError("legacy switches of kind p4 need a forward_program")
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
        return {switch.name: Target(self.targets[switch.name], switch.number) for switch in self.topology.switches}


def first_problem(error: ValidationError) -> str:
    """The first of pydantic's complaints, on one line."""
    first = error.errors(include_url=False)[0]
    place = ".".join(str(part) for part in first["loc"])
    message = " ".join(first["msg"].removeprefix("Value error, ").split())
    return f"{place}: {message}" if place else message
