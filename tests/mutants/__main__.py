"""python -m tests.mutants [NAME...]: try the mutants of these lists (all of them), each in a copy of the tree.

A mutant dies if one of its tests fails, or has not ended after ten minutes, and its run fails too if it has one.
Status 1 if one lives that should not, or if tests or runs fail without any mistake: then they would say nothing.
--table instead of names prints the tables of docs/testing.md.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.mutants.entries import ROOT, Mutant, lists, mutants_of
from tests.mutants.table import tables

TIMEOUT_S = 600
PROFILE = ("--hypothesis-profile", "as-found")
FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)
PROCESSORS = len(os.sched_getaffinity(0))


def main(names: Sequence[str]) -> int:
    if {"-h", "--help"} & set(names):
        print(__doc__.strip())
        print(f"Lists: {', '.join(lists())}.")
        return 0
    if list(names) == ["--table"]:
        print(tables(), end="")
        return 0
    if unknown := sorted(set(names) - set(lists())):
        print(f"no list of mutants is called {unknown[0]}: there are {', '.join(lists())}", file=sys.stderr)
        return 2
    mutants = [(name, mutant) for name in names or lists() for mutant in mutants_of(name)]
    with tempfile.TemporaryDirectory(prefix="gradbed-mutants-") as folder, ThreadPoolExecutor(PROCESSORS) as pool:
        copies: queue.Queue[Path] = queue.Queue()
        for number in range(PROCESSORS):
            copies.put(_copy(Path(folder) / str(number)))
        tests = sorted({test for _, mutant in mutants for test in mutant.tests})
        parts = [part for start in range(PROCESSORS) if (part := tests[start::PROCESSORS])]
        sound = list(pool.map(lambda part: _passes(copies, part), parts))
        runs = sorted({json.dumps(mutant.run) for _, mutant in mutants if mutant.run})
        sound += pool.map(lambda run: _run_passes(copies, run), runs)
        for failed in (text for text in sound if text):
            print(f"fails without any mistake: {failed}")
        if any(sound):
            return 1
        verdicts = list(pool.map(lambda entry: _try(copies, *entry), mutants))
    died = verdicts.count("died")
    print(f"{len(mutants)} mutants: {died} died, {verdicts.count('lives')} live with a reason")
    return int(verdicts.count("LIVES") > 0)


def _try(copies: queue.Queue[Path], name: str, mutant: Mutant) -> str:
    with _borrowed(copies) as copy:
        original = copy / mutant.file
        text = mutant.mutated(copy)
        kept = original.read_bytes()
        try:
            original.write_text(text, encoding="utf-8")
            failed = _failed(copy, mutant.tests, TIMEOUT_S)
            if mutant.run and failed:
                said = run_failure(copy, json.dumps(mutant.run))
                failed = f"{failed}; {said}" if said else ""
        finally:
            original.write_bytes(kept)
    verdict = "died" if failed else "lives" if mutant.lives else "LIVES"
    change = f"{mutant.pattern} -> {mutant.by}".replace("\n", " / ")
    print(f"{verdict:5} {name} {mutant.file}: {change[:90]}: {failed or mutant.lives}", flush=True)
    return verdict


def _passes(copies: queue.Queue[Path], tests: Sequence[str]) -> str:
    """Nothing, or the test that fails in the tree as it is."""
    with _borrowed(copies) as copy:
        return _failed(copy, tests)


def _run_passes(copies: queue.Queue[Path], run: str) -> str:
    """Nothing, or how the run fails in the tree as it is."""
    with _borrowed(copies) as copy:
        return run_failure(copy, run)


def _failed(copy: Path, tests: Sequence[str], timeout_s: float | None = None) -> str:
    """Nothing, or the first test that fails, or what else ended them."""
    command = [str(copy / ".venv/bin/python"), "-I", "-m", "gradbed", "test", "--all", "-x", "-q", *PROFILE, *tests]
    try:
        done = subprocess.run(command, cwd=copy, capture_output=True, text=True, timeout=timeout_s, check=False)
    except subprocess.TimeoutExpired:
        return f"not ended after {timeout_s} s"
    if done.returncode == 0:
        return ""
    failed = FAILED.search(done.stdout)
    return failed[1] if failed else f"status {done.returncode}: {done.stderr.strip()[-100:]}"


def run_failure(copy: Path, sections: str) -> str:
    """Nothing, or the first failure that the run finds in itself."""
    # Not -I: the module is found in the working folder.
    command = [str(copy / ".venv/bin/python"), "-E", "-s", "-m", "tests.mutants.trial", sections]
    try:
        done = subprocess.run(command, cwd=copy, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        return f"its run has not ended after {TIMEOUT_S} s"
    return f"its run: {done.stderr.strip().splitlines()[-1]}" if done.returncode else ""


@contextlib.contextmanager
def _borrowed(copies: queue.Queue[Path]) -> Iterator[Path]:
    copy = copies.get()
    try:
        yield copy
    finally:
        copies.put(copy)


def _copy(folder: Path) -> Path:
    """The tree's files, with an environment that has this one's packages and imports the copy's modules."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    venv = folder / ".venv"
    subprocess.run([sys.executable, "-I", "-m", "venv", "--without-pip", str(venv)], check=True)
    packages = f"lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"
    (venv / packages / "gradbed.pth").write_text(f"{Path(sys.prefix) / packages}\n", encoding="utf-8")
    (venv / packages / "gradbed").symlink_to(folder / "api")
    stamp = (Path(sys.prefix) / ".complete").read_text(encoding="utf-8")
    (venv / ".complete").write_text(stamp.replace(str(ROOT), str(folder)), encoding="utf-8")
    return folder


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
