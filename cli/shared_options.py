"""One command for several systems: which of them is meant, the options tell that are given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gradbed.common.errors import UserError
from gradbed.experiments.configuration.options import ModelOption

OptionsOf = Mapping[str, list[ModelOption]]
"""Of each system; the first one that will do is taken."""


def every_option(options_of: OptionsOf) -> list[ModelOption]:
    """Each flag once, as the first system that has it has it."""
    found: dict[str, ModelOption] = {}
    for options in options_of.values():
        for option in options:
            found.setdefault(option.flag, option)
    return list(found.values())


def meant(options_of: OptionsOf, given: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """The system, and what was given for its own parameters. given: by parameters of `every_option`; None: was not.

    UserError if no system has all that was given.
    """
    flags = {option.parameter: option.flag for option in every_option(options_of)}
    wanted = {flags[parameter]: value for parameter, value in given.items() if value is not None}
    for name, options in options_of.items():
        own = {option.flag: option.parameter for option in options}
        if wanted.keys() <= own.keys():
            return name, {own[flag]: value for flag, value in wanted.items()}
    raise UserError(_complaint(options_of, list(wanted)))


def _complaint(options_of: OptionsOf, flags: list[str]) -> str:
    """The first two flags that do not go together."""
    havers = {
        flag: {name for name, own in options_of.items() if flag in {each.flag for each in own}} for flag in flags
    }
    for place, flag in enumerate(flags):
        for before in flags[:place]:
            if not havers[flag] & havers[before]:
                systems = [" and ".join(sorted(havers[each])) for each in (before, flag)]
                return f"{before} is an option of {systems[0]}, {flag} of {systems[1]}: leave one out"
    return f"{', '.join(flags)}: no system has all of these options"
