"""Do the hosts' own counts agree with those of their links? For any system, since the agents' contexts count."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from emulation.switches.fabric_layout import interface_name
from experiments.accounts.accounting import HostAccount, Tally
from experiments.accounts.counts import Counts
from experiments.configuration.faults import Fault, restarted_switches, touched_agents
from topo.graph import Topology


def host_accounts(
    topology: Topology, counts: Counts, final: Mapping[tuple[int, str], Mapping[str, Any]]
) -> list[HostAccount]:
    """final: the last statistics of every agent, with what its interfaces carried.

    One for each interface that agents opened. Frames that no agent takes in (other types, other UDP ports) come
    out as a disagreement, and so do those that two agents of a host both take in."""
    accounts = []
    for link in topology.host_links:
        host, switch = (link.a, link.b) if topology.is_host(link.a.node) else (link.b, link.a)
        opened = [
            statistics["interfaces"][interface_name(host)]
            for statistics in final.values()
            if interface_name(host) in statistics.get("interfaces", {})
        ]
        if opened:
            sent = Tally(sum(each["sent_frames"] for each in opened), sum(each["sent_bytes"] for each in opened))
            received = Tally(
                sum(each["received_frames"] for each in opened), sum(each["received_bytes"] for each in opened)
            )
            drops = sum(each["drops"] for each in opened)
            accounts.append(counts.link_account(host.node, switch.node, sent, received, drops))
    return accounts


def uncounted_hosts(
    topology: Topology, faults: Sequence[Fault], agents: Mapping[tuple[int, str], str]
) -> frozenset[str]:
    """Hosts without an account: their switch was restarted, or their agent was stopped, and either takes along what
    it had counted. agents: hosts by job (from 1) and agent's name."""
    restarted, touched = restarted_switches(faults), touched_agents(faults)
    return frozenset(
        host for agent, host in agents.items() if agent in touched or topology.attachment(host).name in restarted
    )
