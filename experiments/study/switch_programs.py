"""What the switches and compilers of others can do of what a trial asks for, and what to choose where they cannot."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping
from typing import Any

from gradbed.common.capabilities import REAL_CLOCK
from gradbed.experiments.configuration.trial import TrialConfiguration
from gradbed.experiments.study.definition import with_values
from gradbed.experiments.system import System


def check_switch_programs(configuration: TrialConfiguration) -> None:
    """UserError where what is to compile or run the P4 programs is missing, or cannot do it."""
    program = configuration.program
    if program.compiler == "p4c":
        from gradbed.switch.p4lang.p4c import require_p4c

        require_p4c()
    if program.model == "bmv2":
        from gradbed.switch.p4lang.bmv2 import find_simple_switch_grpc

        REAL_CLOCK.require(configuration.clock == "real", "--switch: bmv2", "--switch gradbed")
        find_simple_switch_grpc()


def suited_to_bmv2(system: System, values: Mapping[str, Any], given: Collection[str]) -> dict[str, Any]:
    """The values of a configuration, nested, with what BMv2 cannot do left out, which is said on standard error.

    given: what the user has chosen, as names of parameters; it stays, and is refused where BMv2 cannot do it.
    UserError without BMv2.
    """
    from gradbed.switch.p4lang.bmv2 import find_simple_switch_grpc

    if "clock" in given and values.get("clock") == "virtual":
        return dict(values)  # refused in a moment (check_switch_programs)
    find_simple_switch_grpc()
    wanted: dict[str, tuple[Any, str]] = {"clock": ("real", "BMv2 has no other")}
    wanted |= {path: (value, "BMv2 cannot do otherwise") for path, value in system.options.bmv2_defaults.items()}
    changed = with_values(values, {})
    for path, (value, why) in wanted.items():
        if path.replace(".", "__") in given or _at(system.configuration.model_validate(values), path) == value:
            continue
        changed = with_values(changed, {path: value})
        flag = path.rpartition(".")[2].replace("_", "-")
        print(f"gradbed: --switch bmv2: taking --{flag} {value} ({why})", file=sys.stderr)
    return changed


def _at(values: Any, path: str) -> Any:
    for part in path.split("."):
        values = getattr(values, part)
    return values
