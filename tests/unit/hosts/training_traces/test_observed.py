"""What PyTorch's observer says as nodes, by files that the test makes: time, data and groups."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gradbed.common.errors import UserError
from gradbed.hosts.collectives.schedule import Operation
from gradbed.hosts.systems.training.traces.graph import Kind, TraceNode
from gradbed.hosts.systems.training.traces.recording import RecordedTrace, convert_recording
from tests.unit.hosts.training_traces.recordings import ANY, BROADCAST, RECEIVE, REDUCE, SEND, Recording, tensor


def nodes_of(folder: Path, recording: Recording, ranks: int = 2) -> list[TraceNode]:
    recording.write(folder, 0, tuple(range(ranks)))
    return list(RecordedTrace(folder, ranks).nodes(0))


def test_gradients_overlap_until_somebody_uses_them(tmp_path: Path) -> None:
    recording = Recording()
    first = recording.add("aten::mul", ANY, tensor(5), duration_us=30)
    reduced = recording.add("c10d::allreduce_", REDUCE, [tensor(7)], "<Object>", "<Object>", "<None>", True, -1)
    beside = recording.add("aten::mul", ANY, tensor(5), duration_us=2.5)
    using = recording.add("aten::copy_", ANY, tensor(7), duration_us=1)
    last = recording.add("aten::add", ANY, tensor(7), duration_us=1)
    assert nodes_of(tmp_path, recording) == [
        TraceNode(first, "aten::mul", Kind.COMPUTE, duration_ns=30_000),
        TraceNode(
            reduced, "c10d::allreduce_", Kind.COLLECTIVE, (first,), size_bytes=40, operation=Operation.ALL_REDUCE
        ),
        TraceNode(beside, "aten::mul", Kind.COMPUTE, (first,), duration_ns=2500),
        TraceNode(using, "aten::copy_", Kind.COMPUTE, (beside, reduced), duration_ns=1000),
        TraceNode(last, "aten::add", Kind.COMPUTE, (using,), duration_ns=1000),
    ]


def test_what_a_script_waits_for_holds_it_up(tmp_path: Path) -> None:
    recording = Recording()
    reduced = recording.add("c10d::allreduce_", REDUCE, [tensor(7)], "<Object>", "<Object>", "<None>", False, -1)
    received = recording.add("c10d::recv_", RECEIVE, [tensor(9)], "<Object>", 1, 3)
    sent = recording.add("c10d::send", SEND, [tensor(9)], "<Object>", 1, 4)
    last = recording.add("aten::mul", ANY, tensor(5))
    assert {node.number: node.after for node in nodes_of(tmp_path, recording)} == {
        reduced: (),
        received: (reduced,),
        sent: (received,),
        last: (received,),
    }


def test_operators_inside_operators_are_part_of_them(tmp_path: Path) -> None:
    """But what they communicate is not their time, and what is around operators is none."""
    recording = Recording()
    recording.caller = recording.add("Optimizer.step", "")
    outer = recording.add("aten::linear", ANY, tensor(1), duration_us=100)
    recording.caller = outer
    recording.add("aten::t", ANY, tensor(2), duration_us=5)
    reduced = recording.add("c10d::allreduce_", REDUCE, [tensor(3)], "", "", "<None>", True, duration_us=60)
    nodes = nodes_of(tmp_path, recording)
    assert [(node.number, node.duration_ns) for node in nodes] == [(outer, 40_000), (reduced, 0)]


def test_threads_are_put_in_order_of_time(tmp_path: Path) -> None:
    recording = Recording()
    late = recording.add("aten::late", ANY, thread_us=900)
    early = recording.add("aten::early", ANY, thread_us=100)
    assert [(node.number, node.after) for node in nodes_of(tmp_path, recording)] == [(early, ()), (late, (early,))]


def test_annotations_name_groups_and_ranks_count_in_them(tmp_path: Path) -> None:
    recording = Recording()
    recording.caller = recording.add("gradbed group 0,3", "")
    recording.add("c10d::broadcast_", BROADCAST, [tensor(1)], "", 1, 0, False)
    recording.caller = recording.add("gradbed group 0,1,2,3", "")
    recording.add("c10d::send", SEND, [tensor(1)], "", 2, 0)
    recording.caller = 1
    recording.add("c10d::allreduce_", REDUCE, [tensor(1)], "", "", "<None>", True)
    recording.write(tmp_path, 0, (0, 2))
    broadcast, send, reduce = RecordedTrace(tmp_path, 4).nodes(0)
    assert (broadcast.group, broadcast.root) == ((0, 3), 3)
    assert send.peer == 2
    assert reduce.group == (0, 2)


@pytest.mark.parametrize(
    ("name", "schema", "inputs", "said"),
    [
        ("c10d::sing_", ANY, [], "this operator of communication is not known"),
        ("c10d::broadcast_", BROADCAST, [[tensor(1)], "", 4, 0, False], "root_rank is 4, not in its group"),
        ("c10d::send", SEND, [[tensor(1)], "", 0, 0], "no receive of rank 0"),
    ],
)
def test_what_is_not_known_is_told(tmp_path: Path, name: str, schema: str, inputs: list[Any], said: str) -> None:
    for rank in range(2):
        recording = Recording()
        recording.add(name, schema, *inputs)
        recording.write(tmp_path, rank, (0, 1))
    with pytest.raises(UserError) as refused:
        convert_recording(tmp_path, 2, tmp_path / "made")
    assert said in str(refused.value) and "operators.0.json: rank 0" in str(refused.value)
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"nodes": [4]}', '{"nodes": [{"id": 1}]}'])
def test_files_that_are_no_recording_are_told(tmp_path: Path, text: str) -> None:
    Recording().write(tmp_path, 0, (0,))
    (tmp_path / "operators.0.json").write_text(text)
    with pytest.raises(UserError, match=r"operators\.0\.json: rank 0: "):
        convert_recording(tmp_path, 1, tmp_path / "made")


@pytest.mark.parametrize(
    "text", ["{", '{"traceEvents": 5}', '{"traceEvents": [5]}', '{"traceEvents": [{"args": {}}, null]}']
)
def test_time_lines_that_are_none_are_told(tmp_path: Path, text: str) -> None:
    Recording().write(tmp_path, 0, (0,))
    (tmp_path / "timeline.0.json").write_text(text)
    with pytest.raises(UserError, match=r"operators\.0\.json: rank 0: "):
        convert_recording(tmp_path, 1, tmp_path / "made")
