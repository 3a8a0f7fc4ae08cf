"""Links and hosts by the words of people."""

from __future__ import annotations

import pytest

from gradbed.common.errors import UserError
from gradbed.topo.generators import leaf_spine
from gradbed.topo.selectors import select, select_all

TOPOLOGY = leaf_spine(2, 1, 1)


def test_links_and_hosts_by_their_names() -> None:
    assert [select(TOPOLOGY, name).links for name in ("l1-s1", "s1-l1")] == [(TOPOLOGY.link("l1", "s1"),)] * 2
    assert select(TOPOLOGY, "l1-s1").host is None
    host = select(TOPOLOGY, "h1")
    assert (host.name, host.host, host.links) == ("h1", "h1", (TOPOLOGY.link("h1", "l1"),))


def test_all_are_all_links_and_each_comes_once() -> None:
    assert select_all(TOPOLOGY, "all") == select_all(TOPOLOGY, ["all"])
    everything = select_all(TOPOLOGY, ["all", "s1-l1", "h1", "h1"])
    assert [each.links for each in everything if each.host is None] == [(link,) for link in TOPOLOGY.links]
    assert [each.name for each in everything if each.host is not None] == ["h1"]


@pytest.mark.parametrize(
    ("word", "told"),
    [
        ("l1-s2", "did you mean 'l1-s1'"),
        ("l2_s1", "did you mean 'l2-s1'"),
        ("s1", "s1 is a switch: name a host, or a link of it, s1-l1 or s1-l2"),
        ("everything", "has no link or host 'everything'; a link is written s1-l2, a host h1"),
        ("", "has no link or host ''"),
        ("l1-l2", "did you mean"),
    ],
)
def test_other_words_are_one_line(word: str, told: str) -> None:
    with pytest.raises(UserError) as caught:
        select(TOPOLOGY, word)
    assert told in str(caught.value) and "\n" not in str(caught.value)
