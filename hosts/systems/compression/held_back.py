"""What a worker has to send, what of it was sent, and what is held back; with fingerprints of all three."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hosts.compressors.content import Content
from hosts.compressors.error_feedback import ErrorFeedback
from hosts.compressors.fingerprint import MODULUS, fingerprint
from hosts.systems.compression.compressors import job_compressor
from hosts.systems.compression.description import JobDescription


class HeldBack:
    """One worker's, round by round."""

    def __init__(self, job: JobDescription, index: int) -> None:
        self.compressor = job_compressor(job, index)
        self._keeps = job.error_feedback
        self._feedback = ErrorFeedback(job.values, keeps=job.error_feedback, momentum=job.momentum)
        self._added: NDArray[np.int64] = np.zeros(0, np.int64)
        self._added_fingerprint = 0
        self._sent_fingerprint = 0
        self._round_fingerprint = 0

    def take(self, gradient: NDArray[np.int32], round_number: int) -> Content:
        """What to send of a gradient and all before it."""
        self._added = self._feedback.take(gradient)
        return self.compressor.compress(self._feedback.held, round_number)

    def sent(self, contents: Iterable[Content]) -> None:
        """This has come of the content that was taken last: it is not held back any more."""
        values = len(self._added)
        self._added_fingerprint = (self._added_fingerprint + fingerprint(self._added, values)) % MODULUS
        self._round_fingerprint = 0
        for content in contents:
            places: NDArray[np.intp] | slice
            if self.compressor.is_placewise:
                places, found = content.places, content.values
            else:
                places, found = slice(None), self.compressor.restored(content.decoded())
            self._feedback.sent(places, found)
            self._round_fingerprint += fingerprint(found, values, places)
        self._round_fingerprint %= MODULUS
        self._sent_fingerprint = (self._sent_fingerprint + self._round_fingerprint) % MODULUS

    def told(self) -> dict[str, Any]:
        """For the event `exchanged`. is_complete: what was sent and what is held back are all gradients."""
        held = self._feedback.held
        together = (self._sent_fingerprint + fingerprint(held, len(held))) % MODULUS
        return {
            "values": len(held),
            "sent_fingerprint": self._round_fingerprint,
            "is_complete": not self._keeps or together == self._added_fingerprint,
        }
