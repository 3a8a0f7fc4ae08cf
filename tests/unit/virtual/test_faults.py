"""Links cut and changed, switches restarted, captures: at exact times, in the middle of a run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gradbed.common.errors import UserError
from gradbed.switch.virtual import SimulatedNetwork
from gradbed.topo.link import LinkModel
from tests.unit.engine.instructed import instructed_program, pass_through
from tests.unit.engine.links.test_captures import read
from tests.unit.virtual.test_hosts import OVER, rows, texts


def row_of(simulated: SimulatedNetwork, device_id: int, port: int) -> tuple[int, int]:
    """Packets and losses of what a port sends."""
    [found] = [
        row
        for row in simulated.engine.link_statistics()
        if (row.device_id, row.port, row.direction) == (device_id, port, "out")
    ]
    return found.packets, found.losses


def test_a_link_is_cut_and_mended_while_frames_are_under_way(simulated: SimulatedNetwork) -> None:
    left, right = simulated.interface(1, 1), simulated.interface(2, 1)
    left.send(rows(*(OVER + bytes([number]) for number in range(10))))
    # Each takes 17 us into switch 1, where number n is at 117 + 17 n us. Number 2 is at 151, when the link goes.
    simulated.run_until(150_000)
    simulated.engine.set_link_up(1, 2, False)
    # Number 5 comes at 202.
    simulated.run_until(210_000)
    simulated.engine.set_link_up(2, 2, True)
    received = []
    while not (stop := simulated.run_until(None)).idle or stop.interfaces:
        received += [frame[0] for frame in texts(right)]
    assert received == [0, 1, 6, 7, 8, 9]
    assert row_of(simulated, 1, 2) == (6, 4)


def test_a_hosts_link_is_cut_in_both_directions(simulated: SimulatedNetwork) -> None:
    left, right = simulated.interface(1, 1), simulated.interface(2, 1)
    simulated.engine.set_link_up(1, 1, False)
    left.send(rows(OVER + b"x"))
    right.send(rows(OVER + b"y"))
    assert simulated.run_until(None).interfaces == ()
    assert row_of(simulated, 1, 1) == (0, 1)


def test_a_links_attributes_change_from_then_on(simulated: SimulatedNetwork) -> None:
    left, right = simulated.interface(1, 1), simulated.interface(2, 1)
    left.send(rows(OVER + b"before"))
    stop = simulated.run_until(None)
    assert stop.time_ns == (22 + 14 + 6 + 300) * 1000
    simulated.engine.set_link(1, 2, LinkModel(delay_us=500), ("out",))
    left.send(rows(OVER + b"behind"))
    after = simulated.run_until(None)
    assert after.time_ns - stop.time_ns == (22 + 6 + 700) * 1000
    assert texts(right) == [b"before", b"behind"]
    simulated.engine.set_link(1, 2, LinkModel(), ("out",))
    left.send(rows(OVER + b"at all"))
    assert simulated.run_until(None).time_ns - after.time_ns == (22 + 6 + 200) * 1000


def test_a_restarted_switch_drops_what_arrives(simulated: SimulatedNetwork) -> None:
    left, right = simulated.interface(1, 1), simulated.interface(2, 1)
    left.send(rows(OVER + b"1", OVER + b"2"))
    simulated.run_until(120_000)
    # The first is beyond switch 1, the second is not.
    simulated.restart_switch(1)
    assert simulated.run_until(None).interfaces == (right,)
    assert texts(right) == [b"1"]
    simulated.run_until(None)
    assert simulated.devices[1].statistics().no_program_drops == 1
    simulated.devices[1].load(instructed_program())
    left.send(rows(OVER + b"3"))
    simulated.run_until(None)
    assert texts(right) == [b"3"]
    with pytest.raises(UserError, match="device id 3"):
        simulated.restart_switch(3)


def test_captures_have_the_times_of_the_virtual_clock(simulated: SimulatedNetwork, tmp_path: Path) -> None:
    left, right = simulated.interface(1, 1), simulated.interface(2, 1)
    at_switch = simulated.engine.capture(tmp_path / "in.pcap", [(1, 1, "in")])
    at_host = simulated.engine.capture(tmp_path / "out.pcap", [(2, 1, "out")])
    simulated.run_until(3_000_000_000)
    left.send(rows(OVER + b"x"))
    simulated.run_until(None)
    assert (at_switch.close(), at_host.close()) == (1, 1)
    assert read(at_switch.file) == [(3_000_117_000, OVER + b"x")]
    assert read(at_host.file) == [(3_000_226_000, b"x")]
    assert texts(right) == [b"x"]


def test_timestamps_of_programs_are_microseconds(simulated: SimulatedNetwork) -> None:
    left = simulated.interface(1, 1)
    simulated.engine.set_link(1, 1, LinkModel())
    simulated.run_until(7_999_999)
    left.send(np.frombuffer(pass_through(1, egress=4), np.uint8)[None])  # type: ignore[arg-type]
    simulated.run_until(None)
    [report] = texts(left)
    assert int.from_bytes(report[5 * 8 : 6 * 8], "big") == 7_999
