"""Commands on action profiles. P4Runtime's ids count from 1, handles from 0 as BMv2's: a handle is an id less 1."""

from __future__ import annotations

from typing import Any

from finsy.proto import p4r

from gradbed.switch.simple_switch.cli.base import Commands
from gradbed.switch.simple_switch.cli.errors import CommandError, expect, integer


class ProfileCommands(Commands):
    def do_act_prof_create_member(self, line: str) -> None:
        """act_prof_create_member PROFILE ACTION [PARAMETER ...]"""
        arguments = line.split()
        expect(arguments, 2, "act_prof_create_member PROFILE ACTION [PARAMETER ...]", len(arguments))
        profile = self.program.profiles.find(arguments[0])
        used = {member.member_id for member in self._profile_members(profile)}
        member = p4r.ActionProfileMember(action_profile_id=profile.preamble.id, member_id=_free(used))
        member.action.CopyFrom(self.action(self.program.action_of(profile, arguments[1]), arguments[2:]))
        self.client.insert(p4r.Entity(action_profile_member=member))
        print(f"Member has been created with handle {member.member_id - 1}")

    def do_act_prof_modify_member(self, line: str) -> None:
        """act_prof_modify_member PROFILE ACTION MEMBER [PARAMETER ...]"""
        arguments = line.split()
        expect(arguments, 3, "act_prof_modify_member PROFILE ACTION MEMBER [PARAMETER ...]", len(arguments))
        profile = self.program.profiles.find(arguments[0])
        member = p4r.ActionProfileMember(action_profile_id=profile.preamble.id, member_id=_id(arguments[2]))
        member.action.CopyFrom(self.action(self.program.action_of(profile, arguments[1]), arguments[3:]))
        self.client.modify(p4r.Entity(action_profile_member=member))

    def do_act_prof_delete_member(self, line: str) -> None:
        """act_prof_delete_member PROFILE MEMBER"""
        arguments = line.split()
        expect(arguments, 2, "act_prof_delete_member PROFILE MEMBER")
        profile = self.program.profiles.find(arguments[0])
        member = p4r.ActionProfileMember(action_profile_id=profile.preamble.id, member_id=_id(arguments[1]))
        self.client.delete(p4r.Entity(action_profile_member=member))

    def do_act_prof_create_group(self, line: str) -> None:
        """act_prof_create_group PROFILE"""
        arguments = line.split()
        expect(arguments, 1, "act_prof_create_group PROFILE")
        profile = self.program.profiles.find(arguments[0])
        used = {group.group_id for group in self._profile_groups(profile)}
        group = p4r.ActionProfileGroup(action_profile_id=profile.preamble.id, group_id=_free(used))
        self.client.insert(p4r.Entity(action_profile_group=group))
        print(f"Group has been created with handle {group.group_id - 1}")

    def do_act_prof_delete_group(self, line: str) -> None:
        """act_prof_delete_group PROFILE GROUP"""
        arguments = line.split()
        expect(arguments, 2, "act_prof_delete_group PROFILE GROUP")
        profile = self.program.profiles.find(arguments[0])
        self.client.delete(p4r.Entity(action_profile_group=self._profile_group(profile, arguments[1])))

    def do_act_prof_add_member_to_group(self, line: str) -> None:
        """act_prof_add_member_to_group PROFILE MEMBER GROUP"""
        arguments = line.split()
        expect(arguments, 3, "act_prof_add_member_to_group PROFILE MEMBER GROUP")
        group = self._profile_group(self.program.profiles.find(arguments[0]), arguments[2])
        group.members.add(member_id=_id(arguments[1]), weight=1)
        self.client.modify(p4r.Entity(action_profile_group=group))

    def do_act_prof_remove_member_from_group(self, line: str) -> None:
        """act_prof_remove_member_from_group PROFILE MEMBER GROUP"""
        arguments = line.split()
        expect(arguments, 3, "act_prof_remove_member_from_group PROFILE MEMBER GROUP")
        group = self._profile_group(self.program.profiles.find(arguments[0]), arguments[2])
        kept = [member for member in group.members if member.member_id != _id(arguments[1])]
        if len(kept) == len(group.members):
            raise CommandError(f"group {arguments[2]} has no member {arguments[1]}")
        del group.members[:]
        group.members.extend(kept)
        self.client.modify(p4r.Entity(action_profile_group=group))

    def do_act_prof_dump(self, line: str) -> None:
        """act_prof_dump PROFILE: its members and groups"""
        arguments = line.split()
        expect(arguments, 1, "act_prof_dump PROFILE")
        profile = self.program.profiles.find(arguments[0])
        print("==========\nMEMBERS")
        for member in self._profile_members(profile):
            print(f"**********\nDumping member {member.member_id - 1}")
            self.dump_action(member.action)
        if profile.with_selector:
            print("==========\nGROUPS")
            for group in self._profile_groups(profile):
                members = ", ".join(str(member.member_id - 1) for member in group.members)
                print(f"**********\nDumping group {group.group_id - 1}\nMembers: [{members}]")

    def _profile_members(self, profile: Any) -> list[Any]:
        wanted = p4r.ActionProfileMember(action_profile_id=profile.preamble.id)
        return self.client.read(p4r.Entity(action_profile_member=wanted))

    def _profile_groups(self, profile: Any) -> list[Any]:
        wanted = p4r.ActionProfileGroup(action_profile_id=profile.preamble.id)
        return self.client.read(p4r.Entity(action_profile_group=wanted))

    def _profile_group(self, profile: Any, handle: str) -> Any:
        wanted = p4r.ActionProfileGroup(action_profile_id=profile.preamble.id, group_id=_id(handle))
        return self.client.read(p4r.Entity(action_profile_group=wanted))[0]


def _id(handle: str) -> int:
    return integer(handle, "the handle") + 1


def _free(used: set[int]) -> int:
    number = 1
    while number in used:
        number += 1
    return number
