"""Generation of C from BMv2 JSON: emit writes the text of a program's parts, program.py compiles it."""

from gradbed.switch.bmv2_json.reader import MalformedProgram
from gradbed.switch.codegen.program import BuiltProgram, build_program

__all__ = ["BuiltProgram", "MalformedProgram", "build_program"]
