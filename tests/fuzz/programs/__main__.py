"""python -m tests.fuzz.programs --count 1000 --seed 0: random P4 programs on our switch against the specification.

A program, its table entries and its frames are all drawn from one seed. One line for each finding, which is then made
smaller and written to --findings as a program with an STF file that expects what the specification says. At the end a
table of the language's constructs: how many programs had them, and how many frames came by (in programs with probes).
Status 1 if there is a finding.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from gradbed.common.resources import scratch_folder
from tests.fuzz.programs.case import FRAMES, Finding, run_reference, stf_text
from tests.fuzz.programs.page import page
from tests.fuzz.programs.search import Coverage, search
from tests.fuzz.programs.shrinking import shrink


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.programs", description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=1000, help="number of programs")
    parser.add_argument("--seed", type=int, default=0, help="of the first program; the others follow it")
    parser.add_argument("--seconds", type=float, help="stop after this time, however many programs have run")
    parser.add_argument("--frames", type=int, default=FRAMES, help="for each program")
    parser.add_argument("--probes-every", type=int, default=4, help="every which program is also built with probes")
    parser.add_argument("--optimise", default="-O0", help="what the C compiler is told")
    parser.add_argument("--shrink", type=int, default=400, metavar="ATTEMPTS", help="for each finding")
    parser.add_argument("--findings", type=Path, default=Path("findings"), help="folder for programs with findings")
    parser.add_argument("--page", type=Path, help="where to write what was covered, such as docs/random-programs.md")
    options = parser.parse_args(arguments)
    began = time.monotonic()
    coverage, found, done = Coverage(), Counter[str](), 0
    seeds = range(options.seed, options.seed + options.count)
    with scratch_folder("programs") as folder:
        for outcome in search(
            seeds,
            folder,
            probes_every=options.probes_every,
            optimise=options.optimise,
            frames=options.frames,
        ):
            coverage.see(outcome)
            done += 1
            if outcome.finding is not None:
                found[outcome.finding.kind] += 1
                print(f"seed {outcome.seed}: {outcome.finding.kind}: {outcome.finding.text[:400]}", flush=True)
                if options.shrink:
                    _keep(outcome.seed, outcome.finding, folder, options.shrink, options.findings)
            if options.seconds is not None and time.monotonic() - began > options.seconds:
                break
    print(coverage.table())
    if options.page is not None:
        command = f"python -m tests.fuzz.programs --count {options.count} --seed {options.seed}"
        of_all = (options.frames, options.probes_every, found.total())
        options.page.write_text(page(coverage, command, done, *of_all))
    print(
        f"{done} programs, {done * options.frames} frames, {time.monotonic() - began:.0f} s; "
        + (", ".join(f"{count} {kind}" for kind, count in found.items()) or "no finding")
    )
    return int(bool(found))


def _keep(seed: int, finding: Finding, folder: Path, attempts: int, findings: Path) -> None:
    """The smaller program, and frames with what the specification says where it says something."""
    if finding.kind == "crashed":
        return
    smallest = shrink(seed, folder, attempts)
    if smallest is None or smallest[0] is None:
        return
    case = smallest[0]
    findings.mkdir(parents=True, exist_ok=True)
    path = findings / f"random_{seed}.p4"
    path.write_text(case.program.text)
    if smallest[1].kind != "not read":
        path.with_suffix(".stf").write_text(stf_text(case, run_reference(case).outputs))
    print(f"    {path}: {smallest[1].text[:400]}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
