"""Find the parts of a system by their names; its programs are those that its modules mention."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import NamedTuple

from gradbed.common.modules import PACKAGE
from gradbed.experiments.systems import SYSTEMS, systems

PLACES = (
    ("p4src/include/NAME/", "its headers and controls"),
    ("formats/NAME.py", "its packets"),
    ("controller/systems/NAME/", "who decides: plans, table entries, REST"),
    ("hosts/systems/NAME/", "who sends: agents"),
    ("experiments/systems/NAME/", "what is asked: options, phases, metrics, checks"),
    ("experiments/systems/NAME/studies/", "studies of its figures, its benchmarks and its demo"),
    ("docs/NAME.md", "what it does and how to use it"),
    ("tests/unit/NAME/", "its tests; others: grep NAME tests"),
)
"""Places of a system's parts besides the programs that its switches run; those that do not exist are left out."""


class Part(NamedTuple):
    """A file or a folder of a system."""

    place: str
    """Path from the top of the checkout; folders end with a slash."""
    what: str
    """Description for people."""


def parts_of(name: str) -> list[Part]:
    """Return the existing parts of a system; of one from another package, that package's folder."""
    if name not in SYSTEMS:
        spec = importlib.util.find_spec(systems()[name].partition(":")[0])
        origin = spec.origin if spec and spec.origin else "?"
        return [Part(f"{Path(origin).parent}/", "the package that brings it")]
    named = [(place.replace("NAME", name), what.replace("NAME", name)) for place, what in PLACES]
    programs = [Part(f"p4src/{program}", "what its switches run") for program in _programs(name)]
    return programs + [Part(place, what) for place, what in named if (PACKAGE / place).exists()]


def _programs(name: str) -> list[str]:
    """Return the programs in p4src/ that include the system's controls, or that its modules mention."""
    modules = [
        path.read_text(encoding="utf-8")
        for room in ("controller", "experiments")
        for path in sorted((PACKAGE / room / "systems" / name).rglob("*.py"))
    ]
    mentioned = {found for text in modules for found in re.findall(r"\b(\w+\.p4)\b", text)}
    return [
        path.name
        for path in sorted((PACKAGE / "p4src").glob("*.p4"))
        if path.name in mentioned or f'"include/{name}/' in path.read_text(encoding="utf-8")
    ]
