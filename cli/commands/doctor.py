"""gradbed doctor: what this machine has and lacks, what each lack costs, and how to fix it."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from typing import NamedTuple

from gradbed.cli import layers
from gradbed.common.errors import UserError, say
from gradbed.common.modules import COMMAND

CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
PACKAGES = {
    "p4": "the P4 compiler and switch",
    "run": "networks, on both clocks",
    "study": "training and figures",
}
"""Layers (cli/layers.py), and what they are for."""


class Finding(NamedTuple):
    """Something that gradbed uses, and whether this machine has it."""

    name: str
    state: str
    """ok, missing or unknown."""
    purpose: str
    """What does not work without it."""
    detail: str = ""
    """Which one was found, such as its version."""
    remedy: str = ""
    """How to install or enable it."""


def doctor() -> int:
    """Say what this machine has and lacks, what it is for, and how to come by it. Nothing is installed or changed.

    Status 1 if not even the virtual clock works.
    """
    for finding in findings():
        detail = f" ({finding.detail})" if finding.detail else ""
        say(f"{finding.state:8}{finding.name}{detail}: {finding.purpose}", sys.stdout, hang=8)
        if finding.state != "ok" and finding.remedy:
            say(f"{'':8}-> {finding.remedy}", sys.stdout, hang=3)
    return 0 if _compiler().state == "ok" else 1


def findings() -> Iterator[Finding]:
    """Yield the findings, the most important first."""
    yield _compiler()
    for layer, purpose in PACKAGES.items():
        installed = layers.is_installed(layer)
        remedy = f"the first command that needs them installs them (about {layers.MEGABYTES[layer]} MB)"
        yield Finding(f"Python packages, {layer}", "ok" if installed else "missing", purpose, remedy=remedy)
    yield _cache()
    processors = len(os.sched_getaffinity(0))
    yield Finding("processors", "ok", "trials on the virtual clock run side by side", str(processors))
    root = os.geteuid() == 0
    yield Finding(
        "root", "ok" if root else "missing", "networks of Mininet; the virtual clock works without", "", "use sudo"
    )
    yield from _kernel(root)
    yield _calibration()
    yield _program("Open vSwitch", "legacy switches (--legacy openflow)", _open_vswitch)
    yield _program("BMv2", "--switch bmv2: programs on the original switch", _bmv2)
    yield _program("p4c", "--compiler p4c: programs by the original compiler", _p4c)
    browser = next(filter(None, map(shutil.which, CHROMIUM)), "")
    yield Finding(
        "Chromium", _state(bool(browser)), "the tests of pages", browser, "apt-get install chromium; those tests skip"
    )


def _state(is_there: bool) -> str:
    return "ok" if is_there else "missing"


def _program(name: str, purpose: str, find: Callable[[], str]) -> Finding:
    """Look for a program with `find`, which returns its path or raises UserError that says what to do."""
    try:
        return Finding(name, "ok", purpose, find())
    except UserError as error:
        return Finding(name, "missing", purpose, remedy=str(error))


def _compiler() -> Finding:
    from gradbed.common.c_library import compiler

    return _program("C compiler", "every switch: programs become C", lambda: compiler()[1])


def _cache() -> Finding:
    from gradbed.common.store import cache_dir

    folder = cache_dir()
    above = next(each for each in (folder, *folder.parents) if each.exists())
    remedy = "set GRADBED_CACHE to a folder that can be written"
    return Finding(
        "cache", _state(os.access(above, os.W_OK)), "compiled programs are kept there", str(folder), remedy
    )


def _kernel(root: bool) -> Iterator[Finding]:
    if not root or not layers.is_installed("run"):
        remedy = f"sudo {COMMAND} doctor tells" if not root else "known once Python packages of run are there"
        yield Finding("kernel", "unknown", "namespaces, veth, netem for networks of Mininet", remedy=remedy)
        return
    from gradbed.common.kernel import features

    for feature in features():
        yield Finding(feature.name, _state(feature.present), feature.purpose, remedy=feature.remedy)


def _calibration() -> Finding:
    purpose = "links in Mininet as fast as this machine carries, without --scale"
    if not layers.is_installed("run"):
        return Finding("calibration", "unknown", purpose)
    from gradbed.experiments.study.calibration import load_calibration

    try:
        found = load_calibration()
    except UserError as error:
        return Finding("calibration", "missing", purpose, remedy=str(error))
    if found is None:
        return Finding(
            "calibration", "missing", purpose, remedy=f"sudo {COMMAND} calibrate (minutes, on an idle machine)"
        )
    return Finding("calibration", "ok", purpose, f"{found.factor:g} of the nominal rate")


def _open_vswitch() -> str:
    from gradbed.emulation.switches.open_vswitch import find_programs, require_open_vswitch

    require_open_vswitch()
    return next(iter(find_programs().values()))


def _bmv2() -> str:
    from gradbed.switch.p4lang.bmv2 import find_simple_switch_grpc, require_simple_switch

    found = find_simple_switch_grpc()
    require_simple_switch()
    return found


def _p4c() -> str:
    from gradbed.switch.p4lang.p4c import require_p4c

    return require_p4c()
