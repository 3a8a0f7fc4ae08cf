"""The service of people's own programs: switches hold what files of entries say, on whatever links are up."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from pydantic import BaseModel

from gradbed.controller.core.service import Service
from gradbed.controller.entries.planner import EntriesPlanner
from gradbed.controller.entries.settings import EntriesSettings
from gradbed.controller.planning.plan import Plan
from gradbed.controller.planning.routing import Routes
from gradbed.topo.graph import Topology


class Traffic(BaseModel, frozen=True, extra="forbid"):
    """A job asks for nothing: the tables are filled already."""


class Admitted(BaseModel, frozen=True):
    """A job's number."""

    job: int


class EntriesService(Service[EntriesSettings, Traffic, Traffic, Admitted]):
    """`base` is the plan of the entries; jobs add nothing to it."""

    Settings, Request, State, Answer = EntriesSettings, Traffic, Traffic, Admitted
    programs: Collection[str] = ()

    def __init__(self, topology: Topology, routes: Routes, settings: EntriesSettings) -> None:
        super().__init__(topology, routes, settings)
        self.programs = tuple(settings.programs)
        self._planner = EntriesPlanner(settings)

    def base(self) -> Plan:
        return self._planner.plan(self.topology, self.routes)

    def admit(self, number: int, request: Traffic, others: Mapping[int, Traffic]) -> Traffic:
        return request

    def plan(self, number: int, state: Traffic) -> Plan:
        return Plan(switches={})

    def answer(self, number: int, state: Traffic) -> Admitted:
        return Admitted(job=number)
