"""Designations of simulated jobs: who sends which fragment where, and the fan-ins that follow."""

from __future__ import annotations

from collections.abc import Sequence

from tests.unit.hosts.aggregation.slot_model import Label


def labels(designated: Sequence[Sequence[int]], second: int = 0) -> list[list[Label]]:
    """Labels by worker and turn.

    designated: for each worker, the designated switch of each turn (0: none); all have equally many turns. second:
    the switch at the second level, which sums what the others let go (0: none); it may be a first choice, too.
    """
    turns = [list(turn) for turn in zip(*designated, strict=True)]
    out: list[list[Label]] = [[] for _ in designated]
    for turn in turns:
        through_second = sum(1 for switch in turn if switch) if second else 0
        for worker, switch in enumerate(turn):
            if switch == 0:
                out[worker].append(Label())
            elif switch == second:
                out[worker].append(Label(second, through_second))
            else:
                out[worker].append(Label(switch, turn.count(switch), second, through_second))
    return out
