"""Which algorithm a collective takes."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from gradbed.common.errors import UserError
from gradbed.hosts.collectives.schedule import Operation
from gradbed.hosts.systems.training.collectives.algorithms import DEFAULT_TABLE, Algorithm, Rule, algorithms, choose


@pytest.mark.parametrize("operation", list(Operation))
def test_the_table_knows_every_operation_of_any_size_and_group(operation: Operation) -> None:
    for size_bytes in (0, 1, 4096, 1 << 20, 1 << 40):
        for ranks in (1, 2, 3, 64, 1024):
            rule = choose(operation, range(ranks), size_bytes)
            assert rule.algorithm in algorithms(operation)


def test_short_vectors_take_few_rounds_and_long_ones_few_bytes() -> None:
    def chosen(operation: Operation, size_bytes: int) -> Algorithm:
        return choose(operation, range(8), size_bytes).algorithm

    assert chosen(Operation.ALL_REDUCE, (512 << 10) - 1) is Algorithm.HALVING_DOUBLING
    assert chosen(Operation.ALL_REDUCE, 512 << 10) is Algorithm.RING
    assert chosen(Operation.BROADCAST, 1 << 20) is Algorithm.DOUBLE_BINARY_TREE


def test_a_users_rule_comes_first_where_it_fits() -> None:
    rules = [
        Rule(algorithm=Algorithm.HIERARCHICAL, from_bytes=1000),
        Rule(algorithm=Algorithm.BINARY_TREE, operation=Operation.ALL_REDUCE, group=(4, 2), chunks=7),
        Rule(algorithm=Algorithm.SHARDED_PARAMETER_SERVER, below_bytes=100, from_ranks=3, to_ranks=5),
        Rule(algorithm=Algorithm.HALVING_DOUBLING, power_of_two=True),
        Rule(algorithm=Algorithm.RING),
    ]

    def chosen(group: tuple[int, ...], size_bytes: int, has_racks: bool = False) -> Algorithm:
        return choose(Operation.ALL_REDUCE, group, size_bytes, rules=rules, has_racks=has_racks).algorithm

    assert chosen((4, 2), 10) is Algorithm.BINARY_TREE
    assert choose(Operation.ALL_REDUCE, (4, 2), 10, rules=rules).chunks == 7
    assert chosen((2, 4), 10) is Algorithm.HALVING_DOUBLING
    assert chosen((0, 1, 2), 99) is Algorithm.SHARDED_PARAMETER_SERVER
    assert chosen((0, 1, 2), 100) is Algorithm.RING
    assert chosen(tuple(range(6)), 99) is Algorithm.RING
    assert chosen((0, 1, 2, 3), 1000) is Algorithm.HALVING_DOUBLING
    assert chosen((0, 1, 2, 3), 1000, has_racks=True) is Algorithm.HIERARCHICAL
    assert chosen((0, 1, 2), 999, has_racks=True) is Algorithm.RING
    assert choose(Operation.BARRIER, (0, 1), 0, rules=rules).algorithm is Algorithm.DISSEMINATION


def test_what_makes_no_sense_is_refused() -> None:
    wrong: list[tuple[dict[str, object], str]] = [
        ({"operation": Operation.BARRIER}, "ring does no barrier: choose dissemination"),
        ({"from_bytes": 5, "below_bytes": 5}, "no size is"),
        ({"from_ranks": 5, "to_ranks": 4}, "no group has"),
    ]
    for fields, message in wrong:
        with pytest.raises(ValidationError, match=message):
            Rule.model_validate({"algorithm": "ring", **fields})
    with pytest.raises(UserError, match="no rule of the table of algorithms fits barrier of 0 bytes by 2 ranks"):
        choose(Operation.BARRIER, (0, 1), 0, table=DEFAULT_TABLE[:2])
