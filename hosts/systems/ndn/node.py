"""What every host of an NDN job does, whether it trains or only listens.

It subscribes, receives versions, asks for what is missing, and answers those who ask it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradbed.common.errors import UserError
from gradbed.formats import tlv
from gradbed.formats.addresses import mac_bytes
from gradbed.formats.datagram import ETHERNET_BYTES
from gradbed.formats.ndn import DELETE, DISTRIBUTE, INSERT
from gradbed.formats.tlv import Component, MalformedError, Name, generic
from gradbed.hosts.agents.context import AgentContext, Interface, drain
from gradbed.hosts.systems.ndn.config import NdnJob, training_of
from gradbed.hosts.systems.ndn.endpoint import Fragment, FragmentReader, NdnEndpoint, waiting
from gradbed.hosts.systems.ndn.packets import (
    Data,
    Interest,
    VersionHead,
    body,
    fragment_name,
    read_packet,
    version_frames,
)
from gradbed.hosts.systems.ndn.reception import ProbeTimer, PublisherReception, Puller, Version
from gradbed.hosts.systems.ndn.subscriptions import Subscriptions

# ---- Counts ----


@dataclass
class PeerStatistics:
    """Packets, unless the name says otherwise."""

    pushed: int = 0
    received_pushes: int = 0
    received_answers: int = 0
    duplicates: int = 0
    malformed: int = 0
    unwanted: int = 0
    probes: int = 0
    probes_received: int = 0
    insertions: int = 0
    deletions: int = 0
    acknowledged: int = 0
    answered_at_once: int = 0
    """Probes that this publisher answered at once."""
    answered_later: int = 0
    """Probes answered later, as they were for versions that did not exist yet."""
    superseded_versions: int = 0
    recovery_us: list[int] = field(default_factory=list)
    """Times from a fragment's first probe until it came."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


# ---- What a publisher has: its last versions, and the requests for versions that it has not made yet ----


@dataclass(frozen=True)
class Publication:
    """A version of a publisher's gradient, as it is sent."""

    head: VersionHead
    fragments: NDArray[np.int32]
    """Values, shape (fragments, lanes)."""


class Publications:
    """keep: so many of the last versions can be asked for."""

    def __init__(self, keep: int) -> None:
        self._keep = keep
        self._versions: dict[int, Publication] = {}
        self._next = 0
        self._requests: dict[int, set[tuple[Name, int]]] = {}

    def add(self, version: int, publication: Publication) -> list[tuple[Name, int]]:
        """A version is there; the segments of it that were asked for before, each with the prefix of the request."""
        self._versions[version] = publication
        self._next = version + 1
        self._versions.pop(version - self._keep, None)
        return sorted(self._requests.pop(version, ()))

    def body(self, prefix: Name, version: int, segment: int) -> bytes | None:
        """Return the body of a fragment's Data; None: not to be had now. A request for a coming version is kept."""
        publication = self._versions.get(version)
        if publication is not None and segment < len(publication.fragments):
            return body(publication.head, publication.fragments[segment])
        if version >= self._next:
            self._requests.setdefault(version, set()).add((prefix, segment))
        return None


# ---- The node ----


_PACKET_LIFETIME_MS = 4000
_LP_PACKET = bytes((tlv.LP_PACKET,))
"""Type of NDNLPv2's LpPacket."""


class NdnNode:
    """own: what this host publishes as, and its place among the publishers; None: nothing."""

    def __init__(
        self, context: AgentContext, interface: Interface, job: NdnJob, mac: str, name: str, own: int | None
    ) -> None:
        self.context = context
        self.job = job
        self.statistics = PeerStatistics()
        self.own = own
        self._others = [index for index in range(len(job.publishers)) if index != own]
        self._endpoint = NdnEndpoint(interface, mac_bytes(mac), job.pace_bps, f"{job.training} {job.number} {name}")
        training = generic(training_of(job, name))
        components = {index: generic(job.publishers[index]) for index in self._others}
        self._streams = {index: (component, training) for index, component in components.items()}
        self._probe_prefixes = {index: (training, component) for index, component in components.items()}
        self._reader = FragmentReader(
            {b"".join((DISTRIBUTE, *stream)): index for index, stream in self._streams.items()},
            {b"".join(prefix): index for index, prefix in self._probe_prefixes.items()},
            job.lanes,
        )
        self.subscriptions = Subscriptions(
            list(self._streams.values()) if job.exchange != "pull" else [],
            job.retry_us,
            job.refresh_us,
            self._send_subscription,
        )
        self.receptions = {index: PublisherReception(job.fragments, job.lanes) for index in self._others}
        self.timers = {
            index: ProbeTimer(job.first_probe_us, job.silence_us, job.most_probe_us) for index in self._others
        }
        self._awaited: dict[int, int] = {}
        """By publisher: the version that its timer is for."""
        self._follows = job.mode == "asynchronous"
        self._news = 0
        """Fragments that were not there yet."""
        self._ended: set[int] = set()
        """Publishers whose last version is there."""
        self._newest: dict[int, int] = {}
        """By publisher, without a barrier: the last version of which something has come."""
        self._unreported: list[tuple[int, int, Version]] = []
        self._on_complete: Callable[[int, int, Version], None] = lambda *whole: self._unreported.append(whole)
        self.puller = Puller(job, self.receptions, self.ask) if job.exchange == "pull" else None
        self._publications = Publications(job.keep_versions)
        self._own_streams: list[tuple[Component, Component]] = []
        if own is not None:
            receivers = [other for index, other in enumerate(job.publishers) if index != own]
            trainings = dict.fromkeys(training_of(job, receiver) for receiver in receivers)
            self._own_streams = [(generic(job.publishers[own]), generic(training)) for training in trainings]
        self._progress_us = context.now_us()
        """When a fragment came that was not there yet; refreshes of subscriptions are answered without publishers."""
        self.lost: tuple[str, ...] = ()
        """Publishers that were given up."""

    # ---- Publishing ----

    def publish(self, version: int, publication: Publication) -> None:
        """Push a version to all subscribers, and answer those who have asked for it already."""
        asked = self._publications.add(version, publication)
        if self.job.exchange != "pull":
            batches = [
                list(
                    version_frames(
                        self._endpoint.header, (DISTRIBUTE, *stream), version, publication.head, publication.fragments
                    )
                )
                for stream in self._own_streams
            ]
            for streams in zip(*batches, strict=True):
                # With several streams (unicast) their fragments take turns.
                for at in range(len(streams[0])):
                    if len(streams) == 1:
                        self._endpoint.queue(streams[0])
                        break
                    for frames in streams:
                        self._endpoint.queue(frames[at : at + 1])
            self.statistics.pushed += len(publication.fragments) * len(self._own_streams)
        for prefix, segment in asked:
            self._answer(prefix, version, segment)
            self.statistics.answered_later += 1
        self._endpoint.send_queued(self.context.now_us())

    @property
    def all_sent(self) -> bool:
        """Return whether nothing waits for the pace."""
        return self._endpoint.deadline_us is None

    def _answer(self, prefix: Name, version: int, segment: int) -> bool:
        body = self._publications.body(prefix, version, segment)
        if body is not None:
            self._endpoint.send_data(fragment_name(prefix, version, segment), body)
        return body is not None

    # ---- Receiving ----

    def wait_for(self, publisher: int, version: int) -> None:
        """Ask for a version once its timer, which starts now, has run out. With exchange pull the puller asks."""
        self._awaited[publisher] = version
        if self.puller is None:
            self.timers[publisher].start(self.context.now_us())

    def tell_of_versions(self, on_complete: Callable[[int, int, Version], None]) -> None:
        """Call with publisher, number and version once all its fragments are there; of those that are by now, since
        others may have begun before, at once."""
        self._on_complete = on_complete
        for whole in self._unreported:
            on_complete(*whole)
        self._unreported.clear()

    def stop_waiting(self, publisher: int, gap_us: int | None) -> None:
        self._awaited.pop(publisher, None)
        self.timers[publisher].stop(gap_us)

    def ask(self, publisher: int, version: int, segment: int) -> None:
        """Send a probe."""
        self.receptions[publisher].version(version).probed_us.setdefault(segment, self.context.now_us())
        lifetime_ms = max(_PACKET_LIFETIME_MS, 4 * self.job.most_probe_us // 1000)
        self._endpoint.send_interest(fragment_name(self._probe_prefixes[publisher], version, segment), lifetime_ms)
        self.statistics.probes += 1

    def _probe(self, publisher: int) -> None:
        """A timer has run out. Of a version of which nothing has come, the first fragment tells whether it exists."""
        number = self._awaited[publisher]
        version = self.receptions[publisher].version(number)
        missing = (~version.present).nonzero()[0].tolist()
        for segment in missing if version.head is not None else missing[:1]:
            self.ask(publisher, number, segment)
        self.timers[publisher].expired(self.context.now_us())

    def _take_fragment(self, fragment: Fragment) -> None:
        statistics = self.statistics
        if fragment.pushed:
            statistics.received_pushes += 1
        else:
            statistics.received_answers += 1
        now_us = self.context.now_us()
        publisher, number = fragment.publisher, fragment.version
        version = self.receptions[publisher].take(number, fragment.segment, fragment.head, fragment.lanes)
        if version is None:
            statistics.duplicates += 1
            return
        self._progress_us = now_us
        self._news += 1
        if fragment.pushed:
            version.last_push_us = now_us
        probed_us = version.probed_us.get(fragment.segment)
        if probed_us is not None:
            statistics.recovery_us.append(now_us - probed_us)
        if self._follows:
            self._follow(publisher, number)
        if self._awaited.get(publisher) == number:
            self.timers[publisher].arrived(now_us)
        if version.missing == 0:
            if version.last_push_us is None and self.job.exchange != "pull":
                # Nothing came by itself: a router on the way may have lost the subscription.
                self.subscriptions.renew(self._streams[publisher])
            if fragment.head.last:
                self._ended.add(publisher)
            self._on_complete(publisher, number, version)

    def _follow(self, publisher: int, number: int) -> None:
        """Nobody says which versions there are: ask for what is missing of the last one whose push is over, which the
        next one's first fragment tells, else, after a silence, of the newest."""
        before = self._newest.get(publisher, -1)
        if number > before:
            self._newest[publisher] = number
            if before in self.receptions[publisher].open_numbers:
                self.wait_for(publisher, before)
                self._probe(publisher)
        awaited = self._awaited.get(publisher)
        if awaited is not None and awaited not in self.receptions[publisher].open_numbers:
            self.stop_waiting(publisher, None)
            awaited = None
        newest = self._newest[publisher]
        if awaited is None and newest in self.receptions[publisher].open_numbers:
            self.wait_for(publisher, newest)

    # ---- All packets ----

    def serve(self) -> None:
        """Take in all that waits, then send what is due."""
        while (frames := self._endpoint.receive()) is not None:
            for frame in frames:
                self._take(frame)
        now_us = self.context.now_us()
        self._endpoint.send_queued(now_us)
        self.subscriptions.act(now_us)
        if self.puller is not None:
            self.puller.act(now_us)
        for publisher in list(self._awaited):
            deadline_us = self.timers[publisher].deadline_us
            if deadline_us is not None and deadline_us <= now_us:
                self._probe(publisher)

    def serve_until(
        self, finished: Callable[[], bool], until_us: int | None = None, *, patient: bool = False
    ) -> bool:
        """Serve until finished.

        False when stopped before, when it is until_us, or, unless patient, when nothing has come for so long of what
        is waited for that it is given up (`lost`).
        """
        self._progress_us = self.context.now_us()
        while True:
            self.serve()
            if finished():
                return True
            if self.context.stopped or (until_us is not None and self.context.now_us() >= until_us):
                return False
            give_up_us = self._progress_us + self.job.give_up_us
            waits = until_us is None and not patient and bool(self._awaited)
            if waits and self.context.now_us() >= give_up_us:
                self.lost = tuple(self.job.publishers[each] for each in sorted(self._awaited))
                return False
            self.wait(until_us, give_up_us if waits else None)

    def wait(self, *until_us: int | None) -> None:
        """Wait for frames, a command, or whatever is due next."""
        timers = (self.timers[publisher].deadline_us for publisher in self._awaited)
        deadlines = waiting(
            *until_us,
            *timers,
            self._endpoint.deadline_us,
            self.subscriptions.deadline_us,
            None if self.puller is None else self.puller.deadline_us,
        )
        self.context.wait(min(deadlines, default=None))

    def _take(self, frame: bytes) -> None:
        if frame[ETHERNET_BYTES : ETHERNET_BYTES + 1] == _LP_PACKET:
            self.statistics.unwanted += 1  # a router's Nack: the Interest is repeated by its timer
            return
        try:
            if len(frame) > ETHERNET_BYTES and frame[ETHERNET_BYTES] == tlv.DATA:
                fragment = self._reader.read(frame)
                if fragment is not None:
                    self._take_fragment(fragment)
                    return
            packet = read_packet(frame)
        except MalformedError:
            self.statistics.malformed += 1
            return
        if isinstance(packet, Data):
            if len(packet.name) == 3 and self.subscriptions.take(packet.name, self.context.now_us()):
                self.statistics.acknowledged += 1
            else:
                self.statistics.unwanted += 1
        else:
            self._take_interest(packet)

    def _take_interest(self, interest: Interest) -> None:
        name = interest.name
        if len(name) == 3 and name[0] in (INSERT, DELETE) and name[1:] in self._own_streams:
            self._endpoint.send_data((DISTRIBUTE if name[0] == INSERT else DELETE, *name[1:]))
        elif len(name) == 4 and (name[1], name[0]) in self._own_streams:
            try:
                version = tlv.component_number(name[2], tlv.VERSION)
                segment = tlv.component_number(name[3], tlv.SEGMENT)
            except MalformedError:
                self.statistics.malformed += 1
                return
            self.statistics.probes_received += 1
            self.statistics.answered_at_once += self._answer((name[0], name[1]), version, segment)
        else:
            self.statistics.unwanted += 1

    def _send_subscription(self, name: Name, must_be_fresh: bool) -> None:
        if name[0] == INSERT:
            self.statistics.insertions += 1
        else:
            self.statistics.deletions += 1
        self._endpoint.send_interest(name, _PACKET_LIFETIME_MS, must_be_fresh)

    # ---- The beginning and the end ----

    def join(self) -> bool:
        """Subscribe to all publishers; False when stopped before they have acknowledged. UserError if they do not."""
        give_up_us = self.context.now_us() + self.job.give_up_us
        if self.serve_until(lambda: self.subscriptions.acknowledged, give_up_us):
            return True
        if self.context.stopped:
            return False
        silent = ", ".join(name.decode() for name in self.subscriptions.unacknowledged)
        raise UserError(f"no acknowledgement in {self.job.give_up_us / 1e6:g} s from {silent}: does it run?")

    def wait_for_begin(self, times: int) -> bool:
        """Serve others until the agents were told to begin so often; False when stopped before."""
        return self.serve_until(lambda: self.context.begins >= times, patient=True)

    def wait_for_all(self, times: int) -> bool:
        """The same; UserError if others, which have as long to subscribe as this host had, do not come to it."""
        until_us = self.context.now_us() + 2 * self.job.give_up_us
        if self.serve_until(lambda: self.context.begins >= times, until_us):
            return True
        if self.context.stopped:
            return False
        raise UserError(f"not all peers have subscribed after {2 * self.job.give_up_us / 1e6:g} s: do all run?")

    def gave_up(self) -> bool:
        """Return whether publishers were given up, and report that: what is there then is all that there will be."""
        if self.lost:
            self.context.emit("gave-up", publishers=self.lost)
        return bool(self.lost)

    def hear_out(self) -> None:
        """Wait for others' last versions, which they may have pushed already, or until nothing more comes.

        Without a barrier.
        """
        others, news = set(self._others), -1
        while self._follows and not self.context.stopped and self._ended < others and news != self._news:
            news = self._news
            self.serve_until(lambda: self._ended >= others, self.context.now_us() + self.job.first_probe_us)

    def leave(self) -> bool:
        """Delete all subscriptions; False when stopped before that is acknowledged."""
        self._follows = False
        for publisher in list(self._awaited):
            self.stop_waiting(publisher, None)
        self.subscriptions.delete()
        return self.serve_until(lambda: self.subscriptions.acknowledged)

    def linger(self) -> None:
        """Answer others and count, until stop."""
        self.serve_until(lambda: False, patient=True)
        drain(self.context, self._endpoint.receive)

    def report(self) -> Mapping[str, Any]:
        return self.statistics.to_json()
