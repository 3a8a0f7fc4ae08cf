"""A child that ends with its parent."""

from __future__ import annotations

import os
import subprocess
import sys

_IN_TIME_S = 20

# The parent ends once its child has asked to end with it; the child holds standard output open until it does.
_ORPHAN = """
import os, time
from gradbed.common.signals import die_with_parent

asked_read, asked_write = os.pipe()
parent = os.getpid()
if os.fork() == 0:
    die_with_parent(parent)
    os.write(asked_write, b"x")
    time.sleep(1000)
os.read(asked_read, 1)
"""


def test_the_child_ends_when_its_parent_does() -> None:
    subprocess.run([sys.executable, "-c", _ORPHAN], stdout=subprocess.PIPE, timeout=_IN_TIME_S, check=True)


def test_a_parent_that_has_ended_before_is_noticed() -> None:
    asking = f"from gradbed.common.signals import die_with_parent; die_with_parent({os.getpid()}); print('alive')"
    mine = subprocess.run([sys.executable, "-c", asking], capture_output=True, timeout=_IN_TIME_S, check=False)
    assert (mine.returncode, mine.stdout) == (0, b"alive\n")
    other = asking.replace(str(os.getpid()), "1")
    orphan = subprocess.run([sys.executable, "-c", other], capture_output=True, timeout=_IN_TIME_S, check=False)
    assert (orphan.returncode, orphan.stdout) == (1, b"")
