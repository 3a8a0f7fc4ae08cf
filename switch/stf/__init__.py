"""Simple Test Framework (STF) files, the packet tests of p4c's corpus: read them, run them, run a whole corpus."""

from switch.stf.parser import parse_stf, read_stf
from switch.stf.runner import Outcome, run_script
from switch.stf.statements import Script, StfError

__all__ = ["Outcome", "Script", "StfError", "parse_stf", "read_stf", "run_script"]
