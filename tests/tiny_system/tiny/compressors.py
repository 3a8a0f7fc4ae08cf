"""A compressor of one's own: `--compress every:4` sends every fourth value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradbed.plugin import Content, Setting


@dataclass(frozen=True)
class Every:
    """Sends the values at multiples of `step`, shifted by one place in each round: all agents know which."""

    step: int
    is_placewise = True
    can_be_cut = True

    def length(self, values: int) -> int:
        return values

    def drawn(self, values: int, round_number: int) -> NDArray[np.intp]:
        return np.arange(round_number % self.step, values, self.step)

    def compress(self, gradient: NDArray[Any], round_number: int) -> Content:
        places = self.drawn(len(gradient), round_number)
        return Content(len(gradient), np.clip(gradient[places], -(2**31) + 1, 2**31 - 1), drawn=places)

    def restored(self, content: NDArray[np.int64]) -> NDArray[np.int64]:
        return content


def every(parameter: str, setting: Setting) -> Every:
    """Make one of "4" in "every:4"."""
    if not parameter.isdecimal() or int(parameter) < 1:
        raise ValueError("it takes a whole number from 1 on, such as every:4")
    return Every(int(parameter))
