"""Services: one system's part of the controller each, named in the controller's configuration and loaded by name."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from gradbed.common.errors import UserError
from gradbed.common.modules import attribute
from gradbed.common.problems import Spelling, first_problem
from gradbed.controller.planning.plan import Plan, TableEntry
from gradbed.controller.planning.routing import Routes
from gradbed.controller.southbound.interface import Message
from gradbed.topo.graph import Topology

SettingsT = TypeVar("SettingsT", bound=BaseModel)
RequestT = TypeVar("RequestT", bound=BaseModel)
StateT = TypeVar("StateT", bound=BaseModel)
AnswerT = TypeVar("AnswerT", bound=BaseModel)


class NoSettings(BaseModel, frozen=True, extra="forbid"):
    """The settings of a system that has none."""


class Service(ABC, Generic[SettingsT, RequestT, StateT, AnswerT]):
    """Decides what switches hold for one system: plans in, plans out, no network, no clock.

    The controller (controller/core/controller.py) calls one method at a time. It installs together IPv4 routes to all
    hosts, the base plans of all services, and the plans of all jobs; they must not contradict each other.

    Settings: what the operator sets once. Request: what a job is asked with. State: what is kept of an admitted job,
    in memory and in the journal: all decisions made, so that the job's plan follows from it, the topology and the
    routes. Answer: what agents and callers are told of a job; it must have the field `job`, its number. Listed: the
    same in a list of jobs. Examples in their JSON schemas are shown in the description of the REST interface.
    programs: the P4 programs of this system. As far as the system is concerned all other switches only forward:
    planners plan for all switches alike, and `plain` tells what those hold. Messages come from these programs alone.
    """

    Settings: type[SettingsT]
    Request: type[RequestT]
    State: type[StateT]
    Answer: type[AnswerT]
    Listed: type[BaseModel]
    programs: Collection[str]

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "Answer" in cls.__dict__ and "Listed" not in cls.__dict__:
            cls.Listed = cls.Answer

    def __init__(self, topology: Topology, routes: Routes, settings: SettingsT) -> None:
        self.topology = topology
        self.routes = routes
        self.settings = settings

    def unrouted(self) -> Collection[str]:
        """Names of switches to which the controller is to give no IPv4 routes, since they know no addresses."""
        return ()

    def base(self) -> Plan:
        """Return what switches hold beside the routes and jobs, by what the service knows now."""
        return Plan(switches={})

    @abstractmethod
    def admit(self, number: int, request: RequestT, others: Mapping[int, StateT]) -> StateT:
        """Make all decisions for a job. others: the system's jobs that run already, by number. UserError if the
        request makes no sense; nothing has changed then."""

    @abstractmethod
    def plan(self, number: int, state: StateT) -> Plan:
        """Return what switches hold for a job."""

    @abstractmethod
    def answer(self, number: int, state: StateT) -> AnswerT: ...

    def listed(self, number: int, state: StateT) -> BaseModel:
        """Return the job as the list of jobs shows it."""
        return self.answer(number, state)

    def plain(self, switch: str, entry: TableEntry) -> TableEntry | None:
        """Return what a switch that only forwards holds for an entry of this system's program; None: nothing.

        Its tables are those of p4src/forward.p4.

        Raises:
            UserError: It cannot be done there.
        """
        return entry

    def on_message(self, switch: str, message: Message) -> Plan | None:
        """Handle what a switch with a program of this system sent.

        Returns the base plan from now on, or None if it has not changed. What a service learns so is not in the
        journal.
        """
        return None

    def reroute(self, topology: Topology, routes: Routes) -> None:
        """Links went down or came up: `topology` has those that are up, `routes` follows them. The base plan and the
        jobs' plans are asked for anew then. Links without which no path is left between switches stay in."""
        self.topology = topology
        self.routes = routes


# ---- Which systems a controller serves ----


class ServiceConfig(BaseModel):
    """name: the system's, in paths of the REST interface. service: "module:Class". settings: of its own type."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Annotated[
        str,
        Spelling(r"[a-z][a-z0-9_-]*", "a name is a lower-case letter, then such letters, digits, _ and -"),
    ]
    service: Annotated[str, Spelling(r"[\w.]+:\w+", "a service is written module:class")]
    settings: dict[str, Any] = {}


AnyService = Service[Any, Any, Any, Any]


@dataclass(frozen=True)
class LoadedService:
    """A service's class and the settings that it is to be made with."""

    name: str
    service_class: type[AnyService]
    settings: BaseModel


def load_services(configs: Sequence[ServiceConfig]) -> list[LoadedService]:
    """Load the services of systems.

    Raises:
        UserError: A service cannot be loaded, or does not take its settings.
    """
    return [_load(config) for config in configs]


def _load(config: ServiceConfig) -> LoadedService:
    try:
        found = attribute(config.service)
    except (ImportError, AttributeError) as error:
        raise UserError(f"cannot load the service {config.service} of {config.name}: {error}") from None
    if not (isinstance(found, type) and issubclass(found, Service)):
        raise UserError(f"cannot load the service {config.service} of {config.name}: it is no Service")
    try:
        settings = found.Settings.model_validate(config.settings)
    except ValidationError as error:
        raise UserError(f"settings of {config.name}: {first_problem(error)}") from None
    return LoadedService(config.name, found, settings)
