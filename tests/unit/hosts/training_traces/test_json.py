"""Chakra's JSON: as protobuf's own library writes it, and the older form."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from google.protobuf.json_format import MessageToJson

from gradbed.common.errors import UserError
from gradbed.hosts.systems.training.source import open_trace
from gradbed.hosts.systems.training.traces.chakra import write_trace
from gradbed.hosts.systems.training.traces.chakra_files import Metadata, NodeMessage, read_messages
from gradbed.hosts.systems.training.traces.transformer_model import TransformerModel


def test_what_protobuf_writes_is_read(tmp_path: Path) -> None:
    trace = open_trace(TransformerModel(preset="tiny", dp=2, tp=2, pp=2, micro_batches=2))
    write_trace(trace, tmp_path)
    for rank in range(trace.ranks):
        file = tmp_path / f"trace.{rank}.et"
        first, *others = (message for _, message in read_messages(file.read_bytes()))
        texts = [
            MessageToJson(Metadata.FromString(first)),
            *(MessageToJson(NodeMessage.FromString(m)) for m in others),
        ]
        file.with_suffix(".json").write_text("".join(texts))
        file.unlink()
    read = open_trace(tmp_path)
    assert [list(read.nodes(rank)) for rank in range(8)] == [list(trace.nodes(rank)) for rank in range(8)]


def graph(*nodes: object) -> str:
    return json.dumps({"workload_name": "x", "ngpus": 1, "workload_graph": nodes})


NODE = {"Id": 3, "Name": "n", "NodeType": 7, "ctrlDeps": [99], "data_deps": [], "runtime": 5, "is_cpu_op": False}


def test_the_older_form_is_read(tmp_path: Path) -> None:
    computed = {**NODE, "Id": 2, "NodeType": 4}
    reduced = {**NODE, "data_deps": [2], "comm_type": 0, "comm_size": 12}
    (tmp_path / "t.0.json").write_text(graph(computed, reduced))
    first, second = open_trace(tmp_path).nodes(0)
    assert (first.number, first.duration_ns, first.after) == (2, 5000, ())
    assert (second.size_bytes, second.after) == (12, (2,))


def test_a_number_that_is_a_versions_is_no_rank(tmp_path: Path) -> None:
    file = tmp_path / "1.0.2-chakra.0.0.4.json"
    file.write_text(graph())
    assert open_trace(file).ranks == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "it is empty"),
        ("{", "it is not JSON"),
        ("[1]", "no sequence of JSON objects"),
        ('{"a": 1}', "it is no JSON of Chakra"),
        ('{"schema": "1", "nodes": []}', "it is PyTorch's own trace of one process"),
        ('{"workload_graph": 4}', '"workload_graph" is not a list'),
        (graph(5), "node 0 of the file cannot be read"),
        (graph({"Id": 1}), "node 0 of the file cannot be read: it has no 'Name'"),
        (graph({**NODE, "Id": "x"}), "node 0 of the file cannot be read"),
        (graph(NODE), "node 3 (n): it has no comm_type"),
        ('{"version": "1"} {"id": "4", "type": "SING"}', "node 0 of the file cannot be read: it has no 'SING'"),
    ],
)
def test_what_is_broken_is_told(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "t.0.json").write_text(text)
    with pytest.raises(UserError) as refused:
        open_trace(tmp_path).nodes(0)
    assert said in str(refused.value) and "\n" not in str(refused.value)
