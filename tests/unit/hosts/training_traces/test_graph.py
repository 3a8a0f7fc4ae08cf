"""Graphs in columns: what goes in comes out, and followers are those who wait."""

from __future__ import annotations

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradbed.hosts.collectives.schedule import Operation
from gradbed.hosts.systems.training.traces.graph import BrokenGraph, Kind, Pool, TraceNode, graph_of

RANKS = st.integers(0, 1 << 20)
SIZES = st.integers(0, 1 << 62)


@st.composite
def lists_of_nodes(draw: st.DrawFn) -> list[TraceNode]:
    """In any order, with dependencies on any others."""
    numbers = draw(st.lists(st.integers(0, (1 << 64) - 1), unique=True, max_size=8))
    nodes = []
    for number in numbers:
        kind = draw(st.sampled_from(Kind))
        collective = kind is Kind.COLLECTIVE
        nodes.append(
            TraceNode(
                number,
                draw(st.text(max_size=3)),
                kind,
                tuple(draw(st.lists(st.sampled_from(numbers), unique=True, max_size=3))),
                duration_ns=draw(SIZES),
                size_bytes=draw(SIZES),
                peer=draw(RANKS) if kind in (Kind.SEND, Kind.RECEIVE) else None,
                tag=draw(SIZES),
                operation=draw(st.sampled_from(Operation)) if collective else None,
                group=tuple(draw(st.lists(RANKS, max_size=3))) if collective else (),
                root=draw(st.none() | RANKS),
                on_cpu=draw(st.booleans()),
            )
        )
    return nodes


@given(lists_of_nodes())
def test_nodes_are_kept_and_circles_refused(nodes: list[TraceNode]) -> None:
    order = nx.DiGraph()
    order.add_nodes_from(node.number for node in nodes)
    order.add_edges_from((number, node.number) for node in nodes for number in node.after)
    if not nx.is_directed_acyclic_graph(order):
        with pytest.raises(BrokenGraph) as broken:
            graph_of(nodes)
        # A node is in a circle exactly if it reaches itself.
        assert any(nx.has_path(order, after, broken.value.number) for after in order[broken.value.number])
        return
    graph = Pool().shared(graph_of(nodes))
    assert list(graph) == nodes and graph[:] == nodes
    assert len(graph) == len(nodes)
    for place, node in enumerate(nodes):
        followers = [nodes[each].number for each in graph.followers(place)]
        assert followers == [other.number for other in nodes if node.number in other.after]
    assert graph.waits_for().tolist() == [len(node.after) for node in nodes]
    communicating = [place for place, node in enumerate(nodes) if node.kind not in (Kind.COMPUTE, Kind.MEMORY)]
    assert [each.place for each in graph.communications()] == communicating


def test_places_count_from_the_end_too() -> None:
    graph = graph_of([TraceNode(5, "a", Kind.COMPUTE), TraceNode(6, "b", Kind.COMPUTE)])
    assert graph[-1].number == 6
    with pytest.raises(IndexError):
        graph[2]


def test_what_is_alike_is_kept_once() -> None:
    nodes = [TraceNode(number, str(number), Kind.SEND, size_bytes=5, peer=1) for number in range(100)]
    pool = Pool()
    one, two = pool.shared(graph_of(nodes)), pool.shared(graph_of(nodes))
    other = pool.shared(
        graph_of([TraceNode(number, str(number), Kind.SEND, size_bytes=6, peer=1) for number in range(100)])
    )
    assert one.columns.size_bytes is two.columns.size_bytes and one.names is two.names is other.names
    assert one.columns.size_bytes is not other.columns.size_bytes
    assert one.columns.number is other.columns.number
