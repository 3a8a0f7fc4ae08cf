"""In which order a stage takes up the passes of micro-batches."""

from __future__ import annotations

from typing import Literal, NamedTuple


class Pass(NamedTuple):
    """forward, or else backward."""

    forward: bool
    micro_batch: int


def passes(schedule: Literal["1f1b", "gpipe"], stage: int, stages: int, micro_batches: int) -> list[Pass]:
    """gpipe: all forward, then all backward, the last first (Huang et al., NeurIPS 2019, figure 2c). 1f1b: forward
    until the pipeline is full, then one backward for one forward (Narayanan et al., SC 2021, figure 4)."""
    forward = [Pass(True, number) for number in range(micro_batches)]
    backward = [Pass(False, number) for number in range(micro_batches)]
    if schedule == "gpipe":
        return [*forward, *reversed(backward)]
    warm_up = min(stages - stage - 1, micro_batches)
    steady = [each for pair in zip(forward[warm_up:], backward, strict=False) for each in pair]
    return [*forward[:warm_up], *steady, *backward[micro_batches - warm_up :]]
