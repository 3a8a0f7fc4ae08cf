"""Members of an action selector that watch a port: when the host behind it goes, packets go to another member."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from gradbed.switch.codegen import build_program
from gradbed.switch.compiler import compile_p4
from gradbed.switch.device import ActionCall, GroupReference, KeyMatch
from gradbed.switch.engine import Engine
from tests.emulation.engine.test_engine_veth import make_bench
from tests.unit import p4runtime
from tests.unit.p4runtime.network import frame

pytestmark = [pytest.mark.thorough, pytest.mark.root]

BALANCED = 0x1000
FRAMES = 20
TIMEOUT_S = 10


def test_traffic_moves_while_the_peer_is_down() -> None:
    program = Path(p4runtime.__file__).with_name("state.p4")
    with make_bench() as bench, Engine() as engine:
        switch = engine.add_switch(1, "s1")
        bench.add_ports(engine)
        engine.start()
        switch.load(build_program(json.loads(compile_p4(program).json_text)))
        for port in (1, 2):
            switch.state.profiles.write_member(
                "StateIngress.balancer", port, ActionCall("StateIngress.forward", (port,))
            )
        switch.state.profiles.write_group("StateIngress.balancer", 1, [1, 2], [1, 2])
        switch.state.tables.insert("StateIngress.balanced", [KeyMatch(7)], GroupReference(1), 0)

        def counts() -> list[int]:
            """How many frames each host gets of those that host 1 sends."""
            before = [row.sent for row in engine.interface_statistics()]
            for source in range(FRAMES):
                bench.sockets[0].send(frame(7, source, BALANCED))
            assert engine.quiesce(TIMEOUT_S)
            return [row.sent - old for row, old in zip(engine.interface_statistics(), before, strict=True)]

        def become(settled: Callable[[list[int]], bool]) -> list[int]:
            """The counts once they are so: the kernel takes its time to tell how a port is."""
            end = time.monotonic() + TIMEOUT_S
            while not settled(found := counts()):
                assert time.monotonic() < end, f"hosts still get {found} frames"
            return found

        def is_away(found: list[int]) -> bool:
            return found == [FRAMES, 0]

        spread = become(lambda found: sum(found) == FRAMES and all(found))
        bench.hosts[1].run("ip", "link", "set", "eth0", "down")
        become(is_away)
        bench.hosts[1].run("ip", "link", "set", "eth0", "up")
        become(lambda found: found == spread)
        # Set down at this end; and gone for good.
        bench.switch.run("ip", "link", "set", "s2", "down")
        become(is_away)
        bench.switch.run("ip", "link", "set", "s2", "up")
        become(lambda found: found == spread)
        bench.switch.run("ip", "link", "del", "s2")
        become(is_away)
