"""Simulated time: from event to event of a network and of timers."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from gradbed.hosts.agents.nic import Nic


class Stop(Protocol):
    """A point at which a network's time stopped, and why."""

    @property
    def interfaces(self) -> Sequence[Nic]:
        """NICs that have got a batch of frames at this moment, in order."""

    @property
    def messages(self) -> Sequence[Any]:
        """Return what switches send their controller at this moment."""

    @property
    def idle(self) -> bool:
        """Return whether nothing is under way any more."""


class SimulatedNetwork(Protocol):
    """Links, and what is between them; such as gradbed.switch.virtual.SimulatedNetwork."""

    @property
    def now_ns(self) -> int:
        """The clock, which starts at 0 and moves in run_until alone."""

    def run_until(self, time_ns: int | None) -> Stop:
        """Let time go on until a NIC or the controller is to be told something, but not beyond time_ns; None: until
        nothing is left."""


class Timer:
    """Something that happens at a time, unless it is cancelled before."""

    def __init__(self, action: Callable[[], None]) -> None:
        self.action: Callable[[], None] | None = action

    def cancel(self) -> None:
        self.action = None


class VirtualClock:
    """Time that stands still while anybody acts. At one time, frames come before timers, and timers in order."""

    def __init__(self, network: SimulatedNetwork) -> None:
        self._network = network
        self._timers: list[tuple[int, int, Timer]] = []
        self._numbers = itertools.count()
        self._tell: dict[Nic, Callable[[], Callable[[], None] | None]] = {}
        self._look: Callable[[], int] | None = None
        self.on_message: Callable[[Any], None] = lambda message: None
        """Is given what switches send their controller."""

    @property
    def now_ns(self) -> int:
        return self._network.now_ns

    def at(self, time_ns: int, action: Callable[[], None]) -> Timer:
        """Do something at a time, now if that is over."""
        timer = Timer(action)
        heapq.heappush(self._timers, (max(time_ns, self.now_ns), next(self._numbers), timer))
        return timer

    def listen(self, nic: Nic, tell: Callable[[], Callable[[], None] | None]) -> None:
        """Call `tell` when a batch has come to the NIC, and what that returns once all NICs have been told."""
        self._tell[nic] = tell

    def look_on(self, look: Callable[[], int] | None) -> None:
        """Call `look` between moments, before time goes on; it says at which time it is to be called again at the
        latest. It takes no part: whether somebody looks on or not, everything happens at the same times. None: nobody
        looks on any more."""
        self._look = look

    def step(self) -> bool:
        """Let time go on to the next moment at which somebody acts. False: nothing can happen any more."""
        next_ns = self._next_ns()
        stop = self._run_until(next_ns)
        for message in stop.messages:
            self.on_message(message)
        told = [self._tell[nic]() for nic in stop.interfaces if nic in self._tell]
        for action in dict.fromkeys(told):
            if action is not None:
                action()
        while (due_ns := self._next_ns()) is not None and due_ns <= self.now_ns:
            _, _, timer = heapq.heappop(self._timers)
            if timer.action is not None:
                timer.action()
        return next_ns is not None or bool(told) or bool(stop.messages) or not stop.idle

    def _run_until(self, time_ns: int | None) -> Stop:
        while self._look is not None:
            look_ns = max(self._look(), self.now_ns + 1)
            # Without a time the clock stops with the last event, and must not go beyond it.
            if time_ns is None or look_ns >= time_ns:
                break
            stop = self._network.run_until(look_ns)
            if stop.interfaces or stop.messages:
                return stop
        return self._network.run_until(time_ns)

    def _next_ns(self) -> int | None:
        while self._timers and self._timers[0][2].action is None:
            heapq.heappop(self._timers)
        return self._timers[0][0] if self._timers else None
