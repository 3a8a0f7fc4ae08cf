"""When a switch that reads and writes pcap files is taken to be idle."""

from __future__ import annotations

from itertools import chain, repeat
from pathlib import Path

from gradbed.switch.stf.bmv2_target import PcapPorts

QUIET_S = 0.02


def test_a_busy_switch_is_not_idle(tmp_path: Path) -> None:
    looks = chain(repeat(True, 20), repeat(False))
    with PcapPorts(tmp_path, [1], []) as ports:
        assert ports.collect(QUIET_S, 60, lambda: next(looks)) == []
    assert next(looks) is False, "it was busy for ten times as long"


def test_one_that_is_always_busy_is_not_waited_for_without_end(tmp_path: Path) -> None:
    with PcapPorts(tmp_path, [1], []) as ports:
        assert ports.collect(QUIET_S, 0.1, lambda: True) == []
