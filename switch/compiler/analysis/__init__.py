"""Warnings about programs that are correct but hardly meant so. Only what is certain is reported."""

from gradbed.switch.compiler.analysis.program import CATEGORIES, analyse_program, silence_annotated

__all__ = ["CATEGORIES", "analyse_program", "silence_annotated"]
