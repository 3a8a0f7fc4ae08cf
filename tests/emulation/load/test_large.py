"""All pairs of a network in Mininet reach each other, and a host behind a cut link none."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path

import pytest

from gradbed.common.namespaces import in_network_namespace
from gradbed.common.sandbox import run_in_sandbox
from gradbed.experiments.runtimes.real import RealRuntime
from gradbed.experiments.systems import DEFAULT_SYSTEM, find_system
from tools.bench import large

pytestmark = [pytest.mark.thorough, pytest.mark.root, pytest.mark.nightly]


def test_a_fat_tree_comes_up_and_all_pairs_reach_each_other() -> None:
    found = large.measured("real", 4)
    assert found.reached == found.connected == 16 * 15
    assert 0 < found.up_s < 60 and found.cpu_s > 1
    assert 100 << 20 < found.bytes < 2 << 30


def test_a_host_behind_a_cut_link_reaches_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large, "QUIET_S", 0.5)
    task = large._task(4, "real", tmp_path)
    system = find_system(DEFAULT_SYSTEM)
    setup = system.network(task)
    (link,) = [link for link in setup.topology.links if "h1" in (link.a.node, link.b.node)]

    def run() -> int:
        with ExitStack() as stack:
            runtime = stack.enter_context(RealRuntime(system, setup, task))
            runtime.backend.set_link_up(link.a.node, link.b.node, False)
            sockets = {
                host.name: stack.enter_context(
                    in_network_namespace(runtime.network.host_pid(host.name), large._socket)
                )
                for host in setup.topology.hosts
            }
            (tmp_path / "heard").write_text(json.dumps(sorted(large.heard(setup.topology, sockets))))
        return 0

    assert run_in_sandbox(run) == 0
    found = {(a, b) for a, b in json.loads((tmp_path / "heard").read_text())}
    assert found == {pair for pair in large.connected(setup.topology) if "h1" not in pair}
