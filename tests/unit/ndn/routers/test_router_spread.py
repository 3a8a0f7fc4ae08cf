"""Rows of a router's tables against random hashing: segments and publishers follow each other, and must spread like
any other names."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pytest

from gradbed.formats import tlv
from gradbed.hosts.systems.ndn.packets import VersionHead, fragment_name, interest_frame, version_frames
from tests.random_hashing import assert_random
from tests.unit.ndn.routers.one_router import ETHERNET, LANES, OneRouter, interest, name

RUNS = 40
PUBLISHER = 1
HOST = 2


def probes(run: int, names: int) -> Iterator[bytes]:
    """Interests in segments of a version."""
    for segment in range(names):
        yield interest_frame(ETHERNET, fragment_name(name("t", "h1"), 1 + run, segment), 1, 1000)


def prefix_probes(run: int, names: int) -> Iterator[bytes]:
    """Interests in any Data below a segment of a version."""
    for segment in range(names):
        name_tlv = tlv.name_tlv(fragment_name(name("t", "h1"), 1 + run, segment))
        nonce = tlv.tlv(tlv.NONCE, bytes(4))
        yield ETHERNET + tlv.tlv(tlv.INTEREST, name_tlv + tlv.tlv(tlv.CAN_BE_PREFIX, b"") + nonce)


def insertions(run: int, names: int) -> Iterator[bytes]:
    """Subscriptions to publishers that are numbered."""
    for publisher in range(names):
        yield interest("insert", f"h{publisher}", f"t-{run}")


def pushes(run: int, names: int) -> Iterator[bytes]:
    """Segments of a version, pushed."""
    prefix = name("distribute", "h1", "t")
    fragments = np.zeros((names, LANES), np.int32)
    for batch in version_frames(ETHERNET, prefix, 1 + run, VersionHead(0.5), fragments):
        for frame in batch:
            yield frame.tobytes()


@dataclass(frozen=True)
class RowsOf:
    register: str
    frames: Callable[[int, int], Iterator[bytes]]
    port: int


MACROS = ("CONTENTS", "PENDING", "PREFIXES", "SUBSCRIPTIONS")
TABLES = {
    "content store": RowsOf("content_name", pushes, PUBLISHER),
    "pending Interests": RowsOf("pending_name", probes, HOST),
    "pending prefixes": RowsOf("prefix_name", prefix_probes, HOST),
    "persistent PIT": RowsOf("subscription_name", insertions, HOST),
}


@pytest.mark.thorough
@pytest.mark.parametrize("pairs", [32, 256])
@pytest.mark.parametrize("table", TABLES)
def test_as_many_pairs_of_rows_are_taken_as_at_random(table: str, pairs: int) -> None:
    """(A/L)(1 - (1 - 1/A)^L) of L consecutive names, where each finds one of A pairs of rows."""
    rows = TABLES[table]
    loads = (pairs // 2, pairs, 2 * pairs)
    prefixes = {"/t": PUBLISHER, **{f"/t-{run}": PUBLISHER for run in range(RUNS * len(loads))}}
    with OneRouter(2, prefixes, **dict.fromkeys(MACROS, 2 * pairs)) as router:
        router.exchange(HOST, interest("insert", "h1", "t"))
        for load, names in enumerate(loads):
            taken = []
            for run in range(load * RUNS, (load + 1) * RUNS):
                router.clear(rows.register.removesuffix("name"))
                router.exchange(rows.port, *rows.frames(run, names))
                held = np.array(router.register(rows.register)).reshape(pairs, 2)
                taken.append(int(np.any(held, axis=1).sum()))
            assert_random(taken, pairs, names)
