"""Summarised routes: the same way for every address, with no prefix more than needed."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import IPv4Address, IPv4Network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradbed.controller.planning.routing import summarised

SPACE = IPv4Network("10.1.2.128/26")


@st.composite
def routes(draw: st.DrawFn) -> dict[IPv4Network, str]:
    """Of some of the addresses of SPACE, to prefixes none of which lies in another, in any order."""
    parts = [SPACE]
    for _ in range(draw(st.integers(0, 20))):
        chosen = parts.pop(draw(st.integers(0, len(parts) - 1)))
        parts += [chosen] if chosen.prefixlen == 32 else chosen.subnets()
    return {part: draw(st.sampled_from("ab")) for part in draw(st.permutations(parts)) if draw(st.integers(0, 4))}


def way(routes: Mapping[IPv4Network, str], address: IPv4Address) -> str | None:
    found = [prefix for prefix in routes if address in prefix]
    assert len(found) <= 1
    return routes[found[0]] if found else None


@given(routes())
def test_every_address_goes_its_way_and_no_two_halves_are_left(routes: dict[IPv4Network, str]) -> None:
    fewer = summarised(routes)
    around = (SPACE[0] - 1, *SPACE, SPACE[-1] + 1)
    assert [way(fewer, address) for address in around] == [way(routes, address) for address in around]
    for prefix, to in fewer.items():
        other = next(half for half in prefix.supernet().subnets() if half != prefix)
        assert fewer.get(other) != to


def test_a_prefix_takes_the_place_of_the_first_that_it_stands_for() -> None:
    given = {"10.0.1.0/24": "b", "10.0.2.0/24": "a", "10.0.0.0/24": "b", "10.0.3.0/24": "c"}
    fewer = summarised({IPv4Network(prefix): to for prefix, to in given.items()})
    assert [(str(prefix), to) for prefix, to in fewer.items()] == [
        ("10.0.0.0/23", "b"),
        ("10.0.2.0/24", "a"),
        ("10.0.3.0/24", "c"),
    ]


def test_all_addresses_are_one_prefix() -> None:
    assert summarised({IPv4Network("0.0.0.0/1"): 1, IPv4Network("128.0.0.0/1"): 1}) == {IPv4Network("0.0.0.0/0"): 1}


def test_prefixes_in_one_another_are_refused() -> None:
    with pytest.raises(ValueError, match=r"10\.0\.0\.4/32 lies in 10\.0\.0\.0/24"):
        summarised({IPv4Network("10.0.0.4"): 1, IPv4Network("10.0.0.0/24"): 1})
