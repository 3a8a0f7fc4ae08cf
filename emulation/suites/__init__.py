"""The tests of other repositories, run from a checkout on our compiler and switch."""

from emulation.suites.bench import Stopped
from emulation.suites.checkout import SUITES, Checkout, find_checkout, read_version
from emulation.suites.result import OUTCOMES, Result
from emulation.suites.run import run_suite

__all__ = ["OUTCOMES", "SUITES", "Checkout", "Result", "Stopped", "find_checkout", "read_version", "run_suite"]
