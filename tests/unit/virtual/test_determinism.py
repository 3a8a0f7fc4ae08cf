"""The same calls lead to the same bytes: frames, times, statistics and captures, in this process and in others."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from gradbed.topo.link import LinkModel
from tests.unit.virtual.conftest import instructed_network
from tests.unit.virtual.test_hosts import OVER, rows, texts
from tests.unit.virtual.test_traffic import GENERATOR

ROOT = Path(__file__).parents[3]
LINK = LinkModel(
    rate_bps=9_999_991, delay_us=50, jitter_us=40, reorder=True, loss=0.05, duplicate=0.05, queue_packets=20
)


def digest_of_a_run(folder: Path, seed: int = 1) -> str:
    """Of everything that a run with every kind of event shows."""
    seen = hashlib.sha256()
    file = folder / "all.pcap"
    with instructed_network(LINK, seed) as simulated:
        places = [(device_id, port) for device_id in (1, 2) for port in (1, 2)]
        capture = simulated.engine.capture(file, [(*place, way) for place in places for way in ("in", "out")])  # type: ignore[misc]
        left, right = simulated.interface(1, 1), simulated.interface(2, 1, receive_coalescing_us=30)
        simulated.add_generator(2, 1, replace(GENERATOR, poisson=True, seed=seed, stop_ns=20_000_000))
        for number in range(100):
            left.send(rows(*(OVER + bytes([number, i]) * (1 + number % 40) for i in range(3))))
            if number == 40:
                simulated.engine.set_link_up(1, 2, False)
            if number == 45:
                simulated.engine.set_link_up(1, 2, True)
                for device_id in (1, 2):
                    simulated.engine.set_link(device_id, 2, replace(LINK, loss=0.3), ["out"])
            end_ns = simulated.now_ns + 200_000
            while simulated.now_ns < end_ns:
                stop = simulated.run_until(end_ns)
                for interface in stop.interfaces:
                    frames = texts(interface)
                    seen.update(repr((stop.time_ns, interface.port, interface.times_ns.tolist(), frames)).encode())
                    if interface is right:
                        right.send(rows(OVER + b"reply"))
        seen.update(repr((simulated.engine.link_statistics(), simulated.engine.statistics().timers_fired)).encode())
        assert capture.close() > 500
    seen.update(file.read_bytes())
    return seen.hexdigest()


def test_runs_are_the_same_in_every_process(tmp_path: Path) -> None:
    here = digest_of_a_run(tmp_path)
    assert digest_of_a_run(tmp_path) == here
    program = (
        "from pathlib import Path; from tests.unit.virtual.test_determinism import digest_of_a_run; "
        f"print(digest_of_a_run(Path({str(tmp_path)!r})))"
    )
    there = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert there.stdout.strip() == here


def test_another_seed_is_another_run(tmp_path: Path) -> None:
    assert digest_of_a_run(tmp_path, 1) != digest_of_a_run(tmp_path, 2)
