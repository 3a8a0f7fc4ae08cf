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
        "Traffic pattern: all-to-all, permutation, stride:N, pairs, incast[:N] or hotspot[:SHARE].",
        name="traffic",
    )
    within: Within = option(
        "anywhere", "Restrict sender-receiver pairs: anywhere, within or across racks or pods.", advanced=True
    )
    matrix: Path | None = option(
        None, "Traffic matrix in place of a pattern: a CSV file of rates in Mbit/s.", name="traffic_matrix"
    )
    load: float | None = option(
        None,
        "Offered load of the busiest host link, as a fraction of its rate (default: 0.5, or what the matrix says).",
        gt=0,
        le=10,
    )
    transport: Literal["udp", "tcp", "iperf3"] = option(
        "udp",
        "Transport of the traffic: udp (datagrams with timestamps), or tcp or iperf3 (the kernel's; real clock).",
        panel="Transport",
    )
    arrivals: ArrivalKind = option("poisson", "Arrival process of packets or flows.")
    on_us: float = option(1000.0, "Mean burst length of on-off traffic in us.", gt=0, advanced=True)
    off_us: float = option(1000.0, "Mean idle time of on-off traffic in us.", ge=0, advanced=True)
    bursts: Literal["constant", "exponential"] = option(
        "exponential",
        "Distribution of burst lengths and idle times: exponential, or constant (synchronised hosts).",
        advanced=True,
    )
    sizes: Literal["fixed", "uniform", "exponential", "web-search", "data-mining"] = option(
        "fixed",
        "Frame sizes: fixed, uniform or exponential; or flow sizes: web-search (DCTCP) or data-mining (VL2).",
    )
    frame_bytes: int = option(
        1000, "Frame size in bytes without FCS: the fixed size, the mean or the maximum.", ge=64, le=9234
    )
    most_flow_kbytes: int | None = option(None, "Maximum flow size in kB; longer flows are cut.", ge=1, advanced=True)
    flows: int = option(1, "Number of flows (5-tuples) of each pair.", ge=1, le=16384)
    packets: int | None = option(None, "Total number of packets (or flows) to send, in place of a duration.", ge=1)
    duration_ms: float = option(100.0, "Duration of the traffic in ms.", gt=0)
    warm_up_ms: float = option(0.0, "Warm-up time in ms, left out of all metrics.", ge=0)

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
