"""Results of a traffic's agents together: losses, latencies, reordering, throughput, flow completion times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradbed.experiments.traffic.agents import NAME, TrafficPlan
from gradbed.hosts.traffic.received_packets import LatencyHistogram
from gradbed.hosts.traffic.schedule import has_flows

Final = Mapping[tuple[int, str], Mapping[str, Any]]
"""gradbed.experiments.phases.Measured.final."""

Columns = dict[str, NDArray[Any]]
Reports = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class TrafficResults:
    """Results of UDP traffic; times and rates are nominal.

    Packets of the warm-up are in none of them but delivered_bps. What stopped agents sent or received is unknown, and
    none of it is in the flows.
    """

    traffic: TrafficPlan
    flows: Columns
    """A row for each flow that was sent, as columns: sender, receiver, packets, bytes, begin_ns.

    Further columns are those of gradbed.hosts.traffic.arrived for what its receiver got (received_packets,
    received_bytes).
    """
    histogram: LatencyHistogram
    misdelivered: int
    """Packets that came to a wrong host."""
    foreign: int
    """Frames that no agent made, such as those of a replay."""
    replayed: int = 0
    """Frames of capture files that were sent."""
    measured_bytes: int = 0
    """Bytes of all packets that arrived in the measured time."""
    measured_copy_bytes: int = 0
    """Bytes of duplicates that arrived in the measured time."""
    reports: Reports = field(default_factory=dict)
    """Final report of each host's agent."""

    @classmethod
    def of(cls, traffic: TrafficPlan, final: Final, job: int = 1) -> TrafficResults:
        """Collect the results of one job from the agents that have reported."""
        reports = {
            host: final[job, NAME.format(host)]
            for host in traffic.sources
            if "flows" in final.get((job, NAME.format(host)), {})
        }
        sent = _sent(traffic, reports)
        place = {key: row for row, key in enumerate(zip(sent["source"].tolist(), sent["flow"].tolist(), strict=True))}
        got = {name: np.zeros(len(place), np.int64) for name in _GOT}
        for report in reports.values():
            arrived = report["flows"]
            for row, key in enumerate(zip(arrived["source"], arrived["flow"], strict=True)):
                if traffic.sources[key[0]] in reports:
                    for name in _GOT:
                        got[name][place[key]] = arrived[name][row]
        return cls(
            traffic,
            {**sent, **{f"received_{name}" if name in sent else name: values for name, values in got.items()}},
            LatencyHistogram.joined([LatencyHistogram.from_json(each["histogram"]) for each in reports.values()]),
            sum(each["misdelivered"] for each in reports.values()),
            sum(each["foreign"] for each in reports.values()),
            sum(each["replayed"] for each in reports.values()),
            sum(each["measured_bytes"] for each in reports.values()),
            sum(each["measured_copy_bytes"] for each in reports.values()),
            reports,
        )

    # ---- Totals ----

    @property
    def sent(self) -> int:
        return int(self.flows["packets"].sum())

    @property
    def received(self) -> int:
        """Number of packets received, without duplicates."""
        return int(self.flows["received_packets"].sum())

    @property
    def lost(self) -> int:
        return self.sent - self.received

    @property
    def loss(self) -> float | None:
        """Fraction of the sent packets that was lost; None: nothing was sent."""
        return self.lost / self.sent if self.sent else None

    @property
    def duplicates(self) -> int:
        return int(self.flows["duplicates"].sum())

    @property
    def reordered(self) -> int:
        return int(self.flows["reordered"].sum())

    @property
    def taken_ns(self) -> int | None:
        """Emulated time from the first packet's sending to the last one's arrival."""
        arrived = self.flows["received_packets"] > 0
        if not arrived.any():
            return None
        return int(self.flows["last_arrived_ns"][arrived].max() - self.flows["first_sent_ns"][arrived].min())

    @property
    def throughput_bps(self) -> float | None:
        """Throughput of received frames in that time, all hosts together."""
        taken_ns = self.taken_ns
        return None if taken_ns is None else self._rate_bps(int(self.flows["received_bytes"].sum()), taken_ns)

    @property
    def delivered_bps(self) -> float | None:
        """Throughput of frames received during the measured time, all hosts together.

        It is what the network carries, without what only fills its queues. None where a number of packets is sent, or
        a capture file.
        """
        section = self.traffic.section
        if section.packets is not None or self.replayed:
            return None
        return 8e3 * self.measured_bytes / (section.duration_ms - section.warm_up_ms)

    def latency_us(self, percent: float) -> float | None:
        """Return a percentile of the latency of all packets that arrived, without duplicates."""
        found = self.histogram.percentile_ns(percent)
        return None if found is None else self._time_us(found)

    @property
    def mean_latency_us(self) -> float | None:
        """Mean latency of the packets that the percentiles are of, including those of stopped agents."""
        arrived = [report["flows"] for report in self.reports.values()]
        packets, total_ns = (sum(sum(flows[name]) for flows in arrived) for name in ("packets", "latency_ns_total"))
        return self._time_us(total_ns / packets) if packets else None

    @property
    def all_reported(self) -> bool:
        """Return whether all agents ran to their end, so that the flows are all that was sent."""
        return len(self.reports) == len(self.traffic.sources)

    def latency_distribution(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return latencies in microseconds, and for each the fraction that is not longer."""
        latencies_ns, shares = self.histogram.distribution()
        return latencies_ns * self.traffic.scale.factor / 1000, shares

    # ---- Flows ----

    @cached_property
    def completion_us(self) -> NDArray[np.float64]:
        """Completion time of each flow, from its begin at the sender to its last packet's arrival; NaN if packets
        are missing.
        """
        flows = self.flows
        whole = (flows["packets"] > 0) & (flows["received_packets"] == flows["packets"])
        taken_ns = np.where(whole, flows["last_arrived_ns"] - flows["begin_ns"], np.nan)
        result: NDArray[np.float64] = taken_ns * self.traffic.scale.factor / 1000
        return result

    # ---- Tables ----

    def pair_rows(self) -> list[dict[str, Any]]:
        """Return a row for each pair that sent."""
        flows = self.flows
        names = [f"{a} {b}" for a, b in zip(flows["sender"], flows["receiver"], strict=True)]
        pairs, places = np.unique(np.array(names, dtype=str), return_inverse=True)
        return [self._pair_row(str(pair), np.flatnonzero(places == row)) for row, pair in enumerate(pairs.tolist())]

    def _pair_row(self, pair: str, rows: NDArray[np.int64]) -> dict[str, Any]:
        flows = {name: values[rows] for name, values in self.flows.items()}
        sender, receiver = pair.split(" ")
        sent, received = int(flows["packets"].sum()), int(flows["received_packets"].sum())
        arrived = flows["received_packets"] > 0
        row: dict[str, Any] = {
            "sender": sender,
            "receiver": receiver,
            "sent_packets": sent,
            "received_packets": received,
            "lost_packets": sent - received,
            "duplicates": int(flows["duplicates"].sum()),
            "reordered": int(flows["reordered"].sum()),
            "reordering_extent": int(flows["extent"].max()),
        }
        if not received:
            return {**row, **dict.fromkeys(("throughput_bps", "latency_us_mean", "latency_us_min", "latency_us_max"))}
        taken_ns = int(flows["last_arrived_ns"][arrived].max() - flows["first_sent_ns"][arrived].min())
        return {
            **row,
            "throughput_bps": self._rate_bps(int(flows["received_bytes"].sum()), taken_ns),
            "latency_us_mean": self._time_us(int(flows["latency_ns_total"].sum()) / received),
            "latency_us_min": self._time_us(int(flows["latency_ns_least"][arrived].min())),
            "latency_us_max": self._time_us(int(flows["latency_ns_greatest"][arrived].max())),
        }

    def flow_rows(self) -> list[dict[str, Any]]:
        """Return a row for each flow where sizes are those of flows; otherwise none."""
        if not has_flows(self.traffic.section.agent_sizes):
            return []
        flows = self.flows
        return [
            {
                "sender": str(flows["sender"][row]),
                "receiver": str(flows["receiver"][row]),
                "packets": int(flows["packets"][row]),
                "bytes": int(flows["bytes"][row]),
                "received_packets": int(flows["received_packets"][row]),
                "completion_us": None if np.isnan(taken) else float(taken),
            }
            for row, taken in enumerate(self.completion_us)
            if flows["packets"][row]
        ]

    def _time_us(self, time_ns: float) -> float:
        return self.traffic.scale.nominal_time(time_ns) / 1000

    def _rate_bps(self, size: int, taken_ns: int) -> float | None:
        return self.traffic.scale.nominal_rate(8e9 * size / taken_ns) if taken_ns > 0 else None


_GOT = (
    "packets",
    "bytes",
    "duplicates",
    "reordered",
    "extent",
    "first_sent_ns",
    "first_arrived_ns",
    "last_arrived_ns",
    "latency_ns_total",
    "latency_ns_least",
    "latency_ns_greatest",
)


def _sent(traffic: TrafficPlan, reports: Reports) -> Columns:
    """Return the flows between hosts that have reported."""
    columns: dict[str, list[Any]] = {
        name: [] for name in ("source", "flow", "sender", "receiver", "begin_ns", "packets", "bytes")
    }
    for host, report in reports.items():
        source, sent = traffic.sources.index(host), report["sent_flows"]
        receivers = [traffic.streams[host][stream] for stream in sent["stream"]]
        flows = [flow for flow, receiver in enumerate(receivers) if receiver in reports]
        columns["source"] += [source] * len(flows)
        columns["flow"] += flows
        columns["sender"] += [host] * len(flows)
        columns["receiver"] += [receivers[flow] for flow in flows]
        for name in ("begin_ns", "packets", "bytes"):
            columns[name] += [sent[name][flow] for flow in flows]
    return {
        name: np.array(values, dtype=str if name in ("sender", "receiver") else np.int64)
        for name, values in columns.items()
    }
