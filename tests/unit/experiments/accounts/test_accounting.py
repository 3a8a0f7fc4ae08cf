"""Switch counters against host counts."""

from dataclasses import replace

from experiments.accounts.accounting import HostAccount, LinkEffect, Tally, disagreements, rows

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


def test_queue_drops_towards_the_host_happen_before_the_switch_counts() -> None:
    effect = LinkEffect(losses=tally(5), duplicates=tally(2), queue_drops=tally(9))
    assert disagreements([replace(AGREEING, towards_host=effect)]) == []


def test_rows_say_for_each_host_whether_it_agrees() -> None:
    disagreeing = replace(AGREEING, host="h3", switch_sent=tally(49))
    assert [(row["host"], row["agrees"]) for row in rows("in-network", 1, [AGREEING, disagreeing])] == [
        ("h2", True),
        ("h3", False),
    ]
