"""What a host sends: every packet once, in order, at its stream's rate, until it is over."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from pydantic import ValidationError

from gradbed.hosts.traffic.config import Arrivals, EndpointConfig, Sizes, TrafficStream
from gradbed.hosts.traffic.schedule import TrafficPackets, TrafficSchedule

BEGIN_NS = 5_000_000


def host(number: int) -> dict[str, str]:
    mac = f"02:00:00:00:00:{number:02x}"
    return {"name": f"h{number}", "ip": f"10.0.0.{number}", "mac": mac, "gateway_mac": "02:00:00:00:01:01"}


def config(*streams: TrafficStream, **fields: object) -> EndpointConfig:
    return EndpointConfig(address=host(1), source=0, streams=streams, **fields)


def stream(rate_bps: float = 8e6, number: int = 2, **fields: object) -> TrafficStream:
    return TrafficStream(destination=host(number), receiver=number, rate_bps=rate_bps, **fields)


def all_packets(schedule: TrafficSchedule) -> TrafficPackets:
    return TrafficPackets.joined([packets for _, packets in schedule.windows()])


def test_packets_come_in_order_and_inside_their_windows() -> None:
    schedule = TrafficSchedule(config(stream(), stream(2e6, 3), duration_us=400_000), BEGIN_NS)
    windows = list(schedule.windows())
    assert len(windows) > 2
    for (begin_ns, packets), (end_ns, _) in pairwise(windows):
        assert (packets.times_ns >= begin_ns).all() and (packets.times_ns < end_ns).all()
    packets = TrafficPackets.joined([each for _, each in windows])
    assert (np.diff(packets.times_ns) >= 0).all()
    # 1,000 and 250 frames of 1,000 bytes in a second, for 0.4 s.
    assert [int((packets.stream == place).sum()) for place in (0, 1)] == [400, 100]
    for flow in (0, 1):
        assert (packets.sequence[packets.flow == flow] == np.arange(int((packets.flow == flow).sum()))).all()
    assert [(flow.packets, flow.bytes) for flow in schedule.flows] == [(400, 400_000), (100, 100_000)]


@pytest.mark.parametrize("kind", ["constant", "poisson", "on-off"])
@pytest.mark.parametrize("packets", [1, 255, 1000])
def test_a_stream_ends_after_its_packets(kind: str, packets: int) -> None:
    schedule = TrafficSchedule(config(stream(packets=packets), arrivals=Arrivals(kind=kind)), BEGIN_NS)
    assert len(all_packets(schedule)) == packets
    assert schedule.flows[0].packets == packets


def test_packets_take_turns_in_the_flows_of_a_pair() -> None:
    schedule = TrafficSchedule(config(stream(packets=7, flows=3), stream(packets=2, number=3)), BEGIN_NS)
    packets = all_packets(schedule)
    first = packets.stream == 0
    assert packets.flow[first].tolist() == [0, 1, 2, 0, 1, 2, 0]
    assert packets.sequence[first].tolist() == [0, 0, 0, 1, 1, 1, 2]
    assert set(packets.flow[~first].tolist()) == {3}
    assert [flow.packets for flow in schedule.flows] == [3, 2, 2, 2]


def test_the_warm_up_is_marked_and_does_not_count() -> None:
    schedule = TrafficSchedule(config(stream(), duration_us=100_000, warm_up_us=40_000), BEGIN_NS)
    packets = all_packets(schedule)
    assert (packets.measured == (packets.times_ns >= BEGIN_NS + 40_000_000)).all()
    assert schedule.flows[0].packets == packets.measured.sum() == 60


def test_flows_are_sent_one_after_the_other_at_the_link_rate() -> None:
    sizes = Sizes(kind="web-search", frame_bytes=1000, most_flow_bytes=50_000)
    schedule = TrafficSchedule(
        config(stream(packets=50), sizes=sizes, link_rate_bps=8e6, arrivals=Arrivals(kind="poisson")), BEGIN_NS
    )
    packets = all_packets(schedule)
    assert len(schedule.flows) == 50
    # A frame of 1,000 bytes takes a millisecond.
    assert (np.diff(packets.times_ns)[packets.frame_bytes[:-1] == 1000] >= 999_999).all()
    for number, flow in enumerate(schedule.flows):
        own = packets.times_ns[packets.flow == number]
        assert len(own) == flow.packets and own[0] >= flow.begin_ns
        assert int(packets.frame_bytes[packets.flow == number].sum()) == flow.bytes
        assert (packets.sequence[packets.flow == number] == np.arange(flow.packets)).all()


def test_long_flows_go_on_after_the_time_of_sending() -> None:
    sizes = Sizes(kind="web-search", frame_bytes=1000)
    schedule = TrafficSchedule(config(stream(80e6), sizes=sizes, link_rate_bps=8e6, duration_us=3_000_000), BEGIN_NS)
    packets = all_packets(schedule)
    assert packets.times_ns[-1] > BEGIN_NS + 3_000_000_000
    assert len(packets) == sum(flow.packets for flow in schedule.flows)


def test_the_same_seed_makes_the_same_packets_whatever_else_a_host_sends() -> None:
    arrivals = Arrivals(kind="poisson")
    alone = all_packets(TrafficSchedule(config(stream(packets=300), arrivals=arrivals), BEGIN_NS))
    both = all_packets(TrafficSchedule(config(stream(packets=300), stream(packets=90), arrivals=arrivals), BEGIN_NS))
    assert (both.times_ns[both.stream == 0] == alone.times_ns).all()
    other = all_packets(TrafficSchedule(config(stream(packets=300), arrivals=arrivals, seed=2), BEGIN_NS))
    assert not (other.times_ns == alone.times_ns).all()


@pytest.mark.parametrize("kind", ["fixed", "web-search"])
def test_a_host_that_keeps_less_makes_the_same_packets_fewer_at_a_time(kind: str) -> None:
    streams = stream(40e6), stream(20e6, 3)
    sizes = Sizes(kind=kind, most_flow_bytes=20_000)
    much = TrafficSchedule(config(*streams, sizes=sizes, duration_us=400_000), BEGIN_NS)
    little = TrafficSchedule(config(*streams, sizes=sizes, duration_us=400_000, kept_packets=64), BEGIN_NS)
    usual, windows = all_packets(much), [packets for _, packets in little.windows()]
    small = TrafficPackets.joined(windows)
    for name in ("times_ns", "stream", "flow", "sequence", "frame_bytes"):
        assert (getattr(small, name) == getattr(usual, name)).all(), name
    assert much.flows == little.flows and len(small) > 1500
    if kind == "fixed":
        assert max(map(len, windows)) <= 18


def test_streams_that_never_end_are_refused() -> None:
    with pytest.raises(ValidationError, match="need a duration"):
        config(stream())
