"""Simple Test Framework (STF) files, the packet tests of p4c's corpus: read them, run them, run a whole corpus."""

from gradbed.switch.stf.parser import parse_stf, read_stf
from gradbed.switch.stf.runner import Outcome, run_script
from gradbed.switch.stf.statements import Script, StfError

__all__ = ["Outcome", "Script", "StfError", "parse_stf", "read_stf", "run_script"]
