"""What the service puts into switches, followed packet by packet; what it refuses before anything is sent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from ipaddress import IPv4Address

import networkx as nx
import pytest

from gradbed.common.errors import UserError
from gradbed.controller.planning.multicast import GROUPS_PER_JOB
from gradbed.controller.planning.plan import Plan
from gradbed.controller.planning.routing import link_name, remaining_network, shortest_routes
from gradbed.controller.systems.shuffle.delivery import hop_count, route_links, transmission_links
from gradbed.controller.systems.shuffle.messages import ShuffleJob, ShuffleRequest, ShuffleSettings
from gradbed.controller.systems.shuffle.scheduling.instance import epochs
from gradbed.controller.systems.shuffle.service import ShuffleService
from gradbed.topo.generators import star
from gradbed.topo.graph import Topology, is_hop
from gradbed.topo.registry import parse_topology

SAMPLES = 48


def service(topology: Topology, bits: int = 128) -> ShuffleService:
    return ShuffleService(topology, shortest_routes(topology), ShuffleSettings(bits=bits))


def request(
    topology: Topology, scheduler: str = "coded-largest", share: float = 0.4, **fields: object
) -> ShuffleRequest:
    hosts = [host.name for host in topology.hosts]
    master = hosts.pop() if scheduler == "coded-master" else None
    instance = next(epochs(hosts, [65] * SAMPLES, share, seed=3, master=master))
    return ShuffleRequest(
        workers=instance.workers,
        sizes_bytes=instance.sizes_bytes,
        stored=instance.stored,
        needed=instance.needed,
        master=master,
        scheduler=scheduler,
        **fields,
    )


class Walk:
    """Packets through a plan, as p4src/multicast.p4 forwards them."""

    def __init__(self, topology: Topology, plan: Plan) -> None:
        self.topology = topology
        self.links: Counter[tuple[str, str]] = Counter()
        self._neighbour = {
            (node.name, port): other
            for node in topology.switches
            for other, port in topology.neighbours(node.name).items()
        }
        self._entries = {
            (switch, entry.table, tuple(entry.match.values())): entry
            for switch, own in plan.switches.items()
            for entry in own.entries
        }
        self._groups = {
            (switch, group.id): group.ports for switch, own in plan.switches.items() for group in own.groups
        }

    def _arrive(self, sender: str, node: str) -> bool:
        """Whether it has to be forwarded."""
        self.links[sender, node] += 1
        assert sum(self.links.values()) < 1000, "packets go round in circles"
        return not self.topology.is_host(node)

    def by_bits(self, sender: str, node: str, bift_id: int, bits: int) -> Iterator[tuple[str, int]]:
        """(host, bit string) of every copy that reaches a host."""
        if not self._arrive(sender, node):
            yield node, bits
            return
        replicate = self._entries[node, "trees", (bift_id,)]
        for port in self._groups[node, replicate.params["group"]]:
            mask = self._entries.get((node, "bift", (bift_id, port)))
            if mask is not None and bits & mask.params["f_bm"]:
                yield from self.by_bits(node, self._neighbour[node, port], bift_id, bits & mask.params["f_bm"])

    def by_group(self, sender: str, node: str, address: int) -> Iterator[str]:
        if not self._arrive(sender, node):
            yield node
            return
        replicate = self._entries[node, "multicast_routes", (address,)]
        for port in self._groups[node, replicate.params["group"]]:
            yield from self.by_group(node, self._neighbour[node, port], address)


def follow_all(topology: Topology, job: ShuffleJob, plan: Plan) -> None:
    """Every transmission reaches its receivers, each once, on the links that the schedule counted."""
    instance = job.instance
    host_ips = {host.ip: host.name for host in topology.hosts}
    found = transmission_links(topology, shortest_routes(topology), instance, job.schedule, job.deliveries)
    several = 0
    for transmission, delivery, links in zip(job.schedule.transmissions, job.deliveries, found, strict=True):
        sender = instance.hosts[transmission.sender]
        receivers = {instance.hosts[worker]: 1 << worker for worker, _ in transmission.receivers}
        assert hop_count(topology, links) == transmission.hops
        if delivery.dst_ip in host_ips:
            assert [host_ips[delivery.dst_ip]] == list(receivers)
            assert links == route_links(topology, shortest_routes(topology), sender, host_ips[delivery.dst_ip])
            continue
        several += 1
        walk = Walk(topology, plan)
        first = topology.attachment(sender).name
        if delivery.dst_ip is None:
            reached = list(walk.by_bits(sender, first, delivery.bift_id, sum(receivers.values())))
            assert dict(reached) == receivers and len(reached) == len(receivers)
        else:
            hosts = list(walk.by_group(sender, first, int(IPv4Address(delivery.dst_ip))))
            assert sorted(hosts) == sorted(receivers)
        assert walk.links == Counter(links)
        assert sum(is_hop(topology, topology.link(*pair)) for pair in walk.links.elements()) == transmission.hops
    assert several, "some go to several receivers"


@pytest.mark.parametrize("multicast", ["bit-string", "groups"])
@pytest.mark.parametrize("kind", ["fat-tree:4", "bcube:4,1", "bcube:2,2", "leaf-spine:3,2,3", "star:6"])
def test_packets_take_the_links_that_were_counted(kind: str, multicast: str) -> None:
    topology = parse_topology(kind)
    made = service(topology)
    job = made.admit(1, request(topology, multicast=multicast, variants=2), {})
    follow_all(topology, job, made.plan(1, job))


@pytest.mark.parametrize("kind", ["fat-tree:4", "bcube:3,1"])
def test_single_receivers_may_go_on_trees_too(kind: str) -> None:
    topology = parse_topology(kind)
    made = service(topology)
    job = made.admit(1, request(topology, "unicast-nearest", unicast="trees"), {})
    assert {delivery.dst_ip for delivery in job.deliveries} == {None}
    follow_all(topology, job, made.plan(1, job))


def test_the_master_sends_and_is_in_no_bit_string() -> None:
    topology = parse_topology("fat-tree:4")
    made = service(topology, bits=16)
    job = made.admit(1, request(topology, "coded-master"), {})
    assert {each.sender for each in job.schedule.transmissions} == {15}
    follow_all(topology, job, made.plan(1, job))


@pytest.mark.parametrize("multicast", ["bit-string", "groups"])
def test_shuffles_do_not_disturb_each_other(multicast: str) -> None:
    topology = parse_topology("fat-tree:4")
    made = service(topology)
    jobs: dict[int, ShuffleJob] = {}
    for number in (1, 2, 3):
        jobs[number] = made.admit(number, request(topology, seed=number, multicast=multicast), jobs)
    plan = Plan(switches={}).merged(*(made.plan(number, job) for number, job in jobs.items()))
    for job in jobs.values():
        follow_all(topology, job, plan)
    del jobs[2]
    jobs[4] = made.admit(4, request(topology, seed=4, multicast=multicast), jobs)
    Plan(switches={}).merged(*(made.plan(number, job) for number, job in jobs.items()))


def test_a_job_is_kept_as_json() -> None:
    topology = parse_topology("fat-tree:4")
    made = service(topology)
    job = made.admit(1, request(topology), {})
    again = ShuffleJob.model_validate_json(job.model_dump_json())
    assert again == job and made.plan(1, again) == made.plan(1, job)
    assert made.answer(1, job).hops == job.schedule.hops == made.listed(1, job).model_dump()["hops"]


def test_trees_that_lost_a_link_are_made_anew() -> None:
    topology = parse_topology("fat-tree:4")
    made = service(topology)
    job = made.admit(1, request(topology, unicast="trees"), {})
    used = Counter(
        pair for tree in job.schedule.trees for pair in tree.links if pair[0][0] == "c" or pair[1][0] == "c"
    )
    (a, b), _ = used.most_common(1)[0]
    left = remaining_network(topology, [link_name(topology.link(a, b))])
    made.reroute(left, shortest_routes(left))
    plan = made.plan(1, job)
    for transmission, delivery in zip(job.schedule.transmissions, job.deliveries, strict=True):
        walk = Walk(left, plan)
        sender = job.instance.hosts[transmission.sender]
        receivers = {job.instance.hosts[worker]: 1 << worker for worker, _ in transmission.receivers}
        assert (
            dict(walk.by_bits(sender, left.attachment(sender).name, delivery.bift_id, sum(receivers.values())))
            == receivers
        )
        assert not {(a, b), (b, a)} & walk.links.keys()


# ---- Bad input ----

STORED, NEEDED = ((0,), (1,), ()), ((1,), (0,), ())


def ask(topology: Topology | None = None, bits: int = 128, **changes: object) -> None:
    fields: dict[str, object] = {
        "workers": ("h1", "h2", "h3"),
        "sizes_bytes": (10, 10),
        "stored": STORED,
        "needed": NEEDED,
        **changes,
    }
    service(topology or star(3), bits).admit(1, ShuffleRequest.model_validate(fields), {})


def test_the_good_one_is_good() -> None:
    ask()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"stored": ((0,), (), ())}, "h1 needs sample 1, which no worker stores"),
        (
            {"needed": ((1, 2), (0,), ())},
            "h1 has sample 2 among its needed ones, but samples are numbered from 0 to 1",
        ),
        ({"stored": ((0,), (1,))}, "3 workers, but 2 lists of stored samples"),
        ({"workers": ("h1", "h2", "h9")}, "has no host 'h9'"),
        ({"workers": ("h1", "h2", "h1")}, "a worker is named twice"),
        ({"sizes_bytes": (10, 0)}, "a sample has at least one byte"),
        ({"scheduler": "magic"}, "unknown scheduler 'magic': choose one of"),
        ({"scheduler": "coded-master"}, "needs a master"),
        ({"master": "h1"}, "the master h1 is a worker, too"),
    ],
)
def test_bad_requests_are_refused_in_one_line(changes: dict[str, object], words: str) -> None:
    with pytest.raises(UserError, match=words) as caught:
        ask(**changes)
    assert "\n" not in str(caught.value)


def test_more_workers_than_bits_need_groups() -> None:
    topology = star(9)
    workers = tuple(host.name for host in topology.hosts)
    lists = {"workers": workers, "stored": ((0, 1), *((),) * 8), "needed": (*((0,),) * 9,)}
    with pytest.raises(
        UserError, match="9 workers do not fit bit strings of 8 bits: take longer ones, or multicast by"
    ):
        ask(topology, bits=8, **lists)
    ask(topology, bits=8, multicast="groups", **lists)
    ask(topology, bits=16, **lists)


def test_a_network_in_parts_is_refused() -> None:
    whole = star(3)
    parts = Topology(name="parts", hosts=whole.hosts, switches=whole.switches, links=whole.links[:2])
    assert not nx.is_connected(parts.graph)
    made = service(whole)
    made.reroute(parts, shortest_routes(whole))
    with pytest.raises(UserError, match="the network is not connected: no path from h1 to h3") as caught:
        made.admit(
            1,
            ShuffleRequest(workers=("h1", "h2", "h3"), sizes_bytes=(10, 10), stored=STORED, needed=NEEDED),
            {},
        )
    assert "\n" not in str(caught.value)


def test_groups_that_are_left_are_counted() -> None:
    topology = parse_topology("fat-tree:4")
    made = service(topology)
    job = made.admit(1, request(topology, multicast="groups"), {})
    tight = job.model_copy(update={"first_group": GROUPS_PER_JOB * 5 + job.groups, "groups": job.groups})
    with pytest.raises(UserError, match=r"\d+ multicast groups are more than are left"):
        made.admit(4, request(topology, multicast="groups"), {3: tight})
    assert job.first_group == 0x7FFF


def test_switches_that_only_forward_hold_groups_alone() -> None:
    topology = parse_topology("fat-tree:4")
    made = service(topology)
    for multicast in ("bit-string", "groups"):
        job = made.admit(1, request(topology, multicast=multicast), {})
        entries = [(switch, entry) for switch, own in made.plan(1, job).switches.items() for entry in own.entries]
        if multicast == "groups":
            assert [made.plain(switch, entry) for switch, entry in entries] == [entry for _, entry in entries]
        else:
            with pytest.raises(UserError, match="only forwards, so it cannot send copies by bit string"):
                made.plain(*entries[0])
