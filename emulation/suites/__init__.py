"""The tests of other repositories, run from a checkout on our compiler and switch."""

from gradbed.emulation.suites.bench import Stopped
from gradbed.emulation.suites.checkout import SUITES, Checkout, find_checkout, read_version
from gradbed.emulation.suites.result import OUTCOMES, Result
from gradbed.emulation.suites.run import run_suite

__all__ = ["OUTCOMES", "SUITES", "Checkout", "Result", "Stopped", "find_checkout", "read_version", "run_suite"]
