"""Do the marks in packets (hosts/traffic/frames.py) and the interfaces beneath agents tell of the same packets?"""

from __future__ import annotations

from gradbed.experiments.traffic.results import TrafficResults
from gradbed.hosts.traffic.histogram import LatencyHistogram


def mark_disagreements(results: TrafficResults) -> list[str]:
    """A line for each host whose agent says something else than its interface carried."""
    lines = []
    for host, report in results.reports.items():
        (carried,) = report["interfaces"].values()
        flows, begun = report["flows"], report["sent_flows"]
        sent = sum(begun["packets"]) + report["warm_up_sent"] + report["replayed"]
        others = sum(report[kind] for kind in ("warm_up", "foreign", "misdelivered"))
        received = sum(flows["packets"]) + sum(flows["duplicates"]) + others
        timed = LatencyHistogram.from_json(report["histogram"]).count
        if timed != sum(flows["packets"]):
            lines.append(f"{host} tells latencies of {timed} packets, and the arrival of {sum(flows['packets'])}")
        for what, marked, frames in (
            ("sent", sent, carried["sent_frames"]),
            ("received", received, carried["received_frames"]),
        ):
            if marked != frames:
                lines.append(f"{host} {what} {marked} packets by their marks, and {frames} by its interface")
    return lines
