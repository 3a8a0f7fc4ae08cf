"""Commands on multicast groups and mirroring sessions.

BMv2's groups consist of nodes, each an instance (rid) and its ports; P4Runtime's of ports, each with an instance. So
a node is what a group has of one instance. Nodes that are in no group are known to this shell alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from finsy.proto import p4r

from gradbed.switch.simple_switch.cli.arguments import CommandError, expect, integer
from gradbed.switch.simple_switch.cli.client import Commands


@dataclass
class MulticastNode:
    """A node of the packet replication engine."""

    instance: int
    ports: tuple[int, ...]
    group: int | None = None
    """Group that it is in; None as long as it is in none."""


class ReplicationCommands(Commands):
    _nodes: dict[int, MulticastNode] | None = None

    def do_mc_mgrp_create(self, line: str) -> None:
        """mc_mgrp_create GROUP: an empty multicast group"""
        group = self._number(line, "mc_mgrp_create GROUP")
        print(f"Creating multicast group {group}")
        self.client.insert(_group_entity(group, ()))

    def do_mc_mgrp_destroy(self, line: str) -> None:
        """mc_mgrp_destroy GROUP"""
        group = self._number(line, "mc_mgrp_destroy GROUP")
        print(f"Destroying multicast group {group}")
        self.client.delete(_group_entity(group, ()))
        for node in self.nodes.values():
            if node.group == group:
                node.group = None

    def do_mc_node_create(self, line: str) -> None:
        """mc_node_create RID PORT ...: a node for mc_node_associate"""
        arguments = line.split()
        expect(arguments, 1, "mc_node_create RID PORT ...", len(arguments))
        node = MulticastNode(integer(arguments[0], "RID"), _ports(arguments[1:]))
        handle = next(number for number in range(len(self.nodes) + 1) if number not in self.nodes)
        self.nodes[handle] = node
        print(f"Creating node with rid {node.instance} and ports {' '.join(map(str, node.ports))}")
        print(f"node was created with handle {handle}")

    def do_mc_node_update(self, line: str) -> None:
        """mc_node_update NODE PORT ...: other ports"""
        arguments = line.split()
        expect(arguments, 2, "mc_node_update NODE PORT ...", len(arguments))
        node = self._node(arguments[0])
        node.ports = _ports(arguments[1:])
        if node.group is not None:
            self._write_group(node.group)

    def do_mc_node_associate(self, line: str) -> None:
        """mc_node_associate GROUP NODE"""
        group, handle = self._two(line, "mc_node_associate GROUP NODE")
        node = self._node(handle)
        if node.group is not None:
            raise CommandError(f"node {handle} is in group {node.group} already")
        print(f"Associating node {handle} to multicast group {group}")
        node.group = group
        try:
            self._write_group(group)
        except Exception:
            node.group = None
            raise

    def do_mc_node_dissociate(self, line: str) -> None:
        """mc_node_dissociate GROUP NODE"""
        group, handle = self._two(line, "mc_node_dissociate GROUP NODE")
        node = self._node(handle)
        if node.group != group:
            raise CommandError(f"node {handle} is not in group {group}")
        print(f"Dissociating node {handle} from multicast group {group}")
        node.group = None
        self._write_group(group)

    def do_mc_node_destroy(self, line: str) -> None:
        """mc_node_destroy NODE"""
        arguments = line.split()
        expect(arguments, 1, "mc_node_destroy NODE")
        node = self._node(arguments[0])
        print(f"Destroying node {arguments[0]}")
        del self.nodes[integer(arguments[0], "NODE")]
        if node.group is not None:
            self._write_group(node.group)

    def do_mc_dump(self, line: str) -> None:
        """mc_dump: groups and nodes"""
        print("==========\nMC ENTRIES")
        for group in sorted(self._groups()):
            print(f"**********\nmgrp({group})")
            for handle, node in sorted(self.nodes.items()):
                if node.group == group:
                    print(f"  -> (L1h={handle}, rid={node.instance}) -> (ports=[{_list(node.ports)}])")
        print("==========")

    def do_mirroring_add(self, line: str) -> None:
        """mirroring_add SESSION PORT: clones of the session go to the port"""
        session, port = self._two(line, "mirroring_add SESSION PORT")
        self._set_session(session, [p4r.Replica(egress_port=port)])

    def do_mirroring_add_mc(self, line: str) -> None:
        """mirroring_add_mc SESSION GROUP: clones go where the group's packets go now"""
        session, group = self._two(line, "mirroring_add_mc SESSION GROUP")
        groups = self._groups()
        if group not in groups:
            raise CommandError(f"there is no multicast group {group}")
        self._set_session(session, groups[group].replicas)

    def do_mirroring_delete(self, line: str) -> None:
        """mirroring_delete SESSION"""
        session = self._number(line, "mirroring_delete SESSION")
        self.client.delete(_session_entity(session, ()))

    def do_mirroring_get(self, line: str) -> None:
        """mirroring_get SESSION"""
        session = self._number(line, "mirroring_get SESSION")
        entry = self.client.read(_session_entity(session, ()))[0].clone_session_entry
        print(f"session {session} -> ports [{_list(_port(replica) for replica in entry.replicas)}]")

    # Private

    @property
    def nodes(self) -> dict[int, MulticastNode]:
        """The nodes by handle. At first those that the switch's groups consist of."""
        if self._nodes is None:
            self._nodes = {}
            for number, entry in sorted(self._groups().items()):
                for instance in sorted({replica.instance for replica in entry.replicas}):
                    ports = tuple(_port(r) for r in entry.replicas if r.instance == instance)
                    self._nodes[len(self._nodes)] = MulticastNode(instance, ports, number)
        return self._nodes

    def _groups(self) -> dict[int, Any]:
        found = self.client.read(_group_entity(0, ()))
        return {e.multicast_group_entry.multicast_group_id: e.multicast_group_entry for e in found}

    def _write_group(self, group: int) -> None:
        replicas = [
            p4r.Replica(egress_port=port, instance=node.instance)
            for node in self.nodes.values()
            if node.group == group
            for port in node.ports
        ]
        self.client.modify(_group_entity(group, replicas))

    def _set_session(self, session: int, replicas: Iterable[Any]) -> None:
        known = self.client.read(_session_entity(0, ()))
        exists = any(entry.clone_session_entry.session_id == session for entry in known)
        write = self.client.modify if exists else self.client.insert
        write(_session_entity(session, replicas))

    def _node(self, handle: str | int) -> MulticastNode:
        number = integer(str(handle), "NODE")
        if number not in self.nodes:
            raise CommandError(f"there is no node with handle {number}")
        return self.nodes[number]

    @staticmethod
    def _number(line: str, usage: str) -> int:
        arguments = line.split()
        expect(arguments, 1, usage)
        return integer(arguments[0], usage.split()[-1])

    @staticmethod
    def _two(line: str, usage: str) -> tuple[int, int]:
        arguments = line.split()
        expect(arguments, 2, usage)
        first, second = (integer(text, what) for text, what in zip(arguments, usage.split()[1:], strict=True))
        return first, second


def _group_entity(group: int, replicas: Iterable[Any]) -> Any:
    entity = p4r.Entity()
    entry = entity.packet_replication_engine_entry.multicast_group_entry
    entry.SetInParent()
    entry.multicast_group_id = group
    entry.replicas.extend(replicas)
    return entity


def _session_entity(session: int, replicas: Iterable[Any]) -> Any:
    entity = p4r.Entity()
    entry = entity.packet_replication_engine_entry.clone_session_entry
    entry.SetInParent()
    entry.session_id = session
    entry.replicas.extend(replicas)
    return entity


def _ports(texts: Iterable[str]) -> tuple[int, ...]:
    """Return the ports up to a "|", behind which BMv2 expects link aggregation groups."""
    ports = []
    for text in texts:
        if text == "|":
            break
        ports.append(integer(text, "PORT"))
    if len(set(ports)) != len(ports):
        raise CommandError("a port is named twice")
    return tuple(ports)


def _port(replica: Any) -> int:
    if replica.WhichOneof("port_kind") == "egress_port":
        return int(replica.egress_port)
    return int.from_bytes(replica.port, "big")


def _list(ports: Iterable[int]) -> str:
    return ", ".join(map(str, ports))
