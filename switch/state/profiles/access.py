"""Action profiles and selectors, through the runtime library."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, ClassVar

from gradbed.switch.device import ActionCall
from gradbed.switch.state import abi
from gradbed.switch.state.record import Access, SwitchRecord, check, number_of

_NO_WATCH = 2**32 - 1


class Profiles(Access):
    """Members and groups have numbers of the caller's choice, from 0 to 2**32 - 1."""

    functions: ClassVar[abi.Functions] = {
        "gb_profile_member_set": (
            ctypes.c_int,
            (ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint32, abi.ConstWords, ctypes.c_uint32),
        ),
        "gb_profile_member_delete": (ctypes.c_int, (ctypes.c_void_p, ctypes.c_uint32)),
        "gb_profile_group_set": (
            ctypes.c_int,
            (ctypes.c_void_p, ctypes.c_uint32, abi.Numbers, abi.Numbers, ctypes.c_uint32),
        ),
        "gb_profile_group_delete": (ctypes.c_int, (ctypes.c_void_p, ctypes.c_uint32)),
    }

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
        """Raises StillReferenced."""
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
            ports = (ctypes.c_uint32 * len(watched))(*(_NO_WATCH if port is None else port for port in watched))
        with self._guard:
            check(
                self._library.gb_profile_group_set(self._contents.profiles[number], group, ids, ports, len(members)),
                IndexError(f"action profile {profile} lacks a member of {list(members)}"),
            )

    def delete_group(self, profile: str, group: int) -> None:
        """Raises StillReferenced."""
        number = self._number(profile)
        with self._guard:
            check(
                self._library.gb_profile_group_delete(self._contents.profiles[number], group),
                IndexError(f"action profile {profile} has no group {group}"),
            )

    def _number(self, profile: str) -> int:
        return number_of(self._numbers, profile, "action profile")
