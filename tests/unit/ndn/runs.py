"""Small NDN trials on the virtual clock, for tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from unittest import mock

from gradbed.experiments.phases import TrialResult
from gradbed.experiments.runtimes.virtual import VirtualRuntime
from tests.unit.trials import virtual_trial

LONGEST_US = 30_000_000


def _begin_with_an_end(runtime: VirtualRuntime) -> None:
    """Peers that wait for ever would never let the clock come to an end."""

    def too_long() -> None:
        raise TimeoutError(f"not all peers have ended by {LONGEST_US / 1e6:g} s on the virtual clock")

    BEGIN(runtime)
    runtime.call_after(LONGEST_US, too_long)


BEGIN = VirtualRuntime.begin


def run(seed: int = 1, factor: float = 1.0, **sections: Any) -> TrialResult:
    """It ends only if all peers have, and every sum or weight that is not the reference's is a failure."""
    sections["workload"] = {"rounds": 3, "values": 960, **sections.get("workload", {})}
    if sections["workload"].get("kind") == "training":
        del sections["workload"]["values"]
    with mock.patch.object(VirtualRuntime, "begin", _begin_with_an_end):
        return virtual_trial("ndn", seed=seed, factor=factor, **sections)


def recoveries(result: TrialResult) -> Mapping[Any, int]:
    """Answers to probes, by the distance of the router that gave them; None: publishers'."""
    return {row["distance"]: row["packets"] for row in result.tables["recoveries"]}


def lossy(loss: float, *links: tuple[str, str], at_ms: float = 0.0) -> list[dict[str, Any]]:
    """Faults that make single links lose packets."""
    return [{"fault": "link-change", "at_ms": at_ms, "link": list(link), "change": {"loss": loss}} for link in links]
