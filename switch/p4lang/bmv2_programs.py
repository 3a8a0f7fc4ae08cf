"""BMv2's programs: where they are, and how all of them are started."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from gradbed.common.errors import UserError

PRIORITY_QUEUES = "--priority-queues=8"
"""Behind `--`: of standard_metadata.priority. With its default of 1, BMv2 drops packets that have any. BMv2 1.15."""

WAYS = (
    "take p4lang's package p4lang-bmv2 (Ubuntu), `WITH_BMV2=1 vagrant up`, or a build of your own that is in PATH "
    "or that GRADBED_BMV2 names (docs/conformance.md)"
)
"""How people come by them."""


def find_simple_switch_grpc() -> str:
    """Its path: GRADBED_BMV2, else in PATH. UserError if it is not there."""
    wanted = os.environ.get("GRADBED_BMV2", "simple_switch_grpc")
    found = shutil.which(wanted)
    if found is None:
        raise UserError(f"BMv2's {wanted} is not installed: {WAYS}; or drop `--switch bmv2`")
    return found


def find_simple_switch() -> tuple[str, str] | None:
    """Paths of simple_switch and its command line: beside GRADBED_BMV2, else in PATH; None if one is not there."""
    bmv2 = os.environ.get("GRADBED_BMV2")
    path = str(Path(bmv2).parent) if bmv2 and os.sep in bmv2 else None
    switch, shell = shutil.which("simple_switch", path=path), shutil.which("simple_switch_CLI", path=path)
    return (switch, shell) if switch and shell else None


def require_simple_switch() -> tuple[str, str]:
    """As find_simple_switch; UserError if one is not there."""
    found = find_simple_switch()
    if found is None:
        raise UserError(
            f"BMv2's simple_switch and simple_switch_CLI are not installed beside simple_switch_grpc: {WAYS}"
        )
    return found
