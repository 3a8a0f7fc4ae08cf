"""What the system is for experiments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from gradbed.plugin import (
    FORWARD,
    AgentAddress,
    AgentSpec,
    HostAccount,
    Metric,
    NetworkSetup,
    NoSettings,
    Phase,
    PhaseResult,
    Program,
    Progress,
    Section,
    System,
    SystemReport,
    Tally,
    Topology,
    Trial,
    TrialConfiguration,
    TrialResult,
    TrialTask,
    disagreements,
    host_accounts,
    option,
    rows,
)
from tiny.agents import FRAME, FlowConfig
from tiny.service import PROGRAM, Flow


class FlowsSection(Section):
    packets: int = option(40, "Number of packets of each flow.", ge=1)
    rate_mbps: float = option(8.0, "Rate of each flow, in frames.", name="flow_rate_mbps", gt=0)


class SwitchesSection(Section):
    others: Literal["tiny", "forward"] = option("tiny", "Program of switches without hosts.")


class TinyConfiguration(TrialConfiguration):
    flows: FlowsSection = FlowsSection()
    switches: SwitchesSection = SwitchesSection()


class TinySystem(System[TinyConfiguration]):
    """Hosts send to each other, in pairs, at a constant rate."""

    name = "tiny"
    configuration = TinyConfiguration
    service = "tiny.service:TinyService"
    metrics: Mapping[str, Metric] = {
        "received_packets": Metric("", "packets that receivers counted"),
        "counted_packets": Metric("", "packets that switches counted"),
        "delivered": Metric("", "received packets / sent packets"),
        "throughput_bps": Metric("bit/s", "throughput of a flow, mean", "rate"),
    }
    report = SystemReport(
        assurance="Switches counted what receivers did, and hosts agree with their links.",
    )

    def trial(self, task: TrialTask[TinyConfiguration]) -> TinyTrial:
        return TinyTrial(task)


class TinyPhase(Phase):
    """All flows at once."""

    def __init__(self, topology: Topology, task: TrialTask[TinyConfiguration]) -> None:
        self._topology = topology
        self._packets = task.configuration.flows.packets
        rate_bps = task.scale.rate_bps(task.configuration.flows.rate_mbps)
        assert rate_bps is not None
        self._interval_us = round(8e6 * FRAME.itemsize / rate_bps)
        names = [host.name for host in topology.hosts]
        self.flows = [Flow(sender=a, receiver=b) for a, b in zip(names[::2], names[1::2], strict=False)]
        super().__init__("flows", self.flows)
        self.sent = 0

    def agents(self, answers: Sequence[Mapping[str, Any]]) -> list[AgentSpec]:
        specs = []
        for request, answer in zip(self.flows, answers, strict=True):
            flow = FlowConfig(
                sender=AgentAddress.of(self._topology.host(request.sender)),
                receiver=AgentAddress.of(self._topology.host(request.receiver)),
                packets=self._packets,
                interval_us=self._interval_us,
            )
            job = answer["job"]
            specs += [
                AgentSpec(request.sender, "tiny.agents:sender", "sender", flow, 0, job),
                AgentSpec(request.receiver, "tiny.agents:receiver", "receiver", flow, 1, job),
            ]
        return specs

    def take(self, event: Mapping[str, Any]) -> None:
        self.sent += event["event"] == "sent"

    @property
    def complete(self) -> bool:
        return self.sent == len(self.flows)

    def progress(self) -> list[Progress]:
        return [Progress("flows", self.sent, len(self.flows))]


class TinyTrial(Trial[TinyConfiguration]):
    """Flows between pairs of hosts."""

    def __init__(self, task: TrialTask[TinyConfiguration]) -> None:
        super().__init__(task)
        own = Program(PROGRAM, Path(__file__).parent / "tiny.p4")
        edges = {self.topology.attachment(host.name).name for host in self.topology.hosts}
        others = own if self.configuration.switches.others == "tiny" else FORWARD
        self.network = NetworkSetup(
            self.topology,
            {each.name: own if each.name in edges else others for each in self.topology.switches},
            NoSettings(),
            preload=["tiny.agents"],
        )
        self._phase = TinyPhase(self.topology, task)
        self.phases = [self._phase]

    def _towards_receivers(self, found: PhaseResult, accounts: Sequence[HostAccount]) -> dict[int, Tally]:
        """What switches gave the links to receivers, by flow."""
        by_host = {account.host: account for account in accounts}
        return {
            answer["job"]: (account := by_host[request.receiver]).switch_sent + account.towards_host.queue_drops
            for answer, request in zip(found.agents.answers, self._phase.flows, strict=True)
        }

    def result(self, measured: Sequence[PhaseResult]) -> TrialResult:
        (found,) = measured
        receivers = {job: final for (job, name), final in found.agents.final.items() if name == "receiver"}
        counted = {
            a["job"]: found.network.counts.cell(a["switch"], "flow_packets", a["job"]).packets
            for a in found.agents.answers
        }
        received = sum(final["packets"] for final in receivers.values())
        rates_bps = [
            8e6 * FRAME.itemsize * (final["packets"] - 1) / final["taken_us"]
            for final in receivers.values()
            if final["taken_us"]
        ]
        accounts = host_accounts(self.topology, found.network.counts, found.agents.final)
        return TrialResult(
            metrics={
                "received_packets": received,
                "counted_packets": sum(counted.values()),
                "delivered": received / (self.configuration.flows.packets * len(receivers)),
                "throughput_bps": self.task.scale.nominal_rate(sum(rates_bps) / max(1, len(rates_bps))),
            },
            tables={"hosts": rows("flows", 1, accounts)},
            failures=[
                *disagreements(accounts),
                *(
                    f"flow {job}: its switch counted {counted[job]} packets, and the link {towards.packets}"
                    for job, towards in self._towards_receivers(found, accounts).items()
                    if counted[job] != towards.packets
                ),
            ],
        )
