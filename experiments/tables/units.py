"""Numbers with engineering units, for people."""

from __future__ import annotations

import math

_PREFIXES = ((1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""), (1e-3, "m"), (1e-6, "µ"), (1e-9, "n"))
ERROR_DIGITS = 2


def engineering(value: float, unit: str, digits: int = 4, error: float | None = None) -> str:
    """ "2.42 Mbit/s", or with an error "2.42 ± 0.12 Mbit/s"; the prefix is the value's. Without a unit no prefix."""
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
    """So many digits, but all before the point; powers of ten only for what is very small."""
    if value == 0 or not math.isfinite(value) or abs(value) < 1e-4:
        return f"{value:.{digits}g}"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    text = f"{value:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def time_text(seconds: float) -> str:
    return engineering(seconds, "s")
