"""One trial of the aggregation system: its network, its phases, and its result."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict, replace
from typing import Any

from gradbed.common.errors import UserError
from gradbed.controller.planning.legacy import OPENFLOW
from gradbed.controller.systems.aggregation.service import AggregationJobRequest, AggregationSettings
from gradbed.experiments.conservation.checks import uncounted_hosts
from gradbed.experiments.conservation.counts import HostAccount, disagreements, first_lines, rows
from gradbed.experiments.phases import PhaseResult, Trial, TrialResult
from gradbed.experiments.programs import FORWARD, Program, SwitchProgram
from gradbed.experiments.setup import FabricProgram, NetworkSetup, TrialTask
from gradbed.experiments.systems import find_system
from gradbed.experiments.systems.aggregation.checks import SLOT_OWNER, wrong
from gradbed.experiments.systems.aggregation.configuration import AggregationConfiguration, AggregationScriptWorkload
from gradbed.experiments.systems.aggregation.metrics import (
    CLASSES,
    account,
    events_of,
    job_rows,
    metrics,
    round_rows,
    summary_rows,
)
from gradbed.experiments.systems.aggregation.phase import (
    IN_NETWORK,
    PARAMETER_SERVER,
    AggregationPhase,
    AggregationScriptPhase,
    Hosts,
    SharedSetup,
    choose_programmable,
    job_setup,
)
from gradbed.experiments.torch_scripts import MODULE as SCRIPTS
from gradbed.formats.packet_class import in_any_form
from gradbed.hosts.systems.aggregation.config import Exchange
from gradbed.topo.graph import Topology
from gradbed.topo.selectors import choose_hosts_of_jobs


class AggregationTrial(Trial[AggregationConfiguration]):
    """Gradients summed in switches, and the baselines that this is compared with."""

    phases: Sequence[AggregationPhase]

    def __init__(self, task: TrialTask[AggregationConfiguration], hosts: Sequence[Hosts] | None = None) -> None:
        """Plan the trial.

        Args:
            hosts: workers and server of each job; None: they are chosen here.
        """
        super().__init__(task)
        configuration = self.configuration
        fabric_program = fabric_program_of(configuration, self.topology, task.seed)
        if fabric_program is not None:
            self.topology = fabric_program.topology
        workload = configuration.workload
        if hosts is None:
            hosts = choose_hosts_of_jobs(self.topology, workload.jobs, workload.workers)
        options = configuration.switches.planner_options(self.topology, task.seed, task.scale)
        choice = choose_programmable(self.topology, hosts, options)
        slots = slots_of_a_job(configuration)
        requests = [{**request, **slots} for request in choice.requests]
        self.jobs = [job_setup(configuration, each, task.seed + place) for place, each in enumerate(hosts)]
        planned = phases_of(configuration)
        agents = {
            (number, name): host
            for _, exchange, _ in planned
            for number, job in enumerate(self.jobs, start=1)
            for host, name in job.agent_hosts(exchange)
        }
        raw_frames = uncounted_hosts(self.topology, configuration.faults, agents)
        self._shared = SharedSetup(task, self.topology, fabric_program, choice.switches, raw_frames)
        self.phases = [
            self._phase(name, exchange, hosts, requests if sums else [{"placement": "none"}] * len(hosts))
            for name, exchange, sums in planned
        ]
        self.network = network_of(
            configuration,
            self.topology,
            choice.switches,
            capture=[job.server for job in self.jobs],
            keep_open=[descriptor for phase in self.phases for descriptor in phase.keep_open],
            fabric_program=fabric_program,
        )
        if fabric_program is None:
            self.network = replace(
                self.network,
                registers=[
                    (switch, SLOT_OWNER) for switch in self._shared.summing if any(sums for *_, sums in planned)
                ],
            )

    def _phase(
        self, name: str, exchange: Exchange, hosts: Sequence[Hosts], requests: Sequence[dict[str, Any]]
    ) -> AggregationPhase:
        kind = (
            AggregationScriptPhase
            if isinstance(self.configuration.workload, AggregationScriptWorkload)
            else AggregationPhase
        )
        asked = [
            AggregationJobRequest(workers=list(workers), server=server, **request)
            for (workers, server), request in zip(hosts, requests, strict=True)
        ]
        return kind(name, exchange, self.jobs, asked, self._shared)

    def result(self, measured: Sequence[PhaseResult]) -> TrialResult:
        accounts = [self._accounts(phase, found) for phase, found in zip(self.phases, measured, strict=True)]
        everywhere = list(zip(self.phases, measured, accounts, strict=True))
        main = [phase.name for phase in self.phases].index(main_phase_of(self.configuration)[0])
        summaries = [list(summary_rows(phase, found)) for phase, found, _ in everywhere]
        rounds = [list(round_rows(phase)) for phase, *_ in everywhere]
        jobs = list(job_rows(self.phases[main], measured[main]))
        return TrialResult(
            metrics=metrics(self.phases, main, measured),
            decisions={
                "programmable": list(self._shared.summing),
                "hosts": [[job.server, *job.workers] for job in self.jobs],
                "designations": [
                    [[asdict(label) for label in own] for own in config.designations]
                    for config in self.phases[main].configs
                ],
                "digests": [list(job.digests) for job in self.jobs],
            },
            tables={
                "rounds": [row for each in rounds for row in each],
                "jobs": jobs,
                "summary": [row for each in summaries for row in each],
                "hosts": [
                    row
                    for phase, _, of_jobs in everywhere
                    for place, own in enumerate(of_jobs)
                    for row in rows(phase.name, place + 1, own)
                ],
                "events": [
                    {"phase": phase.name, **events_of(found.network.counts)} for phase, found, _ in everywhere
                ],
            },
            failures=[
                line
                for (phase, found, of_jobs), summary, own_rounds in zip(everywhere, summaries, rounds, strict=True)
                for line in (
                    *first_lines(phase.mismatches),
                    *first_lines(f"{phase.name}, {line}" for own in of_jobs for line in disagreements(own)),
                    *(
                        line
                        for kind in wrong(
                            phase, found, summary, own_rounds, jobs if phase is self.phases[main] else ()
                        )
                        for line in first_lines(f"{phase.name}, {line}" for line in kind)
                    ),
                )
            ],
        )

    def _accounts(self, phase: AggregationPhase, found: PhaseResult) -> list[list[HostAccount]]:
        """Return the accounts of the hosts of each job.

        Gloo's connections are counted by the hosts' kernels. A script may open connections that are not counted, so
        it has none.
        """
        if isinstance(phase, AggregationScriptPhase):
            return [[] for _ in phase.jobs]
        return [
            [
                account(
                    found.network.counts,
                    self.topology,
                    host,
                    found.agents.final[config.job, name],
                    by_link=phase.by_links,
                )
                for host, name in job.agent_hosts(phase.exchange)
                if host not in self._shared.raw_frames
            ]
            for job, config in zip(phase.jobs, phase.configs, strict=True)
        ]


def phases_of(configuration: AggregationConfiguration) -> list[tuple[str, Exchange, bool]]:
    """Return (name, exchange, whether switches sum) of each phase.

    The server alone comes first, then the requested phase, then the other baselines.
    """
    main = main_phase_of(configuration)
    baselines = [each for each in baselines_of(configuration) if each[0] != main[0]]
    first = [each for each in baselines if each[1] == "server"]
    return [*first, main, *(each for each in baselines if each not in first)]


def main_phase_of(configuration: AggregationConfiguration) -> tuple[str, Exchange, bool]:
    """Return the requested phase, which may be one of the baselines, too."""
    exchange = configuration.workload.exchange
    if exchange != "server":
        return exchange, exchange, False
    if configuration.switches.placement == "none":
        return PARAMETER_SERVER, "server", False
    return IN_NETWORK, "server", True


def baselines_of(configuration: AggregationConfiguration) -> list[tuple[str, Exchange, bool]]:
    """Return the phases of the configured baselines."""
    named: dict[str, tuple[str, Exchange, bool]] = {
        "parameter-server": (PARAMETER_SERVER, "server", False),
        "ring": ("ring", "ring", False),
        "gloo": ("gloo", "gloo", False),
    }
    return [named[name] for name in dict.fromkeys(configuration.workload.baselines)]


def network_of(
    configuration: AggregationConfiguration,
    topology: Topology,
    summing: Collection[str],
    capture: Sequence[str] = (),
    keep_open: Sequence[int] = (),
    fabric_program: FabricProgram | None = None,
) -> NetworkSetup:
    """Return the network whose switches `summing` sum, or the network of the fabric program."""
    switches = configuration.switches
    return NetworkSetup(
        topology,
        programs_of(configuration, topology, summing) if fabric_program is None else fabric_program.switches,
        AggregationSettings(slots=switches.slots, congestion_packets=switches.congestion_packets or None),
        links=switches.links,
        services=() if fabric_program is None else [fabric_program.service],
        capture=capture,
        preload=[
            "gradbed.hosts.systems.aggregation.agents",
            *([SCRIPTS] if isinstance(configuration.workload, AggregationScriptWorkload) else []),
        ],
        keep_open=keep_open,
        classes=CLASSES if fabric_program is None else in_any_form(CLASSES),
    )


def fabric_program_of(
    configuration: AggregationConfiguration, topology: Topology, seed: int = 1
) -> FabricProgram | None:
    """Return the fabric program that the configuration names; None if it names none.

    Raises:
        UserError: the named system has no fabric program, or none of this topology.
    """
    if configuration.switches.fabric_program == "none":
        return None
    system, _, policy = configuration.switches.fabric_program.partition(":")
    return find_system(system).fabric_program(topology, policy, seed)


def programs_of(
    configuration: AggregationConfiguration, topology: Topology, summing: Collection[str]
) -> dict[str, SwitchProgram]:
    """Return the program of every switch."""
    switches = configuration.switches
    sums = Program.own("aggregation", LANES=configuration.workload.lanes, SLOTS=switches.slots)
    others: dict[str, SwitchProgram] = {"none": sums, "p4": FORWARD, "openflow": OPENFLOW}
    return {switch.name: sums if switch.name in summing else others[switches.legacy] for switch in topology.switches}


def slots_of_a_job(configuration: AggregationConfiguration) -> dict[str, Any]:
    """Return the fields of a job request that are about slots."""
    switches, jobs = configuration.switches, configuration.workload.jobs
    if switches.slot_policy == "dynamic":
        return {"slot_policy": "dynamic"}
    if switches.slots < jobs:
        raise UserError(f"--slots: {jobs} jobs cannot have a static share each of {switches.slots} slots: allow more")
    return {"slot_policy": "static", "slots": switches.slots // jobs}
