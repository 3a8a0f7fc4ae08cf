"""Other people's P4 programs: what our compiler says of each beside what p4c says."""

from gradbed.switch.corpus.comparison import Comparison, Verdict, compare_program
from gradbed.switch.corpus.p4info import p4info_differences
from gradbed.switch.corpus.programs import find_programs

__all__ = ["Comparison", "Verdict", "compare_program", "find_programs", "p4info_differences"]
