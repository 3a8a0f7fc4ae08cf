"""A host that only listens: it subscribes, puts versions together, and says what they sum up to."""

from __future__ import annotations

import numpy as np

from gradbed.hosts.learning.workload import sum_digest
from gradbed.hosts.systems.ndn.description import ObserverDescription
from gradbed.hosts.systems.ndn.node import NdnNode
from gradbed.hosts.systems.ndn.reception import Version
from gradbed.hosts.systems.ndn.training import mean_of, total_of


class Observation:
    """Of the versions that begin after this host has joined."""

    def __init__(self, node: NdnNode, observer: ObserverDescription) -> None:
        self._node = node
        self._job = observer.job
        self._next: int | None = None
        self._complete: dict[int, dict[int, Version]] = {}
        self.over = False
        node.tell_of_versions(self._take)

    @property
    def follows(self) -> bool:
        """Something of the version that it waits for is there."""
        receptions = self._node.receptions.values()
        return self._next is not None and any(each.version(self._next).head is not None for each in receptions)

    def _take(self, publisher: int, number: int, version: Version) -> None:
        if self._next is None:
            # Of the version that is under way others may have come before this host had joined.
            self._next = number + 1
            for other in self._node.receptions:
                self._node.wait_for(other, self._next)
        if number < self._next:
            return
        if number == self._next:
            self._node.stop_waiting(publisher, None)
        self._complete.setdefault(number, {})[publisher] = version
        while len(self._complete.get(self._next, {})) == len(self._job.publishers):
            self._finish(self._complete.pop(self._next), self._next)

    def _finish(self, versions: dict[int, Version], number: int) -> None:
        fragments = np.zeros((self._job.fragments, self._job.lanes), np.int64)
        for publisher, version in sorted(versions.items()):
            fragments += version.fragments
            self._node.receptions[publisher].end(number)
            assert version.head is not None
            self.over |= version.head.last
        # Peers that have reached their target make no further version; they did not know when they pushed this one.
        loss = mean_of([version.head.loss for version in versions.values() if version.head is not None])
        self.over |= self._job.target_loss is not None and loss < self._job.target_loss
        total = total_of(fragments, self._job.values, self._job.lanes)
        self._node.context.emit("observed", version=number, sum_sha256=sum_digest(total), mean_loss=loss)
        self._next = number + 1
        if self.over:
            return
        for publisher in versions:
            if publisher not in self._complete.get(self._next, {}):
                self._node.wait_for(publisher, self._next)
