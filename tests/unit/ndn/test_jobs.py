"""Jobs of one network, one after the other: names, routes, and what routers keep."""

from __future__ import annotations

from collections import Counter

import pytest

from gradbed.common.errors import UserError
from gradbed.controller.core.service import NoSettings
from gradbed.controller.planning.routing import shortest_routes
from gradbed.controller.systems.ndn.entries import job_name
from gradbed.controller.systems.ndn.service import NdnRequest, NdnService, Prefix
from gradbed.experiments.scale import Scale
from gradbed.experiments.systems.ndn.configuration import NdnConfiguration
from gradbed.experiments.systems.ndn.phase import job_on, ndn_job, request_of
from gradbed.hosts.systems.ndn.config import training_of
from gradbed.hosts.systems.ndn.packets import fragment_name, interest_frame
from gradbed.topo.registry import parse_topology
from tests.unit.ndn.routers.one_router import ETHERNET, OneRouter, gradient_frame, name

PUBLISHER, OTHER, CONSUMER = 1, 2, 3


def request(host: str) -> NdnRequest:
    return NdnRequest(prefixes=(Prefix(name="/t/p", host=host),), consumers=("h3",))


def test_a_store_never_answers_with_another_jobs_content() -> None:
    """Though all asked for the same names, after a restart of the router, too, and without agents of the project."""
    with OneRouter(4) as router:
        for nonce, (host, port) in enumerate((("h1", PUBLISHER), ("h2", OTHER), ("h1", PUBLISHER))):
            job = router.controller.add_job("ndn", request(host))
            (prefix,) = router.controller.answer(job).prefixes  # type: ignore[attr-defined]
            parts = tuple(prefix.name[1:].split("/"))
            wanted = fragment_name(name(*parts), 0, 0)
            probe = interest_frame(ETHERNET, wanted, nonce, 1000)
            # Nobody but its own publisher has it.
            assert list(router.exchange(CONSUMER, probe)) == [port]
            content = gradient_frame(*parts, version=0, lane=100 * port + nonce)
            assert router.exchange(port, content) == {CONSUMER: [content]}
            assert router.exchange(4, probe) == {4: [content]}
            router.controller.delete_job("ndn", job.number)
            assert router.exchange(4, probe) == {4: [content]}
            if nonce == 1:
                router.simulated.restart_switch(1)
                router.southbound.restore("s1")
                # Nothing is kept, and nobody publishes: a Nack (the packet type of NDNLPv2's LpPacket).
                [answer] = router.exchange(4, probe)[4]
                assert answer[len(ETHERNET)] == 100 and bytes(answer).endswith(probe[len(ETHERNET) :])


@pytest.mark.parametrize("exchange", ["push", "unicast"])
def test_peers_use_the_names_that_the_controller_routes(exchange: str) -> None:
    topology = parse_topology("star:3")
    service = NdnService(topology, shortest_routes(topology), NoSettings())
    configuration = NdnConfiguration.model_validate({"workload": {"exchange": exchange, "peers": 3}})
    job = job_on(configuration, 1, ("h1", "h2", "h3"))
    asked = request_of(job, configuration)
    names = set()
    for number in (1, 2, 11):
        routed = {each.name for each in service.answer(number, service.admit(number, asked, {})).prefixes}
        told = ndn_job(job, configuration, Scale(), number)
        assert routed == {
            f"/{training_of(told, receiver)}/{own}" for own in job.peers for receiver in job.peers if own != receiver
        }
        assert not routed & names
        names |= routed


def test_names_of_jobs_differ_whatever_was_asked_for() -> None:
    asked = ("/a/b", "/a", "/a-1/b", "/a-1", "/1", "/a-/1")
    found = [job_name(name, job) for job in (1, 2, 11, 21) for name in asked]
    assert len(set(found)) == len(found)
    topology = parse_topology("star:2")
    service = NdnService(topology, shortest_routes(topology), NoSettings())
    long = NdnRequest(prefixes=(Prefix(name="/" + 31 * "a", host="h1"),))
    with pytest.raises(UserError, match="too long"):
        service.admit(7, long, {})


def test_copies_take_all_cores_alike() -> None:
    """As ECMP sends flows: no core has much more than a quarter of what goes from pod to pod."""
    topology = parse_topology("fat-tree:4")
    service = NdnService(topology, shortest_routes(topology), NoSettings())
    configuration = NdnConfiguration.model_validate({"workload": {"exchange": "unicast", "peers": 16}})
    job = job_on(configuration, 1, tuple(host.name for host in topology.hosts))
    request = request_of(job, configuration)
    state = service.admit(1, request, {})
    cores: Counter[str] = Counter()
    hops = 0
    for prefix in request.prefixes:
        tree = service._tree(prefix, state)
        hops += 1 + len(tree.edges())
        cores.update(name for name in tree.children if topology.switch(name).tier == "core")
    assert hops == 1312  # the sum of all distances
    assert sum(cores.values()) == 16 * 12
    assert len(cores) == 4 and max(cores.values()) < 1.35 * 48
