"""How hybrid switches choose between ways: two rules for p4src/include/interconnect/choose_path.p4."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Literal, get_args

PolicyName = Literal["least-loaded", "random-plane", "fixed-plane", "mesh-first", "ecmp"]


class Rule(IntEnum):
    """Of two ways that are there (choose_path.p4)."""

    LEAST_LOADED = 0
    FIRST = 1
    RANDOM = 2
    FLOW_HASH = 3


@dataclass(frozen=True)
class Policy:
    """plane: between the two optical switches. order: between the mesh first and light first."""

    plane: Rule
    order: Rule


POLICIES: Mapping[PolicyName, Policy] = {
    "least-loaded": Policy(Rule.LEAST_LOADED, Rule.LEAST_LOADED),
    "random-plane": Policy(Rule.RANDOM, Rule.LEAST_LOADED),
    "fixed-plane": Policy(Rule.FIRST, Rule.LEAST_LOADED),
    "mesh-first": Policy(Rule.LEAST_LOADED, Rule.FIRST),
    "ecmp": Policy(Rule.FLOW_HASH, Rule.FLOW_HASH),
}
"""least-loaded is the source's; the others have one of its two decisions made otherwise, ecmp both."""

assert set(POLICIES) == set(get_args(PolicyName))
