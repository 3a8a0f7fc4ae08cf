"""What a host has received of the traffic, packet by packet, and what that makes of each flow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradbed.formats.traffic import WARM_UP
from gradbed.hosts.traffic.frames import TRAILER_TYPE, trailers

_RECORD = np.dtype(
    [
        ("source", "u2"),
        ("flow", "u4"),
        ("sequence", "u4"),
        ("bytes", "u2"),
        ("sent_ns", "i8"),
        ("arrived_ns", "i8"),
    ]
)


class ReceivedPackets:
    """Packets that were received, in order. Those for other hosts and foreign ones are only counted, those of the
    warm-up hardly more.

    host: the receiver's number in packets. measured_ns: begin and end of the time whose arrivals are counted
    together, whenever they were sent.
    """

    def __init__(self, host: int, measured_ns: tuple[int, int] = (0, 0)) -> None:
        self._host = host
        self.foreign = 0
        self.misdelivered = 0
        self.measured_ns = measured_ns
        self._parts: list[NDArray[np.void]] = []

    def add(self, buffer: NDArray[np.uint8], lengths: NDArray[np.uint32], times_ns: NDArray[np.int64]) -> None:
        """A received batch (gradbed.hosts.agents.context.Interface.receive, times_ns)."""
        found, chosen = trailers(buffer, lengths)
        self.foreign += len(lengths) - len(found)
        own = found["receiver"] == self._host
        self.misdelivered += len(own) - int(own.sum())
        found, rows = found[own], np.flatnonzero(chosen)[own]
        records = np.empty(len(found), _RECORD)
        for name in TRAILER_TYPE.names or ():
            if name in _RECORD.names:  # type: ignore[operator]
                records[name] = found[name]
        records["bytes"], records["arrived_ns"] = lengths[rows], times_ns[rows]
        self._parts.append(records)

    def statistics(self) -> dict[str, Any]:
        """Return the statistics as JSON values.

        These are counts; measured_bytes, of all packets for this host that arrived in the measured time, among them
        the warm-up's, and measured_copy_bytes, of their duplicates; `flows`, columns with one element for each flow
        of which anything has arrived; and the histogram of the latencies of all packets but duplicates.

        Of a flow: packets, duplicates (of which a copy came before), reordered (RFC 4737: a packet with a larger
        number came before) and extent, the greatest distance by which a number was too late; bytes, first_sent_ns,
        first_arrived_ns, last_arrived_ns and the latencies' sum, least and greatest, of all but duplicates.
        """
        records = np.concatenate(self._parts) if self._parts else np.zeros(0, _RECORD)
        flow_keys, places = np.unique(records["source"].astype(np.int64) << 32 | records["flow"], return_inverse=True)
        # Stable: inside a flow the order of arrival stays.
        order = np.argsort(places, kind="stable")
        records, places = records[order], places[order]
        keys = (places.astype(np.int64) << 32) + records["sequence"]
        first = np.zeros(len(keys), np.bool_)
        first[np.unique(keys, return_index=True)[1]] = True
        begin_ns, end_ns = self.measured_ns
        in_time = (records["arrived_ns"] >= begin_ns) & (records["arrived_ns"] < end_ns)
        measured_bytes, copy_bytes = (
            int(records["bytes"][in_time & chosen].sum(dtype=np.int64)) for chosen in (first, ~first)
        )
        # Sources of the warm-up are behind all others.
        flows = int(np.searchsorted(flow_keys, WARM_UP << 32))
        count = int(np.searchsorted(places, flows))
        warm_up = len(records) - count
        records, places, keys, first = records[:count], places[:count], keys[:count], first[:count]
        copies = np.bincount(places[~first], minlength=flows)
        records, places, keys = records[first], places[first], keys[first]
        greatest = np.maximum.accumulate(keys)
        late = greatest - keys
        latencies_ns = records["arrived_ns"] - records["sent_ns"]
        begins = np.searchsorted(places, np.arange(flows), "left")
        return {
            "foreign": self.foreign,
            "misdelivered": self.misdelivered,
            "warm_up": warm_up,
            "measured_bytes": measured_bytes,
            "measured_copy_bytes": copy_bytes,
            "histogram": LatencyHistogram.of(latencies_ns).as_json(),
            "flows": {
                "source": (flow_keys[:flows] >> 32).tolist(),
                "flow": (flow_keys[:flows] & 0xFFFFFFFF).tolist(),
                "packets": np.bincount(places, minlength=flows).tolist(),
                "duplicates": copies.tolist(),
                "reordered": np.bincount(places[late > 0], minlength=flows).tolist(),
                "extent": _by_flow(np.maximum, late, begins),
                "bytes": _by_flow(np.add, records["bytes"].astype(np.int64), begins),
                "first_sent_ns": _by_flow(np.minimum, records["sent_ns"], begins),
                "first_arrived_ns": _by_flow(np.minimum, records["arrived_ns"], begins),
                "last_arrived_ns": _by_flow(np.maximum, records["arrived_ns"], begins),
                "latency_ns_total": _by_flow(np.add, latencies_ns, begins),
                "latency_ns_least": _by_flow(np.minimum, latencies_ns, begins),
                "latency_ns_greatest": _by_flow(np.maximum, latencies_ns, begins),
            },
        }


def _by_flow(combine: np.ufunc, values: NDArray[np.int64], begins: NDArray[np.int64]) -> list[int]:
    """Return each flow's values combined; begins: where those of each flow begin. Every flow has some."""
    return combine.reduceat(values, begins).tolist() if len(begins) else []


# ---- Latency histogram ----


PRECISION_BITS = 10


def bins_of(latencies_ns: NDArray[np.int64]) -> NDArray[np.int64]:
    """The bin of each latency, shape (latencies,); negative ones count as 0."""
    values = np.maximum(latencies_ns, 0)
    # The exponent of a float is exact below 2^53 ns, which are three months.
    exponent = np.maximum(np.frexp(values.astype(np.float64))[1].astype(np.int64) - PRECISION_BITS - 1, 0)
    bins: NDArray[np.int64] = (exponent << PRECISION_BITS) + (values >> exponent)
    return bins


def middle_ns(bins: NDArray[np.int64]) -> NDArray[np.float64]:
    """The latency that stands for each bin."""
    exponent = np.maximum((bins >> PRECISION_BITS) - 1, 0)
    low = (bins - (exponent << PRECISION_BITS)) << exponent
    middle: NDArray[np.float64] = low + ((1 << exponent) - 1) / 2
    return middle


class LatencyHistogram:
    """Latencies by bin. bins: rising; counts: of each."""

    def __init__(self, bins: NDArray[np.int64], counts: NDArray[np.int64]) -> None:
        self.bins, self.counts = bins, counts

    @classmethod
    def of(cls, latencies_ns: NDArray[np.int64]) -> LatencyHistogram:
        return cls(*np.unique(bins_of(latencies_ns), return_counts=True))

    @classmethod
    def joined(cls, histograms: Sequence[LatencyHistogram]) -> LatencyHistogram:
        if not histograms:
            return cls(np.zeros(0, np.int64), np.zeros(0, np.int64))
        bins, places = np.unique(np.concatenate([each.bins for each in histograms]), return_inverse=True)
        counts = np.zeros(len(bins), np.int64)
        np.add.at(counts, places, np.concatenate([each.counts for each in histograms]))
        return cls(bins, counts)

    @property
    def count(self) -> int:
        return int(self.counts.sum())

    def percentile_ns(self, percent: float) -> float | None:
        """The least latency that so many percent do not exceed (nearest rank); None: there is none at all."""
        if not self.count:
            return None
        rank = max(1, int(np.ceil(self.count * percent / 100 - 1e-9)))
        place = int(np.searchsorted(np.cumsum(self.counts), rank, "left"))
        return float(middle_ns(self.bins[place : place + 1])[0])

    def distribution(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Latencies in nanoseconds, and the share that is not longer."""
        return middle_ns(self.bins), np.cumsum(self.counts) / max(1, self.count)

    def as_json(self) -> dict[str, list[int]]:
        return {"bins": self.bins.tolist(), "counts": self.counts.tolist()}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> LatencyHistogram:
        return cls(np.array(value["bins"], np.int64), np.array(value["counts"], np.int64))
