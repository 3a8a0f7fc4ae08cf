"""What entities of action profiles share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from gradbed.switch.p4runtime.roles import Role
from gradbed.switch.state.base import EntityKind, known
from gradbed.switch.state.profiles.profile_state import ProfileState


class ProfileEntities(EntityKind):
    def __init__(self, profiles: Mapping[int, ProfileState]) -> None:
        self._profiles = profiles

    def p4_id(self, message: Any) -> int:
        profile_id: int = message.action_profile_id
        return profile_id

    def profile(self, profile_id: int) -> ProfileState:
        return known(self._profiles, profile_id, "action profile")

    def selected(self, message: Any, role: Role) -> Iterable[ProfileState]:
        """The profiles that a read request asks for and the role may see."""
        if message.action_profile_id:
            wanted = [self.profile(message.action_profile_id)]
        else:
            wanted = list(self._profiles.values())
        return [profile for profile in wanted if role.reads(profile.codec.profile_id)]
