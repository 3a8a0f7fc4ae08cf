"""Do the hosts' own counts agree with those of their links? For any system, since the agents' contexts count."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gradbed.experiments.accounts.accounting import HostAccount, Tally
from gradbed.experiments.accounts.counts import Counts
from gradbed.experiments.accounts.opened_interfaces import opened_interfaces
from gradbed.experiments.configuration.faults import Fault, restarted_switches, touched_agents
from gradbed.topo.graph import Topology


def host_accounts(
    topology: Topology, counts: Counts, final: Mapping[tuple[int, str], Mapping[str, Any]]
) -> list[HostAccount]:
    """final: the last statistics of every agent, with what its interfaces carried.

    One for each interface that agents opened. Frames that no agent takes in (other types, other UDP ports) come
    out as a disagreement, and so do those that two agents of a host both take in."""
    accounts = []
    for host, switch, opened in opened_interfaces(topology, final):
        sent, received = (
            Tally(sum(each[f"{way}_frames"] for each in opened), sum(each[f"{way}_bytes"] for each in opened))
            for way in ("sent", "received")
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
