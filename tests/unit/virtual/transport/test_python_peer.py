"""The engine's queue pairs talk with those of another implementation, through losses, duplicates and reordering."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from gradbed.topo.link import LinkModel
from tests.examples import examples
from tests.unit.virtual.transport.network import SENT, Line, contents
from tests.unit.virtual.transport.python_peer import PythonPeer

NUMBER = 7
SIZES = st.lists(st.integers(0, 20_000), max_size=6)


@settings(max_examples=examples(40), deadline=None, derandomize=True)
@given(
    forth=SIZES,
    back=SIZES,
    selective=st.booleans(),
    loss=st.sampled_from([0, 0.02, 0.1]),
    duplicate=st.sampled_from([0, 0.1]),
    jitter_us=st.sampled_from([0, 2]),
    mtu_bytes=st.sampled_from([256, 1000, 4096]),
    every=st.integers(1, 6),
    before=st.sampled_from([0, 5, 60]),
)
def test_both_understand_each_other(
    forth: list[int],
    back: list[int],
    selective: bool,
    loss: float,
    duplicate: float,
    jitter_us: int,
    mtu_bytes: int,
    every: int,
    before: int,
) -> None:
    link = LinkModel(
        rate_bps=10**10, delay_us=2, queue_packets=1000, loss=loss, duplicate=duplicate, jitter_us=jitter_us,
        reorder=jitter_us > 0,
    )  # fmt: skip
    options: dict[str, Any] = {"recovery": "selective-repeat" if selective else "go-back-n", "mtu_bytes": mtu_bytes}
    with Line([1, 1], link) as line:
        line.connect_end(
            1, 2, NUMBER, NUMBER, window_bytes=32 * mtu_bytes, acknowledge_every=every, timeout_ns=100_000,
            give_up_after=1000, first_psn=2**24 - before, **options,
        )  # fmt: skip
        peer = PythonPeer(
            line, 2, 1, NUMBER, selective=selective, mtu_bytes=mtu_bytes, window=24, every=every, timeout_ns=100_000,
            first_psn=2**24 - before,
        )  # fmt: skip
        sent = [(2**60 + tag, contents(size, tag)) for tag, size in enumerate(forth)]
        for tag, data in sent:
            line.open(1).send(NUMBER, tag, len(data), data)
        answers = [(2**61 + tag, contents(size, 100 + tag).tobytes()) for tag, size in enumerate(back)]
        for tag, text in answers:
            peer.send(tag, text)
        for _ in range(20_000):
            peer.work()
            if line.simulated.run_until(peer.deadline_ns).idle and peer.is_done:
                break
            line.done[1] += line.open(1).completions()
        assert [each.tag for each in line.done[1] if each.kind == SENT] == [tag for tag, _ in sent]
        assert peer.received == [(tag, data.tobytes()) for tag, data in sent]
        came = [(each.tag, b"" if each.data is None else each.data.tobytes()) for each in line.received(1)]
        assert came == answers
        assert np.all(
            [each.size_bytes == len(text) for each, (_, text) in zip(line.received(1), answers, strict=True)]
        )
        assert line.open(1).counts()["unknown"] == 0
