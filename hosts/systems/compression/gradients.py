"""Gradients at both ends of the network: what of one is sent and what is held back, and parts put together again."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradbed.hosts.compressors.content import Content, read
from gradbed.hosts.compressors.error_feedback import ErrorFeedback, largest_magnitude
from gradbed.hosts.compressors.fingerprint import MODULUS, fingerprint
from gradbed.hosts.compressors.methods import Compressor, Setting, compressor, nearly_square
from gradbed.hosts.learning.settings import TrainingSettings
from gradbed.hosts.learning.trainer import network
from gradbed.hosts.protocols.frames import Frames
from gradbed.hosts.systems.compression.config import CompressionJob
from gradbed.hosts.systems.compression.frames import is_end

# ---- The compressor of a job ----


def job_compressor(job: CompressionJob, index: int) -> Compressor:
    """Return the compressor of worker `index`; the server has one as well, to put together what came."""
    workload = job.workload
    shapes = network(workload).shapes if isinstance(workload, TrainingSettings) else nearly_square(job.values)
    exponent = getattr(workload, "exponent", None) or 0
    seed = getattr(workload, "seed", 1)
    return compressor(job.compress, Setting(index, seed, exponent, shapes, job.warm_up_rounds))


class DrawnPlaces:
    """The places of a round that all agents of a job know; of the last round that was asked for they are kept."""

    def __init__(self, compressor: Compressor, values: int) -> None:
        self._draw = functools.lru_cache(maxsize=1)(functools.partial(compressor.drawn, values))

    def __call__(self, round_number: int) -> NDArray[np.intp] | None:
        return self._draw(round_number)


# ---- What a worker has to send, what of it was sent, and what is held back; with their fingerprints ----


class HeldBack:
    """The values that one worker holds back, round by round."""

    def __init__(self, job: CompressionJob, index: int) -> None:
        self.compressor = job_compressor(job, index)
        self.drawn = DrawnPlaces(self.compressor, job.values)
        self._feedback = ErrorFeedback(job.values, keeps=job.error_feedback, momentum=job.momentum)
        self._momentum_fingerprint = 0
        self._sent_fingerprint = 0
        self._sent_values = 0
        self._least_sent: int | None = None
        self._most_taken = 0

    def take(self, gradient: NDArray[np.int32], round_number: int) -> Content:
        """Return what to send of a gradient and all before it."""
        momentum = self._feedback.take(gradient)
        self._momentum_fingerprint = 0 if momentum is None else fingerprint(momentum, len(momentum))
        self._most_taken = largest_magnitude(self._feedback.held)
        return self.compressor.compress(self._feedback.held, round_number)

    def sent(self, contents: Iterable[Content]) -> None:
        """Take in that this has come of the content that was taken last: it is not held back any more."""
        self._sent_fingerprint = self._sent_values = 0
        self._least_sent = None
        for content in contents:
            places: NDArray[np.intp] | slice
            if self.compressor.is_placewise:
                places, found = content.places, content.values
            else:
                places, found = slice(None), self.compressor.restored(content.decoded())
            self._feedback.sent(places, found)
            if len(found):
                least = int(np.abs(found).min())
                self._least_sent = least if self._least_sent is None else min(self._least_sent, least)
            self._sent_values += len(found)
            self._sent_fingerprint += fingerprint(found, len(self._feedback.held), places)

    def report(self) -> dict[str, Any]:
        """Return fields of the event `exchanged`.

        Fingerprints of what momentum added to the round's gradient, of what of it was sent, and of what is held back
        now; how many values were sent, the least magnitude of them, and the largest ones of what there was to send
        and of what is held back.
        """
        held = self._feedback.held
        return {
            "values": len(held),
            "momentum_fingerprint": self._momentum_fingerprint,
            "sent_fingerprint": self._sent_fingerprint % MODULUS,
            "held_fingerprint": fingerprint(held, len(held)),
            "sent_values": self._sent_values,
            "least_sent": self._least_sent,
            "most_taken": self._most_taken,
            "most_held": largest_magnitude(held),
        }


# ---- Parts put together: a gradient or a sum, as far as it has come ----


class Assembly:
    """Adds parts to a vector."""

    def __init__(self, length: int, drawn: Callable[[int], NDArray[np.intp] | None] = lambda _: None) -> None:
        """drawn: the places of a round that need not be told (gradbed.hosts.compressors.methods.Compressor)."""
        self._drawn = drawn
        self.values: NDArray[np.int64] = np.zeros(length, np.int64)
        self.fingerprint = 0
        """Of all that was added."""
        self.end_sequence: int | None = None
        """Of the last packet, once that has come."""
        self.rejected = 0
        """Parts that make no sense."""

    def add(self, frames: Frames) -> None:
        """frames: new parts of equal length."""
        length = len(self.values)
        for frame, ends in zip(frames, is_end(frames).tolist(), strict=True):
            if ends:
                self.end_sequence = int(frame["sequence"])
                continue
            drawn = self._drawn(int(frame["round"]))
            found = read(
                int(frame["form"]),
                int(frame["width_bits"]),
                int(frame["unit"]),
                int(frame["first"]),
                int(frame["span"]),
                int(frame["codes"]),
                frame["payload"],
                length if drawn is None else len(drawn),
            )
            if found is None:
                self.rejected += 1
                continue
            positions, values = found
            places = positions if drawn is None else drawn[positions]
            self.values[places] += values
            self.fingerprint = (self.fingerprint + fingerprint(values, length, places)) % MODULUS
