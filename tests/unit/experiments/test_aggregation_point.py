"""What a point of an aggregation study makes of its counts."""

from __future__ import annotations

from typing import Any

from experiments.training_run import Training

from experiments.accounting import LinkEffect, Tally
from experiments.counts import Counts, PortCounts
from experiments.fidelity.meter import FidelityMeter
from experiments.systems.aggregation.point import Measured, PointJob, wire_bits
from hosts.learning.settings import TrainingSettings
from hosts.protocols.lanes import frame_bytes
from hosts.systems.aggregation.description import JobDescription

LANES, ROUNDS, FRAGMENTS, ACKS, RESENDS = 32, 2, 10, 7, 3
NOTHING = PortCounts(Tally(), Tally(), Tally(), Tally())


def measured(exchange: Any, ports: PortCounts, by_link: Tally, acknowledgement_bytes: int) -> Measured:
    """Two workers that sent the same, in ROUNDS rounds."""
    workers = ("h1", "h2")
    settings = TrainingSettings(hidden_units=8, rounds=ROUNDS, seed=1)
    training = Training(workers, "h3", settings, reference=(), request={}, exchange=exchange)
    report = {
        "gradient_sent": {"frames": ROUNDS * FRAGMENTS + RESENDS, "bytes": 0},
        "gradient_received": {"frames": 0, "bytes": 0},
        "acknowledgement_sent": {"frames": ACKS, "bytes": acknowledgement_bytes},
        "acknowledgement_received": {"frames": 0, "bytes": 0},
        "timeout_resends": 1,
        "early_resends": RESENDS - 1,
        "socket_drops": 0,
    }
    nothing_lost = dict.fromkeys(workers, LinkEffect())
    delivered = {(host, "s1"): by_link for host in workers}
    return Measured(
        jobs=[PointJob(training, (), ())],
        descriptions=[JobDescription.model_construct(job=1, lanes=LANES)],
        rounds=[[1.0] * ROUNDS],
        mismatches=[],
        final={(1, f"worker {index}"): report for index in range(2)},
        counts=Counts(dict.fromkeys(workers, ports), nothing_lost, nothing_lost, {}, delivered),
        meter=FidelityMeter.__new__(FidelityMeter),
    )


def test_wire_bits_towards_a_server_are_the_gradients_that_switches_counted() -> None:
    frames = ROUNDS * FRAGMENTS + RESENDS
    counted = PortCounts(Tally(frames, frames * frame_bytes(LANES)), Tally(), Tally(), Tally())
    # The link carried other traffic, too.
    run = measured("server", counted, Tally(frames + 5, frames * frame_bytes(LANES) + 500), 0)
    assert wire_bits(run.jobs[0], run.descriptions[0], run) == 8 * FRAGMENTS * frame_bytes(LANES)


def test_wire_bits_of_a_ring_are_what_links_counted_since_switches_know_no_ring_packets() -> None:
    acknowledgement_bytes = 70
    frames = ROUNDS * FRAGMENTS + RESENDS
    sent = Tally(frames + ACKS, frames * frame_bytes(LANES) + ACKS * acknowledgement_bytes)
    run = measured("ring", NOTHING, sent, ACKS * acknowledgement_bytes)
    assert wire_bits(run.jobs[0], run.descriptions[0], run) == 8 * FRAGMENTS * frame_bytes(LANES)
