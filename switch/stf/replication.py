"""Multicast groups and clone sessions as BMv2's command line makes them: groups of nodes, sessions to a group."""

from __future__ import annotations

from gradbed.switch.device import Replica
from gradbed.switch.stf.names import NoFit


class Replication:
    """The groups that STF statements have built so far."""

    def __init__(self) -> None:
        self._nodes: list[tuple[int, tuple[int, ...]]] = []
        self._groups: dict[int, list[int]] = {}
        self._sessions: dict[int, int] = {}

    def create_group(self, group: int) -> None:
        if group in self._groups:
            raise NoFit(f"there is a multicast group {group} already")
        self._groups[group] = []

    def create_node(self, instance: int, ports: tuple[int, ...]) -> None:
        self._nodes.append((instance, ports))

    def update_node(self, node: int, ports: tuple[int, ...]) -> list[int]:
        """Returns the groups that change with it."""
        self._check_node(node)
        self._nodes[node] = (self._nodes[node][0], ports)
        return [group for group, nodes in self._groups.items() if node in nodes]

    def associate(self, group: int, node: int) -> None:
        self._check_group(group)
        self._check_node(node)
        if any(node in nodes for nodes in self._groups.values()):
            raise NoFit(f"node {node} is in a multicast group already")
        self._groups[group].append(node)

    def replicas(self, group: int) -> list[Replica]:
        self._check_group(group)
        nodes = [self._nodes[node] for node in self._groups[group]]
        return [Replica(port, instance) for instance, ports in nodes for port in ports]

    def mirror_to_group(self, session: int, group: int) -> None:
        self._check_group(group)
        self._sessions[session] = group

    def forget_session(self, session: int) -> None:
        self._sessions.pop(session, None)

    def sessions_of(self, group: int) -> list[int]:
        return [session for session, its_group in self._sessions.items() if its_group == group]

    def _check_group(self, group: int) -> None:
        if group not in self._groups:
            raise NoFit(f"there is no multicast group {group}: mc_mgrp_create {group} first")

    def _check_node(self, node: int) -> None:
        if node >= len(self._nodes):
            raise NoFit(f"there is no multicast node {node}: mc_node_create makes them, from 0 on")
