"""What a publisher has: its last versions, and the requests for versions that it has not made yet."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gradbed.formats.tlv import Name
from gradbed.hosts.systems.ndn.packets.gradient_format import VersionHead, body


@dataclass(frozen=True)
class Publication:
    """fragments: shape (fragments, lanes)."""

    head: VersionHead
    fragments: NDArray[np.int32]


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
        """Of a fragment's Data; None: not to be had now. A request for a coming version is kept."""
        publication = self._versions.get(version)
        if publication is not None and segment < len(publication.fragments):
            return body(publication.head, publication.fragments[segment])
        if version >= self._next:
            self._requests.setdefault(version, set()).add((prefix, segment))
        return None
