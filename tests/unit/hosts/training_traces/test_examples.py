"""The examples of ASTRA-sim and Chakra, unchanged, from checkouts that the environment names: GRADBED_ASTRA_SIM and
GRADBED_CHAKRA. docs/traces.md has the same list."""

from __future__ import annotations

import os
import tarfile
from pathlib import Path

import pytest

from gradbed.common.errors import UserError
from gradbed.hosts.collectives.schedule import Operation
from gradbed.hosts.systems.training.source import open_trace
from gradbed.hosts.systems.training.traces.checks import check_trace
from gradbed.hosts.systems.training.traces.graph import Kind

MIB = 1 << 20

pytestmark = pytest.mark.nightly


def checkout(variable: str) -> Path:
    folder = os.environ.get(variable)
    if folder is None:
        pytest.skip(f"{variable} names no checkout")
    return Path(folder)


@pytest.mark.parametrize("ranks", [4, 8, 16])
@pytest.mark.parametrize(
    "operation", [Operation.ALL_GATHER, Operation.ALL_REDUCE, Operation.ALL_TO_ALL, Operation.REDUCE_SCATTER]
)
def test_microbenchmarks_of_astra_sim(operation: Operation, ranks: int) -> None:
    name = operation.value.replace("-", "_")
    folder = checkout("GRADBED_ASTRA_SIM") / "examples/workload/microbenchmarks" / name / f"{ranks}npus_1MB"
    trace = open_trace(folder)
    check_trace(trace)
    assert trace.ranks == ranks
    for rank in range(ranks):
        (node,) = trace.nodes(rank)
        assert (node.operation, node.size_bytes, node.group) == (operation, MIB, ())


def test_ring_of_astra_sim_sends_what_a_ring_does() -> None:
    folder = checkout("GRADBED_ASTRA_SIM") / "examples/system/custom_collectives/custom_ring_allreduce_8npus_1MB"
    trace = open_trace(folder)
    check_trace(trace)
    for rank in range(8):
        sends = [node for node in trace.nodes(rank) if node.kind is Kind.SEND]
        assert len(sends) == 14 and {node.peer for node in sends} == {(rank + 1) % 8}


def unpacked(archive: str, member: str, folder: Path) -> Path:
    with tarfile.open(checkout("GRADBED_CHAKRA") / "tests/data" / archive) as packed:
        file = packed.extractfile(member)
        assert file is not None
        copy = folder / Path(member).name
        copy.write_bytes(file.read())
    return copy


def test_the_trace_of_chakras_feeder(tmp_path: Path) -> None:
    trace = open_trace(unpacked("feeder_tests_trace.tar.gz", "tests/data/chakra.0.et", tmp_path))
    check_trace(trace)
    nodes = trace.nodes(0)
    operations = [node.operation for node in nodes if node.operation is not None]
    assert len(nodes) == 3664
    assert (operations.count(Operation.ALL_REDUCE), operations.count(Operation.BROADCAST)) == (5, 2)


@pytest.mark.parametrize(
    ("archive", "file", "said"),
    [
        ("json_trace.tar.gz", "jsonData/chakra.0.json", "node 435 (ncclKernel_Broadcast_RING_LL_Sum_int8_t"),
        ("json_trace.tar.gz", "jsonData/small_chakra.0.json", "it has no comm_type"),
        ("1.0.2-chakra.0.0.4.tgz", "1.0.2-chakra.0.0.4.json", "it is PyTorch's own trace of one process"),
    ],
)
def test_files_of_chakra_that_are_refused(tmp_path: Path, archive: str, file: str, said: str) -> None:
    trace = open_trace(unpacked(archive, file, tmp_path))
    with pytest.raises(UserError) as refused:
        trace.nodes(0)
    assert said in str(refused.value)
