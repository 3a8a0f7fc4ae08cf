"""Traces of training: Chakra's files in both forms, text workloads, what PyTorch recorded, and groups."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from google.protobuf.json_format import MessageToJson

from gradbed.hosts.systems.training.source import open_trace
from gradbed.hosts.systems.training.traces.chakra import read_groups
from gradbed.hosts.systems.training.traces.chakra_files import Metadata, NodeMessage, read_messages
from gradbed.hosts.systems.training.traces.checks import check_trace
from gradbed.hosts.systems.training.traces.recording import RecordedTrace
from gradbed.hosts.systems.training.traces.trace import TraceSettings
from tests.fuzz.parsers.target import Target, of_file, texts
from tests.unit.hosts.training_traces.recordings import REDUCE, Recording, tensor
from tests.unit.hosts.training_traces.wire import COLLECTIVE, COMPUTE, LOAD, METADATA, SEND, file_of, node

_SETTINGS = TraceSettings(ranks=4, dimensions="1", peak_tflops=1, remote_gbyte_per_s=1, memory_gbyte_per_s=1)
_GROUPS = '[\'[{"pg_name": "7", "ranks": [0]}]\']'


def _read(file: Path) -> object:
    trace = open_trace(file, _SETTINGS)
    check_trace(trace)
    return [list(trace.nodes(rank)) for rank in range(trace.ranks)]


def _binary() -> list[bytes]:
    return [
        file_of(
            node(0, METADATA, values=_GROUPS),
            node(1, COMPUTE, "multiply", duration_us=12, is_cpu_op=False),
            node(2, COLLECTIVE, data=(1,), comm_type=0, comm_size=1 << 20, pg_name="7"),
            node(3, COMPUTE, control=(2,), num_ops=10**9, tensor_size=64, ratio=0.5),
        ),
        file_of(
            node(7, LOAD, tensor_size=64),
            node(8, COLLECTIVE, comm_type=5, comm_size=8, root=0, involved_dim=[True, False]),
        ),
        file_of(node(1, SEND, comm_dst=1, comm_size=5, comm_tag=4)),
    ]


def _json() -> list[bytes]:
    graph = {"Id": 3, "Name": "n", "NodeType": 7, "data_deps": [], "runtime": 5, "comm_type": 0, "comm_size": 9}
    found = [json.dumps({"workload_graph": [graph]}).encode()]
    for binary in _binary():
        first, *others = (message for _, message in read_messages(binary))
        parts = [
            MessageToJson(Metadata.FromString(first)),
            *(MessageToJson(NodeMessage.FromString(m)) for m in others),
        ]
        found.append("".join(parts).encode())
    return found


def _texts() -> list[bytes]:
    layers = "one -1 10 ALLGATHER 100 20 ALLTOALL 200 30 ALLREDUCE 300 5\ntwo -1 1 NONE 0 2 NONE 0 3 ALLREDUCE 4 5\n"
    heads = ("MICRO", "DATA", "HYBRID_DATA_MODEL", "HYBRID_DLRM 0", "HYBRID_TRANSFORMER model_parallel_NPU_group: 2")
    return list(texts(*(f"{head}\n2\n{layers}" for head in heads)))


def _recording() -> list[bytes]:
    recording = Recording()
    recording.caller = recording.add("gradbed group 0", "")
    recording.add("c10d::allreduce_", REDUCE, [tensor(7)], "<Object>", "<Object>", "<None>", True, -1)
    recording.caller = recording.add("aten::mul", "aten::mul(Tensor self) -> Tensor", tensor(7))
    recording.add("aten::t", "aten::t(Tensor self) -> Tensor", tensor(8))
    return [recording.operators().encode()]


def _recorded(file: Path) -> object:
    Recording().write(file.parent, 0, (0,), operators=False)
    trace = RecordedTrace(file.parent, 1)
    check_trace(trace)
    return list(trace.nodes(0))


def _trace(name: str, seeds: Callable[[], list[bytes]]) -> Target:
    return Target(of_file(_read, name), seeds)


TARGETS = {
    "chakra": _trace("t.0.et", _binary),
    "chakra-json": _trace("t.0.json", _json),
    "chakra-groups": Target(
        of_file(lambda file: read_groups(file, 8), "groups.json"), lambda: [b'{"1": [0, 1], "22": [7]}']
    ),
    "text-workload": _trace("w.txt", _texts),
    "torch-recording": Target(of_file(_recorded, "operators.0.json"), _recording),
}
