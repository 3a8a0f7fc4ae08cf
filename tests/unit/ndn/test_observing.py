"""A host that only listens knows by itself when nothing more comes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from gradbed.hosts.systems.ndn.agents import VersionObserver
from gradbed.hosts.systems.ndn.packets import VersionHead
from gradbed.hosts.systems.ndn.reception import Version

PUBLISHERS = ("h1", "h2")


@pytest.mark.parametrize(
    ("losses", "last", "over"),
    [((1.5, 1.4), False, True), ((1.6, 1.4), False, False), ((1.6, 1.4), True, True)],
    ids=["target reached", "not reached", "last version"],
)
def test_it_is_over_with_the_last_version_or_the_target(losses: tuple[float, float], last: bool, over: bool) -> None:
    """Peers that have reached their target of 1.5 in the mean make no further version, and cannot say so before."""
    waiting: set[tuple[int, int]] = set()
    node: Any = SimpleNamespace(
        receptions={index: SimpleNamespace(end=lambda number: None) for index in range(len(PUBLISHERS))},
        tell_of_versions=lambda take: None,
        wait_for=lambda publisher, number: waiting.add((publisher, number)),
        stop_waiting=lambda publisher, number: None,
        context=SimpleNamespace(emit=lambda event, **fields: None),
    )
    job: Any = SimpleNamespace(publishers=PUBLISHERS, fragments=1, lanes=4, values=4, target_loss=1.5)
    observation = VersionObserver(node, SimpleNamespace(job=job))  # type: ignore[arg-type]

    def comes(publisher: int, number: int) -> None:
        head = VersionHead(loss=losses[publisher], last=last)
        observation._take(publisher, number, Version(np.ones((1, 4), np.int32), np.ones(1, np.bool_), 0, head))

    comes(0, 0)  # under way when the host joined: the first whole one is the next
    waiting.clear()
    comes(0, 1)
    assert not observation.over
    comes(1, 1)
    assert observation.over is over
    assert waiting == (set() if over else {(0, 2), (1, 2)}), "what never comes is not waited for"
