"""Report of a run: notes on packets that did not arrive, and the closing lines of a run without failures."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from gradbed.experiments.results.study_results import StudyResults
from gradbed.experiments.systems.workload.checks import parse_expectation
from gradbed.experiments.tables.metric import Value
from gradbed.experiments.traffic.connections import lost_lines

# ---- When packets did not arrive ----


MOST_DROP_LINES = 5


def notes(metrics: Mapping[str, Value], drops: Sequence[Mapping[str, Any]] = ()) -> list[str]:
    """Return a line for each cause of missing packets; none where all arrived.

    Args:
        drops: rows of the table "drops".
    """

    def count(name: str) -> int:
        value = metrics.get(name)
        return int(value) if isinstance(value, (int, float)) else 0

    lines = []
    if count("no_port_drops"):
        lines.append(
            f"{count('no_port_drops')} packets were sent to a port that does not exist: does the program set "
            "egress_spec, and do the entries name ports of this topology?"
        )
    if count("to_controller"):
        lines.append(
            f"{count('to_controller')} packets were sent to port 510, the controller's, where nobody listens here: "
            "gradbed up --controller runs a program with one"
        )
    if count("no_group_drops"):
        lines.append(f"{count('no_group_drops')} packets were sent to multicast groups that have no ports")
    lines += _program_drop_lines(drops)
    if metrics.get("unfinished_flows"):
        lines.append(
            f"{count('unfinished_flows')} connections did not carry all that they were given: "
            + (
                "what came of them is in pairs.csv and flows.csv"
                if metrics.get("throughput_bps")
                else "kernels take in what comes to their own MAC and IP addresses alone"
            )
        )
    if metrics.get("received_packets") == 0:
        lines.append("nothing arrived at the host that it was sent to")
    if count("misdelivered"):
        lines.append(
            f"{count('misdelivered')} packets came to another host than theirs: do the program and its entries go by "
            "the destination?"
        )
    return lines


def _program_drop_lines(drops: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a line for each place of the program that dropped packets, over all switches; the most first."""
    packets: dict[str, int] = defaultdict(int)
    switches: dict[str, list[str]] = defaultdict(list)
    for row in drops:
        packets[row["dropped"]] += row["packets"]
        switches[row["dropped"]].append(row["switch"])
    ranked = sorted(packets, key=lambda site: -packets[site])
    lines = []
    for site in ranked[:MOST_DROP_LINES]:
        names = sorted(switches[site])
        where = names[0] if len(names) == 1 else f"{len(names)} switches"
        lines.append(f"{packets[site]} packets were dropped {site} ({where}): gradbed p4 trace shows one")
    if more := ranked[MOST_DROP_LINES:]:
        rest = sum(packets[site] for site in more)
        lines.append(f"{rest} packets were dropped at {len(more)} other places of the program: drops.csv lists all")
    return lines


# ---- Without failures ----


NOTHING_EXPECTED = "The run checked no expectations about the program (--expect)."


def closing(results: StudyResults) -> str:
    """Return two closing sentences.

    For several trials, whose notes are not shown, lines follow about why their connections were lost.
    """
    configurations = results.configurations()
    expected = [
        parse_expectation(subject, condition).text
        for trial in results.trials
        for subject, condition in configurations[trial.digest]["expect"].items()
    ]
    said = f"Expectations met: {', '.join(dict.fromkeys(expected))}." if expected else NOTHING_EXPECTED
    flows = results.table("flows") if len(results.trials) > 1 else []
    return "\n".join([f"{said} {_arrived(results)}", *lost_lines(flows)])


def _arrived(results: StudyResults) -> str:
    counted = [trial for trial in results.trials if trial.row["sent_packets"] is not None]
    if not counted:
        return "Packets from the kernels of hosts were not compared with counts of links."
    sent, received = (sum(trial.row[name] for trial in counted) for name in ("sent_packets", "received_packets"))
    who = "Hosts, links and switches" if all(trial.table("switches") for trial in counted) else "Hosts and links"
    return f"{who} agree on every packet: {received or 'none'} of {sent} arrived."
