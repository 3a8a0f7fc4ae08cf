"""BMv2 JSON to C: load.py reads it into values, the *_c.py modules emit C, program.py compiles it."""

from gradbed.switch.bmv2_json.reader import MalformedProgram
from gradbed.switch.codegen.program import BuiltProgram, build_program

__all__ = ["BuiltProgram", "MalformedProgram", "build_program"]
