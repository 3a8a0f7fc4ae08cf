"""Text workloads: what waits for what, by hand, for each kind; and files that are none."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from gradbed.common.errors import UserError
from gradbed.hosts.systems.training.source import open_trace
from gradbed.hosts.systems.training.traces.checks import check_trace
from gradbed.hosts.systems.training.traces.graph import TraceNode
from gradbed.hosts.systems.training.traces.trace import TraceSettings

ONE = "one -1 10 ALLGATHER 100 20 ALLTOALL 200 30 ALLREDUCE 300 5"
TWO = "two -1 11 NONE 0 21 REDUCESCATTER 201 31 ALLREDUCE 301 5"


def nodes_of(folder: Path, text: str, rank: int = 0, **settings: object) -> list[TraceNode]:
    file = folder / "w.txt"
    file.write_text(text)
    trace = open_trace(file, TraceSettings.model_validate({"ranks": 8, **settings}))
    check_trace(trace)
    return list(trace.nodes(rank))


def waits(nodes: list[TraceNode]) -> dict[str, set[str]]:
    """Name -> names that it waits for, without the pass."""
    names = {node.number: node.name.split(", ")[1] for node in nodes}
    return {names[node.number]: {names[number] for number in node.after} for node in nodes}


def test_data_parallel_workloads_exchange_weights_beside_all_else(tmp_path: Path) -> None:
    nodes = nodes_of(tmp_path, f"DATA\n2\n{ONE}\n{TWO}\n")
    assert waits(nodes) == {
        "one FWD": set(),
        "two FWD": {"one FWD"},
        "two WG": {"two FWD"},
        "two WG all-reduce": {"two WG"},
        "two IG": {"two WG"},
        "one WG": {"two IG"},
        "one WG all-reduce": {"one WG"},
    }
    assert [node.duration_ns for node in nodes if node.operation is None] == [10_000, 11_000, 31_000, 21_000, 30_000]
    assert {node.size_bytes for node in nodes if node.operation} == {300, 301}


def test_model_parallel_workloads_wait_for_activations(tmp_path: Path) -> None:
    nodes = nodes_of(tmp_path, f"MODEL\n2\n{ONE}\n{TWO}\n", text_time="ns")
    assert waits(nodes) == {
        "one FWD": set(),
        "one FWD all-gather": {"one FWD"},
        "two FWD": {"one FWD", "one FWD all-gather"},
        "two IG": {"two FWD"},
        "two IG reduce-scatter": {"two IG"},
        "two WG": {"two IG"},
        "one IG": {"two WG", "two IG reduce-scatter"},
        "one WG": {"one IG"},
    }
    assert nodes[0].duration_ns == 10


def test_hybrid_workloads_do_both_in_groups(tmp_path: Path) -> None:
    groups = {}
    for kind in ("HYBRID_DATA_MODEL", "HYBRID_MODEL_DATA"):
        nodes = nodes_of(tmp_path, f"{kind}\n2\n{ONE}\n{TWO}\n", rank=5, model_ranks=2)
        groups[kind] = {node.name.split(", ")[1]: node.group for node in nodes if node.operation}
        assert waits(nodes)["one WG all-reduce"] == {"one WG"}
    assert groups["HYBRID_MODEL_DATA"]["one FWD all-gather"] == (4, 5)
    assert groups["HYBRID_MODEL_DATA"]["one WG all-reduce"] == (1, 3, 5, 7)
    assert groups["HYBRID_DATA_MODEL"]["one FWD all-gather"] == (1, 5)
    assert groups["HYBRID_DATA_MODEL"]["one WG all-reduce"] == (4, 5, 6, 7)
    nodes = nodes_of(tmp_path, f"HYBRID_TRANSFORMER model_parallel_NPU_group: 4\n1\n{ONE}\n", rank=5)
    assert [node.group for node in nodes if node.operation] == [(4, 5, 6, 7), (1, 5)]


def test_layers_may_be_spread_differently(tmp_path: Path) -> None:
    text = f"HYBRID_CUSTOMIZED\n2\n{ONE} MODEL\n{TWO} DATA\n"
    nodes = nodes_of(tmp_path, text, rank=0, model_ranks=2)
    assert {node.group for node in nodes if node.operation and "two WG" in node.name} == {()}
    assert not [node for node in nodes if "one WG all" in node.name]


def test_recommenders_exchange_embeddings(tmp_path: Path) -> None:
    embedding = "e -1 1 ALLTOALL 7 1 ALLTOALL 8 1 NONE 0 1"
    layer = "{} -1 1 NONE 0 1 NONE 0 1 ALLREDUCE 9 1"
    layers = [embedding, *(layer.format(name) for name in ("bottom", "top", "end"))]
    found = waits(nodes_of(tmp_path, "HYBRID_DLRM 1\n4\n" + "\n".join(layers)))
    assert found["e FWD all-to-all"] == {"e FWD"}
    assert found["bottom FWD"] == {"e FWD", "e FWD all-to-all"}
    assert found["top FWD"] == {"bottom FWD"}
    assert found["e IG all-to-all"] == {"top IG"}
    assert found["e WG"] == {"bottom IG", "e IG all-to-all"}


def test_passes_follow_each_other(tmp_path: Path) -> None:
    nodes = nodes_of(tmp_path, f"DATA\n2\n{ONE}\n{TWO}\n", passes=3)
    assert Counter(node.name.split(", ")[0] for node in nodes) == {f"pass {number}": 7 for number in range(3)}
    names = {node.number: node.name for node in nodes}
    second = next(node for node in nodes if node.name == "pass 1, one FWD")
    assert "pass 0, one WG all-reduce" in {names[number] for number in second.after}


def test_microbenchmarks_are_their_collectives(tmp_path: Path) -> None:
    (node,) = nodes_of(tmp_path, f"MICRO\n1\n{ONE}\n")
    assert (node.size_bytes, node.after, node.group) == (300, (), ())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "begins with its kind"),
        ("DATA\n", "begins with its kind"),
        ("SERIAL\n1\n", "w.txt:1: workloads of kind 'SERIAL' are not known"),
        (f"DATA\n3\n{ONE}\n{TWO}", "w.txt:2: 3 layers are announced, 2 are there"),
        ("DATA\n1\none -1 10 NONE", "w.txt:3: a layer has 12 columns, not 4"),
        ("DATA\n1\n" + ONE.replace("ALLGATHER", "ALLSING"), "w.txt:3: communications of kind 'ALLSING'"),
        ("DATA\n1\n" + ONE.replace("200", "-2"), "w.txt:3: '-2' is not a whole number"),
        ("DATA\nmany\n" + ONE, "w.txt:2: 'many' is not a whole number"),
        ("HYBRID_DLRM\n1\n" + ONE, "HYBRID_DLRM needs the number of the last bottom layer"),
        ("HYBRID_CUSTOMIZED\n1\n" + ONE, "a layer of HYBRID_CUSTOMIZED ends with one of DATA"),
        ("HYBRID_TRANSFORMER model_parallel_NPU_group: 3\n1\n" + ONE, "8 ranks are no whole number of groups of 3"),
    ],
)
def test_files_that_are_none_are_told(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(UserError) as refused:
        nodes_of(tmp_path, text)
    assert said in str(refused.value)


def test_ranks_have_to_be_said(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="does not say how many ranks there are"):
        nodes_of(tmp_path, f"MICRO\n1\n{ONE}\n", ranks=None)
