"""Is every packet of every class accounted for? For any system, once nothing is on its way. Of a class, in packets:

    host:    its agents sent = its link was handed + dropped by the socket in front of it
             its link delivered = its agents received + dropped by its sockets
    link:    begun + duplicates = delivered + losses + dropped
    switch:  its links delivered + from the controller + copied = left, as whatever + ended
             left as this class = its links began + handed to the controller, or to no port

and no packet leaves a switch as another class than the system says (PacketClass.becomes). Packet sockets cannot tell
of which class was what they dropped. Links count what they carry, switches what they do, hosts what they send and
take in; none of them is told by another.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from gradbed.emulation.statistics import ClassCounts, SwitchClasses, added
from gradbed.experiments.accounts.opened_interfaces import opened_interfaces
from gradbed.formats.packet_class import OTHER, PacketClass
from gradbed.topo.graph import Direction, Topology


def class_disagreements(
    topology: Topology,
    classes: Sequence[PacketClass],
    counts: ClassCounts,
    final: Mapping[tuple[int, str], Mapping[str, Any]],
    uncounted: Collection[str] = (),
    socket_drops: Mapping[Direction, int] = MappingProxyType({}),
) -> list[str]:
    """One line for each equation that does not hold. final: the last statistics of every agent, with what its
    interfaces carried; uncounted: hosts of which these are not complete. socket_drops: by the sockets in front of
    links, of any class."""
    if not counts.links:
        return []
    names = [OTHER, *(each.name for each in classes)]
    return [
        *_at_hosts(topology, classes, counts, final, uncounted, socket_drops),
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
    """For the table "packet_classes": packets of each class that there were any of, of all hosts, links, switches."""
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
    uncounted: Collection[str],
    socket_drops: Mapping[Direction, int],
) -> Iterator[str]:
    for host, switch, opened in opened_interfaces(topology, final):
        if host.node in uncounted:
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
        # Between two interfaces of the fabric's own switches a socket is in the middle of the link.
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
