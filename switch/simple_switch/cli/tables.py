"""Commands on tables and action profiles.

P4Runtime has no handles. An entry that is added here carries its handle, a number from 0 on, in the metadata that
P4Runtime keeps for controllers; other entries go by a number made of their key. Members and groups of action profiles
have ids that count from 1, where BMv2's handles count from 0: a handle is an id less 1.
"""

from __future__ import annotations

import zlib
from typing import Any

from finsy.proto import p4r

from gradbed.switch.simple_switch.cli import arguments as values
from gradbed.switch.simple_switch.cli.arguments import CommandError, expect, integer
from gradbed.switch.simple_switch.cli.client import Commands

# ---- Tables ----


# With Thrift the smaller priority wins, with P4Runtime the larger.
_GREATEST_PRIORITY = 2**31 - 1
_SEPARATOR = ",\t"
_HANDLE = b"simple_switch_CLI "
_FIRST_FOREIGN_HANDLE = 1 << 24


class TableCommands(Commands):
    rates_of_new_entries: dict[int, Any]
    """MeterConfig by table, for entries that are added."""

    def do_show_tables(self, line: str) -> None:
        """show_tables: the tables of the program"""
        for table in self.program.tables.all:
            print(self._table_line(table))

    def _table_line(self, table: Any) -> str:
        profile = self.program.profiles.get(table.implementation_id)
        key = _SEPARATOR.join(f"{f.name}({values.kind_name(f)}, {f.bitwidth})" for f in table.match_fields)
        return f"{table.preamble.name:30} [implementation={profile and profile.preamble.name}, mk={key}]"

    def do_show_actions(self, line: str) -> None:
        """show_actions: the actions of the program"""
        for action in self.program.actions.all:
            print(_action_line(action))

    def do_table_info(self, line: str) -> None:
        """table_info TABLE: its key and its actions"""
        (table,) = self._tables(line, "table_info TABLE")
        print(self._table_line(table))
        print("*" * 80)
        self._show_actions(table)

    def do_table_show_actions(self, line: str) -> None:
        """table_show_actions TABLE: its actions"""
        (table,) = self._tables(line, "table_show_actions TABLE")
        self._show_actions(table)

    def do_table_num_entries(self, line: str) -> None:
        """table_num_entries TABLE: how many entries it has"""
        (table,) = self._tables(line, "table_num_entries TABLE")
        print(len(self.entries(table)))

    def do_table_set_default(self, line: str) -> None:
        """table_set_default TABLE ACTION [PARAMETER ...]: what happens when no entry matches"""
        arguments = line.split()
        expect(arguments, 2, "table_set_default TABLE ACTION [PARAMETER ...]", len(arguments))
        table = self.program.tables.find(arguments[0])
        action = self.program.action_of(table, arguments[1])
        entry = p4r.TableEntry(table_id=table.preamble.id, is_default_action=True)
        entry.action.action.CopyFrom(self.action(action, _without_arrow(arguments[2:])))
        print(f"Setting default action of {arguments[0]}")
        self._print_call(action, entry.action.action)
        self.client.modify(p4r.Entity(table_entry=entry))

    def do_table_reset_default(self, line: str) -> None:
        """table_reset_default TABLE: back to the program's default action"""
        (table,) = self._tables(line, "table_reset_default TABLE")
        entry = p4r.TableEntry(table_id=table.preamble.id, is_default_action=True)
        self.client.modify(p4r.Entity(table_entry=entry))

    def do_table_add(self, line: str) -> None:
        """table_add TABLE ACTION KEY ... => [PARAMETER ...] [PRIORITY]: PRIORITY in ternary and range tables alone,
        and the smaller wins. Keys: VALUE, PREFIX/LENGTH, VALUE&&&MASK, LOW->HIGH."""
        arguments = line.split()
        usage = "table_add TABLE ACTION KEY ... => [PARAMETER ...] [PRIORITY]"
        expect(arguments, 3, usage, len(arguments))
        table = self.program.tables.find(arguments[0])
        action = self.program.action_of(table, arguments[1])
        entry, parameters = self._new_entry(table, arguments[2:], usage)
        entry.action.action.CopyFrom(self.action(action, parameters))
        print(f"Adding entry to {values.table_kind(table)} match table {arguments[0]}")
        self._print_key(table, entry)
        self._print_call(action, entry.action.action)
        self._insert(entry)

    def do_table_indirect_add(self, line: str) -> None:
        """table_indirect_add TABLE KEY ... => MEMBER [PRIORITY]: an entry that refers to a member"""
        self._add_indirect(line, "table_indirect_add TABLE KEY ... => MEMBER [PRIORITY]", "action_profile_member_id")

    def do_table_indirect_add_with_group(self, line: str) -> None:
        """table_indirect_add_with_group TABLE KEY ... => GROUP [PRIORITY]: an entry that refers to a group"""
        usage = "table_indirect_add_with_group TABLE KEY ... => GROUP [PRIORITY]"
        self._add_indirect(line, usage, "action_profile_group_id")

    def do_table_modify(self, line: str) -> None:
        """table_modify TABLE ACTION HANDLE [=>] [PARAMETER ...]: give an entry another action or parameters"""
        arguments = line.split()
        expect(arguments, 3, "table_modify TABLE ACTION HANDLE [=>] [PARAMETER ...]", len(arguments))
        table = self.program.tables.find(arguments[0])
        action = self.program.action_of(table, arguments[1])
        entry = self.entry(table, arguments[2])
        entry.action.action.CopyFrom(self.action(action, _without_arrow(arguments[3:])))
        print(f"Modifying entry {arguments[2]} for {values.table_kind(table)} match table {arguments[0]}")
        self.client.modify(_bare(entry))

    def do_table_delete(self, line: str) -> None:
        """table_delete TABLE HANDLE: remove an entry"""
        arguments = line.split()
        expect(arguments, 2, "table_delete TABLE HANDLE")
        table = self.program.tables.find(arguments[0])
        print(f"Deleting entry {arguments[1]} from {arguments[0]}")
        self.client.delete(_bare(self.entry(table, arguments[1])))

    do_table_indirect_delete = do_table_delete

    def do_table_clear(self, line: str) -> None:
        """table_clear TABLE: remove all entries but the default entry"""
        (table,) = self._tables(line, "table_clear TABLE")
        entries = [_bare(entry) for entry in self.entries(table) if not entry.is_const]
        if entries:
            self.client.delete(*entries)

    def do_table_set_timeout(self, line: str) -> None:
        """table_set_timeout TABLE HANDLE MILLISECONDS: after how long without a packet controllers are told"""
        arguments = line.split()
        expect(arguments, 3, "table_set_timeout TABLE HANDLE MILLISECONDS")
        entry = self.entry(self.program.tables.find(arguments[0]), arguments[1])
        entry.idle_timeout_ns = integer(arguments[2], "the timeout") * 1_000_000
        self.client.modify(_bare(entry))

    def do_table_dump(self, line: str) -> None:
        """table_dump TABLE: its entries and its default entry"""
        (table,) = self._tables(line, "table_dump TABLE")
        print("==========\nTABLE ENTRIES")
        for entry in self.entries(table):
            print("**********")
            self._dump(table, entry)
        wanted = p4r.TableEntry(table_id=table.preamble.id, is_default_action=True)
        print("==========\nDumping default entry")
        for entry in self.client.read(p4r.Entity(table_entry=wanted)):
            self._dump_call(entry.action)
        print("==========")

    def do_table_dump_entry(self, line: str) -> None:
        """table_dump_entry TABLE HANDLE: one entry"""
        arguments = line.split()
        expect(arguments, 2, "table_dump_entry TABLE HANDLE")
        table = self.program.tables.find(arguments[0])
        self._dump(table, self.entry(table, arguments[1]))

    # Entries

    def entry(self, table: Any, handle: str) -> Any:
        """Return the TableEntry message of a handle."""
        number = integer(handle, "the entry's handle")
        for entry in self.entries(table):
            if _handle(entry) == number:
                return entry
        raise CommandError(f"table {table.preamble.name} has no entry with handle {number}")

    def entries(self, table: Any) -> list[Any]:
        """Return the TableEntry messages of a table."""
        return self.client.read(p4r.Entity(table_entry=p4r.TableEntry(table_id=table.preamble.id)))

    def _new_entry(self, table: Any, arguments: list[str], usage: str) -> tuple[Any, list[str]]:
        """Return an entry with its key and priority, and the arguments behind these."""
        if "=>" not in arguments:
            raise CommandError(f"usage: {usage}")
        entry = p4r.TableEntry(table_id=table.preamble.id)
        arrow = arguments.index("=>")
        rest = arguments[arrow + 1 :]
        if values.needs_priority(table):
            if not rest:
                raise CommandError(f"entries of the {values.table_kind(table)} table need a priority, at the end")
            entry.priority = _GREATEST_PRIORITY - integer(rest.pop(), "the priority")
        entry.match.extend(values.parse_key(table, arguments[:arrow]))
        return entry, rest

    def _add_indirect(self, line: str, usage: str, field: str) -> None:
        arguments = line.split()
        expect(arguments, 3, usage, len(arguments))
        table = self.program.tables.find(arguments[0])
        entry, rest = self._new_entry(table, arguments[1:], usage)
        expect(rest, 1, usage)
        setattr(entry.action, field, integer(rest[0], "the handle") + 1)
        print(f"Adding entry to indirect match table {arguments[0]}")
        self._insert(entry)

    def _insert(self, entry: Any) -> None:
        own = [
            _handle(other)
            for other in self.client.read(p4r.Entity(table_entry=p4r.TableEntry(table_id=entry.table_id)))
            if other.metadata.startswith(_HANDLE)
        ]
        handle = max(own, default=-1) + 1
        entry.metadata = _HANDLE + str(handle).encode()
        if entry.table_id in self.rates_of_new_entries:
            entry.meter_config.CopyFrom(self.rates_of_new_entries[entry.table_id])
        self.client.insert(p4r.Entity(table_entry=entry))
        print(f"Entry has been added with handle {handle}")

    def _tables(self, line: str, usage: str) -> list[Any]:
        arguments = line.split()
        expect(arguments, 1, usage)
        return [self.program.tables.find(arguments[0])]

    # Output

    def _show_actions(self, table: Any) -> None:
        actions = [self.program.actions.get(reference.id) for reference in table.action_refs]
        for action in sorted(actions, key=lambda action: str(action.preamble.name)):
            print(_action_line(action))

    def _print_key(self, table: Any, entry: Any) -> None:
        shown = (
            f"{values.kind_name(field).upper()}-{values.show_field(field, match, colons=True)}"
            for field, match in _fields(table, entry)
        )
        print(f"{'match key:':20} " + "\t".join(shown))

    def _print_call(self, action: Any, message: Any) -> None:
        widths = {parameter.id: parameter.bitwidth for parameter in action.params}
        shown = "\t".join(values.with_colons(part.value, widths[part.param_id]) for part in message.params)
        print(f"{'action:':20} {action.preamble.name}\n{'runtime data:':20} {shown}")

    def _dump(self, table: Any, entry: Any) -> None:
        print(f"Dumping entry {_handle(entry):#x}\nMatch key:")
        width = max([20, *(len(field.name) for field in table.match_fields)])
        for field, match in _fields(table, entry):
            kind = values.kind_name(field).upper()
            print(f"* {field.name:{width}}: {kind:10}{values.show_field(field, match, colons=False)}")
        if values.needs_priority(table):
            print(f"Priority: {_GREATEST_PRIORITY - entry.priority}")
        self._dump_call(entry.action)

    def _dump_call(self, message: Any) -> None:
        kind = message.WhichOneof("type")
        if kind == "action":
            self.dump_action(message.action)
        elif kind == "action_profile_member_id":
            print(f"Index: member({message.action_profile_member_id - 1})")
        elif kind == "action_profile_group_id":
            print(f"Index: group({message.action_profile_group_id - 1})")
        elif kind == "action_profile_action_set":
            for part in message.action_profile_action_set.action_profile_actions:
                self.dump_action(part.action)
        else:
            print("EMPTY")


def _fields(table: Any, entry: Any) -> list[tuple[Any, Any]]:
    matches = {match.field_id: match for match in entry.match}
    return [(field, matches.get(field.id)) for field in table.match_fields]


def _handle(entry: Any) -> int:
    number = entry.metadata.removeprefix(_HANDLE)
    if entry.metadata.startswith(_HANDLE) and number.isdigit():
        return int(number)
    key = b"".join(match.SerializeToString(deterministic=True) for match in entry.match)
    return _FIRST_FOREIGN_HANDLE + (zlib.crc32(key + str(entry.priority).encode()) & 0xFFFFFF)


def key_of(entry: Any) -> Any:
    """Return a TableEntry with the entry's key alone, which addresses direct counters and meters."""
    return p4r.TableEntry(table_id=entry.table_id, match=entry.match, priority=entry.priority)


def _bare(entry: Any) -> Any:
    """Return the entry without what is read along with it."""
    bare = p4r.TableEntry()
    bare.CopyFrom(entry)
    for field in ("counter_data", "meter_config", "meter_counter_data", "time_since_last_hit"):
        bare.ClearField(field)
    if entry.HasField("meter_config"):
        bare.meter_config.CopyFrom(entry.meter_config)
    return p4r.Entity(table_entry=bare)


def _without_arrow(parameters: list[str]) -> list[str]:
    return parameters[1:] if parameters[:1] == ["=>"] else parameters


def _action_line(action: Any) -> str:
    return f"{action.preamble.name:30} [{_SEPARATOR.join(f'{p.name}({p.bitwidth})' for p in action.params)}]"


# ---- Action profiles ----


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
