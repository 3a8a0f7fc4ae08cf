"""The sending side: the worker's queue in its order, and repairs before it, at its pace.

Repairs are fragments that were lost and go again, alone or summed with others, whichever takes fewer hops. Those in a
sum are wanted by different receivers, each of whom holds all but its own.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import or_

import numpy as np

from gradbed.formats.addresses import ip_integer
from gradbed.formats.shuffle import COMPONENTS, MULTICAST_IP, CodedFlags
from gradbed.hosts.protocols.frames import Frames
from gradbed.hosts.systems.shuffle.coded_frames import Packer
from gradbed.hosts.systems.shuffle.config import PlannedTransmission, RepairGroup, RepairTree, ShuffleConfig
from gradbed.hosts.systems.shuffle.reception import Compute, SampleReception
from gradbed.hosts.systems.shuffle.samples import Fragments, Store

# ---- Repairs ----


RepairRoute = RepairTree | RepairGroup


@dataclass(frozen=True, order=True)
class Wanted:
    """A fragment of a sample that a worker asks for."""

    receiver: int
    sample: int
    fragment: int


@dataclass
class Repair:
    """A repair packet."""

    wanted: list[Wanted] = field(default_factory=list)
    hops: int = 0
    route: RepairRoute | None = None
    """Route to several receivers; None: unicast to its one receiver."""

    @property
    def components(self) -> list[tuple[int, int]]:
        """(sample, fragment) of each fragment in the sum."""
        return list(dict.fromkeys((each.sample, each.fragment) for each in self.wanted))

    @property
    def receivers(self) -> int:
        """Return the receivers as a set of bits."""
        return reduce(or_, (1 << each.receiver for each in self.wanted), 0)


class RepairPlanner:
    """The planner of one sender's repairs.

    routes: to several receivers. holders: for each sample the workers that hold it for good, as a set of bits.
    """

    def __init__(
        self, sender: int, routes: Sequence[RepairRoute], distances: Sequence[int], holders: Mapping[int, int]
    ) -> None:
        self._sender = sender
        self._routes = routes
        self._distances = distances
        self._holders = holders

    def plan(self, wanted: Sequence[Wanted]) -> list[Repair]:
        """Packets that bring everybody what they want."""
        repairs: list[Repair] = []
        for each in sorted(set(wanted)):
            alone = self._distances[each.receiver]
            joined = [
                (hops - repair.hops, place, hops, route)
                for place, repair in enumerate(repairs)
                if self._fits(repair, each)
                for hops, route in self._together(repair, each)
            ]
            if joined and min(joined)[0] < alone:
                _, place, hops, route = min(joined)
                repairs[place].wanted.append(each)
                repairs[place].hops, repairs[place].route = hops, self._routes[route]
            else:
                repairs.append(Repair([each], alone))
        return repairs

    def _fits(self, repair: Repair, more: Wanted) -> bool:
        """Return whether everybody could still decode what they want."""
        if repair.receivers >> more.receiver & 1:
            return False
        if len({*repair.components, (more.sample, more.fragment)}) > COMPONENTS:
            return False
        return all(
            (other.sample, other.fragment) == (more.sample, more.fragment)
            or (self._has(more.receiver, other.sample) and self._has(other.receiver, more.sample))
            for other in repair.wanted
        )

    def _has(self, worker: int, sample: int) -> bool:
        return bool(self._holders.get(sample, 0) >> worker & 1)

    def _together(self, repair: Repair, more: Wanted) -> Iterator[tuple[int, int]]:
        """Hops to all of them, and the place of the route."""
        receivers = [each.receiver for each in (*repair.wanted, more)]
        for place, route in enumerate(self._routes):
            hops = route.hops(self._sender, receivers)
            if hops is not None:
                yield hops, place


# ---- Sending ----


BURST_FRAMES = 4
"""Sent at once at most; the next ones then come as much later."""
GATHER_SHARE = 4
"""Requests are gathered for this part of the timeout before they are answered, so that repairs can be summed."""


class Sending:
    """Everything that one worker sends. send: takes equally long frames. compute: does what takes the worker's
    processor some time."""

    def __init__(
        self,
        config: ShuffleConfig,
        store: Store,
        reception: SampleReception,
        packer: Packer,
        send: Callable[[Frames], object],
        compute: Compute,
    ) -> None:
        self._config = config
        self._store = store
        self._reception = reception
        self._packer = packer
        self._send = send
        self._compute = compute
        self._queue = deque(config.outgoing)
        self._own = {each.number for each in config.outgoing}
        self._sent: set[int] = set()
        self._planner = RepairPlanner(config.index, config.repair_routes, config.distances, config.holders)
        self._wanted: dict[Wanted, int] = {}
        """With the transmission by which it should have come."""
        self._gathered_us = 0
        self._repairs: deque[Repair] = deque()
        self._frames: Frames | None = None
        """Of the transmission that is being sent, those that are left."""
        self._free_us = 0.0
        """When the pace allows the next packet."""
        self._head_us = 0
        """When the queue's first transmission came to be it."""
        self.waits_us: dict[int, int] = {}
        """How long each transmission of class A waited for its loans."""
        self.coded_repairs = 0
        self.repairs = 0
        self.late_requests = 0

    def begin(self, now_us: int) -> None:
        self._free_us, self._head_us = float(now_us), now_us

    @property
    def complete(self) -> bool:
        """The queue is empty."""
        return not self._queue and self._frames is None

    def request(self, receiver: int, transmission: int, sample: int, fragments: Sequence[int], now_us: int) -> None:
        """A worker asks for fragments of a sample that should have come by a transmission."""
        if not self._store.holds(sample):
            self.late_requests += 1
            return
        if transmission in self._own and transmission not in self._sent:
            return  # it is still to come
        if not self._wanted:
            self._gathered_us = now_us + self._config.timeout_us // GATHER_SHARE
        for fragment in fragments:
            self._wanted[Wanted(receiver, sample, fragment)] = transmission

    def work(self, now_us: int) -> None:
        """Send what is due."""
        if self._wanted and now_us >= self._gathered_us:
            self._repairs.extend(self._planner.plan(list(self._wanted)))
            self._wanted.clear()
        if now_us < self._free_us:
            return
        room = BURST_FRAMES
        while room and (sent := self._send_next(room, now_us)):
            room -= sent
        self._free_us = max(self._free_us, float(now_us)) + (BURST_FRAMES - room) * self._config.interval_us

    def _send_next(self, most: int, now_us: int) -> int:
        """Send the next packets and return how many; 0: there is nothing, or the queue waits for a loan."""
        if self._repairs:
            self._send_repair(self._repairs.popleft())
            return 1
        return self._send_scheduled(most, now_us)

    def _send_repair(self, repair: Repair) -> None:
        components = repair.components
        parts = [part for each in components if (part := self._store.fragment(*each)) is not None]
        payload = self._compute(lambda: np.bitwise_xor.reduce(parts)) if len(parts) > 1 else parts[0]
        self.repairs += 1
        self.coded_repairs += len(components) > 1
        match repair.route:
            case None:
                (wanted,) = repair.wanted
                header = {"dst_ip": ip_integer(self._config.workers[wanted.receiver].ip)}
            case RepairGroup(dst_ip=group_ip):
                header = {"dst_ip": ip_integer(group_ip)}
            case RepairTree(bift_id=bift_id):
                header = {"dst_ip": ip_integer(MULTICAST_IP), "bift_id": bift_id, "receivers": repair.receivers}
        frames = self._packer.repair(payload, components, transmission=0, **header)
        self._send(frames)

    def _send_scheduled(self, most: int, now_us: int) -> int:
        if self._frames is None:
            if not self._queue or not self._has_loans_of(self._queue[0]):
                return 0
            if self._queue[0].waits_for:
                turn_us = max(self._head_us, int(self._free_us))
                self.waits_us[self._queue[0].number] = max(0, now_us - turn_us)
            self._frames = self._packed(self._queue[0])
        now, later = self._frames[:most], self._frames[most:]
        self._send(np.ascontiguousarray(now))
        self._frames = later if len(later) else None
        if self._frames is None:
            done = self._queue.popleft()
            self._sent.add(done.number)
            self._store.give_back(done.number)
            self._head_us = now_us
        return len(now)

    def _has_loans_of(self, outgoing: PlannedTransmission) -> bool:
        return all(self._reception.has(loan) for loan in outgoing.waits_for)

    def _packed(self, outgoing: PlannedTransmission) -> Frames:
        def encode() -> Fragments:
            return self._store.encoded(outgoing.samples, outgoing.number)

        payload = self._compute(encode) if len(outgoing.samples) > 1 else encode()
        by_bits = outgoing.dst_ip is None
        return self._packer.scheduled(
            payload,
            fragment=np.arange(len(payload)),
            fragments=len(payload),
            transmission=outgoing.number,
            dst_ip=ip_integer(outgoing.dst_ip or MULTICAST_IP),
            bift_id=outgoing.bift_id,
            receivers=sum(1 << worker for worker, _ in outgoing.receivers) if by_bits else 0,
            flags=CodedFlags.LOAN if outgoing.is_loan else 0,
        )

    def deadline_us(self, now_us: int) -> int | None:
        """Return when `work` has something to do at the latest, if nothing comes; None: never."""
        times = [self._gathered_us] if self._wanted else []
        can_send = self._frames is not None or (bool(self._queue) and self._has_loans_of(self._queue[0]))
        if self._repairs or can_send:
            times.append(max(now_us, math.ceil(self._free_us)))
        return min(times, default=None)
