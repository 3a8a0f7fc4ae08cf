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

from gradbed.common.resources import scratch_folder
from tests.fuzz.frames import search as frames
from tests.fuzz.parsers import table as parsers
from tests.fuzz.parsers.target import MAX_INPUT_BYTES, MAX_MEMORY_BYTES, ROOT
from tests.sanitizers import fuzzer

TARGETS = (*parsers.TARGETS, *frames.TARGETS)
NO_ATHERIS = "atheris is missing: .venv/bin/python -m pip install atheris"
NO_LIBFUZZER = "there is no clang with libFuzzer: apt-get install clang"

HANG_S = 60
"""Of the clock on the wall, for what holds Python itself; the target's own limit is of the processor's time."""

_DONE = re.compile(r"#(\d+)\s+DONE\s+cov: (\d+) ft: (\d+) corp: (\d+)")
_FINDING = re.compile(r"Test unit written to (\S+)")
_WORDS = re.compile(r"=== Uncaught Python exception: ===\n(.*)|(?:SUMMARY|ERROR): (.*)|(runtime error: .*)")


def main(arguments: Sequence[str]) -> int:
    try:
        seconds, names = int(arguments[0]), list(arguments[1:]) or list(TARGETS)
    except (IndexError, ValueError):
        print(__doc__.splitlines()[0], file=sys.stderr)
        return 2
    if unknown := sorted(set(names) - set(TARGETS)):
        print(f"no target is called {unknown[0]}: there are {', '.join(TARGETS)}", file=sys.stderr)
        return 2
    lacks = {name: lack for name in names if (lack := _lack(name))}
    for lack in sorted(set(lacks.values())):
        print(f"not searched ({', '.join(each for each in lacks if lacks[each] == lack)}): {lack}", file=sys.stderr)
    found = [name for name in names if name not in lacks]
    if not found:
        return 2
    print(f"{'target':20} {'inputs':>9} {'coverage':>9} {'features':>9} {'kept':>6}  finding", flush=True)
    return max([_fuzz(name, seconds) for name in found])


def _lack(name: str) -> str | None:
    """What this machine has not got for the target."""
    if name in frames.TARGETS:
        return None if fuzzer() else NO_LIBFUZZER
    return NO_ATHERIS if importlib.util.find_spec("atheris") is None else None


def _fuzz(name: str, seconds: int) -> int:
    """1 for a finding."""
    with scratch_folder("fuzz") as folder:
        command, seeds, environment = _search(name, folder)
        corpus = folder / "corpus"
        corpus.mkdir()
        kept = sorted((ROOT / "tests/fuzz/findings" / name).glob("*"))
        for number, seed in enumerate([*seeds, *(path.read_bytes() for path in kept)]):
            (corpus / f"seed{number}").write_bytes(seed)
        found = Path("findings").absolute()
        found.mkdir(exist_ok=True)
        command += [
            f"-max_total_time={seconds}",
            f"-max_len={MAX_INPUT_BYTES}",
            f"-timeout={HANG_S}",
            f"-rss_limit_mb={2 * MAX_MEMORY_BYTES >> 20}",
            f"-artifact_prefix={found}/{name}-",
            f"-report_slow_units={HANG_S}",  # until then it is the machine that is busy
            "-print_final_stats=0",
            str(corpus),
        ]
        # libFuzzer ends its process at once, so what that has left lies here.
        ended = subprocess.run(
            command,
            cwd=ROOT,
            env={**os.environ, **environment, "TMPDIR": str(folder)},
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
    _show(name, ended)
    return int(ended.returncode != 0)


def _search(name: str, folder: Path) -> tuple[list[str], list[bytes], dict[str, str]]:
    """libFuzzer's process, what it starts from, and its environment."""
    if name not in frames.TARGETS:
        return [sys.executable, "-m", "tests.fuzz.guided", name], parsers.TARGETS[name].seeds(), {}
    target = frames.TARGETS[name]
    setup = folder / "setup"
    setup.write_text(target.setup())
    # Numbers that are compared count as coverage, too: most that is asked of headers is whether they have one.
    command = [str(target.build(folder)), "-use_value_profile=1"]
    return command, target.seeds(), {"GRADBED_FUZZ_SETUP": str(setup)}


def _show(name: str, ended: subprocess.CompletedProcess[str]) -> None:
    said = ended.stderr + ended.stdout
    done = _DONE.search(said)
    row = done.groups() if done else ("", "", "", "")
    finding = _FINDING.search(said)
    trouble = [line for line in said.splitlines() if line.strip()][-1] if ended.returncode and not finding else ""
    words = _WORDS.search(said)
    why = next(filter(None, words.groups()), "") if words else ""
    text = f"{why} ({finding[1]})" if finding else trouble or "none"
    print(f"{name:20} {row[0]:>9} {row[1]:>9} {row[2]:>9} {row[3]:>6}  {text[:200]}", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
