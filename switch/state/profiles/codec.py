"""Action profiles and selectors of one program: limits, and the translation of what members and groups do.

P4Runtime specification 1.4, sections "ActionProfile" (of P4Info) and "ActionProfileMember & ActionProfileGroup".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from finsy.proto import p4i, p4r

from gradbed.switch.bmv2_json.model import ProgramModel
from gradbed.switch.device import ActionCall
from gradbed.switch.p4runtime.pipeline.calls import ActionCodec, ActionSet, Call, WatchPort, WeightedCall
from gradbed.switch.p4runtime.values import bytestrings
from gradbed.switch.p4runtime.values.status import denied, exhausted, invalid, unimplemented

# What one group may weigh here, whatever the P4Info says: the data plane has one pointer for each unit.
GREATEST_GROUP_WEIGHT = 1 << 16

_MODES = p4r.ActionProfileActionSet
_DEFAULT_MODES = (_MODES.DEFAULT_MODE_DETERMINED_BY_ACTION_SELECTOR, _MODES.HASH)


def units(weight: int) -> int:
    """How many times a member is in its group. Without weights, once."""
    return weight or 1


class ProfileCodec:
    """One action profile; a selector if `with_selector`."""

    def __init__(
        self, profile: Any, info: Any, program: ProgramModel, actions: Mapping[int, ActionCodec], port_width_bits: int
    ) -> None:
        """From a p4.config.v1.ActionProfile. Raises ValueError where P4Info and BMv2 JSON do not fit together."""
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

    def decode_action(self, action: Any) -> Call:
        """From an Action message. Raises RequestError."""
        codec = self._actions.get(action.action_id)
        if codec is None:
            raise invalid(f"action profile {self.name} has no action {action.action_id}")
        if codec.action_id in self._only_default:
            raise denied(f"action profile {self.name}: action {codec.name} may be a default action only")
        return Call(codec.action_id, codec.decode(action.params))

    def encode_action(self, call: Call, action: Any) -> None:
        self._actions[call.action_id].encode(call.arguments, action)

    def device_call(self, call: Call) -> ActionCall:
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
        """Of a group, as the limits count. Raises RESOURCE_EXHAUSTED beyond what this switch can hold."""
        total = sum(units(weight) for weight in weights)
        if total > GREATEST_GROUP_WEIGHT:
            raise exhausted(f"a group of action selector {self.name} weighs more than {GREATEST_GROUP_WEIGHT}")
        return len(weights) if self.counts_members else total

    def check_max_size(self, max_size: int) -> None:
        """Of a new group."""
        if max_size < 0:
            raise invalid("max_size is negative")
        if self.max_group_size and not 0 < max_size <= self.max_group_size:
            raise invalid(f"max_size {max_size} is not in 1..{self.max_group_size} (max_group_size)")
        if max_size > GREATEST_GROUP_WEIGHT:
            raise exhausted(f"groups of this switch have a size of {GREATEST_GROUP_WEIGHT} at most")

    def decode_watch(self, message: Any) -> WatchPort | None:
        """The port that a member's liveness depends on, if any. Raises RequestError."""
        kind = message.WhichOneof("watch_kind")
        if kind is None or not getattr(message, kind):
            return None
        if kind == "watch_port":
            return WatchPort(kind, bytestrings.decode(message.watch_port, self._port_width_bits))
        if not 0 <= message.watch < 1 << self._port_width_bits:
            raise invalid(f"watch {message.watch} is no port")
        return WatchPort(kind, message.watch)

    @staticmethod
    def encode_watch(watch: WatchPort | None, message: Any) -> None:
        if watch is None:
            return
        if watch.kind == "watch_port":
            message.watch_port = bytestrings.encode(watch.port)
        else:
            message.watch = watch.port

    # ---- One-shot groups ----

    def decode_set(self, message: Any) -> ActionSet:
        """From an ActionProfileActionSet. Raises RequestError."""
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
