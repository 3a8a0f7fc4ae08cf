"""The model beside the packets: the same traffic, policies, queues and links on the virtual clock and in slots."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from controller.systems.interconnect.policies import PolicyName
from experiments.point import run_point
from experiments.scale import Scale
from experiments.system import PointTask
from experiments.systems import find_system
from experiments.systems.interconnect.configuration import InterconnectConfiguration
from experiments.systems.interconnect.model.optical_electrical import OpticalElectrical
from experiments.systems.interconnect.model.slots import Found, simulate
from experiments.systems.interconnect.model.traffic import of_rates
from experiments.traffic.rates import pair_rates
from topo.optical_electrical import size_of

RATE_MBPS = 100.0
FRAME_BYTES = 1000
DELAY_US = 5
PACKET_S = 8 * FRAME_BYTES / (RATE_MBPS * 1e6)


@dataclass(frozen=True)
class Case:
    """load: of the busiest direction of a host's link. slots: packet times in which packets are made; an eighth of
    them is warm-up."""

    n: int
    pattern: str
    policy: PolicyName
    load: float
    slots: int = 1600
    queue_packets: int = 64
    seed: int = 1

    def configuration(self) -> InterconnectConfiguration:
        duration_ms = 1000 * self.slots * PACKET_S
        return InterconnectConfiguration.model_validate(
            {
                "clock": "virtual",
                "topology": {
                    "kind": f"optical-electrical:{self.n}",
                    "link": {"rate_mbps": RATE_MBPS, "delay_us": DELAY_US, "queue_packets": self.queue_packets},
                },
                "routing": {"policy": self.policy},
                "traffic": {
                    "pattern": self.pattern,
                    "load": self.load,
                    "frame_bytes": FRAME_BYTES,
                    "duration_ms": duration_ms,
                    "warm_up_ms": duration_ms / 8,
                },
            }
        )


@dataclass(frozen=True)
class Compared:
    """accepted: loads; latency_s: means, of the packets and of the model; the rest is of the packets."""

    case: Case
    accepted: tuple[float, float]
    latency_s: tuple[float, float]
    loss: tuple[float, float]
    largest_link_load: float
    reordered: float

    @property
    def accepted_off(self) -> float:
        """By how much the model's throughput differs, of the packets'."""
        return self.accepted[1] / self.accepted[0] - 1

    @property
    def latency_off(self) -> float:
        return self.latency_s[1] / self.latency_s[0] - 1


def compare(case: Case) -> Compared:
    """RuntimeError if the packets' point has failed its own checks."""
    configuration = case.configuration()
    with tempfile.TemporaryDirectory() as folder:
        task = PointTask(configuration, case.seed, Scale(), Path(folder))
        result = run_point(find_system("interconnect"), task)
    if result.failures:
        raise RuntimeError(f"{case}: {result.failures[0]}")
    found, packets = model(case), result.metrics
    accepted, latency_s, loss, largest, reordered = (
        float(packets[name] or 0) for name in ("accepted_load", "latency_s", "loss", "largest_link_load", "reordered")
    )
    return Compared(
        case,
        (accepted, found.accepted_load),
        (latency_s, found.latency_s(PACKET_S, DELAY_US / 1e6) or 0.0),
        (loss, found.loss),
        largest,
        reordered,
    )


def model(case: Case) -> Found:
    """The case in slots, with the same pairs."""
    topology = case.configuration().topology.build(Scale())
    rates_bps = pair_rates(case.configuration().traffic, topology, Scale(), case.seed)
    return simulate(
        OpticalElectrical(size_of(topology), case.policy),
        of_rates([host.name for host in topology.hosts], rates_bps, RATE_MBPS * 1e6),
        slots=case.slots,
        warm_up_slots=case.slots // 8,
        queue_packets=case.queue_packets,
        seed=case.seed,
    )
