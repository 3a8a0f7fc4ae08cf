"""Compare the slotted model with packets: the same traffic, policies, queues and links on the virtual clock and in
slots.

Other networks can be compared, too; there packets take the controller's routes (p4src/forward.p4).
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from gradbed.controller.systems.interconnect.entries import PolicyName
from gradbed.experiments.configuration.trial import TrialConfiguration
from gradbed.experiments.engine.trial import run_trial
from gradbed.experiments.phases import TrialResult
from gradbed.experiments.programs import P4_SOURCES
from gradbed.experiments.scale import Scale
from gradbed.experiments.setup import TrialTask
from gradbed.experiments.system import System
from gradbed.experiments.systems import find_system
from gradbed.experiments.systems.interconnect import routes
from gradbed.experiments.systems.interconnect.model import (
    ModelResult,
    OpticalElectrical,
    ShortestPaths,
    of_rates,
    simulate,
)
from gradbed.experiments.traffic.agents import pair_rates
from gradbed.topo.optical_electrical import size_of

RATE_MBPS = 100.0
FRAME_BYTES = 1000
DELAY_US = 5
PACKET_S = 8 * FRAME_BYTES / (RATE_MBPS * 1e6)


ROUTES: Literal["routes"] = "routes"
"""Stands in place of a policy for the controller's shortest paths."""


@dataclass(frozen=True)
class Case:
    """Traffic and network to compare with the model."""

    topology: str
    """Topology kind."""
    pattern: str
    policy: PolicyName | Literal["routes"]
    load: float
    """Load of the busiest direction of a host's link."""
    slots: int = 1600
    """Packet times in which packets are generated; an eighth of them is warm-up."""
    queue_packets: int = 64
    seed: int = 1

    @property
    def system(self) -> System:
        return find_system("workload" if self.policy == ROUTES else "interconnect")

    def configuration(self) -> TrialConfiguration:
        duration_ms = 1000 * self.slots * PACKET_S
        switches: dict[str, Any] = (
            {"program": {"path": P4_SOURCES / "forward.p4", "entries_file": Path(routes.__file__)}}
            if self.policy == ROUTES
            else {"routing": {"policy": self.policy}}
        )
        return self.system.configuration.model_validate(
            {
                "clock": "virtual",
                "topology": {
                    "kind": self.topology,
                    "link": {"rate_mbps": RATE_MBPS, "delay_us": DELAY_US, "queue_packets": self.queue_packets},
                },
                "traffic": {
                    "pattern": self.pattern,
                    "load": self.load,
                    "frame_bytes": FRAME_BYTES,
                    "duration_ms": duration_ms,
                    "warm_up_ms": duration_ms / 8,
                },
                **switches,
            }
        )


@dataclass(frozen=True)
class Compared:
    """Results of the packets and of the model."""

    case: Case
    accepted: tuple[float, float]
    """Accepted load of the packets and of the model."""
    latency_s: tuple[float, float]
    """Mean latency of the packets and of the model."""

    @property
    def accepted_off(self) -> float:
        """Relative difference of the model's throughput from the packets'."""
        return self.accepted[1] / self.accepted[0] - 1

    @property
    def latency_off(self) -> float:
        """Relative difference of the model's mean latency from the packets'."""
        return self.latency_s[1] / self.latency_s[0] - 1


def packets(case: Case) -> TrialResult:
    """Run the case with packets.

    Raises:
        RuntimeError: the trial failed its own checks.
    """
    with tempfile.TemporaryDirectory() as folder:
        result = run_trial(case.system, TrialTask(case.configuration(), case.seed, Scale(), Path(folder)))
    if result.failures:
        raise RuntimeError(f"{case}: {result.failures[0]}")
    return result


def compare(case: Case) -> Compared:
    """Run the case with packets and in the model.

    Raises:
        RuntimeError: the packets' trial failed its own checks.
    """
    found, measured = model(case), packets(case).metrics
    if case.policy == ROUTES:
        hosts = len(case.configuration().topology.build(Scale()).hosts)
        accepted = float(measured["delivered_bps"] or 0) / (1e6 * RATE_MBPS * hosts)
        latency_s = float(measured["mean_us"] or 0) / 1e6
    else:
        accepted, latency_s = float(measured["accepted_load"] or 0), float(measured["latency_s"] or 0)
    of_model = found.latency_s(PACKET_S, DELAY_US / 1e6) or 0.0
    return Compared(case, (accepted, found.accepted_load), (latency_s, of_model))


def model(case: Case) -> ModelResult:
    """Run the case in slots, with the same pairs."""
    configuration = case.configuration()
    topology = configuration.topology.build(Scale())
    rates_bps = pair_rates(configuration.traffic, topology, Scale(), case.seed)  # type: ignore[attr-defined]
    return simulate(
        ShortestPaths(topology, "routes")
        if case.policy == "routes"
        else OpticalElectrical(size_of(topology), case.policy),
        of_rates([host.name for host in topology.hosts], rates_bps, RATE_MBPS * 1e6),
        slots=case.slots,
        warm_up_slots=case.slots // 8,
        queue_packets=case.queue_packets,
        seed=case.seed,
    )
