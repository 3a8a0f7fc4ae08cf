"""Numbers with engineering units, for people."""

from __future__ import annotations

_PREFIXES = ((1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""), (1e-3, "m"), (1e-6, "µ"), (1e-9, "n"))


def engineering(value: float, unit: str, digits: int = 4, error: float | None = None) -> str:
    """ "2.42 Mbit/s", or with an error "2.42 ± 0.12 Mbit/s"; the prefix is the value's. Without a unit no prefix."""
    if unit not in ("bit/s", "s", "B") or value == 0:
        factor, prefix = 1.0, ""
    else:
        factor, prefix = next(
            (each for each in _PREFIXES if abs(value) >= each[0] and (unit != "B" or each[0] >= 1)), (1.0, "")
        )
    shown = f"{value / factor:.{digits}g}"
    if error is not None:
        shown += f" ± {error / factor:.2g}"
    return f"{shown} {prefix}{unit}".rstrip()


def time_text(seconds: float) -> str:
    return engineering(seconds, "s")
