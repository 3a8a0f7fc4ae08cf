"""ActionProfileMember and ActionProfileGroup as P4Runtime entities.

P4Runtime specification 1.4, sections "Member Programming" and "Group Programming".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from finsy.proto import p4r

from gradbed.switch.p4runtime.calls import ActionValue
from gradbed.switch.p4runtime.roles import Role
from gradbed.switch.p4runtime.status import exhausted, invalid
from gradbed.switch.state.action_profiles import GroupMember, ProfileState
from gradbed.switch.state.base import EntityKind, known


class ProfileEntities(EntityKind):
    def __init__(self, profiles: Mapping[int, ProfileState]) -> None:
        self._profiles = profiles

    def p4_id(self, message: Any) -> int:
        profile_id: int = message.action_profile_id
        return profile_id

    def profile(self, profile_id: int) -> ProfileState:
        return known(self._profiles, profile_id, "action profile")

    def selected(self, message: Any, role: Role) -> Iterable[ProfileState]:
        """Return the profiles that a read request asks for and the role may see."""
        if message.action_profile_id:
            wanted = [self.profile(message.action_profile_id)]
        else:
            wanted = list(self._profiles.values())
        return [profile for profile in wanted if role.reads(profile.codec.profile_id)]


# ---- ActionProfileMember ----


class ActionProfileMembers(ProfileEntities):
    oneof = "action_profile_member"

    def insert(self, message: Any) -> None:
        profile = self.profile(message.action_profile_id)
        member_id, call = _member_id(message), _call(profile, message)
        if member_id not in profile.members and len(profile.members) >= profile.codec.size:
            raise exhausted(f"action profile {profile.codec.name} is full, it holds {profile.codec.size} members")
        profile.insert_member(member_id, call)

    def modify(self, message: Any) -> None:
        profile = self.profile(message.action_profile_id)
        profile.member(_member_id(message))
        profile.modify_member(message.member_id, _call(profile, message))

    def delete(self, message: Any) -> None:
        self.profile(message.action_profile_id).delete_member(_member_id(message))

    def read(self, message: Any, role: Role) -> Iterable[Any]:
        if message.member_id:
            profile = self.profile(message.action_profile_id)
            call = profile.member(message.member_id).call
            found = [(profile, message.member_id, call)] if role.reads(profile.codec.profile_id) else []
        else:
            found = [(p, i, m.call) for p in self.selected(message, role) for i, m in p.members.items()]
        return (_member_entity(*one) for one in found)

    def export(self) -> Iterator[Any]:
        for profile in self._profiles.values():
            for member_id, member in profile.members.items():
                yield p4r.Update(type=p4r.Update.INSERT, entity=_member_entity(profile, member_id, member.call))


def _member_id(message: Any) -> int:
    member_id: int = message.member_id
    if member_id == 0:
        raise invalid("member_id is not set")
    return member_id


def _call(profile: ProfileState, message: Any) -> ActionValue:
    if not message.HasField("action"):
        raise invalid("a member needs an action")
    return profile.codec.decode_action(message.action)


def _member_entity(profile: ProfileState, member_id: int, call: ActionValue) -> Any:
    entity = p4r.Entity()
    entity.action_profile_member.action_profile_id = profile.codec.profile_id
    entity.action_profile_member.member_id = member_id
    profile.codec.encode_action(call, entity.action_profile_member.action)
    return entity


# ---- ActionProfileGroup ----


class ActionProfileGroups(ProfileEntities):
    oneof = "action_profile_group"

    def insert(self, message: Any) -> None:
        profile = self._selector(message)
        group_id = _group_id(message)
        profile.codec.check_max_size(message.max_size)
        members = self._members(profile, message, message.max_size)
        profile.insert_group(group_id, message.max_size, members)

    def modify(self, message: Any) -> None:
        profile = self._selector(message)
        group = profile.group(_group_id(message))
        if message.max_size != group.max_size:
            raise invalid(f"max_size of a group cannot be changed, it is {group.max_size}")
        profile.modify_group(message.group_id, self._members(profile, message, group.max_size))

    def delete(self, message: Any) -> None:
        self._selector(message).delete_group(_group_id(message))

    def read(self, message: Any, role: Role) -> Iterable[Any]:
        if message.group_id:
            profile = self.profile(message.action_profile_id)
            group = profile.group(message.group_id)
            found = [(profile, message.group_id, group.max_size, group.members)]
            if not role.reads(profile.codec.profile_id):
                found = []
        else:
            found = [
                (profile, group_id, group.max_size, group.members)
                for profile in self.selected(message, role)
                for group_id, group in profile.groups.items()
            ]
        return (_group_entity(*one) for one in found)

    def export(self) -> Iterator[Any]:
        for profile in self._profiles.values():
            for group_id, group in profile.groups.items():
                entity = _group_entity(profile, group_id, group.max_size, group.members)
                yield p4r.Update(type=p4r.Update.INSERT, entity=entity)

    def _selector(self, message: Any) -> ProfileState:
        profile = self.profile(message.action_profile_id)
        if not profile.codec.with_selector:
            raise invalid(f"action profile {profile.codec.name} has no selector, hence no groups")
        return profile

    def _members(self, profile: ProfileState, message: Any, max_size: int) -> tuple[GroupMember, ...]:
        codec = profile.codec
        members = []
        seen = set()
        for item in message.members:
            codec.check_weight(item.weight)
            if item.member_id in seen:
                raise invalid(f"member {item.member_id} is in the group twice: give it a weight instead")
            seen.add(item.member_id)
            profile.member(item.member_id)
            watch = codec.decode_watch(item)
            profile.check_watch(watch)
            members.append(GroupMember(item.member_id, item.weight, watch))
        size = codec.group_size([member.weight for member in members])
        if 0 < max_size < size:
            raise exhausted(f"the group's size {size} is above its max_size {max_size}")
        return tuple(members)


def _group_id(message: Any) -> int:
    group_id: int = message.group_id
    if group_id == 0:
        raise invalid("group_id is not set")
    return group_id


def _group_entity(profile: ProfileState, group_id: int, max_size: int, members: tuple[GroupMember, ...]) -> Any:
    entity = p4r.Entity()
    group = entity.action_profile_group
    group.action_profile_id = profile.codec.profile_id
    group.group_id = group_id
    group.max_size = max_size
    for member in members:
        item = group.members.add(member_id=member.member_id, weight=member.weight)
        profile.codec.encode_watch(member.watch, item)
    return entity
