"""Small NDN points on the virtual clock, for tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from unittest import mock

from gradbed.experiments.phases import PointResult
from gradbed.experiments.testbeds.virtual_testbed import VirtualTestbed
from tests.unit.points import virtual_point

LONGEST_US = 30_000_000


def _begin_with_an_end(testbed: VirtualTestbed) -> None:
    """Peers that wait for ever would never let the clock come to an end."""

    def too_long() -> None:
        raise TimeoutError(f"not all peers have ended by {LONGEST_US / 1e6:g} s on the virtual clock")

    BEGIN(testbed)
    testbed.call_after(LONGEST_US, too_long)


BEGIN = VirtualTestbed.begin


def run(seed: int = 1, factor: float = 1.0, **sections: Any) -> PointResult:
    """It ends only if all peers have, and every sum or weight that is not the reference's is a failure."""
    sections["workload"] = {"rounds": 3, "values": 960, **sections.get("workload", {})}
    if sections["workload"].get("kind") == "training":
        del sections["workload"]["values"]
    with mock.patch.object(VirtualTestbed, "begin", _begin_with_an_end):
        return virtual_point("ndn", seed=seed, factor=factor, **sections)


def recoveries(result: PointResult) -> Mapping[Any, int]:
    """Answers to probes, by the distance of the router that gave them; None: publishers'."""
    return {row["distance"]: row["packets"] for row in result.tables["recoveries"]}


def lossy(loss: float, *links: tuple[str, str], at_ms: float = 0.0) -> list[dict[str, Any]]:
    """Faults that make single links lose packets."""
    return [{"fault": "link-change", "at_ms": at_ms, "link": list(link), "change": {"loss": loss}} for link in links]
