"""A publisher's versions as a receiver puts them together, and when it asks for what is missing."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from gradbed.hosts.systems.ndn.config import NdnJob
from gradbed.hosts.systems.ndn.packets import VersionHead
from gradbed.hosts.transport.retransmission_timeout import RetransmissionTimeout


@dataclass
class Version:
    """A version in the making."""

    fragments: NDArray[np.int32]
    present: NDArray[np.bool_]
    missing: int
    head: VersionHead | None = None
    """Head of the version, None until a fragment has come."""
    last_push_us: int | None = None
    """When a fragment last came unasked; None: none did."""
    probed_us: dict[int, int] = field(default_factory=dict)
    """When each segment was asked for first."""


class PublisherReception:
    """The versions received of one publisher. Versions below `floor` are over."""

    def __init__(self, fragments: int, lanes: int) -> None:
        self._shape = (fragments, lanes)
        self._versions: dict[int, Version] = {}
        self.floor = 0

    def version(self, number: int) -> Version:
        """Return a version that is not over."""
        found = self._versions.get(number)
        if found is None:
            fragments, lanes = self._shape
            found = Version(np.zeros((fragments, lanes), np.int32), np.zeros(fragments, np.bool_), fragments)
            self._versions[number] = found
        return found

    def take(self, number: int, segment: int, head: VersionHead, lanes: NDArray[np.int32]) -> Version | None:
        """A fragment came. None: it is no news."""
        if number < self.floor or segment >= self._shape[0]:
            return None
        version = self.version(number)
        if version.present[segment]:
            return None
        version.fragments[segment] = lanes
        version.present[segment] = True
        version.missing -= 1
        version.head = head
        return version

    def end(self, number: int) -> Version:
        """Take a version out; it and those before are over. The version, as far as it came."""
        version = self.version(number)
        self.floor = number + 1
        self._versions = {key: value for key, value in self._versions.items() if key > number}
        return version

    def has(self, number: int, segment: int) -> bool:
        """A fragment is there, or over."""
        return number < self.floor or bool(self.version(number).present[segment])

    @property
    def open_numbers(self) -> list[int]:
        """The versions of which something, but not all, is there or was asked for."""
        return [number for number, version in self._versions.items() if version.missing]


class ProbeTimer:
    """The timer of probes for the version that is waited for, as in RFC 6298.

    It is SRTT + 4 RTTVAR over past gaps between the own push and the publisher's, from the own push on, and doubles
    each time that it runs out.

    Once a fragment of the version has come, a shorter silence (least_us) does: fragments leave one after the other.
    A gap ends with the last fragment that came unasked: with what had to be asked for, the timer would follow itself
    (Karn's problem)."""

    def __init__(self, first_us: int, least_us: int, most_us: int) -> None:
        self._gaps = RetransmissionTimeout(first_us)
        self._least_us = least_us
        self._most_us = most_us
        self._expirations = 0
        self.deadline_us: int | None = None
        """None: not set."""

    def start(self, now_us: int) -> None:
        self._expirations = 0
        self.deadline_us = now_us + self._gaps.base_us(self._least_us)

    def stop(self, gap_us: int | None) -> None:
        """gap_us: between own push and theirs; None: nothing is to be learnt of it."""
        self.deadline_us = None
        if gap_us is not None:
            self._gaps.sample(max(0, gap_us))

    def arrived(self, now_us: int) -> None:
        """A fragment came: the others of its version are on their way, or lost. Silence will tell."""
        if self.deadline_us is not None:
            self._expirations = 0
            self.deadline_us = now_us + self._least_us

    def expired(self, now_us: int) -> None:
        self._expirations += 1
        length_us = self._least_us << min(self._expirations, 20)
        self.deadline_us = now_us + min(length_us, self._most_us)


# ---- Plain NDN: an Interest for every fragment of every publisher, so many at a time ----


@dataclass
class _PendingInterest:
    """An Interest that is not answered yet."""

    since_us: int
    """When the first Interest was sent."""
    deadline_us: int
    """When the next Interest is sent."""
    times: int = 1
    """Number of Interests sent."""


class Puller:
    """ask: send an Interest for a publisher's version and segment."""

    def __init__(
        self, job: NdnJob, receptions: dict[int, PublisherReception], ask: Callable[[int, int, int], None]
    ) -> None:
        self._job = job
        self._receptions = receptions
        self._ask = ask
        self._version = 0
        self._waiting: deque[tuple[int, int]] = deque()
        self._asked: dict[tuple[int, int], _PendingInterest] = {}
        self._timeout = RetransmissionTimeout(job.first_probe_us)

    def begin(self, version: int, publishers: Collection[int]) -> None:
        """Want this version from now on; fragments of different publishers take turns."""
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
                self._asked[publisher, segment] = _PendingInterest(now_us, deadline_us)
