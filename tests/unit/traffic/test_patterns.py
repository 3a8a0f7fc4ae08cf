"""Who sends to whom, and at which rate."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from gradbed.common.errors import UserError
from gradbed.experiments.scale import Scale
from gradbed.experiments.traffic.agents import pair_rates, shares
from gradbed.experiments.traffic.configuration import TrafficSection, demands, pods, read_matrix
from gradbed.topo.generators import fat_tree, leaf_spine, star
from gradbed.topo.link import LinkModel

FAT_TREE = fat_tree(4, LinkModel(rate_bps=100_000_000))
HOSTS = [host.name for host in FAT_TREE.hosts]


def test_all_to_all_is_every_pair() -> None:
    found = demands("all-to-all", FAT_TREE, 1)
    assert len(found) == 16 * 15 and set(found.values()) == {1.0}


@pytest.mark.parametrize("within", ["anywhere", "rack", "pod", "between-racks", "between-pods"])
def test_a_permutation_has_every_host_once_on_either_side(within: str) -> None:
    found = demands("permutation", FAT_TREE, 1, within)
    assert sorted(a for a, _ in found) == sorted(b for _, b in found) == sorted(HOSTS)
    assert all(a != b for a, b in found)
    if within != "rack":  # of two hosts, there is only one
        assert found != demands("permutation", FAT_TREE, 2, within)
    assert found == demands("permutation", FAT_TREE, 1, within)


@pytest.mark.parametrize(
    ("within", "pairs"), [("rack", 16), ("pod", 16 * 3), ("between-racks", 16 * 14), ("between-pods", 16 * 12)]
)
def test_pairs_of_racks_and_pods(within: str, pairs: int) -> None:
    assert len(demands("all-to-all", FAT_TREE, 1, within)) == pairs


def test_pods_are_those_of_the_fat_tree() -> None:
    assert Counter(pods(FAT_TREE).values()) == {"e1": 2, "e3": 2, "e5": 2, "e7": 2}
    for flat in (leaf_spine(2, 2, 2), star(4)):
        with pytest.raises(UserError, match="has no pods"):
            pods(flat)


def test_incast_has_one_receiver() -> None:
    assert set(demands("incast", FAT_TREE, 1)) == {(host, "h1") for host in HOSTS[1:]}
    assert len(demands("incast:4", FAT_TREE, 1)) == 4
    assert set(demands("incast", FAT_TREE, 1, "rack")) == {("h2", "h1")}


def test_a_hotspot_gets_its_share_of_every_host() -> None:
    found = demands("hotspot:0.25", FAT_TREE, 1)
    for host in HOSTS[1:]:
        assert found[host, "h1"] == 0.25
        assert sum(weight for (a, _), weight in found.items() if a == host) == pytest.approx(1)
    assert sum(weight for (a, _), weight in found.items() if a == "h1") == pytest.approx(1)


def test_strides_and_pairs() -> None:
    assert demands("stride:3", star(4, LinkModel(rate_bps=1000)), 1)["h2", "h1"] == 1
    assert set(demands("stride", star(4), 1)) == {("h1", "h3"), ("h2", "h4"), ("h3", "h1"), ("h4", "h2")}
    assert set(demands("pairs", star(5), 1)) == {("h1", "h2"), ("h3", "h4")}


@pytest.mark.parametrize(
    ("pattern", "within", "message"),
    [
        ("all-to-al", "anywhere", "no traffic is called 'all-to-al'.*all-to-all"),
        ("incast:0", "anywhere", "from 1 on"),
        ("incast:99", "anywhere", "needs 99 senders, there are 15"),
        ("hotspot:2", "anywhere", "from 0 to 1"),
        ("permutation:2", "anywhere", "nothing behind a colon"),
        ("stride:16", "anywhere", "no pair of hosts for stride:16"),
        ("stride:8", "rack", "no pair of hosts for stride:8 rack"),
    ],
)
def test_traffic_that_cannot_be_is_one_line(pattern: str, within: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        demands(pattern, FAT_TREE, 1, within)


@pytest.mark.parametrize("pattern", ["all-to-all", "permutation", "incast", "hotspot:0.5"])
def test_the_busiest_host_link_has_the_load(pattern: str) -> None:
    rates = pair_rates(TrafficSection(pattern=pattern, load=0.6), FAT_TREE, Scale(), seed=1)
    sent, received = Counter[str](), Counter[str]()
    for (a, b), rate_bps in rates.items():
        sent[a] += rate_bps
        received[b] += rate_bps
    assert max(*sent.values(), *received.values()) == pytest.approx(60e6)


def test_a_load_of_unlimited_links_is_refused() -> None:
    with pytest.raises(UserError, match="the link of h1 has no rate"):
        pair_rates(TrafficSection(pattern="pairs"), star(2), Scale(), seed=1)


def test_shares_are_whole_and_complete() -> None:
    found = shares({("a", "b"): 1.0, ("a", "c"): 1.0, ("b", "c"): 4.0}, 10)
    assert sum(found.values()) == 10 and sorted(found.values()) == [1, 2, 7]


# ---- Matrices ----


def test_a_table_and_a_list_say_the_same(tmp_path: Path) -> None:
    table, pairs = tmp_path / "table.csv", tmp_path / "pairs.csv"
    table.write_text("from, h1, h2, h3\nh1, 0, 5, \nh3, 2.5, 0, 0\n")
    pairs.write_text("from,to,mbps\nh1,h2,5\nh3,h1,2.5\nh2,h1,0\n")
    expected = {("h1", "h2"): 5.0, ("h3", "h1"): 2.5}
    assert read_matrix(table, FAT_TREE) == read_matrix(pairs, FAT_TREE) == expected
    rates = pair_rates(TrafficSection(matrix=table), FAT_TREE, Scale(0.5), seed=1)
    assert rates == {("h1", "h2"): 2.5e6, ("h3", "h1"): 1.25e6}
    rates = pair_rates(TrafficSection(matrix=table, load=0.5), FAT_TREE, Scale(), seed=1)
    assert rates == {("h1", "h2"): 50e6, ("h3", "h1"): 25e6}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("from,to,mbps\nh1,h99,5\n", "2: fat-tree:4 has no host 'h99'"),
        ("from,to,mbps\nh1,h2\n", "2: 2 cells instead of 3"),
        ("from,to,mbps\nh1,h2,fast\n", "2: 'fast' is no rate"),
        ("from,to,mbps\nh1,h2,-1\n", "2: '-1' is no rate"),
        ("from,to,mbps\nh1,h2,1\n\nh1,h2,1\n", "4: h1 to h2 stands twice"),
        ("from,to,mbps\nh1,h1,1\n", "2: h1 cannot send to itself"),
        ("from,to,mbps\nh1,h2,0\n", "no host sends anything"),
        ("", "1: a heading"),
        ("a\0b", "1: a heading|no CSV file"),
    ],
)
def test_wrong_matrices_are_one_line(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "matrix.csv"
    path.write_text(text)
    with pytest.raises(UserError, match=message) as error:
        read_matrix(path, FAT_TREE)
    assert str(path) in str(error.value) and "\n" not in str(error.value)


def test_a_matrix_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"cannot read .*: No such file"):
        read_matrix(tmp_path / "none.csv", FAT_TREE)
