"""Chakra's files: bytes that the test makes by hand are read, what gradbed writes is read back, and each broken file
is told in one line."""

from __future__ import annotations

import gzip
import json
import struct
from pathlib import Path

import pytest

from gradbed.common.errors import UserError
from gradbed.hosts.collectives.schedule import Operation
from gradbed.hosts.systems.training.source import open_trace
from gradbed.hosts.systems.training.traces.chakra import write_trace
from gradbed.hosts.systems.training.traces.graph import Kind, TraceNode
from gradbed.hosts.systems.training.traces.trace import TraceSettings
from gradbed.hosts.systems.training.traces.transformer_model import TransformerModel
from tests.unit.hosts.training_traces.made import MadeTrace
from tests.unit.hosts.training_traces.wire import (
    COLLECTIVE,
    COMPUTE,
    LOAD,
    METADATA,
    RECEIVE,
    SEND,
    attribute,
    file_of,
    message,
    node,
    varint,
)

ALL_REDUCE, BROADCAST, BARRIER = 0, 5, 9


def collective(number: int, size: int = 1024, kind: int = ALL_REDUCE, **more: object) -> bytes:
    return node(number, COLLECTIVE, comm_type=kind, comm_size=size, **more)


def write(folder: Path, *ranks: bytes, prefix: str = "t") -> Path:
    for rank, content in enumerate(ranks):
        (folder / f"{prefix}.{rank}.et").write_bytes(content)
    return folder


def read(folder: Path, **settings: object) -> list[list[TraceNode]]:
    trace = open_trace(folder, TraceSettings.model_validate(settings))
    return [list(trace.nodes(rank)) for rank in range(trace.ranks)]


def refused(folder: Path, **settings: object) -> str:
    with pytest.raises(UserError) as error:
        read(folder, **settings)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_every_kind_of_node(tmp_path: Path) -> None:
    content = file_of(
        node(7, COMPUTE, "multiply", duration_us=12, is_cpu_op=False),
        node(3, COMPUTE, "read a sample", duration_us=1, is_cpu_op=True),
        node(8, SEND, "ahead", data=(7, 3), comm_dst=1, comm_size=1 << 20, comm_tag=4),
        node(9, RECEIVE, "back", control=(8,), comm_src=1, comm_size=5),
        node(10, LOAD, "weights", duration_us=3),
        collective(11, 1 << 33, data=(9, 10)),
        collective(12, 0, BARRIER),
        node(13, METADATA, "about", data=(12,)),
        node(14, COLLECTIVE, comm_type=BROADCAST, comm_size=2, root=1),
    )
    other = file_of(
        node(0, SEND, comm_dst=0, comm_size=5), node(1, RECEIVE, comm_src=0, comm_size=1 << 20, comm_tag=4)
    )
    assert read(write(tmp_path, content, other))[0] == [
        TraceNode(7, "multiply", Kind.COMPUTE, duration_ns=12_000),
        TraceNode(3, "read a sample", Kind.COMPUTE, duration_ns=1000, on_cpu=True),
        TraceNode(8, "ahead", Kind.SEND, (7, 3), size_bytes=1 << 20, peer=1, tag=4),
        TraceNode(9, "back", Kind.RECEIVE, (8,), size_bytes=5, peer=1),
        TraceNode(10, "weights", Kind.MEMORY, duration_ns=3000),
        TraceNode(11, "node", Kind.COLLECTIVE, (9, 10), size_bytes=1 << 33, operation=Operation.ALL_REDUCE),
        TraceNode(12, "node", Kind.COLLECTIVE, operation=Operation.BARRIER),
        TraceNode(13, "about", Kind.COMPUTE, (12,)),
        TraceNode(14, "node", Kind.COLLECTIVE, size_bytes=2, operation=Operation.BROADCAST, root=1),
    ]


def test_files_packed_by_gzip_are_read(tmp_path: Path) -> None:
    (tmp_path / "t.0.et").write_bytes(gzip.compress(file_of(collective(1))))
    assert len(read(tmp_path)[0]) == 1


def test_groups_come_from_a_file_and_from_pytorch(tmp_path: Path) -> None:
    pytorch = '[\'[{"pg_name": "7", "ranks": [0, 2]}, {"pg_name": "8", "ranks": []}]\']'
    about = node(0, METADATA, "## process_group:init ##", values=pytorch)
    content = file_of(about, collective(1, pg_name="7"), collective(2, pg_name="8"), collective(3, pg_name="0"))
    groups = tmp_path / "groups.json"
    groups.write_text(json.dumps({"7": [0, 1]}))
    write(tmp_path, content, file_of(), content)
    (tmp_path / "t.2.et").write_bytes(file_of(about))
    assert [each.group for each in read(tmp_path)[0]] == [(), (0, 2), (), ()]
    assert [each.group for each in read(tmp_path, groups=groups)[0]] == [(), (0, 1), (), ()]


def test_dimensions_make_groups(tmp_path: Path) -> None:
    content = file_of(*(collective(n, involved_dim=dims) for n, dims in enumerate([[True, False], [False, True]])))
    write(tmp_path, *[content] * 6)
    assert "--dimensions" in refused(tmp_path)
    assert "3x3 are not 6 ranks" in refused(tmp_path, dimensions="3,3")
    found = read(tmp_path, dimensions="3,2")
    assert [each.group for each in found[4]] == [(3, 4, 5), (1, 4)]


def test_operations_take_the_time_of_the_roofline(tmp_path: Path) -> None:
    content = file_of(
        node(0, COMPUTE, num_ops=6_000_000, tensor_size=1000), node(1, COMPUTE, num_ops=10, tensor_size=9_000)
    )
    write(tmp_path, content)
    assert "6,000,000 operations and no time: say how fast it is (--peak-tflops)" in refused(tmp_path)
    assert [each.duration_ns for each in read(tmp_path, peak_tflops=2)[0]] == [3000, 0]
    bound = read(tmp_path, peak_tflops=2, memory_gbyte_per_s=3, roofline=True)[0]
    assert [each.duration_ns for each in bound] == [3000, 3000]


def test_memory_takes_the_time_of_its_rate(tmp_path: Path) -> None:
    write(tmp_path, file_of(node(0, LOAD, tensor_size=64_000)))
    assert "it moves 64,000 bytes: say how fast" in refused(tmp_path)
    found = read(tmp_path, remote_gbyte_per_s=32, remote_delay_ns=100)
    assert found[0][0].duration_ns == 2100


def test_control_dependencies_of_pytorch_are_callers(tmp_path: Path) -> None:
    called = node(2, COMPUTE, control=(99,), rf_id=5, is_cpu_op=True)
    write(tmp_path, file_of(called))
    assert read(tmp_path)[0][0].after == ()
    assert "it waits for node 99" in refused(tmp_path, control=True)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "rank 0: it is empty"),
        (file_of(collective(1))[:-3], "is cut short"),
        (message(collective(1)), "it begins without metadata"),
        (file_of() + b"\x80", "it ends inside the length at byte 8"),
        (file_of() + b"\xff" * 11, "a varint has at most 10 bytes"),
        (file_of() + message(b"\x0a\xff"), "the message at byte 8 is not a node"),
        (file_of(collective(1), collective(1)), "node 1 (node): another node has the same number"),
        (file_of(collective(1, data=(4,))), "node 1 (node): it waits for node 4, which is not there"),
        (file_of(collective(1, data=(1,))), "node 1 (node): it waits for itself"),
        (
            file_of(collective(1, data=(2,)), collective(2, data=(3,)), collective(3, data=(2,))),
            "nodes 2, 3 wait for each other in a circle",
        ),
        (file_of(node(1, 9)), "node 1 (node): nodes of type 9 are not known"),
        (file_of(node(1, COLLECTIVE, comm_size=3)), "node 1 (node): it has no comm_type"),
        (file_of(node(1, COLLECTIVE, comm_type=0)), "node 1 (node): it has no comm_size"),
        (file_of(collective(1, kind=33)), "comm_type 33 is not known"),
        (file_of(collective(1, -5)), "comm_size is -5, not from 0"),
        (file_of(collective(1, pg_name="5")), "its group '5' is not known"),
        (file_of(node(1, SEND, comm_dst=3, comm_size=3)), "comm_dst is 3, but the trace has ranks 0 to 0"),
        (file_of(node(1, SEND, comm_dst=0, comm_size=3)), "comm_dst is the rank itself"),
        (
            file_of(node(1, SEND, comm_src=4, comm_dst=0, comm_size=3)),
            "comm_src is 4, not the rank whose file has it",
        ),
        (file_of(node(1, SEND, comm_size=3)), "it has no comm_dst"),
        (file_of(node(1, COMPUTE, duration_us=1 << 63)), "its time is"),
        (file_of(node(1, COLLECTIVE, comm_type=5, comm_size=1, root=4)), "its root 4 is not in its group"),
        (file_of(node(1, COLLECTIVE, comm_type="all", comm_size=1)), "comm_type is 'all', not a whole number"),
    ],
)
def test_a_broken_file_is_told_in_one_line(tmp_path: Path, content: bytes, said: str) -> None:
    told = refused(write(tmp_path, content))
    assert told.startswith(f"{tmp_path}/t.0.et: rank 0")
    assert said in told


def test_a_group_without_its_own_rank_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t.groups.json").write_text('{"5": [1]}')
    write(tmp_path, file_of(collective(4, pg_name="5")), file_of())
    assert refused(tmp_path).endswith("t.0.et: rank 0, node 4 (node): its group '5' is without rank 0")


@pytest.mark.parametrize(
    ("groups", "said"),
    [
        ("[1]", "a mapping of names"),
        ("{", "not JSON"),
        ('{"1": [0, 7]}', "group 1: rank 7 is not there"),
        ('{"1": [0, 0]}', "group 1: a rank is in it twice"),
        ('{"1": "x"}', "group 1: a list of ranks is expected"),
    ],
)
def test_broken_groups_are_told(tmp_path: Path, groups: str, said: str) -> None:
    (tmp_path / "g.json").write_text(groups)
    write(tmp_path, file_of())
    assert said in refused(tmp_path, groups=tmp_path / "g.json")


def test_files_that_are_missing_are_told(tmp_path: Path) -> None:
    assert "no trace is there" in refused(tmp_path)
    write(tmp_path, file_of(), file_of(), file_of())
    (tmp_path / "t.1.et").unlink()
    assert "there is no file of rank 1 (t.1.et)" in refused(tmp_path)
    write(tmp_path, file_of(), prefix="u")
    assert "there are several traces (t.*.et, u.*.et): name one" in refused(tmp_path)
    assert len(read(tmp_path / "u")) == len(read(tmp_path / "u.0.et")) == 1


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    one = [
        TraceNode(5, "compute", Kind.COMPUTE, duration_ns=1_234_567),
        TraceNode(2, "on the processor", Kind.COMPUTE, (5,), duration_ns=3000, on_cpu=True),
        TraceNode(9, "memory", Kind.MEMORY, (5, 2), duration_ns=1),
        TraceNode(1 << 63, "send", Kind.SEND, (9,), size_bytes=1 << 40, peer=2, tag=77),
        *(
            TraceNode(100 + place, each.value, Kind.COLLECTIVE, size_bytes=12, operation=each)
            for place, each in enumerate(Operation)
            if each in (Operation.ALL_REDUCE, Operation.ALL_GATHER, Operation.ALL_TO_ALL, Operation.REDUCE_SCATTER)
        ),
        TraceNode(200, "root", Kind.COLLECTIVE, size_bytes=3, operation=Operation.SCATTER, group=(2, 0), root=2),
        TraceNode(201, "barrier", Kind.COLLECTIVE, operation=Operation.BARRIER, group=(0, 1)),
    ]
    two = [TraceNode(0, "receive", Kind.RECEIVE, size_bytes=1 << 40, peer=0, tag=77)]
    write_trace(MadeTrace(one, [], two), tmp_path / "new")
    assert read(tmp_path / "new") == [one, [], two]


@pytest.mark.parametrize(
    "numbers",
    [{"dp": 2, "tp": 2, "pp": 2, "micro_batches": 2}, {"dp": 4, "ep": 2, "experts": 2, "optimizer": "zero1"}],
)
def test_made_transformers_are_read_back(tmp_path: Path, numbers: dict[str, int]) -> None:
    trace = open_trace(TransformerModel.model_validate({"preset": "tiny", **numbers}))
    write_trace(trace, tmp_path)
    assert read(tmp_path) == [list(trace.nodes(rank)) for rank in range(trace.ranks)]


def test_the_wire_of_the_test_is_protobuf() -> None:
    """By the specification's own example: field 1 with 150 is 08 96 01."""
    assert b"\x08" + varint(150) == bytes.fromhex("089601")
    assert attribute("x", 1.5).endswith(struct.pack("<d", 1.5))
