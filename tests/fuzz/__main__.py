"""python -m tests.fuzz SECONDS [TARGET...]: look for inputs that a parser neither takes nor refuses (all of them).

One row for each target. Status 1 if there is a finding: its input stays in findings/, to be kept in
tests/fuzz/findings/TARGET once it is mended.
"""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from common.scratch import scratch_folder
from tests.fuzz.parsers.table import TARGETS
from tests.fuzz.parsers.target import MAX_INPUT_BYTES, MAX_MEMORY_BYTES, ROOT, Target

HANG_S = 60
"""Of the clock on the wall, for what holds Python itself; the target's own limit is of the processor's time."""

_DONE = re.compile(r"#(\d+)\s+DONE\s+cov: (\d+) ft: (\d+) corp: (\d+)")


def main(arguments: Sequence[str]) -> int:
    try:
        seconds, names = int(arguments[0]), list(arguments[1:]) or list(TARGETS)
    except (IndexError, ValueError):
        print(__doc__.splitlines()[0], file=sys.stderr)
        return 2
    if unknown := sorted(set(names) - set(TARGETS)):
        print(f"no target is called {unknown[0]}: there are {', '.join(TARGETS)}", file=sys.stderr)
        return 2
    if importlib.util.find_spec("atheris") is None:
        print(
            "atheris is missing, which looks for the inputs: .venv/bin/python -m pip install atheris", file=sys.stderr
        )
        return 2
    print(f"{'target':14} {'inputs':>9} {'coverage':>9} {'features':>9} {'kept':>6}  finding", flush=True)
    return max([_fuzz(name, TARGETS[name], seconds) for name in names])


def _fuzz(name: str, target: Target, seconds: int) -> int:
    """1 for a finding."""
    with scratch_folder("fuzz") as folder:
        corpus = folder / "corpus"
        corpus.mkdir()
        kept = sorted((ROOT / "tests/fuzz/findings" / name).glob("*"))
        for number, seed in enumerate([*target.seeds(), *(path.read_bytes() for path in kept)]):
            (corpus / f"seed{number}").write_bytes(seed)
        found = Path("findings")
        found.mkdir(exist_ok=True)
        command = [sys.executable, "-m", "tests.fuzz.guided", name, f"-max_total_time={seconds}"]
        command += [
            f"-max_len={MAX_INPUT_BYTES}",
            f"-timeout={HANG_S}",
            f"-rss_limit_mb={2 * MAX_MEMORY_BYTES >> 20}",
        ]
        command += [f"-artifact_prefix={found}/{name}-", "-print_final_stats=0", str(corpus)]
        # libFuzzer ends its process at once, so what that has left lies here.
        environment = {**os.environ, "TMPDIR": str(folder)}
        ended = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, errors="replace", check=False
        )
    said = ended.stderr + ended.stdout
    done = _DONE.search(said)
    row = done.groups() if done else ("", "", "", "")
    finding = re.search(r"Test unit written to (\S+)", said)
    trouble = [line for line in said.splitlines() if line.strip()][-1] if ended.returncode and not finding else ""
    words = re.search(r"=== Uncaught Python exception: ===\n(.*)", said)
    text = f"{words[1] if words else ''} ({finding[1]})" if finding else trouble or "none"
    print(f"{name:14} {row[0]:>9} {row[1]:>9} {row[2]:>9} {row[3]:>6}  {text[:200]}", flush=True)
    return int(ended.returncode != 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
