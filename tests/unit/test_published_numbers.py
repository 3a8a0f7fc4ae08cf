"""docs/published.md: published numbers, with their direction, beside ours, computed from the data of the figures."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from gradbed.experiments.systems.shuffle.figures import attia_tandon_worst, coded_mapreduce, lee_average
from tests.unit.documented_figures import ROOT, figure_data

PAGE = ROOT / "docs/published.md"
REASON_ABOVE = 0.1
"""Deviations above this need a reason in the table."""

# ---- Effects: a number or a range of numbers with its direction ----


@dataclass(frozen=True)
class Unit:
    """What a number of the table says of a quantity."""

    of: Callable[[float], float]
    """The number, from the quantity: of relative units from ours over the baseline, of others from the value in SI
    units."""
    form: str
    """Format of one number."""


UNITS = {
    "% less time": Unit(lambda share: 100 * (1 - share), ".1f"),
    "% fewer packets": Unit(lambda share: 100 * (1 - share), ".1f"),
    "% of the time": Unit(lambda share: 100 * share, ".1f"),
    "times the speed": Unit(lambda share: 1 / share, ".3g"),
    "times the throughput": Unit(lambda share: 1 / share, ".3g"),
    "times fewer bytes": Unit(lambda share: 1 / share, ".3g"),
    "packets per sample": Unit(lambda packets: packets, ".3g"),
    "ms": Unit(lambda seconds: 1e3 * seconds, ".4g"),
    "of the link rate": Unit(lambda share: share, ".3g"),
}
EFFECT = re.compile(r"(?P<bound>up to |over )?(?P<low>-?[\d.]+)(?: to (?P<high>-?[\d.]+))? (?P<unit>\D.*)")


@dataclass(frozen=True)
class Effect:
    """A published effect, or one of ours."""

    low: float
    high: float
    unit: str
    """Key of UNITS: it says whether the number is a reduction, a remainder or a ratio."""
    best_case: bool = False
    """The number is "up to": only the best of ours is compared with it."""

    @classmethod
    def parse(cls, text: str) -> Effect:
        found = EFFECT.fullmatch(text)
        assert found and found["unit"] in UNITS, f"no effect with a known direction: {text}"
        return cls(
            float(found["low"]), float(found["high"] or found["low"]), found["unit"], found["bound"] == "up to "
        )

    @classmethod
    def measured(cls, quantities: Sequence[float], unit: str) -> Effect:
        numbers = [UNITS[unit].of(each) for each in quantities]
        return cls(min(numbers), max(numbers), unit)

    def deviations(self, published: Effect) -> list[float]:
        """Return this effect over the published one less one, of both ends of a range."""
        assert self.unit == published.unit
        low, high = self.low / published.low - 1, self.high / published.high - 1
        is_single = self.low == self.high and published.low == published.high
        return [high] if published.best_case or is_single else [low, high]

    def __str__(self) -> str:
        low, high = (format(each, UNITS[self.unit].form) for each in (self.low, self.high))
        return f"{low} {self.unit}" if low == high else f"{low} to {high} {self.unit}"


def shown_deviation(deviations: Sequence[float]) -> str:
    return f"{' to '.join(f'{100 * each:+.0f}' for each in deviations)} %"


# ---- The table ----


@dataclass(frozen=True)
class Claim:
    """A row of the table of results."""

    number: str
    citation: str
    setting: str
    published: str
    comparison: str
    ours: str
    deviation: str
    reason: str


def claims() -> dict[str, Claim]:
    rows = [
        Claim(*(cell.strip() for cell in line[1:-1].split("|")))
        for line in PAGE.read_text(encoding="utf-8").splitlines()
        if re.match(r"\| [A-Z]\d+ \|", line)
    ]
    assert len({each.number for each in rows}) == len(rows)
    return {each.number: each for each in rows}


# ---- Ours ----

STORED = (0.2, 0.3, 0.4, 0.5)
"""Storage fractions of the shuffle's rows."""
WORKERS = (4, 8, 16)
RING_RANKS, RING_BYTES, RING_BPS = 16, 128 << 20, 100e9


def shuffle_time(ours: str, baseline: str) -> list[float]:
    data = figure_data("shuffle_2_time")

    def time_s(scheduler: str, storage: float) -> float:
        return float(data.row(scheduler=scheduler, storage=storage)["shuffle_time_s"])

    return [time_s(ours, storage) / time_s(baseline, storage) for storage in STORED]


def packets(scheduler: str, storage: float = 0.3) -> float:
    row = figure_data("shuffle_1_hops").row(scheduler=scheduler, storage=storage, kind="fat-tree:4")
    return float(row["packets_per_sample"])


def iteration_s(workers: int, **at: Any) -> float:
    """Return the time of an iteration during which the server's link is halved."""
    rows = figure_data("compression_1_workers").rows(workers=workers, protocol="packets", **at)
    [row] = [each for each in rows if each["faults"]]
    return float(row["iteration_time_s"])


def adaptive_over(**baseline: Any) -> list[float]:
    """Return times with the corrected rule over those of a baseline, for all paces and numbers of workers."""
    return [
        iteration_s(workers, pacing=pacing, rule="corrected", compress="none") / iteration_s(workers, **baseline)
        for workers in WORKERS
        for pacing in ("none", "even", "aimd")
    ]


def gradient_bytes(compress: str) -> float:
    return float(figure_data("compression_3_accuracy").row(compress=compress, error_feedback=True)["wire_bytes"])


def ring_share(workers: int) -> float:
    row = figure_data("aggregation_2_workers").row(workers=workers, exchange="ring")
    return float(row["throughput_bps"]) / 100e6


FIXED_TENTH = {"pacing": "even", "rule": "none", "compress": "topk:0.1"}

OURS: Mapping[str, Callable[[], list[float]]] = {
    "S1": lambda: shuffle_time("improved", "unicast-random"),
    "S2": lambda: shuffle_time("improved", "unicast-nearest"),
    "S3": lambda: shuffle_time("hop-aware", "unicast-random"),
    "S4": lambda: shuffle_time("improved", "coded-largest"),
    "S5": lambda: shuffle_time("improved", "coded-master"),
    "S6": lambda: shuffle_time("hop-aware", "coded-largest"),
    "S7": lambda: [packets("coded-master", each) / packets("unicast-nearest", each) for each in STORED],
    "S8": lambda: [packets("coded-master")],
    "S9": lambda: [packets("coded-master")],
    "S10": lambda: [packets("coded-largest")],
    "C1": lambda: adaptive_over(pacing="none", rule="none", compress="none"),
    "C2": lambda: adaptive_over(**FIXED_TENTH),
    "C3": lambda: adaptive_over(**FIXED_TENTH),
    "C4": lambda: [gradient_bytes("topk:0.01") / gradient_bytes("none")],
    "T1": lambda: [
        figure_data("training_1_collectives").row(algorithm="ring", size_bytes=RING_BYTES)["collective_time_s"]
    ],
    "A1": lambda: [ring_share(15)],
    "A2": lambda: [ring_share(2)],
}
"""The quantities of each row: shares of the baseline, or values in SI units."""


def ring_bound(workers: int) -> float:
    """Return the most that a ring all-reduce reaches, as a share of the link rate: the vector is sent once by each
    worker, less a part of 1/n, in each of two phases."""
    return workers / (2 * (workers - 1))


FORMULAS: Mapping[str, Callable[[], float]] = {
    "S8": lambda: lee_average(15, 0.3),
    "S9": lambda: attia_tandon_worst(15, 0.3),
    "S10": lambda: coded_mapreduce(15, 0.3),
    "T1": lambda: 8 * RING_BYTES / RING_BPS / ring_bound(RING_RANKS),
    "A1": lambda: ring_bound(15),
    "A2": lambda: ring_bound(2),
}
"""Rows whose published number is the value of a published formula."""

# ---- Tests ----


def test_every_row_is_computed_and_every_computation_has_a_row() -> None:
    assert list(claims()) == list(OURS)


@pytest.mark.parametrize("number", OURS)
def test_ours_and_the_deviation_are_those_of_the_data(number: str) -> None:
    claim = claims()[number]
    published = Effect.parse(claim.published)
    ours = Effect.measured(OURS[number](), published.unit)
    deviations = ours.deviations(published)
    assert claim.ours == str(ours)
    assert claim.deviation == shown_deviation(deviations)
    assert claim.reason or max(map(abs, deviations)) <= REASON_ABOVE, "a deviation above 10 % needs a reason"


@pytest.mark.parametrize("number", FORMULAS)
def test_the_value_of_a_published_formula_is_computed(number: str) -> None:
    published = claims()[number].published
    unit = Effect.parse(published).unit
    assert published == str(Effect.measured([FORMULAS[number]()], unit))


def test_every_row_has_its_citation_setting_and_baseline() -> None:
    text = PAGE.read_text(encoding="utf-8")
    references = set(re.findall(r"^- \*\*(.+?)\*\* ", text, re.MULTILINE))
    for claim in claims().values():
        assert claim.citation.rsplit(": ", 1)[-1] in references, claim.citation
        assert claim.setting and claim.comparison


def test_a_reduction_is_no_remainder() -> None:
    """27.8 % less time is 72.2 % of the time, and 1.39 times the speed."""
    ours = [1 - 0.278]
    assert str(Effect.measured(ours, "% less time")) == "27.8 % less time"
    assert str(Effect.measured(ours, "% of the time")) == "72.2 % of the time"
    assert str(Effect.measured(ours, "times the speed")) == "1.39 times the speed"
    with pytest.raises(AssertionError, match="known direction"):
        Effect.parse("27.8 % in time")


def test_deviations_of_ranges_and_of_best_cases() -> None:
    single, best, span = map(Effect.parse, ("20 % less time", "up to 20 % less time", "5 to 20 % less time"))
    ours = Effect.measured([0.9, 0.75], "% less time")
    assert shown_deviation(ours.deviations(single)) == "-50 to +25 %"
    assert shown_deviation(ours.deviations(best)) == "+25 %"
    assert shown_deviation(ours.deviations(span)) == "+100 to +25 %"


def test_tests_of_adopted_parameters_are_there() -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE.read_text(encoding="utf-8"))
    assert named
    for path, function in named:
        assert f"def {function}(" in (ROOT / path).read_text(encoding="utf-8")
