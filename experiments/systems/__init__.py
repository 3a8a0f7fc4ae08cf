"""The list of systems.

A system consists of its packages and one line here; packages outside this tree add theirs by an entry point of the
group "gradbed.systems" (docs/architecture.md, "A system")."""

from __future__ import annotations

import ast
import importlib.util
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from gradbed.common.errors import UserError, suggestion
from gradbed.common.modules import PACKAGE, attribute
from gradbed.common.plugins import call_plugin, plugins

if TYPE_CHECKING:
    from gradbed.experiments.system import System


SYSTEMS: dict[str, str] = {
    "aggregation": "gradbed.experiments.systems.aggregation.system:AggregationSystem",
    "workload": "gradbed.experiments.systems.workload.system:WorkloadSystem",
    "shuffle": "gradbed.experiments.systems.shuffle.system:ShuffleSystem",
    "compression": "gradbed.experiments.systems.compression.system:CompressionSystem",
    "interconnect": "gradbed.experiments.systems.interconnect.system:InterconnectSystem",
    "ndn": "gradbed.experiments.systems.ndn.system:NdnSystem",
    "training": "gradbed.experiments.systems.training.system:TrainingSystem",
}
""" "module:Class" of each system by its name; imported when it is asked for."""

DEFAULT_SYSTEM = next(iter(SYSTEMS))
"""System that demo, up, calibrate and bench start with."""


def systems() -> dict[str, str]:
    """Return "module:Class" of all systems, those of this tree first."""
    return {**SYSTEMS, **{name: value for name, value in plugins("systems").items() if name not in SYSTEMS}}


def find_system(name: str) -> System:
    """Return the system of this name.

    Raises:
        UserError: there is none, with a suggestion, or it cannot be loaded.
    """
    known = systems()
    if name not in known:
        raise UserError(f"no system is called {name!r}{suggestion(name, known)}")
    system: System = attribute(SYSTEMS[name])() if name in SYSTEMS else call_plugin("systems", name)
    return system


def _class_of(name: str) -> ast.ClassDef | None:
    """Parse a system's class, which is not loaded: that takes seconds for all of them.

    Returns:
        None if it cannot be read.
    """
    module, _, class_name = systems()[name].partition(":")
    try:
        spec = importlib.util.find_spec(module)
    except Exception:  # of a plug-in: its package is loaded to find the module, and may raise anything
        spec = None
    if spec is None or spec.origin is None:
        return None
    parsed = ast.parse(Path(spec.origin).read_text(encoding="utf-8"))
    return next((each for each in parsed.body if isinstance(each, ast.ClassDef) and each.name == class_name), None)


def system_help(name: str) -> str:
    """Return the docstring of a system's class."""
    found = _class_of(name)
    return (found and ast.get_docstring(found)) or ""


@cache
def makers() -> Mapping[str, str]:
    """Return "module:Class" of what `gradbed new` makes besides programs, by name, as the systems' classes have
    it.
    """
    found: dict[str, str] = {}
    for name in systems():
        of_class = _class_of(name)
        for node in ast.walk(of_class) if of_class else ():
            if isinstance(node, ast.keyword) and node.arg == "makers":
                found |= ast.literal_eval(node.value)
    return found


def studies_folder(name: str) -> Path:
    """Return the folder with the studies of a system's figures: studies/ beside its module."""
    module, _, _ = systems()[name].partition(":")
    file = importlib.import_module(module).__file__
    assert file is not None
    return Path(file).parent / "studies"


# ---- Files and folders of a system ----


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
