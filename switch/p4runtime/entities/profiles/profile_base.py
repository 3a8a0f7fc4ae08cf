"""What entities of action profiles share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from switch.device import Device
from switch.p4runtime.entities.base import EntityKind
from switch.p4runtime.entities.profiles.profile_state import ProfileState
from switch.p4runtime.pipeline.pipeline import Pipeline
from switch.p4runtime.roles import Role
from switch.p4runtime.values.status import invalid, not_found


class ProfileEntities(EntityKind):
    def __init__(self, device: Device, pipeline: Pipeline, profiles: Mapping[int, ProfileState]) -> None:
        super().__init__(device, pipeline)
        self._profiles = profiles

    def p4_id(self, message: Any) -> int:
        profile_id: int = message.action_profile_id
        return profile_id

    def profile(self, profile_id: int) -> ProfileState:
        profile = self._profiles.get(profile_id)
        if profile is None:
            if not profile_id:
                raise invalid("action_profile_id is not set")
            raise not_found(f"there is no action profile {profile_id}")
        return profile

    def selected(self, message: Any, role: Role) -> Iterable[ProfileState]:
        """The profiles that a read request asks for and the role may see."""
        if message.action_profile_id:
            wanted = [self.profile(message.action_profile_id)]
        else:
            wanted = list(self._profiles.values())
        return [profile for profile in wanted if role.reads(profile.codec.profile_id)]
