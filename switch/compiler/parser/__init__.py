"""Tokens to syntax tree: a recursive-descent parser for P4_16."""

from gradbed.switch.compiler.parser.declarations import parse_program

__all__ = ["parse_program"]
