"""What a worker has to send, what of it was sent, and what is held back; with their fingerprints."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradbed.hosts.compressors.content import Content
from gradbed.hosts.compressors.error_feedback import ErrorFeedback, largest_magnitude
from gradbed.hosts.compressors.fingerprint import MODULUS, fingerprint
from gradbed.hosts.systems.compression.compressors import DrawnPlaces, job_compressor
from gradbed.hosts.systems.compression.description import JobDescription


class HeldBack:
    """One worker's, round by round."""

    def __init__(self, job: JobDescription, index: int) -> None:
        self.compressor = job_compressor(job, index)
        self.drawn = DrawnPlaces(self.compressor, job.values)
        self._feedback = ErrorFeedback(job.values, keeps=job.error_feedback, momentum=job.momentum)
        self._momentum_fingerprint = 0
        self._sent_fingerprint = 0
        self._sent_values = 0
        self._least_sent: int | None = None
        self._most_taken = 0

    def take(self, gradient: NDArray[np.int32], round_number: int) -> Content:
        """What to send of a gradient and all before it."""
        momentum = self._feedback.take(gradient)
        self._momentum_fingerprint = 0 if momentum is None else fingerprint(momentum, len(momentum))
        self._most_taken = largest_magnitude(self._feedback.held)
        return self.compressor.compress(self._feedback.held, round_number)

    def sent(self, contents: Iterable[Content]) -> None:
        """This has come of the content that was taken last: it is not held back any more."""
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
        """For the event `exchanged`: fingerprints of what momentum added to the round's gradient, of what of it was
        sent, and of what is held back now; how many values were sent, the least magnitude of them, and the largest
        ones of what there was to send and of what is held back."""
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
