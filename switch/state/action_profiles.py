"""Action profiles and selectors: their limits, members and groups, and who refers to them.

A group's members follow each other in its hash buckets as in BMv2 under PI, so that a hash selects the same action
in both: every unit of weight of a member has a number, the lowest one free when it was needed, and a group's units
are in the order of their numbers. P4Runtime specification 1.4, sections "ActionProfile" (of P4Info) and
"ActionProfileMember & ActionProfileGroup".
"""

from __future__ import annotations

import ctypes
import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from finsy.proto import p4i, p4r

from gradbed.switch.bmv2_json.model import ProgramModel
from gradbed.switch.device import ActionCall, EntryCall, GroupReference, MemberReference
from gradbed.switch.p4runtime.calls import (
    ActionCodec,
    ActionSet,
    ActionValue,
    GroupCall,
    MemberCall,
    WatchPort,
    WeightedCall,
)
from gradbed.switch.p4runtime.status import (
    denied,
    exhausted,
    exists_already,
    failed_precondition,
    invalid,
    not_found,
    unimplemented,
)
from gradbed.switch.p4runtime.values import decode_unsigned, encode_unsigned
from gradbed.switch.state import abi
from gradbed.switch.state.abi import StateAccessor, SwitchRecord, check, number_of

# ---- Members and groups in the runtime library ----


class Profiles(StateAccessor):
    """Members and groups have numbers of the caller's choice, from 0 to 2**32 - 1."""

    def __init__(self, switch: SwitchRecord) -> None:
        super().__init__(switch)
        self._numbers = {name: i for i, name in enumerate(switch.model.profiles)}

    def write_member(self, profile: str, member: int, call: ActionCall) -> None:
        """Create or change a member. Raises StateFull."""
        number = self._number(profile)
        table = next((t for t in self._switch.model.tables.values() if t.profile == profile), None)
        if table is None:
            raise ValueError(f"no table uses action profile {profile}")
        action, data = abi.action_words(table, call)
        with self._guard:
            check(
                self._library.gb_profile_member_set(
                    self._contents.profiles[number], member, action, data, len(data) // abi.WORD_BYTES
                ),
                IndexError(),
            )

    def delete_member(self, profile: str, member: int) -> None:
        """Delete a member. Raises StillReferenced."""
        number = self._number(profile)
        with self._guard:
            check(
                self._library.gb_profile_member_delete(self._contents.profiles[number], member),
                IndexError(f"action profile {profile} has no member {member}"),
            )

    def write_group(
        self, profile: str, group: int, members: Sequence[int], watched: Sequence[int | None] = ()
    ) -> None:
        """Create or change a group. A hash selects members[hash % len(members)]; a member may be named several times.

        watched: the ports that members watch, one (or None) for each, or none at all. Members whose port is down are
        left out of `members` when a hash selects.
        """
        number = self._number(profile)
        ids = (ctypes.c_uint32 * max(1, len(members)))(*members)
        ports: Any = None
        if watched:
            if len(watched) != len(members):
                raise ValueError(f"{len(members)} members watch {len(watched)} ports")
            ports = (ctypes.c_uint32 * len(watched))(*(abi.NO_WATCH if port is None else port for port in watched))
        with self._guard:
            check(
                self._library.gb_profile_group_set(self._contents.profiles[number], group, ids, ports, len(members)),
                IndexError(f"action profile {profile} lacks a member of {list(members)}"),
            )

    def delete_group(self, profile: str, group: int) -> None:
        """Delete a group. Raises StillReferenced."""
        number = self._number(profile)
        with self._guard:
            check(
                self._library.gb_profile_group_delete(self._contents.profiles[number], group),
                IndexError(f"action profile {profile} has no group {group}"),
            )

    def _number(self, profile: str) -> int:
        return number_of(self._numbers, profile, "action profile")


# ---- P4Info and BMv2 JSON ----


# Greatest weight of a group here, whatever P4Info allows: the data plane has one pointer for each unit.
GREATEST_GROUP_WEIGHT = 1 << 16

_MODES = p4r.ActionProfileActionSet
_DEFAULT_MODES = (_MODES.DEFAULT_MODE_DETERMINED_BY_ACTION_SELECTOR, _MODES.HASH)


def units(weight: int) -> int:
    """Return how many times a member is in its group. Without weights, once."""
    return weight or 1


class ProfileCodec:
    """Codec of one action profile; of a selector if `with_selector`."""

    def __init__(
        self, profile: Any, info: Any, program: ProgramModel, actions: Mapping[int, ActionCodec], port_width_bits: int
    ) -> None:
        """Read a p4.config.v1.ActionProfile. Raises ValueError where P4Info and BMv2 JSON do not fit together."""
        self.profile_id: int = profile.preamble.id
        self.name: str = profile.preamble.name
        in_program = program.profiles.get(self.name)
        if in_program is None:
            raise ValueError(f"action profile {self.name!r} of the P4Info is not in the BMv2 JSON")
        self.with_selector: bool = profile.with_selector
        self.size = min(profile.size or in_program.max_size, in_program.max_size)
        self.max_group_size: int = profile.max_group_size
        self.weights_disallowed: bool = profile.weights_disallowed
        self.counts_members = profile.WhichOneof("selector_size_semantics") == "sum_of_members"
        self.max_member_weight: int = profile.sum_of_members.max_member_weight
        self._port_width_bits = port_width_bits
        self._actions: dict[int, ActionCodec] = {}
        self._only_default: set[int] = set()
        for table in info.tables:
            if table.implementation_id == self.profile_id:
                self._add_actions(table.action_refs, actions)

    def _add_actions(self, references: Iterable[Any], actions: Mapping[int, ActionCodec]) -> None:
        for reference in references:
            if reference.id not in actions:
                raise ValueError(f"action profile {self.name!r} refers to action {reference.id}, not in the P4Info")
            self._actions[reference.id] = actions[reference.id]
            if reference.scope == p4i.ActionRef.DEFAULT_ONLY:
                self._only_default.add(reference.id)

    # ---- Actions ----

    def decode_action(self, action: Any) -> ActionValue:
        """Build it from an Action message. Raises RequestError."""
        codec = self._actions.get(action.action_id)
        if codec is None:
            raise invalid(f"action profile {self.name} has no action {action.action_id}")
        if codec.action_id in self._only_default:
            raise denied(f"action profile {self.name}: action {codec.name} may be a default action only")
        return ActionValue(codec.action_id, codec.decode(action.params))

    def encode_action(self, call: ActionValue, action: Any) -> None:
        self._actions[call.action_id].encode(call.arguments, action)

    def device_call(self, call: ActionValue) -> ActionCall:
        return ActionCall(self._actions[call.action_id].name, call.arguments)

    # ---- Weights, sizes and ports ----

    def check_weight(self, weight: int) -> None:
        if self.weights_disallowed:
            if weight:
                raise invalid(f"action selector {self.name} takes no weights")
        elif weight <= 0:
            raise invalid(f"action selector {self.name}: weight {weight} is not greater than 0")
        elif self.counts_members and 0 < self.max_member_weight < weight:
            raise invalid(f"action selector {self.name}: weight {weight} is above {self.max_member_weight}")

    def group_size(self, weights: Sequence[int]) -> int:
        """Return the size of a group as the limits count it.

        Raises RESOURCE_EXHAUSTED beyond what this switch can hold.
        """
        total = sum(units(weight) for weight in weights)
        if total > GREATEST_GROUP_WEIGHT:
            raise exhausted(f"a group of action selector {self.name} weighs more than {GREATEST_GROUP_WEIGHT}")
        return len(weights) if self.counts_members else total

    def check_max_size(self, max_size: int) -> None:
        """Check the size of a new group."""
        if max_size < 0:
            raise invalid("max_size is negative")
        if self.max_group_size and not 0 < max_size <= self.max_group_size:
            raise invalid(f"max_size {max_size} is not in 1..{self.max_group_size} (max_group_size)")
        if max_size > GREATEST_GROUP_WEIGHT:
            raise exhausted(f"groups of this switch have a size of {GREATEST_GROUP_WEIGHT} at most")

    def decode_watch(self, message: Any) -> WatchPort | None:
        """Return the port that a member's liveness depends on, if any. Raises RequestError."""
        kind = message.WhichOneof("watch_kind")
        if kind is None or not getattr(message, kind):
            return None
        if kind == "watch_port":
            return WatchPort(kind, decode_unsigned(message.watch_port, self._port_width_bits))
        if not 0 <= message.watch < 1 << self._port_width_bits:
            raise invalid(f"watch {message.watch} is no port")
        return WatchPort(kind, message.watch)

    @staticmethod
    def encode_watch(watch: WatchPort | None, message: Any) -> None:
        if watch is None:
            return
        if watch.kind == "watch_port":
            message.watch_port = encode_unsigned(watch.port)
        else:
            message.watch = watch.port

    # ---- One-shot groups ----

    def decode_set(self, message: Any) -> ActionSet:
        """Build it from an ActionProfileActionSet. Raises RequestError."""
        self._check_modes(message)
        actions = []
        for item in message.action_profile_actions:
            self.check_weight(item.weight)
            if not item.HasField("action"):
                raise invalid(f"action selector {self.name}: an element of the action set has no action")
            actions.append(WeightedCall(self.decode_action(item.action), item.weight, self.decode_watch(item)))
        size = self.group_size([action.weight for action in actions])
        if 0 < self.max_group_size < size:
            raise invalid(f"action selector {self.name}: the set's size {size} is above {self.max_group_size}")
        return ActionSet(tuple(actions), message.action_selection_mode, message.size_semantics)

    def encode_set(self, actions: ActionSet, message: Any) -> None:
        message.SetInParent()
        for action in actions.actions:
            item = message.action_profile_actions.add(weight=action.weight)
            self.encode_action(action.call, item.action)
            self.encode_watch(action.watch, item)
        message.action_selection_mode = actions.selection_mode
        message.size_semantics = actions.size_semantics

    def _check_modes(self, message: Any) -> None:
        own_semantics = _MODES.SUM_OF_MEMBERS if self.counts_members else _MODES.SUM_OF_WEIGHTS
        if message.action_selection_mode not in _DEFAULT_MODES or message.size_semantics not in (
            _MODES.DEFAULT_SIZE_DETERMINED_BY_ACTION_SELECTOR,
            own_semantics,
        ):
            raise unimplemented("this switch selects as the action selector says, for all groups alike")


# ---- One action profile of one device ----


@dataclass
class ProfileMember:
    """`numbers`: of its units of weight; the first one is the member's number in the device."""

    call: ActionValue
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
class ProfileGroup:
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


class WeightUnit(NamedTuple):
    """A unit of weight: its own number, the member's, and the port that the member watches."""

    number: int
    member: int
    watched: int | None


def _places(numbers: Sequence[int], watch: WatchPort | None) -> list[WeightUnit]:
    port = None if watch is None else watch.port
    return [WeightUnit(number, numbers[0], port) for number in numbers]


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
        self.members: dict[int, ProfileMember] = {}
        self.groups: dict[int, ProfileGroup] = {}
        self._sets: dict[int, InstalledSet] = {}
        self._profiles = profiles
        self._has_port = has_port
        self._numbers = Numbers()
        self._group_numbers = Numbers()

    # ---- Members ----

    def member(self, member_id: int) -> ProfileMember:
        member = self.members.get(member_id)
        if member is None:
            raise not_found(f"action profile {self.codec.name} has no member {member_id}")
        return member

    def insert_member(self, member_id: int, call: ActionValue) -> None:
        self._check_no_sets()
        if member_id in self.members:
            raise exists_already(f"action profile {self.codec.name} has a member {member_id}")
        number = self._numbers.take()
        try:
            self._profiles.write_member(self.codec.name, number, self.codec.device_call(call))
        except BaseException:
            self._numbers.give_back(number)
            raise
        self.members[member_id] = ProfileMember(call, [number])

    def modify_member(self, member_id: int, call: ActionValue) -> None:
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

    def group(self, group_id: int) -> ProfileGroup:
        group = self.groups.get(group_id)
        if group is None:
            raise not_found(f"action selector {self.codec.name} has no group {group_id}")
        return group

    def insert_group(self, group_id: int, max_size: int, members: tuple[GroupMember, ...]) -> None:
        self._check_no_sets()
        if group_id in self.groups:
            raise exists_already(f"action selector {self.codec.name} has a group {group_id}")
        group = ProfileGroup(self._group_numbers.take(), max_size)
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

    def _set_members(self, group_id: int, group: ProfileGroup, members: tuple[GroupMember, ...]) -> None:
        wanted = {m.member_id: (self.member(m.member_id), units(m.weight)) for m in members}
        watches = {m.member_id: m.watch for m in members}
        places: list[WeightUnit] = []
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

    def _give_back_spare(self, member: ProfileMember) -> None:
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
        places: list[WeightUnit] = []
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
        """Remove a one-shot group that no entry refers to any more."""
        self._profiles.delete_group(self.codec.name, reference.group)
        self._forget(self._sets.pop(reference.group))

    def _write_group(self, group: int, places: list[WeightUnit]) -> None:
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
        """Raise INVALID_ARGUMENT for a port that the switch does not have."""
        if watch is not None and not self._has_port(watch.port):
            raise invalid(f"there is no port {watch.port} to watch")

    # ---- Table entries ----

    def reference(self, call: MemberCall | GroupCall) -> EntryCall:
        """Return the call for the device. Raises NOT_FOUND."""
        if isinstance(call, MemberCall):
            return MemberReference(self.member(call.member_id).numbers[0])
        return GroupReference(self.group(call.group_id).number)

    def refer(self, call: MemberCall | GroupCall, by: int) -> None:
        """Count an entry that refers to a member or group and has come (1) or gone (-1)."""
        if isinstance(call, MemberCall):
            self.members[call.member_id].entries += by
        else:
            self.groups[call.group_id].entries += by
