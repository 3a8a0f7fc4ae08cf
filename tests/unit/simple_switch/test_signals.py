"""A signal ends the switch whatever line its main thread is at."""

from __future__ import annotations

import itertools
import subprocess
import sys

import pytest

PATIENCE_S = 60.0
BEYOND = 3
# SIGTERM comes at a given line after the switch runs, those of the standard library counted, too.
PROGRAM = f"""
import os, signal, sys, threading
import gradbed.switch.simple_switch.commands as commands
import gradbed.switch.simple_switch.running as running

wanted, lines = int(sys.argv[1]), 0

def trace(frame, event, argument):
    global lines
    if event == "line":
        lines += 1
        if lines == wanted:
            sys.settrace(None)
            signal.raise_signal(signal.SIGTERM)
    return trace

def judge():
    if lines < wanted:  # it waits
        os._exit({BEYOND})

class Running:
    addresses = ()
    def __init__(self, options): pass
    def __enter__(self):
        timer = threading.Timer(2, judge)
        timer.daemon = True
        timer.start()
        sys._getframe(1).f_trace = trace
        sys.settrace(trace)
        return self
    def __exit__(self, *_):
        sys.settrace(None)

running.RunningSwitch = Running
sys.exit(commands.simple_switch(["--no-p4"]))
"""


@pytest.mark.thorough
def test_a_signal_at_any_line_ends_it() -> None:
    for line in itertools.count(1):
        command = [sys.executable, "-c", PROGRAM, str(line)]
        status = subprocess.run(command, timeout=PATIENCE_S, check=False).returncode
        if status == BEYOND:
            break
        assert status == 0, f"line {line}"
    assert line > 2
