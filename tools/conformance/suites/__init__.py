"""The tests of other repositories, run from a checkout on our compiler and switch."""

from tools.conformance.suites.checkout import SUITES, Checkout, find_checkout, read_version
from tools.conformance.suites.environment import Stopped
from tools.conformance.suites.result import OUTCOMES, SuiteResult
from tools.conformance.suites.run import run_suite

__all__ = ["OUTCOMES", "SUITES", "Checkout", "Stopped", "SuiteResult", "find_checkout", "read_version", "run_suite"]
