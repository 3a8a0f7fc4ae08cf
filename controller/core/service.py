"""Services: the part of the controller that is a system's own, named in the configuration and loaded by name."""

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
    """Decide what switches hold for one system: requests in, plans out, no network, no clock.

    The controller (controller/core/controller.py) calls one method at a time. It installs together IPv4 routes to all
    hosts, the base plans of all services, and the plans of all jobs; they must not contradict each other.

    Examples in the JSON schemas of its models are shown in the description of the REST interface.
    """

    Settings: type[SettingsT]
    """Model of the settings, in the controller's configuration."""
    Request: type[RequestT]
    """Model of a request for a job."""
    State: type[StateT]
    """Model of an admitted job, kept in memory and in the journal: all decisions, so that the job's plan follows from
    it, the topology and the routes."""
    Answer: type[AnswerT]
    """Model of the answer to a request, for agents and callers; its field `job` is the job's number."""
    Listed: type[BaseModel]
    """Model of a job in the list of jobs; by default the answer."""
    programs: Collection[str]
    """Names of the P4 programs of this system. To the system all other switches only forward: planners plan for all
    switches alike, and `plain` returns what those hold instead. Messages come from these programs alone."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "Answer" in cls.__dict__ and "Listed" not in cls.__dict__:
            cls.Listed = cls.Answer

    def __init__(self, topology: Topology, routes: Routes, settings: SettingsT) -> None:
        self.topology = topology
        self.routes = routes
        self.settings = settings

    def unrouted(self) -> Collection[str]:
        """Return names of switches that get no IPv4 routes, since their programs do not parse IPv4."""
        return ()

    def base(self) -> Plan:
        """Return the base plan: what switches hold at present besides routes and jobs."""
        return Plan(switches={})

    @abstractmethod
    def admit(self, number: int, request: RequestT, others: Mapping[int, StateT]) -> StateT:
        """Make all decisions for a job.

        Args:
            number: The job's number.
            request: The request.
            others: The system's running jobs, by number.

        Raises:
            UserError: The request makes no sense; nothing has changed then.
        """

    @abstractmethod
    def plan(self, number: int, state: StateT) -> Plan:
        """Return the plan of a job: what switches hold for it."""

    @abstractmethod
    def answer(self, number: int, state: StateT) -> AnswerT: ...

    def listed(self, number: int, state: StateT) -> BaseModel:
        """Return the job as the list of jobs shows it."""
        return self.answer(number, state)

    def plain(self, switch: str, entry: TableEntry) -> TableEntry | None:
        """Return the entry of p4src/forward.p4 that replaces an entry of this system's program; None: none.

        Raises:
            UserError: A switch that only forwards cannot do it.
        """
        return entry

    def on_message(self, switch: str, message: Message) -> Plan | None:
        """Handle a digest or a packet-in of a switch with a program of this system.

        Returns the new base plan, or None if it has not changed. State that a service learns here is not in the
        journal.
        """
        return None

    def reroute(self, topology: Topology, routes: Routes) -> None:
        """Handle that links went down or came up; the base plan and the plans of all jobs are asked for afterwards.

        Args:
            topology: The network with the links that are up, and those without which switches would be unreachable.
            routes: The routes in it.
        """
        self.topology = topology
        self.routes = routes


# ---- Which systems a controller serves ----


class ServiceConfig(BaseModel):
    """The service of a system, and its settings."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Annotated[
        str,
        Spelling(r"[a-z][a-z0-9_-]*", "a name is a lower-case letter, then such letters, digits, _ and -"),
    ]
    """Name of the system, in paths of the REST interface."""
    service: Annotated[str, Spelling(r"[\w.]+:\w+", "a service is written module:class")]
    """The service's class, as "module:Class"."""
    settings: dict[str, Any] = {}
    """Settings of the service's own type."""


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
