"""The end of a run without failures: what was expected, what arrived, and who agrees on it."""

from __future__ import annotations

from gradbed.experiments.records.results import StudyResults
from gradbed.experiments.systems.workload.expectations import parse_expectation
from gradbed.experiments.traffic.connections import lost_lines

NOTHING_EXPECTED = "Nothing was expected (--expect), so that whether the program does what it should was not checked."


def closing(results: StudyResults) -> str:
    """Two sentences; of many points, whose notes are not shown, also why their connections were lost, a line each."""
    configurations = results.configurations()
    expected = [
        parse_expectation(subject, condition).text
        for point in results.points
        for subject, condition in configurations[point.stored.digest]["expect"].items()
    ]
    said = f"Expected, and found: {', '.join(dict.fromkeys(expected))}." if expected else NOTHING_EXPECTED
    flows = results.table("flows") if len(results.points) > 1 else []
    return "\n".join([f"{said} {_arrived(results)}", *lost_lines(flows)])


def _arrived(results: StudyResults) -> str:
    counted = [point for point in results.points if point.row["sent_packets"] is not None]
    if not counted:
        return "What kernels sent was not counted beside the links."
    sent, received = (sum(point.row[name] for point in counted) for name in ("sent_packets", "received_packets"))
    who = "Hosts, links and switches" if all(point.table("switches") for point in counted) else "Hosts and links"
    return f"{who} agree on every packet: {received or 'none'} of {sent} arrived."
