"""Gradient rounds as background: some hosts sum by ring all-reduce while the traffic of others is measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gradbed.common.errors import UserError
from gradbed.experiments.configuration.sections import Section, option
from gradbed.experiments.runtimes.agents import AgentSpec
from gradbed.experiments.scale import Scale
from gradbed.formats.ring import RING_PORT
from gradbed.hosts.agents.config import worker_addresses
from gradbed.hosts.collectives.job import CollectiveJob
from gradbed.hosts.learning.settings import SyntheticSettings
from gradbed.hosts.traffic.gradient_rounds import RoundsConfig, expected_digest
from gradbed.topo.graph import Topology

AGENT = "gradbed.hosts.traffic.gradient_rounds:worker"
EVERY_HOST = "all"
MAGNITUDE = 1 << 20
"""Bound on the gradients' values, so that no sum of 2,047 workers leaves int32."""
MIN_TIMEOUT_US, GIVE_UP_US = 10_000, 10_000_000


class BackgroundSection(Section):
    """Workers of a training whose gradients share the links with the traffic."""

    workers: tuple[str, ...] = option(
        (),
        "Background hosts that run ring all-reduce beside the traffic: names with commas between, or all.",
        name="background",
        advanced=True,
    )
    values: int = option(
        10_000,
        "Number of values in a gradient of the background hosts.",
        name="background_values",
        ge=2,
        le=1 << 22,
        advanced=True,
    )


@dataclass(frozen=True)
class Background:
    """Background jobs of a trial."""

    workers: tuple[str, ...]
    """Hosts in the order of the ring."""
    settings: SyntheticSettings
    specs: tuple[AgentSpec, ...]

    def of_job(self, job: int) -> list[AgentSpec]:
        """Return the agents, once the controller has given the job its number."""
        found = []
        for spec in self.specs:
            config = spec.config
            assert isinstance(config, RoundsConfig)
            told = config.model_copy(update={"job": config.job.model_copy(update={"job": job})})
            found.append(replace(spec, config=told, job=job))
        return found

    @property
    def udp_ports(self) -> dict[str, int]:
        """UDP port on which each worker's agent receives datagrams."""
        return dict.fromkeys(self.workers, RING_PORT)

    def rows(
        self, final: Mapping[tuple[int, str], Mapping[str, Any]], job: int, scale: Scale
    ) -> list[dict[str, Any]]:
        """Return a row for each round of each worker: worker, round, round_us (nominal), sum_sha256."""
        return [
            {"worker": spec.host, "round": number, "round_us": scale.nominal_time(taken_us), "sum_sha256": digest}
            for spec in self.specs
            for number, (taken_us, digest) in enumerate(_rounds(final.get((job, spec.name), {})))
        ]

    def failures(self, rows: Sequence[Mapping[str, Any]]) -> list[str]:
        """Return a line for each sum that differs from that of all workers' gradients."""
        rounds = {row["round"] for row in rows}
        expected = {number: expected_digest(self.settings, len(self.workers), number) for number in rounds}
        return [
            f"background: {row['worker']}: the sum of round {row['round']} is wrong"
            for row in rows
            if row["sum_sha256"] != expected[row["round"]]
        ]


def _rounds(statistics: Mapping[str, Any]) -> list[tuple[int, str]]:
    return list(zip(statistics.get("round_us", ()), statistics.get("digests", ()), strict=True))


def plan_background(
    section: BackgroundSection, topology: Topology, scale: Scale, seed: int, duration_us: int
) -> Background:
    """Plan the background jobs of a section that names some workers.

    Args:
        topology: in emulated units.
        duration_us: of the traffic, emulated.

    Raises:
        UserError: the workers are not possible.
    """
    names = section.workers
    if names == (EVERY_HOST,):
        names = tuple(host.name for host in topology.hosts)
    workers = tuple(topology.host(name).name for name in names)
    if len(set(workers)) < len(workers):
        raise UserError("--background: a host stands twice")
    if len(workers) < 2:
        raise UserError("--background: gradients of one host need no network: name two hosts or more")
    on_link = all(topology.destination_mac(a, b) == topology.host(b).mac for a in workers for b in workers)
    settings = SyntheticSettings(values=section.values, rounds=1, magnitude=MAGNITUDE, seed=seed)
    job = CollectiveJob(
        job=1,
        workers=tuple(each.model_copy(update={"on_link": on_link}) for each in worker_addresses(topology, workers)),
        min_timeout_us=scale.time_us(MIN_TIMEOUT_US),
        give_up_us=scale.time_us(GIVE_UP_US),
        workload=settings,
    )
    specs = tuple(
        AgentSpec(
            name,
            AGENT,
            f"background of {name}",
            RoundsConfig(job=job, index=index, duration_us=duration_us),
        )
        for index, name in enumerate(workers)
    )
    return Background(workers, settings, specs)
