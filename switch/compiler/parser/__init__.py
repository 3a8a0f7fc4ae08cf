"""A recursive-descent parser for P4_16: from tokens to the syntax tree."""

from gradbed.switch.compiler.parser.declarations import parse_program

__all__ = ["parse_program"]
