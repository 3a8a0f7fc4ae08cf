"""Gradients cut into fragments, one packet's worth of lanes each, and exact sums of fragments as ACKs carry them.

A sum has 64 bits, an ACK int32 lanes, and for each fragment a shift that is almost always 0. The global sum of a
fragment stands for lane * 2^shift. The shift is the least for which all its lanes, rounded to the nearest integer
(ties to even), fit int32. Server, workers and the single-process reference share this one rule, so that weights stay
equal bit for bit where sums leave the range of int32, too.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Integer = TypeVar("Integer", np.int32, np.int64)


def fragment_count(values: int, lanes: int) -> int:
    """Fragments that `values` integers need."""
    return -(-values // lanes)


def cut(values: NDArray[Integer], lanes: int) -> NDArray[Integer]:
    """Fragments of a flat vector, shape (fragments, lanes); the last one is filled up with zeros."""
    fragments = np.zeros((fragment_count(len(values), lanes), lanes), values.dtype)
    fragments.reshape(-1)[: len(values)] = values
    return fragments


def join(fragments: NDArray[Integer], values: int) -> NDArray[Integer]:
    """The flat vector of `values` integers that `cut` made these fragments of."""
    return fragments.reshape(-1)[:values]


# ---- Shifted sums ----


_INT32 = np.iinfo(np.int32)


def _rounded(sums: NDArray[np.int64], shifts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return sums / 2^shifts, rounded to nearest, ties to even. The shapes broadcast."""
    quotients = sums >> shifts
    # Twice the remainder against the divisor, so that a shift of 0 needs no case of its own.
    twice = (sums - (quotients << shifts)) << 1
    divisors = np.int64(1) << shifts
    up = (twice > divisors) | ((twice == divisors) & (quotients & 1 == 1))
    rounded: NDArray[np.int64] = quotients + up
    return rounded


def shifted(sums: NDArray[np.int64]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Lanes, shape (fragments, lanes) like `sums`, and shifts, shape (fragments,). |sums| < 2^61."""
    shifts = np.zeros(len(sums), np.int64)
    largest, least = sums.max(axis=1, initial=0), sums.min(axis=1, initial=0)
    # Rounding is monotonic: the extremes decide.
    while (over := (_rounded(largest, shifts) > _INT32.max) | (_rounded(least, shifts) < _INT32.min)).any():
        shifts[over] += 1
    if not shifts.any():
        return sums.astype(np.int32), shifts
    return _rounded(sums, shifts[:, None]).astype(np.int32), shifts


def restored(lanes: NDArray[np.int32], shifts: NDArray[np.integer]) -> NDArray[np.int64]:
    """Return what lanes, shape (fragments, lanes), with shifts, shape (fragments,), stand for."""
    sums = lanes.astype(np.int64)
    if shifts.any():
        sums <<= shifts.astype(np.int64)[:, None]
    return sums


def as_sent(total: NDArray[np.int64], lanes: int) -> NDArray[np.int64]:
    """Return what workers receive of an exact flat sum that travels in fragments of `lanes` lanes."""
    return join(restored(*shifted(cut(total, lanes))), len(total))
