"""Which member of a group a packet gets, on our switch and on BMv2: equal for equal packets."""

from __future__ import annotations

import contextlib
import select
import socket
from collections.abc import Mapping
from pathlib import Path

import pytest
from finsy.proto import p4r

from gradbed.emulation.veth import VethPair, create_pairs
from tests.emulation.sandboxed import in_sandbox
from tests.p4.switch_under_test import needs_bmv2, open_socket, serve_bmv2, serve_gradbed
from tests.unit.p4runtime.client import DELETE, INSERT, MODIFY, Client, action, entry, exact, ids, pipeline_of

pytestmark = pytest.mark.root

PROGRAM = Path(__file__).with_name("balancer.p4")
PORTS = (1, 2, 3, 4)
ETHER_TYPE = 0x88B5
FLOWS = 64
FRAME_TIMEOUT_S = 10.0
DESTINATION, OTHER_DESTINATION = bytes([2, 0, 0, 0, 0, 2]), bytes([2, 0, 0, 0, 0, 3])
Choices = list[tuple[int, ...]]


class Balancer:
    """Writes to table `balanced` and action selector `balancer` of a switch, and the choices of many packets."""

    def __init__(self, address: str, sockets: Mapping[int, socket.socket]) -> None:
        pipeline = pipeline_of(PROGRAM)
        self._sockets = sockets
        self.client = Client(address)
        self.client.become_primary()
        self.client.push(pipeline=pipeline)
        of = ids(pipeline.p4info)
        self._table_id, self._profile_id, self._forward_id = of["balanced"], of["balancer"], of["forward"]

    def call(self, port: int) -> p4r.Action:
        return action(self._forward_id, bytes([port])).action

    def member(self, member_id: int, port: int) -> p4r.ActionProfileMember:
        return p4r.ActionProfileMember(
            action_profile_id=self._profile_id, member_id=member_id, action=self.call(port)
        )

    def group(self, **weights: int) -> p4r.ActionProfileGroup:
        members = [p4r.ActionProfileGroup.Member(member_id=int(m[1:]), weight=w) for m, w in weights.items()]
        return p4r.ActionProfileGroup(action_profile_id=self._profile_id, group_id=1, members=members)

    def to_group(self) -> p4r.TableEntry:
        return entry(self._table_id, exact(1, DESTINATION), action=p4r.TableAction(action_profile_group_id=1))

    def to_set(self, destination: bytes, *ports: tuple[int, int]) -> p4r.TableEntry:
        actions = [p4r.ActionProfileAction(action=self.call(port), weight=weight) for port, weight in ports]
        one_shot = p4r.ActionProfileActionSet(action_profile_actions=actions)
        return entry(
            self._table_id, exact(1, destination), action=p4r.TableAction(action_profile_action_set=one_shot)
        )

    def choices(self, destination: bytes = DESTINATION) -> tuple[int, ...]:
        """Ports that frames of many sources leave through."""
        return tuple(
            self._exchange(destination + (i * 0x0123_4567_89AB % 2**48).to_bytes(6, "big")) for i in range(FLOWS)
        )

    def _exchange(self, addresses: bytes) -> int:
        frame = addresses + ETHER_TYPE.to_bytes(2, "big") + bytes(46)
        self._sockets[1].send(frame)
        ready, _, _ = select.select(list(self._sockets.values()), [], [], FRAME_TIMEOUT_S)
        [out] = [port for port, end in self._sockets.items() if end in ready]
        assert self._sockets[out].recv(2048) == frame
        return out


def members_and_groups(balancer: Balancer) -> Choices:
    client = balancer.client
    client.write(*((INSERT, balancer.member(i, port)) for i, port in ((3, 2), (1, 3), (2, 4))))
    client.write((INSERT, balancer.group(m1=1, m2=1, m3=1)))
    client.write((INSERT, balancer.to_group()))
    result = [balancer.choices()]
    client.write((MODIFY, balancer.group(m1=3, m2=1, m3=2)))
    result.append(balancer.choices())
    client.write((MODIFY, balancer.group(m1=1, m3=2)))
    result.append(balancer.choices())
    # The numbers that came free are taken again, lowest first.
    client.write((DELETE, balancer.member(2, 4)))
    client.write((INSERT, balancer.member(9, 1)))
    client.write((MODIFY, balancer.group(m9=2, m1=2, m3=1)))
    result.append(balancer.choices())
    client.write((MODIFY, balancer.member(1, 4)))
    result.append(balancer.choices())
    return result


def one_shots(balancer: Balancer) -> Choices:
    client = balancer.client
    client.write((INSERT, balancer.to_set(OTHER_DESTINATION, (4, 1), (3, 2))))
    client.write((INSERT, balancer.to_set(DESTINATION, (2, 2), (3, 1), (4, 1))))
    result = [balancer.choices(), balancer.choices(OTHER_DESTINATION)]
    client.write((DELETE, balancer.to_set(OTHER_DESTINATION)))
    client.write((MODIFY, balancer.to_set(DESTINATION, (1, 3), (2, 1), (3, 1), (4, 2))))
    result.append(balancer.choices())
    return result


@needs_bmv2
@pytest.mark.parametrize("program", [members_and_groups, one_shots])
@in_sandbox
def test_same_choices(program: object, tmp_path: Path) -> None:
    create_pairs(
        [VethPair(f"s1-eth{p}", f"02:00:00:00:01:{p:02x}", f"t{p}", f"02:00:00:00:02:{p:02x}") for p in PORTS],
        group=7,
    )
    found = []
    for serve in (serve_bmv2, serve_gradbed):
        with contextlib.ExitStack() as stack:
            sockets = {p: stack.enter_context(open_socket(f"t{p}")) for p in PORTS}
            address = stack.enter_context(serve(len(PORTS), tmp_path))
            found.append(program(Balancer(address, sockets)))  # type: ignore[operator]
    bmv2, gradbed = found
    assert gradbed == bmv2
    assert all(len(set(choices)) > 1 for choices in gradbed)
