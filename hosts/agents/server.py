"""The parameter server: merges gradients and partial sums, and answers with the global sums."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hosts.agents.channel import Channel
from hosts.agents.clock import now_us
from hosts.agents.endpoint import Endpoint, mac_array
from hosts.job import JobDescription, ip_integer
from hosts.protocols.gradient_format import Flags
from hosts.protocols.gradient_frames import Frames
from hosts.transport.collector import Collector
from hosts.transport.raw_socket import RawSocket


class Server:
    """The parameter server of a job on an open raw socket."""

    def __init__(self, job: JobDescription, raw_socket: RawSocket, channel: Channel) -> None:
        self._job = job
        self._channel = channel
        self._worker_ips = [ip_integer(worker.ip) for worker in job.workers]
        self._worker_of_ip = {ip: index for index, ip in enumerate(self._worker_ips)}
        self._endpoint = Endpoint(job, job.server, job.workers, raw_socket, sends_acknowledgements=True)
        self._collector = Collector(
            workers=len(job.workers),
            fragments_per_round=job.fragments_per_round,
            lanes=job.lanes,
            # No timer asks twice in that time. A copy of the packet does, and sometimes an early resend.
            repeat_interval_us=job.min_timeout_us // 2,
            first_number=job.first_packet_number,
        )

    def run(self) -> None:
        """Serve until stop; a worker may ask for an answer again long after the last round."""
        self._channel.emit("ready")
        done = False
        while not self._channel.stopped:
            frames = self._endpoint.receive()
            if frames is None:
                self._channel.wait(self._endpoint.fileno(), None)
                continue
            self._serve(frames)
            if not done and self._collector.complete_rounds == self._job.training.rounds:
                done = True
                self._channel.emit("done", statistics=self._report())
        self._endpoint.settle()
        self._channel.emit("final", statistics=self._report())

    def _report(self) -> dict[str, object]:
        return {**self._endpoint.report(), **self._collector.statistics.to_json()}

    def _serve(self, frames: Frames) -> None:
        answers = self._collector.accept(
            packet_numbers=frames["packet_number"].tolist(),
            bitmaps=frames["worker_bitmap"].tolist(),
            flags=frames["flags"].tolist(),
            senders=[self._worker_of_ip[ip] for ip in frames["src_ip"].tolist()],
            lanes=frames["lanes"].astype(np.int32),
            now_us=now_us(),
        )
        if self._job.acknowledgement == "multicast":
            self._multicast(answers.complete)
        else:
            self._unicast([(number, ip, resent) for number, resent in answers.complete for ip in self._worker_ips])
        self._unicast([(number, self._worker_ips[worker], True) for number, worker in answers.repeats])

    def _multicast(self, complete: Sequence[tuple[int, bool]]) -> None:
        """complete: (packet number, whether it is due to a resend)."""
        assert self._job.multicast_ip is not None and self._job.multicast_mac is not None
        if complete:
            packet_numbers = [number for number, _ in complete]
            self._endpoint.send(
                np.stack([self._collector.sum(number) for number in packet_numbers]),
                packet_numbers=packet_numbers,
                worker_bitmap=self._job.full_bitmap,
                dst_ip=ip_integer(self._job.multicast_ip),
                dst_mac=mac_array(self._job.multicast_mac),
                flags=[_flags(resent) for _, resent in complete],
            )

    def _unicast(self, destinations: Sequence[tuple[int, int, bool]]) -> None:
        """destinations: (packet number, IP address, whether it is due to a resend)."""
        if destinations:
            packet_numbers = [number for number, _, _ in destinations]
            self._endpoint.send(
                np.stack([self._collector.sum(number) for number in packet_numbers]),
                packet_numbers=packet_numbers,
                worker_bitmap=self._job.full_bitmap,
                dst_ip=[ip for _, ip, _ in destinations],
                flags=[_flags(resent) for _, _, resent in destinations],
            )


def _flags(due_to_resend: bool) -> int:
    """An acknowledgement's flags."""
    return (Flags.ACK | Flags.RESEND if due_to_resend else Flags.ACK).value
