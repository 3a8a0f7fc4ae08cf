"""Conservation checks of any system: at hosts and their links, in switches, and by packet class."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from gradbed.emulation.layout import interface_name
from gradbed.emulation.statistics import ClassCounts, SwitchClasses, added
from gradbed.experiments.configuration.faults import Fault, restarted_switches, touched_agents
from gradbed.experiments.conservation.counts import Counts, HostAccount, Tally
from gradbed.formats.packet_class import OTHER, PacketClass
from gradbed.topo.graph import Direction, Endpoint, Topology

# ---- What agents count themselves ----


def opened_interfaces(
    topology: Topology, final: Mapping[tuple[int, str], Mapping[str, Any]]
) -> Iterator[tuple[Endpoint, Endpoint, Sequence[Mapping[str, Any]]]]:
    """Yield each host link that agents opened: the host's end, the switch's, and what each agent counted there.

    Args:
        final: last statistics of every agent.
    """
    opened: defaultdict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for statistics in final.values():
        for name, carried in statistics.get("interfaces", {}).items():
            opened[name].append(carried)
    for link in topology.host_links:
        host, switch = (link.a, link.b) if topology.is_host(link.a.node) else (link.b, link.a)
        if found := opened.get(interface_name(host)):
            yield host, switch, found


# ---- Hosts and their links ----


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


# ---- Switches ----


ENDS = (
    "no_program_drops",
    "swap_drops",
    "ingress_drops",
    "egress_drops",
    "no_port_drops",
    "no_group_drops",
    "priority_drops",
    "buffer_drops",
    "packet_ins",
)
"""Of gradbed.switch.engine.DeviceStatistics: where packets end that do not leave by a link."""


def switch_disagreements(topology: Topology, counts: Counts) -> list[str]:
    """Return a line for each switch whose packets do not balance, once no packet is in flight.

    The balance is: from its links + from the controller + cloned + copied = offered to its links + dropped +
    to the controller.
    """
    lines = []
    for switch, device in counts.devices.items():
        neighbours = topology.neighbours(switch)
        entered = sum(counts.delivered[other, switch].packets for other in neighbours)
        entered += device["packet_outs"]
        made = device["cloned"] + device["copied"]
        offered = sum(_offered(counts, switch, other) for other in neighbours)
        ended = sum(device[name] for name in ENDS)
        if entered + made != offered + ended:
            lines.append(
                f"{switch}: {entered} packets came and {made} copies were made, but {offered} left and {ended} ended "
                "in it"
            )
    return lines


def pause_disagreements(counts: Counts) -> list[str]:
    """Return a line for each link direction whose ends have not counted the same pauses, by priority."""
    return [
        f"{sender} to {receiver}: {receiver} sent {list(pauses.sent)} pauses, {sender} took {list(pauses.received)}"
        for (sender, receiver), effect in counts.effects.items()
        if (pauses := effect.pauses).sent != pauses.received
    ]


def _offered(counts: Counts, switch: str, other: str) -> int:
    effect = counts.effect(switch, other)
    delivered = counts.delivered[switch, other].packets - effect.duplicates.packets
    return delivered + effect.lost_packets


# ---- Classes of packets ----


def class_disagreements(
    topology: Topology,
    classes: Sequence[PacketClass],
    counts: ClassCounts,
    final: Mapping[tuple[int, str], Mapping[str, Any]],
    raw_frames: Collection[str] = (),
    socket_drops: Mapping[Direction, int] = MappingProxyType({}),
) -> list[str]:
    """Return a line for each equation of packet classes that does not hold.

    Args:
        final: last statistics of every agent, with what its interfaces counted.
        raw_frames: hosts of which these are not complete.
        socket_drops: packets of any class that were dropped by the sockets in front of links.
    """
    if not counts.links:
        return []
    names = [OTHER, *(each.name for each in classes)]
    return [
        *_at_hosts(topology, classes, counts, final, raw_frames, socket_drops),
        *_on_links(names, counts, socket_drops),
        *(
            line
            for switch, counted in counts.switches.items()
            for line in _at_switch(topology, switch, counted, counts, classes)
        ),
    ]


def class_rows(
    classes: Sequence[PacketClass], counts: ClassCounts, final: Mapping[tuple[int, str], Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Return the rows of the table "packet_classes": non-zero packets of each class, by host, link and switch."""
    opened = [each for statistics in final.values() for each in statistics.get("interfaces", {}).values()]
    columns = {
        "hosts_sent": added(each["sent_classes"] for each in opened),
        "hosts_received": added(each["received_classes"] for each in opened),
        **{
            name: added(getattr(link, name) for link in counts.links.values())
            for name in ("begun", "duplicates", "losses", "dropped", "delivered")
        },
        **{
            name: added(getattr(switch, name) for switch in counts.switches.values())
            for name in ("from_controller", "copied", "ended", "handed")
        },
    }
    rows = (
        {"class": name, **{column: cells[number] if cells else 0 for column, cells in columns.items()}}
        for number, name in enumerate([OTHER, *(each.name for each in classes)])
    )
    return [row for row in rows if any(value for value in row.values() if isinstance(value, int))]


def _at_hosts(
    topology: Topology,
    classes: Sequence[PacketClass],
    counts: ClassCounts,
    final: Mapping[tuple[int, str], Mapping[str, Any]],
    raw_frames: Collection[str],
    socket_drops: Mapping[Direction, int],
) -> Iterator[str]:
    for host, switch, opened in opened_interfaces(topology, final):
        if host.node in raw_frames:
            continue
        handed = counts.links[host.node, switch.node].begun
        delivered = counts.links[switch.node, host.node].delivered
        sent, received = (added(each[name] for each in opened) for name in ("sent_classes", "received_classes"))
        drops, in_front = sum(each["drops"] for each in opened), socket_drops.get((host.node, switch.node), 0)
        for number, each in enumerate(classes, start=1):
            if not each.agents_only:
                continue
            if not 0 <= sent[number] - handed[number] <= in_front:
                yield (
                    f"{host.node}: it sent {sent[number]} packets of class {each.name}, its link got {handed[number]}"
                    + (f", and {in_front} of any class were dropped in front of it" if in_front else "")
                )
            # Several agents may each take in a copy.
            missing = delivered[number] - received[number]
            if len(opened) == 1 and not 0 <= missing <= drops:
                yield (
                    f"{host.node}: its link brought {delivered[number]} packets of class {each.name}, it took in "
                    f"{received[number]}, and {drops} of any class were dropped by its socket"
                )


def _on_links(names: Sequence[str], counts: ClassCounts, socket_drops: Mapping[Direction, int]) -> Iterator[str]:
    for (sender, receiver), link in counts.links.items():
        # Between two interfaces of the engine's own switches a socket is in the middle of the link.
        most = socket_drops.get((sender, receiver), 0) if sender in counts.switches else 0
        for number, name in enumerate(names):
            came = link.begun[number] + link.duplicates[number]
            ended = link.losses[number] + link.dropped[number]
            if not 0 <= came - link.delivered[number] - ended <= most:
                yield (
                    f"link {sender}-{receiver}: {came} packets of class {name} began, duplicates included, but "
                    f"{link.delivered[number]} were delivered and {ended} lost or dropped"
                )


def _at_switch(
    topology: Topology, switch: str, counted: SwitchClasses, counts: ClassCounts, classes: Sequence[PacketClass]
) -> Iterator[str]:
    neighbours = list(topology.neighbours(switch))
    delivered = added(counts.links[other, switch].delivered for other in neighbours)
    begun = added(counts.links[switch, other].begun for other in neighbours)
    names = [OTHER, *(each.name for each in classes)]
    for number, name in enumerate(names):
        came = delivered[number] + counted.from_controller[number] + counted.copied[number]
        left, ended = sum(counted.left[number]), counted.ended[number]
        if came != left + ended:
            yield (
                f"{switch}: {came} packets of class {name} came or were copied, but {left} left and {ended} ended "
                "in it"
            )
        left_as = sum(row[number] for row in counted.left)
        if left_as != begun[number] + counted.handed[number]:
            yield (
                f"{switch}: {left_as} packets left as class {name}, but its links began {begun[number]} and "
                f"{counted.handed[number]} were handed on otherwise"
            )
    for came_as, each in enumerate(classes, start=1):
        for left_as, name in enumerate(names):
            changed = counted.left[came_as][left_as]
            if changed and each.becomes is not None and name not in {each.name, *each.becomes}:
                yield f"{switch}: {changed} packets of class {each.name} left it as class {name}, which none may"
