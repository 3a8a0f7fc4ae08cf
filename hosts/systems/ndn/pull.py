"""Plain NDN: an Interest for every fragment of every publisher, so many at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection
from dataclasses import dataclass

from gradbed.hosts.systems.ndn.description import NdnJob
from gradbed.hosts.systems.ndn.reception import Reception
from gradbed.hosts.transport.retransmission_timeout import RetransmissionTimeout


@dataclass
class _Asked:
    """since_us: of the first Interest. deadline_us: when the next is sent. times: Interests sent."""

    since_us: int
    deadline_us: int
    times: int = 1


class Puller:
    """ask: send an Interest for a publisher's version and segment."""

    def __init__(self, job: NdnJob, receptions: dict[int, Reception], ask: Callable[[int, int, int], None]) -> None:
        self._job = job
        self._receptions = receptions
        self._ask = ask
        self._version = 0
        self._waiting: deque[tuple[int, int]] = deque()
        self._asked: dict[tuple[int, int], _Asked] = {}
        self._timeout = RetransmissionTimeout(job.first_probe_us)

    def begin(self, version: int, publishers: Collection[int]) -> None:
        """From now on this version is wanted; fragments of different publishers take turns."""
        self._version = version
        self._asked.clear()
        self._waiting = deque(
            (publisher, segment) for segment in range(self._job.fragments) for publisher in publishers
        )

    @property
    def deadline_us(self) -> int | None:
        return min((asked.deadline_us for asked in self._asked.values()), default=None)

    def act(self, now_us: int) -> None:
        """See what has come, and send what is due."""
        for key in list(self._asked):
            publisher, segment = key
            asked = self._asked[key]
            if self._receptions[publisher].has(self._version, segment):
                if asked.times == 1:
                    self._timeout.sample(now_us - asked.since_us)
                del self._asked[key]
            elif asked.deadline_us <= now_us:
                self._ask(publisher, self._version, segment)
                length_us = self._timeout.base_us(self._job.least_probe_us) << min(asked.times, 20)
                asked.deadline_us = now_us + min(length_us, self._job.most_probe_us)
                asked.times += 1
        while self._waiting and len(self._asked) < self._job.window_fragments:
            publisher, segment = self._waiting.popleft()
            if not self._receptions[publisher].has(self._version, segment):
                self._ask(publisher, self._version, segment)
                deadline_us = now_us + self._timeout.base_us(self._job.least_probe_us)
                self._asked[publisher, segment] = _Asked(now_us, deadline_us)
