"""What collectives should take, where a point's workload is one collective: by formula, and at best."""

from __future__ import annotations

from gradbed.experiments.systems.training.configuration import CollectiveWorkload
from gradbed.experiments.systems.training.phase import TrainingPhase
from gradbed.experiments.tables.metric import Value
from gradbed.hosts.systems.training.collectives.algorithms import choose
from gradbed.hosts.systems.training.collectives.costs import ACKNOWLEDGEMENT_BYTES, Packets, cost_ns, of_topology
from gradbed.hosts.systems.training.collectives.formulas import hosts_bound_ns, switches_bound_ns
from gradbed.hosts.systems.training.execution import Operation

SELECTIVE_BYTES = 16
"""That acknowledgements of selective repeat and of dctcp have more."""


def expected_of_collectives(phase: TrainingPhase) -> dict[str, Value]:
    """bound_rate_bps and model_s; None where there is none: of other workloads, of several jobs, and no model of what
    switches carry out."""
    workload, nothing = phase.configuration.workload, {"bound_rate_bps": None, "model_s": None}
    if not isinstance(workload, CollectiveWorkload) or len(phase.jobs) > 1 or len(phase.jobs[0]) < 2:
        return dict(nothing)
    operation = Operation(workload.operation)
    (hosts,), topology, scale = phase.jobs, phase.topology, phase.task.scale
    links = [topology.link(host, topology.attachment(host).name).model for host in hosts]
    slowest_bps = min(link.rate_bps for link in links if link.rate_bps)
    bound = switches_bound_ns if phase.switched else hosts_bound_ns
    bound_ns = bound(operation, len(hosts), workload.size_bytes, slowest_bps)
    best = scale.nominal_rate(8e9 * workload.size_bytes / bound_ns) if bound_ns else None
    if phase.switched:
        return {"bound_rate_bps": best, "model_s": None}
    rule = choose(
        operation,
        tuple(range(len(hosts))),
        workload.size_bytes,
        rules=phase.configuration.collectives.rules,
        has_racks=True,
    )
    transport = phase.configuration.transport
    selective = transport.recovery == "selective-repeat" or transport.congestion_control == "dctcp"
    packets = Packets(
        transport.mtu_bytes,
        transport.acknowledge_every,
        ACKNOWLEDGEMENT_BYTES + (SELECTIVE_BYTES if selective else 0),
    )
    model_ns = cost_ns(
        rule.algorithm,
        operation,
        len(hosts),
        workload.size_bytes,
        of_topology(topology, hosts, packets),
        chunks=rule.chunks,
        root=workload.root,
        racks=tuple(topology.attachment(host).number for host in hosts),
    )
    return {
        "bound_rate_bps": best,
        "model_s": scale.nominal_time(model_ns / 1e9),
    }
