"""What a host has received of the traffic, packet by packet, and what that makes of each flow."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradbed.formats.traffic import WARM_UP
from gradbed.hosts.traffic.frames import TRAILER_TYPE, trailers
from gradbed.hosts.traffic.histogram import LatencyHistogram

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


class Arrived:
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
        """As JSON: counts; measured_bytes, of all packets for this host that arrived in the measured time, the
        warm-up's among them, and measured_copy_bytes, of their duplicates; `flows`, columns with one element for each
        flow of which anything has arrived; and the histogram of the latencies of all packets but duplicates.

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
    """Each flow's values combined; begins: where those of each flow begin. Every flow has some."""
    return combine.reduceat(values, begins).tolist() if len(begins) else []
