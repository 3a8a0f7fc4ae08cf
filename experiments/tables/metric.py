"""Metrics of trials with their confidence intervals, as tables and text for people."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, Literal

import numpy as np

from gradbed.experiments.tables.console import FittedTable

# ---- Numbers ----


_PREFIXES = ((1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""), (1e-3, "m"), (1e-6, "u"), (1e-9, "n"))
ERROR_DIGITS = 2
Prefix = tuple[float, str]
"""Factor and symbol of an SI prefix; micro is "u", as in the names of columns and options."""


def prefix_of(values: Iterable[float | None], unit: str) -> Prefix:
    """Return the SI prefix for values that stand beside each other: that of the largest one.

    Without a unit, and where all values are 0, there is none.
    """
    largest = max((abs(value) for value in values if value is not None and math.isfinite(value)), default=0.0)
    if unit not in ("bit/s", "s", "B") or largest == 0:
        return 1.0, ""
    return next((each for each in _PREFIXES if largest >= each[0] and (unit != "B" or each[0] >= 1)), (1.0, ""))


def engineering(
    value: float, unit: str, digits: int = 4, error: float | None = None, scale: Prefix | None = None
) -> str:
    """Format a value with an SI prefix: "2.42 Mbit/s", or with an error "2.42 ± 0.12 Mbit/s".

    Args:
        scale: prefix to use, such as that of a whole column; None: the value's own.
    """
    factor, prefix = prefix_of([value], unit) if scale is None else scale
    # There are no parts of a byte, also where a mean has some.
    shown = f"{value:.0f}" if (unit, prefix) == ("B", "") and error is None else _plain(value / factor, digits)
    if error is not None:
        shown += f" ± {_plain(error / factor, ERROR_DIGITS)}"
    return f"{shown} {prefix}{unit}".rstrip()


def _plain(value: float, digits: int) -> str:
    """Format a number with `digits` significant digits and all before the point; very small ones in exponent form."""
    if value == 0 or not math.isfinite(value) or abs(value) < 1e-4:
        return f"{value:.{digits}g}"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    text = f"{value:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def time_text(seconds: float) -> str:
    return engineering(seconds, "s")


# ---- Names ----


UNITS = {"bps": "bit/s", "mbps": "Mbit/s", "us": "us", "ms": "ms", "s": "s", "bytes": "B"}


def path_words(path: str) -> str:
    """Return a swept path as the label of an axis: "topology.link.delay_us" is "link delay (us)"."""
    *sections, last = path.split(".")
    words = last.split("_")
    unit = UNITS.get(words[-1]) if len(words) > 1 else None
    name = " ".join(words[:-1] if unit else words)
    if last == "kind" and sections:
        name = sections[-1]
    elif sections[-1:] == ["link"]:
        name = f"link {name}"
    return f"{name} ({unit})" if unit else name


def value_words(value: Any) -> str:
    """Return a swept value as text; of lists and mappings, such as faults, their contents."""
    if isinstance(value, Mapping):
        named = {name: each for name, each in value.items() if each is not None}
        return " ".join(f"{k} {v:g}" if isinstance(v, int | float) else value_words(v) for k, v in named.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(value_words, value)) or "none"
    return "none" if value is None else str(value)


def column_words(name: str) -> str:
    """Return a metric's name without its unit: "throughput_bps" is "throughput"."""
    words = name.split("_")
    return " ".join(words[:-1] if words[-1] in UNITS else words)


def short_names(values: Sequence[Any]) -> list[str]:
    """Return values as text; of files as many of the last path components as tell different ones apart."""
    words = [value_words(value) for value in values]
    parts = {word: PurePath(word).parts for word in words}
    for depth in range(1, max(map(len, parts.values()), default=0)):
        names = {word: "/".join(each[-depth:]) for word, each in parts.items()}
        if len(set(names.values())) == len(names):
            return [names[word] for word in words]
    return words


# ---- Metrics ----


Value = str | int | float | bool | None


@dataclass(frozen=True)
class Metric:
    """A number that each trial of a system yields."""

    unit: str
    """Unit of the value: "bit/s", "s", "us", "B", or "" for a plain number."""
    meaning: str
    """Short description for tables, axes and reports."""
    scales: Literal["rate", "time"] | None = None
    """How the value follows the link rate; None: not at all.

    "rate" (bit/s) and "time" (s) are nominal in every table. Each is also given relative to the link rate in a column
    NAME_normalised: a rate divided by it, a time multiplied by it (bits that fit into that time).
    """
    possible: tuple[float | None, float | None] = (0.0, None)
    """Smallest and largest possible value, where intervals are cut; None: no such limit."""
    on_bmv2: bool = True
    """False for a metric that is None where BMv2 runs the switches."""

    def is_untold(self, model: str) -> bool:
        """Return whether it has no value because of what runs the switches."""
        return model == "bmv2" and not self.on_bmv2


def metric_table(title: str, metrics: Mapping[str, Metric], row: Mapping[str, Any], model: str) -> FittedTable:
    """Return a table of a trial's metrics, without those that have no value.

    Args:
        row: of the table of trials.
        model: what ran the switches.
    """
    table = FittedTable(title=title)
    table.add_column("metric", no_wrap=True)
    table.add_column("value", justify="right", no_wrap=True)
    table.add_column("meaning")
    for name, metric in metrics.items():
        value: Any = "not on BMv2" if row[name] is None and metric.is_untold(model) else row[name]
        if value is None:
            continue
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        table.add_row(name, engineering(value, metric.unit) if is_number else str(value), metric.meaning)
    return table


# ---- Confidence intervals ----


CONFIDENCE = 0.95
BOOTSTRAP_RESAMPLES = 9999
BOOTSTRAP_SEED = 1
"""Seed of the resampling, so that equal repetitions give equal intervals."""


@dataclass(frozen=True)
class Interval:
    """An estimate with its confidence interval."""

    estimate: float
    low: float
    """Lower end; NaN with a single repetition."""
    high: float
    """Upper end; NaN with a single repetition."""
    repetitions: int

    @property
    def has_width(self) -> bool:
        """Return whether repetitions differ; otherwise the estimate needs no interval."""
        return self.low < self.high


def confidence_interval(values: Sequence[float], statistic: Literal["mean", "median"] = "mean") -> Interval:
    """Return an estimate of the mean or median with its 95 % confidence interval.

    The mean has that of Student's t distribution (Student, Biometrika 6, 1908), the median that of the bias-corrected
    and accelerated bootstrap (Efron, JASA 82, 1987), or the percentile bootstrap where BCa is not defined. Round
    times are not normally distributed, but their means over a run nearly are; t is for such means.

    Raises:
        ValueError: there are no values.
    """
    if not values:
        raise ValueError("no repetitions")
    sample = np.asarray(values, float)
    count = len(sample)
    estimate = float(np.mean(sample) if statistic == "mean" else np.median(sample))
    if count == 1:
        return Interval(estimate, float("nan"), float("nan"), 1)
    if np.ptp(sample) == 0:
        return Interval(estimate, estimate, estimate, count)
    from scipy import stats  # takes a second to load

    if statistic == "mean":
        half = float(stats.t.ppf((1 + CONFIDENCE) / 2, count - 1) * stats.sem(sample))
        return Interval(estimate, estimate - half, estimate + half, count)
    low, high = _bootstrap(sample)
    return Interval(estimate, low, high, count)


def _bootstrap(sample: np.ndarray[tuple[int], np.dtype[np.float64]]) -> tuple[float, float]:
    from scipy import stats

    for method in ("BCa", "percentile"):
        with np.errstate(all="ignore"):
            found = stats.bootstrap(
                (sample,), np.median, confidence_level=CONFIDENCE, n_resamples=BOOTSTRAP_RESAMPLES,
                rng=np.random.default_rng(BOOTSTRAP_SEED), method=method,
            ).confidence_interval  # fmt: skip
        if np.isfinite(found.low) and np.isfinite(found.high):
            break
    return float(found.low), float(found.high)
