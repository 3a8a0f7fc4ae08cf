"""Ctrl-C where Python throws exceptions away."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]

SCRIPT = """
import signal, sys, time, weakref
from gradbed.cli.interrupts import raise_interrupts

class Thing:
    def __del__(self):
        if sys.argv[1] == "finaliser":
            signal.raise_signal(signal.SIGINT)

def callback(reference):
    if sys.argv[1] == "callback":
        signal.raise_signal(signal.SIGINT)
    if sys.argv[1] == "other":
        raise ValueError("of another kind")

raise_interrupts()
thing = Thing()
reference = weakref.ref(thing, callback)
try:
    del thing
    time.sleep(5)
    print("nobody interrupted")
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.mark.parametrize(
    ("where", "printed", "said"),
    [
        ("callback", "interrupted", ""),
        ("finaliser", "interrupted", ""),
        ("other", "nobody interrupted", "ValueError: of another kind"),
    ],
)
def test_an_interrupt_that_python_ignores_comes_again(where: str, printed: str, said: str) -> None:
    script = SCRIPT.replace("time.sleep(5)", "time.sleep(0.1)") if where == "other" else SCRIPT
    outcome = subprocess.run(
        [sys.executable, "-c", script, where], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True
    )
    assert outcome.stdout.strip() == printed
    assert (said in outcome.stderr) if said else outcome.stderr == ""


LOADS = """
import sys
from gradbed.cli.interrupts import raise_interrupts

sys.path.insert(0, sys.argv[1])
raise_interrupts()
try:
    import module
    for turn in range(60_000_000):  # calls nothing
        pass
    print("nobody interrupted")
except KeyboardInterrupt:
    print("interrupted")
print("module" in sys.modules)
"""


AGAIN = """
import os
signal.raise_signal(2)
if not os.fork():
    time.sleep(1.5)
    os.kill(os.getppid(), 2)
    os._exit(0)
while True:
    pass
"""


@pytest.mark.commit_cases(2)
@pytest.mark.parametrize(
    ("module", "printed"),
    [
        ("try:\n    signal.raise_signal(2)\nexcept KeyboardInterrupt:\n    pass", "interrupted\nTrue"),
        (
            "signal.raise_signal(2)\nend_s = time.monotonic() + 0.5\nwhile time.monotonic() < end_s:\n    pass",
            "interrupted\nTrue",
        ),
        (AGAIN, "interrupted\nFalse"),
        ("signal.raise_signal(2)\nraise ImportError", "interrupted\nFalse"),
    ],
    ids=["that throws exceptions away", "that takes long", "interrupted again", "that fails"],
)
def test_an_interrupt_waits_for_an_import(module: str, printed: str, tmp_path: Path) -> None:
    (tmp_path / "module.py").write_text(f"import signal, time\n{module}\n", encoding="utf-8")
    outcome = subprocess.run(
        [sys.executable, "-c", LOADS, str(tmp_path)], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True
    )
    assert outcome.stdout.strip() == printed
    assert outcome.stderr == ""
