"""The graph model: lookups, checks, JSON, changed link models."""

import json

import networkx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from gradbed.common.errors import UserError
from gradbed.topo.addressing import host_port_mac, make_host, make_switch
from gradbed.topo.generators import fat_tree, leaf_spine, star
from gradbed.topo.graph import Endpoint, Link, Topology
from gradbed.topo.link import LinkModel

link_fields = st.fixed_dictionaries(
    {},
    optional={
        "rate_bps": st.none() | st.integers(1, 10**12),
        "delay_us": st.integers(0, 10**7),
        "loss": st.floats(0, 1, exclude_max=True),
        "duplicate": st.floats(0, 1, exclude_max=True),
        "queue_packets": st.integers(1, 10**6),
    },
)
topologies = st.one_of(
    st.builds(lambda k, link: fat_tree(2 * k, LinkModel(**link)), st.integers(1, 3), link_fields),
    st.builds(lambda a, b, c, link: leaf_spine(a, b, c, LinkModel(**link)), *[st.integers(1, 5)] * 3, link_fields),
    st.builds(lambda n, link: star(n, LinkModel(**link)), st.integers(1, 12), link_fields),
)


@given(topologies)
def test_json_round_trip_is_equal(topology: Topology) -> None:
    again = Topology.from_json(topology.to_json())
    assert again == topology
    assert again.links[0].model == topology.links[0].model
    assert networkx.utils.graphs_equal(again.graph, topology.graph)
    assert again == topology  # also once both have their cached graph


@given(topologies)
def test_lookups_agree_with_links(topology: Topology) -> None:
    for link in topology.links:
        for end, other in ((link.a, link.b), (link.b, link.a)):
            assert topology.neighbours(end.node)[other.node] == end.port
            assert topology.port(end.node, other.node) == end.port
            assert topology.link(end.node, other.node) is link
            assert link.end(end.node) == end
            assert link.other(end.node) == other
    for host in topology.hosts:
        assert topology.is_host(host.name)
        assert list(topology.neighbours(host.name)) == [topology.attachment(host.name).name]
        assert topology.attachment(host.name).mac == host.gateway_mac
    for switch in topology.switches:
        assert not topology.is_host(switch.name)
        assert topology.switch_by_number(switch.number) is topology.switch(switch.name) is switch
        assert list(topology.neighbours(switch.name).values()) == list(
            range(1, len(topology.neighbours(switch.name)) + 1)
        )
    assert {*topology.host_links, *topology.switch_links} == set(topology.links)
    assert len(topology.host_links) == len(topology.hosts)


@pytest.mark.parametrize(
    "lookup",
    [
        lambda t: t.host("e1"),
        lambda t: t.switch("h1"),
        lambda t: t.switch_by_number(99),
        lambda t: t.is_host("x"),
        lambda t: t.neighbours("x"),
        lambda t: t.link("h1", "h2"),
        lambda t: t.port("h1", "x"),
        lambda t: t.attachment("s1"),
        lambda t: t.link("h1", "s1").end("h2"),
        lambda t: t.with_links([("h1", "h2")], rate_bps=1),
    ],
)
def test_unknown_names_are_user_errors(lookup) -> None:
    with pytest.raises(UserError) as caught:
        lookup(star(2))
    assert "\n" not in str(caught.value)


def test_host_without_link_has_no_attachment() -> None:
    lonely = star(2).model_copy(update={"links": ()})
    with pytest.raises(UserError, match="h1 of star:2 is not linked"):
        lonely.attachment("h1")


def test_a_changed_copy_has_nothing_of_the_original_s_links() -> None:
    whole = star(2)
    assert whole.graph.number_of_edges() == len(whole.host_links) == 2
    assert whole.switch_links == () and whole.attachment("h1").name == "s1"
    copied = whole.model_copy(update={"links": whole.links[1:]})
    assert copied.graph.number_of_edges() == len(copied.host_links) == 1
    assert copied.attachment("h2").name == "s1"
    with pytest.raises(UserError, match="h1 of star:2 is not linked"):
        copied.attachment("h1")


def test_with_links_changes_only_the_chosen_fields_of_the_chosen_links() -> None:
    before = fat_tree(4, LinkModel(delay_us=7))
    after = before.with_links([("e1", "h1"), ("a1", "c2")], rate_bps=5_000_000)
    assert after.link("h1", "e1").model == LinkModel(rate_bps=5_000_000, delay_us=7)
    changed = [link for link, former in zip(after.links, before.links, strict=True) if link != former]
    assert {(link.a.node, link.b.node) for link in changed} == {("h1", "e1"), ("a1", "c2")}
    slow_access = before.with_links(lambda link: link in before.host_links, loss=0.5)
    assert {link.model.loss for link in slow_access.host_links} == {0.5}
    assert {link.model.loss for link in slow_access.switch_links} == {0.0}


def test_with_links_checks_the_model() -> None:
    with pytest.raises(UserError, match="probability"):
        star(1).with_links([("h1", "s1")], loss=1.5)


def _edited(edit) -> str:
    value = json.loads(star(2).to_json())
    edit(value)
    return json.dumps(value)


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (lambda t: t["hosts"][1].update(name="h1"), "share the name h1"),
        (lambda t: t["hosts"][1].update(ip="10.0.0.2"), "share the IP address"),
        (lambda t: t["hosts"][1].update(mac=t["switches"][0]["mac"]), "share the MAC"),
        (lambda t: t["switches"].append({**t["switches"][0], "name": "s2"}), "share the switch number 1"),
        (lambda t: t["links"][1]["b"].update(port=1), "share the link end"),
        (lambda t: t["links"][0]["b"].update(node="s9"), "neither a host nor a switch"),
        (lambda t: t["links"][0]["b"].update(port=0), "cannot have port 0"),
        (lambda t: t["links"][0]["a"].update(port=3), "h1 has the ports \\[3\\]"),
        (lambda t: t["links"][0].update(b={"node": "h1", "port": 1}), "linked to itself"),
        (lambda t: t["links"][0].update(b={"node": "h2", "port": 1}), "no switch at either end"),
        (lambda t: t["links"].append({**t["links"][0], "b": {"node": "s1", "port": 3}}), "share the link"),
        (lambda t: t["links"][0]["model"].update(rate=5), "a link has no rate"),
        (lambda t: t["links"][0]["model"].update(loss=2), "probability"),
        (lambda t: t["hosts"][0].update(ip="10.0.0.999"), "hosts.0.ip"),
        (lambda t: t["hosts"][0].update(mac="2:0:a:0:0:2"), "hosts.0.mac"),
        (lambda t: t["hosts"][0].update(name="h 1"), "hosts.0.name"),
        (lambda t: t["switches"][0].update(number=65536), "switches.0.number"),
        (lambda t: t["switches"][0].update(tier="The Top"), "switches.0.tier"),
        (lambda t: t.update(colour="red"), "colour"),
        (lambda t: t.pop("hosts"), "hosts"),
    ],
)
def test_bad_json_is_one_clear_line(edit, words: str) -> None:
    with pytest.raises(UserError, match=words) as caught:
        Topology.from_json(_edited(edit))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", b"\xff"])
def test_not_json_at_all(text) -> None:
    with pytest.raises(UserError, match="not a topology"):
        Topology.from_json(text)


def test_values_are_frozen_and_hashable() -> None:
    topology = star(2)
    with pytest.raises(ValidationError):
        topology.hosts[0].name = "x"
    link = topology.links[0]
    assert Link(a=Endpoint(node="h1", port=0), b=Endpoint(node="s1", port=1)) in {link}


def test_hosts_may_have_several_ports_and_switches_any_tier() -> None:
    switches = tuple(make_switch(f"p{number}", number, "plane") for number in (1, 2))
    host = make_host("h1", "10.0.0", 0, switches[0])
    links = tuple(
        Link(a=Endpoint(node="h1", port=port), b=Endpoint(node=switch.name, port=1))
        for port, switch in enumerate(switches)
    )
    between = Link(a=Endpoint(node="p1", port=2), b=Endpoint(node="p2", port=2))
    topology = Topology(name="two planes", hosts=(host,), switches=switches, links=(*links, between))
    assert topology.attachment("h1").name == "p1"
    assert topology.neighbours("h1") == {"p1": 0, "p2": 1}
    assert host_port_mac(host, 0) == host.mac != host_port_mac(host, 1)
    with pytest.raises(ValueError, match="count from 0 without gaps"):
        Topology(name="a gap", hosts=(host,), switches=switches, links=(links[1], between))
