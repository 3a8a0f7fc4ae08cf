"""One collective of a rank, while it is carried out over queue pairs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from hosts.systems.training.collectives.progress import Progress
from hosts.systems.training.messages import Lane, Message, Messages
from hosts.systems.training.plans import Plan

OnEnd = Callable[[NDArray[np.int32] | None], None]


class CollectiveRun:
    """A hosts.systems.training.messages.Party."""

    def __init__(
        self, plan: Plan, subject: int, messages: Messages, values: NDArray[np.int32] | None, on_end: OnEnd
    ) -> None:
        """subject: of its messages, the same at all ranks. values: the rank's input; None: only lengths travel.
        on_end: is given the result, if there are values."""
        buffer = None
        if values is not None:
            buffer = np.zeros(plan.schedule.elements, np.int32)
            buffer[plan.schedule.input_start : plan.schedule.input_stop] = values
        self._plan = plan
        self._subject = subject
        self._messages = messages
        self._progress = Progress(plan.schedule, buffer)
        self._on_end = on_end
        self._has_ended = False
        self._waits_for_sent = False

    def begin(self) -> None:
        self._go_on()
        if not self._has_ended:
            self._messages.listen(Lane.COLLECTIVE, self._subject, self)

    def sent(self, step: int) -> None:
        self._progress.sent(step)
        self._go_on()

    def received(self, message: Message) -> None:
        self._progress.received(self._plan.places[message.peer], message.place, message.data)
        self._go_on()

    def _go_on(self) -> None:
        plan, buffer = self._plan, self._progress.buffer
        for step, peer, turn, start, stop in self._progress.ready():
            size_bytes = (stop - start) * plan.element_bytes
            data = None if buffer is None else buffer[start:stop]
            self._messages.send(plan.group[peer], Lane.COLLECTIVE, self._subject, turn, size_bytes, self, step, data)
        if self._progress.waits_for_sent is not self._waits_for_sent:
            self._waits_for_sent = not self._waits_for_sent
            self._messages.await_sent(1 if self._waits_for_sent else -1)
        # What waits for the collective may begin, though peers may not have all that this rank sends.
        if self._progress.has_result and not self._has_ended:
            self._has_ended = True
            self._messages.forget(Lane.COLLECTIVE, self._subject)
            schedule = plan.schedule
            self._on_end(None if buffer is None else buffer[schedule.output_start : schedule.output_stop])
