"""One action profile of one device: its members and groups, and who refers to them.

A group's members follow each other in its hash buckets as in BMv2 under PI, so that a hash selects the same action
in both: every unit of weight of a member has a number, the lowest one free when it was needed, and a group's units
are in the order of their numbers.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from gradbed.switch.device import EntryCall, GroupReference, MemberReference
from gradbed.switch.p4runtime.pipeline.calls import ActionSet, Call, GroupCall, MemberCall, WatchPort
from gradbed.switch.p4runtime.values.status import exists_already, failed_precondition, invalid, not_found
from gradbed.switch.state.profiles.access import Profiles
from gradbed.switch.state.profiles.codec import ProfileCodec, units


@dataclass
class Member:
    """`numbers`: of its units of weight; the first one is the member's number in the device."""

    call: Call
    numbers: list[int]
    entries: int = 0
    weights: dict[int, int] = field(default_factory=dict)
    """By the group that has the member."""


@dataclass(frozen=True)
class GroupMember:
    member_id: int
    weight: int
    watch: WatchPort | None


@dataclass
class Group:
    number: int
    max_size: int
    members: tuple[GroupMember, ...] = ()
    entries: int = 0


@dataclass
class InstalledSet:
    """A one-shot group in the device."""

    group: int
    members: list[int]
    numbers: list[int]


class Place(NamedTuple):
    """One unit of weight: its own number, the member's, and the port that the member watches."""

    number: int
    member: int
    watched: int | None


def _places(numbers: Sequence[int], watch: WatchPort | None) -> list[Place]:
    port = None if watch is None else watch.port
    return [Place(number, numbers[0], port) for number in numbers]


class Numbers:
    """The lowest number that is free, from 0 on."""

    def __init__(self) -> None:
        self._free: list[int] = []
        self._next = 0

    def take(self) -> int:
        if self._free:
            return heapq.heappop(self._free)
        self._next += 1
        return self._next - 1

    def give_back(self, number: int) -> None:
        heapq.heappush(self._free, number)


class ProfileState:
    def __init__(self, codec: ProfileCodec, profiles: Profiles, has_port: Callable[[int], bool]) -> None:
        self.codec = codec
        self.members: dict[int, Member] = {}
        self.groups: dict[int, Group] = {}
        self._sets: dict[int, InstalledSet] = {}
        self._profiles = profiles
        self._has_port = has_port
        self._numbers = Numbers()
        self._group_numbers = Numbers()

    # ---- Members ----

    def member(self, member_id: int) -> Member:
        member = self.members.get(member_id)
        if member is None:
            raise not_found(f"action profile {self.codec.name} has no member {member_id}")
        return member

    def insert_member(self, member_id: int, call: Call) -> None:
        self._check_no_sets()
        if member_id in self.members:
            raise exists_already(f"action profile {self.codec.name} has a member {member_id}")
        number = self._numbers.take()
        try:
            self._profiles.write_member(self.codec.name, number, self.codec.device_call(call))
        except BaseException:
            self._numbers.give_back(number)
            raise
        self.members[member_id] = Member(call, [number])

    def modify_member(self, member_id: int, call: Call) -> None:
        member = self.member(member_id)
        self._profiles.write_member(self.codec.name, member.numbers[0], self.codec.device_call(call))
        member.call = call

    def delete_member(self, member_id: int) -> None:
        member = self.member(member_id)
        if member.weights:
            raise failed_precondition(f"member {member_id} is in group {next(iter(member.weights))}")
        if member.entries:
            raise failed_precondition(f"{member.entries} table entries refer to member {member_id}")
        self._profiles.delete_member(self.codec.name, member.numbers[0])
        for number in member.numbers:
            self._numbers.give_back(number)
        del self.members[member_id]

    # ---- Groups ----

    def group(self, group_id: int) -> Group:
        group = self.groups.get(group_id)
        if group is None:
            raise not_found(f"action selector {self.codec.name} has no group {group_id}")
        return group

    def insert_group(self, group_id: int, max_size: int, members: tuple[GroupMember, ...]) -> None:
        self._check_no_sets()
        if group_id in self.groups:
            raise exists_already(f"action selector {self.codec.name} has a group {group_id}")
        group = Group(self._group_numbers.take(), max_size)
        try:
            self._set_members(group_id, group, members)
        except BaseException:
            self._group_numbers.give_back(group.number)
            raise
        self.groups[group_id] = group

    def modify_group(self, group_id: int, members: tuple[GroupMember, ...]) -> None:
        self._set_members(group_id, self.group(group_id), members)

    def delete_group(self, group_id: int) -> None:
        group = self.group(group_id)
        if group.entries:
            raise failed_precondition(f"{group.entries} table entries refer to group {group_id}")
        self._profiles.delete_group(self.codec.name, group.number)
        self._group_numbers.give_back(group.number)
        for old in group.members:
            self._drop_weight(group_id, old.member_id)
        del self.groups[group_id]

    def _set_members(self, group_id: int, group: Group, members: tuple[GroupMember, ...]) -> None:
        wanted = {m.member_id: (self.member(m.member_id), units(m.weight)) for m in members}
        watches = {m.member_id: m.watch for m in members}
        places: list[Place] = []
        for member_id, (member, weight) in sorted(wanted.items()):
            while len(member.numbers) < weight:
                member.numbers.append(self._numbers.take())
            places += _places(member.numbers[:weight], watches[member_id])
        try:
            self._write_group(group.number, places)
        except BaseException:
            for member, _ in wanted.values():
                self._give_back_spare(member)
            raise
        for old in group.members:
            if old.member_id not in wanted:
                self._drop_weight(group_id, old.member_id)
        for member, weight in wanted.values():
            member.weights[group_id] = weight
            self._give_back_spare(member)
        group.members = members

    def _drop_weight(self, group_id: int, member_id: int) -> None:
        member = self.members[member_id]
        del member.weights[group_id]
        self._give_back_spare(member)

    def _give_back_spare(self, member: Member) -> None:
        needed = max(member.weights.values(), default=1)
        for number in member.numbers[needed:]:
            self._numbers.give_back(number)
        del member.numbers[needed:]

    # ---- One-shot groups ----

    def install(self, actions: ActionSet) -> GroupReference:
        if self.members or self.groups:
            raise invalid(
                f"action selector {self.codec.name} has members or groups; its tables take one-shot action sets only "
                "while it has none"
            )
        for action in actions.actions:
            self.check_watch(action.watch)
        installed = InstalledSet(self._group_numbers.take(), [], [])
        places: list[Place] = []
        try:
            for action in actions.actions:
                numbers = [self._numbers.take() for _ in range(units(action.weight))]
                installed.numbers += numbers
                self._profiles.write_member(self.codec.name, numbers[0], self.codec.device_call(action.call))
                installed.members.append(numbers[0])
                places += _places(numbers, action.watch)
            self._write_group(installed.group, places)
        except BaseException:
            self._forget(installed)
            raise
        self._sets[installed.group] = installed
        return GroupReference(installed.group)

    def uninstall(self, reference: GroupReference) -> None:
        """The set that no entry refers to any more."""
        self._profiles.delete_group(self.codec.name, reference.group)
        self._forget(self._sets.pop(reference.group))

    def _write_group(self, group: int, places: list[Place]) -> None:
        places.sort(key=lambda place: place.number)
        watched = [place.watched for place in places]
        if all(port is None for port in watched):
            watched = []
        self._profiles.write_group(self.codec.name, group, [place.member for place in places], watched)

    def _forget(self, installed: InstalledSet) -> None:
        for member in installed.members:
            self._profiles.delete_member(self.codec.name, member)
        for number in installed.numbers:
            self._numbers.give_back(number)
        self._group_numbers.give_back(installed.group)

    def _check_no_sets(self) -> None:
        if self._sets:
            raise invalid(
                f"tables of action selector {self.codec.name} have one-shot action sets: it takes members and groups "
                "only while they have none"
            )

    def check_watch(self, watch: WatchPort | None) -> None:
        """Raises INVALID_ARGUMENT for a port that the switch does not have."""
        if watch is not None and not self._has_port(watch.port):
            raise invalid(f"there is no port {watch.port} to watch")

    # ---- Table entries ----

    def reference(self, call: MemberCall | GroupCall) -> EntryCall:
        """What the device is to be told. Raises NOT_FOUND."""
        if isinstance(call, MemberCall):
            return MemberReference(self.member(call.member_id).numbers[0])
        return GroupReference(self.group(call.group_id).number)

    def refer(self, call: MemberCall | GroupCall, by: int) -> None:
        """An entry that refers to a member or group has come (1) or gone (-1)."""
        if isinstance(call, MemberCall):
            self.members[call.member_id].entries += by
        else:
            self.groups[call.group_id].entries += by
