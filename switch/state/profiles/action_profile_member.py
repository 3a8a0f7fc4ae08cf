"""ActionProfileMember. P4Runtime specification 1.4, section "Member Programming"."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from finsy.proto import p4r

from gradbed.switch.p4runtime.pipeline.calls import Call
from gradbed.switch.p4runtime.roles import Role
from gradbed.switch.p4runtime.values.status import exhausted, invalid
from gradbed.switch.state.profiles.profile_base import ProfileEntities
from gradbed.switch.state.profiles.profile_state import ProfileState


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
        return (_entity(*one) for one in found)

    def export(self) -> Iterator[Any]:
        for profile in self._profiles.values():
            for member_id, member in profile.members.items():
                yield p4r.Update(type=p4r.Update.INSERT, entity=_entity(profile, member_id, member.call))


def _member_id(message: Any) -> int:
    member_id: int = message.member_id
    if member_id == 0:
        raise invalid("member_id is not set")
    return member_id


def _call(profile: ProfileState, message: Any) -> Call:
    if not message.HasField("action"):
        raise invalid("a member needs an action")
    return profile.codec.decode_action(message.action)


def _entity(profile: ProfileState, member_id: int, call: Call) -> Any:
    entity = p4r.Entity()
    entity.action_profile_member.action_profile_id = profile.codec.profile_id
    entity.action_profile_member.member_id = member_id
    profile.codec.encode_action(call, entity.action_profile_member.action)
    return entity
