"""A phase of traffic: all hosts send until every schedule is over, and background jobs end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Generic, TypeVar

from pydantic import BaseModel

from gradbed.common.errors import UserError
from gradbed.experiments.configuration.faults import AgentFault, Fault, stopped_agents
from gradbed.experiments.phases import Phase, Progress
from gradbed.experiments.runtimes.agents import AgentSpec
from gradbed.experiments.traffic.agents import TrafficPlan
from gradbed.experiments.traffic.background import Background
from gradbed.experiments.traffic.connections import ConnectionTraffic

AnyTraffic = TypeVar("AnyTraffic", bound=TrafficPlan | ConnectionTraffic)


def check_faults_of_traffic(faults: Sequence[Fault]) -> None:
    """Raise UserError for a fault that would have a host send its schedule twice."""
    if any(isinstance(fault, AgentFault) and fault.fault == "agent-start" for fault in faults):
        raise UserError("faults: agent-start: a host's traffic does not begin anew; link-up brings a host back")


class TrafficPhase(Phase, Generic[AnyTraffic]):
    """Hosts send their traffic while background jobs run."""

    def __init__(
        self,
        request: BaseModel,
        traffic: AnyTraffic,
        background: Background | None = None,
        faults: Sequence[Fault] = (),
    ) -> None:
        super().__init__("traffic", [request])
        self.traffic = traffic
        self.job = 0
        """Number that the controller gives the job."""
        self.packets = 0
        """Number of packets or connections sent so far."""
        self._background = background
        self._stopped = stopped_agents(faults)
        self._sending: set[str] = set()
        """Names of traffic agents that are not done."""
        self._training: set[str] = set()
        """Names of background agents that are not done."""

    def agents(self, answers: Sequence[Mapping[str, Any]]) -> list[AgentSpec]:
        self.job = answers[0]["job"]
        beside = [] if self._background is None else self._background.of_job(self.job)
        self._sending = {spec.name for spec in self.traffic.specs}
        self._training = {spec.name for spec in beside}
        return [*(replace(spec, job=self.job) for spec in self.traffic.specs), *beside]

    def take(self, event: Mapping[str, Any]) -> None:
        kind, name = event["event"], event["name"]
        if kind in ("sent", "background") or (kind == "killed" and name in self._stopped):
            self._sending.discard(name)
            self._training.discard(name)
        if kind == "sent":
            self.packets += event["packets"]

    @property
    def complete(self) -> bool:
        return not self._sending and not self._training

    def progress(self) -> list[Progress]:
        noun = "connections" if isinstance(self.traffic, ConnectionTraffic) else "packets"
        note = f"{self.packets:,} {noun}" if self.packets else ""
        count = len(self.traffic.specs)
        return [Progress("hosts that have sent", count - len(self._sending), count, note)]
