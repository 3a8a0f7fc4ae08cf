"""What a host received: duplicates, order and latencies of each flow, against one packet after the other."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gradbed.formats.traffic import TAG, TRAILER_BYTES, WARM_UP
from gradbed.hosts.traffic.frames import TRAILER_TYPE
from gradbed.hosts.traffic.received_packets import LatencyHistogram, ReceivedPackets

HOST = 7
Row = tuple[int, int, int, int, int, int]

packets = st.tuples(
    st.sampled_from([0, 3, 3 | WARM_UP]),
    st.integers(0, 2),
    st.integers(0, 6),
    st.integers(30, 90),
    st.integers(0, 99),
    st.sampled_from([HOST, HOST, HOST, 4]),
)


def received(rows: list[Row]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Packet i, sent at i us, has arrived 10 * i + its delay us later."""
    buffer = np.zeros((len(rows), 100), np.uint8)
    lengths = np.array([row[3] for row in rows], np.uint32)
    times_ns = np.array([1000 * (11 * i + row[4]) for i, row in enumerate(rows)], np.int64)
    for i, (source, flow, sequence, length, _, host) in enumerate(rows):
        trailer = np.array([(TAG, source, host, flow, sequence, 1000 * i)], TRAILER_TYPE)
        buffer[i, length - TRAILER_BYTES : length] = trailer.view(np.uint8)
    return buffer, lengths, times_ns


@given(st.lists(packets, max_size=40), st.integers(0, 40), st.integers(0, 500_000))
def test_statistics_are_those_of_one_packet_after_the_other(rows: list[Row], split: int, begin_ns: int) -> None:
    buffer, lengths, times_ns = received(rows)
    measured_ns = (begin_ns, begin_ns + 100_000)
    arrived = ReceivedPackets(HOST, measured_ns)
    for part in (slice(None, split), slice(split, None)):
        arrived.add(buffer[part], lengths[part], times_ns[part])
    expected: dict[tuple[int, int], dict[str, int]] = {}
    seen: set[tuple[int, int, int]] = set()
    greatest: dict[tuple[int, int], int] = {}
    latencies: list[int] = []
    for i, (source, flow, sequence, length, _, host) in enumerate(rows):
        if source & WARM_UP or host != HOST:
            continue
        key, latency_ns = (source, flow), int(times_ns[i]) - 1000 * i
        row = expected.setdefault(
            key,
            {"packets": 0, "duplicates": 0, "reordered": 0, "extent": 0, "bytes": 0, "latency_ns_total": 0}
            | {"first_sent_ns": 1000 * i, "last_arrived_ns": 0},
        )
        if (*key, sequence) in seen:
            row["duplicates"] += 1
            continue
        seen.add((*key, sequence))
        latencies.append(latency_ns)
        late = greatest.get(key, 0) - sequence
        greatest[key] = max(greatest.get(key, 0), sequence)
        row["packets"] += 1
        row["reordered"] += late > 0
        row["extent"] = max(row["extent"], late)
        row["bytes"] += length
        row["latency_ns_total"] += latency_ns
        row["last_arrived_ns"] = max(row["last_arrived_ns"], int(times_ns[i]))
    statistics = arrived.statistics()
    flows = statistics["flows"]
    found = {
        key: {name: flows[name][at] for name in expected.get(key, {})}
        for at, key in enumerate(zip(flows["source"], flows["flow"], strict=True))
    }
    assert found == expected
    own = [row[5] == HOST for row in rows]
    assert statistics["warm_up"] == sum(row[0] >= WARM_UP for row, mine in zip(rows, own, strict=True) if mine)
    assert (statistics["foreign"], statistics["misdelivered"]) == (0, own.count(False))
    in_time = [
        (row[3], any(mine and row[:3] == before[:3] for before, mine in zip(rows[:i], own, strict=False)))
        for i, row in enumerate(rows)
        if own[i] and begin_ns <= times_ns[i] < begin_ns + 100_000
    ]
    assert statistics["measured_bytes"] == sum(length for length, copy in in_time if not copy)
    assert statistics["measured_copy_bytes"] == sum(length for length, copy in in_time if copy)
    assert LatencyHistogram.from_json(statistics["histogram"]).count == len(latencies)


def test_foreign_frames_are_counted() -> None:
    buffer, lengths, times_ns = received([(1, 1, 1, 60, 0, HOST), (1, 1, 2, 60, 0, HOST)])
    buffer[1, 60 - TRAILER_BYTES] = 0
    arrived = ReceivedPackets(HOST)
    arrived.add(buffer, lengths, times_ns)
    assert arrived.statistics()["foreign"] == 1
    assert arrived.statistics()["flows"]["packets"] == [1]
