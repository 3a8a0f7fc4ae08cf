"""One collective of a rank, which its card carries out."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from gradbed.hosts.agents.card_collectives import CardCollective
from gradbed.hosts.systems.training.messages import Lane, Messages
from gradbed.hosts.systems.training.plans import Plan

OnEnd = Callable[[NDArray[np.int32] | None], None]


def begin_collective(
    plan: Plan, subject: int, messages: Messages, values: NDArray[np.int32] | None, on_end: OnEnd
) -> None:
    """subject: of its messages, the same at all ranks. values: the rank's input; None: only lengths travel. on_end:
    is given the result, if there are values, once all that changes it is complete. Peers may not have all yet that
    this rank sends."""
    schedule = plan.schedule
    steps = schedule.steps
    starts, stops = steps.ranges()
    buffer = offset_bytes = source_bytes = None
    if values is not None:
        buffer = np.zeros(schedule.elements, np.int32)
        buffer[schedule.input_start : schedule.input_stop] = values
        offset_bytes, source_bytes = (
            (plan.element_bytes * elements).astype(np.uint64) for elements in (starts, steps.sources())
        )
    structure = steps.structure
    pairs = [
        messages.number(plan.group[peer], Lane.COLLECTIVE) for peer in map(steps.peer, structure.first_of_each_peer)
    ]
    size_bytes = (plan.element_bytes * (stops - starts)).astype(np.uint64)
    collective = CardCollective(
        structure.on_card, np.array(pairs, np.uint32), size_bytes, buffer, offset_bytes, source_bytes
    )
    result = None if buffer is None else buffer[schedule.output_start : schedule.output_stop]
    messages.begin_collective(subject, collective, lambda: on_end(result))
