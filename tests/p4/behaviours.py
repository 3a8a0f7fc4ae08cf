"""Behaviours of a switch: functions of a test's module that take it and assert, run one after the other on one."""

from __future__ import annotations

import inspect
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import Any, get_type_hints

from tests.p4.switch_under_test import SwitchUnderTest


def behaviours(module: str, kind: type) -> list[Callable[[Any], None]]:
    """All functions of a module that take one of that kind, nothing else, and return nothing."""
    functions = [each for each in vars(sys.modules[module]).values() if inspect.isfunction(each)]
    own = [each for each in functions if each.__module__ == module]
    return [each for each in own if list(get_type_hints(each).values()) == [kind, type(None)]]


def failures(module: str, switches: Sequence[SwitchUnderTest], subject: object) -> list[str]:
    """Names of a module's behaviours that the subject lacks; its switches get their program anew for each."""
    found = behaviours(module, type(subject))
    assert found
    failed = []
    for behaviour in found:
        for switch in switches:
            switch.renew()
        try:
            behaviour(subject)
        except AssertionError:
            traceback.print_exc()
            failed.append(behaviour.__name__)
    return failed
