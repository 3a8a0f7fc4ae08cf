"""A worker: computes gradients of its shard, and steps by the global sums that come back."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hosts.agents.channel import Channel
from hosts.agents.clock import now_us
from hosts.agents.endpoint import Endpoint
from hosts.job import JobDescription, ip_integer, mac_bytes
from hosts.learning.dataset import load
from hosts.learning.fragments import cut, join
from hosts.learning.trainer import Replica, Shard
from hosts.protocols.gradient_format import Flags
from hosts.protocols.gradient_frames import Frames
from hosts.transport.raw_socket import RawSocket
from hosts.transport.sender import Sender
from switch.errors import UserError


class Worker:
    """One worker of a job on an open raw socket."""

    def __init__(self, job: JobDescription, index: int, raw_socket: RawSocket, channel: Channel) -> None:
        self._job = job
        self._channel = channel
        self._bit = 1 << index
        self._evaluates = index == 0
        self._dataset = load(job.training.dataset)
        self._replica = Replica(job.training, len(job.workers))
        self._shard = Shard(job.training, self._dataset, index, len(job.workers))
        self._server_ip = ip_integer(job.server.ip)
        multicast = job.acknowledgement == "multicast"
        if multicast and job.multicast_mac:
            raw_socket.join(mac_bytes(job.multicast_mac))
        self._endpoint = Endpoint(
            job,
            job.workers[index],
            [job.server],
            raw_socket,
            sends_acknowledgements=False,
            group_ip=job.multicast_ip if multicast else None,
        )
        self._sender = Sender(
            window_fragments=job.window_fragments,
            min_timeout_us=job.min_timeout_us,
            paths=max(1, len(job.designated_switches)),
        )

    def run(self) -> None:
        """All rounds, then silence: after its last round a worker only counts what still arrives, until stop."""
        self._channel.emit("ready")
        if self._channel.wait_for_begin() and self._train():
            self._channel.emit("done", statistics=self._report())
            while not self._channel.stopped:
                self._channel.wait(self._endpoint.fileno(), None)
                self._endpoint.drain()
        self._endpoint.settle()
        self._channel.emit("final", statistics=self._report())

    def _report(self) -> dict[str, object]:
        return {**self._endpoint.report(), **self._sender.statistics.to_json()}

    def _train(self) -> bool:
        """False: stopped before the last round's end."""
        for round_number in range(self._job.training.rounds):
            start_us = now_us()
            contribution = self._replica.contribution(self._shard.minibatch(round_number))
            fragments = cut(contribution.values, self._job.lanes)
            handed_over_us = now_us()
            sums = self._exchange(round_number, fragments)
            if sums is None:
                return False
            complete_us = now_us()
            self._replica.apply(join(sums, len(contribution.values)))
            end_us = now_us()
            evaluation = (
                {"accuracy": self._replica.network.accuracy(self._replica.weights, self._dataset.test)}
                if self._evaluates
                else {}
            )
            self._channel.emit(
                "round",
                round=round_number,
                seconds=(complete_us - handed_over_us) / 1e6,
                total_seconds=(end_us - start_us) / 1e6,
                weights_sha256=self._replica.digest(),
                loss=contribution.loss,
                clipped=contribution.clipped,
                **evaluation,
            )
        return True

    def _exchange(self, round_number: int, fragments: NDArray[np.int32]) -> NDArray[np.int32] | None:
        """Global sums of the round's fragments, shape like `fragments`; None when stopped."""
        first_number = self._job.first_number(round_number)
        self._sender.begin(first_number, len(fragments), now_us())
        sums = np.empty_like(fragments)
        progress_us = now_us()
        while True:
            # All that has arrived comes first: an agent that the scheduler kept waiting must not take the
            # answers in its queue for lost.
            while (frames := self._endpoint.receive()) is not None:
                if self._take_in(frames, sums):
                    progress_us = now_us()
            if self._sender.finished:
                return sums
            self._transmit(round_number, fragments)
            now = now_us()
            if now - progress_us > self._job.give_up_us:
                raise UserError(
                    f"no answer from server {self._job.server.ip} for {self._job.give_up_us / 1e6:g} s in round "
                    f"{round_number} ({self._sender.missing} of {len(fragments)} fragments missing)"
                )
            deadline_us = self._sender.deadline_us
            self._channel.wait(self._endpoint.fileno(), None if deadline_us is None else max(0, deadline_us - now))
            if self._channel.stopped:
                return None

    def _transmit(self, round_number: int, fragments: NDArray[np.int32]) -> None:
        batch = self._sender.transmissions(now_us())
        if not batch:
            return
        chosen = [transmission.fragment for transmission in batch]
        self._endpoint.send(
            fragments[chosen],
            packet_numbers=[self._job.packet_number(round_number, fragment) for fragment in chosen],
            worker_bitmap=self._bit,
            dst_ip=self._server_ip,
            flags=[Flags.RESEND.value if transmission.resend else 0 for transmission in batch],
        )

    def _take_in(self, frames: Frames, sums: NDArray[np.int32]) -> bool:
        """True if any of the frames was news."""
        after_resends = (frames["flags"] & Flags.RESEND != 0).tolist()
        news = self._sender.answer(frames["packet_number"].tolist(), after_resends, now_us())
        if news:
            positions, chosen = map(list, zip(*news, strict=True))
            sums[chosen] = frames["lanes"][positions]
        return bool(news)
