"""Which of several systems a command means, by the options that are given."""

from __future__ import annotations

from typing import Any

import pytest

from gradbed.cli.options import every_option, meant
from gradbed.common.errors import UserError
from gradbed.experiments.configuration.options import model_options
from gradbed.experiments.configuration.sections import Section, option


class Oven(Section):
    degrees: int = option(200, "Hot.")
    minutes: int = option(30, "Long.")


class Pan(Section):
    oil: str = option("olive", "In it.")
    minutes: int = option(5, "Long.")


class Kitchen(Section):
    oven: Oven = Oven()
    plates: int = option(1, "To fill.")


class Camp(Section):
    pan: Pan = Pan()
    plates: int = option(2, "To fill.")


OPTIONS = {"kitchen": model_options(Kitchen, {}), "camp": model_options(Camp, {})}


def test_every_flag_is_there_once() -> None:
    flags = [each.flag for each in every_option(OPTIONS)]
    assert flags == ["--degrees", "--minutes", "--plates", "--oil"]


@pytest.mark.parametrize(
    ("given", "system", "own"),
    [
        ({}, "kitchen", {}),
        ({"plates": 3, "pan__oil": None}, "kitchen", {"plates": 3}),
        ({"oven__minutes": 7}, "kitchen", {"oven__minutes": 7}),
        (
            {"oven__minutes": 7, "pan__oil": "nut", "oven__degrees": None},
            "camp",
            {"pan__minutes": 7, "pan__oil": "nut"},
        ),
    ],
)
def test_the_first_system_that_has_all_options_is_meant(
    given: dict[str, Any], system: str, own: dict[str, Any]
) -> None:
    assert meant(OPTIONS, given) == (system, own)


def test_options_that_do_not_go_together_are_one_line() -> None:
    with pytest.raises(UserError, match=r"--degrees is an option of kitchen, --oil of camp: leave one out$"):
        meant(OPTIONS, {"plates": 1, "oven__degrees": 100, "pan__oil": "nut"})
