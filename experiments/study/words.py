"""What swept paths and columns are called where people read them."""

from __future__ import annotations

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


def column_words(name: str) -> str:
    """A metric's name without its unit, which its numbers have: "throughput_bps" is "throughput"."""
    words = name.split("_")
    return " ".join(words[:-1] if words[-1] in UNITS else words)
