"""Switch counters against host counts."""

from dataclasses import replace

from gradbed.experiments.conservation.counts import HostAccount, LinkEffect, Tally, disagreements, rows

FRAME = 1066


def tally(packets: int) -> Tally:
    return Tally(packets, packets * FRAME)


AGREEING = HostAccount(
    host="h2",
    host_sent=tally(100),
    host_received=tally(47),
    socket_drops=0,
    switch_received=tally(96),
    switch_sent=tally(50),
    towards_switch=LinkEffect(losses=tally(4), duplicates=tally(3), queue_drops=tally(3)),
    towards_host=LinkEffect(losses=tally(5), duplicates=tally(2)),
)


def test_counts_that_agree_but_for_what_the_links_did() -> None:
    assert disagreements([AGREEING]) == []


def test_a_packet_that_the_switch_did_not_count() -> None:
    lines = disagreements([replace(AGREEING, switch_received=tally(95))])
    assert lines == ["h2: its switch counted 95 packets (101270 bytes) from it, its own count makes "
                     "96 packets (102336 bytes)"]  # fmt: skip


def test_a_packet_that_the_host_did_not_count() -> None:
    lines = disagreements([replace(AGREEING, host_received=tally(46))])
    assert len(lines) == 1
    assert "its switch sent it 47 packets" in lines[0]


def test_bytes_count_too() -> None:
    assert len(disagreements([replace(AGREEING, switch_received=Tally(96, 96 * FRAME - 1))])) == 1
    assert len(disagreements([replace(AGREEING, host_received=Tally(47, 47 * FRAME + 4))])) == 1


def test_socket_drops_explain_packets_but_no_more_than_their_number() -> None:
    assert disagreements([replace(AGREEING, host_received=tally(45), socket_drops=2)]) == []
    assert len(disagreements([replace(AGREEING, host_received=tally(44), socket_drops=2)])) == 1


def test_what_the_socket_in_front_of_a_link_dropped_never_came_to_the_switch() -> None:
    towards = replace(AGREEING.towards_switch, socket_drops=2)
    assert disagreements([replace(AGREEING, switch_received=tally(94), towards_switch=towards)]) == []
    for came in (93, 95):
        (line,) = disagreements([replace(AGREEING, switch_received=tally(came), towards_switch=towards)])
        assert line.endswith("less 2 dropped by the link's socket")


def test_another_programs_switch_counts_what_its_queue_and_its_socket_drop_then() -> None:
    effect = LinkEffect(losses=tally(5), duplicates=tally(2), queue_drops=tally(9), socket_drops=1, from_outside=True)
    assert len(disagreements([replace(AGREEING, towards_host=effect)])) == 1
    assert disagreements([replace(AGREEING, towards_host=effect, host_received=tally(37))]) == []


def test_queue_drops_towards_the_host_happen_before_the_switch_counts() -> None:
    effect = LinkEffect(losses=tally(5), duplicates=tally(2), queue_drops=tally(9))
    assert disagreements([replace(AGREEING, towards_host=effect)]) == []


def test_rows_say_for_each_host_whether_it_agrees() -> None:
    disagreeing = replace(AGREEING, host="h3", switch_sent=tally(49))
    assert [(row["host"], row["agrees"]) for row in rows("in-network", 1, [AGREEING, disagreeing])] == [
        ("h2", True),
        ("h3", False),
    ]
