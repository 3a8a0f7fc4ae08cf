"""What people should look at first when packets did not arrive: one line for each cause."""

from __future__ import annotations

from collections.abc import Mapping

from experiments.tables.metric import Value


def notes(metrics: Mapping[str, Value]) -> list[str]:
    """In words; none where everything arrived."""

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
    if count("no_entry_drops"):
        lines.append(
            f"{count('no_entry_drops')} packets were dropped for want of an entry in the last table they met: "
            "gradbed p4 trace shows one"
        )
    if metrics.get("unfinished_flows"):
        lines.append(
            f"{count('unfinished_flows')} connections did not carry all that they were given: "
            "kernels take in what comes to their own MAC and IP addresses alone"
        )
    if metrics.get("received_packets") == 0:
        lines.append("nothing arrived at the host that it was sent to")
    if count("misdelivered"):
        lines.append(
            f"{count('misdelivered')} packets came to another host than theirs: do the program and its entries go by "
            "the destination?"
        )
    return lines
