"""Parsers of what comes from outside, each as one function of bytes: what tests and the fuzzer (python -m tests.fuzz)
call."""
