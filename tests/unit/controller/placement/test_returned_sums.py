"""Global sums come back over links that gradients use, too."""

from __future__ import annotations

import pytest

from gradbed.controller.planning.routing import shortest_routes
from gradbed.controller.systems.aggregation.placement.labels import achievable_rates
from gradbed.controller.systems.aggregation.placement.lp_planner import LpPlanner
from gradbed.controller.systems.aggregation.placement.problem import AggregationProblem, returned_sum_links
from gradbed.controller.systems.aggregation.placement.rate_solver import solve_rates
from gradbed.formats.aggregation import Designation
from gradbed.topo.generators import fat_tree
from gradbed.topo.link import LinkModel
from gradbed.topo.registry import parse_topology
from gradbed.topo.selectors import choose_hosts


def leaf_spine_problem() -> AggregationProblem:
    topology = parse_topology("leaf-spine:3,1,2", fat_tree(2, LinkModel(rate_bps=10)).links[0].model)
    return AggregationProblem.of(topology, ["h3", "h4", "h5", "h6"], "h1")


def test_links_of_returned_sums() -> None:
    assert returned_sum_links(leaf_spine_problem(), ["l2"]) == (("l1", "s1"), ("s1", "l2"), ("s1", "l3"))


def test_gradients_that_travel_with_returned_sums_share_their_links() -> None:
    problem = leaf_spine_problem()
    number = problem.topology.switch("l2").number
    labels = dict.fromkeys(problem.workers, (Designation(number, 4),))
    # h5 and h6 send over s1 -> l2: 2 packets of gradients, and one of global sums.
    without, full = achievable_rates(problem, labels), achievable_rates(problem, labels, returned_sums=True)
    assert (without.gamma_bps, without.link_packets["s1", "l2"]) == (5, 2)
    assert full.gamma_bps == pytest.approx(10 / 3)
    assert (full.link_packets["s1", "l2"], full.bottleneck) == (3, ("s1", "l2"))
    assert full.link_packets["l2", "s1"] == 1


def test_the_program_with_returned_sums_has_room_for_them() -> None:
    topology = fat_tree(4, LinkModel(rate_bps=10))
    problem = AggregationProblem.of(topology, *choose_hosts(topology, 8))
    assert solve_rates(problem, ("c1", "c2")).gamma_bps == pytest.approx(10)
    # h3 in the server's pod: z straight to e1 beside all sums, the rest to c1 and c2 beside all returned sums, so
    # that gamma (1 + z) and gamma (1 + (1 - z) / 2) are 10.
    together = solve_rates(problem, ("c1", "c2"), returned_sums="together")
    assert together.gamma_bps == pytest.approx(7.5)
    # The sums of c1's fragments do not come over the links to c2, which is what packets do.
    by_switch = solve_rates(problem, ("c1", "c2"), returned_sums="by-switch")
    assert by_switch.gamma_bps == pytest.approx(10)


@pytest.mark.commit_cases(2)
@pytest.mark.parametrize(("maximum", "share"), [(0, 1.0), (1, 0.93), (2, 1.0), (4, 1.0)])
def test_eight_workers_on_a_fat_tree_reach_the_bound_with_returned_sums_counted(maximum: int, share: float) -> None:
    topology = fat_tree(4, LinkModel(rate_bps=10_000_000))
    routes = shortest_routes(topology)
    workers, server = choose_hosts(topology, 8)
    choice = LpPlanner(maximum, "greedy").choose(topology, routes, workers, server)
    problem = AggregationProblem(topology, routes, workers, server)
    bound_bps = solve_rates(problem, choice.programmable).gamma_bps
    reached = achievable_rates(problem, choice.designations, returned_sums=True)
    assert share * bound_bps <= reached.gamma_bps <= bound_bps * (1 + 1e-6)
