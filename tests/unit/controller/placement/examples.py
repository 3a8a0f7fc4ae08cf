"""Problems whose optimum is known or that are drawn at random, for the tests of this folder."""

from __future__ import annotations

from hypothesis import strategies as st

from gradbed.controller.systems.aggregation.placement.problem import AggregationProblem
from tests.unit.controller.networks import network, random_networks


def two_racks(workers: int = 4, rate_bps: int = 10) -> AggregationProblem:
    """Server h1 behind s1 (T0), racks behind s2 (T1) and s3 (T2), all under core s4."""
    topology = network([(0, 3), (1, 3), (2, 3)], [1, workers, workers, 0]).with_links(
        lambda link: True, rate_bps=rate_bps
    )
    return AggregationProblem.of(topology, [host.name for host in topology.hosts[1:]], "h1")


@st.composite
def random_problems(draw: st.DrawFn) -> AggregationProblem:
    """Random connected networks with rates that differ, some workers left out, C finite or not."""
    topology = draw(random_networks())
    rates = {link: draw(st.sampled_from([10, 20, 50])) for link in topology.links}
    for rate in (10, 20, 50):
        topology = topology.with_links([(k.a.node, k.b.node) for k in rates if rates[k] == rate], rate_bps=rate)
    server, *others = [host.name for host in topology.hosts]
    workers = draw(st.lists(st.sampled_from(others), min_size=1, unique=True))
    return AggregationProblem.of(topology, workers, server, draw(st.sampled_from([None, 15.0, 40.0])))


@st.composite
def problems_with_switches(draw: st.DrawFn) -> tuple[AggregationProblem, tuple[str, ...]]:
    """A problem and at most four programmable switches."""
    problem = draw(random_problems())
    if not problem.candidates:
        return problem, ()
    chosen = draw(st.lists(st.sampled_from(problem.candidates), max_size=4, unique=True))
    return problem, tuple(chosen)
