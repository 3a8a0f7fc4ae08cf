from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradbed.common.errors import UserError
from gradbed.controller.planning.multicast import MAX_JOB, multicast_address, multicast_tree
from gradbed.controller.planning.plan import Plan
from gradbed.controller.planning.routing import shortest_routes
from gradbed.controller.systems.aggregation.job_plan import MAX_TREES, JobPlan, SlotRange, choose_job, job_plan
from gradbed.controller.systems.aggregation.placement.planner import (
    AggregationChoice,
    AggregationPlanner,
    ExplicitPlacement,
    NoPlacement,
    SharedPathPlacement,
)
from gradbed.formats.addresses import MulticastAddress
from gradbed.formats.aggregation import DIRECT, Designation
from gradbed.topo.generators import fat_tree, leaf_spine, star
from gradbed.topo.graph import Topology
from gradbed.topo.selectors import choose_hosts, choose_hosts_of_jobs
from tests.examples import examples
from tests.unit.controller.networks import REGULAR, network, random_networks, routes_alone
from tests.unit.controller.plan_walker import PlanWalker


def planned(
    topology: Topology,
    workers: Sequence[str],
    server: str,
    planner: AggregationPlanner | None = None,
    job: int = 1,
) -> tuple[JobPlan, Plan]:
    routes = shortest_routes(topology)
    chosen = choose_job(topology, routes, workers, server, planner or SharedPathPlacement())
    result = job_plan(topology, routes, job, chosen)
    return result, routes_alone(topology).merged(result.plan)


def check_job(topology: Topology, planned: JobPlan, plan: Plan) -> None:
    """What the packets of a job meet, for every worker and every label of its packets."""
    walker = PlanWalker(topology, plan)
    job = planned.job
    for worker in job.workers:
        for label in job.designations[worker]:
            levels = [n for n in (label.switch_number, label.next_switch) if n]
            designated = [topology.switch_by_number(number).name for number in levels]
            arrival = walker.send(worker, job.server, planned.number, label)
            assert arrival.summed_at == tuple(designated)
            assert arrival.node == job.server
            assert arrival.dst_mac == topology.host(job.server).mac
            walked = [worker, *arrival.path[1 : arrival.path.index(designated[0]) + 1]]
            shortest = nx.shortest_path_length(topology.graph, worker, designated[0])
            assert len(walked) - 1 == shortest
        unsummed = walker.send(worker, job.server, planned.number, DIRECT)
        assert (unsummed.node, unsummed.summed_at) == (job.server, ())
        ack = walker.send(job.server, worker, planned.number, acknowledgement=True)
        assert ack.node == worker
    for ack, designated in zip(planned.ack_trees, job.switches_by_fragment, strict=True):
        arrivals = walker.multicast(job.server, ack.address.ip)
        reached = [arrival.node for arrival in arrivals if topology.is_host(arrival.node)]
        assert sorted(reached) == sorted(job.workers)
        passed = {node for arrival in arrivals for node in arrival.path}
        assert passed >= {topology.switch_by_number(number).name for number in designated}
        for arrival in arrivals:
            assert len(arrival.path) - 1 == nx.shortest_path_length(topology.graph, job.server, arrival.node)


@pytest.mark.parametrize("name", REGULAR)
def test_gradients_meet_at_their_switch_and_acknowledgements_reach_each_worker_once(name: str) -> None:
    topology = REGULAR[name]
    for count in sorted({1, 2, len(topology.hosts) // 2, len(topology.hosts) - 1} - {0}):
        workers, server = choose_hosts(topology, count)
        check_job(topology, *planned(topology, workers, server))


@given(random_networks(), st.data())
@settings(max_examples=examples(60), deadline=None)
def test_any_job_on_any_network(topology: Topology, data: st.DataObject) -> None:
    names = data.draw(st.permutations([host.name for host in topology.hosts]))
    workers = names[1 : data.draw(st.integers(2, len(names)))]
    switches = [switch.name for switch in topology.switches]
    chosen = data.draw(
        st.one_of(
            st.just(SharedPathPlacement()),
            st.lists(st.sampled_from(switches), unique=True, min_size=1).map(lambda s: ExplicitPlacement(tuple(s))),
        )
    )
    check_job(topology, *planned(topology, workers, names[0], chosen))


def test_two_jobs_share_designated_routes_and_keep_apart_otherwise() -> None:
    topology = fat_tree(4)
    first, base = planned(topology, ("h2", "h5", "h9"), "h1", job=1)
    second, _ = planned(topology, ("h4", "h7", "h16"), "h2", ExplicitPlacement(("e1", "a1")), job=2)
    together = base.merged(second.plan)
    check_job(topology, first, together)
    check_job(topology, second, together)
    numbers = {e.match["hdr.gradient.switch_number"] for e in together["c1"].entries if "designated" in e.table}
    assert numbers == {topology.switch("e1").number, topology.switch("a1").number}


def test_without_aggregation_a_job_leaves_the_switches_alone() -> None:
    topology = fat_tree(4)
    workers, server = choose_hosts(topology, 8)
    job, plan = planned(topology, workers, server, NoPlacement())
    assert job.job.designated_switches == ()
    assert (job.acknowledgement, job.ack_trees) == ("unicast", ())
    assert plan == routes_alone(topology)
    check_job(topology, job, plan)


def test_acks_go_only_where_a_slot_waits_for_them() -> None:
    """Each of two core switches sums half of the fragments: the ACKs to the others do not climb up to it."""
    topology = fat_tree(4)
    workers = ("h2", "h5", "h9")
    job, _ = planned(topology, workers, "h1", ExplicitPlacement(("c1", "c3")))
    numbers = [topology.switch(name).number for name in ("c1", "c3")]
    last = topology.switch("e1").number
    assert job.job.switches_by_fragment == (frozenset({numbers[0], last}), frozenset({numbers[1], last}))
    assert len(job.trees) == 2
    for ack, own, other in zip(job.ack_trees, ("c1", "c3"), ("c3", "c1"), strict=True):
        assert own in ack.tree.children and other not in ack.tree.children
        # One copy on every link, and the workers of other pods are reached through the switch that must be passed.
        assert len(ack.tree.edges()) == len({child for _, child in ack.tree.edges()})
        assert len(ack.tree.children[own]) == 2


def test_too_many_sets_of_switches_share_a_tree() -> None:
    topology = fat_tree(6)
    switches = tuple(switch.name for switch in topology.switches if switch.tier == "edge")
    assert len(switches) > MAX_TREES
    job, _ = planned(topology, ("h3", "h20"), "h1", ExplicitPlacement(switches))
    assert len(job.trees) == MAX_TREES
    assert len({ack.group for ack in job.trees}) == MAX_TREES
    check_job(topology, *planned(topology, ("h3", "h20"), "h1", ExplicitPlacement(switches)))


@pytest.mark.parametrize(
    ("topology", "workers", "server", "switches"),
    [
        # A worker under the server's ToR: nothing else sees its gradients.
        (fat_tree(4), ("h2", "h5", "h9", "h13"), "h1", ("e1",)),
        # Workers in several pods: all come through the aggregation switches of the server's pod.
        (fat_tree(4), ("h3", "h5", "h9", "h13"), "h1", ("a1", "a2", "e1")),
        # All in one other pod: its aggregation switches, every core, those of the server's pod, the ToR.
        (
            fat_tree(4),
            ("h5", "h7"),
            "h1",
            ("a3", "a4", "c1", "c2", "c3", "c4", "a1", "a2", "e1"),
        ),
        (leaf_spine(3, 2, 2), ("h3", "h5"), "h1", ("s1", "s2", "l1")),
        (leaf_spine(3, 2, 2), ("h2", "h3"), "h1", ("l1",)),
        (star(3), ("h2", "h3"), "h1", ("s1",)),
    ],
)
def test_the_shared_path_placement(
    topology: Topology, workers: tuple[str, ...], server: str, switches: tuple[str, ...]
) -> None:
    routes = shortest_routes(topology)
    choice = SharedPathPlacement().choose(topology, routes, workers, server)
    numbers = [topology.switch(name).number for name in switches]
    last = topology.attachment(server)
    assert choice.programmable == tuple(name for name in switches if name != last.name)
    everybody = len(workers)
    expected = tuple(
        Designation(number, everybody, *((last.number, everybody) if number != last.number else (0, 0)))
        for number in numbers
    )
    assert choice.designations == dict.fromkeys(workers, expected)


def test_the_tree_is_as_small_as_a_shortest_path_tree_can_be_on_a_fat_tree() -> None:
    """15 workers on k=4: 1 core, an aggregation switch in each of 4 pods, 8 edge switches, 15 hosts."""
    topology = fat_tree(4)
    workers, server = choose_hosts(topology, 15)
    tree = multicast_tree(topology, server, workers, ())
    assert len(tree.edges()) == 15 + 7 + 4 + 1


def test_the_tree_shares_links_where_it_can() -> None:
    """s1 reaches s4 by s2 or s3, and s5 by s3 alone."""
    topology = network([(0, 1), (0, 2), (1, 3), (2, 3), (2, 4)], [1, 0, 0, 1, 1])
    both = multicast_tree(topology, "h1", ("h2", "h3"), ())
    assert set(both.edges()) == {("s1", "s3"), ("s3", "s4"), ("s3", "s5"), ("s4", "h2"), ("s5", "h3")}
    through = multicast_tree(topology, "h1", ("h2",), ("s3",))
    assert set(through.edges()) == {("s1", "s3"), ("s3", "s4"), ("s4", "h2")}
    alone = multicast_tree(topology, "h1", ("h2",), ())
    assert set(alone.edges()) == {("s1", "s2"), ("s2", "s4"), ("s4", "h2")}


def test_a_designated_switch_off_the_way_is_a_leaf_of_the_tree() -> None:
    topology = leaf_spine(3, 2, 1)
    tree = multicast_tree(topology, "h1", ("h2",), ("s1", "s2", "l3"))
    assert tree.root == "l1"
    assert set(tree.edges()) == {("l1", "s1"), ("l1", "s2"), ("s1", "l2"), ("l2", "h2"), ("s1", "l3")}
    job, plan = planned(topology, ("h2",), "h1", ExplicitPlacement(("s1", "s2", "l3")))
    assert plan["l3"].groups == ()
    check_job(topology, job, plan)


@pytest.mark.parametrize(
    ("job", "ip", "mac"),
    [
        (1, "239.66.0.1", "01:00:5e:42:00:01"),
        (258, "239.66.1.2", "01:00:5e:42:01:02"),
        (65535, "239.66.255.255", "01:00:5e:42:ff:ff"),
    ],
)
def test_multicast_addresses(job: int, ip: str, mac: str) -> None:
    assert multicast_address(job) == MulticastAddress(ip=ip, mac=mac)


@pytest.mark.parametrize(
    ("workers", "server", "placement", "line"),
    [
        (("h2", "h99"), "h1", SharedPathPlacement(), "no host 'h99'"),
        (("h2", "e1"), "h1", SharedPathPlacement(), "e1 is a switch"),
        (("h2",), "c1", SharedPathPlacement(), "c1 is a switch"),
        (("h2", "h3", "h2"), "h1", SharedPathPlacement(), "worker named twice: h2"),
        (("h2", "h1"), "h1", SharedPathPlacement(), "h1 cannot be both server and worker"),
        ((), "h1", SharedPathPlacement(), "at least one worker"),
        (("h2",), "h1", ExplicitPlacement(("x9",)), "no switch 'x9'"),
        (("h2",), "h1", ExplicitPlacement(("h3",)), "h3 is a host"),
        (("h2",), "h1", ExplicitPlacement(("e1", "e1")), "named twice: e1"),
        (("h2",), "h1", ExplicitPlacement(()), "placement explicit needs at least one switch"),
    ],
)
def test_nonsense_is_refused_in_one_line(
    workers: tuple[str, ...], server: str, placement: AggregationPlanner, line: str
) -> None:
    with pytest.raises(UserError, match=line) as caught:
        planned(fat_tree(4), workers, server, placement)
    assert "\n" not in str(caught.value)


def test_limits() -> None:
    topology = star(70)
    names = [host.name for host in topology.hosts]
    planned(topology, names[1:65], names[0])
    with pytest.raises(UserError, match="at most 64 workers"):
        planned(topology, names[1:66], names[0])
    # Of up to 16 trees. BMv2 refuses groups from 0x8000 on.
    last, _ = planned(topology, names[1:3], names[0], job=MAX_JOB)
    assert last.trees[0].group + 15 == 0x7FFF


def test_choose_hosts_spreads_the_workers() -> None:
    topology = fat_tree(4)
    workers, server = choose_hosts(topology, 8)
    assert server == "h1"
    assert len(set(workers)) == 8
    below = [topology.attachment(worker).name for worker in workers]
    assert sorted(below) == [f"e{i}" for i in range(1, 9)]


@pytest.mark.parametrize("count", range(1, 9))
def test_choose_hosts_never_takes_a_host_twice(count: int) -> None:
    workers, server = choose_hosts(star(9), count)
    assert len({*workers, server}) == count + 1


def test_choose_hosts_counts_hosts() -> None:
    with pytest.raises(UserError, match="8 workers and a server need 9 hosts, the topology has 4"):
        choose_hosts(star(4), 8)
    with pytest.raises(UserError, match="1 worker and a server need 2 hosts, the topology has 1"):
        choose_hosts(star(1), 1)
    with pytest.raises(UserError, match="at least one worker, got 0"):
        choose_hosts(star(4), 0)


def test_hosts_below_one_switch_are_acknowledged_there() -> None:
    topology = network([(0, 1)], [3, 1])
    job, plan = planned(topology, ("h2", "h3"), "h1")
    assert plan["s2"].groups == ()
    assert plan["s1"].groups[0].ports == (2, 3)
    check_job(topology, job, plan)


def test_every_worker_can_have_labels_of_its_own() -> None:
    """Two racks of two workers: each rack's ToR sums its own, the server's ToR the two sums and a third worker's."""
    topology = leaf_spine(3, 1, 2)
    number = {switch.name: switch.number for switch in topology.switches}
    last = number["l1"]
    labels = {
        "h3": (Designation(number["l2"], 2, last, 5), DIRECT),
        "h4": (Designation(number["l2"], 2, last, 5), DIRECT),
        "h5": (Designation(number["l3"], 2, last, 5), DIRECT),
        "h6": (Designation(number["l3"], 2, last, 5), DIRECT),
        "h2": (Designation(last, 5), DIRECT),
    }

    class Fixed:
        def choose(self, *arguments: object) -> AggregationChoice:
            return AggregationChoice(("l2", "l3"), labels)

    job, plan = planned(topology, tuple(labels), "h1", Fixed())
    assert job.job.designated_switches == (number["l2"], number["l3"], last)
    labelled = {w: tuple(label for label in own if label.switch_number) for w, own in labels.items()}
    check_job(
        topology,
        replace(job, job=job.job.model_copy(update={"designations": labelled}), ack_trees=job.ack_trees[:1]),
        plan,
    )


def test_slots_of_a_job_are_in_its_roles() -> None:
    topology = star(3)
    routes = shortest_routes(topology)
    job = choose_job(topology, routes, ("h2", "h3"), "h1", SharedPathPlacement(), slots=64)
    own = job.model_copy(update={"slot_policy": "static", "slot_ranges": {"s1": SlotRange(16, 8)}})
    roles = [
        entry
        for each in (job, own)
        for entry in job_plan(topology, routes, 4, each).plan["s1"].entries
        if entry.table == "roles"
    ]
    number = topology.switch("s1").number
    assert [(role.action, role.params) for role in roles] == [
        ("aggregate_hashed", {"switch_number": number, "first_slot": 0, "slots": 64, "reclaim_distance": 4096}),
        ("aggregate_indexed", {"switch_number": number, "first_slot": 16, "slots": 8, "reclaim_distance": 8}),
    ]


@pytest.mark.parametrize(("jobs", "workers"), [(1, 8), (2, 7), (3, 4), (8, 1), (5, 2)])
def test_jobs_share_no_host(jobs: int, workers: int) -> None:
    chosen = choose_hosts_of_jobs(fat_tree(4), jobs, workers)
    hosts = [name for names, server in chosen for name in (*names, server)]
    assert len(set(hosts)) == len(hosts) == jobs * (workers + 1)


def test_hosts_for_jobs_are_counted() -> None:
    with pytest.raises(UserError, match="2 jobs of 8 workers and a server need 18 hosts, the topology has 16"):
        choose_hosts_of_jobs(fat_tree(4), 2, 8)
    with pytest.raises(UserError, match="at least one job, got 0"):
        choose_hosts_of_jobs(fat_tree(4), 0, 8)
    with pytest.raises(UserError, match="at least one worker, got -1"):
        choose_hosts_of_jobs(fat_tree(4), 2, -1)
