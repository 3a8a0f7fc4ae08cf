"""Action profile members, groups, one-shot action sets, and the entries that refer to them."""

from __future__ import annotations

import itertools

import pytest
from finsy.proto import p4r
from hypothesis import given
from hypothesis import strategies as st

from gradbed.switch.device import ActionCall, GroupReference, MemberReference, StateFull
from gradbed.switch.p4runtime.status import StatusCode
from gradbed.switch.state.action_profiles import GREATEST_GROUP_WEIGHT, Numbers
from tests.unit.p4runtime.client import DELETE, INSERT, MODIFY, Client, action, entry, exact
from tests.unit.p4runtime.entities.test_state import failures
from tests.unit.p4runtime.fake_device import FakeDevice, Profile
from tests.unit.p4runtime.sample_program import (
    DEFAULT_ONLY,
    DROP,
    ECMP,
    FORWARD,
    INDIRECT,
    MARK,
    NEXTHOP_PROFILE,
    NEXTHOPS,
    config,
)

KEY = exact(1, b"\x0a")


def mark(value: int) -> p4r.Action:
    return action(MARK, bytes([value])).action


def member(member_id: int, value: int | None = None, profile_id: int = ECMP) -> p4r.ActionProfileMember:
    call = mark(value) if value is not None else None
    return p4r.ActionProfileMember(action_profile_id=profile_id, member_id=member_id, action=call)


def group(group_id: int, *members: tuple[int, int], max_size: int = 8) -> p4r.ActionProfileGroup:
    return p4r.ActionProfileGroup(
        action_profile_id=ECMP,
        group_id=group_id,
        max_size=max_size,
        members=[p4r.ActionProfileGroup.Member(member_id=m, weight=w) for m, w in members],
    )


def to_member(member_id: int, table_id: int = INDIRECT) -> p4r.TableEntry:
    return entry(table_id, KEY, action=p4r.TableAction(action_profile_member_id=member_id))


def to_group(group_id: int) -> p4r.TableEntry:
    return entry(INDIRECT, KEY, action=p4r.TableAction(action_profile_group_id=group_id))


def to_set(*actions: p4r.ActionProfileAction, key: p4r.FieldMatch = KEY, **more: int) -> p4r.TableEntry:
    one_shot = p4r.ActionProfileActionSet(action_profile_actions=actions, **more)
    return entry(INDIRECT, key, action=p4r.TableAction(action_profile_action_set=one_shot))


def weighted(value: int, weight: int = 1, **more: object) -> p4r.ActionProfileAction:
    return p4r.ActionProfileAction(action=mark(value), weight=weight, **more)


def call(value: int) -> ActionCall:
    return ActionCall("Ingress.mark", (value,))


@pytest.fixture
def profile(client: Client, device: FakeDevice) -> Profile:
    return device.state.profiles["Ingress.ecmp"]


@pytest.fixture
def three_members(client: Client, profile: Profile) -> None:
    client.write(*((INSERT, member(i, i)) for i in (1, 2, 3)))


class TestMembers:
    def test_life_of_a_member(self, client: Client, profile: Profile) -> None:
        assert client.insert(member(7, 1)) == StatusCode.OK
        assert profile.members == {0: call(1)}
        assert client.insert(member(7, 1)) == StatusCode.ALREADY_EXISTS
        assert client.modify(member(7, 2)) == StatusCode.OK
        assert profile.members == {0: call(2)}
        assert client.read(member(7)) == client.read(p4r.ActionProfileMember()) == [member(7, 2)]
        assert client.delete(member(7)) == StatusCode.OK
        assert client.delete(member(7)) == StatusCode.NOT_FOUND
        assert profile.members == {} and client.read(p4r.ActionProfileMember()) == []

    @pytest.mark.parametrize(
        ("wrong", "code"),
        [
            (member(0, 1), StatusCode.INVALID_ARGUMENT),
            (member(1), StatusCode.INVALID_ARGUMENT),
            (member(1, 1, 0), StatusCode.INVALID_ARGUMENT),
            (member(1, 1, 5), StatusCode.NOT_FOUND),
            (
                p4r.ActionProfileMember(
                    action_profile_id=ECMP, member_id=1, action=action(FORWARD, b"\x01", b"\x01").action
                ),
                StatusCode.OK,
            ),
            (
                p4r.ActionProfileMember(
                    action_profile_id=ECMP, member_id=1, action=action(FORWARD, b"\x02\x00", b"\x01").action
                ),
                StatusCode.OUT_OF_RANGE,
            ),
            (
                p4r.ActionProfileMember(action_profile_id=ECMP, member_id=1, action=action(0x01FFFFFF).action),
                StatusCode.INVALID_ARGUMENT,
            ),
            (
                p4r.ActionProfileMember(action_profile_id=ECMP, member_id=1, action=action(DEFAULT_ONLY).action),
                StatusCode.PERMISSION_DENIED,
            ),
        ],
    )
    def test_inserts(
        self, client: Client, profile: Profile, wrong: p4r.ActionProfileMember, code: StatusCode
    ) -> None:
        assert client.insert(wrong) == code
        assert len(profile.members) == (code == StatusCode.OK)

    def test_size(self, client: Client) -> None:
        updates = [(INSERT, member(i, i, NEXTHOP_PROFILE)) for i in (1, 2, 3)]
        assert client.outcomes(*updates) == [StatusCode.OK, StatusCode.OK, StatusCode.RESOURCE_EXHAUSTED]

    def test_wildcards(self, client: Client, three_members: None) -> None:
        client.write((INSERT, member(1, 5, NEXTHOP_PROFILE)))
        assert len(client.read(p4r.ActionProfileMember())) == 4
        assert client.read(p4r.ActionProfileMember(action_profile_id=ECMP)) == [member(i, i) for i in (1, 2, 3)]
        assert failures(client, member(9)) == [StatusCode.NOT_FOUND]
        assert failures(client, member(0, None, 5)) == [StatusCode.NOT_FOUND]
        assert failures(client, member(1, None, 0)) == [StatusCode.INVALID_ARGUMENT]


class TestGroups:
    def test_life_of_a_group(self, client: Client, profile: Profile, three_members: None) -> None:
        written = group(4, (1, 1), (3, 2))
        assert client.insert(written) == StatusCode.OK
        # Members have the numbers 0 to 2, member 3's second unit of weight has 3.
        assert profile.groups == {0: (0, 2, 2)}
        assert client.insert(written) == StatusCode.ALREADY_EXISTS
        assert client.read(group(4)) == client.read(p4r.ActionProfileGroup()) == [written]
        assert client.modify(group(4, (2, 1))) == StatusCode.OK
        assert profile.groups == {0: (1,)}
        assert client.modify(group(4)) == StatusCode.OK
        assert profile.groups == {0: ()}
        assert client.delete(group(4)) == StatusCode.OK
        assert client.delete(group(4)) == client.modify(group(4)) == StatusCode.NOT_FOUND
        assert failures(client, group(4)) == [StatusCode.NOT_FOUND]

    @pytest.mark.parametrize(
        ("wrong", "code"),
        [
            (group(0, (1, 1)), StatusCode.INVALID_ARGUMENT),
            (group(1, (1, 0)), StatusCode.INVALID_ARGUMENT),
            (group(1, (1, -1)), StatusCode.INVALID_ARGUMENT),
            (group(1, (1, 1), (1, 1)), StatusCode.INVALID_ARGUMENT),
            (group(1, (9, 1)), StatusCode.NOT_FOUND),
            (group(1, max_size=0), StatusCode.INVALID_ARGUMENT),
            (group(1, max_size=9), StatusCode.INVALID_ARGUMENT),
            (group(1, max_size=-1), StatusCode.INVALID_ARGUMENT),
            (group(1, (1, 3), (2, 2), max_size=4), StatusCode.RESOURCE_EXHAUSTED),
            (group(1, (1, 3), (2, 1), max_size=4), StatusCode.OK),
            (p4r.ActionProfileGroup(action_profile_id=NEXTHOP_PROFILE, group_id=1), StatusCode.INVALID_ARGUMENT),
        ],
    )
    def test_inserts(
        self, client: Client, profile: Profile, three_members: None, wrong: p4r.ActionProfileGroup, code: StatusCode
    ) -> None:
        assert client.insert(wrong) == code
        assert len(profile.groups) == (code == StatusCode.OK)

    def test_max_size_is_for_good(self, client: Client, profile: Profile, three_members: None) -> None:
        client.write((INSERT, group(1, (1, 1), max_size=2)))
        assert client.modify(group(1, (2, 1), max_size=3)) == StatusCode.INVALID_ARGUMENT
        assert client.modify(group(1, (2, 3), max_size=2)) == StatusCode.RESOURCE_EXHAUSTED
        assert profile.groups == {0: (0,)}

    def test_watch_ports(self, client: Client, profile: Profile, three_members: None) -> None:
        def watching(**watch: object) -> p4r.ActionProfileGroup:
            members = [p4r.ActionProfileGroup.Member(member_id=1, weight=1, **watch)]
            return p4r.ActionProfileGroup(action_profile_id=ECMP, group_id=1, max_size=1, members=members)

        assert client.insert(watching(watch_port=b"\x00\x03")) == StatusCode.OK
        assert client.read(p4r.ActionProfileGroup()) == [watching(watch_port=b"\x03")]
        assert profile.watched == {0: (3,)}
        assert client.modify(watching(watch=4)) == StatusCode.OK
        assert client.read(p4r.ActionProfileGroup()) == [watching(watch=4)]
        assert profile.watched == {0: (4,)}
        assert client.modify(watching(watch_port=b"\x30")) == StatusCode.INVALID_ARGUMENT  # there is no such port
        assert client.modify(watching(watch_port=b"\x30\x00")) == StatusCode.OUT_OF_RANGE
        assert client.modify(watching(watch=-1)) == StatusCode.INVALID_ARGUMENT
        assert client.modify(watching(watch_port=b"")) == StatusCode.OK
        assert client.read(p4r.ActionProfileGroup()) == [watching()]
        assert profile.watched == {}

    def test_all_units_of_a_member_watch_its_port(
        self, client: Client, profile: Profile, three_members: None
    ) -> None:
        members = [
            p4r.ActionProfileGroup.Member(member_id=1, weight=2, watch_port=b"\x07"),
            p4r.ActionProfileGroup.Member(member_id=2, weight=1),
            p4r.ActionProfileGroup.Member(member_id=3, weight=2, watch_port=b"\x09"),
        ]
        written = p4r.ActionProfileGroup(action_profile_id=ECMP, group_id=1, max_size=5, members=members)
        assert client.insert(written) == StatusCode.OK
        # The second units of members 1 and 3 have the numbers 3 and 4.
        assert profile.groups == {0: (0, 1, 2, 0, 2)}
        assert profile.watched == {0: (7, None, 9, 7, 9)}

    def test_members_of_a_group_cannot_go(self, client: Client, three_members: None) -> None:
        client.write((INSERT, group(1, (1, 1))), (INSERT, group(2, (1, 3))))
        assert client.delete(member(1)) == StatusCode.FAILED_PRECONDITION
        client.write((DELETE, group(1)))
        assert client.delete(member(1)) == StatusCode.FAILED_PRECONDITION
        client.write((MODIFY, group(2, (2, 1))))
        assert client.delete(member(1)) == StatusCode.OK

    def test_a_group_too_heavy_for_the_switch(self, client: Client) -> None:
        unlimited = config()
        unlimited.p4info.action_profiles[0].max_group_size = 0
        client.push(pipeline=unlimited)
        client.write((INSERT, member(1, 1)))
        assert client.insert(group(1, (1, GREATEST_GROUP_WEIGHT + 1), max_size=0)) == StatusCode.RESOURCE_EXHAUSTED
        assert client.insert(group(1, max_size=GREATEST_GROUP_WEIGHT + 1)) == StatusCode.RESOURCE_EXHAUSTED
        assert client.insert(group(1, (1, GREATEST_GROUP_WEIGHT), max_size=0)) == StatusCode.OK

    def test_sizes_that_count_members(self, client: Client, profile: Profile) -> None:
        counting = config()
        counting.p4info.action_profiles[0].sum_of_members.max_member_weight = 5
        client.push(pipeline=counting)
        client.write((INSERT, member(1, 1)), (INSERT, member(2, 2)), (INSERT, member(3, 3)))
        assert client.insert(group(1, (1, 5), (2, 5), max_size=2)) == StatusCode.OK
        assert client.modify(group(1, (1, 6), max_size=2)) == StatusCode.INVALID_ARGUMENT
        assert client.modify(group(1, (1, 1), (2, 1), (3, 1), max_size=2)) == StatusCode.RESOURCE_EXHAUSTED

    def test_selectors_without_weights(self, client: Client, device: FakeDevice) -> None:
        unweighted = config()
        unweighted.p4info.action_profiles[0].weights_disallowed = True
        client.push(pipeline=unweighted)
        client.write((INSERT, member(1, 1)), (INSERT, member(2, 2)))
        assert client.insert(group(1, (1, 1))) == StatusCode.INVALID_ARGUMENT
        assert client.insert(group(1, (2, 0), (1, 0))) == StatusCode.OK
        assert device.state.profiles["Ingress.ecmp"].groups == {0: (0, 1)}
        assert client.read(p4r.ActionProfileGroup()) == [group(1, (2, 0), (1, 0))]


class TestEntries:
    def test_references(self, client: Client, device: FakeDevice, three_members: None) -> None:
        client.write((INSERT, group(1, (1, 1))), (INSERT, to_member(2)))
        [(_, reference, _)] = device.state.tables["Ingress.indirect"].entries.values()
        assert reference == MemberReference(1)
        assert client.read(entry(INDIRECT)) == [to_member(2)]
        assert client.delete(member(2)) == StatusCode.FAILED_PRECONDITION
        assert client.modify(to_group(1)) == StatusCode.OK
        [(_, reference, _)] = device.state.tables["Ingress.indirect"].entries.values()
        assert reference == GroupReference(0)
        assert client.delete(member(2)) == StatusCode.OK
        assert client.delete(group(1)) == StatusCode.FAILED_PRECONDITION
        assert client.delete(to_group(1)) == StatusCode.OK
        assert client.delete(group(1)) == StatusCode.OK

    def test_references_to_nothing(self, client: Client, device: FakeDevice, three_members: None) -> None:
        assert client.insert(to_member(9)) == client.insert(to_group(9)) == StatusCode.NOT_FOUND
        client.write((INSERT, to_member(1)))
        assert client.modify(to_member(9)) == StatusCode.NOT_FOUND
        assert client.read(entry(INDIRECT)) == [to_member(1)]

    def test_what_the_implementation_has(self, client: Client) -> None:
        client.write((INSERT, member(1, 1, NEXTHOP_PROFILE)))
        assert client.insert(to_member(1, NEXTHOPS)) == StatusCode.OK
        for kind in (
            p4r.TableAction(action_profile_group_id=1),
            p4r.TableAction(action_profile_action_set=p4r.ActionProfileActionSet()),
            action(DROP),
        ):
            assert client.modify(entry(NEXTHOPS, KEY, action=kind)) == StatusCode.INVALID_ARGUMENT

    def test_default_entry_is_constant(self, client: Client) -> None:
        default = entry(INDIRECT, action=p4r.TableAction(action_profile_member_id=1), is_default_action=True)
        assert client.modify(default) == StatusCode.PERMISSION_DENIED

    def test_filters(self, client: Client, three_members: None) -> None:
        client.write((INSERT, to_member(1)))
        assert client.read(entry(INDIRECT, action=action(MARK))) == []
        assert failures(client, entry(INDIRECT, action=p4r.TableAction(action_profile_member_id=1))) == [
            StatusCode.INVALID_ARGUMENT
        ]

    def test_survive_reconciliation(self, client: Client, device: FakeDevice, three_members: None) -> None:
        client.write((INSERT, group(1, (1, 2), (3, 1))), (INSERT, to_group(1)))
        before = client.read(p4r.ActionProfileMember(), p4r.ActionProfileGroup(), entry(INDIRECT))
        client.push("RECONCILE_AND_COMMIT", config(cookie=8, routes="Ingress.renamed"))
        assert client.read(p4r.ActionProfileMember(), p4r.ActionProfileGroup(), entry(INDIRECT)) == before
        assert device.state.profiles["Ingress.ecmp"].groups == {0: (0, 2, 0)}


class TestOneShots:
    def test_life_of_a_set(self, client: Client, device: FakeDevice, profile: Profile) -> None:
        written = to_set(weighted(1, 2, watch_port=b"\x03"), weighted(2, watch=4), weighted(1))
        assert client.insert(written) == StatusCode.OK
        assert profile.members == {0: call(1), 2: call(2), 3: call(1)}
        assert profile.groups == {0: (0, 0, 2, 3)}
        assert client.read(entry(INDIRECT)) == [written]
        # What stands behind it is nobody else's business.
        assert client.read(p4r.ActionProfileMember(), p4r.ActionProfileGroup()) == []
        changed = to_set(weighted(5))
        assert client.modify(changed) == StatusCode.OK
        assert profile.members == {4: call(5)} and profile.groups == {1: (4,)}
        assert client.modify(changed) == StatusCode.OK
        assert profile.groups == {1: (4,)}
        assert client.delete(changed) == StatusCode.OK
        assert profile == Profile()
        assert device.state.tables["Ingress.indirect"].entries == {}

    @pytest.mark.parametrize(
        ("wrong", "code"),
        [
            (to_set(weighted(1, 0)), StatusCode.INVALID_ARGUMENT),
            (to_set(weighted(1, 9)), StatusCode.INVALID_ARGUMENT),
            (to_set(weighted(1, 5), weighted(2, 4)), StatusCode.INVALID_ARGUMENT),
            (to_set(p4r.ActionProfileAction(weight=1)), StatusCode.INVALID_ARGUMENT),
            (
                to_set(p4r.ActionProfileAction(action=action(0x01FFFFFF).action, weight=1)),
                StatusCode.INVALID_ARGUMENT,
            ),
            (to_set(weighted(1, watch_port=b"\x30")), StatusCode.INVALID_ARGUMENT),
            (to_set(weighted(1), action_selection_mode=2), StatusCode.UNIMPLEMENTED),
            (to_set(weighted(1), size_semantics=2), StatusCode.UNIMPLEMENTED),
            (to_set(weighted(1), action_selection_mode=1, size_semantics=1), StatusCode.OK),
            (to_set(), StatusCode.OK),
        ],
    )
    def test_inserts(
        self, client: Client, device: FakeDevice, profile: Profile, wrong: p4r.TableEntry, code: StatusCode
    ) -> None:
        assert client.insert(wrong) == code
        if code == StatusCode.OK:
            assert client.read(entry(INDIRECT)) == [wrong]
        else:
            assert profile == Profile() and device.state.tables["Ingress.indirect"].entries == {}

    def test_either_one_shots_or_members(self, client: Client, three_members: None) -> None:
        assert client.insert(to_set(weighted(1))) == StatusCode.INVALID_ARGUMENT
        client.write(*((DELETE, member(i)) for i in (1, 2, 3)))
        assert client.insert(to_set(weighted(1))) == StatusCode.OK
        assert client.outcomes((INSERT, member(1, 1)), (INSERT, group(1))) == [StatusCode.INVALID_ARGUMENT] * 2
        client.write((DELETE, to_set()))
        assert client.insert(member(1, 1)) == StatusCode.OK

    def test_nothing_is_left_of_a_set_that_failed(self, client: Client, device: FakeDevice, profile: Profile) -> None:
        client.write((INSERT, to_set(weighted(1))))
        before = Profile(dict(profile.members), dict(profile.groups))
        writes = itertools.count()
        real = device.state.profiles.write_member

        def limited(name: str, number: int, what: ActionCall) -> None:
            if next(writes) == 2:
                raise StateFull("full")
            real(name, number, what)

        device.state.profiles.write_member = limited
        other = to_set(weighted(2), weighted(3), weighted(4), key=exact(1, b"\x0b"))
        assert client.insert(other) == StatusCode.RESOURCE_EXHAUSTED
        assert profile == before
        assert client.insert(other) == StatusCode.OK

        def refuse(*_: object) -> None:
            raise StateFull("full")

        device.state.tables.insert = refuse
        groups = dict(profile.groups)
        assert client.insert(to_set(weighted(5), key=exact(1, b"\x0c"))) == StatusCode.RESOURCE_EXHAUSTED
        assert profile.groups == groups and len(profile.members) == 4

    def test_survives_reconciliation(self, client: Client, device: FakeDevice) -> None:
        client.write((INSERT, to_set(weighted(1, 2))))
        client.push("RECONCILE_AND_COMMIT", config(cookie=8, routes="Ingress.renamed"))
        assert client.read(entry(INDIRECT)) == [to_set(weighted(1, 2))]
        assert device.state.profiles["Ingress.ecmp"].groups == {0: (0, 0)}


@given(st.lists(st.integers(0, 5)))
def test_numbers_are_the_lowest_that_are_free(steps: list[int]) -> None:
    numbers, taken = Numbers(), set()
    for step in steps:
        if step in taken:
            numbers.give_back(step)
            taken.remove(step)
        else:
            number = numbers.take()
            assert number == next(i for i in itertools.count() if i not in taken)
            taken.add(number)
