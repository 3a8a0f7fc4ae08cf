"""Training's part of the controller: all shortest paths in the switches, how they choose among them, where queues are
marked, and the multicast groups of jobs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

from gradbed.common.errors import UserError
from gradbed.controller.core.service import Service
from gradbed.controller.planning.entries import congestion_plan
from gradbed.controller.planning.multicast import GROUPS_PER_JOB, multicast_address, multicast_plan, multicast_tree
from gradbed.controller.planning.plan import Plan, SwitchPlan, TableEntry
from gradbed.controller.planning.routing import hash_seed
from gradbed.controller.systems.training.entries import LoadBalancing, Paths, PolicyName
from gradbed.formats.addresses import MulticastAddress
from gradbed.topo.graph import Topology

PROGRAM = "training"

# On star:3.
_REQUEST_EXAMPLE: dict[str, Any] = {
    "hosts": ["h1", "h2", "h3"],
    "groups": [{"root": "h1", "members": ["h2", "h3"]}],
}


class Marking(BaseModel, frozen=True, extra="forbid"):
    """Thresholds of ECN marking, as in DCQCN (SIGCOMM 2015, section 3.1).

    Thresholds are packets, or, with frame_bytes, bytes of frames of that length, since P4 programs see the number of
    packets in a queue and not their lengths.
    """

    k_min: int = Field(ge=0, lt=2**40)
    """Queue length above which packets are marked at random; without k_max, from which on all are marked."""
    k_max: int | None = Field(default=None, ge=1, lt=2**40)
    """Queue length from which on all packets are marked."""
    p_max: float = Field(default=1.0, gt=0, le=1)
    """Probability of marking that is reached at k_max."""
    frame_bytes: int | None = Field(default=None, ge=1)
    """Length of frames, if thresholds are in bytes."""

    @model_validator(mode="after")
    def _in_order(self) -> Marking:
        if self.k_max is not None and self.k_max < self.k_min:
            raise ValueError(f"k_max is at least k_min, got {self.k_max} and {self.k_min}")
        return self

    def packets(self, threshold: int) -> int:
        """Return a threshold in packets, rounded up."""
        return threshold if self.frame_bytes is None else -(-threshold // self.frame_bytes)


class TrainingSettings(BaseModel, frozen=True, extra="forbid"):
    """Settings of the service."""

    policy: PolicyName = "ecmp"
    """Rule by which switches choose among equally short paths."""
    seed: int = 1
    """Seed of the hashes that spread flows."""
    flowlet_us: int = Field(default=50, ge=1, lt=2**48)
    """Pause after which a flowlet ends."""
    marking: Marking | None = None
    """Thresholds of ECN; null: no switch marks."""
    routes: bool = True
    """Whether the service makes routes; false if switches run the program of another system, which has its own."""


class GroupRequest(BaseModel, frozen=True, extra="forbid"):
    """A multicast group: what the root sends to its address reaches all members."""

    root: str
    members: Annotated[tuple[str, ...], Field(min_length=1)]


class TrainingJobRequest(BaseModel):
    """A training job. hosts: of its ranks, in their order. groups: the multicast groups that it asks for."""

    model_config = ConfigDict(frozen=True, extra="forbid", json_schema_extra={"example": _REQUEST_EXAMPLE})

    hosts: Annotated[tuple[str, ...], Field(min_length=1)]
    groups: Annotated[tuple[GroupRequest, ...], Field(max_length=GROUPS_PER_JOB)] = ()


class AdmittedTrainingJob(BaseModel, frozen=True):
    """The answer to a new job."""

    job: int
    groups: tuple[MulticastAddress, ...]
    """Addresses of its multicast groups, in the order of the request."""


class TrainingService(Service[TrainingSettings, TrainingJobRequest, TrainingJobRequest, AdmittedTrainingJob]):
    """Implements gradbed.controller.core.service.Service."""

    Settings, Request, State, Answer = TrainingSettings, TrainingJobRequest, TrainingJobRequest, AdmittedTrainingJob
    programs = (PROGRAM,)

    def base(self) -> Plan:
        if not self.settings.routes:
            return Plan(switches={})
        paths, settings = Paths(self.topology), self.settings
        names = [switch.name for switch in self.topology.switches]

        def policy(switch: str) -> LoadBalancing:
            return LoadBalancing(settings.policy, hash_seed(settings.seed, switch), settings.flowlet_us)

        routing = Plan(switches={name: SwitchPlan.of(PROGRAM, paths.entries(name, policy(name))) for name in names})
        marking = settings.marking
        if marking is None:
            return routing
        always = None if marking.k_max is None else marking.packets(marking.k_max)
        marks = congestion_plan(
            self.topology,
            names,
            marking.packets(marking.k_min),
            PROGRAM,
            always_packets=always,
            p_max=marking.p_max,
        )
        return routing.merged(marks)

    def admit(
        self, number: int, request: TrainingJobRequest, others: Mapping[int, TrainingJobRequest]
    ) -> TrainingJobRequest:
        check_job(self.topology, request)
        return request

    def plan(self, number: int, state: TrainingJobRequest) -> Plan:
        first = number * GROUPS_PER_JOB
        plans = []
        for group, asked in enumerate(state.groups, first):
            tree = multicast_tree(self.topology, asked.root, asked.members, ())
            address = multicast_address(group).ip
            plans.append(Plan(switches=multicast_plan(self.topology, tree, group, address, PROGRAM)))
        return Plan(switches={}).merged(*plans)

    def answer(self, number: int, state: TrainingJobRequest) -> AdmittedTrainingJob:
        first = number * GROUPS_PER_JOB
        addresses = tuple(multicast_address(first + place) for place in range(len(state.groups)))
        return AdmittedTrainingJob(job=number, groups=addresses)

    def plain(self, switch: str, entry: TableEntry) -> TableEntry | None:
        # Switches that only forward have the controller's routes, one path for each destination, and do not mark.
        return entry if entry.table == "multicast_routes" else None


def check_job(topology: Topology, request: TrainingJobRequest) -> None:
    """Raise UserError unless ranks are on distinct hosts, and groups are made of them."""
    for name in request.hosts:
        topology.host(name)
    repeated = sorted({name for name in request.hosts if request.hosts.count(name) > 1})
    if repeated:
        raise UserError(f"two ranks on one host: {', '.join(repeated)}")
    for group in request.groups:
        strangers = sorted({group.root, *group.members} - set(request.hosts))
        if strangers:
            raise UserError(f"a multicast group is made of the job's hosts, not of {', '.join(strangers)}")
        if len(set(group.members)) < len(group.members):
            raise UserError(f"a multicast group of {group.root} names a member twice")
        if group.root in group.members:
            raise UserError(f"{group.root} cannot be both root and member of a multicast group")
