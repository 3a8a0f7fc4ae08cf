"""Format numbers with units, and the names of swept paths and columns, for people."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

# ---- Numbers ----


_PREFIXES = ((1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""), (1e-3, "m"), (1e-6, "µ"), (1e-9, "n"))
ERROR_DIGITS = 2


def engineering(value: float, unit: str, digits: int = 4, error: float | None = None) -> str:
    """Format a value with an SI prefix: "2.42 Mbit/s", or with an error "2.42 ± 0.12 Mbit/s".

    The prefix is chosen for the value; without a unit there is none.
    """
    if unit not in ("bit/s", "s", "B") or value == 0:
        factor, prefix = 1.0, ""
    else:
        factor, prefix = next(
            (each for each in _PREFIXES if abs(value) >= each[0] and (unit != "B" or each[0] >= 1)), (1.0, "")
        )
    # There are no parts of a byte, also where a mean has some.
    shown = f"{value:.0f}" if (unit, prefix) == ("B", "") and error is None else _plain(value / factor, digits)
    if error is not None:
        shown += f" ± {_plain(error / factor, ERROR_DIGITS)}"
    return f"{shown} {prefix}{unit}".rstrip()


def _plain(value: float, digits: int) -> str:
    """Format a number with so many digits, but all before the point; with powers of ten only if it is very small."""
    if value == 0 or not math.isfinite(value) or abs(value) < 1e-4:
        return f"{value:.{digits}g}"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    text = f"{value:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def time_text(seconds: float) -> str:
    return engineering(seconds, "s")


# ---- Names ----


UNITS = {"bps": "bit/s", "mbps": "Mbit/s", "us": "µs", "ms": "ms", "s": "s"}


def path_words(path: str) -> str:
    """Return a swept path as the label of an axis: "topology.link.delay_us" is "link delay (µs)"."""
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
