"""The compressors, and how they are named on command lines and in studies: "topk:0.01"."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from gradbed.common.errors import UserError
from gradbed.common.plugins import call_plugin, plugins
from gradbed.hosts.compressors.content import Content

# ---- PowerSGD: a matrix as the product of two thin ones ----
#
# One step of power iteration from the last round's result (Vogels, Karimireddy and Jaggi, "PowerSGD", NeurIPS 2019).
# Here each worker has factors of its own, which the server multiplies and sums, so that a switch cannot sum them. As
# published, workers agree on the factors by two all-reduces, which a switch could sum.


Shape = tuple[int, ...]

_INT32_MAX = (1 << 31) - 1
_MOST = float(1 << 62)


class LowRank:
    """Content: for each tensor in turn its factors as the bits of float32, or, where these would not be shorter (as
    of vectors), its values."""

    can_be_cut = False
    is_placewise = False

    def __init__(self, shapes: Sequence[Shape], rank: int, seed: int) -> None:
        self._shapes = shapes
        self._rank = rank
        generator = np.random.default_rng(seed)
        self._right: dict[int, NDArray[np.float64]] = {
            number: generator.normal(size=(shape[1], rank))
            for number, shape in enumerate(shapes)
            if self._is_factored(shape)
        }

    def length(self, values: int) -> int:
        if values != sum(math.prod(shape) for shape in self._shapes):
            raise ValueError(f"{values} values are no tensors of shapes {self._shapes}")
        return sum(self._words(shape) for shape in self._shapes)

    def drawn(self, values: int, round_number: int) -> None:
        return None

    def _is_factored(self, shape: Shape) -> bool:
        return len(shape) == 2 and self._rank * sum(shape) < math.prod(shape)

    def _words(self, shape: Shape) -> int:
        return self._rank * sum(shape) if self._is_factored(shape) else math.prod(shape)

    def compress(self, gradient: NDArray[Any], round_number: int) -> Content:
        words = [np.zeros(0, np.int64)]
        for number, shape, part in self._parts(gradient, math.prod):
            if number not in self._right:
                words.append(np.clip(part, -_INT32_MAX, _INT32_MAX))
                continue
            matrix = part.reshape(shape).astype(np.float64)
            left, _ = np.linalg.qr(matrix @ self._right[number])
            right = matrix.T @ left
            if right.any():  # else the next round would start from nothing
                self._right[number] = right
            for factor in (left, right):
                words.append(factor.astype(np.float32).view(np.int32).reshape(-1).astype(np.int64))
        content = np.concatenate(words)
        return Content(len(content), content)

    def restored(self, content: NDArray[np.int64]) -> NDArray[np.int64]:
        gradient = [np.zeros(0, np.int64)]
        for _, shape, part in self._parts(content, self._words):
            if not self._is_factored(shape):
                gradient.append(part)
                continue
            factors = part.astype(np.int32).view(np.float32).astype(np.float64)
            left, right = np.split(factors, [shape[0] * self._rank])
            product = left.reshape(shape[0], -1) @ right.reshape(shape[1], -1).T
            gradient.append(np.clip(np.rint(product), -_MOST, _MOST).astype(np.int64).reshape(-1))
        return np.concatenate(gradient)

    def _parts(self, vector: NDArray[Any], size: object) -> Iterator[tuple[int, Shape, NDArray[Any]]]:
        """Number, shape and part of the vector of each tensor; size: of its part, by its shape."""
        assert callable(size)
        start = 0
        for number, shape in enumerate(self._shapes):
            end = start + size(shape)
            yield number, shape, vector[start:end]
            start = end


def nearly_square(values: int) -> tuple[Shape, ...]:
    """Shapes for a gradient of which nothing is known but its length: a matrix, and a vector of what is over."""
    rows = math.isqrt(values)
    if not rows:
        return ()
    columns, over = divmod(values, rows)
    return ((rows, columns), (over,)) if over else ((rows, columns),)


# ---- Which values of a gradient to keep ----


BLOCK_VALUES = 1 << 17
"""Looked at together: their magnitudes fit a processor's second-level cache."""
SAMPLE_VALUES = 1 << 16
SAFETY = 5.0
"""Standard deviations by which the sample's bound is set too low, so that it rarely leaves out too much."""


def top_k(values: NDArray[Any], k: int) -> NDArray[np.intp]:
    """The places, ascending, of the k values of largest magnitude; of equal ones those that come first.

    values: integers or floats, shape (n,). All places if k is n or more. NaN is never chosen, infinity first. Of a
    long gradient a sample tells a magnitude that somewhat more than k values reach; only these are copied and
    compared exactly. If the sample was misleading, all are.
    """
    if k <= 0:
        return np.zeros(0, np.intp)
    n = len(values)
    if n > 2 * SAMPLE_VALUES and k < n // 2:
        places = at_least(values, _bound(values, k))
        if len(places) >= k:
            return places[_largest(magnitudes(values[places]), k)]
    return _largest(magnitudes(values), k)


def magnitudes(values: NDArray[Any], out: NDArray[Any] | None = None) -> NDArray[Any]:
    """|values|. Of integers as unsigned ones, which hold that of the least integer, too."""
    found: NDArray[Any] = np.abs(values, out=out)
    return found.view(f"u{found.itemsize}") if found.dtype.kind == "i" else found


def at_least(values: NDArray[Any], bound: Any) -> NDArray[np.intp]:
    """The places, ascending, of values whose magnitude is at least `bound`."""
    room = np.empty(min(BLOCK_VALUES, len(values)), values.dtype)
    found = [np.zeros(0, np.intp)]
    for start in range(0, len(values), BLOCK_VALUES):
        block = values[start : start + BLOCK_VALUES]
        found.append(np.flatnonzero(magnitudes(block, room[: len(block)]) >= bound) + start)
    return np.concatenate(found)


def _bound(values: NDArray[Any], k: int) -> Any:
    """A magnitude that probably somewhat more than k values reach. Of places drawn at random, since every n-th could
    be of one column of a matrix."""
    sample = magnitudes(values[np.random.default_rng(0).integers(0, len(values), SAMPLE_VALUES)])
    if sample.dtype.kind == "f":
        sample = sample[~np.isnan(sample)]
    expected = SAMPLE_VALUES * k / len(values)
    rank = math.ceil(expected + SAFETY * math.sqrt(expected) + SAFETY)
    if rank >= len(sample):
        return sample.dtype.type(0)
    return np.partition(sample, len(sample) - rank)[len(sample) - rank]


def _largest(found: NDArray[Any], k: int) -> NDArray[np.intp]:
    """The places of the k largest of these magnitudes."""
    numbers = int(np.count_nonzero(~np.isnan(found))) if found.dtype.kind == "f" else len(found)
    if k >= numbers:
        return np.flatnonzero(found == found)  # not NaN
    # NaN is sorted behind all numbers.
    least = np.partition(found, numbers - k)[numbers - k]
    above = np.flatnonzero(found > least)
    equal = np.flatnonzero(found == least)[: k - len(above)]
    return np.sort(np.concatenate([above, equal]))


# ---- Compressors ----


INT32_MAX = (1 << 31) - 1
WARM_UP_DENSITY = 0.25
"""The part that is kept in the first round of a warm-up (Lin et al., "Deep gradient compression", ICLR 2018)."""


class Compressor(Protocol):
    """The compressor of one worker; it may remember something from round to round."""

    @property
    def can_be_cut(self) -> bool:
        """Return whether a part of what it makes is worth sending without the rest."""

    @property
    def is_placewise(self) -> bool:
        """Return whether each code stands for the gradient's value in its place.

        Then sums grow packet by packet; else what comes is a vector of its own kind, and `restored` tells its
        gradient.
        """

    def length(self, values: int) -> int:
        """Return the length of the content for a gradient of so many values."""

    def drawn(self, values: int, round_number: int) -> NDArray[np.intp] | None:
        """The places of a round, ascending, that all agents know by themselves; None: each packet tells its own."""

    def compress(self, gradient: NDArray[Any], round_number: int) -> Content:
        """gradient: int32 or int64."""

    def restored(self, content: NDArray[np.int64]) -> NDArray[np.int64]:
        """The gradient that a decoded content stands for, the same wherever it is computed."""


class _Placewise:
    is_placewise = True
    can_be_cut = True

    def length(self, values: int) -> int:
        return values

    def drawn(self, values: int, round_number: int) -> NDArray[np.intp] | None:
        return None

    def restored(self, content: NDArray[np.int64]) -> NDArray[np.int64]:
        return content


@dataclass(frozen=True)
class Everything(_Placewise):
    """The compressor that sends everything."""

    def compress(self, gradient: NDArray[Any], round_number: int) -> Content:
        return Content(len(gradient), within_int32(gradient))


@dataclass(frozen=True)
class _Density(_Placewise):
    """The part of the values that is kept. A warm-up lowers it from a quarter to `density`, by the same factor from
    each round to the next."""

    density: float
    seed: int = 0
    warm_up_rounds: int = 0

    def kept(self, length: int, round_number: int) -> int:
        """Return how many values of a gradient are kept; at least one."""
        density = self.density
        if round_number < self.warm_up_rounds and density < WARM_UP_DENSITY:
            density = WARM_UP_DENSITY * (density / WARM_UP_DENSITY) ** (round_number / self.warm_up_rounds)
        return min(length, max(1, math.ceil(density * length)))


@dataclass(frozen=True)
class TopK(_Density):
    """The values of largest magnitude (Aji and Heafield, "Sparse communication for distributed gradient descent",
    EMNLP 2017). Each worker has others."""

    def compress(self, gradient: NDArray[Any], round_number: int) -> Content:
        return sparse(gradient, top_k(gradient, self.kept(len(gradient), round_number)))


@dataclass(frozen=True)
class RandomK(_Density):
    """Values drawn at random, the same for all workers: a function of seed and round (Stich et al., "Sparsified SGD
    with memory", NeurIPS 2018). So packets name the round, and no places."""

    def drawn(self, values: int, round_number: int) -> NDArray[np.intp]:
        generator = np.random.default_rng([self.seed, round_number])
        count = self.kept(values, round_number) if values else 0
        return np.sort(generator.choice(values, count, replace=False, shuffle=False))

    def compress(self, gradient: NDArray[Any], round_number: int) -> Content:
        places = self.drawn(len(gradient), round_number)
        return Content(len(gradient), within_int32(gradient[places]), drawn=places)


@dataclass(frozen=True)
class Threshold(_Placewise):
    """Values whose magnitude is at least `bound`, in units of the gradient's (Strom, "Scalable distributed DNN
    training using commodity GPU cloud computing", Interspeech 2015)."""

    bound: float
    exponent: int = 0
    """Scale: 1.0 is 2**exponent integers."""

    def compress(self, gradient: NDArray[Any], round_number: int) -> Content:
        bound = max(1, math.ceil(math.ldexp(self.bound, self.exponent)))
        return sparse(gradient, at_least(gradient, np.uint64(min(bound, (1 << 63) - 1))))


@dataclass(frozen=True)
class Qsgd(_Placewise):
    """Stochastic quantisation: all values with few bits, rounded at random so that the mean is right (Alistarh et
    al., "QSGD", NeurIPS 2017).

    Each worker has a unit of its own.
    """

    width_bits: int
    seed: int = 0
    worker: int = 0

    def compress(self, gradient: NDArray[Any], round_number: int) -> Content:
        generator = np.random.default_rng([self.seed, self.worker, round_number])
        most = (1 << (self.width_bits - 1)) - 1
        unit = max(1, -(-int(np.abs(gradient).max(initial=0)) // most))
        whole, rest = np.divmod(np.abs(gradient), unit)
        codes = np.sign(gradient) * (whole + (rest > generator.integers(0, unit, len(gradient))))
        return Content(len(gradient), codes, self.width_bits, unit)


@dataclass(frozen=True)
class Sign(_Placewise):
    """The signs, and the mean magnitude (Karimireddy et al., "Error feedback fixes SignSGD", ICML 2019). Zero counts
    as positive."""

    can_be_cut = False

    def compress(self, gradient: NDArray[Any], round_number: int) -> Content:
        unit = round(float(np.abs(gradient).mean())) if len(gradient) else 0
        return Content(len(gradient), np.where(gradient < 0, -1, 1).astype(np.int64), 1, unit)


def within_int32(values: NDArray[Any]) -> NDArray[Any]:
    """Return what of each value fits a packet's 32 bits; the rest is held back. int32 does, but for the least."""
    return values if values.dtype == np.int32 else np.clip(values, -INT32_MAX, INT32_MAX)


def sparse(gradient: NDArray[Any], places: NDArray[np.intp]) -> Content:
    return Content(len(gradient), within_int32(gradient[places]), indices=places)


@dataclass(frozen=True)
class Setting:
    """The setting in which a compressor works."""

    worker: int
    seed: int
    exponent: int
    """Scale of the integers, as in gradbed.hosts.learning.quantise."""
    shapes: tuple[tuple[int, ...], ...]
    """Shapes of the gradient's tensors."""
    warm_up_rounds: int = 0


_MAKE: dict[str, Callable[[float, Setting], Any]] = {
    "topk": lambda part, setting: TopK(part, setting.seed, setting.warm_up_rounds),
    "randomk": lambda part, setting: RandomK(part, setting.seed, setting.warm_up_rounds),
    "threshold": lambda bound, setting: Threshold(bound, setting.exponent),
    "quantise": lambda bits, setting: Qsgd(int(bits), setting.seed, setting.worker),
    "sign": lambda _, setting: Sign(),
    "powersgd": lambda rank, setting: LowRank(setting.shapes, int(rank), setting.seed),
    "none": lambda _, setting: Everything(),
}
_PARAMETERS = {
    "topk": "the part that is kept, such as topk:0.01",
    "randomk": "the part that is kept, such as randomk:0.01",
    "threshold": "the least magnitude that is kept, such as threshold:0.001",
    "quantise": "the bits of a value: quantise:8 or quantise:4",
    "powersgd": "the rank, such as powersgd:2",
}
NAMES = tuple(_MAKE)
_ANY = Setting(worker=0, seed=0, exponent=0, shapes=())


def parsed(text: str) -> tuple[str, float]:
    """Method and parameter of "topk:0.01", 0 where it has none or is a plug-in's; UserError with one line."""
    name, _, number = text.partition(":")
    if _is_plugin(name):
        compressor(text)
        return name, 0.0
    if name not in _MAKE:
        there = ", ".join([*NAMES, *plugins("compressors")])
        raise UserError(f"no compressor is called {name!r}: there are {there}")
    if name not in _PARAMETERS:
        if number:
            raise UserError(f"{name} takes no parameter, got {text!r}")
        return name, 0.0
    try:
        value = float(number)
    except ValueError:
        value = math.nan
    possible = {
        "topk": 0 < value <= 1,
        "randomk": 0 < value <= 1,
        "threshold": 0 < value < math.inf,
        "quantise": value in (4, 8),
        "powersgd": value in range(1, 65),
    }
    if not possible[name]:
        raise UserError(f"{name} takes {_PARAMETERS[name]}; got {text!r}")
    return name, value


def compressor(text: str, setting: Setting = _ANY) -> Compressor:
    """The compressor of that name for one worker. UserError if there is none.

    That of another package is made of the text behind the colon and the setting; it raises ValueError for a text
    that it does not take.
    """
    word, _, parameter = text.partition(":")
    if _is_plugin(word):
        made: Compressor = call_plugin("compressors", word, parameter, setting)
    else:
        name, value = parsed(text)
        made = _MAKE[name](value, setting)
    return made


def _is_plugin(name: str) -> bool:
    return name not in _MAKE and name in plugins("compressors")
