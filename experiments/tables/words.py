"""What swept paths and columns are called where people read them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

UNITS = {"bps": "bit/s", "mbps": "Mbit/s", "us": "µs", "ms": "ms", "s": "s"}


def path_words(path: str) -> str:
    """A swept path as the label of an axis: "topology.link.delay_us" is "link delay (µs)"."""
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
    """A swept value in a table: of lists and mappings, such as faults, what is in them."""
    if isinstance(value, Mapping):
        named = {name: each for name, each in value.items() if each is not None}
        return " ".join(f"{k} {v:g}" if isinstance(v, int | float) else value_words(v) for k, v in named.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(value_words, value)) or "none"
    return "none" if value is None else str(value)


def column_words(name: str) -> str:
    """A metric's name without its unit, which its numbers have: "throughput_bps" is "throughput"."""
    words = name.split("_")
    return " ".join(words[:-1] if words[-1] in UNITS else words)


def short_names(values: Sequence[Any]) -> list[str]:
    """Values for people: of files as many of the last parts as tell different ones apart."""
    words = [value_words(value) for value in values]
    parts = {word: PurePath(word).parts for word in words}
    for depth in range(1, max(map(len, parts.values()), default=0)):
        names = {word: "/".join(each[-depth:]) for word, each in parts.items()}
        if len(set(names.values())) == len(names):
            return [names[word] for word in words]
    return words
