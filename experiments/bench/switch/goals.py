"""What the switch should reach, and whether it did."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from gradbed.experiments.bench.report import Goal
from gradbed.experiments.bench.switch.control_plane import CompileTimes
from gradbed.experiments.bench.switch.rates import Rates
from gradbed.experiments.bench.switch.subjects import Kind

PATH_SWITCHES = 5

ONE_TO_BARE = 0.90
ONE_TO_BMV2 = 5.0
PATH_TO_ONE = 0.60
PATH_TO_BMV2 = 25.0
LARGE_TO_SMALL = 0.50
WRITES_PER_S = 20_000.0
FIRST_COMPILE_S = 5.0
CACHED_COMPILE_S = 0.2


def rate_goals(program: str, rates: Mapping[tuple[Kind, int], Rates]) -> Iterator[Goal]:
    """One switch and a path of five, against the bare forwarder, BMv2 and each other."""

    one: tuple[Kind, int] = ("gradbed", 1)
    path: tuple[Kind, int] = ("gradbed", PATH_SWITCHES)
    pairs: tuple[tuple[str, float, tuple[Kind, int], tuple[Kind, int]], ...] = (
        ("one switch / bare forwarder", ONE_TO_BARE, one, ("bare", 1)),
        ("one switch / BMv2", ONE_TO_BMV2, one, ("BMv2", 1)),
        ("path of five / one switch", PATH_TO_ONE, path, one),
        ("path of five / BMv2's", PATH_TO_BMV2, path, ("BMv2", PATH_SWITCHES)),
    )
    for name, wanted, ours, theirs in pairs:
        yield _ratio_goal(f"{program}: {name}", wanted, rates.get(ours), rates.get(theirs))


def table_goal(small: Rates, large: Rates, name: str) -> Goal:
    return _ratio_goal(f"{name} / one entry", LARGE_TO_SMALL, large, small)


def _ratio_goal(name: str, wanted: float, ours: Rates | None, theirs: Rates | None) -> Goal:
    if ours is None or theirs is None:
        return Goal(name, wanted, None, "x")
    return Goal(name, wanted, ours.ratio(theirs), "x", by_processor_time=ours.processor_ratio(theirs))


def control_goals(writes_per_s: float, times: Sequence[CompileTimes]) -> Iterator[Goal]:
    yield Goal("table writes over P4Runtime", WRITES_PER_S, writes_per_s, "/s")
    for row in times:
        yield Goal(f"{row.program}: compile and load", FIRST_COMPILE_S, row.first_s, "s", at_most=True)
        yield Goal(f"{row.program}: the same from the cache", CACHED_COMPILE_S, row.again_s, "s", at_most=True)
