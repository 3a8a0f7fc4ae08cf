"""What is measured: on made-up counts, and on a process that really waits for its processor."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gradbed.emulation.statistics import DataPlaneStatistics, DirectionStatistics
from gradbed.experiments.validity.monitor import (
    TICKS_PER_S,
    MonitorReading,
    RealtimeMonitor,
    achieved_rates,
    measures,
)
from gradbed.experiments.validity.processes import MachineTimes, ThreadTimes, machine_times, thread_times
from gradbed.topo.generators import star
from gradbed.topo.link import LinkModel

TOPOLOGY = star(3, LinkModel(rate_bps=10_000_000)).with_links([("h3", "s1")], rate_bps=5_000_000)


def link(from_node: str, to_node: str, backlogged_bytes: int, backlogged_ms: int) -> DirectionStatistics:
    return DirectionStatistics(
        from_node, to_node, 0, 0, 0, 0, 0, 0, 0, 0, backlogged_bytes, 1_000_000 * backlogged_ms
    )


def times(role: str, busy_ms: int, waiting_ms: int = 0, waits: int = 0, tid: int = 1) -> ThreadTimes:
    return ThreadTimes(role, tid, tid, 1_000_000 * busy_ms, 1_000_000 * waiting_ms, waits)


def test_the_rate_of_links_that_were_backlogged_long_enough() -> None:
    before = [link("h1", "s1", 1000, 100), link("s1", "h3", 0, 0)]
    after = [link("h1", "s1", 251_000, 300), link("s1", "h3", 150_000, 300), link("h2", "s1", 9, 199)]
    rates = achieved_rates(TOPOLOGY, [MonitorReading(before), MonitorReading(after)])
    assert rates == {("h1", "s1"): 1.0, ("s1", "h3"): 0.8}


def test_a_rate_that_changes_is_the_one_to_be_achieved_from_then_on() -> None:
    """100 ms at 10 Mbit/s, 200 ms at a quarter of that, 100 ms at the whole: all that it could; h2 half of it."""
    quarter = {frozenset(("h1", "s1")): 2_500_000}
    moments = [
        MonitorReading([link("h1", "s1", 500, 50)]),
        MonitorReading([link("h1", "s1", 125_500, 150), link("h2", "s1", 0, 0)], rates_bps=quarter),
        MonitorReading([link("h1", "s1", 188_000, 350)], rates_bps={frozenset(("h1", "s1")): 10_000_000}),
        MonitorReading([link("h1", "s1", 313_000, 450), link("h2", "s1", 250_000, 400)]),
    ]
    assert achieved_rates(TOPOLOGY, moments) == {("h1", "s1"): 1.0, ("h2", "s1"): 0.5}


def test_shares_of_the_busiest_thread_and_lateness_from_the_histogram() -> None:
    early = DataPlaneStatistics(5000, (10, 0, 0, 0), 101, 1, 0)
    late = DataPlaneStatistics(1_005_000, (910, 90, 9, 1), 201, 3, 0)
    found = measures(
        duration_s=2.0,
        machine=MachineTimes(busy=100, idle=290, stolen=10),
        threads=[
            (times("switches", 100), times("switches", 1100, 200)),
            (times("switches", 0), times("switches", 300)),
            (times("agents", 0), times("agents", 400, 20, 100)),
            (times("agents", 0), times("agents", 100, 40, 200)),
            (times("controller", 0), times("controller", 2000, 2000)),
        ],
        topology=TOPOLOGY,
        before=MonitorReading((), early),
        after=MonitorReading((), late),
        socket_drops=5,
        socket_packets=50,
    )
    assert (found.machine_busy, found.machine_stolen) == (0.25, 0.025)
    assert (found.switch_busy, found.switch_waiting) == (0.5, 0.1)
    assert (found.agent_busy, found.agent_waiting) == (0.2, 0.02)
    assert found.agent_wait_us == pytest.approx(60_000 / 300)
    assert (found.late_mean_us, found.late_p99_us, found.late_max_us) == (1.0, 2.0, 8.0)
    assert found.packet_time_us == 2400
    assert found.link_achieved is None
    assert (found.socket_drops, found.socket_packets) == (7, 150)


@pytest.mark.parametrize("share", [1.25, 0.75])
def test_of_all_links_the_one_that_is_furthest_from_its_rate(share: float) -> None:
    """Too fast counts as too slow does."""
    sent = {("h1", "s1"): share, ("h2", "s1"): 0.9, ("s1", "h2"): 1.1}
    after = [link(*way, round(each * 250_000), 200) for way, each in sent.items()]
    found = measures(
        duration_s=1.0, machine=MachineTimes(0, 0, 0), threads=[], topology=TOPOLOGY,
        before=MonitorReading([link(row.from_node, row.to_node, 0, 0) for row in after]), after=MonitorReading(after),
        socket_drops=0, socket_packets=0,
    )  # fmt: skip
    assert (found.link_achieved, found.links_backlogged) == (share, 3)


def test_what_other_programs_used_is_what_the_run_did_not() -> None:
    def others(own_ms: int) -> float | None:
        return measures(
            duration_s=2.0, machine=MachineTimes(busy=2 * TICKS_PER_S, idle=2 * TICKS_PER_S, stolen=0),
            threads=[(times("switches", 0), times("switches", own_ms))], topology=TOPOLOGY,
            before=MonitorReading(), after=MonitorReading(), socket_drops=0, socket_packets=0,
        ).machine_others  # fmt: skip

    # Two processors for two seconds, half of that used.
    assert others(1500) == pytest.approx(0.125)
    assert others(2000) == 0
    assert others(500) == pytest.approx(0.375)


def test_without_timers_and_rates() -> None:
    found = measures(
        duration_s=1.0, machine=MachineTimes(0, 0, 0), threads=[], topology=star(2),
        before=MonitorReading(), after=MonitorReading(), socket_drops=0, socket_packets=0,
    )  # fmt: skip
    assert found.late_p99_us is None
    assert found.packet_time_us is None
    assert found.machine_busy is None


def test_the_first_line_of_proc_stat(tmp_path: Path) -> None:
    stat = tmp_path / "stat"
    stat.write_text("cpu  1 2 3 40 5 6 7 8 0 0\ncpu0 1 2 3 40 5 6 7 8 0 0\n")
    assert machine_times(stat) == MachineTimes(busy=1 + 2 + 3 + 6 + 7, idle=45, stolen=8)


def test_processes_are_known_by_their_command_lines(tmp_path: Path) -> None:
    # Processes that cannot be this one.
    for pid, command in (
        (9_000_004, b"python\0-m\0gradbed.switch.switch_process\0x"),
        (9_000_005, b"python\0-m\0gradbed.switch.switch_process\0x"),
        (9_000_006, b"bash\0"),
        (9_000_007, b"python\0-m\0gradbed.hosts.agents.launcher"),
    ):
        task = tmp_path / str(pid) / "task" / str(pid)
        task.mkdir(parents=True)
        (tmp_path / str(pid) / "cmdline").write_bytes(command)
        (task / "schedstat").write_text("100 20 3\n")
        (task / "comm").write_text("python\n" if pid == 9_000_004 else "data plane\n")
    (tmp_path / "9000007" / "task" / "9000008").mkdir()  # a thread that has ended
    assert thread_times(tmp_path) == {
        (9_000_004, 9_000_004): ThreadTimes("switch control", 9_000_004, 9_000_004, 100, 20, 3),
        (9_000_005, 9_000_005): ThreadTimes("switches", 9_000_005, 9_000_005, 100, 20, 3),
        (9_000_007, 9_000_007): ThreadTimes("agents", 9_000_007, 9_000_007, 100, 20, 3),
    }


def test_two_busy_processes_on_one_processor_are_seen_to_wait() -> None:
    if not Path("/proc/self/schedstat").exists():
        pytest.skip("the kernel is built without CONFIG_SCHED_INFO")
    processor = min(os.sched_getaffinity(0))
    program = f"import os; os.sched_setaffinity(0, [{processor}])\nwhile True: pass  # gradbed.hosts.agents"
    busy = [subprocess.Popen([sys.executable, "-c", program]) for _ in range(2)]
    try:
        with RealtimeMonitor(TOPOLOGY, MonitorReading) as meter:
            deadline = time.monotonic() + 20
            # Each must have waited for a fifth of a second, however busy the machine is otherwise.
            while sum(t.waiting_ns > 2e8 for t in thread_times().values() if t.pid in [p.pid for p in busy]) < 2:
                assert time.monotonic() < deadline
                time.sleep(0.05)
    finally:
        for process in busy:
            process.kill()
            process.wait()
    found = meter.measures()
    assert found.agent_waiting is not None and found.agent_waiting > 0.05
    assert found.agent_busy is not None and 0 < found.agent_busy <= 1.05
    assert found.agent_wait_us is not None and found.agent_wait_us > 0
