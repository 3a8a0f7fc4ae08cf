"""The parameter server: merges gradients and partial sums, sends global sums in ACKs, asks for what it lacks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from gradbed.formats.addresses import ip_integer
from gradbed.formats.aggregation import Flags
from gradbed.hosts.agents.context import AgentContext, Interface, drain
from gradbed.hosts.protocols.frames import Frames, mac_array, met_congestion
from gradbed.hosts.systems.aggregation.collector import Collector
from gradbed.hosts.systems.aggregation.config import AggregationJob
from gradbed.hosts.systems.aggregation.endpoint import GradientEndpoint


class AggregationServer:
    """The parameter server of a job on an open interface."""

    def __init__(self, job: AggregationJob, interface: Interface, context: AgentContext) -> None:
        self._job = job
        self._context = context
        self._worker_ips = [ip_integer(worker.ip) for worker in job.workers]
        self._worker_of_ip = {ip: index for index, ip in enumerate(self._worker_ips)}
        self._endpoint = GradientEndpoint(job, job.server, job.workers, interface, sends_acknowledgements=True)
        self._collector = Collector(
            workers=len(job.workers),
            fragments_per_round=job.fragments_per_round,
            lanes=job.lanes,
            # No timer asks twice in that time. A copy of the packet does, and sometimes an early retry.
            repeat_interval_us=job.min_timeout_us // 2,
            first_number=job.first_packet_number,
            multicast=bool(job.multicast),
            give_up_us=job.give_up_us,
        )
        self._group_ips = np.array([ip_integer(group.ip) for group in job.multicast], np.uint32)
        self._group_macs = np.array([mac_array(group.mac) for group in job.multicast])

    def run(self) -> None:
        """Serve until stop; a worker may ask for an ACK again long after the last round."""
        self._context.emit("ready")
        done = False
        while not self._context.stopped:
            received = self._endpoint.receive()
            if received is None:
                self._context.wait()
                continue
            self._serve(received.frames)
            if not done and self._collector.complete_rounds == self._job.workload.rounds:
                done = True
                self._context.emit("done", statistics=self._report())
        drain(self._context, self._endpoint.receive)
        self._context.emit("final", statistics=self._report())

    def _report(self) -> dict[str, object]:
        return {**self._endpoint.report(), **self._collector.statistics.to_json()}

    def _serve(self, frames: Frames) -> None:
        replies = self._collector.accept(
            packet_numbers=frames["packet_number"].tolist(),
            bitmaps=frames["worker_bitmap"].tolist(),
            flags=frames["flags"].tolist(),
            congested=met_congestion(frames, Flags.CONGESTION.value).tolist(),
            senders=[self._worker_of_ip[ip] for ip in frames["src_ip"].tolist()],
            lanes=frames["lanes"].astype(np.int32),
            now_us=self._context.now_us(),
        )
        acknowledged: list[tuple[int, int | None, bool]] = [
            *((number, None, repeated) for number, repeated in replies.complete),
            *((number, worker, True) for number, worker in replies.repeats),
        ]
        to_all = [(number, repeated) for number, worker, repeated in acknowledged if worker is None]
        if self._job.multicast:
            self._multicast(to_all)
        else:
            self._unicast([(number, ip, repeated) for number, repeated in to_all for ip in self._worker_ips])
        self._unicast(
            [(number, self._worker_ips[worker], True) for number, worker in replies.repeats if worker is not None]
        )
        self._request(replies.requests)

    def _multicast(self, complete: Sequence[tuple[int, bool]]) -> None:
        """complete: (packet number, whether it is due to a repeated packet)."""
        if complete:
            numbers, repeated = zip(*complete, strict=True)
            turns = np.array(numbers) % len(self._job.multicast)
            self._acknowledge(numbers, repeated, dst_ip=self._group_ips[turns], dst_mac=self._group_macs[turns])

    def _unicast(self, destinations: Sequence[tuple[int, int, bool]]) -> None:
        """destinations: (packet number, IP address, whether it is due to a repeated packet)."""
        if destinations:
            numbers, ips, repeated = zip(*destinations, strict=True)
            self._acknowledge(numbers, repeated, dst_ip=ips, dst_mac=None)

    def _acknowledge(
        self, numbers: Sequence[int], repeated: Sequence[bool], dst_ip: ArrayLike, dst_mac: ArrayLike | None
    ) -> None:
        sums = self._collector.global_sums(numbers)
        flags = np.full(len(numbers), Flags.ACK.value)
        flags[np.array(repeated, np.bool_)] |= Flags.RESEND.value
        flags[sums.congested] |= Flags.CONGESTION.value
        self._endpoint.send(
            sums.lanes,
            packet_numbers=numbers,
            worker_bitmap=self._job.full_bitmap,
            magnitude=sums.shifts,
            dst_ip=dst_ip,
            dst_mac=dst_mac,
            flags=flags,
        )

    def _request(self, requests: Sequence[tuple[int, int]]) -> None:
        """requests: (packet number, worker)."""
        if requests:
            numbers, workers = zip(*requests, strict=True)
            self._endpoint.send(
                np.empty((len(numbers), 0), np.int32),
                packet_numbers=numbers,
                worker_bitmap=self._job.full_bitmap,
                dst_ip=[self._worker_ips[worker] for worker in workers],
                flags=(Flags.ACK | Flags.NACK).value,
            )
