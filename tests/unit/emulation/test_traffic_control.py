"""tc commands for link models, and what is said where the kernel lacks something."""

import pytest

from common import kernel
from common.errors import UserError
from emulation.links import traffic_control
from emulation.links.traffic_control import commands
from topo.link import LinkModel


def test_a_link_without_limits_needs_no_commands() -> None:
    assert commands("x", LinkModel()) == []


def test_rate_and_queue() -> None:
    assert commands("e1-eth1", LinkModel(rate_bps=10_000_000, queue_packets=64)) == [
        "qdisc add dev e1-eth1 root handle 1: htb default 1",
        "class add dev e1-eth1 parent 1: classid 1:1 htb rate 10000000bit quantum 1514",
        "qdisc add dev e1-eth1 parent 1:1 handle 10: pfifo limit 64",
    ]


def test_delay_loss_and_duplication_without_rate() -> None:
    assert commands("x", LinkModel(delay_us=150, loss=0.02, duplicate=0.005, queue_packets=20_000)) == [
        "qdisc add dev x root handle 10: netem limit 20000 delay 150us loss 2% duplicate 0.5%"
    ]


def test_jitter_reorders_as_netem_does() -> None:
    model = LinkModel(delay_us=150, jitter_us=50, reorder=True)
    assert commands("x", model) == ["qdisc add dev x root handle 10: netem limit 10000 delay 150us 50us"]


def test_jitter_that_keeps_the_order_is_not_netems(monkeypatch) -> None:
    monkeypatch.setattr(kernel, "has_netem", lambda: True)
    with pytest.raises(UserError, match="jitter reorders packets: drop `--switch bmv2`"):
        traffic_control.require_kernel_support([LinkModel(delay_us=150, jitter_us=50)])


def test_netem_below_htb_holds_the_queue_and_what_is_in_flight() -> None:
    # 100 Mbit/s for 10 ms are 1,000,000 bits: 82.6 frames of 1514 bytes.
    lines = commands("x", LinkModel(rate_bps=100_000_000, delay_us=10_000, queue_packets=100))
    assert lines[-1] == "qdisc add dev x parent 1:1 handle 10: netem limit 183 delay 10000us"


@pytest.mark.parametrize(
    ("model", "missing"),
    [
        (LinkModel(delay_us=1), "netem"),
        (LinkModel(loss=0.1), "netem"),
        (LinkModel(duplicate=0.1), "netem"),
        (LinkModel(rate_bps=1), "HTB"),
        (LinkModel(), None),
        (LinkModel(queue_packets=3), None),
    ],
)
def test_a_missing_feature_is_named(monkeypatch, model: LinkModel, missing: "str | None") -> None:
    monkeypatch.setattr(kernel, "has_netem", lambda: False)
    monkeypatch.setattr(kernel, "has_htb", lambda: False)
    if missing is None:
        traffic_control.require_kernel_support([model])
        return
    with pytest.raises(UserError, match=f"no {missing}.*--switch bmv2") as caught:
        traffic_control.require_kernel_support([LinkModel(), model])
    assert "\n" not in str(caught.value)


def test_a_kernel_with_everything_says_nothing(monkeypatch) -> None:
    monkeypatch.setattr(kernel, "has_netem", lambda: True)
    monkeypatch.setattr(kernel, "has_htb", lambda: True)
    traffic_control.require_kernel_support([LinkModel(rate_bps=1, delay_us=1, loss=0.1, duplicate=0.1)])
