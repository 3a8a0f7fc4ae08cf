"""Members and a group of an action profile, one for each port, beside random entries of tables."""

from __future__ import annotations

from typing import Any

from finsy.proto import p4r

from tests.unit.p4runtime.client import action
from tools.recordings.random_inputs import PORTS, canonical


def balanced_ports(profile: int, call: int, *arguments: bytes) -> list[Any]:
    """A profile's member for each port, with its number, and group 1 of them all. call: of an action that takes the
    port and the arguments."""
    members = [
        p4r.ActionProfileMember(
            action_profile_id=profile, member_id=port, action=action(call, canonical(port), *arguments).action
        )
        for port in range(1, PORTS + 1)
    ]
    shares = [p4r.ActionProfileGroup.Member(member_id=port, weight=1) for port in range(1, PORTS + 1)]
    group = p4r.ActionProfileGroup(action_profile_id=profile, group_id=1, max_size=PORTS, members=shares)
    return [*members, group]
