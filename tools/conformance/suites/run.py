"""Each repository's tests: which there are, and how they are run on our switch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from gradbed.common.errors import UserError
from gradbed.common.namespaces import require_root
from tools.conformance.suites import finsy, p4runtime_shell, pi, ptf, tutorials
from tools.conformance.suites.checkout import Checkout
from tools.conformance.suites.environment import WHAT, SuiteEnvironment, check_python, in_environment
from tools.conformance.suites.result import SuiteResult

ELECT_AS_BMV2 = {"PI", "p4runtime-shell"}
"""PI's tests write without arbitration, and the shell's come back with a lower election id."""

Job = Callable[[SuiteEnvironment], list[SuiteResult]]


def run_suite(checkout: Checkout, python: Path, only: Sequence[str] = ()) -> Iterator[SuiteResult]:
    """Run the tests of a checkout, each group in a sandbox of its own, and yield results as they come.

    Args:
        checkout: Whose tests.
        python: Has the modules that the tests import.
        only: The names of groups; UserError if one is not there.
    """
    groups = groups_of(checkout)
    unknown = [name for name in only if name not in groups]
    if unknown:
        raise UserError(f"{checkout.suite.name} has no tests {unknown[0]}: there are {', '.join(groups)}")
    require_root(WHAT)
    check_python(python, checkout.suite.modules, checkout.suite.name)
    for name in only or groups:
        group = groups[name]
        if isinstance(group, SuiteResult):
            yield group
        else:
            arbitration = checkout.suite.name in ELECT_AS_BMV2
            yield from in_environment(checkout.folder, python, group, bmv2_arbitration=arbitration)


def groups_of(checkout: Checkout) -> Mapping[str, Job | SuiteResult]:
    """Return how to run each group of tests, or why it is not run."""
    return _GROUPS[checkout.suite.name](checkout.folder)


def _p4_guide(folder: Path) -> dict[str, Job | SuiteResult]:
    """Return its scripts that start ptf, wherever they are."""
    groups: dict[str, Job | SuiteResult] = {}
    for name, script in ptf.named(folder.rglob("*runptf.sh"), folder).items():
        if name.startswith("ipdk/"):
            groups[name] = SuiteResult(name, "not run", "a program for PNA or DPDK")
        elif "p4testgen" in script.name:
            groups[name] = SuiteResult(name, "not run", "needs what p4testgen wrote")
        else:
            groups[name] = partial(ptf.run_script, script, name)
    return groups


_GROUPS: dict[str, Callable[[Path], Mapping[str, Job | SuiteResult]]] = {
    "PI": pi.groups,
    "p4-guide": _p4_guide,
    "finsy": finsy.groups,
    "p4runtime-shell": p4runtime_shell.groups,
    "tutorials": tutorials.groups,
}
