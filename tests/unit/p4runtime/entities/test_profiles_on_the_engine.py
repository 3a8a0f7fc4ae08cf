"""Members, groups, one-shots and the entries that refer to them, at random: the data plane agrees with the server."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from finsy.proto import p4r

from gradbed.switch.codegen import build_program
from gradbed.switch.compiler import compile_p4
from gradbed.switch.engine import Engine
from gradbed.switch.p4runtime.roles import Role
from gradbed.switch.p4runtime.status import StatusCode
from gradbed.switch.state.pipeline import build_pipeline
from gradbed.switch.state.running_device import ForwardingState
from gradbed.topo.link import LinkModel
from tests.unit.p4runtime.client import DELETE, INSERT, MODIFY, action, entity, entry, exact, ids
from tests.unit.p4runtime.network import frame

BALANCED = 0x1000
PORTS = (1, 2, 3)
WATCHED = (4, 5)
"""Ports that nothing is sent to."""
KEYS = range(1, 5)
IDS = range(1, 6)
EVERYTHING = Role("")
ALLOWED = {
    None,
    StatusCode.ALREADY_EXISTS,
    StatusCode.NOT_FOUND,
    StatusCode.FAILED_PRECONDITION,
    StatusCode.INVALID_ARGUMENT,  # one-shots beside members and groups
}


class Balancer:
    """The table and selector of state.p4, written through the server's own state."""

    def __init__(self, engine: Engine, seed: int) -> None:
        compiled = compile_p4(Path(__file__).parents[1] / "state.p4")
        info = compiled.p4info
        pipeline = build_pipeline(info, compiled.json_text.encode(), build_program)
        device = engine.add_switch(1)
        for port in PORTS + WATCHED:
            engine.add_open_port(1, port)
        device.load(pipeline.program)
        of = ids(info)
        self.table, self.profile, self.forward = of["balanced"], of["balancer"], of["forward"]
        self.down: set[int] = set()
        self.engine, self.state, self.rng = engine, ForwardingState(device, pipeline), random.Random(seed)

    def call(self) -> p4r.Action:
        return action(self.forward, bytes([self.rng.choice(PORTS)])).action

    def member(self) -> p4r.ActionProfileMember:
        return p4r.ActionProfileMember(
            action_profile_id=self.profile, member_id=self.rng.choice(IDS), action=self.call()
        )

    def watch(self) -> bytes:
        return self.rng.choice((b"", *(bytes([port]) for port in WATCHED)))

    def group(self) -> p4r.ActionProfileGroup:
        chosen = self.rng.sample(IDS, self.rng.randrange(4))
        members = [
            p4r.ActionProfileGroup.Member(member_id=m, weight=self.rng.randrange(1, 4), watch_port=self.watch())
            for m in chosen
        ]
        return p4r.ActionProfileGroup(action_profile_id=self.profile, group_id=self.rng.choice(IDS), members=members)

    def table_entry(self, one_shots: bool) -> p4r.TableEntry:
        does = p4r.TableAction()
        if one_shots:
            for _ in range(self.rng.randrange(4)):
                does.action_profile_action_set.action_profile_actions.add(
                    action=self.call(), weight=1, watch_port=self.watch()
                )
            does.action_profile_action_set.SetInParent()
        elif self.rng.random() < 0.5:
            does.action_profile_member_id = self.rng.choice(IDS)
        else:
            does.action_profile_group_id = self.rng.choice(IDS)
        return entry(self.table, exact(1, bytes([self.rng.choice(KEYS)])), action=does)

    def write(self, kind: int, message: object) -> StatusCode | None:
        [outcome] = self.state.write([p4r.Update(type=kind, entity=entity(message))], EVERYTHING)
        return None if outcome is None else outcome.code

    def read(self, message: object) -> list:
        return [getattr(e, e.WhichOneof("entity")) for e in self.state.read(entity(message), EVERYTHING)]

    def is_up(self, watcher: p4r.ActionProfileGroup.Member | p4r.ActionProfileAction) -> bool:
        return not watcher.watch_port or watcher.watch_port[0] not in self.down

    def set_link_up(self, port: int, up: bool) -> None:
        self.engine.set_link_up(1, port, up)
        self.down = self.down - {port} if up else self.down | {port}

    def allowed_ports(self) -> dict[int, set[int]]:
        """By key: where a packet may go, from what is read back."""
        members = {m.member_id: _port(m.action) for m in self.read(p4r.ActionProfileMember())}
        groups = {
            g.group_id: {members[m.member_id] for m in g.members if self.is_up(m)}
            for g in self.read(p4r.ActionProfileGroup())
        }
        found = {}
        for e in self.read(entry(self.table)):
            kind = e.action.WhichOneof("type")
            if kind == "action_profile_member_id":
                ports = {members[e.action.action_profile_member_id]}
            elif kind == "action_profile_group_id":
                ports = groups[e.action.action_profile_group_id]
            else:
                actions = e.action.action_profile_action_set.action_profile_actions
                ports = {_port(a.action) for a in actions if self.is_up(a)}
            found[e.match[0].exact.value[0]] = ports
        return found

    def taken_ports(self, key: int) -> set[int]:
        for _ in range(24):
            self.engine.inject(1, 1, frame(key, self.rng.randrange(2**48), BALANCED))
        self.engine.advance(0)
        return {port for _, port, _ in self.engine.drain()}


def _port(call: p4r.Action) -> int:
    return call.params[0].value[0]


@pytest.mark.parametrize("seed", range(4))
def test_random_writes(seed: int) -> None:
    with Engine(manual_clock=True) as engine:
        balancer = Balancer(engine, seed)
        rng = balancer.rng
        outcomes = set()
        for step in range(600):
            one_shots = step % 200 >= 150
            if step % 50 == 0 and (one_shots or step % 200 == 0):
                # From one style to the other through an empty table.
                for kind in (entry(balancer.table), p4r.ActionProfileGroup(), p4r.ActionProfileMember()):
                    for message in balancer.read(kind):
                        assert balancer.write(DELETE, message) is None
            choices = [balancer.table_entry(one_shots), balancer.table_entry(one_shots)]
            if not one_shots:
                choices += [balancer.member(), balancer.group()]
            outcomes.add(balancer.write(rng.choice((INSERT, INSERT, MODIFY, DELETE)), rng.choice(choices)))
            if step % 7 == 0:
                balancer.set_link_up(rng.choice(WATCHED), rng.random() < 0.5)
            if step % 25 == 24:
                allowed = balancer.allowed_ports()
                for key in KEYS:
                    taken = balancer.taken_ports(key)
                    assert taken <= allowed.get(key, set())
                    assert bool(taken) == bool(allowed.get(key))
        assert outcomes <= ALLOWED and len(outcomes) >= 4


def balanced_group(balancer: Balancer) -> p4r.ActionProfileGroup:
    """Written: members 1 to 3 by their ports, and an entry for key 1 that uses group 1. Still empty: the group."""
    for port in PORTS:
        call = action(balancer.forward, bytes([port])).action
        member = p4r.ActionProfileMember(action_profile_id=balancer.profile, member_id=port, action=call)
        assert balancer.write(INSERT, member) is None
    return p4r.ActionProfileGroup(action_profile_id=balancer.profile, group_id=1)


def use(balancer: Balancer, group: p4r.ActionProfileGroup) -> None:
    uses = entry(balancer.table, exact(1, b"\x01"), action=p4r.TableAction(action_profile_group_id=1))
    for message in (group, uses):
        assert balancer.write(INSERT, message) is None


def test_ports_that_are_down_are_left_out() -> None:
    """Also when they were down before the group was written, and with all of them down the group is an empty one."""
    with Engine(manual_clock=True) as engine:
        balancer = Balancer(engine, 1)
        group = balanced_group(balancer)
        group.members.add(member_id=1, weight=1, watch_port=b"\x04")
        group.members.add(member_id=2, weight=3, watch=5)
        engine.set_link_up(1, 4, False)
        use(balancer, group)
        assert balancer.taken_ports(1) == {2}
        engine.set_link_up(1, 4, True)
        assert balancer.taken_ports(1) == {1, 2}
        engine.set_link_up(1, 5, False)
        assert balancer.taken_ports(1) == {1}
        engine.set_link_up(1, 4, False)
        assert balancer.taken_ports(1) == set()
        group.members.add(member_id=3, weight=1)
        assert balancer.write(MODIFY, group) is None
        assert balancer.taken_ports(1) == {3}
        assert balancer.read(p4r.ActionProfileGroup())[0].members == group.members


def test_a_port_is_down_at_both_ends_of_a_link_that_is_cut() -> None:
    with Engine(manual_clock=True) as engine:
        balancer = Balancer(engine, 1)
        engine.add_switch(2)
        engine.add_link((1, 6), (2, 1), LinkModel(), 0)
        group = balanced_group(balancer)
        group.members.add(member_id=1, weight=1, watch_port=b"\x06")
        group.members.add(member_id=2, weight=1)
        use(balancer, group)
        assert balancer.taken_ports(1) == {1, 2}
        for end in ((1, 6), (2, 1)):
            engine.set_link_up(*end, False)
            assert balancer.taken_ports(1) == {2}
            engine.set_link_up(*end, True)
            assert balancer.taken_ports(1) == {1, 2}
