"""Roles of controllers: what a role.config lets its controllers write, read and receive.

The P4Runtime specification leaves the form of a role.config open. This server takes the one that is in common use,
Stratum's P4RoleConfig; without a config a role has full access, as the default role has.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from finsy.proto import stratum

from gradbed.switch.p4runtime.status import invalid


@dataclass(frozen=True)
class Role:
    """A role: what its controllers may do."""

    name: str
    writable_ids: frozenset[int] | None = None
    """Ids of P4 objects whose entities they may write; None for all."""
    exclusive_ids: frozenset[int] = frozenset()
    receives_packet_ins: bool = True
    can_push_pipeline: bool = True
    packet_in_filter: tuple[int, bytes] | None = None

    def reads(self, p4_id: int) -> bool:
        """Return whether an entity of this object is in the role's scope.

        Id 0 stands for entities without a P4 object.
        """
        return self.writable_ids is None or p4_id == 0 or p4_id in self.writable_ids

    def accepts(self, packet: Any) -> bool:
        """Return whether the role's primary is to get this PacketIn."""
        if not self.receives_packet_ins:
            return False
        if self.packet_in_filter is None:
            return True
        return any((m.metadata_id, m.value) == self.packet_in_filter for m in packet.metadata)


def role_from_message(role: Any) -> Role:
    """Return the role of a MasterArbitrationUpdate. Raises INVALID_ARGUMENT for a config of another form."""
    if role.id:
        raise invalid("role.id is deprecated since P4Runtime 1.4.0: give the role a name")
    if not role.HasField("config"):
        return Role(role.name)
    if not role.name:
        raise invalid("the default role has full access and takes no config: give the role a name")
    config = stratum.P4RoleConfig()
    if not role.config.Is(config.DESCRIPTOR):
        raise invalid(
            f"role.config is a {role.config.TypeName() or 'message without type'}; "
            f"this server takes {config.DESCRIPTOR.full_name}"
        )
    try:
        role.config.Unpack(config)
    except Exception:
        raise invalid("role.config cannot be decoded") from None
    packet_filter = config.packet_in_filter
    return Role(
        role.name,
        frozenset(config.exclusive_p4_ids) | frozenset(config.shared_p4_ids),
        frozenset(config.exclusive_p4_ids),
        config.receives_packet_ins,
        config.can_push_pipeline,
        (packet_filter.metadata_id, packet_filter.value) if config.HasField("packet_in_filter") else None,
    )


def may_write(role: Role, others: Iterable[Role], p4_id: int) -> bool:
    """Return whether `role` may change entities of a P4 object that the `others` may have for themselves."""
    if p4_id == 0:
        return True
    if role.writable_ids is not None:
        return p4_id in role.writable_ids
    return not any(p4_id in other.exclusive_ids for other in others)
