"""Every operation by every algorithm, with contents: what ranks hold is what the formula says, and the formula is
what sums made here in another way say."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from numpy.typing import NDArray

from gradbed.experiments.systems.training.checks import expected_result
from gradbed.hosts.collectives.schedule import Operation
from gradbed.hosts.systems.training.collectives.algorithms import Algorithm, algorithms
from gradbed.hosts.systems.training.plans import contents
from tests.unit.training.runs import CONTENTS, run

COLLECTIVES = [(operation, algorithm) for operation in Operation for algorithm in algorithms(operation)]
ROOTED = (Operation.BROADCAST, Operation.REDUCE, Operation.GATHER, Operation.SCATTER)


@pytest.mark.commit_cases(14)
@pytest.mark.parametrize(("kind", "ranks"), [("star:7", 7), ("leaf-spine:3,2,3", 6), ("leaf-spine:2,1,2", 3)])
@pytest.mark.parametrize(("operation", "algorithm"), COLLECTIVES, ids=lambda each: each.value)
def test_results_are_those_of_the_formula(kind: str, ranks: int, operation: Operation, algorithm: Algorithm) -> None:
    """Twice, of a size that does not divide; from or to the last rank, where there is a root."""
    values = {Operation.BARRIER: 0, Operation.ALL_TO_ALL: 60 * ranks}.get(operation, 1601)
    found = run(
        kind,
        workload={
            "operation": operation.value,
            "size_bytes": 4 * values,
            "repetitions": 2,
            "root": ranks - 1 if operation in ROOTED else 0,
        },
        ranks={"ranks": ranks, "placement": "striped"},
        collectives={**CONTENTS, "algorithm": algorithm.value},
    )
    assert found.failures == []
    rows = found.tables["collectives"]
    assert [(row["operation"], row["ranks"], row["number"]) for row in rows] == [
        (operation.value, ranks, number) for number in (0, 1)
    ]
    assert rows[0]["time_s"] > 0 and rows[0]["end_s"] <= rows[1]["end_s"]


@pytest.mark.parametrize("operation", Operation, ids=lambda each: each.value)
@pytest.mark.parametrize(
    ("group", "values"), [((0, 1), 1), ((4, 1, 7), 10), ((2, 3, 5, 7, 11), 60), ((9, 8), 100_003)], ids=str
)
def test_the_formula_is_what_numpy_sums(operation: Operation, group: tuple[int, ...], values: int) -> None:
    """Here by shaped arrays of all inputs, there by closed forms."""
    number, root = 3, group[-1]
    inputs = np.stack([contents(rank, number, values) for rank in group])
    for rank in group:
        found = expected_result(operation.value, group, rank, number, values, root)
        wanted = _by_numpy(operation, inputs, group.index(rank), group.index(root))
        if wanted is None:
            assert found is None
        else:
            assert found is not None
            np.testing.assert_array_equal(found.astype(np.int32), wanted)


def test_inputs_tell_ranks_places_and_collectives_apart() -> None:
    assert contents(2, 5, 4).tolist() == [5, 8, 11, 14]
    assert contents(2**16 - 1, 0, 2**16)[-1] == np.int64((2**16 - 1) * 2**16).astype(np.int32)


def _by_numpy(operation: Operation, inputs: NDArray[np.int32], place: int, root: int) -> NDArray[np.int32] | None:
    count, size = inputs.shape
    with np.errstate(over="ignore"):
        total = inputs.sum(axis=0, dtype=np.int32)
    slices = list(_parts(size, count))
    everything = inputs.reshape(-1)
    at_root = place == root
    found: dict[Operation, NDArray[np.int32] | None] = {
        Operation.ALL_REDUCE: total,
        Operation.REDUCE: total if at_root else None,
        Operation.REDUCE_SCATTER: total[slices[place]],
        Operation.ALL_GATHER: everything,
        Operation.GATHER: everything if at_root else None,
        Operation.ALL_TO_ALL: inputs[:, slices[place]].reshape(-1),
        Operation.BROADCAST: inputs[root],
        Operation.SCATTER: inputs[root, slices[place]],
        Operation.BARRIER: None,
    }
    return found[operation]


def _parts(size: int, count: int) -> Iterator[slice]:
    """Element i is of the k-th of count parts, where k is the largest with k size / count <= i, rounded down."""
    owner = np.array([max(k for k in range(count) if k * size // count <= i) for i in range(min(size, 2000))])
    for k in range(count):
        if size > 2000:
            yield slice(k * size // count, (k + 1) * size // count)
        else:
            mine = np.flatnonzero(owner == k)
            yield slice(mine[0], mine[-1] + 1) if len(mine) else slice(0, 0)
