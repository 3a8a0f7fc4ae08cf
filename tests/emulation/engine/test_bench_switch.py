"""The benchmark of the switch in small: everything is built, checked and measured once."""

from __future__ import annotations

import pytest

from tests.emulation.sandboxed import in_sandbox

pytestmark = [pytest.mark.thorough, pytest.mark.root]


@in_sandbox
def test_one_switch_and_a_path() -> None:
    from tools.bench.switch.run import measure
    from tools.bench.switch.system_workloads import gradients

    wanted = [("bare", 1), ("gradbed", 2), ("gradbed, veth", 2)]
    rates = measure(gradients(), wanted, rounds=2, measure_s=0.1)
    assert list(rates) == wanted
    for row in rates.values():
        assert len(row.per_s) == 2
        assert min(row.per_s) > 0
    assert rates["gradbed", 2].subject.label == "2 gradbed, memory"


@in_sandbox
def test_writes() -> None:
    from tools.bench.switch.control_plane import writes_per_s

    assert min(writes_per_s(1500, rounds=2)) > 0
