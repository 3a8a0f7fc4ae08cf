"""Two switches with p4src/aggregation.p4 in a row: partial sums of the first are added up in the second.

Workers 0 and 1 are behind the near switch, 2 and 3 behind the far one, which is the server's ToR. So the far switch
waits for four workers, the near one for two.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

from gradbed.formats.aggregation import MAX_MAGNITUDE, Flags
from gradbed.formats.datagram import CE
from gradbed.hosts.systems.aggregation.gradient import Gradient
from tests.emulation.sandboxed import in_sandbox
from tests.p4.aggregation.aggregation_packets import (
    DEFINES,
    JOB,
    LANES,
    NEXT_NUMBER,
    ONWARD_PORT,
    OWN_NUMBER,
    PORTS,
    SERVER_PORT,
    Run,
    TwoLevels,
    answer,
    bitmap,
    colliding_numbers,
    gradient,
    parsed,
    switch_plan,
    values,
)
from tests.p4.behaviours import failures
from tests.p4.switch_under_test import SwitchUnderTest, on_every_pair, only, switch_under_test

pytestmark = pytest.mark.root


def near(worker: int, number: int = 0, flags: int = 0, value: int | None = None, tos: int = 2) -> bytes:
    """Of worker 0 or 1: to be summed at the near switch first."""
    return gradient(
        worker,
        number,
        flags=flags,
        value=value,
        tos=tos,
        switch_number=OWN_NUMBER,
        fan_in=2,
        next_switch=NEXT_NUMBER,
        next_fan_in=4,
    )


def far(worker: int, number: int = 0, flags: int = 0, value: int | None = None) -> bytes:
    """Of worker 2 or 3: to be summed at the far switch."""
    return gradient(worker, number, flags=flags, value=value, switch_number=NEXT_NUMBER, fan_in=4)


def assert_sum(headers: Iterable[Gradient], *workers: int) -> None:
    (header,) = headers
    assert (header.lanes, header.worker_bitmap) == (values(*workers), bitmap(*workers))
    assert header.magnitude == sum(max(values(worker)) for worker in workers)
    assert (header.switch_number, header.fan_in, header.next_switch, header.next_fan_in) == (0, 0, 0, 0)


def fill_near(net: TwoLevels, number: int = 0) -> list[bytes]:
    """The near switch's sum of workers 0 and 1, on its way to the far switch."""
    assert net.onwards(near(0, number)) == []
    return net.onwards(near(1, number))


def fill_far(net: TwoLevels, number: int = 0) -> None:
    for worker in (2, 3):
        assert net.into_far(far(worker, number)) == []


def partial_sums_are_added_up(net: TwoLevels) -> None:
    fill_far(net)
    (partial,) = fill_near(net)
    header = parsed(partial)[Gradient]
    assert (header.lanes, header.worker_bitmap) == (values(0, 1), bitmap(0, 1))
    assert (header.switch_number, header.fan_in, header.next_switch, header.next_fan_in) == (NEXT_NUMBER, 4, 0, 0)
    (total,) = net.into_far(partial)
    assert_sum([total[Gradient]], 0, 1, 2, 3)
    net.answered(answer())
    assert net.near.events() == {"claimed": 1, "added": 1, "completed": 1, "released": 1}
    assert net.far.events() == {"claimed": 1, "added": 2, "completed": 1, "released": 1}


def the_order_of_levels_does_not_matter(net: TwoLevels) -> None:
    (partial,) = fill_near(net)
    assert net.into_far(far(2)) == []
    assert net.into_far(partial) == []
    assert_sum([packet[Gradient] for packet in net.into_far(far(3))], 0, 1, 2, 3)


def what_the_near_switch_cannot_take_is_summed_at_the_far_one(net: TwoLevels) -> None:
    first, second = colliding_numbers()
    assert net.onwards(near(0, first)) == []
    fill_far(net, second)
    (single,) = net.onwards(near(0, second))
    header = parsed(single)[Gradient]
    assert (header.lanes, header.switch_number, header.fan_in) == (values(0), NEXT_NUMBER, 4)
    assert not header.flags & Flags.PARTIAL
    assert net.into_far(single) == []
    assert_sum(net.at_server(near(1, second)), 0, 1, 2, 3)
    net.answered(answer(second))
    assert net.near.events() == {"claimed": 1, "collision": 2}
    assert net.far.events() == {"claimed": 1, "added": 3, "completed": 1, "released": 1}


def what_no_switch_can_take_reaches_the_server(net: TwoLevels) -> None:
    first, second = colliding_numbers()
    assert net.onwards(near(0, first)) == []
    assert net.into_far(far(2, first)) == []
    (header,) = net.at_server(near(0, second))
    assert (header.lanes, header.switch_number, header.flags) == (values(0), 0, 0)


def a_resend_takes_the_sums_of_both_along(net: TwoLevels) -> None:
    fill_far(net)
    assert net.at_server(near(0)) == []
    assert_sum(net.at_server(near(0, flags=Flags.RESEND)), 0, 2, 3)
    # Both have given up the fragment: what comes late goes past both.
    (late,) = net.at_server(near(1))
    assert (late.lanes, late.switch_number, late.next_switch) == (values(1), 0, 0)
    assert net.near.events() == {"claimed": 1, "resend_summed": 1, "stale": 1}
    assert net.far.events() == {"claimed": 1, "added": 2, "resend_summed": 1}
    (late,) = net.into_far(far(2))
    assert late[Gradient].lanes == values(2)
    assert net.far.events()["stale"] == 1


def a_sum_lost_between_the_switches_is_repeated(net: TwoLevels) -> None:
    fill_far(net)
    assert len(fill_near(net)) == 1  # lost
    assert_sum(net.at_server(near(1, flags=Flags.RESEND)), 0, 1, 2, 3)


def a_sum_lost_behind_the_far_switch_is_repeated(net: TwoLevels) -> None:
    fill_far(net)
    (partial,) = fill_near(net)
    assert len(net.into_far(partial)) == 1  # lost
    assert_sum([packet[Gradient] for packet in net.into_far(far(3, flags=Flags.RESEND))], 0, 1, 2, 3)
    # The near switch still has its sum, and now the far one has given up.
    assert_sum(net.at_server(near(0, flags=Flags.RESEND)), 0, 1)


def a_resend_that_finds_no_slot_near_finds_one_far(net: TwoLevels) -> None:
    fill_far(net)
    assert_sum(net.at_server(near(0, flags=Flags.RESEND)), 0, 2, 3)
    assert net.near.events() == {"resend_single": 1}
    assert net.far.events() == {"claimed": 1, "added": 2, "resend_summed": 1}


def copies_of_a_partial_sum_count_once(net: TwoLevels) -> None:
    (partial,) = fill_near(net)
    assert net.into_far(partial) == []
    assert net.into_far(partial) == []
    assert net.into_far(far(2)) == []
    assert_sum([packet[Gradient] for packet in net.into_far(far(3))], 0, 1, 2, 3)
    assert net.far.events()["duplicate"] == 1


def overlapping_sums_are_left_to_the_server(net: TwoLevels) -> None:
    """Worker 0 came by itself; the sum that has it, too, is not added."""
    assert net.into_far(far(0)) == []
    (partial,) = fill_near(net)
    assert_sum([packet[Gradient] for packet in net.into_far(partial)], 0, 1)
    assert net.far.events() == {"claimed": 1, "overlap": 1}
    assert net.into_far(far(1)) == []
    fill = [packet[Gradient] for worker in (2, 3) for packet in net.into_far(far(worker))]
    assert_sum(fill, 0, 1, 2, 3)


def late_copies_claim_nothing_at_either_level(net: TwoLevels) -> None:
    fill_far(net)
    (partial,) = fill_near(net)
    net.into_far(partial)
    net.answered(answer())
    for frame in (near(0), near(1), near(0, flags=Flags.RESEND)):
        (header,) = net.at_server(frame)
        assert header.switch_number == 0
    for frame in (far(2), partial, far(3, flags=Flags.RESEND)):
        (packet,) = net.into_far(frame)
        assert packet[Gradient].switch_number == 0
    assert net.near.events()["claimed"] == net.far.events()["claimed"] == 1


def an_older_fragment_that_met_a_newer_one_goes_on_to_the_far_switch(net: TwoLevels) -> None:
    """The near switch's slot has been through with another fragment, the far one still waits for this."""
    older, newer = colliding_numbers()
    fill_near(net, newer)
    fill_far(net, older)
    (single,) = net.onwards(near(0, older))
    assert net.into_far(single) == []
    net.answered(answer(newer))
    assert_sum(net.at_server(near(1, older)), 0, 1, 2, 3)
    assert net.near.events()["stale"] == 1


def congestion_is_kept_through_both_levels(net: TwoLevels) -> None:
    assert net.onwards(near(0, tos=CE)) == []
    (partial,) = net.onwards(near(1))
    packet = parsed(partial)
    assert packet[Gradient].flags & Flags.CONGESTION
    assert packet[IP].tos != CE
    assert net.into_far(partial) == []
    assert net.into_far(far(2)) == []
    (total,) = net.into_far(far(3))
    assert total[Gradient].flags == Flags.CONGESTION | Flags.PARTIAL


def a_partial_sum_that_does_not_fit_goes_on_marked(net: TwoLevels) -> None:
    assert net.into_far(far(2, value=MAX_MAGNITUDE - 9)) == []
    assert net.onwards(near(0, value=-6)) == []
    (header,) = net.at_server(near(1, value=-4))
    assert header.flags == Flags.PARTIAL | Flags.OVERFLOW
    assert (header.lanes, header.worker_bitmap, header.magnitude) == ([-10] * LANES, bitmap(0, 1), 10)
    assert (header.switch_number, header.fan_in) == (0, 0)
    (packet,) = net.into_far(far(3, value=9, flags=Flags.RESEND))
    assert (packet[Gradient].lanes, packet[Gradient].worker_bitmap) == ([MAX_MAGNITUDE] * LANES, bitmap(2, 3))


def what_does_not_fit_near_is_not_tried_far(net: TwoLevels) -> None:
    assert net.onwards(near(0, value=MAX_MAGNITUDE)) == []
    (header,) = net.at_server(near(1, value=1))
    assert header.flags == Flags.OVERFLOW
    assert (header.switch_number, header.next_switch) == (0, 0)
    assert net.far.events() == {}


def packets_on_their_way_are_left_alone(net: TwoLevels) -> None:
    """A packet for the far switch passes the near one as it is but for its TTL, and the other way."""
    packet = parsed(only(net.near.switch.exchange(2, far(0)), ONWARD_PORT))
    assert packet[IP].ttl == Ether(far(0))[IP].ttl - 1
    assert (packet[UDP].sport, packet[Gradient].fan_in) == (NEXT_NUMBER, 4)
    assert packet[Gradient].lanes == values(0)
    packet = parsed(only(net.far.switch.exchange(2, near(0)), ONWARD_PORT))
    assert (packet[Gradient].switch_number, packet[Gradient].next_switch) == (OWN_NUMBER, NEXT_NUMBER)
    assert net.near.events() == net.far.events() == {}


def requests_free_no_slot_at_either_level(net: TwoLevels) -> None:
    fill_far(net)
    assert net.onwards(near(0)) == []
    request = answer(flags=Flags.ACK | Flags.NACK, dst_ip="10.0.0.77")
    for switch in (net.far, net.near):
        only(switch.switch.exchange(2, request), SERVER_PORT)
    assert_sum(net.at_server(near(1)), 0, 1, 2, 3)


def answers_of_other_jobs_and_fragments_free_nothing(net: TwoLevels) -> None:
    fill_far(net)
    assert net.onwards(near(0)) == []
    for other in (answer(0, job=JOB + 1), answer(1)):
        net.answered(other)
    assert_sum(net.at_server(near(1)), 0, 1, 2, 3)
    assert "released" not in net.near.events() | net.far.events()


@pytest.mark.thorough
@on_every_pair
@in_sandbox
def test_behaviours(kind: str, compiler: str, tmp_path: Path) -> None:
    def switch(name: str, own_number: int, onward_number: int) -> AbstractContextManager[SwitchUnderTest]:
        plan = switch_plan(own_number, onward_number)
        return switch_under_test(kind, compiler, "aggregation", DEFINES, plan, PORTS, tmp_path, name)

    with switch("s1", OWN_NUMBER, NEXT_NUMBER) as one, switch("s2", NEXT_NUMBER, OWN_NUMBER) as two:
        assert failures(__name__, [one, two], TwoLevels(Run(one), Run(two))) == []
