"""Made transformers against counts of the test's own: weights of matrices one by one, and what papers say is sent."""

from __future__ import annotations

from collections import Counter

import networkx as nx
import pytest
from pydantic import ValidationError

from gradbed.hosts.collectives.schedule import Operation
from gradbed.hosts.systems.training.source import open_trace
from gradbed.hosts.systems.training.traces.graph import Kind
from gradbed.hosts.systems.training.traces.trace import Trace
from gradbed.hosts.systems.training.traces.transformer_model import TransformerModel

SHAPES = [
    {},
    {"dp": 4},
    {"tp": 4},
    {"pp": 4, "micro_batches": 4},
    {"pp": 2, "micro_batches": 8, "schedule": "gpipe", "dp": 2},
    {"dp": 2, "tp": 2, "pp": 2, "micro_batches": 2, "sequence_parallel": True, "iterations": 2},
    {"dp": 4, "tp": 2, "optimizer": "zero1", "bucket_bytes": 1000, "gradient_bytes": 4},
    {"dp": 4, "ep": 2, "experts": 4, "tp": 2, "pp": 2, "micro_batches": 2},
    {"dp": 4, "ep": 4, "experts": 8, "top_k": 1, "optimizer": "zero1"},
]


def model(**numbers: object) -> TransformerModel:
    return TransformerModel.model_validate(
        {"layers": 4, "width": 16, "heads": 4, "sequence": 8, "batch": 16, "vocabulary": 50, **numbers}
    )


def sent(trace: Trace, words: str) -> Counter[tuple[int, Operation]]:
    """(rank, operation) -> bytes of the collectives with these words in their names."""
    found: Counter[tuple[int, Operation]] = Counter()
    for rank in range(trace.ranks):
        for node in trace.nodes(rank):
            if node.operation is not None and words in node.name:
                found[rank, node.operation] += node.size_bytes
    return found


def matrices(of: TransformerModel) -> int:
    """Parameters of the whole model, tensor by tensor; words' embeddings once."""
    h, f, e = of.width, of.feed_forward_width, of.experts
    count = 0
    for _ in range(of.layers):
        for rows, columns in ((h, h), (h, h), (h, h), (h, h)):  # query, key, value, projection
            count += rows * columns + columns
        for _ in range(e or 1):
            count += h * f + f
            count += f * h + h
        count += e * h  # router
        count += 2 * (h + h)  # two norms, gain and bias
    return count + of.vocabulary * h + of.sequence * h + 2 * h


def test_parameters_of_a_dense_layer_are_twelve_squares_of_the_width() -> None:
    of = model(vocabulary=64)
    h = of.width
    assert matrices(of) == of.layers * (12 * h * h + 13 * h) + 64 * h + of.sequence * h + 2 * h


@pytest.mark.parametrize("bucket_bytes", [1, 1000, 1 << 30])
def test_gradients_are_the_parameters(bucket_bytes: int) -> None:
    of = model(dp=4, bucket_bytes=bucket_bytes)
    found = sent(open_trace(of), "gradients ")
    assert found == {(rank, Operation.ALL_REDUCE): 2 * matrices(of) for rank in range(4)}


def test_gradients_over_tensor_and_pipeline_ranks_are_the_parameters() -> None:
    """Norms, positions and the biases after sums are on every tensor parallel rank, words at both ends."""
    of = model(dp=2, tp=2, pp=2, micro_batches=2)
    h = of.width
    whole = sum(sent(open_trace(of), "gradients ").values()) // (of.dp * of.bytes)
    on_each = of.layers * 6 * h + of.sequence * h + 2 * h
    assert whole == matrices(of) + on_each + of.vocabulary * h


def test_gradients_of_experts_are_reduced_by_those_who_hold_them() -> None:
    of = model(dp=4, ep=2, experts=4)
    h, f = of.width, of.feed_forward_width
    experts = of.layers * of.experts * (2 * h * f + f + h)
    trace = open_trace(of)
    by_group: Counter[tuple[int, ...]] = Counter()
    for node in trace.nodes(1):
        if "gradients " in node.name:
            by_group[node.group] += node.size_bytes
    assert by_group == {(1, 3): experts // 2 * of.bytes, (): (matrices(of) - experts) * of.bytes}


def test_zero_scatters_gradients_and_gathers_parameters() -> None:
    of = model(dp=4, optimizer="zero1", gradient_bytes=4, bucket_bytes=1 << 30)
    padded = -(-matrices(of) // 4) * 4
    trace = open_trace(of)
    for rank in range(4):
        assert sent(trace, "gradients ")[rank, Operation.REDUCE_SCATTER] == 4 * padded
        assert sent(trace, "parameters ")[rank, Operation.ALL_GATHER] == 2 * padded // 4


def test_experts_parameters_are_gathered_by_those_who_hold_them() -> None:
    of = model(dp=4, ep=2, experts=4, optimizer="zero1", bucket_bytes=1 << 30)
    h, f = of.width, of.feed_forward_width
    experts = of.layers * (of.experts // of.ep) * (2 * h * f + f + h)
    gathered = {node.group: node.size_bytes for node in open_trace(of).nodes(2) if "parameters " in node.name}
    assert gathered[0, 2] == experts // 2 * of.bytes and len(gathered) == 2


def test_tensor_ranks_reduce_twice_a_layer_each_way() -> None:
    """Shoeybi et al.: b s h values each; and once for embeddings and logits, and three small ones of the loss."""
    of = model(tp=4, micro_batches=2)
    whole = of.batch // 2 * of.sequence * of.width * of.bytes
    tokens = of.batch // 2 * of.sequence
    per_micro_batch = 4 * of.layers * whole + 2 * whole + 3 * 4 * tokens
    assert sent(open_trace(of), "") == {(rank, Operation.ALL_REDUCE): 2 * per_micro_batch for rank in range(4)}


def test_sequence_parallel_ranks_move_what_the_all_reduces_did() -> None:
    """Korthikanti et al., section 4.2.2: a ring's all-reduce is its reduce-scatter and its all-gather."""
    plain, spread = model(tp=4), model(tp=4, sequence_parallel=True)
    of = {each.sequence_parallel: sent(open_trace(each), "layer ") for each in (plain, spread)}
    assert of[True][0, Operation.REDUCE_SCATTER] == of[False][0, Operation.ALL_REDUCE]
    assert of[True][0, Operation.ALL_GATHER] * 4 == of[False][0, Operation.ALL_REDUCE]


def test_experts_get_every_token_so_often() -> None:
    of = model(dp=2, ep=2, experts=4, top_k=2, micro_batches=2)
    tokens = of.batch // 4 * of.sequence
    each_way = 2 * tokens * of.width * of.bytes
    expected = of.micro_batches * of.layers * 4 * each_way  # dispatch and combine, forward and backward
    assert sent(open_trace(of), "layer ") == {(rank, Operation.ALL_TO_ALL): expected for rank in range(2)}


@pytest.mark.parametrize("numbers", [{}, {"tp": 4}, {"pp": 4, "micro_batches": 4}, {"dp": 4}])
def test_computations_are_six_times_parameters_and_tokens(numbers: dict[str, object]) -> None:
    """Of all ranks together: 6 flops a matrix weight and token, and attention's 12 s h a token and layer."""
    of = model(vocabulary=64, flop_time=1000, **numbers)
    h = of.width
    weights = of.layers * 12 * h * h + 64 * h
    tokens = of.batch * of.sequence
    trace = open_trace(of)
    flops = sum(node.duration_ns for rank in range(trace.ranks) for node in trace.nodes(rank))
    assert flops == 6 * weights * tokens + 12 * of.layers * of.sequence * h * tokens


def test_half_of_a_7b_layer_takes_its_time() -> None:
    of = TransformerModel(preset="gpt-7b", tp=8, dp=8, micro_batches=4, tflops=100)
    node = next(node for node in open_trace(of).nodes(5) if "layer 3 MLP forward" in node.name)
    assert node.duration_ns == round(2 * (2 * 4096 * 16384) * (2 * 2048) / 8 / 100e12 * 1e9)


def test_activations_pass_the_pipeline_both_ways() -> None:
    of = model(pp=4, dp=2, micro_batches=4)
    micro_batch = of.batch // 8 * of.sequence * of.width * of.bytes
    trace = open_trace(of)
    for rank in range(8):
        stage = rank // 2
        sends = Counter((node.peer, node.tag) for node in trace.nodes(rank) if node.kind is Kind.SEND)
        ahead = [rank + 2] if stage < 3 else []
        back = [rank - 2] if stage > 0 else []
        assert sends == Counter((peer, tag) for peer in ahead + back for tag in range(4))
        assert {node.size_bytes for node in trace.nodes(rank) if node.kind is Kind.SEND} == {micro_batch}


def test_ranks_count_by_tensor_then_data_then_stage() -> None:
    of = model(tp=2, dp=4, ep=2, experts=4, pp=2, micro_batches=2)
    groups = {node.group for node in open_trace(of).nodes(11) if node.operation is not None}
    # Rank 11 is tensor 1, data 1 of stage 1.
    assert groups == {(10, 11), (9, 11, 13, 15), (9, 11), (11, 15), (3, 11)}


def zero_time_run(trace: Trace) -> int:
    """Nodes that can be executed, as a graph of the test's own: the k-th collective of a group is one vertex, and a
    receive waits for its send."""
    graph: nx.DiGraph = nx.DiGraph()
    counts: Counter[object] = Counter()
    vertices: dict[tuple[int, int], object] = {}
    for rank in range(trace.ranks):
        for node in trace.nodes(rank):
            vertex: object = (rank, node.number)
            if node.operation is not None:
                counts[rank, node.group] += 1
                vertex = (node.group or "all", counts[rank, node.group])
            vertices[rank, node.number] = vertex
            graph.add_node(vertex)
            graph.add_edges_from((vertices[rank, number], vertex) for number in node.after)
            if node.peer is not None:
                ends = (rank, node.peer) if node.kind is Kind.SEND else (node.peer, rank)
                counts[node.kind, ends, node.tag] += 1
                message = (ends, node.tag, counts[node.kind, ends, node.tag])
                graph.add_edge(*((vertex, message) if node.kind is Kind.SEND else (message, vertex)))
    assert nx.is_directed_acyclic_graph(graph)
    return len(vertices)


@pytest.mark.parametrize("numbers", SHAPES, ids=str)
def test_it_comes_to_its_end(numbers: dict[str, object]) -> None:
    assert zero_time_run(open_trace(model(**numbers))) > 0


@pytest.mark.parametrize("numbers", SHAPES, ids=str)
def test_all_of_a_group_do_the_same_in_the_same_order(numbers: dict[str, object]) -> None:
    trace = open_trace(model(**numbers))
    seen: dict[tuple[int, ...], list[object]] = {}
    for rank in range(trace.ranks):
        own: dict[tuple[int, ...], list[object]] = {}
        for node in trace.nodes(rank):
            if node.operation is not None:
                assert not node.group or rank in node.group
                own.setdefault(node.group, []).append((node.operation, node.size_bytes))
        for group, what in own.items():
            assert seen.setdefault(group, what) == what


def longest_ns(trace: Trace) -> int:
    """Of the whole trace, if nothing but computations took time."""
    ends: dict[object, int] = {}
    order: nx.DiGraph = nx.DiGraph()
    for rank in range(trace.ranks):
        for node in trace.nodes(rank):
            order.add_node((rank, node.number), ns=node.duration_ns)
            order.add_edges_from(((rank, number), (rank, node.number)) for number in node.after)
            if node.kind is Kind.SEND:
                order.add_edge((rank, node.number), (rank, node.peer, node.tag))
            if node.kind is Kind.RECEIVE:
                order.add_edge((node.peer, rank, node.tag), (rank, node.number))
    for vertex in nx.topological_sort(order):
        before = max((ends[each] for each in order.predecessors(vertex)), default=0)
        ends[vertex] = before + order.nodes[vertex].get("ns", 0)
    return max(ends.values())


@pytest.mark.parametrize("schedule", ["1f1b", "gpipe"])
def test_the_bubble_is_that_of_the_papers(schedule: str) -> None:
    """Equal stages, m micro-batches: (p - 1) passes each way before all are busy, so m + p - 1 of them altogether."""
    of = model(pp=4, micro_batches=8, batch=16, schedule=schedule, flop_time=1000, vocabulary=1)
    alone = model(batch=2, flop_time=1000, vocabulary=1)
    logits = 3 * 2 * 2 * of.sequence * of.width  # of the last stage alone, for each micro-batch
    stage = (longest_ns(open_trace(alone)) - logits) // 4
    assert longest_ns(open_trace(of)) == pytest.approx((8 + 3) * stage + 8 * logits, rel=0.05)


@pytest.mark.parametrize(
    ("numbers", "said"),
    [
        ({"tp": 3}, "--width: 16 is not a multiple of --tp (3)"),
        ({"heads": 2, "tp": 4}, "--heads: 2 is not a multiple of --tp (4)"),
        ({"pp": 3}, "--layers: 4 is not a multiple of --pp (3)"),
        ({"dp": 3}, "--batch: 16 is not a multiple of --dp times --micro-batches (3)"),
        ({"dp": 4, "ep": 2}, "--ep: there are no experts"),
        ({"experts": 2, "top_k": 3}, "--top-k: 3 of 2 experts"),
        ({"preset": "gpt-8"}, "no model is called 'gpt-8'"),
    ],
)
def test_numbers_that_do_not_go_together_are_refused(numbers: dict[str, object], said: str) -> None:
    with pytest.raises(ValidationError) as refused:
        model(**numbers)
    assert said in str(refused.value)
