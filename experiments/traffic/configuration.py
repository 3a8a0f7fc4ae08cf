"""The configuration section of traffic, with nominal rates and times."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import model_validator

from gradbed.experiments.configuration.sections import Section, option
from gradbed.experiments.scale import Scale
from gradbed.experiments.traffic.patterns import Within
from gradbed.hosts.traffic.config import ArrivalKind, Arrivals, Sizes


class TrafficSection(Section):
    """Traffic between hosts: UDP with sequence numbers and timestamps in the packets, or the kernel's TCP."""

    pattern: str = option(
        "all-to-all",
        "Who sends to whom: all-to-all, permutation, stride:N, pairs, incast[:N], hotspot[:SHARE].",
        name="traffic",
    )
    within: Within = option("anywhere", "Pairs of one rack or pod alone, or of different ones.")
    matrix: Path | None = option(
        None, "Rates of pairs in Mbit/s (CSV), in place of a pattern.", name="traffic_matrix"
    )
    load: float | None = option(
        None,
        "Load offered to the busiest link of a host, as a fraction of its rate (default: 0.5; of a matrix its own).",
        gt=0,
        le=10,
    )
    transport: Literal["udp", "tcp", "iperf3"] = option(
        "udp", "udp: datagrams with time stamps; tcp, iperf3: the kernel's (real clock)."
    )
    arrivals: ArrivalKind = option("poisson", "Arrival process of packets or flows.")
    on_us: float = option(1000.0, "Mean burst of on-off traffic.", gt=0)
    off_us: float = option(1000.0, "Mean pause of on-off traffic.", ge=0)
    bursts: Literal["constant", "exponential"] = option(
        "exponential", "Lengths of bursts and pauses; constant: all hosts at the same times."
    )
    sizes: Literal["fixed", "uniform", "exponential", "web-search", "data-mining"] = option(
        "fixed", "Of frames: fixed, uniform, exponential; of flows, as published: web-search, data-mining."
    )
    frame_bytes: int = option(1000, "Frame size without FCS: fixed size, mean or maximum.", ge=64, le=9234)
    most_flow_kbytes: int | None = option(None, "Size to which longer flows are cut.", ge=1)
    flows: int = option(1, "Number of 5-tuples of each pair, which take turns.", ge=1, le=16384)
    packets: int | None = option(None, "Total number of packets (or flows), in place of a duration.", ge=1)
    duration_ms: float = option(100.0, "Duration of sending.", gt=0)
    warm_up_ms: float = option(0.0, "Warm-up time, whose packets are not measured.", ge=0)

    @model_validator(mode="after")
    def _fits(self) -> TrafficSection:
        if self.packets is None and self.warm_up_ms >= self.duration_ms:
            raise ValueError(
                f"a warm-up of {self.warm_up_ms:g} ms leaves nothing of {self.duration_ms:g} ms to measure"
            )
        if self.sizes in ("web-search", "data-mining") and self.flows > 1:
            raise ValueError(f"flows: {self.sizes} makes flows of its own")
        return self

    @property
    def is_drawn(self) -> bool:
        """Whether the seed decides who sends what, or when.

        With constant arrivals it decides the first packet of each pair.
        """
        is_regular = self.arrivals == "on-off" and self.bursts == "constant" and self.sizes == "fixed"
        return not is_regular or (self.matrix is None and self.pattern.startswith("permutation"))

    def agent_arrivals(self, scale: Scale) -> Arrivals:
        on_us, off_us = scale.time_us(self.on_us), scale.time_us(self.off_us)
        return Arrivals(kind=self.arrivals, on_us=max(1, on_us), off_us=off_us, bursts=self.bursts)

    @property
    def agent_sizes(self) -> Sizes:
        return Sizes(
            kind=self.sizes,
            frame_bytes=self.frame_bytes,
            most_bytes=min(9234, max(1514, 15 * self.frame_bytes)) if self.sizes == "exponential" else 1514,
            most_flow_bytes=None if self.most_flow_kbytes is None else 1000 * self.most_flow_kbytes,
        )
